/* Converts code points to UTF-8, 16 at a time with AVX-512. */
#include "base/bits.h"
#include "base/cpu.h"
#include "unicode/utf8.h"

static size_t encode(const uint32_t *cpts, size_t n, uint8_t *out) {
    uint8_t *to = out;
    for (size_t i = 0; i < n; i++) {
        const uint32_t c = cpts[i];
        if (c < 0x80) {
            *to++ = (uint8_t)c;
        } else if (c < 0x800) {
            to[0] = (uint8_t)(0xC0 | c >> 6);
            to[1] = (uint8_t)(0x80 | (c & 0x3F));
            to += 2;
        } else if (c < 0x10000) {
            if (c >> 11 == 0xD800 >> 11) return SIZE_MAX;
            to[0] = (uint8_t)(0xE0 | c >> 12);
            to[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
            to[2] = (uint8_t)(0x80 | (c & 0x3F));
            to += 3;
        } else {
            to += ggtok_utf8_encode(c, to);
        }
    }
    return (size_t)(to - out);
}

#ifdef CPU_DISPATCH
#include <immintrin.h>

/* Right-aligns the bytes of each code point in a lane of four bytes, then drops the zero bytes
 * before them. */
static TARGET_AVX512 size_t encode_avx512(const uint32_t *cpts, size_t n, uint8_t *out) {
    enum { AT_ONCE = 16 };
    const __m512i six_bits = _mm512_set1_epi32(0x3F);
    const uint64_t last_bytes = 0x8888888888888888u; /* kept even if 0, for U+0000 */
    uint8_t *to = out;
    for (size_t i = 0; i < n; i += AT_ONCE) {
        size_t count = n - i < AT_ONCE ? n - i : AT_ONCE;
        __mmask16 here = (__mmask16)((1u << count) - 1);
        __m512i c = _mm512_maskz_loadu_epi32(here, cpts + i);
        __mmask16 many = _mm512_cmpge_epu32_mask(c, _mm512_set1_epi32(0x80));
        if (!many) {
            _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8(c));
            to += count;
            continue;
        }
        __m512i high = _mm512_and_si512(c, _mm512_set1_epi32((int)0xFFFFF800));
        if (_mm512_cmpeq_epi32_mask(high, _mm512_set1_epi32(0xD800))) return SIZE_MAX;
        __mmask16 three = _mm512_cmpge_epu32_mask(c, _mm512_set1_epi32(0x800));
        __mmask16 four = _mm512_cmpge_epu32_mask(c, _mm512_set1_epi32(0x10000));
        __m512i tags = _mm512_set1_epi32((int)0x80C00000);
        tags = _mm512_mask_mov_epi32(tags, three, _mm512_set1_epi32((int)0x8080E000));
        tags = _mm512_mask_mov_epi32(tags, four, _mm512_set1_epi32((int)0x808080F0));
        __m512i first = _mm512_srli_epi32(c, 18);
        __m512i second = _mm512_and_si512(_mm512_srli_epi32(c, 12), six_bits);
        __m512i third = _mm512_and_si512(_mm512_srli_epi32(c, 6), six_bits);
        __m512i fourth = _mm512_slli_epi32(_mm512_and_si512(c, six_bits), 24);
        __m512i bytes = _mm512_or_si512(
            _mm512_or_si512(_mm512_or_si512(first, tags), _mm512_slli_epi32(second, 8)),
            _mm512_or_si512(_mm512_slli_epi32(third, 16), fourth));
        bytes = _mm512_mask_mov_epi32(_mm512_slli_epi32(c, 24), many, bytes);
        uint64_t kept = _mm512_test_epi8_mask(bytes, bytes) | last_bytes;
        if (count < AT_ONCE) kept &= ((uint64_t)1 << 4 * count) - 1;
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(kept, bytes));
        to += bits_count(kept);
    }
    return (size_t)(to - out);
}
#endif

size_t ggtok_utf8_of_ucs4(const uint32_t *cpts, size_t n, uint8_t *out) {
#ifdef CPU_DISPATCH
    if (cpu_has_avx512()) return encode_avx512(cpts, n, out);
#endif
    return encode(cpts, n, out);
}
