#include "spaces.h"

bool spaces_escape(bytebuf *out, const uint8_t *p, size_t n) {
    if (!bytebuf_reserve(out, mem_mul(n, 3))) return false;
    uint8_t *w = out->data + out->n;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == ' ') {
            memcpy(w, SPACE_MARK, 3);
            w += 3;
        } else {
            *w++ = p[i];
        }
    }
    out->n = (size_t)(w - out->data);
    return true;
}

bool spaces_unescape(bytebuf *out, const uint8_t *p, size_t n) {
    if (!bytebuf_reserve(out, n)) return false;
    for (size_t i = 0; i < n;) {
        if (n - i >= 3 && !memcmp(p + i, SPACE_MARK, 3)) {
            out->data[out->n++] = ' ';
            i += 3;
        } else {
            out->data[out->n++] = p[i++];
        }
    }
    return true;
}
