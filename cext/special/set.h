/*
 * The special tokens to parse, in llama.cpp's order, and an Aho-Corasick automaton that finds where
 * they end in one pass over a text.
 */
#ifndef GGTOK_PARTITION_SET_H
#define GGTOK_PARTITION_SET_H

#include "special/runs.h"

/* A node's children form a linked list; the root and nodes with many children also have a table. A
 * token is stored as 1 + its index in `ids`, so that 0 means none. */
typedef struct special_node {
    uint32_t child, sibling; /* first child, next sibling; 0: none (the root is no node's child) */
    uint32_t wide;           /* index of its table of children; 0: none (the root's is table 0) */
    uint32_t fail;           /* node of the longest proper suffix that is a node */
    uint32_t token;          /* the longest token that ends here */
    uint8_t byte;
} special_node;

enum { SPECIAL_STARTS = 4 }; /* maximum number of first bytes that are searched for one by one */

typedef struct special_set {
    int32_t *ids; /* in llama.cpp's order: longest first */
    size_t n;
    bool strips;         /* whether any token strips white space */
    bool anywhere;       /* whether any token is allowed in untrusted text */
    uint32_t *open;      /* [n + 1], by token: the longest suffix of its text (or the whole text)
                            that is a token allowed in untrusted text (not reserved) */
    special_node *nodes; /* nodes[0] is the root */
    size_t n_nodes;
    uint32_t (*wide)[256]; /* children by byte, 0: none; wide[0] is the root's table */
    size_t n_wide, wide_cap;
    bool first[256];                /* by byte: whether any token begins with it */
    uint8_t starts[SPECIAL_STARTS]; /* the bytes that tokens begin with */
    size_t n_starts;                /* number of bytes in `starts`; 0: there are too many to search
                                       for one by one */
    special_runs runs;              /* run tokens, which aren't in `ids` */
} special_set;

/* Builds the set from the special tokens that are always parsed and, with parse_special, the other
 * special tokens: each id with chosen[id], or all if `chosen` is NULL. */
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

/* Returns the node of the longest suffix of the text read so far, including this byte. */
static inline uint32_t special_step(const special_set *set, uint32_t node, uint8_t byte) {
    uint32_t next;
    while (!(next = special_child(set, node, byte)) && node) node = set->nodes[node].fail;
    return next;
}

#endif
