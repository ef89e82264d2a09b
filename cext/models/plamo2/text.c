/* Writes characters up to 1FFFFF, as PLaMo2 does. */
#include "models/plamo2/plamo2.h"
#include "unicode/utf8.h"

size_t ggtok_plamo2_encode(uint32_t c, uint8_t out[4]) {
    if (c <= 0x10FFFF) return ggtok_utf8_encode(c, out);
    out[0] = (uint8_t)(0xF0 | c >> 18);
    for (int i = 1; i < 4; i++) out[i] = (uint8_t)(0x80 | (c >> (18 - 6 * i) & 0x3F));
    return 4;
}

bool ggtok_plamo2_repair(bytebuf *out, const uint8_t *p, size_t n, interrupt *in) {
    for (size_t i = 0; i < n;) {
        uint32_t cpt;
        i += ggtok_utf8_decode_any(p + i, p + n, &cpt);
        if (interrupted(in, 4)) return false;
        if (!bytebuf_reserve(out, 4)) return false;
        out->n += ggtok_plamo2_encode(cpt, out->data + out->n);
    }
    return true;
}
