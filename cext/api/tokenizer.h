/* What a tokenizer and a context are made of. */
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
    special_set always, all; /* special tokens without and with parse_special */
    piece_table pieces;
    metadata meta;
};

struct ggtok_context { /* one thread's */
    const ggtok_tokenizer *tok;
    void *scratch; /* the model's */
    partition_scratch partition;
    ggtok_part *parts; /* ggtok_encode_trusted's and ggtok_spans' */
    size_t parts_cap;
    span_buf spans;   /* assigned while encoding */
    bytebuf assigned; /* for each part: were all its spans assigned while encoding? */
    text_guard guard; /* likewise */
    idbuf ids;
    /* What ggtok_spans is about: the text, and its flags. */
    const uint8_t *text;
    size_t n;
    unsigned flags;
    idbuf reencoded; /* ids once more */
    bytebuf bytes;
    cache_counts counts;
    interrupt interrupt;
    const ggtok_special_choice *choice; /* of special tokens; NULL: all */
    ggtok_context *next;                /* of those at rest in a pool */
    unsigned round;                     /* the pool's when it was made */
};

/* The special tokens that a text is searched for. */
const special_set *ggtok_context_specials(const ggtok_context *ctx, unsigned flags);

/* Loads from parsed metadata. */
ggtok_status ggtok_tokenizer_load(const gguf *g, const ggtok_load_options *options,
                                  ggtok_tokenizer **out, ggtok_error *err);

#endif
