/*
 * Classifies the bytes of a window with AVX-512: each class takes one or two comparisons of all 64
 * bytes.
 */
#ifndef GGTOK_PRETOK_CLASSES_AVX512_H
#define GGTOK_PRETOK_CLASSES_AVX512_H

#include "base/window_levels.h"
#include "pretok/scan.h"
#include "pretok/windows/shape.h"

static inline TARGET_AVX512 classes classify_avx512(const uint8_t *p, shape s) {
#define IN(x, lo, n) \
    _mm512_cmplt_epu8_mask(_mm512_sub_epi8(x, _mm512_set1_epi8(lo)), _mm512_set1_epi8(n))
#define IS(x, c) _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(c))
    const __m512i x = _mm512_loadu_si512(p);
    classes c = {0};
    c.high = _mm512_movepi8_mask(x);
    c.inner = _mm512_cmplt_epi8_mask(x, _mm512_set1_epi8((char)0xC0));
    c.letter = IN(_mm512_or_si512(x, _mm512_set1_epi8(0x20)), 'a', 26);
    if (s.cased) c.upper = IN(x, 'A', 26);
    c.digit = IN(x, '0', 10);
    c.space = IS(x, ' ');
    c.newline = IS(x, '\n') | IS(x, '\r');
    c.other_white = IN(x, '\t', 5) & ~c.newline;
    c.quote = IS(x, '\'');
    if (s.slashes) c.slash = IS(x, '/');
    if (s.no_controls) c.control = IN(x, 0, 0x20) | IS(x, 0x7F);
    if (s.no_backtick) c.control |= IS(x, '`');
    if (s.gaps == CODER) {
        c.symbol = IN(x, '<', 3) | IS(x, '$') | IS(x, '+') | IS(x, '^') | IS(x, '`') | IS(x, '|') |
                   IS(x, '~');
    }
    return c;
#undef IN
#undef IS
}

/* Like letters_only, by looking up the upper and the lower four bits of every byte. */
static inline TARGET_AVX512 uint64_t letters_only_avx512(const pretok_high *high,
                                                         const uint8_t *p) {
    const __m512i rows =
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)high->leads));
    const __m512i row =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8));
    const __m512i low_half = _mm512_set1_epi8(15);
    __m512i x = _mm512_loadu_si512(p);
    __m512i high_half = _mm512_and_si512(_mm512_srli_epi16(x, 4), low_half);
    return _mm512_test_epi8_mask(_mm512_shuffle_epi8(rows, _mm512_and_si512(x, low_half)),
                                 _mm512_shuffle_epi8(row, high_half));
}

#endif
