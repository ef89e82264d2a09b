/*
 * The models: raw text -> ids. One row of operations per vocabulary type; each
 * has a file or folder of its own and keeps to these functions.
 */
#ifndef GGTOK_MODEL_H
#define GGTOK_MODEL_H

#include "base/interrupt.h"
#include "models/guard.h"
#include "vocab/vocab.h"

/* Words, or pieces, that a context's cache held, and those that had to be tokenized. */
typedef struct cache_counts {
    uint64_t hits, misses;
} cache_counts;

/* The spans of the ids of one fragment, assigned while they are made: see docs/design/offsets.md.
 * data[i] is id out->data[i]'s span, `base` added to the fragment's places. */
typedef struct span_buf {
    ggtok_span *data;
    size_t cap;
    int64_t base;
    bool assigned; /* set by a model that has assigned all spans of its fragment */
} span_buf;

/* What one encode call hands to a model. */
typedef struct model_call {
    const vocab *v;
    const void *model;  /* what build() made; immutable */
    void *scratch;      /* what scratch_new() made; this thread's own */
    bool after_special; /* the text starts the input or follows a special token */
    idbuf *out;         /* ids are appended here */
    cache_counts *counts;
    ggtok_error *err;
    interrupt *interrupt; /* NULL: nobody is asked */
    text_guard *guard;    /* encode_guarded's; else NULL */
    span_buf *spans;      /* for `encode` to assign, if it can; NULL: not asked for */
} model_call;

/* A place in raw text between two characters, both well-formed. No other character that a
 * model may read reaches across it, or across the beginning of the first. */
typedef struct model_place {
    const uint8_t *text;
    size_t start, at;       /* text[start..at) is the first, text[at..] begins with the second */
    uint32_t before, after; /* their code points */
} model_place;

/* Raw text and the ids that `encode` made of it; spans[n_ids] is where these come from, `base` added
 * to the text's places. */
typedef struct model_source {
    const uint8_t *text;
    size_t n;
    const int32_t *ids;
    size_t n_ids;
    ggtok_span *spans;
    int64_t base;
} model_source;

typedef struct model_ops {
    /* Builds the immutable part from the vocabulary and the file (merges, charsmap). */
    ggtok_status (*build)(const vocab *v, const gguf *g, const ggtok_load_options *options,
                          void **model, ggtok_error *err);
    void (*free)(void *model);                               /* NULL is allowed */
    void *(*scratch_new)(const vocab *v, const void *model); /* NULL: out of memory */
    void (*scratch_free)(void *scratch);                     /* NULL is allowed */
    /* Appends the ids of text[0..n), n >= 1, any bytes. */
    ggtok_status (*encode)(const model_call *call, const uint8_t *text, size_t n);
    /* The same under call->guard, whose source the text is. */
    ggtok_status (*encode_guarded)(const model_call *call, const uint8_t *text, size_t n);
    /* Finds spans by the ids' lengths, for an `encode` that does not assign them. False if these don't
     * tell, or there is no memory: encode_guarded does. NULL: always. */
    bool (*place)(const model_call *call, const model_source *source);
    size_t (*cache_bytes)(const void *scratch); /* NULL: there is no cache */
    /* Are the ids of any text that has this place those of its two parts? May say no wrongly.
     * NULL: always no. */
    bool (*may_cut)(const vocab *v, const void *model, void *scratch, const model_place *place);
    /* Were two models, of vocabularies with the same tokens and flags, built from the same merges
     * and charsmap? NULL: a model of this kind is built from tokens and flags alone. */
    bool (*same)(const void *a, const void *b);
} model_ops;

extern const model_ops ggtok_model_bpe, ggtok_model_spm, ggtok_model_wpm, ggtok_model_ugm,
    ggtok_model_rwkv, ggtok_model_plamo2, ggtok_model_test, ggtok_model_hybriddna,
    ggtok_model_whitespace;

#endif
