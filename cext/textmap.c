#include "textmap.h"

/* Multiply-and-fold over 8-byte words (the wyhash family's step). Unkeyed: texts
 * come from a file the user chose, and lookups stay correct, if slow, on a file
 * made to collide. */
static uint64_t fold(uint64_t a, uint64_t b) {
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

static uint64_t load64(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}

static uint64_t load32(const uint8_t *p) {
    uint32_t x;
    memcpy(&x, p, 4);
    return x;
}

uint64_t textmap_hash(const uint8_t *p, size_t n) {
    const uint64_t k0 = 0x9E3779B97F4A7C15u, k1 = 0xD1B54A32D192ED03u, k2 = 0x8CB92BA72F3D8DD7u;
    uint64_t h = k0 ^ n, a, b;
    /* + h: a factor of 0 must not swallow the other */
    for (; n > 16; p += 16, n -= 16)
        h = fold(load64(p) ^ k1, load64(p + 8) ^ h) + (h ^ load64(p + 8));
    if (n >= 8) {
        a = load64(p), b = load64(p + n - 8);
    } else if (n >= 4) {
        a = load32(p), b = load32(p + n - 4);
    } else if (n) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[n >> 1] << 8 | p[n - 1], b = 0;
    } else {
        a = b = 0;
    }
    return fold(fold(a ^ k1, b ^ h), k2);
}

static size_t slots_for(uint32_t n) {
    size_t cap = 64;
    while (cap < 2 * (size_t)n) cap *= 2;
    return cap;
}

static bool same(const textmap *m, uint32_t id, const uint8_t *p, size_t n) {
    return m->off[id + 1] - m->off[id] == n && mem_equal(m->arena + m->off[id], p, n);
}

bool textmap_build(textmap *m, const uint8_t *arena, const uint32_t *off, uint32_t n, uint32_t *dup,
                   uint32_t *first) {
    size_t cap = slots_for(n);
    *dup = n;
    m->slots = mem_zalloc(mem_mul(cap, sizeof *m->slots));
    if (!m->slots) return false;
    m->arena = arena;
    m->off = off;
    m->mask = cap - 1;
    /* Hashing runs ahead of inserting, so that the slots' cache misses overlap. */
    enum { BATCH = 32 };
    uint64_t hash[BATCH];
    for (uint32_t base = 0; base < n; base += BATCH) {
        uint32_t count = n - base < BATCH ? n - base : BATCH;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t id = base + i;
            hash[i] = textmap_hash(arena + off[id], off[id + 1] - off[id]);
#if defined(__GNUC__)
            __builtin_prefetch(&m->slots[hash[i] & m->mask], 1);
#endif
        }
        for (uint32_t i = 0; i < count; i++) {
            uint32_t id = base + i, tag = (uint32_t)(hash[i] >> 32);
            size_t s = hash[i] & m->mask;
            for (; m->slots[s].id1; s = (s + 1) & m->mask) {
                uint32_t other = m->slots[s].id1 - 1;
                if (m->slots[s].tag == tag &&
                    same(m, other, arena + off[id], off[id + 1] - off[id])) {
                    *dup = id;
                    *first = other;
                    return true;
                }
            }
            m->slots[s] = (textmap_slot){tag, id + 1};
        }
    }
    return true;
}

int32_t textmap_find_hashed(const textmap *m, const uint8_t *p, size_t n, uint64_t hash) {
    uint32_t tag = (uint32_t)(hash >> 32);
    for (size_t s = hash & m->mask; m->slots[s].id1; s = (s + 1) & m->mask) {
        uint32_t id = m->slots[s].id1 - 1;
        if (m->slots[s].tag == tag && same(m, id, p, n)) return (int32_t)id;
    }
    return -1;
}

int32_t textmap_find(const textmap *m, const uint8_t *p, size_t n) {
    return textmap_find_hashed(m, p, n, textmap_hash(p, n));
}

void textmap_free(textmap *m) {
    mem_free(m->slots);
    m->slots = NULL;
}
