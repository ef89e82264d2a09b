#include "cache/piece_cache.h"

enum { MIN_SETS = SMALL ? 2 : 256, MAX_SETS = 1 << 15, MANY = 16 };

static void put(piece_cache *c, uint64_t hash, const piece_slot *s) {
    piece_slot *set = c->slot + 2 * (hash & c->mask);
    c->n_lost += set[1].n != 0;
    if (set[0].n) set[1] = set[0];
    set[0] = *s;
}

static size_t slots_bytes(size_t sets) {
    return 2 * sets * sizeof(piece_slot);
}

/* Doubles the number of sets (or allocates the first ones) and keeps the pieces. A piece stays in
 * its set, or moves to the set whose index is greater by the old number of sets. */
static void grow(piece_cache *c) {
    const size_t n_old = c->slot ? c->mask + 1 : 0, sets = n_old ? 2 * n_old : MIN_SETS;
    mem_table old = c->table;
    c->n_lost = 0;
    if (slots_bytes(sets) > old.room) {
        if (!ggtok_mem_table_new(&c->table, slots_bytes(sets), slots_bytes(MAX_SETS))) return;
        if (n_old) memcpy(c->table.data, old.data, slots_bytes(n_old));
        ggtok_mem_table_free(&old);
    }
    c->slot = c->table.data;
    c->mask = sets - 1;
    for (size_t i = 0; i < n_old; i++) {
        piece_slot *set = c->slot + 2 * i, from[2] = {set[0], set[1]};
        if (!from[0].n && !from[1].n) continue;
        set[0] = set[1] = (piece_slot){.n = 0};
        for (size_t k = 2; k--;) { /* backwards, so that the first slot of a set is inserted last */
            if (from[k].n) put(c, piece_hash(&from[k].key), &from[k]);
        }
    }
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
    ggtok_mem_table_free(&c->table);
    *c = (piece_cache){0};
}

size_t ggtok_piece_cache_bytes(const piece_cache *c) {
    return c->slot ? slots_bytes(c->mask + 1) : 0;
}
