/* Finds the best path through a piece, and the pieces of a normalized text. */
#include "models/trace.h"
#include "models/ugm/ugm.h"

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

static inline double sum_with(const ugm_run *r, double here, int32_t id) {
    const vocab *v = r->call->v;
    bool user = r->s->any_user && (v->attr[id] & GGTOK_ATTR_USER_DEFINED);
    return here + (user ? 0.0 : v->score[id]);
}

/* Offers the paths that continue at i with a token of text[i..n). Returns whether such a token is
 * the single character at i, of `len` bytes. */
static inline bool offer_tokens(const ugm_run *r, const int32_t *hits, const uint8_t *text,
                                size_t i, size_t n, size_t len) {
    const trie *t = &r->m->tokens;
    const text_guard *guard = r->call->guard;
    best *at = r->s->best;
    double here = at[i].score;
    bool known = false;
    if (hits) {
        size_t long_len;
        for (uint32_t hit = (uint32_t)hits[i]; hit; hit = trie_long_shorter(&r->m->longs, hit)) {
            int32_t id = trie_long_id(&r->m->longs, hit, &long_len);
            if (guard && !guard_allows(guard, id, i, long_len)) continue;
            offer(&at[i + long_len], sum_with(r, here, id), id, long_len);
        }
        if (n - i > TRIE_WALK) n = i + TRIE_WALK;
    }
    uint32_t s = 0;
    for (size_t k = i; k < n;) {
        s = trie_child(t, s, text[k++]);
        if (!s) break;
        uint32_t link = t->unit[s].link;
        if (!(link & (TRIE_VALUE | TRIE_TAIL))) continue;
        if (link & TRIE_TAIL) {
            size_t rest = trie_tail(t, s, k - i, text + k, n - k);
            if (rest == SIZE_MAX) break;
            k += rest;
        }
        if (!guard || guard_allows(guard, t->value[s], i, k - i)) {
            known |= k - i == len;
            offer(&at[k], sum_with(r, here, t->value[s]), t->value[s], k - i);
        }
        if (link & TRIE_TAIL) break;
    }
    return known;
}

/* Reports the word, the best path to each position, and the tokens, which have the last spans. */
static bool trace_path(const ugm_run *r, const uint8_t *text, size_t n) {
    const best *at = r->s->best;
    const idbuf *ids = &r->s->ids;
    text_guard *g = r->call->guard;
    int32_t unk = r->call->v->special[GGTOK_UNK];
    if (!ggtok_trace_word(g, 0, n)) return false;
    for (size_t i = 0; i <= n; i++) {
        size_t from = i - at[i].len;
        ggtok_trace_event e = {.kind = GGTOK_TRACE_PLACE, .at = i, .id = at[i].id};
        e.text = (ggtok_bytes){(const char *)text + from, at[i].len};
        e.has_score = e.has_total = true;
        e.score = at[i].score - at[from].score;
        e.total = at[i].score;
        if (at[i].len && !trace_emit(g->trace, e)) return false;
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
        ok = ggtok_trace_token_at(g, e, g->n_made - 1 - k);
    }
    ggtok_mem_free(ends);
    return ok;
}

/*
 * Finds the ids of text[0..n) and writes them to s->ids, from last to first, with adjacent unknown
 * ids fused.
 *
 * Ties: of paths with equal sums, the first found wins, which is the path whose last token begins
 * first. A token wins over the unknown character with the same bytes.
 */
