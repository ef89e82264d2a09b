/*
 * The functions of base/window.h that the levels of base/cpu.h implement differently. Only code that
 * is compiled for every level includes this: <immintrin.h> takes half a second to compile.
 */
#ifndef GGTOK_WINDOW_LEVELS_H
#define GGTOK_WINDOW_LEVELS_H

#include "base/window.h"

#ifdef CPU_DISPATCH
#include <immintrin.h>

static inline TARGET_AVX512 uint64_t window_range_avx512(const uint8_t *p, uint8_t lo, uint8_t n) {
    __m512i moved = _mm512_sub_epi8(_mm512_loadu_si512(p), _mm512_set1_epi8((char)lo));
    return _mm512_cmplt_epu8_mask(moved, _mm512_set1_epi8((char)n));
}

static inline TARGET_AVX512 void window_places_avx512(uint64_t set, unsigned n, size_t at,
                                                      size_t *places) {
    static const uint8_t each[WINDOW] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
    };
    uint8_t found[WINDOW];
    _mm512_storeu_si512(found, _mm512_maskz_compress_epi8(set, _mm512_loadu_si512(each)));
    for (unsigned i = 0; i < n; i += 8) {
        __m128i eight = _mm_loadl_epi64((const __m128i *)(const void *)(found + i));
        __m512i from = _mm512_set1_epi64((long long)at);
        _mm512_storeu_si512(places + i, _mm512_add_epi64(_mm512_cvtepu8_epi64(eight), from));
    }
}
#else
#define window_range_avx512 window_range
#define window_places_avx512 window_places
#endif

/* Calls the version of window_range for the level `on`. */
ALWAYS_INLINE uint64_t window_range_on(cpu_level on, const uint8_t *p, uint8_t lo, uint8_t n) {
    return on == CPU_AVX512 ? window_range_avx512(p, lo, n) : window_range(p, lo, n);
}

/* Calls the version of window_places for the level `on`. */
ALWAYS_INLINE void window_places_on(cpu_level on, uint64_t set, unsigned n, size_t at,
                                    size_t *places) {
    if (on == CPU_AVX512) {
        window_places_avx512(set, n, at, places);
    } else {
        window_places(set, n, at, places);
    }
}

#endif
