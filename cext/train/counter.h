/*
 * One thread's counter of words, in front of the shared table.
 *
 * Most words of a text are among a few frequent ones. A counter adds these up in a small cache
 * of its own. Words that the cache has no room for go, with their counts so far, to the table
 * in batches, one batch for each shard.
 *
 *   text -> words -> cache, a few entries per set -> batch of a shard -> table
 *
 * So a lock is taken only once in several hundred words, and the memory for words doesn't
 * depend on the number of threads.
 */
#ifndef GGTOK_TRAIN_COUNTER_H
#define GGTOK_TRAIN_COUNTER_H

#include "cache/word_cache.h"
#include "pretok/pretok.h"
#include "pretok/split.h"
#include "train/table.h"

enum {
    COUNTER_SHORT_LOG2 = SMALL ? 4 : 16, /* sets: 4 MB, on two huge pages */
    COUNTER_LONG_LOG2 = SMALL ? 4 : 12,  /* sets of longer words: 320 KB */
    COUNTER_FOUND = SMALL ? 160 : 512,   /* words */
    COUNTER_SINCE = SMALL ? 200
                          : INT32_MAX, /* words before the counts of short ones go to the table */
    COUNTER_BATCH = SMALL ? 4 : 256,   /* words */
    COUNTER_BATCH_BYTES = 8192
};

struct ggtok_counts {
    table table;
    ggtok_counts_options options;
    const pretok_row *row; /* GGTOK_CUT_PRE */
    bool spaces;           /* spaces are escaped */
};

/* A word of at most COUNTER_SHORT bytes, padded with 0xFF, which never occurs in UTF-8. */
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
    uint32_t since;         /* words added since the counts of short words were last reset */
    counter_long *longs;    /* sets of two */
    counter_batch *batches; /* one for each shard */
    bytebuf text, spaced;   /* copies: well-formed; with spaces escaped */
    split_ends ends;        /* the ends of the caller's words */
    /* Ends of words that were found in the text but not added yet. */
    size_t found[COUNTER_FOUND], n_found;
    size_t added;  /* the end of the last word that was added */
    bool overflow; /* a word's count overflowed */
    bool
        too_long; /* a word is too long; it may be longer than its text, since spaces become U+2581 */
};

#endif
