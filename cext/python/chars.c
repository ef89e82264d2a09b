/* Spans in code points. */
#include "base/bits.h"
#include "python/state.h"

/* A place in the text, and how many characters begin before it. */
typedef struct place {
    size_t at, chars;
} place;

/* How many of p[0..n) are no continuation bytes; `room` bytes (>= n) may be read. */
static size_t count_chars(const uint8_t *p, size_t n, size_t room) {
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
    }
    return count;
}

static place move(const uint8_t *text, size_t n, place from, size_t to) {
    return (place){to, from.chars + count_chars(text + from.at, to - from.at, n - from.at)};
}

/* No span begins before the one before it does. */
void entry_spans_in_chars(const char *utf8, size_t n, ggtok_span *spans, size_t n_spans) {
    const uint8_t *text = (const uint8_t *)utf8;
    place begin = {0, 0}, end = {0, 0};
    for (size_t i = 0; i < n_spans; i++) {
        size_t from = (size_t)spans[i].begin, to = (size_t)spans[i].end;
        begin = move(text, n, from >= end.at ? end : begin, from);
        end = move(text, n, begin, to);
        bool inside = from < n && (text[from] & 0xC0) == 0x80; /* a character that begins before */
        spans[i].begin = (int64_t)(begin.chars - inside);
        spans[i].end = to > from ? (int64_t)end.chars : spans[i].begin;
    }
}
