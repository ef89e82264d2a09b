/* Merges one word: repeatedly merges the pair of lowest rank (the leftmost of several), until no
 * pair has a merge. */
#ifndef GGTOK_BPE_MERGE_H
#define GGTOK_BPE_MERGE_H

#include "base/interrupt.h"
#include "models/bpe/table.h"
#include "models/long_word.h"
#include "models/recorder.h"
#include "models/sampling.h"

/* One thread's arrays for words that are too long for the stack. */
typedef struct bpe_scratch {
    uint32_t *symbol, *start, *next, *prev, *rank; /* by position, [cap + 1] each */
    uint64_t *heap;
    size_t cap, heap_cap;
    long_word long_word;
    uint32_t *ranks; /* ranks of all pairs, ascending, for ggtok_bpe_file_rank; computed lazily */
    size_t n_ranks;
    interrupt *interrupt; /* interrupt of the current call */
} bpe_scratch;

/* Appends the ids of word[0..n), n >= 1. Words are limited to 4 GiB. */
ggtok_status ggtok_bpe_merge_word(const bpe_table *t, const vocab *v, bpe_scratch *s,
                                  const uint8_t *word, size_t n, idbuf *out, ggtok_error *err);
/* Appends the ids of the word text[at..at + n) in a recorder's text. */
ggtok_status ggtok_bpe_merge_recorded(const bpe_table *t, bpe_scratch *s, recorder *rec, size_t at,
                                      size_t n, idbuf *out, ggtok_error *err);
/* Appends the ids of word[0..n), n >= 1, with merges skipped at random. */
ggtok_status ggtok_bpe_merge_sampled(const bpe_table *t, const vocab *v, bpe_scratch *s,
                                     sampling *r, const uint8_t *word, size_t n, idbuf *out,
                                     ggtok_error *err);
void ggtok_bpe_scratch_free(bpe_scratch *s);

/* Sets *index to the index of a rank in the file's list of merges. Returns false if out of
 * memory. */
bool ggtok_bpe_file_rank(const bpe_table *t, bpe_scratch *s, uint32_t rank, uint32_t *index);

#endif
