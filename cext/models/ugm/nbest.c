/*
 * Collects the best paths through a text: at each position, the best `nbest` paths to it, in
 * descending order. A token continues each path to its start. Of paths with equal scores, the first
 * found comes first, so that the first path is that of find_path.
 *
 * The fragments of a text (between special tokens) are one lattice: the paths to a fragment's first
 * position are those to the end of the fragment before it.
 */
#include "models/nbest.h"
#include "models/ugm/edges.h"

#include <float.h>

/* User data of continue_paths: the position at which tokens begin. */
typedef struct growth {
    const ugm_run *r;
    nbest_path *at;   /* its paths; those to the position d bytes later are at[d * nbest] */
    uint32_t *counts; /* counts[d] is their number */
    nbest_path *merged;
} growth;

/* Offers the paths that continue with a token to the position `len` bytes later. */
static void offer_paths(const growth *g, double score, int32_t id, size_t len) {
    const uint32_t most = g->r->call->sampling->nbest, n_from = g->counts[0], n_to = g->counts[len];
    nbest_path *to = g->at + len * most;
    uint32_t i = 0, k = 0, n = 0;
    while (n < most && (i < n_to || k < n_from)) {
        double sum = k < n_from ? g->at[k].score + score : 0;
        if (k < n_from && !(sum > -DBL_MAX)) { /* also NaN */
            k++;
        } else if (k == n_from || (i < n_to && to[i].score >= sum)) {
            g->merged[n++] = to[i++];
        } else {
            g->merged[n++] = (nbest_path){sum, id, (uint32_t)len, k++};
        }
    }
    memcpy(to, g->merged, n * sizeof *to);
    g->counts[len] = n;
}

static inline void continue_paths(void *user, int32_t id, size_t len) {
    const growth *g = user;
    offer_paths(g, ugm_score(g->r, id), id, len);
}

ggtok_status ggtok_ugm_push_best(const ugm_run *r, const uint8_t *text, size_t n) {
    const model_call *call = r->call;
    const uint32_t most = call->sampling->nbest;
    const int32_t *hits, unk = call->v->special[GGTOK_UNK];
    growth g = {.r = r};
    ggtok_status s = ggtok_nbest_begin_fragment(call->sampling, n, call->out->n, &g.at, &g.counts,
                                                &g.merged, call->err);
    if (s || !ggtok_ugm_find_long(r, text, n, &hits)) return s ? s : ggtok_call_failed(call);
    for (size_t i = 0; i < n;) {
        size_t len = utf8_lead_len(text[i]);
        if (len > n - i) len = n - i;
        if (interrupted(call->interrupt, len * most)) return ggtok_call_failed(call);
        if (!ugm_each_token(r, hits, text, i, n, len, continue_paths, &g))
            offer_paths(&g, r->m->unknown, unk, len);
        i += len;
        g.at += len * most;
        g.counts += len;
    }
    if (!*g.counts) { /* no score is a number: find_path's result */
        *g.at = (nbest_path){-DBL_MAX, unk, (uint32_t)n, 0};
        *g.counts = 1;
    }
    return GGTOK_OK;
}
