#include "train/pairs.h"

#include "base/cpu.h"

enum { FIRST_LOG2 = SMALL ? 4 : 12 };

bool ggtok_pairs_init(pairs *p, const symbols *s) {
    memset(p, 0, sizeof *p);
    p->symbols = s;
    p->log2 = FIRST_LOG2;
    p->index = ggtok_mem_zalloc(sizeof *p->index << p->log2);
    return p->index;
}

void ggtok_pairs_clear(pairs *p) {
    for (size_t i = 0; i < p->n; i++) ggtok_mem_free(p->all[i].places);
    p->n = p->n_heap = 0;
    memset(p->index, 0, sizeof *p->index << p->log2);
}

void ggtok_pairs_free(pairs *p) {
    for (size_t i = 0; i < p->n; i++) ggtok_mem_free(p->all[i].places);
    ggtok_mem_free(p->all);
    ggtok_mem_free(p->index);
    ggtok_mem_free(p->heap);
}

static size_t place_of(const pairs *p, uint64_t hash) {
    return (size_t)(hash >> (64 - p->log2));
}

static uint64_t index_entry(uint64_t hash, size_t i) {
    return hash << 32 | (i + 1);
}

static pair *pair_of(const pairs *p, uint64_t entry) {
    return &p->all[(uint32_t)entry - 1];
}

/* Returns the index entry of a pair, or the free entry for it. Most pairs looked up aren't in the
 * index; their hashes show this without reading the pairs. */
static uint64_t *index_at(const pairs *p, uint32_t left, uint32_t right, uint64_t hash) {
    size_t mask = ((size_t)1 << p->log2) - 1;
    for (size_t i = place_of(p, hash);; i = (i + 1) & mask) {
        uint64_t entry = p->index[i];
        if (!entry) return &p->index[i];
        if ((entry ^ hash << 32) >> 32) continue;
        const pair *q = pair_of(p, entry);
        if (q->left == left && q->right == right) return &p->index[i];
    }
}

pair *ggtok_pairs_find(const pairs *p, uint32_t left, uint32_t right) {
    uint64_t entry = *index_at(p, left, right, pair_hash(pair_key(left, right)));
    return entry ? pair_of(p, entry) : NULL;
}

void ggtok_pairs_will_find(const pairs *p, uint32_t left, uint32_t right) {
    PREFETCH(&p->index[place_of(p, pair_hash(pair_key(left, right)))]);
}

void ggtok_pairs_will_change(const pairs *p, uint32_t left, uint32_t right) {
    uint64_t hash = pair_hash(pair_key(left, right)), entry = p->index[place_of(p, hash)];
    if (entry && !((entry ^ hash << 32) >> 32)) PREFETCH_WRITE(pair_of(p, entry));
}

static bool grow_index(pairs *p) {
    unsigned log2 = p->log2 + 1;
    uint64_t *index = ggtok_mem_zalloc(mem_mul(sizeof *index, (size_t)1 << log2));
    if (!index) return false;
    ggtok_mem_free(p->index);
    p->index = index;
    p->log2 = log2;
    for (size_t i = 0; i < p->n; i++) {
        uint32_t left = p->all[i].left, right = p->all[i].right;
        uint64_t hash = pair_hash(pair_key(left, right));
        *index_at(p, left, right, hash) = index_entry(hash, i);
    }
    return true;
}

/* ---- the heap ---- */

static bool comes_before(const pairs *p, const heap_entry *a, const heap_entry *b) {
    if (a->count != b->count) return a->count > b->count;
    if (a->tie != b->tie) return a->tie < b->tie;
    const pair *x = &p->all[a->pair], *y = &p->all[b->pair];
    return ggtok_symbols_before(p->symbols, (const uint32_t[2]){x->left, x->right},
                                (const uint32_t[2]){y->left, y->right});
}

/* Each node has four children, which halves the number of levels compared with two. */
enum { BELOW = 4 };

static void sift_up(pairs *p, size_t i, heap_entry e) {
    heap_entry *heap = p->heap;
    for (; i && comes_before(p, &e, &heap[(i - 1) / BELOW]); i = (i - 1) / BELOW) {
        heap[i] = heap[(i - 1) / BELOW];
    }
    heap[i] = e;
}

static void sift_down(pairs *p, size_t i, heap_entry e) {
    heap_entry *heap = p->heap;
    for (size_t c; (c = BELOW * i + 1) < p->n_heap; i = c) {
        size_t end = p->n_heap - c < BELOW ? p->n_heap : c + BELOW;
        for (size_t j = c + 1; j < end; j++) {
            if (comes_before(p, &heap[j], &heap[c])) c = j;
        }
        if (!comes_before(p, &heap[c], &e)) break;
        heap[i] = heap[c];
    }
    heap[i] = e;
}

static bool push(pairs *p, heap_entry e) {
    if (p->n_heap == p->cap_heap) {
        size_t cap = 2 * p->cap_heap + 256;
        heap_entry *grown = ggtok_mem_realloc(p->heap, mem_mul(cap, sizeof *grown));
        if (!grown) return false;
        p->heap = grown;
        p->cap_heap = cap;
    }
    sift_up(p, p->n_heap++, e);
    return true;
}

void ggtok_pairs_done(pair *q) {
    ggtok_mem_free(q->places);
    q->places = NULL;
    q->count = q->n = 0;
}

pair *ggtok_pairs_take(pairs *p) {
    while (p->n_heap) {
        heap_entry e = p->heap[0];
        pair *q = &p->all[e.pair];
        if (q->count == e.count || q->count < p->least) {
            heap_entry last = p->heap[--p->n_heap];
            if (p->n_heap) sift_down(p, 0, last);
            if (q->count == e.count) return q;
            ggtok_pairs_done(q);
        } else {
            e.count = q->count;
            sift_down(p, 0, e);
        }
    }
    return NULL;
}

pair *ggtok_pairs_add(pairs *p, uint32_t left, uint32_t right, uint64_t count, uint32_t n) {
    if (p->n >= ((size_t)1 << p->log2) / 10 * 6 && !grow_index(p)) return NULL;
    if (p->n == p->cap) {
        size_t cap = 2 * p->cap + 256;
        pair *grown =
            cap < UINT32_MAX ? ggtok_mem_realloc(p->all, mem_mul(cap, sizeof *grown)) : NULL;
        if (!grown) return NULL;
        p->all = grown;
        p->cap = cap;
    }
    uint32_t *places = ggtok_mem_realloc(NULL, mem_mul(n, sizeof *places));
    if (!places) return NULL;
    heap_entry e = {count, ggtok_symbols_tie(p->symbols, left, right), (uint32_t)p->n};
    pair *q = &p->all[p->n];
    *q = (pair){left, right, count, places, n};
    uint64_t hash = pair_hash(pair_key(left, right));
    *index_at(p, left, right, hash) = index_entry(hash, p->n++);
    return push(p, e) ? q : NULL;
}
