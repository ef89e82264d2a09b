/*
 * A cache from words to ids: exact, bounded, owned by one thread.
 *
 *   short  32 bytes per entry: a key of at most 15 bytes, its length in the sixteenth,
 *          and up to 4 ids; or two entries with up to 11 ids (nearly all look-ups)
 *   piece  64 bytes: at most 31 bytes, up to 7 ids; see cache/piece_cache.h
 *   long   at most 255 bytes, up to 255 ids; see cache/long_cache.h
 *
 * Longer words are not cached here; see cache/kept_words.h. A set has two entries. A short word
 * whose set is full is stored in the next set or, as a far word, in the piece cache (in the long
 * cache if it has many ids). Far words that are hit again move into their sets. Tables start small
 * and grow as they fill.
 */
#ifndef GGTOK_WORD_CACHE_H
#define GGTOK_WORD_CACHE_H

#include "cache/long_cache.h"
#include "cache/piece_cache.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define WORD_SSE2 1
#endif

enum { WORD_SHORT = 15, WORD_SHORT_IDS = 4, WORD_WIDE_IDS = 11 };

/* An id has 29 bits. The upper bits of ids[0] hold the number of ids. In the first entry of a set,
 * the upper bits of ids[3] (WORD_NEAR, WORD_FAR) tell where else words that belong to this set may
 * be. */
typedef struct word_short {
    uint64_t key[2]; /* the word; key[1] == 0: the entry is free (a length is never 0) */
    uint32_t ids[WORD_SHORT_IDS];
} word_short;

/* A word of 5 to 11 ids is wide: it occupies both entries of a set. Its ids[0] contains WORD_WIDE
 * instead of the number of ids, and ids[1] contains that number minus 5. The second entry holds the
 * ids after the fourth, in its ids and then in its key. The last four bytes of that key are 0, a
 * length that no word has, so no word matches it. */
enum { WORD_ID_BITS = 29, WORD_ID_MASK = (1 << WORD_ID_BITS) - 1, WORD_WIDE = 7 };

/* A word can have an entry before its ids are known: it is pending. WORD_PENDING is then added to
 * the length in its key, so that look-ups don't find it, and ids[0] is a number chosen by the
 * caller. */
enum { WORD_PENDING = 0x80 };
#define WORD_NEAR ((uint32_t)1 << WORD_ID_BITS) /* words may be in the next set */
#define WORD_FAR ((uint32_t)2 << WORD_ID_BITS)  /* words may be in the piece or long cache */

typedef struct word_cache {
    word_short *shorts;
    unsigned short_shift; /* 64 - log2(number of sets); changes when the table grows */
    size_t n_moved;       /* number of words that found their set full since the table last grew */
    size_t n_pending;     /* number of pending words; while it isn't 0, the table doesn't grow */
    unsigned n_far_hits;  /* number of hits of far words */
    mem_table table;      /* memory of the sets */
    piece_cache pieces;
    long_cache longs;
} word_cache;

/* Returns false if out of memory. */
bool ggtok_word_cache_init(word_cache *c);
void ggtok_word_cache_free(word_cache *c);
size_t ggtok_word_cache_bytes(const word_cache *c); /* bytes of memory in use */

/* Stores the word p[0..n), n >= 1, with ids[0..count), unless it is already stored or too large. A
 * word of more than PIECE_MAX bytes is stored when it occurs for the second time. Storing may fail,
 * which only costs time. `room` (>= n) bytes are readable at p. */
void ggtok_word_cache_put(word_cache *c, const uint8_t *p, size_t n, size_t room,
                          const int32_t *ids, size_t count);

/* Marks a short word that isn't stored as pending, with `number` in its entry, unless it is already
 * pending. Returns its entry, or NULL if there is no room. */
word_short *ggtok_word_cache_claim(word_cache *c, const uint64_t key[2], uint32_t number);

/* Store the ids of a pending word, as ggtok_word_cache_put does, or discard the word. */
void ggtok_word_cache_fill(word_cache *c, word_short *pending, const int32_t *ids, size_t count);
void ggtok_word_cache_drop(word_cache *c, word_short *pending);

/* Appends the ids of the word p[0..n), n >= 1, if it is stored. `room` (>= n) bytes are readable at
 * p, and *out has room for LONG_MAX_IDS ids. */
bool ggtok_word_cache_get(word_cache *c, const uint8_t *p, size_t n, size_t room, idbuf *out);

/* Variants of ggtok_word_cache_get: for words of at most WORD_SHORT bytes that may be far, given
 * their key; for words of at most PIECE_MAX bytes, with one more byte readable, given their
 * piece_hash; for words of at most LONG_MAX_BYTES bytes, given their ggtok_long_hash. */
