/* Merging one word: its symbols, always the pair of lowest rank first, leftmost
 * among equals, until no pair merges. */
#ifndef GGTOK_BPE_MERGE_H
#define GGTOK_BPE_MERGE_H

#include "bpe_table.h"

/* A thread's arrays for words too long for the stack. */
typedef struct bpe_scratch {
    uint32_t *symbol, *start, *next, *prev, *rank; /* by position, cap + 1 each */
    uint64_t *heap;
    size_t cap, heap_cap;
} bpe_scratch;

/* Appends the ids of word[0..n), n >= 1. Words are limited to 4 GiB. */
ggtok_status bpe_merge_word(const bpe_table *t, const vocab *v, bpe_scratch *s, const uint8_t *word,
                            size_t n, idbuf *out, ggtok_error *err);
void bpe_scratch_free(bpe_scratch *s);

/* A word of at most BPE_JOB_MAX bytes, and the ids that it becomes. */
enum { BPE_JOB_MAX = 32, BPE_JOB_IDS = 2 * BPE_JOB_MAX };

typedef struct bpe_job {
    const uint8_t *word;
    uint32_t n, n_ids;
    int32_t ids[BPE_JOB_IDS];
} bpe_job;

/* Can bpe_merge_many be used with this table? */
bool bpe_merges_many(const bpe_table *t);

/* The same as bpe_merge_word for each of the words: several at a time, since each step of
 * a merge waits for memory. */
void bpe_merge_many(const bpe_table *t, bpe_job *jobs, size_t n);

#endif
