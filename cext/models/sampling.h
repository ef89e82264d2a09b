/*
 * Random choices among the segmentations of a text, for ggtok_sample.
 *
 * A model that can be sampled looks at call->sampling in `encode`, once for a fragment or a batch of
 * words, and then uses neither caches nor the paths that rely on them. Merges are skipped at random
 * (models/spm/, models/bpe/merge.c); UGM draws a path (models/ugm/sample.c) or collects the best
 * paths (models/ugm/nbest.c).
 */
#ifndef GGTOK_SAMPLING_H
#define GGTOK_SAMPLING_H

#include "base/mem.h"
#include "ggtok_sample.h"

/* Bits of model_ops.samples. */
enum { SAMPLES_DROPOUT = 1 << GGTOK_SAMPLING_DROPOUT, SAMPLES_ALPHA = 1 << GGTOK_SAMPLING_ALPHA };

/* A path to a position in a text: its last token, and which of the paths to the token's start it
 * continues. */
typedef struct nbest_path {
    double score;
    int32_t id;
    uint32_t len;  /* of the token, in bytes; 0: the path continues from the previous fragment */
    uint32_t rank; /* index of the continued path */
} nbest_path;

/* A fragment of the text whose best paths are known. */
typedef struct nbest_fragment {
    size_t first, n;   /* index of its first position, and its bytes; it has n + 1 positions */
    size_t ids_before; /* number of ids, of special tokens, before it */
} nbest_fragment;

/* The best paths through the fragments of a text; see models/ugm/nbest.c. */
typedef struct nbest_lattice {
    nbest_path *paths; /* `most` for each position */
    size_t paths_cap;
    bytebuf counts;    /* uint32_t: number of paths to each position */
    bytebuf fragments; /* nbest_fragment */
} nbest_lattice;

typedef struct sampling {
    uint32_t nbest;          /* number of best paths to collect; 0: none */
    double alpha;            /* UGM */
    uint64_t skip_below;     /* a merge is skipped if a random number of 53 bits is below this */
    bool skipped_returns;    /* whether skipped merges return after the next one */
    uint64_t state[4];       /* of the random numbers */
    bytebuf skipped;         /* skipped merges that will return */
    bytebuf starts, weights; /* UGM: the positions of a piece, and the weights of their paths */
    nbest_lattice lattice;
} sampling;

/* Starts the random numbers of a text. Streams of different seeds or indices are independent. */
void ggtok_sampling_begin(sampling *s, const ggtok_sampling *options);
void ggtok_sampling_free(sampling *s);
size_t ggtok_sampling_bytes(const sampling *s);

/* Returns a random number of 53 bits (xoshiro256++, by Blackman and Vigna). */
static inline uint64_t sampling_random(sampling *s) {
    uint64_t *x = s->state, sum = x[0] + x[3];
    uint64_t result = (sum << 23 | sum >> 41) + x[0], t = x[1] << 17;
    x[2] ^= x[0];
    x[3] ^= x[1];
    x[1] ^= x[2];
    x[0] ^= x[3];
    x[2] ^= t;
    x[3] = x[3] << 45 | x[3] >> 19;
    return result >> 11;
}

/* Draws whether to skip a merge. */
static inline bool sampling_skips(sampling *s) {
    return sampling_random(s) < s->skip_below;
}

#endif
