/*
 * One thread's way into the table of words.
 *
 * Most words of a text are among the few that come again and again. A counter adds those up
 * in a small cache of its own; what the cache has no place for goes, with its count so far,
 * to the table in batches, one for each shard.
 *
 *   text -> words -> cache, a few entries a set -> batch of a shard -> table
 *
 * So a lock is taken once in some hundred words, and the memory for words doesn't depend on
 * how many threads count.
 */
#ifndef GGTOK_TRAIN_COUNTER_H
#define GGTOK_TRAIN_COUNTER_H

#include "cache/word_cache.h"
#include "pretok/pretok.h"
#include "pretok/split.h"
#include "train/table.h"

enum {
    COUNTER_SHORT_LOG2 = SMALL ? 4 : 16,     /* sets: 4 MB, on two huge pages */
    COUNTER_LONG_LOG2 = SMALL ? 4 : 12,      /* of longer words: 320 KB */
    COUNTER_FOUND = SMALL ? 160 : 512,       /* words */
    COUNTER_SINCE = SMALL ? 200 : INT32_MAX, /* words until counts of short ones go to the table */
    COUNTER_BATCH = SMALL ? 4 : 256,         /* words */
    COUNTER_BATCH_BYTES = 8192
};

struct ggtok_counts {
    table table;
    ggtok_counts_options options;
    const pretok_row *row; /* GGTOK_CUT_PRE */
    bool spaces;           /* are escaped */
};

/* A word of at most COUNTER_SHORT bytes, and 0xFF after them, which no UTF-8 has. */
enum { COUNTER_SHORT = 16 };
typedef struct counter_key {
    uint64_t w[2];
} counter_key;

/* Three short words, which fill a cache line. */
enum { COUNTER_WAYS = 3 };
typedef struct counter_set {
    counter_key keys[COUNTER_WAYS];
    uint32_t counts[COUNTER_WAYS]; /* 0: free */
    uint32_t spare;
} counter_set;
_Static_assert(sizeof(counter_set) == 64, "a set is a cache line");

/* Words of at most PIECE_MAX bytes; a count of 0: free. */
typedef struct counter_long {
    piece_key key;
    uint64_t count;
} counter_long;

typedef struct counter_batch {
    table_word words[COUNTER_BATCH];
    uint8_t bytes[COUNTER_BATCH_BYTES];
    size_t n, n_bytes;
} counter_batch;

struct ggtok_counter {
    ggtok_counts *counts;
    counter_set *shorts;
    void *shorts_block;
    uint32_t since;         /* words added since the counts of short ones began at 0 */
    counter_long *longs;    /* two of a set side by side */
    counter_batch *batches; /* of each shard */
    bytebuf text, spaced;   /* copies: well-formed; with spaces escaped */
    split_ends ends;        /* words of the caller's splitter */
    /* Words of a text's lines that are found and not yet added: where they end in the text. */
    size_t found[COUNTER_FOUND], n_found;
    size_t added;  /* where the last one that was added ends */
    bool overflow; /* of a word's count */
    bool too_long; /* a word, which may be longer than its text: spaces become U+2581 */
};

#endif
