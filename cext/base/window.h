/*
 * A window: 64 bytes of text as masks in which bit i stands for byte i. Shifts of the masks find
 * where words begin and end, without a branch for each byte.
 */
#ifndef GGTOK_WINDOW_H
#define GGTOK_WINDOW_H

#include "base/bits.h"
#include "base/cpu.h"

#include <stddef.h>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { WINDOW = 64 };

/* Returns the mask of the bytes at p[0..64) whose values are in [lo, lo + n). */
ALWAYS_INLINE uint64_t window_range(const uint8_t *p, uint8_t lo, uint8_t n) {
#if defined(__SSE2__) || defined(_M_X64)
    /* Comparisons are signed: shift the range to start at -128. */
    const __m128i by = _mm_set1_epi8((char)(0x80 - lo)), end = _mm_set1_epi8((char)(0x80 + n));
    uint64_t mask = 0;
    for (int i = 0; i < WINDOW; i += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        __m128i in = _mm_cmplt_epi8(_mm_add_epi8(x, by), end);
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(in) << i;
    }
    return mask;
#elif defined(__ARM_NEON) && defined(__aarch64__)
    const uint8x16_t weight = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t in[4];
    for (int i = 0; i < 4; i++) {
        uint8x16_t moved = vsubq_u8(vld1q_u8(p + 16 * i), vdupq_n_u8(lo));
        in[i] = vandq_u8(vcltq_u8(moved, vdupq_n_u8(n)), weight);
    }
    uint8x16_t sum = vpaddq_u8(vpaddq_u8(in[0], in[1]), vpaddq_u8(in[2], in[3]));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sum, sum)), 0);
#else
    uint64_t mask = 0;
    for (int i = 0; i < WINDOW; i++) mask |= (uint64_t)((uint8_t)(p[i] - lo) < n) << i;
    return mask;
#endif
}

/* Returns a mask of bits 0 to n - 1; n <= 64. */
ALWAYS_INLINE uint64_t window_first(unsigned n) {
    return n < WINDOW ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0;
}

/* Writes `at` plus the index of each of the n bits of `set` to `places`, which has room for 64.
 * Since n is unpredictable, the loop writes groups of eight, so that few branches depend on n. */
ALWAYS_INLINE void window_places(uint64_t set, unsigned n, size_t at, size_t *places) {
    for (unsigned i = 0; i < n; i += 8) {
        for (unsigned k = 0; k < 8; k++) {
            places[i + k] = at + bits_lowest(set | (uint64_t)1 << 63);
            set &= set - 1;
        }
    }
}

#endif
