#include "wordcache.h"

/* ---- short words ---- */

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
    mem_free(c->longs);
    piece_cache_free(&c->pieces);
    memset(c, 0, sizeof *c);
}

static void put_piece(wordcache *c, const piece_key *key, const int32_t *ids, size_t count) {
    uint64_t hash = piece_hash(key);
    if (!piece_find(&c->pieces, key, hash)) piece_add(&c->pieces, key, hash, ids, count);
}

/* A short word's key in the piece cache. */
static piece_key longer_key(const uint64_t key[2]) {
    piece_key longer = {{key[0], key[1], 0, 0}};
    uint8_t *bytes = (uint8_t *)longer.w;
    bytes[PIECE_MAX] = bytes[WORD_SHORT];
    bytes[WORD_SHORT] = 0;
    return longer;
}

/* Three words that share a set must not push each other out for good, so the one
 * that goes (the older) stays in the piece cache, which the set notes: most words
 * that are not in their set are nowhere, and so need not be looked for. */
static void put_short(wordcache *c, word_short *set, const word_short *e) {
    uint16_t more = set[0].more;
    if (set[1].key[1]) {
        piece_key key = longer_key(set[1].key);
        put_piece(c, &key, set[1].ids, set[1].n);
        c->n_moved++;
        more = true;
    }
    set[1] = set[0];
    set[0] = *e;
    set[0].more = more;
}

/* A larger table, the older entry of each old set first. Failing keeps the old. */
static void grow(wordcache *c) {
    unsigned log2 = 64 - c->short_shift;
    const word_short *old = c->shorts;
    void *block, *old_block = c->block;
    word_short *sets = alloc_sets(&block, log2 + GROWTH);
    c->n_moved = 0;
    if (!sets) return;
    c->shorts = sets;
    c->block = block;
    c->short_shift -= GROWTH;
    for (size_t set = 0; set < (size_t)1 << log2; set++, old += 2) {
        if (old[0].more) { /* of which of its parts is not known */
            for (size_t i = 0; i < (size_t)1 << GROWTH; i++) {
                sets[2 * ((set << GROWTH) + i)].more = true;
            }
        }
        for (int i = 1; i >= 0; i--) {
            if (old[i].key[1])
                put_short(c, &sets[2 * (word_hash(old[i].key) >> c->short_shift)], &old[i]);
        }
    }
    mem_free(old_block);
}

/* ---- long words: one entry a slot, the last one put there ---- */

enum { LONG_MIN = 128, LONG_MAX = 4096, LONG_GROWTH = 4 }; /* slots */

struct word_long {
    uint8_t bytes[WORD_LONG];
    int32_t ids[WORD_LONG_IDS];
    uint32_t n_bytes, n; /* n_bytes == 0: free */
};

static word_long *long_slot(const wordcache *c, const uint8_t *p, size_t n) {
    uint64_t h = n;
    for (size_t i = 0; i + 8 <= n; i += 8) { /* long words are rare: their ends may be left out */
        uint64_t x;
        memcpy(&x, p + i, 8);
        h = (h ^ x) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return &c->longs[(h >> 32) & (c->n_slots - 1)];
}

/* A larger table, once half of it was overwritten; what it held is forgotten. */
static bool grow_longs(wordcache *c) {
    size_t n = c->longs ? LONG_GROWTH * c->n_slots : LONG_MIN;
    word_long *longs = mem_zalloc(n * sizeof *longs);
    if (!longs) return c->longs != NULL;
    mem_free(c->longs);
    c->longs = longs;
    c->n_slots = n;
    c->n_over = 0;
    return true;
}

static void put_long(wordcache *c, const uint8_t *p, size_t n, const int32_t *ids, size_t count) {
    if ((!c->longs || (c->n_over > c->n_slots / 2 && c->n_slots < LONG_MAX)) && !grow_longs(c)) {
        return;
    }
    word_long *e = long_slot(c, p, n);
    c->n_over += e->n_bytes != 0;
    memcpy(e->bytes, p, n);
    memcpy(e->ids, ids, count * sizeof *ids);
    e->n_bytes = (uint32_t)n;
    e->n = (uint32_t)count;
}

/* ---- any word ---- */

/* The set where a short word would be; its key. */
static word_short *set_of(const wordcache *c, const uint8_t *p, size_t n, size_t room,
                          uint64_t key[2]) {
    uint8_t padded[16] = {0};
    word_short_key(key, room < 16 ? memcpy(padded, p, n) : p, n);
    return &c->shorts[2 * (word_hash(key) >> c->short_shift)];
}

void wordcache_put(wordcache *c, const uint8_t *p, size_t n, const int32_t *ids, size_t count) {
    if (PLAIN) return;
    word_short e = {{0, 0}, {0, 0, 0}, (uint16_t)count, false};
    word_short *set = n <= WORD_SHORT ? set_of(c, p, n, n, e.key) : NULL;
    if (set && count <= WORD_SHORT_IDS) {
        memcpy(e.ids, ids, count * sizeof *ids);
        put_short(c, set, &e);
        unsigned log2 = 64 - c->short_shift;
        if (c->n_moved > (size_t)1 << log2 >> 4 && log2 < MAX_LOG2) grow(c);
        return;
    }
    if (set) set->more = true;
    if (n <= PIECE_MAX && count <= PIECE_IDS) {
        piece_key key = piece_key_within(p, n, n);
        put_piece(c, &key, ids, count);
    } else if (n <= WORD_LONG && count <= WORD_LONG_IDS) {
        put_long(c, p, n, ids, count);
    }
}

static bool append(idbuf *out, const int32_t *ids, size_t count) {
    memcpy(out->data + out->n, ids, count * sizeof *ids);
    out->n += count;
    return true;
}

bool wordcache_get(wordcache *c, const uint8_t *p, size_t n, size_t room, idbuf *out) {
    if (n <= WORD_SHORT) {
        uint64_t key[2];
        const word_short *set = set_of(c, p, n, room, key), *e = word_short_find(set, key);
        if (e) return append(out, e->ids, e->n);
        if (!set->more) return false;
    }
    if (n <= PIECE_MAX) {
        piece_key key = piece_key_within(p, n, room);
        const piece_slot *e = piece_find(&c->pieces, &key, piece_hash(&key));
        if (e) {
            size_t count = e->n; /* e is gone when the cache grows */
            append(out, e->id, count);
            if (n <= WORD_SHORT && count <= WORD_SHORT_IDS) { /* back in front */
                wordcache_put(c, p, n, out->data + out->n - count, count);
            }
            return true;
        }
    }
    if (n <= WORD_LONG && c->longs) {
        const word_long *e = long_slot(c, p, n);
        if (e->n_bytes == n && !memcmp(e->bytes, p, n)) return append(out, e->ids, e->n);
    }
    return false;
}

size_t wordcache_bytes(const wordcache *c) {
    size_t shorts = ((size_t)2 << (64 - c->short_shift)) * sizeof *c->shorts;
    return shorts + piece_cache_bytes(&c->pieces) + c->n_slots * sizeof *c->longs;
}
