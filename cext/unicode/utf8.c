#include "unicode/utf8.h"

static bool is_shortest(uint32_t c, size_t n) {
    return n == (c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4) && c <= 0x10FFFF;
}

/* The rule: whether llama.cpp decodes a form of n bytes with the value c. b11549 decodes every form,
 * also overlong ones and values above 10FFFF. In b11739, each byte of such a form is malformed: to
 * get its ids, return is_shortest(c, n). */
static bool is_decoded(uint32_t c, size_t n) {
    (void)c, (void)n;
    return true;
}

static inline size_t decode(const uint8_t *p, const uint8_t *end,
                            bool (*accepts)(uint32_t c, size_t n), uint32_t *cpt) {
    uint32_t c = p[0];
    if (c < 0x80) return *cpt = c, 1;
    size_t n = utf8_lead_len(p[0]);
    *cpt = UTF8_REPLACEMENT;
    if (n < 2 || c >= 0xF8 || (size_t)(end - p) < n) return 1;
    c &= 0x7Fu >> n;
    for (size_t i = 1; i < n; i++) {
        if (!utf8_continues(p[i])) return 1;
        c = c << 6 | (p[i] & 0x3F);
    }
    return accepts(c, n) ? (*cpt = c, n) : 1;
}

size_t ggtok_utf8_decode_any(const uint8_t *p, const uint8_t *end, uint32_t *cpt) {
    return decode(p, end, is_decoded, cpt);
}

size_t ggtok_utf8_decode(const uint8_t *p, const uint8_t *end, uint32_t *cpt) {
    size_t n = decode(p, end, is_decoded, cpt);
    return *cpt > 0x10FFFF ? (*cpt = UTF8_REPLACEMENT, 1) : n;
}

size_t ggtok_utf8_decode_shortest(const uint8_t *p, const uint8_t *end, uint32_t *cpt) {
    return decode(p, end, is_shortest, cpt);
}

size_t ggtok_utf8_encode(uint32_t cpt, uint8_t out[4]) {
    if (cpt < 0x80) {
        out[0] = (uint8_t)cpt;
        return 1;
    }
    size_t n = cpt < 0x800 ? 2 : cpt < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, cpt >>= 6) out[i] = 0x80 | (cpt & 0x3F);
    out[0] = (uint8_t)(0xF0u << (4 - n) | cpt);
    return n;
}
