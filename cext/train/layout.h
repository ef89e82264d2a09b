/*
 * All distinct words as one flat array of symbols, in which merges happen.
 *
 * A symbol lies in as many slots as it has initial symbols. The first holds the symbol; the
 * second and the last say how many there are, so that both neighbours are found by looking
 * at one slot. Where "l o w" became "lo w" and then "low":
 *
 *     |l |o |w |     |lo|*2|w |     |low|*3|*3|
 *
 * What a merge frees is marked, where the right symbol began too: no slot looks like a symbol
 * that isn't there any more, so that a list of places may be out of date.
 *
 * A bit marks the first slot of each word, where no neighbour lies to the left. Words lie in
 * classes of equal count, the frequent ones first: the weight of a slot is its class's, and
 * no slot need say which word it belongs to.
 */
#ifndef GGTOK_TRAIN_LAYOUT_H
#define GGTOK_TRAIN_LAYOUT_H

#include "train/counter.h"

#define SLOT_FREE ((uint32_t)1 << 31)  /* the rest is a length */
#define SLOT_FIRST ((uint32_t)1 << 30) /* of a word; the rest is a symbol */
#define SLOT_SYMBOL (SLOT_FIRST - 1)
#define SLOT_NONE SLOT_SYMBOL /* no symbol */

typedef struct layout {
    uint32_t *slots; /* n, and one after them that begins a word */
    size_t n;
    uint64_t weight;  /* of all slots together */
    uint32_t *starts; /* first slot of each class, and n */
    uint64_t *counts; /* of each class */
    size_t n_classes;
    uint32_t *class_at; /* class of slot i << shift */
    unsigned shift;
} layout;

/* What words are made of. */
typedef struct alphabet {
    uint32_t *symbol; /* of each byte, or of each code point; SLOT_NONE: not in the alphabet */
    bool bytes;
} alphabet;

ggtok_status ggtok_layout_build(layout *l, const table *t, const alphabet *a, ggtok_error *err);
void ggtok_layout_free(layout *l);

/* The class of a slot, not before class `from`. */
static inline size_t layout_class(const layout *l, uint32_t slot, size_t from) {
    const uint32_t *starts = l->starts;
    if (slot < starts[from + 1]) return from;
    size_t block = slot >> l->shift, low = l->class_at[block], high = l->class_at[block + 1];
    while (low < high) { /* the last class that starts at or before the slot */
        size_t middle = (low + high + 1) / 2;
        if (starts[middle] <= slot) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Where the symbol after the one at `slot` lies (n: none, as everywhere else a word begins). */
static inline uint32_t layout_next(const layout *l, uint32_t slot) {
    uint32_t x = l->slots[slot + 1];
    return x & SLOT_FREE ? slot + (x & ~SLOT_FREE) : slot + 1;
}

/* Where the symbol before it lies; it isn't the first of its word. */
static inline uint32_t layout_before(const layout *l, uint32_t slot) {
    uint32_t x = l->slots[slot - 1];
    return x & SLOT_FREE ? slot - (x & ~SLOT_FREE) : slot - 1;
}

#endif
