/* Merges the symbols of one piece of an SPM text. */
#ifndef GGTOK_SPM_MERGE_H
#define GGTOK_SPM_MERGE_H

#include "cache/kept_words.h"
#include "index/adjacency.h"
#include "models/long_word.h"
#include "models/model.h"
#include "models/tile.h"
#include "models/words.h"

typedef struct spm_model {
    adjacency pairs; /* pairs of characters that occur in some token's text */
    bool unordered;  /* a score is NaN: the heap determines the order of merges, so no cuts */
    int32_t byte_id[256];
} spm_model;

typedef struct spm_symbol spm_symbol;
typedef struct spm_bigram spm_bigram;

typedef struct spm_state { /* scratch memory */
    word_cache cache;
    bytebuf text;  /* the fragment, with a space before it or with its spaces escaped */
    bytebuf piece; /* one piece, its spaces escaped */
    tiles tiles;
    spm_symbol *symbols;
    size_t symbols_cap;
    spm_bigram *heap;
    size_t heap_cap;
    long_word long_word;
    kept_words kept;
} spm_state;

/* Appends the ids of a piece whose spaces are escaped. */
ggtok_status ggtok_spm_merge(const model_call *call, const uint8_t *p, size_t n);
/* Appends the ids of the recorder's text, and reports the steps. `out` has room for them. */
ggtok_status ggtok_spm_merge_recorded(const model_call *call);
ggtok_trace_event ggtok_spm_with_score(const model_call *call, ggtok_trace_event e, int32_t id);

#endif
