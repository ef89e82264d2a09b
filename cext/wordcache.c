#include "wordcache.h"

enum { /* log2 of sets, two entries each */
    SHORT_MIN = 9,
    SHORT_MAX = 15,
    LONG_MIN = 7,
    LONG_MAX = 15,
    GROWTH = 2
};

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BYTES(n) ((n) >= 8 ? ~(uint64_t)0 : ~(~(uint64_t)0 >> 8 * (n)))
#else
#define BYTES(n) ((n) >= 8 ? ~(uint64_t)0 : ((uint64_t)1 << 8 * ((n) & 7)) - 1)
#endif
#define MASK(n) {BYTES(n), BYTES((n) > 8 ? (n) - 8 : 0)}

const uint64_t word_mask[WORD_SHORT + 1][2] = {
    MASK(0), MASK(1), MASK(2),  MASK(3),  MASK(4),  MASK(5),  MASK(6),  MASK(7),
    MASK(8), MASK(9), MASK(10), MASK(11), MASK(12), MASK(13), MASK(14), MASK(15),
};

/* Sets must not straddle cache lines: align the first one. */
static void *alloc_sets(void **block, unsigned bits, size_t entry) {
    size_t n = ((size_t)2 << bits) * entry;
    *block = mem_zalloc(n + 127);
    return *block ? (void *)(((uintptr_t)*block + 127) & ~(uintptr_t)127) : NULL;
}

bool wordcache_init(wordcache *c) {
    memset(c, 0, sizeof *c);
    c->shorts = alloc_sets(&c->short_block, SHORT_MIN, sizeof *c->shorts);
    c->longs = alloc_sets(&c->long_block, LONG_MIN, sizeof *c->longs);
    c->short_shift = 64 - SHORT_MIN;
    c->long_shift = 64 - LONG_MIN;
    if (c->shorts && c->longs) return true;
    wordcache_free(c);
    return false;
}

void wordcache_free(wordcache *c) {
    mem_free(c->short_block);
    mem_free(c->long_block);
    memset(c, 0, sizeof *c);
}

static void put_short(wordcache *c, const word_short *e) {
    word_short *set = &c->shorts[2 * (word_hash(e->key[0], e->key[1]) >> c->short_shift)];
    set[1] = set[0];
    set[0] = *e;
}

static void put_long(wordcache *c, const word_long *e) {
    word_long *set = &c->longs[2 * (word_long_hash(e->key) >> c->long_shift)];
    set[1] = set[0];
    set[0] = *e;
}

/* Larger tables, the older entry of each old set first. Failing keeps the old. */
static void grow_short(wordcache *c) {
    wordcache old = *c;
    unsigned bits = 64 - c->short_shift;
    c->n_short = 0;
    word_short *sets = alloc_sets(&c->short_block, bits + GROWTH, sizeof *sets);
    if (!sets) {
        c->short_block = old.short_block;
        return;
    }
    c->shorts = sets;
    c->short_shift -= GROWTH;
    for (size_t i = 0; i < (size_t)2 << bits; i++) {
        const word_short *e = &old.shorts[i ^ 1];
        if (e->key[1]) put_short(c, e);
    }
    mem_free(old.short_block);
}

static void grow_long(wordcache *c) {
    wordcache old = *c;
    unsigned bits = 64 - c->long_shift;
    c->n_long = 0;
    word_long *sets = alloc_sets(&c->long_block, bits + GROWTH, sizeof *sets);
    if (!sets) {
        c->long_block = old.long_block;
        return;
    }
    c->longs = sets;
    c->long_shift -= GROWTH;
    for (size_t i = 0; i < (size_t)2 << bits; i++) {
        const word_long *e = &old.longs[i ^ 1];
        if (e->key[3]) put_long(c, e);
    }
    mem_free(old.long_block);
}

void wordcache_put(wordcache *c, const uint8_t *p, size_t n, const int32_t *ids, size_t count) {
    if (n <= WORD_SHORT && count <= WORD_SHORT_IDS) {
        word_short e = {{0, 0}, {0, 0, 0}, (uint32_t)count};
        word_short_key(e.key, p, n, n);
        memcpy(e.ids, ids, count * sizeof *ids);
        put_short(c, &e);
        unsigned bits = 64 - c->short_shift;
        if (++c->n_short > (size_t)1 << bits && bits < SHORT_MAX) grow_short(c);
    } else if (n <= WORD_LONG && count <= WORD_LONG_IDS) {
        word_long e = {{0}, {0}, (uint32_t)count};
        word_long_key(e.key, p, n, n);
        memcpy(e.ids, ids, count * sizeof *ids);
        put_long(c, &e);
        unsigned bits = 64 - c->long_shift;
        if (++c->n_long > (size_t)1 << bits && bits < LONG_MAX) grow_long(c);
    }
}
