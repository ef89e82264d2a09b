/*
 * The special tokens to look for: in llama.cpp's order, and as the automaton of Aho and
 * Corasick, which tells in one pass over a text where they end.
 */
#ifndef GGTOK_PARTITION_SET_H
#define GGTOK_PARTITION_SET_H

#include "special/runs.h"

/* Children hang on a list; where there are many, and at the root, there is a table of
 * them too. A token is written as 1 + its index in `ids`, so that 0 is none. */
typedef struct special_node {
    uint32_t child, sibling; /* 0: none (the root is nobody's child) */
    uint32_t wide;           /* its table of children, or 0 (the root's is that) */
    uint32_t fail;           /* the longest proper suffix that is a node */
    uint32_t token;          /* the longest that ends here */
    uint8_t byte;
} special_node;

enum { SPECIAL_STARTS = 4 }; /* bytes */

typedef struct special_set {
    int32_t *ids; /* in llama.cpp's order: longest first */
    size_t n;
    bool strips;         /* does one of them take white space along? */
    bool anywhere;       /* may one of them be found where text isn't trusted? */
    uint32_t *open;      /* [n + 1], by token: the longest that may be found anywhere (that is not
                            reserved) and is a suffix of it, or it */
    special_node *nodes; /* nodes[0] is the root */
    size_t n_nodes;
    uint32_t (*wide)[256]; /* children by byte, 0: none; wide[0] is the root's */
    size_t n_wide, wide_cap;
    bool first[256];                /* does a text begin with this byte? */
    uint8_t starts[SPECIAL_STARTS]; /* the bytes that texts begin with, */
    size_t n_starts;                /* 0: too many to look for one by one */
    special_runs runs;              /* tokens that are not among `ids` */
} special_set;

/* The special tokens that are always looked for and, with parse_special, the others: those of
 * chosen[n_tokens], or all if that is NULL. */
ggtok_status ggtok_special_set_build(special_set *set, const vocab *v, bool parse_special,
                                     const bool *chosen, ggtok_error *err);
void ggtok_special_set_free(special_set *set);

static inline uint32_t special_child(const special_set *set, uint32_t node, uint8_t byte) {
    const special_node *n = &set->nodes[node];
    if (!node || n->wide) return set->wide[n->wide][byte];
    uint32_t c = n->child;
    while (c && set->nodes[c].byte != byte) c = set->nodes[c].sibling;
    return c;
}

/* The longest suffix of what has been read, this byte included, that is a node. */
static inline uint32_t special_step(const special_set *set, uint32_t node, uint8_t byte) {
    uint32_t next;
    while (!(next = special_child(set, node, byte)) && node) node = set->nodes[node].fail;
    return next;
}

#endif
