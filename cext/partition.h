/*
 * Partition: text -> raw fragments and special tokens.
 *
 * llama.cpp's rule: special tokens in order of length, longest first; each takes
 * all its occurrences, leftmost first, out of what is still raw. (That is not
 * leftmost-longest: in "<a><ab>..." a longer token further right goes first.)
 */
#ifndef GGTOK_PARTITION_H
#define GGTOK_PARTITION_H

#include "partition_runs.h"

/* Where a text may hold control tokens: ascending ranges, none empty, that don't
 * touch each other. */
typedef struct trusted_ranges {
    const ggtok_range *data;
    size_t n;
} trusted_ranges;

/* The tokens to look for, in llama.cpp's order, and an automaton that tells in
 * one pass over a text which of them it holds at all. */
typedef struct special_set {
    int32_t *ids;
    size_t n;
    struct special_node *nodes; /* nodes[0] is the root */
    size_t n_nodes;
    uint32_t (*wide)[256]; /* children by byte, 0: none; wide[0] is the root's */
    size_t n_wide, wide_cap;
    bool first[256];   /* does a text begin with this byte? */
    int only_first;    /* the byte that all texts begin with, or -1 */
    special_runs runs; /* tokens that are not among `ids` */
} special_set;

/* All special tokens (parse_special), or only those always looked for. */
ggtok_status special_set_build(special_set *set, const vocab *v, bool parse_special,
                               ggtok_error *err);
void special_set_free(special_set *set);

typedef struct fragment {
    size_t pos, n; /* bytes of the text */
    int32_t id;    /* the special token, or GGTOK_NO_TOKEN: raw text */
} fragment;

typedef struct fragments {
    fragment *data;
    size_t n, cap;
} fragments;

/* A thread's own. */
typedef struct partition_scratch {
    fragments now, next;
    uint8_t *seen; /* [set->n]: the text holds this token */
    size_t seen_cap;
    uint32_t *border; /* of the word being looked for: see long_borders */
    size_t border_cap;
} partition_scratch;

/* Sets s->now to the fragments of text[0..n), in text order, none empty. With
 * `trusted`, control and unknown tokens are found only inside one of its ranges.
 * False: out of memory. */
bool partition_text(partition_scratch *s, const special_set *set, const vocab *v,
                    const uint8_t *text, size_t n, const trusted_ranges *trusted);
void partition_scratch_free(partition_scratch *s);

#endif
