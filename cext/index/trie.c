#include "index/trie.h"
#include "base/bits.h"

/*
 * To build a trie: sort the texts; then split sorted ranges byte by byte, where each
 * range is a unit, and place the children of the unit.
 *
 * Sorting compares eight bytes at a time. They are copied next to the text's number,
 * so that neither sorting nor splitting reads the texts, which are scattered in
 * memory. A range that is still not split after eight bytes loads the next eight and
 * is sorted again.
 */
typedef struct entry {
    uint64_t key; /* eight bytes of the text, big-endian, with zeros after the text's end */
    uint32_t len;
    uint32_t id;
} entry;

typedef struct range { /* the texts entry[lo..hi), which share the `depth` bytes that lead to
                          `unit` */
    uint32_t lo, hi, depth, unit;
} range;

/* N_OPEN: the number of blocks that are searched for free units. A greater number fills the array a
 * little better but takes longer. MAX_MISSES: a block that fails more often is closed. */
enum { N_OPEN = 8, MAX_MISSES = 24 };

typedef struct builder {
    trie *t;
    size_t arena_n; /* offset in the arena after the last text */
    bool tails;
    entry *entry, *spare; /* [n] each */
    range *stack;
    size_t n_stack, cap_stack;
    size_t cap_units;
    struct open_block {
        uint32_t start; /* index of its first unit */
        uint32_t n_free;
        uint32_t n_misses;
        uint64_t free[4]; /* one bit per unit: whether it is free */
    } open[N_OPEN];
    size_t n_open;
} builder;

static void load_window(const builder *b, entry *e, size_t n, uint32_t depth) {
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)b->t->off[e[i].id] + depth;
        size_t left = e[i].len > depth ? e[i].len - depth : 0;
        const uint8_t *p = b->t->arena + at;
        uint64_t key = 0;
        if (at + 8 <= b->arena_n) { /* eight bytes are readable, even if from other texts */
            for (size_t k = 0; k < 8; k++) key = key << 8 | p[k];
            if (left < 8) key = left ? key >> (64 - 8 * left) << (64 - 8 * left) : 0;
        } else {
            for (size_t k = 0; k < 8 && k < left; k++) key |= (uint64_t)p[k] << (56 - 8 * k);
        }
        e[i].key = key;
    }
}

/* Whether a goes before b in the order that splitting needs: a prefix of a text before the text
 * (the lengths decide, since zeros after the end look like NUL bytes), and equal texts by id. */
static inline bool entry_less(const entry *a, const entry *b) {
    if (a->key != b->key) return a->key < b->key;
    return a->len != b->len ? a->len < b->len : a->id < b->id;
}

static void sort_short(entry *e, size_t n) {
    static const uint16_t gaps[] = {301, 132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
        size_t gap = gaps[g];
        if (gap > 1 && gap >= n) continue;
        for (size_t i = gap; i < n; i++) {
            entry x = e[i];
            size_t k = i;
            for (; k >= gap && entry_less(&x, &e[k - gap]); k -= gap) e[k] = e[k - gap];
            e[k] = x;
        }
    }
}

/* Sorts in stable counting passes: first by length up to the end of the window, then by each byte
 * of the window from last to first. Equal texts stay in order. A pass that would move nothing is
 * skipped. */
static void sort_long(entry *e, entry *spare, size_t n, uint32_t depth) {
    entry *from = e, *to = spare;
    uint32_t count[9][256] = {{0}}; /* by pass and digit: entries, then the place of the next one */
    for (size_t i = 0; i < n; i++) {
        uint32_t left = e[i].len - depth;
        count[0][left > 8 ? 9 : left]++;
        for (int pass = 1; pass < 9; pass++) count[pass][e[i].key >> (8 * (pass - 1)) & 255]++;
    }
    for (int pass = 0; pass < 9; pass++) {
        uint32_t *place = count[pass], next = 0;
        bool skip = false;
        for (size_t d = 0; d < 256; d++) {
            uint32_t here = place[d];
            skip |= here == n;
            place[d] = next;
            next += here;
        }
        if (skip) continue;
        for (size_t i = 0; i < n; i++) {
            uint32_t left = from[i].len - depth;
            unsigned digit = pass ? (from[i].key >> (8 * (pass - 1))) & 255 : left > 8 ? 9 : left;
            to[place[digit]++] = from[i];
        }
        entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != e) memcpy(e, from, n * sizeof *e);
}

static void sort_window(const builder *b, size_t lo, size_t hi, uint32_t depth) {
    load_window(b, b->entry + lo, hi - lo, depth);
    if (hi - lo < 512)
        sort_short(b->entry + lo, hi - lo);
    else
        sort_long(b->entry + lo, b->spare + lo, hi - lo, depth);
}

