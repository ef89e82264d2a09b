/*
 * Token text -> id: an open-addressing hash table over texts that lie in one
 * arena. Slots are 8 bytes (a piece of the hash, the id), at most half full.
 */
#ifndef GGTOK_TEXTMAP_H
#define GGTOK_TEXTMAP_H

#include "hash.h"

/* The i-th text is arena[off[i] .. off[i + 1]). */
typedef struct textmap_slot {
    uint32_t tag; /* upper half of the hash */
    uint32_t id1; /* id + 1; 0: free */
} textmap_slot;

typedef struct textmap {
    const uint8_t *arena;
    const uint32_t *off;
    textmap_slot *slots;
    size_t mask;
    size_t reach; /* see hash.h */
    uint64_t seed;
} textmap;

/* Maps all n texts. Returns false when out of memory; otherwise *dup is n, or
 * the first index whose text an earlier index has (*first). */
bool textmap_build(textmap *m, const uint8_t *arena, const uint32_t *off, uint32_t n, uint32_t *dup,
                   uint32_t *first);
int32_t textmap_find(const textmap *m, const uint8_t *p, size_t n); /* -1: none */
void textmap_free(textmap *m);

/* For look-ups in batches, given hash_text(p, n, m->seed): fetch the slot, then the offsets of
 * the id that it is likely to give, then that id's text, each while the others of the batch
 * are fetched too. Texts that aren't there are seldom likely to be. */
#if defined(__GNUC__)
#define textmap_fetch(p) __builtin_prefetch(p)
#else
#define textmap_fetch(p) ((void)(p))
#endif
static inline void textmap_prefetch_slot(const textmap *m, uint64_t hash) {
    textmap_fetch(&m->slots[hash & m->mask]);
}
static inline void textmap_prefetch_offset(const textmap *m, int32_t id) {
    textmap_fetch(&m->off[id]);
}
static inline void textmap_prefetch_text(const textmap *m, int32_t id) {
    textmap_fetch(m->arena + m->off[id]);
}

/* The only id whose text may have this hash, or the first of such; -1: there is no such text. */
static inline int32_t textmap_likely(const textmap *m, uint64_t hash) {
    size_t s = hash & m->mask;
    for (size_t i = 0; i <= m->reach && m->slots[s].id1; i++, s = (s + 1) & m->mask) {
        if (m->slots[s].tag == (uint32_t)(hash >> 32)) return (int32_t)m->slots[s].id1 - 1;
    }
    return -1;
}

/* textmap_find(m, p, n), given its hash and textmap_likely's answer. */
int32_t textmap_confirm(const textmap *m, const uint8_t *p, size_t n, uint64_t hash,
                        int32_t likely);

#endif
