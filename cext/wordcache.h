/*
 * Words that were tokenized before: bytes -> ids, exact, bounded, one thread's.
 *
 *   short  32 bytes an entry: key of at most 15 bytes with its length in the
 *          sixteenth, up to 3 ids                      - nearly all look-ups
 *   piece  64 bytes: at most 31 bytes, up to 7 ids; see piece_cache.h
 *   long   256 bytes: at most 128 bytes, up to 30 ids  - rules of dashes and such
 *
 * Longer words are not kept. Sets have two entries. What is pushed out of a set of
 * the short table goes to the piece cache, where the slow path finds it and
 * brings it back. Tables start small and grow while they fill.
 */
#ifndef GGTOK_WORDCACHE_H
#define GGTOK_WORDCACHE_H

#include "piece_cache.h"

enum { WORD_SHORT = 15, WORD_SHORT_IDS = 3, WORD_LONG = 128, WORD_LONG_IDS = 30 };

typedef struct word_short {
    uint64_t key[2]; /* key[1] == 0: free (a length is never 0) */
    int32_t ids[WORD_SHORT_IDS];
    uint16_t n;
    uint16_t more; /* of a set's first entry: are there short words of this set in other tables? */
} word_short;

typedef struct word_long word_long;

typedef struct wordcache {
    word_short *shorts;
    unsigned short_shift; /* 64 - log2(sets) */
    size_t n_moved;       /* entries that had to leave since the table's last growth */
    void *block;
    piece_cache pieces;
    word_long *longs; /* NULL until there is one */
    size_t n_slots;   /* of longs: a power of two */
    size_t n_over;    /* long words that overwrote another since the table last grew */
} wordcache;

/* False: out of memory. */
bool wordcache_init(wordcache *c);
void wordcache_free(wordcache *c);
size_t wordcache_bytes(const wordcache *c); /* of memory that it holds */

/* Keeps word p[0..n) = ids[0..count), n >= 1, if it fits. May fail to; that only
 * costs time. */
void wordcache_put(wordcache *c, const uint8_t *p, size_t n, const int32_t *ids, size_t count);

/* Appends the ids of word p[0..n), n >= 1, if they are kept; `room` (>= n) bytes
 * may be read at p, and *out has room for WORD_LONG_IDS ids. */
bool wordcache_get(wordcache *c, const uint8_t *p, size_t n, size_t room, idbuf *out);

/* ---- the hot path: short words, 16 bytes readable ---- */

/* By length: the bits of a short word's bytes in its key. A table, since how long
 * a word is can't be predicted. */
extern const uint64_t word_mask[WORD_SHORT + 1][2];

/* A short word's key: its bytes, zeros, and its length in the byte that none
 * reaches. 16 bytes at p are readable. */
static inline void word_short_key(uint64_t key[2], const uint8_t *p, size_t n) {
    memcpy(key, p, 16);
    key[0] &= word_mask[n][0];
    key[1] &= word_mask[n][1];
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    key[1] |= n;
#else
    key[1] |= (uint64_t)n << 56;
#endif
}

static inline uint64_t word_hash(const uint64_t key[2]) {
    return (key[0] ^ key[1] * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
}

/* The set that holds the key, if any does. */
static inline const word_short *word_short_set(const wordcache *c, const uint64_t key[2]) {
    return &c->shorts[2 * (word_hash(key) >> c->short_shift)];
}

static inline void word_prefetch(const void *p) {
#if defined(__GNUC__)
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

/* The key's entry in its set, or NULL. No branch depends on which of the two it
 * is: that is a toss-up. */
static inline const word_short *word_short_find(const word_short *set, const uint64_t key[2]) {
    uint64_t no0 = (set[0].key[0] ^ key[0]) | (set[0].key[1] ^ key[1]);
    uint64_t no1 = (set[1].key[0] ^ key[0]) | (set[1].key[1] ^ key[1]);
    if ((no0 != 0) & (no1 != 0)) return NULL;
    return set + (no0 != 0);
}

#endif
