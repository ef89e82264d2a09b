#include "wordcache.h"

enum { MIN_LOG2 = 9, MAX_LOG2 = 15, GROWTH = 2 }; /* of the number of sets */

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BYTES(n) ((n) >= 8 ? ~(uint64_t)0 : ~(~(uint64_t)0 >> 8 * (n)))
#else
#define BYTES(n) ((n) >= 8 ? ~(uint64_t)0 : ((uint64_t)1 << 8 * ((n) & 7)) - 1)
#endif
#define MASK(n) {BYTES(n), BYTES((n) > 8 ? (n) - 8 : 0)}

/* clang-format off */
const uint64_t word_mask[WORD_SHORT + 1][2] = {
    MASK(0), MASK(1), MASK(2),  MASK(3),  MASK(4),  MASK(5),  MASK(6),  MASK(7),
    MASK(8), MASK(9), MASK(10), MASK(11), MASK(12), MASK(13), MASK(14), MASK(15),
};
/* clang-format on */

/* Sets must not straddle cache lines: align the first one. */
static word_short *alloc_sets(void **block, unsigned log2) {
    enum { LINE = 64 };
    *block = mem_zalloc(((size_t)2 << log2) * sizeof(word_short) + LINE);
    size_t skew = (uintptr_t)*block % LINE;
    return *block ? (word_short *)((uint8_t *)*block + (skew ? LINE - skew : 0)) : NULL;
}

bool wordcache_init(wordcache *c) {
    memset(c, 0, sizeof *c);
    c->shorts = alloc_sets(&c->block, MIN_LOG2);
    c->short_shift = 64 - MIN_LOG2;
    return c->shorts != NULL;
}

void wordcache_free(wordcache *c) {
    mem_free(c->block);
    piece_cache_free(&c->pieces);
    memset(c, 0, sizeof *c);
}

static void put_short(wordcache *c, const word_short *e) {
    word_short *set = &c->shorts[2 * (word_hash(e->key[0], e->key[1]) >> c->short_shift)];
    set[1] = set[0];
    set[0] = *e;
}

/* A larger table, the older entry of each old set first. Failing keeps the old. */
static void grow(wordcache *c) {
    unsigned log2 = 64 - c->short_shift;
    const word_short *old = c->shorts;
    void *block, *old_block = c->block;
    word_short *sets = alloc_sets(&block, log2 + GROWTH);
    c->n_short = 0;
    if (!sets) return;
    c->shorts = sets;
    c->block = block;
    c->short_shift -= GROWTH;
    for (size_t i = 0; i < (size_t)2 << log2; i++) {
        if (old[i ^ 1].key[1]) put_short(c, &old[i ^ 1]);
    }
    mem_free(old_block);
}

void wordcache_put(wordcache *c, const uint8_t *p, size_t n, const int32_t *ids, size_t count) {
    if (n <= WORD_SHORT && count <= WORD_SHORT_IDS) {
        word_short e = {{0, 0}, {0, 0, 0}, (uint32_t)count};
        word_short_key(e.key, p, n, n);
        memcpy(e.ids, ids, count * sizeof *ids);
        put_short(c, &e);
        unsigned log2 = 64 - c->short_shift;
        if (++c->n_short > (size_t)1 << log2 && log2 < MAX_LOG2) grow(c);
    } else if (n <= WORD_LONG) {
        piece_key key = piece_key_within(p, n, n);
        piece_add(&c->pieces, &key, piece_hash(&key), ids, count);
    }
}
