/* Finds the best path through a piece. */
#include "models/trace.h"
#include "models/ugm/edges.h"

#include <float.h>

static bool reserve_best(ugm_scratch *s, size_t n) {
    if (n <= s->best_cap) return true;
    size_t cap = n + n / 2 + 256;
    best *b = ggtok_mem_realloc(s->best, mem_mul(cap, sizeof *b));
    if (!b) return false;
    s->best = b;
    s->best_cap = cap;
    return true;
}

/* Offers a path to the position `to`; `id`, its last token, has `len` bytes. Keeps the better
 * path. */
static inline void offer(best *to, double sum, int32_t id, size_t len) {
    if (sum > to->score) *to = (best){sum, id, (uint32_t)len};
}

/* User data of offer_token: the best path to a position, at which tokens begin. */
typedef struct offering {
    const ugm_run *r;
    best *at;
    double here;
} offering;

static inline void offer_token(void *user, int32_t id, size_t len) {
    const offering *o = user;
    offer(o->at + len, o->here + ugm_score(o->r, id), id, len);
}

/* Reports the word, the best path to each position, and the tokens, which have the last spans. */
static bool trace_path(const ugm_run *r, const uint8_t *text, size_t n) {
    const best *at = r->s->best;
    const idbuf *ids = &r->s->ids;
    recorder *rec = r->call->recorder;
    int32_t unk = r->call->v->special[GGTOK_UNK];
    if (!ggtok_trace_word(rec, 0, n)) return false;
    for (size_t i = 0; i <= n; i++) {
        size_t from = i - at[i].len;
        ggtok_trace_event e = {.kind = GGTOK_TRACE_PLACE, .at = i, .id = at[i].id};
        e.text = (ggtok_bytes){(const char *)text + from, at[i].len};
        e.has_score = e.has_total = true;
        e.score = at[i].score - at[from].score;
        e.total = at[i].score;
        if (at[i].len && !trace_emit(rec->trace, e)) return false;
    }
    /* The ends of the tokens. Of consecutive unknown tokens, only the last end counts. */
    size_t *ends = ggtok_mem_alloc(mem_mul(ids->n, sizeof *ends)), count = 0;
    bool was_unknown = false, ok = ends != NULL;
    for (size_t i = n; ok;) {
        bool unknown = at[i].id == unk;
        if (!(was_unknown && unknown)) ends[count++] = i;
        was_unknown = unknown;
        if (!at[i].len || at[i].len == i) break;
        i -= at[i].len;
    }
    for (size_t k = count; ok && k-- > 0;) {
        const best *b = &at[ends[k]];
        bool unknown = b->id == unk;
        ggtok_trace_event e = {.id = b->id, .has_score = true, .has_total = true};
        e.how = unknown ? GGTOK_HOW_UNKNOWN : GGTOK_HOW_BEST_PATH;
        if (unknown) e.note = trace_note("consecutive unknown characters become one token");
        e.score = b->score - at[ends[k] - b->len].score;
        e.total = b->score;
        ok = ggtok_trace_token_at(rec, e, rec->n_made - 1 - k);
    }
    ggtok_mem_free(ends);
    return ok;
}

bool ggtok_ugm_find_long(const ugm_run *r, const uint8_t *text, size_t n, const int32_t **hits) {
    const trie_long *longs = &r->m->longs;
    *hits = NULL;
    if (!trie_long_for(longs, n)) return true;
    if (!ggtok_trie_long_find(longs, text, n, &r->s->hits)) return false;
    *hits = r->s->hits.data;
    return true;
}

/*
 * Finds the ids of text[0..n) and writes them to s->ids, from last to first, with adjacent unknown
 * ids fused.
 *
 * Ties: of paths with equal sums, the first found wins, which is the path whose last token begins
 * first. A token wins over the unknown character with the same bytes.
 */
static bool find_path(const ugm_run *r, const uint8_t *text, size_t n) {
    int32_t unk = r->call->v->special[GGTOK_UNK];
    const int32_t *hits;
    if (!reserve_best(r->s, n + 1) || !ggtok_ugm_find_long(r, text, n, &hits)) return false;
    best *at = r->s->best;
    for (size_t i = 0; i <= n; i++) at[i] = (best){-DBL_MAX, unk, 0};
    at[0].score = 0;

    for (size_t i = 0, len; i < n; i += len) {
        len = utf8_lead_len(text[i]);
        if (len > n - i) len = n - i;
        if (interrupted(r->call->interrupt, len)) return false;
        offering o = {r, at + i, at[i].score};
        if (!ugm_each_token(r, hits, text, i, n, len, offer_token, &o)) {
            offer(&at[i + len], at[i].score + r->m->unknown, unk, len);
        }
    }

    idbuf *ids = &r->s->ids;
    recorder *rec = r->call->recorder;
    bool was_unknown = false;
    ids->n = 0;
    for (size_t i = n, end = n;; i -= at[i].len) {
        bool unknown = at[i].id == unk;
        if (unknown && rec) recorder_refuse_unknown(rec, unk, i - at[i].len, at[i].len);
        if (!(was_unknown && unknown)) {
            if (!idbuf_push(ids, at[i].id)) return false;
            end = i;
        } else if (rec) {
            rec->n_made -= rec->spans; /* fused with the next unknown token */
        }
        bool at_start = at[i].len == i || !at[i].len; /* 0: all sums are NaN, so no path */
        size_t from = at_start ? 0 : i - at[i].len;
        if (rec && !ggtok_recorder_add_span(rec, from, end - from)) return false;
        if (at_start) break;
        was_unknown = unknown;
    }
    if (rec && rec->spans) ggtok_recorder_reverse(rec, ids->n);
    return !trace_of(rec) || trace_path(r, text, n);
}

ggtok_status ggtok_ugm_push_path(const ugm_run *r, const uint8_t *text, size_t n) {
    idbuf *out = r->call->out, *ids = &r->s->ids;
    if (!find_path(r, text, n) || !idbuf_reserve(out, ids->n)) return ggtok_call_failed(r->call);
    for (size_t i = ids->n; i-- > 0;) out->data[out->n++] = ids->data[i];
    return GGTOK_OK;
}
