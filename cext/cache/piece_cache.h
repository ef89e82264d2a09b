/*
 * A cache from pieces of text to ids: exact, bounded, owned by one thread. It serves models whose
 * ids for a text are the concatenated ids of its words, or of the pieces into which the text can be
 * cut (docs/design proves this for each model).
 */
#ifndef GGTOK_PIECE_CACHE_H
#define GGTOK_PIECE_CACHE_H

#include "base/cpu.h"
#include "base/mem.h"

enum { PIECE_MAX = 31, PIECE_IDS = 7 };

typedef struct piece_key { /* the bytes, zeros, and the length in the last byte */
    uint64_t w[4];
} piece_key;

typedef struct piece_slot { /* a piece and its ids, which fill a cache line */
    piece_key key;
    int32_t id[PIECE_IDS];
    uint32_t n;
} piece_slot;

/* Sets of two slots; the first slot of a set is the one filled most recently. The cache starts
 * small and doubles while sets overflow, up to 4 MB. */
typedef struct piece_cache {
    piece_slot *slot; /* aligned to the size of a slot; NULL: not allocated yet */
    mem_table table;
    size_t mask;   /* number of sets - 1 */
    size_t n_lost; /* pieces evicted since the cache last grew */
} piece_cache;

/* Makes the key of p[0..n), 1 <= n <= PIECE_MAX. PIECE_MAX + 1 bytes at p must be readable. */
static inline piece_key piece_key_of(const uint8_t *p, size_t n) {
    piece_key k;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(k.w, p, 32);
    for (size_t i = 0; i < 4; i++) {
        size_t left = n > 8 * i ? n - 8 * i : 0;
        if (left < 8) k.w[i] &= ((uint64_t)1 << (8 * left)) - 1;
    }
    k.w[3] |= (uint64_t)n << 56;
#else
    uint8_t b[32] = {0};
    memcpy(b, p, n);
    b[31] = (uint8_t)n;
    memcpy(k.w, b, 32);
#endif
    return k;
}

/* Makes the key if only `room` bytes (>= n) are readable. */
static inline piece_key piece_key_within(const uint8_t *p, size_t n, size_t room) {
    uint8_t padded[PIECE_MAX + 1] = {0};
    if (room > PIECE_MAX) return piece_key_of(p, n);
    memcpy(padded, p, n);
    return piece_key_of(padded, n);
}

static inline uint64_t piece_hash(const piece_key *k) {
    uint64_t h =
        (k->w[0] ^ k->w[3]) * 0x9E3779B97F4A7C15u + (k->w[1] ^ k->w[2] << 7) * 0xD6E8FEB86659FD93u;
    return (h ^ h >> 32) * 0xC2B2AE3D27D4EB4Fu >> 20;
}

/* Returns 1 if the keys are equal, otherwise 0, without a branch. */
static inline size_t piece_same(const piece_key *a, const piece_key *b) {
    uint64_t x =
        (a->w[0] ^ b->w[0]) | (a->w[1] ^ b->w[1]) | (a->w[2] ^ b->w[2]) | (a->w[3] ^ b->w[3]);
    return (size_t)(((x | (0 - x)) >> 63) ^ 1);
}

static inline const piece_slot *piece_cache_find(const piece_cache *c, const piece_key *k,
                                                 uint64_t hash) {
    if (!c->slot) return NULL;
    const piece_slot *s = c->slot + 2 * (hash & c->mask);
    size_t first = piece_same(&s[0].key, k), second = piece_same(&s[1].key, k);
    /* No branch depends on which slot matches, since that is unpredictable. */
    return first + second ? s + second : NULL;
}

static inline void piece_cache_prefetch(const piece_cache *c, uint64_t hash) {
    if (c->slot) PREFETCH(c->slot + 2 * (hash & c->mask));
}

/* Stores n ids. Does nothing if n > PIECE_IDS or if memory runs out. */
void ggtok_piece_cache_put(piece_cache *c, const piece_key *k, uint64_t hash, const int32_t *ids,
                           size_t n);
void ggtok_piece_cache_free(piece_cache *c);
size_t ggtok_piece_cache_bytes(const piece_cache *c); /* bytes of memory in use */

#endif
