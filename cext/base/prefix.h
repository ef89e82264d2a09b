/* Beginnings of UTF-8 text that split no character, for messages. The text may be malformed. */
#ifndef GGTOK_PREFIX_H
#define GGTOK_PREFIX_H

#include <stddef.h>
#include <stdint.h>

/* Returns the length of the longest prefix of at most `most` bytes that splits no character; an int,
 * because printf's precision is one. */
static inline int text_prefix(const void *text, size_t n, size_t most) {
    const uint8_t *bytes = (const uint8_t *)text;
    if (n <= most) return (int)n;
    for (n = most; n && (bytes[n] & 0xC0) == 0x80;) n--;
    return (int)n;
}

/* Removes an incomplete character from the end of a NUL-terminated text of n bytes, which may have
 * been cut anywhere. */
static inline void text_drop_partial(char *text, size_t n) {
    size_t begin = n;
    while (begin && ((uint8_t)text[begin - 1] & 0xC0) == 0x80) begin--;
    if (!begin) return;
    uint8_t lead = (uint8_t)text[begin - 1];
    size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (n - (begin - 1) < length) text[begin - 1] = 0;
}

#endif
