/*
 * A map from token texts to ids: an open-addressing hash table over texts in one arena. A slot has
 * 8 bytes (half of the hash, and the id); at most half of the slots are used.
 */
#ifndef GGTOK_TOKEN_MAP_H
#define GGTOK_TOKEN_MAP_H

#include "base/cpu.h"
#include "base/hash.h"

/* A slot for one text; the i-th text is arena[off[i] .. off[i + 1]). */
typedef struct token_map_slot {
    uint32_t tag; /* upper half of the hash */
    uint32_t id1; /* id + 1; 0: free */
} token_map_slot;

typedef struct token_map {
    const uint8_t *arena;
    const uint32_t *off;
    token_map_slot *slots;
    size_t mask;
    size_t reach; /* greatest distance from a home slot; see base/hash.h */
    uint64_t seed;
} token_map;

/* Maps all n texts. Returns false if out of memory. Otherwise sets *dup to n or, if two texts are
 * equal, to the first index whose text also has an earlier index, which is *first. */
bool ggtok_token_map_build(token_map *m, const uint8_t *arena, const uint32_t *off, uint32_t n,
                           uint32_t *dup, uint32_t *first);
int32_t ggtok_token_map_find(const token_map *m, const uint8_t *p, size_t n); /* -1: not found */
void ggtok_token_map_free(token_map *m);

/* For batched look-ups, given hash_text(p, n, m->seed): prefetch the slot, then the offsets of the
 * likely id, then that id's text, doing each step for the whole batch. A text that isn't in the map
 * seldom has a likely id. */
static inline void token_map_prefetch_slot(const token_map *m, uint64_t hash) {
    PREFETCH(&m->slots[hash & m->mask]);
}
static inline void token_map_prefetch_offset(const token_map *m, int32_t id) {
    PREFETCH(&m->off[id]);
}
static inline void token_map_prefetch_text(const token_map *m, int32_t id) {
    PREFETCH(m->arena + m->off[id]);
}

/* Returns the likely id: the first whose text may have this hash; -1: the text isn't in the map. */
static inline int32_t token_map_likely(const token_map *m, uint64_t hash) {
    size_t s = hash & m->mask;
    for (size_t i = 0; i <= m->reach && m->slots[s].id1; i++, s = (s + 1) & m->mask) {
        if (m->slots[s].tag == (uint32_t)(hash >> 32)) return (int32_t)m->slots[s].id1 - 1;
    }
    return -1;
}

/* Equals ggtok_token_map_find(m, p, n), given the hash and the result of token_map_likely. */
int32_t ggtok_token_map_confirm(const token_map *m, const uint8_t *p, size_t n, uint64_t hash,
                                int32_t likely);

#endif
