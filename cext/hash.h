/*
 * Hashes of texts, and what keeps a file from choosing texts that hash alike.
 *
 * Tables are open-addressing ones that start with seed 0, and remember how far from its
 * place the farthest entry lies: no search goes further. An entry that lies beyond
 * HASH_REACH makes the table start over with a seed that no one can foresee.
 */
#ifndef GGTOK_HASH_H
#define GGTOK_HASH_H

#include "mem.h"

/* Further than entries lie in tables that are at most half full, but by intent. */
enum { HASH_REACH = 128 };

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
static inline uint64_t hash_text(const uint8_t *p, size_t n, uint64_t seed) {
    const uint64_t k0 = 0x9E3779B97F4A7C15u, k2 = 0x8CB92BA72F3D8DD7u;
    const uint64_t k1 = 0xD1B54A32D192ED03u + seed;
    uint64_t h = (k0 ^ n) - seed * k2, a, b;
    for (; n > 16; p += 16, n -= 16)
        h = hash_fold(hash_load64(p) ^ k1, hash_load64(p + 8) ^ h) + (h ^ hash_load64(p + 8));
    if (n >= 8) {
        a = hash_load64(p), b = hash_load64(p + n - 8);
    } else if (n >= 4) {
        a = hash_load32(p), b = hash_load32(p + n - 4);
    } else if (n) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[n >> 1] << 8 | p[n - 1], b = 0;
    } else {
        a = b = 0;
    }
    return hash_fold(hash_fold(a ^ k1, b ^ h), k2);
}

/* Odd; from the time and from where `p` and the stack lie. Only how long things take
 * depends on it. */
uint64_t hash_new_seed(const void *p);

#endif
