#include "train/part.h"

#include "base/cpu.h"

enum { AHEAD = 24 };

static bool side_reach(side *s, size_t old, size_t cap) {
    neighbour *counts = ggtok_mem_realloc(s->counts, mem_mul(cap, sizeof *counts));
    if (counts) s->counts = counts;
    uint32_t *seen = ggtok_mem_realloc(s->seen, mem_mul(cap, sizeof *seen));
    if (seen) s->seen = seen;
    uint32_t **next = ggtok_mem_realloc(s->next, mem_mul(cap, sizeof *next));
    if (next) s->next = next;
    if (!counts || !seen || !next) return false;
    memset(counts + old, 0, (cap - old) * sizeof *counts);
    return true;
}

bool ggtok_part_reach(part *p, size_t n_symbols) {
    if (n_symbols <= p->cap) return true;
    size_t cap = n_symbols + n_symbols / 2 + 64;
    if (!side_reach(&p->left, p->cap, cap) || !side_reach(&p->right, p->cap, cap)) return false;
    p->cap = cap;
    return true;
}

bool ggtok_part_room(part *p, size_t n) {
    if (n <= p->cap_around) return true;
    ggtok_mem_free(p->around);
    p->cap_around = 0;
    size_t cap = n + n / 2;
    p->around = ggtok_mem_alloc(mem_mul(cap, 2 * sizeof *p->around));
    if (!p->around) return false;
    p->cap_around = cap;
    return true;
}

void ggtok_part_free(part *p) {
    side *sides[] = {&p->left, &p->right};
    for (int i = 0; i < 2; i++) {
        ggtok_mem_free(sides[i]->counts);
        ggtok_mem_free(sides[i]->seen);
        ggtok_mem_free(sides[i]->next);
    }
    ggtok_mem_free(p->around);
}

static inline void count_neighbour(side *s, uint32_t symbol, uint64_t weight) {
    neighbour *x = &s->counts[symbol];
    s->seen[s->n_seen] = symbol;
    s->n_seen += x->n++ == 0;
    x->weight += weight;
}

void ggtok_part_replace(part *p, uint32_t *places, size_t n, uint32_t left, uint32_t right,
                        uint32_t made, uint32_t length, const symbol *symbols) {
    const layout *l = p->layout;
    uint32_t *slots = l->slots;
    const uint32_t left_length = symbols[left].length;
    size_t n_replaced = 0, class = 0;
    uint64_t weight = l->n_classes ? l->counts[0] : 0;
    p->left.n_seen = p->right.n_seen = 0;
    p->replaced = p->doubled = p->n_doubled = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n) PREFETCH_WRITE(&slots[places[i + AHEAD]]);
        uint32_t at = places[i], x = slots[at], next = at + left_length;
        /* This test distinguishes the left symbol from freed slots and other symbols. */
        if ((x & ~SLOT_FIRST) != left || slots[next] != right) continue;
        uint32_t after = slots[at + length];
        slots[at] = (x & SLOT_FIRST) | made;
        slots[at + 1] = slots[next] = slots[at + length - 1] = SLOT_FREE | length;
        if (at >= l->starts[class + 1]) {
            class = layout_class(l, at, class);
            weight = l->counts[class];
        }
        p->replaced += weight;
        uint32_t before = SLOT_NONE;
        if (!(x & SLOT_FIRST)) {
            before = slots[layout_before(l, at)] & SLOT_SYMBOL;
            if (before == made) { /* the previous occurrence, just merged: the two are adjacent */
                p->doubled += weight;
                p->n_doubled++;
                p->around[2 * n_replaced - 1] = SLOT_NONE;
            } else {
                count_neighbour(&p->left, before, weight);
            }
        }
        if (after & SLOT_FIRST) {
            after = SLOT_NONE;
        } else {
            count_neighbour(&p->right, after, weight);
        }
        p->around[2 * n_replaced] = before;
        p->around[2 * n_replaced + 1] = after;
        places[n_replaced++] = at;
    }
    p->places = places;
    p->n_around = n_replaced;
}

void ggtok_part_list(part *p, const symbol *symbols) {
    for (size_t i = 0; i < p->n_around; i++) {
        uint32_t before = p->around[2 * i], after = p->around[2 * i + 1], at = p->places[i];
        if (before != SLOT_NONE) {
            uint32_t **next = &p->left.next[before];
            if (*next) *(*next)++ = at - symbols[before].length;
        }
        if (after != SLOT_NONE) {
            uint32_t **next = &p->right.next[after];
            if (*next) *(*next)++ = at;
        }
    }
}
