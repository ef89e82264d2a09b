/* The structs behind ggtok_tokenizer and ggtok_context, and functions shared within this folder. */
#ifndef GGTOK_TOKENIZER_H
#define GGTOK_TOKENIZER_H

#include "decode/detok.h"
#include "gguf/metadata.h"
#include "models/model.h"
#include "special/partition.h"

struct ggtok_tokenizer { /* immutable once loaded */
    vocab v;
    const model_ops *ops; /* operations of the model; NULL: the file has no vocabulary */
    void *model;
    special_set always, all; /* special tokens to parse without and with GGTOK_PARSE_SPECIAL */
    piece_table pieces;
    metadata meta;
};

struct ggtok_context { /* owned by one thread at a time */
    const ggtok_tokenizer *tok;
    void *scratch; /* the model's scratch memory */
    partition_scratch partition;
    ggtok_part *parts; /* parts of the last text; for ggtok_encode_trusted and ggtok_spans */
    size_t parts_cap;
    span_buf spans;    /* spans that were assigned while encoding */
    bytebuf assigned;  /* one byte per part: whether its spans were assigned while encoding */
    recorder recorder; /* for what is encoded again */
    idbuf ids;
    /* The last text and its flags, for ggtok_spans. */
    const uint8_t *text;
    size_t n;
    unsigned flags;
    idbuf reencoded; /* ids of a part that was encoded again */
    bytebuf bytes;
    cache_counts counts;
    interrupt interrupt;
    sampling *sampling;                 /* state of ggtok_sample; NULL until it is used */
    bool samples;                       /* whether the current call samples */
    const ggtok_special_choice *choice; /* special tokens to parse; NULL: all */
    ggtok_context *next;                /* the next idle context in the pool */
    unsigned round;                     /* the pool's round when the context was created */
};

/* Returns the set of special tokens to parse with these flags. */
const special_set *ggtok_context_specials(const ggtok_context *ctx, unsigned flags);

/* Returns the model's arguments for a text with these flags. */
model_call ggtok_context_call(ggtok_context *ctx, unsigned flags, ggtok_error *err);

/* Encodes to ctx->ids and, with `trusted` or GGTOK_SPANS, fills ctx->parts. `trusted` may be
 * NULL. */
ggtok_status ggtok_encode_text(ggtok_context *ctx, const uint8_t *text, size_t n, unsigned flags,
                               const trusted_ranges *trusted, ggtok_error *err);

/* Encodes a fragment again if its ids (from index `first` on) include one that only trusted text may
 * produce. */
ggtok_status ggtok_encode_without_reserved(ggtok_context *ctx, const model_call *call,
                                           const uint8_t *text, const fragment *f, size_t first,
                                           const trusted_ranges *trusted);

/* Like ggtok_encode_batch_with. If is_one is set, the texts are parts of one text, and so is the
 * batch's only text. */
ggtok_status ggtok_encode_texts(ggtok_pool *pool, const ggtok_bytes *texts, size_t n, bool is_one,
                                const ggtok_batch_options *options, ggtok_batch **out,
                                size_t *failed, ggtok_error *err);

/* Returns the target size of a batch's chunks in bytes: several chunks per thread, within limits. */
size_t ggtok_chunk_bytes(size_t total, unsigned threads);
/* Returns GGTOK_ERR_ARGUMENT unless the vocabulary can be sampled with these settings. */
ggtok_status ggtok_check_sampling(const ggtok_tokenizer *tok, const ggtok_sampling *s,
                                  ggtok_error *err);

/* Whether a token is added before a text with the context's last flags. */
bool ggtok_adds_before(const ggtok_context *ctx);

/* Returns the boundary between parts i - 1 and i of the last text (either may be out of range). The
 * white space between two parts belongs to the part that strips it. */
size_t ggtok_part_boundary(const ggtok_context *ctx, size_t i);

#endif