bool ggtok_word_cache_get_far(word_cache *c, const uint64_t key[2], const uint8_t *p, size_t n,
                              idbuf *out);
bool ggtok_word_cache_get_piece(word_cache *c, const uint8_t *p, size_t n, uint64_t hash,
                                idbuf *out);
bool ggtok_word_cache_get_long(word_cache *c, const uint8_t *p, size_t n, uint64_t hash,
                               idbuf *out);

/* Another variant, for words of at most LONG_MAX_BYTES bytes: finds a word only if it is the last
 * word of its length that ggtok_word_cache_get_long found. */
bool ggtok_word_cache_get_recent(const word_cache *c, const uint8_t *p, size_t n, idbuf *out);

/* ---- the hot path: short words, with 16 readable bytes ---- */

/* By length: the mask that keeps a short word's bytes in its key. A table avoids branches on the
 * length, which is unpredictable. */
extern const uint64_t ggtok_word_mask[WORD_SHORT + 1][2];

/* Makes the key of a short word: its bytes, zeros, and its length in the last byte. 16 bytes at p
 * must be readable. */
static inline void word_short_key(uint64_t key[2], const uint8_t *p, size_t n) {
    memcpy(key, p, 16);
    key[0] &= ggtok_word_mask[n][0];
    key[1] &= ggtok_word_mask[n][1];
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    key[1] |= n;
#else
    key[1] |= (uint64_t)n << 56;
#endif
}

static inline uint64_t word_hash(const uint64_t key[2]) {
    return (key[0] ^ key[1] * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
}

/* Returns the set to which the key belongs. */
static inline const word_short *word_short_set(const word_cache *c, const uint64_t key[2]) {
    return &c->shorts[2 * (word_hash(key) >> c->short_shift)];
}

/* Returns 1 if the keys are equal, otherwise 0. Compiles without a branch. */
static inline unsigned word_same(const uint64_t a[2], const uint64_t b[2]) {
#ifdef WORD_SSE2
    __m128i same = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)a),
                                  _mm_loadu_si128((const __m128i *)(const void *)b));
    return ((unsigned)_mm_movemask_epi8(same) + 1) >> 16;
#else
    return !((a[0] ^ b[0]) | (a[1] ^ b[1]));
#endif
}

/* Returns the key's entry in its set, or NULL. No branch depends on which entry matches, since that
 * is unpredictable. */
static inline const word_short *word_short_find(const word_short *set, const uint64_t key[2]) {
    unsigned first = word_same(set[0].key, key), second = word_same(set[1].key, key);
    return first + second ? set + second : NULL;
}

static inline size_t word_short_n(const word_short *e) {
    return e->ids[0] >> WORD_ID_BITS;
}

static inline bool word_is_wide(const word_short *e) {
    return word_short_n(e) == WORD_WIDE;
}

static inline bool word_is_pending(const word_short *e) {
    return ((const uint8_t *)e->key)[WORD_SHORT] & WORD_PENDING;
}

/* Writes all ids of a wide word except the first four, and returns the number of all its ids. */
static inline size_t word_wide_ids(const word_short *e, int32_t *ids) {
    memcpy(ids + 4, e[1].ids, sizeof e[1].ids);
    memcpy(ids + 8, e[1].key, sizeof e[1].key);
    return WORD_SHORT_IDS + 1 + (e->ids[1] >> WORD_ID_BITS);
}

/* Writes the ids of an entry and returns their number. May overwrite up to WORD_WIDE_IDS + 1
 * elements. */
static inline size_t word_short_ids(const word_short *e, int32_t *ids) {
    uint32_t id[WORD_SHORT_IDS]; /* a copy, since the compiler must assume that e and ids overlap */
    memcpy(id, e->ids, sizeof id);
    for (int i = 0; i < WORD_SHORT_IDS; i++) id[i] &= WORD_ID_MASK;
    memcpy(ids, id, sizeof id);
    return word_is_wide(e) ? word_wide_ids(e, ids) : word_short_n(e);
}

/* Whether words of this set may be in the piece or long cache. */
static inline bool word_is_far(const word_short *set) {
    return set->ids[3] & WORD_FAR;
}

/* Returns the next set, which is the other one in the same 128 bytes. */
static inline const word_short *word_short_next(const word_cache *c, const word_short *set) {
    return c->shorts + ((set - c->shorts) ^ 2);
}

/* Returns the key's entry in the next set, or NULL. */
static inline const word_short *word_short_near(const word_cache *c, const word_short *set,
                                                const uint64_t key[2]) {
    return set->ids[3] & WORD_NEAR ? word_short_find(word_short_next(c, set), key) : NULL;
}

#endif
