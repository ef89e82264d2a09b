/*
 * Merges many short words side by side.
 *
 * Each merge looks up two pairs in a table larger than the processor's caches, so most of its
 * time is spent waiting for memory. Sixteen words take turns: a lane prefetches its two pairs,
 * then waits while the other lanes continue.
 *
 *     lane 0   merge a pair, prefetch ->  ...  the ranks have arrived: merge the next pair, ...
 *     lane 1       merge a pair, prefetch ->  ...  the ranks have arrived: ...
 *     lane 2           merge a pair, prefetch ->  ...  no pair is left: take the next task
 */
#ifndef GGTOK_BPE_LANES_H
#define GGTOK_BPE_LANES_H

#include "models/bpe/table.h"
#include "models/long_word.h"

/* A word of at most BPE_TASK_MAX bytes, and its ids; or, if `merged` isn't NULL, its symbols, for
 * which *merged has room. */
enum { BPE_TASK_MAX = 32, BPE_TASK_IDS = 2 * BPE_TASK_MAX };

typedef struct bpe_task {
    const uint8_t *word;
    merged_symbols *merged;
    uint32_t n, n_ids;
    int32_t ids[BPE_TASK_IDS];
} bpe_task;

/* Whether this table supports lanes. */
bool ggtok_bpe_has_lanes(const bpe_table *t);

/* Computes the ids or symbols of each word. They equal those of ggtok_bpe_merge_word. */
void ggtok_bpe_merge_tasks(const bpe_table *t, bpe_task *tasks, size_t n);

#endif
