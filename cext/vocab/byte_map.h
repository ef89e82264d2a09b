/*
 * GPT-2's byte map: byte-level vocabularies represent each byte by one printable character. Bytes
 * that are printable in Latin-1 represent themselves; the others are represented, in order, by the
 * characters from U+0100 on.
 */
#ifndef GGTOK_BYTE_MAP_H
#define GGTOK_BYTE_MAP_H

#include "unicode/utf8.h"

/* Returns the byte that a character represents, or -1 if it represents none. */
static inline int byte_map_byte(uint32_t c) {
    if ((c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xFF && c != 0xAD)) return (int)c;
    if (c >= 0x100 && c <= 0x120) return (int)(c - 0x100);
    if (c >= 0x121 && c <= 0x142) return (int)(c - 0x121 + 0x7F);
    return c == 0x143 ? 0xAD : -1;
}

/* Returns byte_map_byte of the character at p < end. Sets *cpt to the character and *n to its
 * length in bytes. */
static inline int byte_map_byte_at(const uint8_t *p, const uint8_t *end, uint32_t *cpt, size_t *n) {
    if (*p < 0x80 || *p > 0xC5 || *p < 0xC2 || end - p < 2 || !utf8_continues(p[1])) {
        *n = ggtok_utf8_decode(p, end, cpt);
    } else { /* a two-byte character, as for all bytes beyond ASCII */
        *cpt = (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
        *n = 2;
    }
    return byte_map_byte(*cpt);
}

static inline uint32_t byte_map_char(uint8_t b) {
    if ((b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD)) return b;
    return b < 0x21 ? 0x100u + b : b < 0xA1 ? 0x100u + 0x21 + (b - 0x7Fu) : 0x143u;
}

/* Writes the character that represents a byte, in UTF-8; returns its length, 1 or 2. */
static inline size_t byte_map_spell(uint8_t byte, uint8_t out[2]) {
    uint8_t utf8[4];
    size_t n = ggtok_utf8_encode(byte_map_char(byte), utf8);
    memcpy(out, utf8, 2);
    return n;
}

/* Whether the first n of the 16 bytes at p are all in the range '!' to '~', whose bytes represent
 * themselves. */
static inline bool byte_map_is_plain(const uint8_t *p, size_t n) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = 0x0101010101010101u;
    uint64_t x[2], odd = 0;
    memcpy(x, p, 16);
    for (size_t i = 0; i < 2; i++, n = n > 8 ? n - 8 : 0) {
        uint64_t after = n < 8 ? ~(uint64_t)0 << 8 * n : 0;
        uint64_t y = (x[i] & ~after) | ('a' * ones & after);
        odd |= (y - '!' * ones) | (y + ones) | y; /* also set for a byte that borrows or carries */
    }
    return !(odd & 0x80 * ones);
#else
    while (n && p[n - 1] > 0x20 && p[n - 1] < 0x7F) n--;
    return !n;
#endif
}

#endif
