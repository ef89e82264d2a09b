/*
 * Where a word can be cut without changing its merges: between two characters that no
 * merge joins. (RWKV has no merges; there, each token joins the bytes on the two sides
 * of every position inside it.)
 *
 * A merge (left, right) joins left's last byte and right's first byte. If there is a
 * character boundary of the text between them, left ends with the whole first character
 * or consists of its last bytes, and right begins with the whole second character or
 * consists of its first bytes. The set holds all such pairs, with whole and partial
 * characters. At a pair that isn't in the set nothing ever merges, so the parts of the
 * word on its two sides merge independently.
 */
#ifndef GGTOK_BPE_CUTS_H
#define GGTOK_BPE_CUTS_H

#include "index/adjacency.h"

typedef struct bpe_cuts {
    adjacency set;
    /* Bit b of row a: in some pair with a partial character, left's last byte is a and right's
     * first byte is b. Such pairs are few, so most positions need no second look-up. */
    uint64_t partial[256][4];
} bpe_cuts;

/* Adds a merge, given the last bytes of left and the first bytes of right: 4 or, if the symbol is
 * shorter, all. */
void ggtok_bpe_cuts_add(bpe_cuts *c, const uint8_t *left, size_t n_left, const uint8_t *right,
                        size_t n_right);

/* Whether there can be a pair with a partial character at this position. */
static inline bool bpe_cuts_partial(const bpe_cuts *c, uint8_t last, uint8_t first) {
    return c->partial[last][first >> 6] >> (first & 63) & 1;
}

/* Whether a pair with a partial character joins a and b, two whole characters. */
bool ggtok_bpe_cuts_joins_partial(const bpe_cuts *c, uint32_t a, uint32_t b);

/* Whether a merge may join the character text[start..at), which must be whole, to the character at
 * text + at. */
bool ggtok_bpe_cuts_joined(const bpe_cuts *c, const uint8_t *text, size_t start, size_t at);

/* Finds the pieces of the well-formed word[from..n): writes up to `max` (> 8) of their ends and
 * returns the number written. If the last of these isn't n, call again from there: `from` must be
 * the beginning of a piece, and less than n. */
size_t ggtok_bpe_cuts_find(const bpe_cuts *c, const uint8_t *word, size_t n, size_t from,
                           size_t *ends, size_t max);

#endif
