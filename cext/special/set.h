/*
 * The special tokens to parse: in llama.cpp's order, and as an Aho-Corasick automaton, which
 * finds where they end in one pass over a text.
 */
#ifndef GGTOK_PARTITION_SET_H
#define GGTOK_PARTITION_SET_H

#include "special/runs.h"

/* Children are in a linked list; the root and nodes with many children also have a table of them. A
 * token is stored as 1 + its index in `ids`, so that 0 means none. */
typedef struct special_node {
    uint32_t child, sibling; /* 0: none (the root is no node's child) */
    uint32_t wide;           /* index of its table of children; 0: none (the root's is table 0) */
    uint32_t fail;           /* the longest proper suffix that is a node */
    uint32_t token;          /* the longest token that ends here */
    uint8_t byte;
} special_node;

enum { SPECIAL_STARTS = 4 }; /* bytes */

typedef struct special_set {
    int32_t *ids; /* in llama.cpp's order: longest first */
    size_t n;
    bool strips;         /* does any of them strip white space? */
    bool anywhere;       /* is any of them allowed in untrusted text? */
    uint32_t *open;      /* [n + 1], for each token: the longest token that is a suffix of it, or
                            equal, and is allowed in untrusted text (isn't reserved) */
    special_node *nodes; /* nodes[0] is the root */
    size_t n_nodes;
    uint32_t (*wide)[256]; /* children by byte, 0: none; wide[0] is the root's */
    size_t n_wide, wide_cap;
    bool first[256];                /* does a text begin with this byte? */
    uint8_t starts[SPECIAL_STARTS]; /* the bytes that texts begin with, */
    size_t n_starts;                /* and their number; 0: too many to search one by one */
    special_runs runs;              /* tokens that are kept out of `ids` */
} special_set;

/* Takes the special tokens that are always parsed and, with parse_special, the others: those set in
 * chosen[n_tokens], or all if it is NULL. */
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

/* The node of the longest suffix of the text read so far, this byte included. */
static inline uint32_t special_step(const special_set *set, uint32_t node, uint8_t byte) {
    uint32_t next;
    while (!(next = special_child(set, node, byte)) && node) node = set->nodes[node].fail;
    return next;
}

#endif
