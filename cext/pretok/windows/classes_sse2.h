/*
 * Classifies the bytes of a window with SSE2, which every x86-64 processor has.
 */
#ifndef GGTOK_PRETOK_CLASSES_SSE2_H
#define GGTOK_PRETOK_CLASSES_SSE2_H

#include "base/window.h"
#include "pretok/windows/shape.h"

/* Returns which bytes of x are in [lo, lo + n): a signed comparison after shifting the range to
 * start at -128. */
ALWAYS_INLINE __m128i in_range(__m128i x, uint8_t lo, uint8_t n) {
    __m128i moved = _mm_add_epi8(x, _mm_set1_epi8((char)(0x80 - lo)));
    return _mm_cmplt_epi8(moved, _mm_set1_epi8((char)(0x80 + n)));
}

ALWAYS_INLINE uint64_t bits(__m128i x, int at) {
    return (uint64_t)(uint32_t)_mm_movemask_epi8(x) << at;
}

ALWAYS_INLINE __m128i equal(__m128i x, char c) {
    return _mm_cmpeq_epi8(x, _mm_set1_epi8(c));
}

/* Finds $ + < = > ^ ` | ~: the ASCII characters in \p{S}. */
ALWAYS_INLINE __m128i symbols(__m128i x) {
    __m128i pipe_or_tilde = equal(_mm_or_si128(x, _mm_set1_epi8('|' ^ '~')), '~');
    __m128i rest = _mm_or_si128(_mm_or_si128(equal(x, '$'), equal(x, '+')),
                                _mm_or_si128(equal(x, '^'), equal(x, '`')));
    return _mm_or_si128(_mm_or_si128(in_range(x, '<', 3), pipe_or_tilde), rest);
}

ALWAYS_INLINE classes classify(const uint8_t *p, shape s) {
    classes c = {0};
    for (int i = 0; i < WINDOW; i += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        c.high |= bits(x, i);
        c.inner |= bits(_mm_cmplt_epi8(x, _mm_set1_epi8((char)0xC0)), i);
        c.letter |= bits(in_range(_mm_or_si128(x, _mm_set1_epi8(0x20)), 'a', 26), i);
        if (s.cased) c.upper |= bits(in_range(x, 'A', 26), i);
        c.digit |= bits(in_range(x, '0', 10), i);
        c.space |= bits(equal(x, ' '), i);
        c.other_white |= bits(in_range(x, '\t', 5), i);
        c.newline |= bits(_mm_or_si128(equal(x, '\n'), equal(x, '\r')), i);
        c.quote |= bits(equal(x, '\''), i);
        if (s.slashes) c.slash |= bits(equal(x, '/'), i);
        if (s.no_controls) {
            c.control |=
                bits(_mm_or_si128(in_range(x, 0, 0x20), _mm_cmpeq_epi8(x, _mm_set1_epi8(0x7F))), i);
        }
        if (s.no_backtick) c.control |= bits(equal(x, '`'), i);
        if (s.gaps == CODER) c.symbol |= bits(symbols(x), i);
    }
    c.other_white &= ~c.newline;
    return c;
}

#endif
