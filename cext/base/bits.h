/* Bit operations on 64-bit masks. For bits_lowest and bits_highest, x must not be 0. */
#ifndef GGTOK_BITS_H
#define GGTOK_BITS_H

#include <stdint.h>

#if defined(__GNUC__)
#define bits_lowest(x) ((unsigned)__builtin_ctzll(x))
#define bits_highest(x) (63u - (unsigned)__builtin_clzll(x))
#define bits_count(x) ((unsigned)__builtin_popcountll(x))
#else
static inline unsigned bits_count(uint64_t x) {
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
    return (unsigned)(x * 0x0101010101010101u >> 56);
}
static inline unsigned bits_lowest(uint64_t x) {
    return bits_count((x & (0 - x)) - 1);
}
static inline unsigned bits_highest(uint64_t x) {
    for (int shift = 1; shift < 64; shift *= 2) x |= x >> shift;
    return bits_count(x) - 1;
}
#endif

#endif
