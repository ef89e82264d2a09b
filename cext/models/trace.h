/*
 * The steps of one encode call, for ggtok_trace. A recorder of spans may have a trace, to
 * which encode_recorded reports its steps. encode_recorded uses no caches and never
 * encodes parts of a word separately, so its steps are llama.cpp's.
 *
 * The functions return false if memory runs out or the callback stops the trace; in both cases, the
 * model fails as if memory had run out.
 */
#ifndef GGTOK_MODEL_TRACE_H
#define GGTOK_MODEL_TRACE_H

#include "ggtok_trace.h"
#include "models/recorder.h"

typedef struct trace {
    bool (*fn)(void *user, ggtok_trace_event *event);
    void *user;
    size_t base;       /* offset of the fragment in the text */
    bool marks;        /* whether spaces in the model's text represent U+2581 */
    bytebuf marked[2]; /* buffers for texts with U+2581 */
} trace;

/* Returns the trace of the call, or NULL if it isn't traced. */
static inline trace *trace_of(const recorder *rec) {
    return rec ? rec->trace : NULL;
}

static inline bool trace_emit(const trace *t, ggtok_trace_event event) {
    return t->fn(t->user, &event);
}

/* Reports the word text[at..at + n) of the recorder's text, n >= 1; `end` is the end of the word's
 * source. */
bool ggtok_trace_word_until(recorder *rec, size_t at, size_t n, size_t end);
bool ggtok_trace_word(recorder *rec, size_t at, size_t n);
/* Reports the word p[0..n), whose source is source[begin..end). */
bool ggtok_trace_word_of(recorder *rec, const uint8_t *p, size_t n, size_t begin, size_t end);

bool ggtok_trace_symbol(recorder *rec, const uint8_t *p, size_t n);
/* Reports a merge (or a pair) of p[0..n) and the n_right bytes after it. `event` has the other
 * fields. */
bool ggtok_trace_merge(recorder *rec, ggtok_trace_event event, const uint8_t *p, size_t n,
                       size_t n_right);

/* Reports a token whose span is rec->made[i]. */
bool ggtok_trace_token_at(recorder *rec, ggtok_trace_event event, size_t i);
/* Reports the token of the last span, without a score. */
bool ggtok_trace_last(recorder *rec, int32_t id, ggtok_how how, const char *note);

static inline ggtok_bytes trace_note(const char *note) {
    return (ggtok_bytes){note, note ? strlen(note) : 0};
}

#endif
