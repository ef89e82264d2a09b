/*
 * Orders that llama.cpp leaves to its C++ library. Where several tokens qualify,
 * the one that libstdc++'s containers put first decides; these functions replay
 * those containers (64-bit libstdc++, the reference build's).
 */
#ifndef GGTOK_STL_ORDER_H
#define GGTOK_STL_ORDER_H

#include "mem.h"

/*
 * Iteration order of a std::unordered_map<std::string, ...> into which texts
 * arena[off[i] .. off[i+1]), i in [0, n), were inserted one by one: sets
 * *first to the index among candidates[0..n_candidates) whose text the
 * iteration meets first. False: out of memory.
 */
bool stl_map_first(const uint8_t *arena, const uint32_t *off, uint32_t n, const int32_t *candidates,
                   size_t n_candidates, size_t *first);

/* std::sort of ids[0..n) by descending key[id]: not stable, so the order of
 * equal keys is the algorithm's own. */
void stl_sort_descending(int32_t *ids, size_t n, const uint32_t *key);

#endif
