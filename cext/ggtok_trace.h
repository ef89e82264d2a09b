/*
 * Trace: the steps from a text to its ids, and the merges that lead to a token.
 *
 * Conventions are those of ggtok.h.
 *
 * Contents
 *   - events: ggtok_how, ggtok_trace_kind, ggtok_trace_event
 *   - steps by callback: ggtok_trace, ggtok_trace_token
 *   - steps as JSON: ggtok_trace_json, ggtok_trace_token_json
 */
#ifndef GGTOK_TRACE_H
#define GGTOK_TRACE_H

#include "ggtok.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a token was produced. */
typedef enum ggtok_how {
    GGTOK_HOW_BEFORE,     /* added before the text */
    GGTOK_HOW_AFTER,      /* added after the text */
    GGTOK_HOW_SPECIAL,    /* a special token in the text */
    GGTOK_HOW_WHOLE_WORD, /* BPE: the word is a token, so nothing is merged */
    GGTOK_HOW_MERGED,
    GGTOK_HOW_SYMBOL, /* an initial symbol that was not merged */
    GGTOK_HOW_BYTE,   /* byte fallback */
    GGTOK_HOW_LONGEST_MATCH,
    GGTOK_HOW_BEST_PATH,
    GGTOK_HOW_UNKNOWN,
    GGTOK_HOW_KMER, /* hybriddna: a k-mer of six bases */
    GGTOK_HOW_TAG,  /* hybriddna: <dna> or </dna> */
    GGTOK_HOW_HASH  /* TEST: the hash of the bytes */
} ggtok_how;

GGTOK_API const char *ggtok_how_name(ggtok_how how); /* "added", "special", "whole word", ... */

/* Kinds of trace events, and the fields of ggtok_trace_event that are set for each. */
typedef enum ggtok_trace_kind {
    GGTOK_TRACE_TOKEN,   /* an id of the result, which belongs to the preceding word or special
                            token. Fields: id, how, text (its piece), begin, end; score and total,
                            if the model uses scores; note, if any */
    GGTOK_TRACE_SPECIAL, /* a fragment that is a special token. Fields: text, begin, end, including
                            the white space that it strips */
    GGTOK_TRACE_RAW,     /* a fragment of raw text between special tokens. Fields: text, begin,
                            end */
    GGTOK_TRACE_NOTE,    /* a remark on the preceding fragment, after its words. Field: note */
    GGTOK_TRACE_WORD,    /* a part of raw text that is tokenized separately; its rules, symbols,
                            merges, places and tokens follow, in this order. Fields: text
                            (normalized); begin and end (its source) */
    GGTOK_TRACE_RULE,    /* BPE, once for each scanner of the pre-tokenizer. Fields: text (the
                           scanner's name); right (the alternative of its expression that found the
                           word; its data is NULL if the word is between two matches) */
    GGTOK_TRACE_SYMBOL,  /* BPE, SPM: an initial symbol. Field: text */
    GGTOK_TRACE_MERGE,   /* two neighbours become one symbol. Fields: text, right; at (the index of
                           the left one among the initial symbols); rank (BPE: the index in the
                           file's list, lowest first) or score (SPM: highest first) */
    GGTOK_TRACE_PLACE,   /* UGM, PLaMo: the best path to a position (PLaMo: from the position to the
                            end). Fields: at, in bytes (PLaMo: characters) of the word; id, text and
                            score of the token that ends (PLaMo: begins) there; total */
    GGTOK_TRACE_PAIR     /* ggtok_trace_token: a pair that merges into the token. Fields: text,
                           right; rank or score */
} ggtok_trace_kind;

/* One step of a trace. Fields that aren't listed for its kind are zero. Texts are valid during the
 * callback. */
typedef struct ggtok_trace_event {
    ggtok_trace_kind kind;
    ggtok_how how;
    int32_t id;
    uint32_t rank;
    bool has_rank, has_score, has_total;
    size_t begin, end; /* byte offsets in the text */
    size_t at;
    ggtok_bytes text, right;
    double score, total;
    ggtok_bytes note; /* a short phrase */
} ggtok_trace_event;

/* A callback for each step, on the calling thread. Returning false stops the trace with
 * GGTOK_ERR_STOPPED. The callback must not use the context. */
typedef bool (*ggtok_trace_fn)(void *user, const ggtok_trace_event *event);

enum {
    GGTOK_TRACE_BYTES = 16 << 10,     /* maximum bytes of a traced text or token */
    GGTOK_TRACE_TEXT_BYTES = 16 << 20 /* maximum bytes of all events' texts, except rules */
};

/*
 * Encodes a text like ggtok_encode and reports each step: the special tokens, the words and the
 * rules that found them, the merges in order or the best paths, and the tokens in the order of the
 * ids. The steps are those of llama.cpp's algorithm, without ggtok's caches and other fast paths.
 * Returns GGTOK_ERR_ARGUMENT if the text is longer than GGTOK_TRACE_BYTES, if there are more than
 * max_events steps, or if their texts are longer in total than GGTOK_TRACE_TEXT_BYTES. Sets *out to
 * the ids (`out` may be NULL).
 */
GGTOK_API ggtok_status ggtok_trace(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                                   size_t max_events, ggtok_trace_fn fn, void *user, ggtok_ids *out,
                                   ggtok_error *err);

/* The result of merging a token's own text. */
typedef struct ggtok_token_trace {
    bool reached;     /* merging results in the token itself */
    bool whole_word;  /* a word equal to the token becomes the token without merging */
    ggtok_bytes text; /* the token's text (BPE: the bytes that it represents, if any), valid until
                         the context's next use */
} ggtok_token_trace;

/*
 * Merges a token's own text (BPE, SPM; otherwise GGTOK_ERR_UNSUPPORTED) and reports: its symbols,
 * merges and tokens; as words, the parts into which a BPE pre-tokenizer splits the text, if there
 * are several; the pairs that merge into the token, in order of precedence; and, as notes, other
 * ways to produce the token.
 */
GGTOK_API ggtok_status ggtok_trace_token(ggtok_context *ctx, int32_t id, size_t max_events,
                                         ggtok_trace_fn fn, void *user, ggtok_token_trace *out,
                                         ggtok_error *err);

/*
 * Trace like the functions above, but return the steps as JSON objects, owned by the context and
 * valid until its next use. Bytes that aren't UTF-8 become lone surrogates, \udc80 to \udcff; a
 * score that isn't finite becomes the string "NaN", "Infinity" or "-Infinity". The fields and their
 * order are those of the Python package's Explanation and MergeTree (docs/explain.md), without the
 * texts, ids and names that the caller already has.
 */
GGTOK_API ggtok_status ggtok_trace_json(ggtok_context *ctx, const char *text, size_t n,
                                        unsigned flags, size_t max_events, ggtok_bytes *out,
                                        ggtok_error *err);
GGTOK_API ggtok_status ggtok_trace_token_json(ggtok_context *ctx, int32_t id, size_t max_events,
                                              ggtok_bytes *out, ggtok_error *err);

#ifdef __cplusplus
}
#endif
#endif
