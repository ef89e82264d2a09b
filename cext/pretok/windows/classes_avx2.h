/*
 * Finds the lead bytes whose characters are all letters, with AVX2. The other classes use the SSE2
 * code, compiled for AVX2.
 */
#ifndef GGTOK_PRETOK_CLASSES_AVX2_H
#define GGTOK_PRETOK_CLASSES_AVX2_H

#include "base/window_levels.h"
#include "pretok/scan.h"

/* Like letters_only, by looking up the upper and the lower four bits of every byte. */
static TARGET_AVX2 uint64_t letters_only_avx2(const pretok_high *high, const uint8_t *p) {
    const __m256i rows =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)high->leads));
    const __m256i row =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8));
    const __m256i low_half = _mm256_set1_epi8(15);
    uint64_t others = 0;
    for (int i = 0; i < WINDOW; i += 32) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(p + i));
        __m256i high_half = _mm256_and_si256(_mm256_srli_epi16(x, 4), low_half);
        __m256i both = _mm256_and_si256(_mm256_shuffle_epi8(rows, _mm256_and_si256(x, low_half)),
                                        _mm256_shuffle_epi8(row, high_half));
        __m256i none = _mm256_cmpeq_epi8(both, _mm256_setzero_si256());
        others |= (uint64_t)(uint32_t)_mm256_movemask_epi8(none) << i;
    }
    return ~others;
}

#endif
