/*
 * Longer texts that were tokenized before: bytes -> ids, exact, bounded, one thread's.
 * Most of them never come again, so a text is stored when it is seen for the second time, unless
 * the caller asks for it at once.
 */
#ifndef GGTOK_LONG_CACHE_H
#define GGTOK_LONG_CACHE_H

#include "base/cpu.h"
#include "base/mem.h"

enum { LONG_MAX_BYTES = 255, LONG_MAX_IDS = LONG_MAX_BYTES };

/* A text's tag and where its entry is in the arena; place 0: it was seen
 * once and is not stored; all 0: free. */
typedef struct long_slot {
    uint32_t tag, place;
} long_slot;

/* Sets of two slots; entries one after the other. Both start small and grow, to 256 KB
 * and 2 MB; when there is no more room for an entry, all are forgotten. */
typedef struct long_cache {
    long_slot *slots; /* NULL: nothing allocated yet */
    unsigned shift;   /* 64 - log2(sets) */
    size_t n_seen;    /* texts that came and were not there, since the table last grew */
    uint32_t *arena;  /* NULL: nothing kept yet */
    size_t used, cap; /* of the arena */
} long_cache;

/* An entry: bytes, ids << 16; the ids; the bytes, padded. */
static inline size_t long_bytes(const uint32_t *e) {
    return *e & 0xFFFF;
}

static inline size_t long_n(const uint32_t *e) {
    return *e >> 16;
}

uint64_t ggtok_long_hash(const uint8_t *p, size_t n); /* n >= 1 */

static inline const long_slot *long_set(const long_cache *c, uint64_t hash) {
    return &c->slots[2 * (hash >> c->shift)];
}

/* The text's entry, or NULL. */
static inline const uint32_t *long_cache_find(const long_cache *c, const uint8_t *p, size_t n,
                                              uint64_t hash) {
    if (!c->slots) return NULL;
    const long_slot *set = long_set(c, hash);
    for (int i = 0; i < 2; i++) {
        if (set[i].tag != (uint32_t)(hash >> 32) || !set[i].place) continue;
        const uint32_t *e = c->arena + set[i].place;
        if (long_bytes(e) == n && !memcmp(e + 1 + long_n(e), p, n)) return e;
    }
    return NULL;
}

static inline void long_cache_prefetch(const long_cache *c, uint64_t hash) {
    if (c->slots) PREFETCH(long_set(c, hash));
}

/* Was it seen before? If not, it has been now. */
bool ggtok_long_cache_seen(long_cache *c, const uint8_t *p, size_t n);

/* Notes that p[0..n) was seen, and stores its ids if it was seen before or `at_once`; not if n >
 * LONG_MAX_BYTES or count > LONG_MAX_IDS. Out of memory is no failure here. */
void ggtok_long_cache_put(long_cache *c, const uint8_t *p, size_t n, const int32_t *ids,
                          size_t count, bool at_once);
void ggtok_long_cache_free(long_cache *c);
size_t ggtok_long_cache_bytes(const long_cache *c); /* of memory that it holds */

#endif
