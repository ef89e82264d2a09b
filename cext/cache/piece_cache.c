#include "cache/piece_cache.h"

enum { MIN_SETS = SMALL ? 2 : 256, MAX_SETS = 1 << 15, MANY = 16 };

static void put(piece_cache *c, uint64_t hash, const piece_slot *s) {
    piece_slot *set = c->slot + 2 * (hash & c->mask);
    c->n_lost += set[1].n != 0;
    if (set[0].n) set[1] = set[0];
    set[0] = *s;
}

/* Doubles the sets (or makes the first ones), keeping what is there. */
static void grow(piece_cache *c) {
    size_t n_old = c->slot ? 2 * (c->mask + 1) : 0, sets = c->slot ? n_old : MIN_SETS;
    void *memory;
    piece_slot *old = c->slot, *slot = ggtok_mem_lines(sets * 2 * sizeof *slot, &memory);
    c->n_lost = 0;
    if (!slot) return;
    c->slot = slot;
    c->mask = sets - 1;
    for (size_t i = n_old; i-- > 0;) { /* backwards: a set's first slot is put last */
        if (old[i].n) put(c, piece_hash(&old[i].key), &old[i]);
    }
    ggtok_mem_free(c->memory);
    c->memory = memory;
}

void ggtok_piece_cache_put(piece_cache *c, const piece_key *k, uint64_t hash, const int32_t *ids,
                           size_t n) {
    if (!n || n > PIECE_IDS || PLAIN) return;
    if (!c->slot || (c->n_lost > c->mask / MANY && c->mask + 1 < MAX_SETS)) grow(c);
    if (!c->slot) return;
    piece_slot s = {.key = *k, .n = (uint32_t)n};
    memcpy(s.id, ids, n * sizeof *ids);
    put(c, hash, &s);
}

void ggtok_piece_cache_free(piece_cache *c) {
    ggtok_mem_free(c->memory);
    *c = (piece_cache){0};
}

size_t ggtok_piece_cache_bytes(const piece_cache *c) {
    return c->slot ? 2 * (c->mask + 1) * sizeof *c->slot : 0;
}
