/* What a tokenizer and a context are made of. */
#ifndef GGTOK_TOKENIZER_H
#define GGTOK_TOKENIZER_H

#include "detok.h"
#include "metadata.h"
#include "model.h"
#include "partition.h"

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
    ggtok_part *parts; /* ggtok_encode_trusted's */
    size_t parts_cap;
    idbuf ids;
    bytebuf bytes;
    cache_counts counts;
    ggtok_context *next; /* of those at rest in a pool */
    unsigned round;      /* the pool's when it was made */
};

/* Loads from parsed metadata. */
ggtok_status tokenizer_load(const gguf *g, const ggtok_load_options *options, ggtok_tokenizer **out,
                            ggtok_error *err);

#endif
