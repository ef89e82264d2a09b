/* Converts spans to code points or UTF-16 code units. */
#include "api/tokenizer.h"
#include "base/bits.h"

/* A position in the text, in bytes, and the number of units of the characters that begin before
 * it. */
typedef struct place {
    size_t at, units;
} place;

/* Returns the number of units of the characters that begin in p[0..n): one for each byte that isn't
 * a continuation byte; in UTF-16, two for a four-byte character. `room` bytes (>= n) are
 * readable. */
static size_t count_units(const uint8_t *p, size_t n, size_t room, bool utf16) {
    const uint64_t each = 0x0101010101010101u;
    size_t count = n;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t x = 0;
        size_t left = n - i;
        memcpy(&x, p + i, room - i < 8 ? room - i : 8);
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (left < 8) x &= ((uint64_t)1 << 8 * left) - 1;
#else
        if (left < 8) x &= ~(UINT64_MAX >> 8 * left);
#endif
        count -= bits_count(x >> 7 & ~(x >> 6) & each);
        if (utf16) count += bits_count(x >> 7 & x >> 6 & x >> 5 & x >> 4 & each);
    }
    return count;
}

static place move(const uint8_t *text, size_t n, place from, size_t to, bool utf16) {
    size_t units = count_units(text + from.at, to - from.at, n - from.at, utf16);
    return (place){to, from.units + units};
}

/* Returns the number of units of the character that text[at] continues, or 0 if text[at] doesn't
 * continue a character. */
static size_t units_inside(const uint8_t *text, size_t n, size_t at, bool utf16) {
    if (at == n || (text[at] & 0xC0) != 0x80) return 0;
    while (at && (text[at] & 0xC0) == 0x80) at--;
    if ((text[at] & 0xC0) == 0x80) return 0; /* malformed: the text begins inside a character */
    return utf16 && text[at] >= 0xF0 ? 2 : 1;
}

void ggtok_convert_spans(const char *utf8, size_t n, ggtok_span *spans, size_t n_spans,
                         ggtok_unit unit) {
    const uint8_t *text = (const uint8_t *)utf8;
    bool utf16 = unit == GGTOK_UNIT_UTF16;
    if (unit == GGTOK_UNIT_BYTE) return;
    place begin = {0, 0}, end = {0, 0};
    for (size_t i = 0; i < n_spans; i++) {
        size_t from = (size_t)spans[i].begin, to = (size_t)spans[i].end;
        begin = move(text, n, from >= end.at ? end : begin, from, utf16);
        end = move(text, n, begin, to, utf16);
        spans[i].begin = (int64_t)(begin.units - units_inside(text, n, from, utf16));
        spans[i].end = to > from ? (int64_t)end.units : spans[i].begin;
    }
}
