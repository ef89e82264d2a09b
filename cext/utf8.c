#include "utf8.h"

size_t utf8_decode(const uint8_t *p, const uint8_t *end, uint32_t *cpt) {
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
    if (c > 0x10FFFF) return 1;
    return *cpt = c, n;
}

size_t utf8_encode(uint32_t cpt, uint8_t out[4]) {
    if (cpt < 0x80) {
        out[0] = (uint8_t)cpt;
        return 1;
    }
    size_t n = cpt < 0x800 ? 2 : cpt < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, cpt >>= 6) out[i] = 0x80 | (cpt & 0x3F);
    out[0] = (uint8_t)(0xF0u << (4 - n) | cpt);
    return n;
}

/* Length of the well-formed sequence at p, or 0. The second byte's bounds rule
 * out overlong forms and what lies above 10FFFF. */
static size_t well_formed(const uint8_t *p, size_t n) {
    uint8_t c = p[0];
    if (c < 0x80) return 1;
    if (c < 0xC2 || c > 0xF4) return 0;
    size_t len = utf8_lead_len(c);
    if (n < len || !utf8_continues(p[1])) return 0;
    if ((c == 0xE0 && p[1] < 0xA0) || (c == 0xF0 && p[1] < 0x90) || (c == 0xF4 && p[1] > 0x8F))
        return 0;
    for (size_t i = 2; i < len; i++)
        if (!utf8_continues(p[i])) return 0;
    return len;
}

size_t utf8_valid_prefix(const uint8_t *p, size_t n) {
    size_t i = 0;
    while (i < n) {
        if (p[i] < 0x80) { /* eight or sixteen ASCII bytes at a time */
            uint64_t a, b;
            while (n - i >= 16) {
                memcpy(&a, p + i, 8);
                memcpy(&b, p + i + 8, 8);
                if ((a | b) & 0x8080808080808080u) break;
                i += 16;
            }
            while (i < n && p[i] < 0x80) i++;
            continue;
        }
        /* Runs of two- and three-byte characters, the rest one by one. */
        while (n - i >= 2 && p[i] >= 0xC2 && p[i] < 0xE0 && utf8_continues(p[i + 1])) i += 2;
        while (n - i >= 3 && p[i] > 0xE0 && p[i] < 0xF0 && utf8_continues(p[i + 1]) &&
               utf8_continues(p[i + 2]))
            i += 3;
        if (i == n) break;
        size_t len = well_formed(p + i, n - i);
        if (!len) break;
        i += len;
    }
    return i;
}

bool utf8_sanitize(bytebuf *out, const uint8_t *p, size_t n) {
    size_t i = 0;
    while (i < n) {
        size_t good = utf8_valid_prefix(p + i, n - i);
        if (!bytebuf_append(out, p + i, good)) return false;
        i += good;
        if (i == n) break;
        uint32_t cpt;
        uint8_t c[4];
        i += utf8_decode(p + i, p + n, &cpt);
        if (!bytebuf_append(out, c, utf8_encode(cpt, c))) return false;
    }
    return true;
}
