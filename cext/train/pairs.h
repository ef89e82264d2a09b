/*
 * The pairs that may be merged next: how often each occurs, and where.
 *
 * Only pairs that occur at least `least` times are kept. No other pair can be merged before one of
 * these: a pair's count rises only in the step that creates one of its symbols, and only falls
 * afterwards. When no pair is left, training counts all pairs again with a smaller `least`.
 */
#ifndef GGTOK_TRAIN_PAIRS_H
#define GGTOK_TRAIN_PAIRS_H

#include "train/symbols.h"

typedef struct pair {
    uint32_t left, right;
    uint64_t count;
    uint32_t *places; /* slots of the left symbol, ascending; some may be out of date */
    uint32_t n;       /* number of places */
} pair;

typedef struct heap_entry {
    uint64_t count; /* the pair's count when the entry was made; at least its current count */
    uint64_t tie;
    uint32_t pair;
} heap_entry;

typedef struct pairs {
    const symbols *symbols;
    pair *all;
    size_t n, cap;
    uint64_t *index; /* open addressing: 32 bits of the hash | number of the pair + 1; 0: free */
    unsigned log2;
    heap_entry *heap;
    size_t n_heap, cap_heap;
    uint64_t least;
} pairs;

bool ggtok_pairs_init(pairs *p, const symbols *s); /* false: out of memory */
void ggtok_pairs_free(pairs *p);
void ggtok_pairs_clear(pairs *p);

pair *ggtok_pairs_find(const pairs *p, uint32_t left, uint32_t right); /* NULL: not kept */

/* Prefetch, in two steps before a call to ggtok_pairs_find, the index entry that it will read and
 * then the pair that it will return. */
void ggtok_pairs_will_find(const pairs *p, uint32_t left, uint32_t right);
void ggtok_pairs_will_change(const pairs *p, uint32_t left, uint32_t right);

/* Adds a pair that isn't kept yet, with room for n places, which the caller fills in. Returns NULL
 * if out of memory. */
pair *ggtok_pairs_add(pairs *p, uint32_t left, uint32_t right, uint64_t count, uint32_t n);

/* Removes the first pair from the heap and returns it, or NULL if there is none. ggtok_pairs_done
 * frees the pair's list of places. */
pair *ggtok_pairs_take(pairs *p);
void ggtok_pairs_done(pair *q);

static inline uint64_t pair_key(uint32_t left, uint32_t right) {
    return (uint64_t)left << 32 | right;
}

static inline uint64_t pair_hash(uint64_t key) {
    uint64_t h = key * 0x9E3779B97F4A7C15u;
    return (h ^ h >> 29) * 0xD6E8FEB86659FD93u;
}

#endif
