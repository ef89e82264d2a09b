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

bool ggtok_trace_word_until(recorder *rec, size_t at, size_t n, size_t end) {
    return word(rec->trace, rec->text.data + at, n, rec->from[at].begin, end);
}

bool ggtok_trace_word(recorder *rec, size_t at, size_t n) {
    return ggtok_trace_word_until(rec, at, n, rec->from[at + n - 1].end);
}

bool ggtok_trace_word_of(recorder *rec, const uint8_t *p, size_t n, size_t begin, size_t end) {
    ggtok_range source = ggtok_recorder_origin(rec, begin, end);
    return word(rec->trace, p, n, source.begin, source.end);
}

bool ggtok_trace_symbol(recorder *rec, const uint8_t *p, size_t n) {
    ggtok_trace_event e = {.kind = GGTOK_TRACE_SYMBOL};
    return shown(rec->trace, 0, p, n, &e.text) && rec->trace->fn(rec->trace->user, &e);
}

bool ggtok_trace_merge(recorder *rec, ggtok_trace_event e, const uint8_t *p, size_t n,
                       size_t n_right) {
    return shown(rec->trace, 0, p, n, &e.text) && shown(rec->trace, 1, p + n, n_right, &e.right) &&
           rec->trace->fn(rec->trace->user, &e);
}

bool ggtok_trace_token_at(recorder *rec, ggtok_trace_event e, size_t i) {
    e.kind = GGTOK_TRACE_TOKEN;
    e.begin = rec->trace->base + (size_t)rec->made[i].begin;
    e.end = rec->trace->base + (size_t)rec->made[i].end;
    return rec->trace->fn(rec->trace->user, &e);
}

bool ggtok_trace_last(recorder *rec, int32_t id, ggtok_how how, const char *note) {
    ggtok_trace_event e = {.id = id, .how = how, .note = trace_note(note)};
    return ggtok_trace_token_at(rec, e, rec->n_made - 1);
}
