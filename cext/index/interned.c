#include "index/interned.h"

uint32_t ggtok_interned_find(const interned *s, interned_text *text, const void *owner,
                             const uint8_t *p, size_t n) {
    if (!s->n) return TEXTSET_NONE;
    size_t at = (size_t)hash_text(p, n, s->seed) & s->mask;
    for (size_t i = 0; i <= s->reach && s->slots[at]; i++, at = (at + 1) & s->mask) {
        size_t other_n;
        const uint8_t *other = text(owner, s->slots[at] - 1, &other_n);
        if (other_n == n && mem_equal(other, p, n)) return s->slots[at] - 1;
    }
    return TEXTSET_NONE;
}

/* Puts text number i into its home slot or the next free slot. */
static void put(interned *s, interned_text *text, const void *owner, uint32_t i) {
    size_t n, steps = 0;
    const uint8_t *p = text(owner, i, &n);
    size_t at = (size_t)hash_text(p, n, s->seed) & s->mask;
    for (; s->slots[at]; at = (at + 1) & s->mask) steps++;
    s->slots[at] = i + 1;
    if (steps > s->reach) s->reach = steps;
}

static bool rebuild(interned *s, interned_text *text, const void *owner, size_t cap) {
    uint32_t *slots = ggtok_mem_zalloc(mem_mul(cap, sizeof *slots));
    if (!slots) return false;
    ggtok_mem_free(s->slots);
    s->slots = slots;
    s->mask = cap - 1;
    s->reach = 0;
    for (uint32_t i = 0; i < s->n; i++) put(s, text, owner, i);
    return true;
}

bool ggtok_interned_add(interned *s, interned_text *text, const void *owner) {
    enum { FIRST = 128 };
    size_t cap = s->slots ? s->mask + 1 : 0;
    if (2 * (size_t)s->n >= cap && !rebuild(s, text, owner, cap ? 2 * cap : FIRST)) return false;
    put(s, text, owner, s->n++);
    if (s->reach <= HASH_REACH) return true;
    s->seed = ggtok_hash_new_seed(s->slots);
    return rebuild(s, text, owner, s->mask + 1);
}

void ggtok_interned_free(interned *s) {
    ggtok_mem_free(s->slots);
    *s = (interned){0};
}
