/*
 * Draws a random path through a piece, with a probability proportional to exp(alpha * score).
 *
 * First, from the end to the beginning, each position gets the sum of the weights of all paths from
 * there to the end. Then, from the beginning, each token is drawn in proportion to its own weight
 * times the sum at its end. (SentencePiece does the same in the other direction.) A path's weight is
 * the product of its tokens' weights and the tokens of a piece don't depend on other pieces, so the
 * pieces of a text can be drawn separately.
 */
#include "models/ugm/edges.h"
#include "models/weights.h"

/* The paths that continue at a position with each of its tokens. */
typedef struct fan {
    const ugm_run *r;
    const weight *sums; /* by distance from the position: sums of weights from there to the end */
    double total;       /* the sum of the paths' weights is total * 2^e */
    int64_t e;
    double left;  /* for drawing: a random part of `total` */
    int32_t id;   /* the token drawn, or GGTOK_NO_TOKEN */
    size_t len;   /* its length */
    bool is_done; /* whether `left` is used up */
} fan;

/* Returns the weight of the paths that continue with a token. */
static inline weight fan_weight(const fan *f, double score, size_t len) {
    const weight rest = f->sums[len], own = weight_exp(f->r->call->sampling->alpha * score);
    return (weight){own.m * rest.m, own.e + rest.e};
}

static inline void add_path(fan *f, double score, size_t len) {
    if (f->sums[len].m == 0) return;
    weight w = fan_weight(f, score, len);
    if (w.m != 0) weight_add(&f->total, &f->e, w);
}

static inline void add_token(void *user, int32_t id, size_t len) {
    fan *f = user;
    add_path(f, ugm_score(f->r, id), len);
}

/* Draws the path if `left` falls into its weight. Rounding may leave a rest after the last path,
 * which is then the one drawn. */
static inline void draw_path(fan *f, double score, int32_t id, size_t len) {
    if (f->is_done || f->sums[len].m == 0) return;
    weight w = fan_weight(f, score, len);
    if (w.m == 0) return;
    f->id = id;
    f->len = len;
    f->left -= weight_relative(w, f->e);
    f->is_done = f->left < 0;
}

static inline void draw_token(void *user, int32_t id, size_t len) {
    fan *f = user;
    draw_path(f, ugm_score(f->r, id), id, len);
}

/* Writes the first position of each character of the piece to the scratch's `starts`, as size_t.
 * Returns false if out of memory or interrupted. */
static bool find_starts(const ugm_run *r, const uint8_t *text, size_t n) {
    bytebuf *starts = &r->call->sampling->starts;
    size_t count = 0;
    starts->n = 0;
    if (!bytebuf_reserve(starts, mem_mul(n, sizeof count))) return false;
    size_t *at = (void *)starts->data;
    for (size_t i = 0; i < n; i += utf8_lead_len(text[i])) {
        if (interrupted(r->call->interrupt, 1)) return false;
        at[count++] = i;
    }
    starts->n = count * sizeof count;
    return true;
}

static inline size_t char_length(const uint8_t *text, size_t i, size_t n) {
    size_t len = utf8_lead_len(text[i]);
    return len > n - i ? n - i : len;
}

/* Computes the sums of weights at all positions. Returns NULL if out of memory or interrupted. */
static weight *sum_weights(const ugm_run *r, const int32_t *hits, const uint8_t *text, size_t n) {
    sampling *s = r->call->sampling;
    s->weights.n = 0;
    if (!find_starts(r, text, n) || !bytebuf_reserve(&s->weights, mem_mul(n + 1, sizeof(weight))))
        return NULL;
    weight *sums = (void *)s->weights.data;
    const size_t *starts = (const void *)s->starts.data;
    memset(sums, 0, n * sizeof *sums); /* paths lead only to the starts of characters */
    sums[n] = (weight){1, 0};
    for (size_t k = s->starts.n / sizeof *starts; k-- > 0;) {
        size_t i = starts[k], len = char_length(text, i, n);
        if (interrupted(r->call->interrupt, len)) return NULL;
        fan f = {.r = r, .sums = sums + i};
        if (!ugm_each_token(r, hits, text, i, n, len, add_token, &f))
            add_path(&f, r->m->unknown, len);
        sums[i] = weight_of(f.total, f.e);
    }
    return sums;
}

ggtok_status ggtok_ugm_sample_path(const ugm_run *r, const uint8_t *text, size_t n) {
    const model_call *call = r->call;
    const int32_t *hits, unk = call->v->special[GGTOK_UNK];
    const weight *sums =
        ggtok_ugm_find_long(r, text, n, &hits) ? sum_weights(r, hits, text, n) : NULL;
    if (!sums || !idbuf_reserve(call->out, n)) return ggtok_call_failed(call);
    if (sums[0].m == 0) return ggtok_ugm_push_path(r, text, n); /* no score is a finite number */
    for (size_t i = 0; i < n;) {
        size_t len = char_length(text, i, n);
        if (interrupted(call->interrupt, len)) return ggtok_call_failed(call);
        double part = (double)sampling_random(call->sampling) * 0x1p-53;
        fan f = {.r = r, .sums = sums + i, .e = sums[i].e, .left = part * sums[i].m};
        if (!ugm_each_token(r, hits, text, i, n, len, draw_token, &f))
            draw_path(&f, r->m->unknown, unk, len);
        call->out->data[call->out->n++] = f.id;
        i += f.len;
    }
    return GGTOK_OK;
}
