/*
 * The long texts of a trie, found at all positions of a text in one pass.
 *
 * A separate walk from each position costs positions times depth: for 80 KB of "a" and a token of
 * 80 KB of "a" with a "b" at the end, three billion steps. So walks stop after TRIE_WALK bytes, and
 * an automaton finds the longer texts: an Aho-Corasick automaton for the reversed long texts, which
 * reads the text once, from its end. Vocabularies without such texts have no extra cost.
 * docs/design/loading.md has the details.
 */
#ifndef GGTOK_TRIE_LONG_H
#define GGTOK_TRIE_LONG_H

#include "index/trie.h"

enum { TRIE_WALK = 256 };

typedef struct trie_long {
    trie t; /* the long texts, reversed, without tails; unit NULL: there are none */
    /* A unit stands for a string: the bytes on the path to it, in text order (that is, last byte
     * first). For each unit, the unit of the longest prefix of its string that is: */
    uint32_t *fail; /* shorter than the string, and has a unit; the root if there is none */
    uint32_t *hit;  /* a long text, possibly the whole string; 0: none */
    const uint32_t *off;
} trie_long;

/* Builds from the arguments of ggtok_trie_build; the offsets must outlive the trie. Returns false
 * if out of memory; ggtok_trie_long_free is still allowed then. */
bool ggtok_trie_long_build(trie_long *l, const uint8_t *arena, const uint32_t *off,
                           const uint32_t *ids, size_t n);
void ggtok_trie_long_free(trie_long *l);

/* Sets hits->data[i], for each i < n, to the unit of the longest long text with which p[i..n)
 * begins, or 0. Returns false if out of memory. */
bool ggtok_trie_long_find(const trie_long *l, const uint8_t *p, size_t n, idbuf *hits);

/* Returns the number of a hit's text and sets *len to its length. */
static inline int32_t trie_long_id(const trie_long *l, uint32_t hit, size_t *len) {
    int32_t id = l->t.value[hit];
    *len = l->off[id + 1] - l->off[id];
    return id;
}

/* Returns the next shorter long text at the same position, or 0. */
static inline uint32_t trie_long_shorter(const trie_long *l, uint32_t hit) {
    return l->hit[l->fail[hit]];
}

/* Whether a piece of n bytes needs ggtok_trie_long_find. */
static inline bool trie_long_for(const trie_long *l, size_t n) {
    return l->t.unit && n > TRIE_WALK;
}

/* Equals trie_longest at p[i..n), including long texts; l holds the long texts of t. `hits` is the
 * data from ggtok_trie_long_find for p[0..n), or NULL if trie_long_for is false. */
static inline size_t trie_longest_at(const trie *t, const trie_long *l, const int32_t *hits,
                                     const uint8_t *p, size_t i, size_t n, int32_t *id) {
    if (!hits) return trie_longest(t, p + i, n - i, id);
    size_t len;
    if (!hits[i]) return trie_longest(t, p + i, n - i < TRIE_WALK ? n - i : TRIE_WALK, id);
    *id = trie_long_id(l, (uint32_t)hits[i], &len);
    return len;
}

#endif
