/*
 * The part of a merge that works on the slots: replacing the occurrences of the merged pair.
 *
 * First ggtok_part_replace replaces the occurrences, and counts how often each distinct symbol is
 * the left or right neighbour of one. These counts decide which new pairs are worth keeping. Then
 * ggtok_part_list lists where the new pairs occur. So the table of pairs is accessed once per
 * distinct neighbour, not once per occurrence.
 */
#ifndef GGTOK_TRAIN_PART_H
#define GGTOK_TRAIN_PART_H

#include "train/layout.h"
#include "train/pairs.h"

typedef struct neighbour { /* how often a symbol is a neighbour of the merged pair */
    uint64_t weight;
    uint32_t n;
} neighbour;

typedef struct side {
    neighbour *counts; /* by symbol; all zero between merges */
    uint32_t *seen; /* symbols with a nonzero element in `counts`, in order of first occurrence */
    size_t n_seen;
    uint32_t **next; /* by symbol: where to write the next place of its new pair; NULL: not kept */
} side;

typedef struct part {
    const layout *layout;
    side left, right;
    size_t cap;        /* number of symbols for which the arrays have room */
    uint64_t replaced; /* weight of the merged occurrences */
    uint64_t doubled;  /* weight of adjacent occurrences, such as "abab", which became two new
                          symbols */
    uint32_t n_doubled;
    /* For each merged occurrence, in order: the symbols to its left and right, or SLOT_NONE. */
    uint32_t *around;
    size_t n_around, cap_around;
    uint32_t *places; /* the slot of each merged occurrence; overwrites the merged pair's list */
} part;

/* Make room for symbols with numbers below n_symbols, and for n occurrences. Return false if out of
 * memory. */
bool ggtok_part_reach(part *p, size_t n_symbols);
bool ggtok_part_room(part *p, size_t n);
void ggtok_part_free(part *p);

/* Replaces the pair (left, right) at places[0..n) by `made`, a symbol with `length` initial
 * symbols. */
void ggtok_part_replace(part *p, uint32_t *places, size_t n, uint32_t left, uint32_t right,
                        uint32_t made, uint32_t length, const symbol *symbols);

/* Writes the places of new pairs to their lists, at `next`. */
void ggtok_part_list(part *p, const symbol *symbols);

#endif
