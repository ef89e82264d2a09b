/* Random segmentations, and the best ones; see ggtok_sample.h and models/sampling.h. */
#include "api/tokenizer.h"
#include "models/nbest.h"
#include "models/weights.h"

static ggtok_status refuse(ggtok_error *err, const char *key, const char *message) {
    return ggtok_error_set_at(err, GGTOK_ERR_ARGUMENT, key, strlen(key), GGTOK_NO_OFFSET, "%s: %s",
                              key, message);
}

ggtok_status ggtok_check_sampling(const ggtok_tokenizer *tok, const ggtok_sampling *s,
                                  ggtok_error *err) {
    const bool drops = s->rule == GGTOK_SAMPLING_DROPOUT, is_ugm = tok->v.type == GGTOK_VOCAB_UGM;
    const unsigned can = tok->ops ? tok->ops->samples : ~0u; /* without ops, ggtok_encode fails */
    const char *key = drops ? "dropout" : "alpha";
    if (s->rule != GGTOK_SAMPLING_DROPOUT && s->rule != GGTOK_SAMPLING_ALPHA)
        return refuse(err, key, "the sampling rule must be dropout or alpha");
    if (!can) {
        return refuse(err, key,
                      "this vocabulary has one segmentation of each text; only BPE, SPM and UGM "
                      "vocabularies can be sampled");
    }
    if (!(can & (1u << s->rule))) {
        return refuse(err, key,
                      drops ? "a UGM vocabulary has no merges to skip; use alpha instead"
                            : "a BPE vocabulary has no scores; use dropout instead");
    }
    if (!(s->value >= 0 && s->value <= (is_ugm ? GGTOK_ALPHA_MAX : 1))) {
        return refuse(err, key,
                      is_ugm ? "must be a number from 0 to 1000000"
                             : "must be a probability, from 0 to 1");
    }
    if (s->nbest && !is_ugm)
        return refuse(err, "nbest", "only a UGM vocabulary has a list of best segmentations");
    if (s->nbest > GGTOK_NBEST_MAX) return refuse(err, "nbest", "must be at most 1024");
    return GGTOK_OK;
}

/* Starts sampling; returns its state, or NULL if out of memory. */
static sampling *begin_sampling(ggtok_context *ctx, const ggtok_sampling *options) {
    if (!ctx->sampling && !(ctx->sampling = ggtok_mem_zalloc(sizeof *ctx->sampling))) return NULL;
    ggtok_sampling_begin(ctx->sampling, options);
    return !options->nbest || ggtok_nbest_begin(ctx->sampling) ? ctx->sampling : NULL;
}

/* Encodes to ctx->ids; if best paths are collected, only special tokens. */
static ggtok_status encode_sampled(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                                   const ggtok_sampling *options, ggtok_error *err) {
    if (!begin_sampling(ctx, options)) return ggtok_error_memory(err);
    ctx->samples = true;
    ggtok_status s =
        ggtok_encode_text(ctx, (const uint8_t *)text, n, flags & ~(unsigned)GGTOK_SPANS, NULL, err);
    ctx->samples = false;
    return s;
}

/* Draws one of the best paths, in proportion to exp(alpha * score). */
static uint32_t draw_rank(sampling *s) {
    uint32_t n, i = 0;
    const nbest_path *paths = ggtok_nbest_paths(s, &n);
    double total = 0;
    for (uint32_t k = 0; k < n; k++)
        total += weight_relative(weight_exp(s->alpha * (paths[k].score - paths[0].score)), 0);
    if (!(total > 0)) return 0; /* scores that can't be compared: encode's choice */
    double left = (double)sampling_random(s) * 0x1p-53 * total;
    for (; i + 1 < n; i++) {
        left -= weight_relative(weight_exp(s->alpha * (paths[i].score - paths[0].score)), 0);
        if (left < 0) break;
    }
    return i;
}

ggtok_status ggtok_sample(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                          const ggtok_sampling *options, ggtok_ids *out, ggtok_error *err) {
    *out = (ggtok_ids){NULL, 0};
    ggtok_status s = ggtok_check_sampling(ctx->tok, options, err);
    if (s) return s;
    if (options->nbest == 1)
        return ggtok_encode(ctx, text, n, flags & ~(unsigned)GGTOK_SPANS, out, err);
    if ((s = encode_sampled(ctx, text, n, flags, options, err))) return s;
    const idbuf *ids = &ctx->ids;
    if (options->nbest) {
        ids = &ctx->reencoded;
        ctx->reencoded.n = 0;
        if (!ggtok_nbest_ids(ctx->sampling, draw_rank(ctx->sampling), &ctx->ids,
                             ctx->tok->v.special[GGTOK_UNK], &ctx->reencoded))
            return ggtok_error_memory(err);
    }
    *out = (ggtok_ids){ids->data, ids->n};
    return GGTOK_OK;
}

ggtok_status ggtok_nbest(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                         size_t most, ggtok_segmentations *out, ggtok_error *err) {
    ggtok_ids none;
    *out = (ggtok_segmentations){NULL, NULL, NULL, 0};
    if (!ctx->tok->ops) return ggtok_encode(ctx, text, n, 0, &none, err); /* fails */
    if (!most || most > GGTOK_NBEST_MAX)
        return refuse(err, "nbest", "the number of segmentations must be from 1 to 1024");
    if (ctx->tok->v.type != GGTOK_VOCAB_UGM)
        return refuse(err, "nbest", "only a UGM vocabulary has a list of best segmentations");
    const ggtok_sampling options = {
        .rule = GGTOK_SAMPLING_ALPHA, .value = 0, .nbest = (uint32_t)most};
    ggtok_status s = encode_sampled(ctx, text, n, flags, &options, err);
    if (s) return s;
    if (mem_mul(ctx->ids.n, most) > GGTOK_NBEST_PLACES) /* each segmentation has all of them */
        return ggtok_nbest_too_long(n, (uint32_t)most, err);
    uint32_t found;
    const nbest_path *paths = ggtok_nbest_paths(ctx->sampling, &found);
    idbuf *ids = &ctx->reencoded;
    ids->n = ctx->bytes.n = 0;
    if (!bytebuf_reserve(&ctx->bytes, found * (sizeof *out->scores + sizeof *out->ends)))
        return ggtok_error_memory(err);
    double *scores = (void *)ctx->bytes.data;
    size_t *ends = (void *)(scores + found);
    for (uint32_t i = 0; i < found; i++) {
        scores[i] = paths[i].score;
        if (interrupted(&ctx->interrupt, ids->n / (i + 1)) ||
            !ggtok_nbest_ids(ctx->sampling, i, &ctx->ids, ctx->tok->v.special[GGTOK_UNK], ids))
            return ggtok_error_failed(&ctx->interrupt, err);
        ends[i] = ids->n;
    }
    *out = (ggtok_segmentations){ids->data, ends, scores, found};
    return GGTOK_OK;
}
