/*
 * Sampling: random segmentations of a text, for training on many of them (subword regularization),
 * and the best segmentations of a text with their scores.
 *
 * Conventions are those of ggtok.h.
 *
 * Contents
 *   - settings: ggtok_sampling_rule, ggtok_sampling
 *   - one text: ggtok_sample. Many texts: the field `sampling` of ggtok.h's batch options
 *   - the best segmentations: ggtok_nbest
 *
 *     ggtok_sampling sampling = {.rule = GGTOK_SAMPLING_DROPOUT, .value = 0.1, .seed = 42};
 *     ggtok_sample(ctx, "Hello", 5, GGTOK_ADD_SPECIAL, &sampling, &ids, &err);
 */
#ifndef GGTOK_SAMPLE_H
#define GGTOK_SAMPLE_H

#include "ggtok.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ggtok_sampling_rule {
    /* BPE, SPM: the next merge is skipped with this probability (0 to 1). Skipped merges return
     * after the next one that isn't skipped: the rule of Hugging Face's tokenizers. Above 0, words
     * that are tokens are merged, too (GGTOK_FLAG_IGNORE_MERGES doesn't apply). */
    GGTOK_SAMPLING_DROPOUT,
    /* SPM: a merge is skipped with this probability (0 to 1), and never returns: SentencePiece's
     * BPE-dropout. UGM: the probability of a segmentation is proportional to exp(alpha * score),
     * where the score is the sum of its tokens' scores: SentencePiece's rule for unigram models.
     * alpha is from 0 to GGTOK_ALPHA_MAX; 0 makes all segmentations equally likely. */
    GGTOK_SAMPLING_ALPHA
} ggtok_sampling_rule;

enum {
    GGTOK_ALPHA_MAX = 1000000,    /* maximum alpha of a UGM vocabulary */
    GGTOK_NBEST_MAX = 1024,       /* maximum number of best segmentations */
    GGTOK_NBEST_PLACES = 1 << 22, /* maximum of this number times the bytes of normalized text */
};

/* Settings of ggtok_sample. The same settings, text and vocabulary give the same ids on every
 * platform and number of threads. */
typedef struct ggtok_sampling {
    ggtok_sampling_rule rule;
    double value;   /* dropout or alpha */
    uint32_t nbest; /* UGM: choose among this number of best segmentations; 0: among all */
    uint64_t seed;
    uint64_t index; /* of the text: equal texts with different indices get independent ids */
} ggtok_sampling;

/*
 * Encodes text to the ids of a random segmentation. Flags are those of ggtok_encode, without
 * GGTOK_SPANS. With dropout 0, and for SPM with alpha 0, the ids are those of ggtok_encode. No cache
 * is used. Memory is that of ggtok_encode for an uncached text, plus 16 bytes (UGM) or 32 (SPM) for
 * each byte of a text that no token boundary divides. It takes up to 1 / (1 - dropout) times as long.
 *
 * Returns GGTOK_ERR_ARGUMENT if this type of vocabulary doesn't have the rule, or a setting is out
 * of range; err->key is then "dropout", "alpha" or "nbest". Only BPE, SPM and UGM can be sampled.
 */
GGTOK_API ggtok_status ggtok_sample(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                                    const ggtok_sampling *sampling, ggtok_ids *out,
                                    ggtok_error *err);

/* Segmentations of a text, best first. The ids of segmentation i are
 * ids[ends[i - 1] .. ends[i]), from 0 for the first. */
typedef struct ggtok_segmentations {
    const int32_t
        *ids; /* this and the other arrays: owned by the context, valid until its next use */
    const size_t *ends;
    const double *scores; /* sums of the tokens' scores; added and special tokens have none */
    size_t n;
} ggtok_segmentations;

/*
 * Finds the segmentations of a text with the `most` best scores (UGM only), or all if there are
 * fewer. The first has the ids of ggtok_encode. Returns GGTOK_ERR_ARGUMENT, with err->key "nbest",
 * if `most` is 0 or greater than GGTOK_NBEST_MAX, or if the text is too long for it (see
 * GGTOK_NBEST_PLACES).
 */
GGTOK_API ggtok_status ggtok_nbest(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                                   size_t most, ggtok_segmentations *out, ggtok_error *err);

#ifdef __cplusplus
}
#endif
#endif
