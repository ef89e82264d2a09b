/* A binary min-heap of numbers. */
#ifndef GGTOK_HEAP_H
#define GGTOK_HEAP_H

#include "base/interrupt.h"

#include <stdint.h>

/* Restores the order after heap[i] decreased. */
static inline void heap_up(uint64_t *heap, size_t i) {
    uint64_t x = heap[i];
    for (; i && heap[(i - 1) / 2] > x; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = x;
}

/* Restores the order after heap[i] increased. */
static inline void heap_down(uint64_t *heap, size_t n, size_t i) {
    uint64_t x = heap[i];
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && heap[c + 1] < heap[c]) c++;
        if (heap[c] >= x) break;
        heap[i] = heap[c];
    }
    heap[i] = x;
}

/* Makes heap[0..n) a heap. Returns false if interrupted. */
static inline bool heap_make(uint64_t *heap, size_t n, interrupt *in) {
    for (size_t i = n / 2; i--;) {
        if (interrupted(in, 1)) return false;
        heap_down(heap, n, i);
    }
    return true;
}

#endif
