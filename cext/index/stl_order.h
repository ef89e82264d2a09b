/*
 * Orders that llama.cpp leaves to its C++ library. Where several tokens qualify, llama.cpp uses the
 * one that comes first in a libstdc++ container. These functions reproduce the orders of those
 * containers (64-bit libstdc++, as in the reference build). docs/design/loading.md has an
 * example, the callers and the tests.
 */
#ifndef GGTOK_STL_ORDER_H
#define GGTOK_STL_ORDER_H

#include "base/mem.h"

/*
 * Reproduces the iteration order of a std::unordered_map<std::string, ...> into which the texts
 * arena[off[i] .. off[i+1]), i in [0, n), were inserted one by one. Sets *first to the index in
 * candidates[0..n_candidates) of the candidate whose text comes first. Returns false if out of
 * memory.
 */
bool ggtok_stl_map_first(const uint8_t *arena, const uint32_t *off, uint32_t n,
                         const int32_t *candidates, size_t n_candidates, size_t *first);

/* Equals std::sort, which is not stable, so the order of items that compare equal depends on the
 * algorithm. With inconsistent comparisons, the library's version accesses memory outside the
 * array; this one stays within it. `less` returns true if x goes before y. */
typedef bool stl_less(void *user, int32_t x, int32_t y);
void ggtok_stl_sort(int32_t *items, size_t n, stl_less *less, void *user);

/* Sorts ids[0..n) in the same way, by descending key[id]. */
void ggtok_stl_sort_descending(int32_t *ids, size_t n, const uint32_t *key);

#endif
