/*
 * UTF-8 as llama.cpp reads it. Only length bits and continuation bits are checked, so overlong
 * forms and surrogates are decoded (utf8.c, is_decoded, has the rule). Each byte that isn't part of
 * such a sequence decodes to U+FFFD.
 *
 * "Well-formed in the wide sense", below, means: shortest forms of 0..10FFFF, surrogates included.
 * ggtok_utf8_sanitize (unicode/utf8_valid.h) converts any text to this form.
 */
#ifndef GGTOK_UTF8_H
#define GGTOK_UTF8_H

#include "base/mem.h"

#define UTF8_REPLACEMENT 0xFFFDu

/* Returns the sequence length that a lead byte announces; 1 for continuation bytes. Equals
 * llama.cpp's unicode_len_utf8. */
static inline size_t utf8_lead_len(uint8_t c) {
    return c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

static inline bool utf8_continues(uint8_t c) {
    return (c & 0xC0) == 0x80;
}

/* Decodes one code point of well-formed text and advances *p. */
static inline uint32_t utf8_next(const uint8_t **p) {
    const uint8_t *s = *p;
    uint32_t c = s[0];
    if (c < 0x80) return *p = s + 1, c;
    if (c < 0xE0) return *p = s + 2, (c & 0x1F) << 6 | (s[1] & 0x3F);
    if (c < 0xF0) return *p = s + 3, (c & 0x0F) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3F);
    *p = s + 4;
    return (c & 0x07) << 18 | (s[1] & 0x3Fu) << 12 | (s[2] & 0x3Fu) << 6 | (s[3] & 0x3F);
}

/*
 * Decodes one code point of arbitrary bytes, p < end, and returns the number of bytes used. Equals
 * llama.cpp's unicode_cpt_from_utf8, except that a malformed byte decodes to U+FFFD, as in
 * llama.cpp's caller of that function. Sequences above U+10FFFF, which abort llama.cpp, count as
 * malformed bytes.
 */
size_t ggtok_utf8_decode(const uint8_t *p, const uint8_t *end, uint32_t *cpt);

/* Like ggtok_utf8_decode, but values may be up to 1FFFFF, as in llama.cpp's function. */
size_t ggtok_utf8_decode_any(const uint8_t *p, const uint8_t *end, uint32_t *cpt);

/* Like ggtok_utf8_decode, but never decodes overlong forms. */
size_t ggtok_utf8_decode_shortest(const uint8_t *p, const uint8_t *end, uint32_t *cpt);

/* Writes cpt (<= 10FFFF) in its shortest form; returns the number of bytes, 1 to 4. */
size_t ggtok_utf8_encode(uint32_t cpt, uint8_t out[4]);

/* Writes cpts[0..n) (<= 10FFFF) in their shortest forms and returns the number of bytes, or
 * SIZE_MAX if any is a surrogate. `out` has room for 4 * n + UTF8_ROOM bytes. */
enum { UTF8_ROOM = 64 };
size_t ggtok_utf8_of_ucs4(const uint32_t *cpts, size_t n, uint8_t *out);

#endif
