/*
 * Hashes of texts, and what keeps a file from choosing texts that hash alike.
 *
 * Tables are open-addressing ones that start with seed 0, and remember how far from its
 * place the farthest entry lies: no search goes further. An entry that lies beyond
 * HASH_REACH makes the table start over with a seed that nobody can predict.
 */
#ifndef GGTOK_HASH_H
#define GGTOK_HASH_H

#include "base/mem.h"

/* No entry of a table at most 0.6 full lies as far, unless somebody chose the keys. */
enum { HASH_REACH = 256 };

/* How far entries may lie in the i-th table that is tried, the first being 1. */
static inline size_t hash_reach(int i) {
    return i < 8 ? HASH_REACH : SIZE_MAX;
}

/* Multiply and fold, the wyhash family's step. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 u128;
    u128 m = (u128)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
#else
    uint64_t ah = a >> 32, al = (uint32_t)a, bh = b >> 32, bl = (uint32_t)b;
    uint64_t m0 = al * bl, m1 = ah * bl, m2 = al * bh, m3 = ah * bh;
    uint64_t mid = (m0 >> 32) + (uint32_t)m1 + (uint32_t)m2;
    uint64_t lo = mid << 32 | (uint32_t)m0, hi = m3 + (m1 >> 32) + (m2 >> 32) + (mid >> 32);
    return lo ^ hi;
#endif
}

static inline uint64_t hash_load64(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}

static inline uint64_t hash_load32(const uint8_t *p) {
    uint32_t x;
    memcpy(&x, p, 4);
    return x;
}

/* The seed is in both factors of each product: who doesn't know it can make neither 0,
 * which would swallow the other. */
#define HASH_K1(seed) (0xD1B54A32D192ED03u + (seed))
#define HASH_START(n, seed) ((0x9E3779B97F4A7C15u ^ (n)) - (seed) * HASH_K2)
#define HASH_K2 0x8CB92BA72F3D8DD7u

/* The end of a text, at most 16 bytes: the first eight as `a`, the others as `b`. */
static inline uint64_t hash_end(uint64_t a, uint64_t b, uint64_t h, uint64_t seed) {
    return hash_fold(hash_fold(a ^ HASH_K1(seed), b ^ h), HASH_K2);
}

static inline uint64_t hash_text(const uint8_t *p, size_t n, uint64_t seed) {
    uint64_t h = HASH_START(n, seed), a = 0, b = 0;
    for (; n > 16; p += 16, n -= 16) {
        h = hash_fold(hash_load64(p) ^ HASH_K1(seed), hash_load64(p + 8) ^ h) +
            (h ^ hash_load64(p + 8));
    }
    if (n > 8) {
        a = hash_load64(p), b = hash_load64(p + n - 8) >> (128 - 8 * n);
    } else if (n >= 4) {
        a = hash_load32(p) | hash_load32(p + n - 4) << (8 * n - 32);
    } else if (n) {
        a = p[0] | (uint64_t)p[n >> 1] << 8 * (n >> 1) | (uint64_t)p[n - 1] << (8 * n - 8);
    }
    return hash_end(a, b, h, seed);
}

/* The same, where `room` bytes (>= n) may be read at p. For short texts, as most are,
 * no branch depends on their length. */
static inline uint64_t hash_text_within(const uint8_t *p, size_t n, size_t room, uint64_t seed) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (n <= 16 && room >= 16) {
        uint64_t low = n < 8 ? ~(~(uint64_t)0 << 8 * (n & 7)) : ~(uint64_t)0;
        uint64_t high = n > 8 ? ~(uint64_t)0 >> (128 - 8 * n) : 0;
        return hash_end(hash_load64(p) & low, hash_load64(p + 8) & high, HASH_START(n, seed), seed);
    }
#endif
    (void)room;
    return hash_text(p, n, seed);
}

/* Odd; from the time and from where `p` and the stack lie. Only how long things take
 * depends on it. */
uint64_t ggtok_hash_new_seed(const void *p);

#endif
