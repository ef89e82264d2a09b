#include "index/trie_long.h"

typedef struct link { /* a unit that needs a failure link */
    uint32_t unit, parent;
    uint8_t byte; /* the byte that leads from parent to unit */
} link;

/* Follows failure links from unit s until a unit has a child for byte c. Returns that child, or the
 * root if none has one. */
static inline uint32_t advance(const trie_long *l, uint32_t s, uint8_t c) {
    for (;;) {
        uint32_t next = trie_child(&l->t, s, c);
        if (next || !s) return next;
        s = l->fail[s];
    }
}

/* Returns all units except the root, sorted by depth, and sets *n to their number. A file can make
 * this list large, so it is allocated at its exact size, after a first pass has counted the units.
 * A second pass places them. Returns NULL if out of memory. */
static link *list_units(trie_long *l, const uint8_t *reversed, const uint32_t *off, size_t n_texts,
                        size_t *n) {
    const uint32_t counted = 0; /* temporary value in l->fail: the unit has been counted */
    size_t deepest = 0;
    for (size_t i = 0; i < n_texts; i++) {
        if (off[i + 1] - off[i] > deepest) deepest = off[i + 1] - off[i];
    }
    size_t *place = ggtok_mem_zalloc(mem_mul(deepest + 2, sizeof *place)); /* positions by depth */
    if (!place) return NULL;
    for (size_t i = 0; i < n_texts; i++) {
        uint32_t s = 0;
        for (uint32_t k = off[i], depth = 1; k < off[i + 1]; k++, depth++) {
            s = trie_child(&l->t, s, reversed[k]);
            place[depth + 1] +=
                l->fail[s] == TRIE_FREE; /* otherwise already counted for another text */
            l->fail[s] = counted;
        }
    }
    for (size_t d = 1; d <= deepest + 1; d++) place[d] += place[d - 1];
    *n = place[deepest + 1];
    link *sorted = ggtok_mem_alloc(mem_mul(*n, sizeof *sorted));
    for (size_t i = 0; sorted && i < n_texts; i++) {
        uint32_t s = 0;
        for (uint32_t k = off[i], depth = 1; k < off[i + 1]; k++, depth++) {
            uint32_t parent = s;
            s = trie_child(&l->t, s, reversed[k]);
            if (l->fail[s] != counted) continue;
            l->fail[s] = TRIE_FREE;
            sorted[place[depth]++] = (link){s, parent, reversed[k]};
        }
    }
    ggtok_mem_free(place);
    return sorted;
}

static bool link_units(trie_long *l, const uint8_t *reversed, const uint32_t *off, size_t n_texts) {
    size_t n;
    l->fail = ggtok_mem_alloc(mem_mul(l->t.n_units, sizeof *l->fail));
    l->hit = ggtok_mem_zalloc(mem_mul(l->t.n_units, sizeof *l->hit));
    if (!l->fail || !l->hit) return false;
    memset(l->fail, 0xFF, l->t.n_units * sizeof *l->fail); /* sets all to TRIE_FREE */
    link *order = list_units(l, reversed, off, n_texts, &n);
    if (!order) return false;
    l->fail[0] = 0;
    for (size_t i = 0; i < n; i++) {
        link u = order[i];
        uint32_t fail = u.parent ? advance(l, l->fail[u.parent], u.byte) : 0;
        l->fail[u.unit] = fail;
        l->hit[u.unit] = l->t.unit[u.unit].link & TRIE_VALUE ? u.unit : l->hit[fail];
    }
    ggtok_mem_free(order);
    return true;
}

bool ggtok_trie_long_build(trie_long *l, const uint8_t *arena, const uint32_t *off,
                           const uint32_t *ids, size_t n) {
    *l = (trie_long){.off = off};
    size_t n_long = 0, n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        size_t len = off[ids[i] + 1] - off[ids[i]];
        if (len <= TRIE_WALK) continue;
        n_long++;
        n_bytes += len;
    }
    if (!n_long) return true;
    uint8_t *reversed = ggtok_mem_alloc(n_bytes);
    uint32_t *own_off = ggtok_mem_alloc(mem_mul(n_long + 1, sizeof *own_off));
    uint32_t *number = ggtok_mem_alloc(mem_mul(n_long, sizeof *number));
    uint32_t *long_id = ggtok_mem_alloc(mem_mul(n_long, sizeof *long_id));
    bool ok = reversed && own_off && number && long_id;
    if (ok) {
        own_off[0] = 0;
        n_long = 0;
        for (size_t i = 0; i < n; i++) {
            uint32_t from = off[ids[i]], end = off[ids[i] + 1], to = own_off[n_long];
            if (end - from <= TRIE_WALK) continue;
            while (end > from) reversed[to++] = arena[--end];
            number[n_long] = (uint32_t)n_long;
            long_id[n_long] = ids[i];
            own_off[++n_long] = to;
        }
        ok = ggtok_trie_build(&l->t, reversed, own_off, number, n_long, false) &&
             link_units(l, reversed, own_off, n_long);
    }
    for (size_t i = 0; ok && i < l->t.n_units; i++) {
        int32_t value = l->t.value[i];
        if (value >= 0) l->t.value[i] = (int32_t)long_id[value];
    }
    ggtok_mem_free(reversed);
    ggtok_mem_free(own_off);
    ggtok_mem_free(number);
    ggtok_mem_free(long_id);
    return ok;
}

void ggtok_trie_long_free(trie_long *l) {
    ggtok_trie_free(&l->t);
    ggtok_mem_free(l->fail);
    ggtok_mem_free(l->hit);
    *l = (trie_long){0};
}

bool ggtok_trie_long_find(const trie_long *l, const uint8_t *p, size_t n, idbuf *hits) {
    hits->n = 0;
    if (!idbuf_reserve(hits, n)) return false;
    for (uint32_t s = 0; n-- > 0;) {
        s = advance(l, s, p[n]);
        hits->data[n] = (int32_t)l->hit[s];
    }
    return true;
}
