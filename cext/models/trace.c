#include "models/trace.h"

#include "unicode/space_mark.h"

/* Sets *out to p[0..n), with its spaces as U+2581 if the trace requires it; `slot` selects the
 * buffer for them. */
static bool shown(trace *t, int slot, const uint8_t *p, size_t n, ggtok_bytes *out) {
    *out = (ggtok_bytes){(const char *)p, n};
    if (!t->marks) return true;
    bytebuf *b = &t->marked[slot];
    b->n = 0;
    if (!ggtok_space_mark_escape(b, p, n)) return false;
    *out = (ggtok_bytes){(const char *)b->data, b->n};
    return true;
}

static bool word(trace *t, const uint8_t *p, size_t n, size_t begin, size_t end) {
    ggtok_trace_event e = {
        .kind = GGTOK_TRACE_WORD, .begin = t->base + begin, .end = t->base + end};
    return shown(t, 0, p, n, &e.text) && t->fn(t->user, &e);
}

bool ggtok_trace_word_until(text_guard *g, size_t at, size_t n, size_t end) {
    return word(g->trace, g->text.data + at, n, g->from[at].begin, end);
}

bool ggtok_trace_word(text_guard *g, size_t at, size_t n) {
    return ggtok_trace_word_until(g, at, n, g->from[at + n - 1].end);
}

bool ggtok_trace_word_of(text_guard *g, const uint8_t *p, size_t n, size_t begin, size_t end) {
    ggtok_range source = ggtok_guard_origin(g, begin, end);
    return word(g->trace, p, n, source.begin, source.end);
}

bool ggtok_trace_symbol(text_guard *g, const uint8_t *p, size_t n) {
    ggtok_trace_event e = {.kind = GGTOK_TRACE_SYMBOL};
    return shown(g->trace, 0, p, n, &e.text) && g->trace->fn(g->trace->user, &e);
}

bool ggtok_trace_merge(text_guard *g, ggtok_trace_event e, const uint8_t *p, size_t n,
                       size_t n_right) {
    return shown(g->trace, 0, p, n, &e.text) && shown(g->trace, 1, p + n, n_right, &e.right) &&
           g->trace->fn(g->trace->user, &e);
}

bool ggtok_trace_token_at(text_guard *g, ggtok_trace_event e, size_t i) {
    e.kind = GGTOK_TRACE_TOKEN;
    e.begin = g->trace->base + (size_t)g->made[i].begin;
    e.end = g->trace->base + (size_t)g->made[i].end;
    return g->trace->fn(g->trace->user, &e);
}

bool ggtok_trace_last(text_guard *g, int32_t id, ggtok_how how, const char *note) {
    ggtok_trace_event e = {.id = id, .how = how, .note = trace_note(note)};
    return ggtok_trace_token_at(g, e, g->n_made - 1);
}
