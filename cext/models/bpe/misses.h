/*
 * Misses: the words of a batch that the caches lack.
 *
 * A miss costs a look-up in the vocabulary and some merges, all of them in tables larger than
 * the processor's caches: it does little and waits a lot. So a miss is deferred, the batch goes
 * on, and all misses of the batch are encoded together.
 *
 *     words    the  quux  runs  zyxt  quux  .        a batch
 *     caches   hit  miss  hit   miss  miss  hit
 *     out      17         42               9         ids of the hits, as if there were no misses
 *
 *     misses   {quux, at 1, first}  {zyxt, at 2, first}  {quux, at 2, duplicate of 0}
 *              1. those that are tokens: found in the vocabulary, in stages (find_tokens)
 *              2. the others: merged side by side in lanes (merge_in_lanes; models/bpe/lanes.h)
 *              3. what neither could do, and all of up to four misses: one by one (encode_rest)
 *     ids      quux = 5 6, zyxt = 7                  stored in the caches, too
 *
 *     out      17  5 6  42  7  5 6  9                the ids move apart
 *
 * Which functions see a repeated word: `defer` finds the duplicate within a batch, mostly by the
 * place that the first one has taken in the cache; store_ids puts its ids there; words_at
 * (models/words.c) hits it from the next batch on. The page docs/design/misses.md says which
 * function to suspect.
 */
#ifndef GGTOK_BPE_MISSES_H
#define GGTOK_BPE_MISSES_H

#include "models/bpe/word.h"

enum { BPE_BATCH = 1024, BPE_RECENT_LOG2 = 10 }; /* words */

typedef struct bpe_miss {
    const uint8_t *p;
    word_short *pending; /* its place in its cache, until it is stored; NULL: it has none */
    uint32_t at;         /* where its ids go: after so many of the batch's hits */
    uint32_t first;      /* they are ids.data[first..first + n_ids), once it is encoded */
    uint16_t n_ids;
    uint16_t n, room; /* bytes of it, and of those that may be read at p (or fewer) */
    uint16_t same_as; /* the miss that has its ids: itself, or the first of its duplicates */
    bool is_piece, encoded;
} bpe_miss;

typedef struct bpe_misses {
    bpe_miss miss[BPE_BATCH];
    size_t n;
    size_t out_from;                       /* where the batch's ids begin */
    uint16_t recent[1 << BPE_RECENT_LOG2]; /* by hash: the last such miss, or any number */
    idbuf ids;                             /* of the misses, in any order */
} bpe_misses;

/* Words text[from..ends[0]), text[ends[0]..ends[1]), ..., at most BPE_BATCH of them; `room` bytes
 * of the text may be read. */
ggtok_status ggtok_bpe_encode_batch(const model_call *call, const uint8_t *text, size_t room,
                                    size_t from, const size_t *ends, size_t count);

#endif
