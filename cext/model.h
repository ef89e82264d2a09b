/*
 * The models: raw text -> ids. One row of operations per vocabulary type; each
 * lives in its own model_*.c and keeps to these four functions.
 */
#ifndef GGTOK_MODEL_H
#define GGTOK_MODEL_H

#include "vocab.h"

/* Words, or pieces, that a context's cache held, and those that had to be tokenized. */
typedef struct cache_counts {
    uint64_t hits, misses;
} cache_counts;

/* What one encode call hands to a model. */
typedef struct model_call {
    const vocab *v;
    const void *model;  /* what build() made; immutable */
    void *scratch;      /* what scratch_new() made; this thread's own */
    bool after_special; /* the text starts the input or follows a special token */
    idbuf *out;         /* ids are appended here */
    cache_counts *counts;
    ggtok_error *err;
} model_call;

typedef struct model_ops {
    /* Builds the immutable part from the vocabulary and the file (merges, charsmap). */
    ggtok_status (*build)(const vocab *v, const gguf *g, const ggtok_load_options *options,
                          void **model, ggtok_error *err);
    void (*free)(void *model);                               /* NULL is allowed */
    void *(*scratch_new)(const vocab *v, const void *model); /* NULL: out of memory */
    void (*scratch_free)(void *scratch);                     /* NULL is allowed */
    /* Appends the ids of text[0..n), n >= 1, any bytes. */
    ggtok_status (*encode)(const model_call *call, const uint8_t *text, size_t n);
    size_t (*cache_bytes)(const void *scratch); /* NULL: there is no cache */
} model_ops;

extern const model_ops model_bpe, model_spm, model_wpm, model_ugm, model_rwkv, model_plamo2,
    model_test, model_hybriddna, model_whitespace;

#endif
