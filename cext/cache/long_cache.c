#include "cache/long_cache.h"

/* Limits for log2(number of sets), and for the size of the arena in units of 4 bytes. */
enum { MIN_LOG2 = SMALL ? 2 : 8, MAX_LOG2 = SMALL ? 8 : 16, GROWTH = 2 };
enum { MIN_ARENA = SMALL ? 1 << 9 : 1 << 10, MAX_ARENA = SMALL ? 1 << 11 : 1 << 19 };

uint64_t ggtok_long_hash(const uint8_t *p, size_t n) {
    uint64_t a = n, b = 0, x[2];
    uint8_t padded[sizeof x] = {0};
    if (n < sizeof x) {
        memcpy(padded, p, n);
        p = padded;
        n = sizeof x;
    }
    for (size_t i = 0;; i += sizeof x) {
        size_t last = n - sizeof x, at = i < last ? i : last;
        memcpy(x, p + at, sizeof x);
        a = (a ^ x[0]) * 0x9E3779B97F4A7C15u;
        b = (b ^ x[1]) * 0xD6E8FEB86659FD93u;
        a ^= a >> 32;
        b ^= b >> 29;
        if (at == last) return (a ^ b) * 0xC2B2AE3D27D4EB4Fu;
    }
}

static void forget(long_cache *c) {
    memset(c->slots, 0, ((size_t)2 << (64 - c->shift)) * sizeof *c->slots);
    memset(c->recent, 0, sizeof c->recent);
    c->used = 1; /* position 0 means none */
}

static long_slot *put(long_cache *c, long_slot slot) {
    long_slot *set = (long_slot *)long_set(c, (uint64_t)slot.tag << 32);
    /* If both slots hold stored texts, the second is replaced: the first survives any number of
     * texts that occur only once. */
    long_slot *to = set + (!set[0].tag || (!set[0].place && set[1].place) ? 0 : 1);
    *to = slot;
    return to;
}

/* Allocates the first table or a larger one. On failure, the old table stays. */
static void grow(long_cache *c) {
    unsigned log2 = c->slots ? 64 - c->shift + GROWTH : MIN_LOG2;
    size_t n_old = c->slots ? (size_t)2 << (64 - c->shift) : 0;
    long_slot *old = c->slots, *slots = ggtok_mem_zalloc(((size_t)2 << log2) * sizeof *slots);
    c->n_seen = 0;
    if (!slots) return;
    c->slots = slots;
    c->shift = 64 - log2;
    for (size_t i = 0; i < n_old; i++) {
        if (old[i].tag) put(c, old[i]);
    }
    ggtok_mem_free(old);
}

/* Makes room in the arena for n more units; discards all entries if the arena is full. Returns
 * false if out of memory. */
static bool reserve(long_cache *c, size_t n) {
    if (c->used + n > MAX_ARENA) forget(c);
    if (c->used + n <= c->cap) return true;
    size_t cap = c->cap ? 2 * c->cap : MIN_ARENA;
    uint32_t *arena = ggtok_mem_realloc(c->arena, cap * sizeof *arena);
    if (!arena) return false;
    c->arena = arena;
    c->cap = cap;
    if (!c->used) c->used = 1;
    return true;
}

/* Returns the slot of a text, which is new if the text hasn't occurred before (*seen: whether it
 * has). Returns NULL if out of memory. */
static long_slot *slot_of(long_cache *c, uint64_t hash, bool *seen) {
    if (!c->slots || (c->n_seen >> (64 - c->shift) && 64 - c->shift < MAX_LOG2)) grow(c);
    *seen = false;
    if (!c->slots) return NULL;
    long_slot *set = (long_slot *)long_set(c, hash);
    uint32_t tag = (uint32_t)(hash >> 32);
    for (int i = 0; i < 2; i++) {
        *seen = set[i].tag == tag;
        if (*seen) return &set[i];
    }
    c->n_seen++;
    return put(c, (long_slot){tag, 0});
}

bool ggtok_long_cache_seen(long_cache *c, const uint8_t *p, size_t n) {
    bool seen;
    return slot_of(c, ggtok_long_hash(p, n), &seen) && seen;
}

void ggtok_long_cache_put(long_cache *c, const uint8_t *p, size_t n, const int32_t *ids,
                          size_t count, bool at_once) {
    if (n > LONG_MAX_BYTES || count > LONG_MAX_IDS) return;
    bool seen;
    uint64_t hash = ggtok_long_hash(p, n);
    long_slot *slot = slot_of(c, hash, &seen);
    size_t taken = 1 + count + (n + 3) / 4;
    if (seen && long_cache_find(c, p, n, hash)) return;
    /* reserve may discard all entries, which doesn't move the slots. */
    if (!slot || !(seen || at_once) || !reserve(c, taken)) return;
    uint32_t *e = c->arena + c->used;
    e[0] = (uint32_t)n | (uint32_t)count << 16;
    e[taken - 1] = 0;
    if (count) memcpy(e + 1, ids, count * sizeof *ids);
    memcpy(e + 1 + count, p, n);
    *slot = (long_slot){(uint32_t)(hash >> 32), (uint32_t)c->used};
    c->used += taken;
}

void ggtok_long_cache_free(long_cache *c) {
    ggtok_mem_free(c->slots);
    ggtok_mem_free(c->arena);
    *c = (long_cache){0};
}

size_t ggtok_long_cache_bytes(const long_cache *c) {
    size_t slots = c->slots ? (size_t)2 << (64 - c->shift) : 0;
    return slots * sizeof *c->slots + c->cap * sizeof *c->arena;
}
