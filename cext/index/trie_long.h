/*
 * The long texts of a trie, found at all places of a text at once.
 *
 * A walk from each place costs places times depth: 80 KB of "a" with a token of as
 * many and a "b" after them is three billion steps. So where a trie has texts
 * longer than TRIE_WALK, walks stop there, and this finds the others: the automaton
 * of Aho and Corasick for these texts reversed, which reads the text once, from its
 * end. A vocabulary without such texts pays nothing. docs/design/tries.md has the argument.
 */
#ifndef GGTOK_TRIE_LONG_H
#define GGTOK_TRIE_LONG_H

#include "index/trie.h"

enum { TRIE_WALK = 256 };

typedef struct trie_long {
    trie t; /* the long texts, last byte first, no tails; unit NULL: there are none */
    /* Beside each unit, the longest of what its bytes begin with (they are the last
     * read, so these all are prefixes of the text): */
    uint32_t *fail; /* shorter than itself, in the trie; the root if nothing is */
    uint32_t *hit;  /* itself included, a text; 0: none */
    const uint32_t *off;
} trie_long;

/* Takes what ggtok_trie_build takes; the offsets must outlive it. False: out of memory;
 * ggtok_trie_long_free is still allowed. */
bool ggtok_trie_long_build(trie_long *l, const uint8_t *arena, const uint32_t *off,
                           const uint32_t *ids, size_t n);
void ggtok_trie_long_free(trie_long *l);

/* Into hits->data[i], for each i < n: the unit of the longest long text that
 * p[i..n) begins with, or 0. False: out of memory. */
bool ggtok_trie_long_find(const trie_long *l, const uint8_t *p, size_t n, idbuf *hits);

/* The text of a hit: its number, its length. */
static inline int32_t trie_long_id(const trie_long *l, uint32_t hit, size_t *len) {
    int32_t id = l->t.value[hit];
    *len = l->off[id + 1] - l->off[id];
    return id;
}

/* The next shorter long text at that place, or 0. */
static inline uint32_t trie_long_shorter(const trie_long *l, uint32_t hit) {
    return l->hit[l->fail[hit]];
}

/* Does a piece of n bytes need ggtok_trie_long_find? */
static inline bool trie_long_for(const trie_long *l, size_t n) {
    return l->t.unit && n > TRIE_WALK;
}

/* trie_longest at p[i..n), long texts included: t's, of which l has the long ones.
 * `hits` is for p[0..n), or NULL where trie_long_for says so. */
static inline size_t trie_longest_at(const trie *t, const trie_long *l, const int32_t *hits,
                                     const uint8_t *p, size_t i, size_t n, int32_t *id) {
    if (!hits) return trie_longest(t, p + i, n - i, id);
    size_t len;
    if (!hits[i]) return trie_longest(t, p + i, n - i < TRIE_WALK ? n - i : TRIE_WALK, id);
    *id = trie_long_id(l, (uint32_t)hits[i], &len);
    return len;
}

#endif
