/*
 * One thread's counter of words, in front of the shared table.
 *
 * Most words in a text are among a few frequent ones. A counter counts these in a small private
 * cache. Words evicted from the cache are added to the table, with their counts so far, in batches:
 * one batch per shard.
 *
 *   text -> words -> cache, a few entries per set -> batch of a shard -> table
 *
 * So a lock is taken only once in several hundred words, and the memory for words doesn't
 * depend on the number of threads.
 */
#ifndef GGTOK_TRAIN_COUNTER_H
#define GGTOK_TRAIN_COUNTER_H

#include "cache/word_cache.h"
#include "ggtok_train.h"
#include "pretok/pretok.h"
#include "pretok/split.h"
#include "train/table.h"

enum {
    COUNTER_SHORT_LOG2 = SMALL ? 4 : 16, /* log2 of the number of sets: 4 MB, on two huge pages */
    COUNTER_LONG_LOG2 = SMALL ? 4 : 12,  /* the same for longer words: 320 KB */
    COUNTER_FOUND = SMALL ? 160 : 512,   /* maximum words that are found in a text before they are
                                            added */
    COUNTER_SINCE = SMALL ? 200
                          : INT32_MAX, /* maximum words between two moves of the short words' counts
                                          to the table */
    COUNTER_BATCH = SMALL ? 4 : 256,   /* maximum words per batch */
    COUNTER_BATCH_BYTES = 8192
};

struct ggtok_counts {
    table table;
    ggtok_counts_options options;
    const pretok_row *row; /* for GGTOK_CUT_PRE */
    bool spaces;           /* whether spaces are escaped */
};

/* A word of at most COUNTER_SHORT bytes, padded with 0xFF, which never occurs in UTF-8. */
enum { COUNTER_SHORT = 16 };
typedef struct counter_key {
    uint64_t w[2];
} counter_key;

/* Three short words and their counts, which fill a cache line. */
enum { COUNTER_WAYS = 3 };
typedef struct counter_set {
    counter_key keys[COUNTER_WAYS];
    uint32_t counts[COUNTER_WAYS]; /* 0: free */
    uint32_t spare;
} counter_set;
_Static_assert(sizeof(counter_set) == 64, "a set is a cache line");

/* A word of at most PIECE_MAX bytes; count 0: free. */
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
    uint32_t since;         /* words added since the short words' counts were last moved to the
                               table */
    counter_long *longs;    /* longer words, in sets of two */
    counter_batch *batches; /* one per shard */
    bytebuf text, spaced;   /* copies of the text: well-formed; with spaces escaped */
    split_ends ends;        /* the ends of the words from the caller's splitter */
    /* Ends of words that were found in the text but not added yet. */
    size_t found[COUNTER_FOUND], n_found;
    size_t added;  /* end of the last word that was added */
    bool overflow; /* a word's count overflowed */
    bool too_long; /* a word is too long; it may be longer than its text, since spaces become
                     U+2581 */
};

#endif
