/*
 * A cache from longer texts to ids: exact, bounded, owned by one thread. Most texts never occur
 * again, so a text is stored only when it occurs for the second time, unless the caller asks to
 * store it at once.
 */
#ifndef GGTOK_LONG_CACHE_H
#define GGTOK_LONG_CACHE_H

#include "base/cpu.h"
#include "base/mem.h"

enum { LONG_MAX_BYTES = 255, LONG_MAX_IDS = LONG_MAX_BYTES };

/* A text's tag and the position of its entry in the arena. Position 0: the text occurred once and
 * isn't stored. All 0: the slot is free. */
typedef struct long_slot {
    uint32_t tag, place;
} long_slot;

/* Sets of two slots, and an arena of entries one after the other. Both start small and grow, to 1
 * MB and 2 MB. When the arena has no room for a new entry, all entries are discarded. */
typedef struct long_cache {
    long_slot *slots;                    /* NULL: not allocated yet */
    unsigned shift;                      /* 64 - log2(number of sets) */
    size_t n_seen;                       /* texts that got a new slot since the table last grew */
    uint32_t *arena;                     /* the entries; NULL: nothing stored yet */
    size_t used, cap;                    /* used and allocated size of the arena, in units of 4
                                            bytes */
    uint32_t recent[LONG_MAX_BYTES + 1]; /* by length of a text: position of the entry last passed
                                            to long_cache_note; 0: none */
} long_cache;

/* Layout of an entry: number of bytes | number of ids << 16; the ids; the bytes, padded. */
static inline size_t long_bytes(const uint32_t *e) {
    return *e & 0xFFFF;
}

static inline size_t long_n(const uint32_t *e) {
    return *e >> 16;
}

uint64_t ggtok_long_hash(const uint8_t *p, size_t n); /* requires n >= 1 */

static inline const long_slot *long_set(const long_cache *c, uint64_t hash) {
    return &c->slots[2 * (hash >> c->shift)];
}

/* Returns the text's entry, or NULL. */
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

/* Returns the text's entry if it is the most recent one of its length; otherwise NULL. In code,
 * runs of white space of equal length are frequent; this function finds them without a hash. */
static inline const uint32_t *long_cache_recent(const long_cache *c, const uint8_t *p, size_t n) {
    if (!c->recent[n]) return NULL;
    const uint32_t *e = c->arena + c->recent[n];
    return memcmp(e + 1 + long_n(e), p, n) ? NULL : e;
}

static inline void long_cache_note(long_cache *c, const uint32_t *e) {
    c->recent[long_bytes(e)] = (uint32_t)(e - c->arena);
}

static inline void long_cache_prefetch(const long_cache *c, uint64_t hash) {
    if (c->slots) PREFETCH(long_set(c, hash));
}

/* Whether the text has occurred before. If not, records this occurrence. */
bool ggtok_long_cache_seen(long_cache *c, const uint8_t *p, size_t n);

/* Records that p[0..n) has occurred, and stores its ids if it had occurred before or if `at_once`.
 * Does nothing if n > LONG_MAX_BYTES or count > LONG_MAX_IDS, or if memory runs out. */
void ggtok_long_cache_put(long_cache *c, const uint8_t *p, size_t n, const int32_t *ids,
                          size_t count, bool at_once);
void ggtok_long_cache_free(long_cache *c);
size_t ggtok_long_cache_bytes(const long_cache *c); /* bytes of memory in use */

#endif
