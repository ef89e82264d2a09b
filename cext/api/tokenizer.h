/* The structs behind ggtok_tokenizer and ggtok_context, and functions shared in this folder. */
#ifndef GGTOK_TOKENIZER_H
#define GGTOK_TOKENIZER_H

#include "decode/detok.h"
#include "gguf/metadata.h"
#include "models/model.h"
#include "special/partition.h"

struct ggtok_tokenizer { /* immutable once loaded */
    vocab v;
    const model_ops *ops; /* NULL: the file has no vocabulary */
    void *model;
    special_set always, all; /* special tokens to parse without and with parse_special */
    piece_table pieces;
    metadata meta;
};

struct ggtok_context { /* owned by one thread at a time */
    const ggtok_tokenizer *tok;
    void *scratch; /* the model's */
    partition_scratch partition;
    ggtok_part *parts; /* for ggtok_encode_trusted and ggtok_spans */
    size_t parts_cap;
    span_buf spans;   /* assigned while encoding */
    bytebuf assigned; /* for each part: were its spans assigned while encoding? */
    text_guard guard; /* for trusted text, and for recording spans */
    idbuf ids;
    /* For ggtok_spans: the last text and its flags. */
    const uint8_t *text;
    size_t n;
    unsigned flags;
    idbuf reencoded; /* ids of a part that is encoded again */
    bytebuf bytes;
    cache_counts counts;
    interrupt interrupt;
    const ggtok_special_choice *choice; /* special tokens to parse; NULL: all */
    ggtok_context *next;                /* of the idle contexts in a pool */
    unsigned round;                     /* of the pool, when the context was created */
};

/* The special tokens to parse with these flags. */
const special_set *ggtok_context_specials(const ggtok_context *ctx, unsigned flags);

/* The arguments of a model for a text with these flags. */
model_call ggtok_context_call(ggtok_context *ctx, unsigned flags, ggtok_error *err);

/* Encodes to ctx->ids and, with `trusted` or GGTOK_SPANS, ctx->parts. `trusted` may be NULL. */
ggtok_status ggtok_encode_text(ggtok_context *ctx, const uint8_t *text, size_t n, unsigned flags,
                               const trusted_ranges *trusted, ggtok_error *err);

/* Encodes a fragment again, under a guard, if its ids, those from index `first` on, include one that
 * only trusted text may give. */
ggtok_status ggtok_encode_guarded(ggtok_context *ctx, const model_call *call, const uint8_t *text,
                                  const fragment *f, size_t first, const trusted_ranges *trusted);

/* Does a text with the context's last flags get a token before it? */
bool ggtok_adds_before(const ggtok_context *ctx);

/* The boundary of the last text's parts i - 1 and i (both may be out of range) in the white space
 * between them, all of which belongs to the part that strips it. */
size_t ggtok_part_boundary(const ggtok_context *ctx, size_t i);

#endif
