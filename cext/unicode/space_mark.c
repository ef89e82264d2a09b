#include "unicode/space_mark.h"

static bool marked(const uint8_t *p, size_t n) {
    return n >= 3 && !memcmp(p, SPACE_MARK, 3);
}

bool ggtok_space_mark_escape(bytebuf *out, const uint8_t *p, size_t n) {
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

bool ggtok_space_mark_escape_lines(bytebuf *out, const uint8_t *p, size_t n) {
    while (n) {
        const uint8_t *newline = memchr(p, '\n', n);
        size_t line = newline ? (size_t)(newline - p) : n;
        bool mark = line && *p != ' ' && !marked(p, line);
        if (mark && !bytebuf_append(out, SPACE_MARK, 3)) return false;
        if (newline) line++;
        if (!ggtok_space_mark_escape(out, p, line)) return false;
        p += line;
        n -= line;
    }
    return true;
}

bool ggtok_space_mark_unescape(bytebuf *out, const uint8_t *p, size_t n) {
    if (!bytebuf_reserve(out, n)) return false;
    uint8_t *w = out->data + out->n;
    for (size_t i = 0; i < n;) {
        if (p[i] == (uint8_t)SPACE_MARK[0] && marked(p + i, n - i)) {
            *w++ = ' ';
            i += 3;
        } else {
            *w++ = p[i++];
        }
    }
    out->n = (size_t)(w - out->data);
    return true;
}
