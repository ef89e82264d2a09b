/*
 * The models: raw text -> ids. Each vocabulary type has one row of operations, implemented in a
 * separate file or folder, and is used only through these functions.
 */
#ifndef GGTOK_MODEL_H
#define GGTOK_MODEL_H

#include "base/error.h"
#include "ggtok_trace.h"
#include "models/recorder.h"
#include "models/sampling.h"
#include "vocab/vocab.h"

/* Hits and misses in a context's caches, counted in words or pieces. */
typedef struct cache_counts {
    uint64_t hits, misses;
} cache_counts;

/* The spans of the ids of one fragment, assigned while it is encoded; see docs/design/offsets.md.
 * data[i] is the span of the id out->data[i]; `base` is added to offsets in the fragment. */
typedef struct span_buf {
    ggtok_span *data;
    size_t cap;
    int64_t base;
    bool assigned;      /* set by a model that has assigned all spans of its fragment */
    recorder *recorder; /* for parts of the fragment that must be encoded again */
} span_buf;

/* The arguments of one call to a model's encode functions. */
typedef struct model_call {
    const vocab *v;
    const void *model;  /* made by build(); immutable */
    void *scratch;      /* made by scratch_new(); owned by this thread */
    bool after_special; /* whether the text starts the input or follows a special token */
    idbuf *out;         /* ids are appended here */
    cache_counts *counts;
    ggtok_error *err;
    interrupt *interrupt; /* NULL: the call can't be stopped */
    recorder *recorder;   /* for encode_recorded; otherwise NULL */
    span_buf *spans;      /* spans for `encode` to assign, if it can; NULL: no spans requested */
    sampling *sampling;   /* for a random segmentation, if the model has samples; else NULL */
} model_call;

/* The status of a call in which a function returned false: stopped, refused by a trace, or out of
 * memory. */
static inline ggtok_status ggtok_call_failed(const model_call *call) {
    return ggtok_error_failed(call->interrupt, call->err);
}

/* A position in raw text between two well-formed characters. Neither this position nor the
 * beginning of the first character is inside a sequence of bytes that a model may read as one
 * character. */
typedef struct model_place {
    const uint8_t *text;
    size_t start, at;       /* text[start..at) is the first; the second begins at text[at] */
    uint32_t before, after; /* the code points of the two characters */
} model_place;

/* Text, the ids that `encode` appended for it, and their spans, which are to be assigned. `base` is
 * added to offsets in the text. */
typedef struct model_source {
    const uint8_t *text;
    size_t n;
    const int32_t *ids;
    size_t n_ids;
    ggtok_span *spans;
    int64_t base;
} model_source;

typedef struct model_ops {
    /* Builds the immutable model from the vocabulary and the file (merges, charsmap). */
    ggtok_status (*build)(const vocab *v, const gguf *g, const ggtok_load_options *options,
                          void **model, ggtok_error *err);
    void (*free)(void *model);                               /* accepts NULL */
    void *(*scratch_new)(const vocab *v, const void *model); /* NULL: out of memory */
    void (*scratch_free)(void *scratch);                     /* accepts NULL */
    /* Appends the ids of text[0..n), n >= 1, which may contain any bytes. With call->spans, also
     * assigns their spans, if the model finds words, and lengths determine the spans of each. */
    ggtok_status (*encode)(const model_call *call, const uint8_t *text, size_t n);
    /* Appends the ids that call->recorder allows, and records their spans if it does; its source is
     * the text. */
    ggtok_status (*encode_recorded)(const model_call *call, const uint8_t *text, size_t n);
    /* Assigns spans from the lengths of the tokens. Returns false if these don't determine the spans,
     * or if memory runs out; use encode_recorded then. NULL: only `encode` assigns spans. */
    bool (*tile)(const model_call *call, const model_source *source);
    size_t (*cache_bytes)(const void *scratch); /* NULL: the model has no cache */
    /* Whether text can be cut at this position: whatever precedes and follows, the ids of the two
     * parts, joined, are those of the text. May return false even if so. NULL: always false. */
    bool (*may_cut)(const vocab *v, const void *model, void *scratch, const model_place *place);
    /* Merges a token's own text and appends the resulting ids. Reports these merges, and the pairs
     * that merge into the token, to call->recorder->trace. Sets *out; out->reached is false if merging
     * can't produce the token's text. NULL: the model has no merges. */
    ggtok_status (*trace_token)(const model_call *call, uint32_t id, ggtok_token_trace *out);
    /* Whether two models, of vocabularies with the same tokens and flags, were built from the same
     * merges and charsmap. NULL: models of this type depend only on tokens and flags. */
    bool (*same)(const void *a, const void *b);
    unsigned samples; /* the rules by which `encode` can sample: bits from sampling.h */
} model_ops;

extern const model_ops ggtok_model_bpe, ggtok_model_spm, ggtok_model_wpm, ggtok_model_ugm,
    ggtok_model_rwkv, ggtok_model_plamo2, ggtok_model_test, ggtok_model_hybriddna,
    ggtok_model_whitespace;

#endif
