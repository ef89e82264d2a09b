/*
 * What one thread does of a merge: the occurrences that lie in its range of slots, which no
 * word crosses.
 *
 * First it replaces them, and sums up for each distinct neighbour, left and right, how often
 * that stood there. From the sums of all parts follows which new pairs are worth keeping;
 * then it writes down where those occur. So the table of pairs is touched once for each
 * distinct neighbour, not once for each occurrence.
 */
#ifndef GGTOK_TRAIN_PART_H
#define GGTOK_TRAIN_PART_H

#include "train/layout.h"
#include "train/pairs.h"

typedef struct neighbour { /* of the pair being merged, by its symbol; all zero between merges */
    uint64_t weight;
    uint32_t n;
} neighbour;

typedef struct side {
    neighbour *of;
    uint32_t *met; /* symbols that `of` isn't zero for, as they were met first */
    size_t n_met;
    uint32_t **to; /* where the next place goes, of pairs that are kept; NULL: of none */
} side;

typedef struct part {
    const layout *layout;
    uint32_t begin, end; /* slots */
    side left, right;
    size_t cap;        /* symbols that there is room for */
    uint64_t replaced; /* weight of what was merged */
    uint64_t doubled;  /* weight of occurrences side by side: "abab" became two new symbols */
    uint32_t n_doubled;
    /* Of the merged occurrences in order: the symbols to the left and right, or SLOT_NONE. */
    uint32_t *around;
    size_t n_around, cap_around;
    uint32_t *places; /* and their slots, over the pair's own list */
} part;

bool ggtok_part_reach(part *p, size_t n_symbols); /* room for symbols below; false: out of memory */
bool ggtok_part_room(part *p, size_t n);          /* and for n occurrences */
void ggtok_part_free(part *p);

/* Replaces left right, occurrences at places[0..n) of this part, by `made`, whose length is
 * given. */
void ggtok_part_replace(part *p, uint32_t *places, size_t n, uint32_t left, uint32_t right,
                        uint32_t made, uint32_t length, const symbol *symbols);

/* Writes the places of new pairs to where `to` says. */
void ggtok_part_list(part *p, const symbol *symbols);

#endif
