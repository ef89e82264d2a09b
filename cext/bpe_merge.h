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

#endif
