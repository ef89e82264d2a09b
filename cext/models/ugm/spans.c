#include "models/ugm/spans.h"

#include "base/interrupt.h"
#include "base/window.h"

#include <string.h>

void ggtok_ugm_spans_begin(ugm_spans *s, bool newlines) {
    s->at = s->n = 0;
    s->newlines = newlines;
    s->open = false;
}

/* Adds the spans that end in the window at p, the 64 bytes at text[s->at..]. */
ALWAYS_INLINE void add(ugm_spans *s, const uint8_t *p) {
    uint64_t white = window_range(p, ' ', 1);
    if (s->newlines) white |= window_range(p, '\t', 2) | window_range(p, '\r', 1);
    uint64_t after = ~white << 1 | s->open; /* bytes after a byte of a span */
    uint64_t starts = ~white & ~after, ends = white & after;
    unsigned n = bits_count(ends);
    window_places(starts, bits_count(starts), s->at, s->start + s->n + s->open);
    window_places(ends, n, s->at, s->end + s->n);
    s->n += n;
    s->open = !(white >> 63);
}

ALWAYS_INLINE bool next(ugm_spans *s, const uint8_t *text, size_t n) {
    if (s->at >= n) return false;
    if (s->open) s->start[0] = s->start[s->n];
    s->n = 0;
    const size_t stop = n - s->at > INTERRUPT_EVERY ? s->at + INTERRUPT_EVERY : n;
    while (s->at < stop && s->n < UGM_SPANS - WINDOW) {
        size_t left = n - s->at;
        if (left >= WINDOW) {
            add(s, text + s->at);
            s->at += WINDOW;
        } else {
            uint8_t last[WINDOW];
            memset(last, ' ', sizeof last);
            memcpy(last, text + s->at, left);
            add(s, last);
            s->at = n;
        }
    }
    if (s->at == n && s->open) {
        s->end[s->n++] = n;
        s->open = false;
    }
    return true;
}

static TARGET_AVX2 bool next_avx2(ugm_spans *s, const uint8_t *text, size_t n) {
    return next(s, text, n);
}

bool ggtok_ugm_spans_next(ugm_spans *s, const uint8_t *text, size_t n) {
    return cpu_has_avx2() ? next_avx2(s, text, n) : next(s, text, n);
}
