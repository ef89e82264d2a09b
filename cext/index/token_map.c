#include "index/token_map.h"

static size_t slots_for(uint32_t n) {
    size_t cap = 64;
    while (cap < 2 * (size_t)n) cap *= 2;
    return cap;
}

static bool same(const token_map *m, uint32_t id, const uint8_t *p, size_t n) {
    return m->off[id + 1] - m->off[id] == n && mem_equal(m->arena + m->off[id], p, n);
}

/* Fills the empty table. Returns false if a text would be more than `most` slots from its home
 * slot. */
static bool fill(token_map *m, uint32_t n, size_t most, uint32_t *dup, uint32_t *first) {
    /* Hash a batch before inserting it, so that the cache misses of its slots overlap. */
    enum { BATCH = 32 };
    uint64_t hash[BATCH];
    const uint32_t *off = m->off;
    m->reach = 0;
    for (uint32_t base = 0; base < n; base += BATCH) {
        uint32_t count = n - base < BATCH ? n - base : BATCH;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t id = base + i;
            hash[i] = hash_text_within(m->arena + off[id], off[id + 1] - off[id], off[n] - off[id],
                                       m->seed);
            PREFETCH_WRITE(&m->slots[hash[i] & m->mask]);
        }
        for (uint32_t i = 0; i < count; i++) {
            uint32_t id = base + i, tag = (uint32_t)(hash[i] >> 32);
            size_t s = hash[i] & m->mask, steps = 0;
            for (; m->slots[s].id1; s = (s + 1) & m->mask, steps++) {
                uint32_t other = m->slots[s].id1 - 1;
                if (m->slots[s].tag == tag &&
                    same(m, other, m->arena + off[id], off[id + 1] - off[id])) {
                    *dup = id;
                    *first = other;
                    return true;
                }
            }
            m->slots[s] = (token_map_slot){tag, id + 1};
            if (steps > m->reach) m->reach = steps;
        }
        if (m->reach > most) return false;
    }
    return true;
}

bool ggtok_token_map_build(token_map *m, const uint8_t *arena, const uint32_t *off, uint32_t n,
                           uint32_t *dup, uint32_t *first) {
    size_t cap = slots_for(n);
    *dup = n;
    m->slots = ggtok_mem_zalloc(mem_mul(cap, sizeof *m->slots));
    if (!m->slots) return false;
    m->arena = arena;
    m->off = off;
    m->mask = cap - 1;
    m->seed = 0;
    for (int i = 1; !fill(m, n, hash_reach(i), dup, first); i++) {
        memset(m->slots, 0, cap * sizeof *m->slots);
        m->seed = ggtok_hash_new_seed(m->slots);
    }
    return true;
}

static int32_t find_id(const token_map *m, const uint8_t *p, size_t n, uint64_t hash) {
    uint32_t tag = (uint32_t)(hash >> 32);
    size_t s = hash & m->mask;
    for (size_t i = 0; i <= m->reach && m->slots[s].id1; i++, s = (s + 1) & m->mask) {
        uint32_t id = m->slots[s].id1 - 1;
        if (m->slots[s].tag == tag && same(m, id, p, n)) return (int32_t)id;
    }
    return -1;
}

int32_t ggtok_token_map_find(const token_map *m, const uint8_t *p, size_t n) {
    return find_id(m, p, n, hash_text(p, n, m->seed));
}

int32_t ggtok_token_map_confirm(const token_map *m, const uint8_t *p, size_t n, uint64_t hash,
                                int32_t likely) {
    if (likely < 0 || same(m, (uint32_t)likely, p, n)) return likely;
    return find_id(m, p, n, hash);
}

void ggtok_token_map_free(token_map *m) {
    ggtok_mem_free(m->slots);
    m->slots = NULL;
}
