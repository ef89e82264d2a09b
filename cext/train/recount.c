#include "train/recount.h"

/* With few symbols, there is a row of counters for each left symbol; with many, an open-addressing
 * table. If the table would become too large, there are several passes over the layout, each of
 * which counts one share of the pairs, selected by hash. */
enum { DENSE = SMALL ? 8 : 512, FIRST_LOG2 = SMALL ? 4 : 14, SHARE = SMALL ? 16 : 1 << 23 };

typedef struct tally {
    uint64_t key, weight;
    uint64_t n;
    uint32_t *to; /* where the next position is written, or NULL */
} tally;

typedef struct tallies {
    const layout *layout;
    tally *all;
    unsigned log2;  /* log2 of the size of the table; 0: rows of counters */
    size_t n, side; /* for rows of counters: `side` rows of `side` columns */
    unsigned share, shares;
} tallies;

/* Returns the index in t->all of a pair's tally, or of the free element for it. The hash differs
 * from that of the index of pairs: pairs are added to the index in the order of this table; with
 * the same hash, they would crowd at the front of the index while it is small. */
static size_t tally_place(const tallies *t, uint64_t key) {
    size_t mask = ((size_t)1 << t->log2) - 1;
    size_t i = (size_t)(pair_hash(key << 32 | key >> 32) >> (64 - t->log2));
    while (t->all[i].n && t->all[i].key != key) i = (i + 1) & mask;
    return i;
}

static bool grow(tallies *t) {
    tally *old = t->all;
    size_t n = (size_t)1 << t->log2;
    tally *all = ggtok_mem_zalloc(mem_mul(2 * n, sizeof *all));
    if (!all) return false;
    t->all = all;
    t->log2++;
    for (size_t i = 0; i < n; i++) {
        if (old[i].n) all[tally_place(t, old[i].key)] = old[i];
    }
    ggtok_mem_free(old);
    return true;
}

/* Returns the tally of a pair; NULL if the pair belongs to another share. */
static inline tally *tally_of(const tallies *t, uint32_t left, uint32_t right) {
    if (!t->log2) return &t->all[left * t->side + right];
    uint64_t key = pair_key(left, right);
    if (t->shares > 1 && (uint32_t)(pair_hash(key ^ 1) >> 32) % t->shares != t->share) return NULL;
    return &t->all[tally_place(t, key)];
}

/* Counts every pair of neighbours, in the order of slots. Returns false if out of memory. */
static bool count_all(tallies *t) {
    const layout *l = t->layout;
    size_t class = 0;
    for (uint32_t at = 0, next; at < l->n; at = next) {
        next = layout_next(l, at);
        uint32_t left = l->slots[at] & SLOT_SYMBOL, right = l->slots[next];
        if (right & SLOT_FIRST) continue;
        tally *x = tally_of(t, left, right);
        if (!x) continue;
        while (at >= l->starts[class + 1]) class++;
        if (!x->n++) {
            x->key = pair_key(left, right);
            t->n++;
        }
        x->weight += l->counts[class];
        if (t->log2 && t->n >= ((size_t)1 << t->log2) / 10 * 6 && !grow(t)) return false;
    }
    return true;
}

static void list_all(const tallies *t) {
    const layout *l = t->layout;
    for (uint32_t at = 0, next; at < l->n; at = next) {
        next = layout_next(l, at);
        uint32_t left = l->slots[at] & SLOT_SYMBOL, right = l->slots[next];
        if (right & SLOT_FIRST) continue;
        tally *x = tally_of(t, left, right);
        if (x && x->to) *x->to++ = at;
    }
}

static bool one_share(tallies *t, pairs *p) {
    if (!count_all(t)) return false;
    size_t n = t->log2 ? (size_t)1 << t->log2 : t->side * t->side;
    for (size_t i = 0; i < n; i++) {
        tally *x = &t->all[i];
        uint32_t left = (uint32_t)(x->key >> 32), right = (uint32_t)x->key;
        if (!x->n || x->weight < p->least || !ggtok_symbols_may_join(p->symbols, left, right))
            continue;
        pair *q = ggtok_pairs_add(p, left, right, x->weight, (uint32_t)x->n);
        if (!q) return false;
        x->to = q->places;
    }
    list_all(t);
    memset(t->all, 0, n * sizeof *t->all);
    t->n = 0;
    return true;
}

bool ggtok_recount(pairs *p, const layout *l) {
    tallies t = {.layout = l, .shares = 1};
    size_t n = p->symbols->n;
    bool ok = true;
    if (n <= DENSE) {
        t.side = n;
        n *= n;
    } else {
        t.log2 = FIRST_LOG2;
        n = (size_t)1 << t.log2;
        t.shares = (unsigned)(l->n / SHARE) + 1;
    }
    t.all = ggtok_mem_zalloc(mem_mul(n, sizeof *t.all));
    if (!t.all) return false;
    for (; ok && t.share < t.shares; t.share++) ok = one_share(&t, p);
    ggtok_mem_free(t.all);
    return ok;
}
