/*
 * Misses: the words of a batch that the caches lack.
 *
 * A miss costs a look-up in the vocabulary and some merges, all of them in tables larger than
 * the processor's caches: it computes little and waits a lot. So a miss is deferred, the batch
 * continues, and all misses of the batch are encoded together.
 *
 *     words    the  quux  runs  zyxt  quux  .        a batch
 *     caches   hit  miss  hit   miss  miss  hit
 *     out      17         42               9         ids of the hits, as if there were no misses
 *
 *     misses   {quux, at 1, first}  {zyxt, at 2, first}  {quux, at 2, duplicate of 0}
 *              1. misses that are tokens: looked up in the vocabulary, in stages (find_tokens)
 *              2. others: merged side by side in lanes (merge_in_lanes; models/bpe/lanes.h)
 *              3. the rest, and batches of up to four misses: one by one (encode_rest)
 *     ids      quux = 5 6, zyxt = 7                  also stored in the caches
 *
 *     out      17  5 6  42  7  5 6  9                the misses' ids are inserted
 *
 * Which functions handle a repeated word: `defer` finds the duplicate within a batch, mostly by the
 * pending entry of the first one in the cache; store_ids puts its ids there; words_at
 * (models/words.c) hits it from the next batch on. The page docs/design/misses.md says which
 * function to suspect.
 */
#ifndef GGTOK_BPE_MISSES_H
#define GGTOK_BPE_MISSES_H

#include "models/bpe/word.h"

enum { BPE_BATCH = 1024, BPE_RECENT_LOG2 = 10 }; /* words */

typedef struct bpe_miss {
    const uint8_t *p;
    word_short *pending; /* its pending entry in the cache; NULL: it has none */
    uint32_t at;         /* its ids go after this many ids of the batch's hits */
    uint32_t first;      /* once it is encoded, its ids are ids.data[first..first + n_ids) */
    uint16_t n_ids;
    uint16_t n, room; /* its bytes; bytes readable at p (at least this many) */
    uint16_t same_as; /* the miss that has its ids: itself, or the first of its duplicates */
    bool is_piece, encoded;
} bpe_miss;

typedef struct bpe_misses {
    bpe_miss miss[BPE_BATCH];
    size_t n;
    size_t out_from;                       /* index of the batch's first id */
    uint16_t recent[1 << BPE_RECENT_LOG2]; /* by hash: the last such miss, or garbage */
    idbuf ids;                             /* ids of the misses, in any order */
} bpe_misses;

/* Encodes the words text[from..ends[0]), text[ends[0]..ends[1]), ..., at most BPE_BATCH of them;
 * `room` bytes of the text are readable. */
ggtok_status ggtok_bpe_encode_batch(const model_call *call, const uint8_t *text, size_t room,
                                    size_t from, const size_t *ends, size_t count);

#endif