static bool find_path(const ugm_run *r, const uint8_t *text, size_t n) {
    const trie_long *longs = &r->m->longs;
    int32_t unk = r->call->v->special[GGTOK_UNK];
    const int32_t *hits = NULL;
    if (!reserve_best(r->s, n + 1)) return false;
    if (trie_long_for(longs, n)) {
        if (!ggtok_trie_long_find(longs, text, n, &r->s->hits)) return false;
        hits = r->s->hits.data;
    }
    best *at = r->s->best;
    for (size_t i = 0; i <= n; i++) at[i] = (best){-DBL_MAX, unk, 0};
    at[0].score = 0;

    for (size_t i = 0, len; i < n; i += len) {
        len = utf8_lead_len(text[i]);
        if (len > n - i) len = n - i;
        if (interrupted(r->call->interrupt, len)) return false;
        if (!offer_tokens(r, hits, text, i, n, len)) {
            offer(&at[i + len], at[i].score + r->m->unknown, unk, len);
        }
    }

    idbuf *ids = &r->s->ids;
    text_guard *g = r->call->guard;
    bool was_unknown = false;
    ids->n = 0;
    for (size_t i = n, end = n;; i -= at[i].len) {
        bool unknown = at[i].id == unk;
        if (unknown && g) guard_unknown(g, unk, i - at[i].len, at[i].len);
        if (!(was_unknown && unknown)) {
            if (!idbuf_push(ids, at[i].id)) return false;
            end = i;
        } else if (g) {
            g->n_made -= g->spans; /* fused with the next unknown token */
        }
        bool at_start = at[i].len == i || !at[i].len; /* 0: all sums are NaN, so no path */
        size_t from = at_start ? 0 : i - at[i].len;
        if (g && !ggtok_guard_made(g, from, end - from)) return false;
        if (at_start) break;
        was_unknown = unknown;
    }
    if (g && g->spans) ggtok_guard_reverse(g, ids->n);
    return !trace_of(g) || trace_path(r, text, n);
}

/* Appends the ids of a piece's best path. */
static ggtok_status push_path(const ugm_run *r, const uint8_t *text, size_t n) {
    idbuf *out = r->call->out, *ids = &r->s->ids;
    if (!find_path(r, text, n) || !idbuf_reserve(out, ids->n)) return ggtok_call_failed(r->call);
    for (size_t i = ids->n; i-- > 0;) out->data[out->n++] = ids->data[i];
    return GGTOK_OK;
}

/* Encodes a piece that isn't cached. */
static ggtok_status encode_piece(const model_call *call, const uint8_t *text, size_t n,
                                 size_t room) {
    const ugm_run r = {.call = call, .m = call->model, .s = call->scratch};
    idbuf *out = call->out;
    size_t before = out->n;
    ggtok_status status = push_path(&r, text, n);
    if (!status)
        ggtok_word_cache_put(&r.s->pieces, text, n, room, out->data + before, out->n - before);
    return status;
}

/* Appends the ids of *count pieces of s->norm, the first beginning at *start. Advances *start past
 * them and sets *count to 0. */
static ggtok_status push_pieces(ugm_run *r, size_t room, size_t *start, const size_t *ends,
                                size_t *count) {
    size_t from = *start, n = *count;
    if (!n) return GGTOK_OK;
    *start = ends[n - 1];
    *count = 0;
    return ggtok_words_encode(r->call, &r->s->pieces, encode_piece, r->s->norm.data, room, from,
                              ends, n);
}

/* Cuts s->norm between two characters that no token contains side by side. */
ggtok_status ggtok_ugm_drain(ugm_run *r, bool all) {
    enum { ENDS = 256, ROOM = PIECE_MAX + 1 };
    bytebuf *norm = &r->s->norm;
    size_t ends[ENDS], count = 0, start = 0, n = norm->n, i = 0, len;
    ggtok_status status = GGTOK_OK;
    if (!bytebuf_reserve(norm, ROOM)) return ggtok_call_failed(r->call);
    const uint8_t *p = norm->data;
    if (r->cut && n) {
        uint32_t c = char_at(p, n, &len);
        for (i = len; !status && i < n; i += len) {
            /* The last characters may be incomplete. */
            if (!all && n - i < 4) break;
            uint32_t next = p[i];
            if (next < 0x80)
                len = 1;
            else
                next = char_at(p + i, n - i, &len);
            ends[count] = i;
            count += !pair_in(&r->m->pairs, c, next);
            c = next;
            if (count == ENDS) {
                status = push_pieces(r, n + ROOM, &start, ends, &count);
            }
        }
    }
    if (!status) status = push_pieces(r, n + ROOM, &start, ends, &count);
    if (!status && all && start < n) {
        if (!r->cut) {
            status = push_path(r, p, n);
        } else {
            ends[count++] = n;
            status = push_pieces(r, n + ROOM, &start, ends, &count);
        }
        start = n;
    }
    r->drained += (double)start;
    norm->n = n - start;
    memmove(norm->data, p + start, norm->n);
    return status;
}