/* ---- placing ---- */

static bool add_block(builder *b, struct open_block *o) {
    trie *t = b->t;
    if (t->n_units + 256 > TRIE_BASE) return false;
    if (t->n_units + 256 > b->cap_units) {
        size_t cap = b->cap_units + b->cap_units / 2 + 4096;
        trie_unit *unit = ggtok_mem_realloc(t->unit, mem_mul(cap, sizeof *unit));
        if (!unit) return false;
        t->unit = unit;
        int32_t *value = ggtok_mem_realloc(t->value, mem_mul(cap, sizeof *value));
        if (!value) return false;
        t->value = value;
        b->cap_units = cap;
    }
    *o = (struct open_block){(uint32_t)t->n_units, 256, 0, {~0ull, ~0ull, ~0ull, ~0ull}};
    for (size_t i = 0; i < 256; i++) {
        t->unit[t->n_units + i] = (trie_unit){0, TRIE_FREE};
        t->value[t->n_units + i] = -1;
    }
    t->n_units += 256;
    return true;
}

/* Removes from `low`, a set of possible low bytes of a base, each byte for which the child `label`
 * would be at a used unit. The bytes allowed by this label are the indices of free units, XORed
 * with the label. The XOR swaps neighbours, pairs of neighbours, and so on up to whole words. */
static inline void narrow(uint64_t low[4], const uint64_t free[4], unsigned label) {
    for (unsigned w = 0; w < 4; w++) {
        uint64_t x = free[w ^ label >> 6];
        if (label & 1) x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
        if (label & 2) x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
        if (label & 4) x = (x >> 4 & 0x0F0F0F0F0F0F0F0Fu) | (x & 0x0F0F0F0F0F0F0F0Fu) << 4;
        if (label & 8) x = (x >> 8 & 0x00FF00FF00FF00FFu) | (x & 0x00FF00FF00FF00FFu) << 8;
        if (label & 16) x = (x >> 16 & 0x0000FFFF0000FFFFu) | (x & 0x0000FFFF0000FFFFu) << 16;
        if (label & 32) x = x >> 32 | x << 32;
        low[w] &= x;
    }
}

/* Returns a low byte of a base in block o for which the units of all labels are free, or -1. */
static int fit(const struct open_block *o, const uint8_t *label, size_t n) {
    uint64_t low[4] = {~0ull, ~0ull, ~0ull, ~0ull};
    for (size_t k = 0; k < n; k++) {
        narrow(low, o->free, label[k]);
        if (!(low[0] | low[1] | low[2] | low[3])) return -1;
    }
    for (unsigned w = 0; w < 4; w++) {
        if (low[w]) return (int)(w * 64 + bits_lowest(low[w]));
    }
    return -1;
}

/* Finds a base for n labels in an open block or in a new one. */
static bool place(builder *b, uint32_t parent, const uint8_t *label, size_t n) {
    struct open_block *o = NULL;
    int low = -1;
    for (size_t i = b->n_open; i-- > 0 && low < 0;) {
        o = &b->open[i];
        if (o->n_free < n) continue;
        low = fit(o, label, n);
        if (low < 0) o->n_misses++;
    }
    if (low < 0) {
        /* Add a block; if N_OPEN are open, it replaces the one that failed most often. */
        size_t worst = b->n_open;
        if (b->n_open < N_OPEN) {
            b->n_open++;
        } else {
            worst = 0;
            for (size_t i = 1; i < N_OPEN; i++) {
                if (b->open[i].n_misses > b->open[worst].n_misses) worst = i;
            }
        }
        o = &b->open[worst];
        if (!add_block(b, o)) return false;
        low = label[0]; /* any value works; this one puts the first child at the block's start */
    }
    for (size_t k = 0; k < n; k++) {
        unsigned i = (unsigned)low ^ label[k];
        o->free[i >> 6] &= ~(1ull << (i & 63));
        b->t->unit[o->start + i].parent = parent;
    }
    o->n_free -= (uint32_t)n;
    b->t->unit[parent].link |= o->start | (unsigned)low;
    /* A block that is full or fails too often is closed. */
    if (!o->n_free || o->n_misses > MAX_MISSES) *o = b->open[--b->n_open];
    return true;
}

/* ---- splitting ---- */

static bool push(builder *b, range r) {
    if (b->n_stack == b->cap_stack) {
        size_t cap = b->cap_stack * 2 + 256;
        range *stack = ggtok_mem_realloc(b->stack, mem_mul(cap, sizeof *stack));
        if (!stack) return false;
        b->stack = stack;
        b->cap_stack = cap;
    }
    b->stack[b->n_stack++] = r;
    return true;
}

