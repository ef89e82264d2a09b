/*
 * Where a word may be cut without changing its merges: between two characters
 * that no merge joins. (RWKV has no merges, but tokens, which join what is on the
 * two sides of each place in them.)
 *
 * A merge (left, right) joins at the place between left's last and right's first
 * byte. Where that is a place between two characters of the text, left ends with
 * the whole first character, or is the last bytes of it; right begins with the
 * whole second one, or is the first bytes of it. All such pairs, with whole and
 * partial characters, are in the set; a pair that isn't never merges, so what is
 * on its two sides is merged independently.
 */
#ifndef GGTOK_BPE_CUTS_H
#define GGTOK_BPE_CUTS_H

#include "index/adjacency.h"

typedef struct bpe_cuts {
    adjacency set;
    /* Bit b of row a: in some pair with a partial character, left's last byte is a and
     * right's first is b. Few are, so most places need no second look. */
    uint64_t partial[256][4];
} bpe_cuts;

/* Notes a merge, given left's last bytes (4, or all of them) and right's first. */
void ggtok_bpe_cuts_add(bpe_cuts *c, const uint8_t *left, size_t n_left, const uint8_t *right,
                        size_t n_right);

/* May there be a pair with a partial character at this place? */
static inline bool bpe_cuts_partial(const bpe_cuts *c, uint8_t last, uint8_t first) {
    return c->partial[last][first >> 6] >> (first & 63) & 1;
}

/* Is there one that joins a to b, two whole characters? */
bool ggtok_bpe_cuts_joins_partial(const bpe_cuts *c, uint32_t a, uint32_t b);

/* Does perhaps a merge join the character text[start..at), whole, to the one at text + at? */
bool ggtok_bpe_cuts_joined(const bpe_cuts *c, const uint8_t *text, size_t start, size_t at);

/* Writes where the pieces of word[from..n), which is well-formed, end: at most `max` (> 8)
 * of them, the last one at n if there are fewer. `from` < n begins one. */
size_t ggtok_bpe_cuts_find(const bpe_cuts *c, const uint8_t *word, size_t n, size_t from,
                           size_t *ends, size_t max);

#endif
