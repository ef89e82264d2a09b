/*
 * All distinct words as one flat array of symbols, in which merges are performed.
 *
 * A symbol takes one slot for each of its initial symbols. The first slot holds the symbol; the
 * second and the last hold the number of slots, so that both neighbours are found by reading one
 * slot. After "l o w" became "lo w" and then "low":
 *
 *     |l |o |w |     |lo|*2|w |     |low|*3|*3|
 *
 * A merge marks the slots that it frees, including the first slot of the right symbol. So no slot
 * looks like a symbol that no longer exists, and lists of positions may be out of date.
 *
 * A bit marks the first slot of each word, which has no left neighbour. Words are grouped in
 * classes of equal count, the frequent ones first. The weight of a slot is its class's count,
 * so slots needn't record their word.
 */
#ifndef GGTOK_TRAIN_LAYOUT_H
#define GGTOK_TRAIN_LAYOUT_H

#include "train/counter.h"

#define SLOT_FREE ((uint32_t)1 << 31)  /* a free slot; the other bits are a length */
#define SLOT_FIRST ((uint32_t)1 << 30) /* the first slot of a word; the other bits are a symbol */
#define SLOT_SYMBOL (SLOT_FIRST - 1)
#define SLOT_NONE SLOT_SYMBOL /* no symbol */

typedef struct layout {
    uint32_t *slots; /* [n + 2]; the last two mark the start of a word */
    size_t n;
    uint64_t weight;  /* total weight of all slots */
    uint32_t *starts; /* [n_classes + 1]: first slot of each class, and n */
    uint64_t *counts; /* [n_classes]: count of each class */
    size_t n_classes;
    uint32_t *class_at; /* [i]: class of slot i << shift */
    unsigned shift;
} layout;

/* The characters of which words consist. */
typedef struct alphabet {
    uint32_t *symbol; /* by byte or code point; SLOT_NONE: not in the alphabet */
    bool bytes;
} alphabet;

ggtok_status ggtok_layout_build(layout *l, const table *t, const alphabet *a, ggtok_error *err);
void ggtok_layout_free(layout *l);

/* Returns the class of a slot, which must be at least `from`. */
static inline size_t layout_class(const layout *l, uint32_t slot, size_t from) {
    const uint32_t *starts = l->starts;
    if (slot < starts[from + 1]) return from;
    size_t block = slot >> l->shift, low = l->class_at[block], high = l->class_at[block + 1];
    while (low < high) { /* find the last class that starts at or before the slot */
        size_t middle = (low + high + 1) / 2;
        if (starts[middle] <= slot) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Returns the slot of the symbol after the one at `slot` (n: there is none; slot n counts as the
 * start of a word). */
static inline uint32_t layout_next(const layout *l, uint32_t slot) {
    uint32_t x = l->slots[slot + 1];
    return x & SLOT_FREE ? slot + (x & ~SLOT_FREE) : slot + 1;
}

/* Returns the slot of the symbol before the one at `slot`, which must not be the first in its
 * word. */
static inline uint32_t layout_before(const layout *l, uint32_t slot) {
    uint32_t x = l->slots[slot - 1];
    return x & SLOT_FREE ? slot - (x & ~SLOT_FREE) : slot - 1;
}

#endif
