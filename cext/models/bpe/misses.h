/*
 * Misses: the words of a batch that aren't in the caches.
 *
 * A miss costs a look-up in the vocabulary and some merges, all of them in tables larger than the
 * processor's caches: most of its time is spent waiting for memory. So a miss is deferred, the
 * batch continues, and all misses in the batch are encoded together.
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
 * Three functions handle a repeated word. Within a batch, `defer` recognizes the duplicate, mostly
 * because the first occurrence has a pending entry in the cache; store_ids writes the word's ids to
 * that entry; from the next batch on, words_at (models/words.c) finds the ids there. If ids are
 * wrong, docs/design/caches.md says which function to suspect.
 */
#ifndef GGTOK_BPE_MISSES_H
#define GGTOK_BPE_MISSES_H

#include "models/bpe/word.h"

enum { BPE_BATCH = 1024, BPE_RECENT_LOG2 = 10 }; /* words per batch; log2 of the size of `recent` */

typedef struct bpe_miss {
    const uint8_t *p;
    word_short *pending; /* the word's pending entry in the cache, or NULL */
    uint32_t at;         /* its ids are inserted after this many ids of the batch's hits */
    uint32_t first;      /* once encoded, its ids are ids.data[first..first + n_ids) */
    uint16_t n_ids;
    uint16_t n, room; /* n: length of the word; room: number of readable bytes at p, at least n */
    uint16_t same_as; /* index of the first miss with the same bytes, which has the ids */
    bool is_piece, encoded;
} bpe_miss;

typedef struct bpe_misses {
    bpe_miss miss[BPE_BATCH];
    size_t n;
    size_t out_from;                       /* index in the output of the batch's first id */
    uint16_t recent[1 << BPE_RECENT_LOG2]; /* by hash: last miss without a pending entry, or
                                              garbage */
    idbuf ids;                             /* ids of the misses, in any order */
} bpe_misses;

/* Encodes the words text[from..ends[0]), text[ends[0]..ends[1]), ..., at most BPE_BATCH; `room`
 * bytes of the text are readable. */
ggtok_status ggtok_bpe_encode_batch(const model_call *call, const uint8_t *text, size_t room,
                                    size_t from, const size_t *ends, size_t count);

#endif
