/*
 * Orders that llama.cpp leaves to its C++ library. Where several tokens qualify,
 * the one that libstdc++'s containers put first decides; these functions replay
 * those containers (64-bit libstdc++, the reference build's). docs/design/stl-orders.md has an
 * example, the callers and the tests.
 */
#ifndef GGTOK_STL_ORDER_H
#define GGTOK_STL_ORDER_H

#include "base/mem.h"

/*
 * Iteration order of a std::unordered_map<std::string, ...> into which texts
 * arena[off[i] .. off[i+1]), i in [0, n), were inserted one by one: sets
 * *first to the index among candidates[0..n_candidates) whose text the
 * iteration meets first. False: out of memory.
 */
bool ggtok_stl_map_first(const uint8_t *arena, const uint32_t *off, uint32_t n,
                         const int32_t *candidates, size_t n_candidates, size_t *first);

/* std::sort: not stable, so the order of items that compare alike is the algorithm's own. Comparisons
 * that contradict each other, which lead the library's out of the array, stop at its bounds here.
 * True: x goes before y. */
typedef bool stl_less(void *user, int32_t x, int32_t y);
void ggtok_stl_sort(int32_t *items, size_t n, stl_less *less, void *user);

/* The same of ids[0..n) by descending key[id]. */
void ggtok_stl_sort_descending(int32_t *ids, size_t n, const uint32_t *key);

#endif