/* Returns the link of the tail unit to which the byte at `depth` leads. The link contains the first
 * of the entry's remaining bytes: those that are in the entry's key, at most TRIE_HEAD. */
static uint32_t tail_link(const entry *e, uint32_t depth) {
    uint32_t rest = e->len - depth - 1, n = 7 - (depth & 7), link = TRIE_TAIL;
    if (n > TRIE_HEAD) n = TRIE_HEAD;
    if (n > rest) n = rest;
    if (n == rest) link |= TRIE_WHOLE;
    uint64_t next = e->key << 8 * (depth & 7) << 8;
    for (uint32_t k = 0; k < n; k++) link |= (uint32_t)(next >> (56 - 8 * k) & 255) << 8 * k;
    return link | n << TRIE_HEAD_N;
}

static bool split(builder *b, range r) {
    trie *t = b->t;
    entry *e = b->entry;
    if (r.depth && !(r.depth & 7)) sort_window(b, r.lo, r.hi, r.depth);
    while (r.lo < r.hi && e[r.lo].len == r.depth) { /* texts that end here: the last one wins */
        t->value[r.unit] = (int32_t)e[r.lo++].id;
        if (r.unit) t->unit[r.unit].link |= TRIE_VALUE; /* not at the root, where empty texts end */
    }
    if (r.lo == r.hi) return true;

    uint8_t label[256];
    uint32_t end[256];
    size_t n = 0;
    unsigned shift = 56 - 8 * (r.depth & 7);
    for (uint32_t i = r.lo; i < r.hi; i++) {
        uint8_t c = (uint8_t)(e[i].key >> shift);
        if (!n || label[n - 1] != c) label[n++] = c;
        end[n - 1] = i + 1;
    }
    if (!place(b, r.unit, label, n)) return false;
    uint32_t base = t->unit[r.unit].link & TRIE_BASE;
    for (size_t k = n; k-- > 0;) {
        range child = {k ? end[k - 1] : r.lo, end[k], r.depth + 1, base ^ label[k]};
        if (b->tails && child.hi - child.lo == 1) {
            t->unit[child.unit].link = tail_link(&e[child.lo], r.depth);
            t->value[child.unit] = (int32_t)e[child.lo].id;
        } else if (!push(b, child)) {
            return false;
        }
    }
    return true;
}

bool ggtok_trie_build(trie *t, const uint8_t *arena, const uint32_t *off, const uint32_t *ids,
                      size_t n, bool tails) {
    builder b = {.t = t, .tails = tails};
    *t = (trie){.arena = arena, .off = off};
    b.cap_units = n + n / 2 + 512; /* the usual number of units with tails */
    b.entry = ggtok_mem_alloc(mem_mul(n, sizeof *b.entry));
    b.spare = ggtok_mem_alloc(mem_mul(n, sizeof *b.spare));
    t->unit = ggtok_mem_alloc(mem_mul(b.cap_units, sizeof *t->unit));
    t->value = ggtok_mem_alloc(mem_mul(b.cap_units, sizeof *t->value));
    bool ok = b.entry && b.spare && t->unit && t->value;

    /* The first block contains the root, at index 0, where no other unit may be placed. */
    if (ok) ok = add_block(&b, &b.open[0]);
    if (ok) {
        b.n_open = 1;
        b.open[0].free[0] &= ~1ull;
        b.open[0].n_free--;
        for (size_t i = 0; i < n; i++) {
            b.entry[i] = (entry){0, off[ids[i] + 1] - off[ids[i]], ids[i]};
            if (off[ids[i] + 1] > b.arena_n) b.arena_n = off[ids[i] + 1];
        }
        if (n) sort_window(&b, 0, n, 0);
        ok = !n || push(&b, (range){0, (uint32_t)n, 0, 0});
    }
    while (ok && b.n_stack) ok = split(&b, b.stack[--b.n_stack]);

    ggtok_mem_free(b.entry);
    ggtok_mem_free(b.spare);
    ggtok_mem_free(b.stack);
    if (!ok) {
        ggtok_trie_free(t);
    } else {
        /* Release unused memory; a failure to shrink is harmless. */
        trie_unit *unit = ggtok_mem_realloc(t->unit, t->n_units * sizeof *unit);
        if (unit) t->unit = unit;
        int32_t *value = ggtok_mem_realloc(t->value, t->n_units * sizeof *value);
        if (value) t->value = value;
        if (!tails) t->arena = NULL, t->off = NULL;
    }
    return ok;
}

void ggtok_trie_free(trie *t) {
    ggtok_mem_free(t->unit);
    ggtok_mem_free(t->value);
    *t = (trie){0};
}
