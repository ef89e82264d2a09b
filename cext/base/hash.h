/*
 * Hashes of texts, and a defence against files whose texts are chosen to collide.
 *
 * Tables use open addressing. They start with seed 0 and record their reach: the greatest distance
 * of an entry from its home slot. A search stops at this distance. If an entry's distance exceeds
 * HASH_REACH, the table is rebuilt with an unpredictable seed.
 */
#ifndef GGTOK_HASH_H
#define GGTOK_HASH_H

#include "base/mem.h"

/* Maximum reach of a table with seed 0. In a table at most 0.6 full, only keys chosen to collide
 * make the reach this great. */
enum { HASH_REACH = 256 };

/* Returns the maximum reach allowed at the i-th attempt (from 1) to build a table. */
static inline size_t hash_reach(int i) {
    return i < 8 ? HASH_REACH : SIZE_MAX;
}

/* Multiplies, and XORs the halves of the 128-bit product, as the wyhash family does. */
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

/* The seed is part of both factors of each product. An attacker who doesn't know it can't make a
 * factor 0, which would cancel the other. */
#define HASH_K1(seed) (0xD1B54A32D192ED03u + (seed))
#define HASH_START(n, seed) ((0x9E3779B97F4A7C15u ^ (n)) - (seed) * HASH_K2)
#define HASH_K2 0x8CB92BA72F3D8DD7u

/* Hashes the last bytes of a text (at most 16): the first eight are in `a`, the others in `b`. */
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

/* Equals hash_text, but requires `room` bytes (>= n) to be readable at p. For texts of up to 16
 * bytes, which are the most frequent, no branch depends on the length. */
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

/* Returns a new odd seed, made from the time, `p` and the address of the stack. The seed affects
 * only running times, never results. */
uint64_t ggtok_hash_new_seed(const void *p);

#endif
