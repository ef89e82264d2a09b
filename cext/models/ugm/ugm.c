/*
 * UGM: the text is normalized, then divided into the tokens with the greatest sum of
 * scores (unigram language model, Viterbi).
 *
 *   text -> NFC, if the vocabulary has the key normalizer.nfc (composed.c)
 *        -> spans between spaces, cached
 *        -> normalize (user-defined tokens, charsmap, white space) -> pieces
 *        -> best path of each piece, cached -> ids, runs of unknowns fused
 *
 * Cutting into spans and pieces is exact if sums of scores are exact (docs/design/types.md). If that
 * can't be proven for a vocabulary or a text, the text is one piece.
 */
#include "models/ugm/ugm.h"
#include "unicode/nfc.h"
#include "unicode/space_mark.h"
#include "unicode/utf8_valid.h"

#include <float.h>

enum { SPAN_MORE = 3 }; /* bytes by which a cached span may grow: its U+2581 */

static void ugm_scratch_free(void *scratch) {
    ugm_scratch *s = scratch;
    if (!s) return;
    ggtok_ugm_composed_free(&s->composed);
    ggtok_mem_free(s->norm.data);
    ggtok_mem_free(s->best);
    ggtok_mem_free(s->kind);
    ggtok_mem_free(s->ids.data);
    ggtok_mem_free(s->hits.data);
    ggtok_mem_free(s->padded.data);
    ggtok_mem_free(s->reencoded.data);
    ggtok_tile_free(&s->tiles);
    ggtok_word_cache_free(&s->spans);
    ggtok_word_cache_free(&s->pieces);
    ggtok_mem_free(s);
}

/* Allocates the table of kinds on first use. Returns false if out of memory. */
static bool reserve_kinds(ugm_scratch *s) {
    return s->kind || (s->kind = ggtok_mem_zalloc(N_KINDS));
}

static size_t ugm_cache_bytes(const void *scratch) {
    const ugm_scratch *s = scratch;
    return ggtok_word_cache_bytes(&s->spans) + ggtok_word_cache_bytes(&s->pieces);
}

/*
 * Whether texts can be cut into spans. Each span is normalized to words that begin with U+2581,
 * which no token contains after its first character, so the text can be cut before each span. And
 * consecutive unknown ids never cross from one span into the next: the ids of a span don't begin
 * with the unknown id, since U+2581 is a token and the unknown token's text doesn't begin with
 * U+2581.
 */
static bool words_apart(const vocab *v, const ugm_model *m) {
    const uint8_t *mark = (const uint8_t *)SPACE_MARK;
    int32_t id, unk = v->special[GGTOK_UNK];
    if (!m->words || !v->flag[GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES] ||
        !v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES] ||
        trie_longest(&m->tokens, mark, SPACE_MARK_BYTES, &id) != SPACE_MARK_BYTES) {
        return false;
    }
    if (unk < 0) return true;
    gguf_view text = vocab_text(v, (uint32_t)unk);
    return !text.n || text.p[0] != mark[0];
}

static void *ugm_scratch_new(const vocab *v, const void *model) {
    ugm_scratch *s = ggtok_mem_zalloc(sizeof *s);
    if (!s) return NULL;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        s->any_user |= (v->attr[id] & GGTOK_ATTR_USER_DEFINED) != 0;
    }
    s->by_span = words_apart(v, model);
    ggtok_ugm_changes_init(model, s);
    if (!ggtok_word_cache_init(&s->spans) || !ggtok_word_cache_init(&s->pieces)) {
        ugm_scratch_free(s);
        return NULL;
    }
    return s;
}

/* Keeps only the first of adjacent unknown ids, from index `first` on. */
static void fuse_unknown(const model_call *call, size_t first) {
    idbuf *out = call->out;
    int32_t unk = call->v->special[GGTOK_UNK];
    size_t n = first;
    bool was_unknown = false;
    for (size_t i = first; i < out->n; i++) {
        bool unknown = out->data[i] == unk;
        out->data[n] = out->data[i];
        n += !(was_unknown & unknown);
        was_unknown = unknown;
    }
    out->n = n;
}

/* Encodes a span that isn't cached. */
static ggtok_status encode_span(const model_call *call, const uint8_t *span, size_t n,
                                size_t room) {
    ugm_scratch *s = call->scratch;
    idbuf *out = call->out;
    size_t before = out->n;
    ugm_run r = {call, call->model, s, .cut = true};
    bool exact;
    ggtok_status status = ggtok_ugm_run_text(&r, span, n, &exact);
    if (status) return status;
    fuse_unknown(call, before);
    s->is_open |= r.is_open;
    double more = exact ? r.drained - (double)(n + SPAN_MORE) : DBL_MAX;
    if (more > 0 || r.is_open) {
        s->excess += more; /* at each occurrence, since the span isn't cached */
    } else {
        ggtok_word_cache_put(&s->spans, span, n, room, out->data + before, out->n - before);
    }
    return GGTOK_OK;
}

/* Appends the ids of all spans of the text, unless a span ends inside a character. Sets *exact to
 * false if the normalized text is, or may be, longer than cutting allows. */
static ggtok_status encode_spans(const model_call *call, const uint8_t *text, size_t n,
                                 bool *exact) {
    const ugm_model *m = call->model;
    ugm_scratch *s = call->scratch;
    ugm_spans *f = &s->found;
    ggtok_status status = GGTOK_OK;
    double spans = 0;
    size_t room, before = 0;
    bool assign = ggtok_ugm_can_place(call);
    size_t white = 0;
    s->excess = 0;
    s->is_open = false;
    *exact = true;
    if (!(text = ggtok_words_pad(&s->padded, text, n, &room))) return ggtok_call_failed(call);
    for (ggtok_ugm_spans_begin(f, m->newlines);
         !status && *exact && !s->is_open && ggtok_ugm_spans_next(f, text, n);) {
        if (interrupted(call->interrupt, f->at - before)) return ggtok_call_failed(call);
        before = f->at;
        size_t first = call->out->n;
        status = ggtok_words_encode_spans(call, &s->spans, encode_span, text, room, f->start,
                                          f->end, f->n, NULL);
        spans += (double)f->n;
        *exact = (double)f->at + SPAN_MORE * spans + s->excess <= m->exact_len;
        assign = assign && !status && ggtok_ugm_place(call, text, n, first, &white);
    }
    if (call->spans) call->spans->assigned = assign && *exact && !s->is_open;
    return status;
}

/* Encodes the text in one piece, or cut into pieces after normalization. */
static ggtok_status encode_text(const model_call *call, const uint8_t *text, size_t n, bool cut,
                                bool *exact) {
    ugm_run r = {call, call->model, call->scratch, .cut = cut, .prefixed = !call->after_special};
    size_t before = call->out->n;
    ggtok_status status = ggtok_ugm_run_text(&r, text, n, exact);
    fuse_unknown(call, before);
    return status;
}

/* Encodes text[0..n), of which nothing needs to be composed. */
static ggtok_status encode_composed(const model_call *call, const uint8_t *text, size_t n) {
    const ugm_model *m = call->model;
    size_t before = call->out->n;
    ugm_scratch *s = call->scratch;
    /* The best paths of the whole text are wanted, but a random path is drawn piece by piece. */
    bool exact, cut = m->exact_len > 0 && !(call->sampling && call->sampling->nbest);
    bool by_span = s->by_span && !call->sampling;
    ggtok_status status = by_span ? encode_spans(call, text, n, &exact) : GGTOK_OK;
    if (!status && (!by_span || s->is_open)) {
        call->out->n = before;
        status = encode_text(call, text, n, cut, &exact);
    }
    if (!status && cut && !exact) {
        /* The text is too long for exact sums (70 MB with a typical vocabulary): encode it again as
         * one piece. */
        call->out->n = before;
        status = encode_text(call, text, n, false, &exact);
    }
    return status;
}

/* Replaces the spans of the ids from index `first` on, which are positions in the composed text, by
 * those of their sources. */
static void replace_spans(const model_call *call, size_t first) {
    const ugm_scratch *s = call->scratch;
    span_buf *to = call->spans;
    for (size_t i = first; i < call->out->n; i++) {
        const ggtok_range from =
            ggtok_ugm_origin(&s->composed, (size_t)(to->data[i].begin - to->base),
                             (size_t)(to->data[i].end - to->base));
        to->data[i].begin = to->base + (int64_t)from.begin;
        to->data[i].end = to->base + (int64_t)from.end;
    }
}

/* Whether the text must be composed before it is encoded. */
static bool must_compose(const model_call *call, const uint8_t *text, size_t n) {
    return call->v->flag[GGTOK_FLAG_NFC] && (PLAIN || ggtok_nfc_kept(text, n) < n);
}

static ggtok_status ugm_encode(const model_call *call, const uint8_t *text, size_t n) {
    ggtok_error unwanted;
    model_call own = *call;
    if (!own.err) own.err = &unwanted; /* ggtok_ugm_run_text returns its status */
    ugm_scratch *s = call->scratch;
    if (!reserve_kinds(s)) return ggtok_call_failed(call);
    if (!must_compose(call, text, n)) return encode_composed(&own, text, n);
    const size_t first = call->out->n;
    if (!ggtok_ugm_compose(call, text, n)) return ggtok_call_failed(call);
    ggtok_status status = encode_composed(&own, s->composed.text.data, s->composed.text.n);
    if (!status && call->spans && call->spans->assigned) replace_spans(call, first);
    return status;
}

static ggtok_status ugm_encode_recorded(const model_call *call, const uint8_t *text, size_t n) {
    ggtok_error unwanted;
    model_call own = *call;
    recorder *rec = call->recorder;
    bool exact;
    if (!own.err) own.err = &unwanted; /* as in ugm_encode */
    ggtok_recorder_clear(rec);
    if (!must_compose(call, text, n)) return encode_text(&own, text, n, false, &exact);
    const ugm_composed *c = &((ugm_scratch *)call->scratch)->composed;
    if (!ggtok_ugm_compose(call, text, n)) return ggtok_call_failed(call);
    const bytebuf source = rec->source; /* the recorder's data for the text; below, for its NFC */
    const uint8_t *bytes = rec->bytes;
    rec->source = c->trusted;
    rec->bytes = c->text.data;
    rec->origin = rec->spans ? (const void *)c->origin.data : NULL;
    ggtok_status status = encode_text(&own, c->text.data, c->text.n, false, &exact);
    rec->source = source;
    rec->bytes = bytes;
    rec->origin = NULL;
    return status;
}

/* Whether text[0..at), once normalized, is certain to end with a whole character
 * (ggtok_ugm_ends_open). The last three normalized bytes decide, so this requires that the last
 * characters with three bytes in all are kept. At least three bytes must be readable after
 * text[0..at). */
static bool is_closed(const vocab *v, const ugm_model *m, ugm_scratch *s, const uint8_t *text,
                      size_t at) {
    for (size_t stay = 0; m->opens && at && stay < 3;) {
        size_t start = at - 1;
        while (start && at - start < 4 && utf8_continues(text[start])) start--;
        size_t len = at - start;
        if (utf8_lead_len(text[start]) != len || ggtok_utf8_valid_prefix(text + start, len) != len)
            return false;
        if (v->flag[GGTOK_FLAG_NFC] && ggtok_nfc_kept(text + start, len) < len) return false;
        if (ggtok_ugm_plain(m, s, text + start, len, len + 3) < len) return false;
        stay += len;
        at = start;
    }
    return true;
}

static bool ugm_may_cut(const vocab *v, const void *model, void *scratch,
                        const model_place *place) {
    const ugm_model *m = model;
    ugm_scratch *s = scratch;
    if (!s->by_span || !reserve_kinds(s)) return false;
    if (ugm_ends_spans(m, place->before)) return is_closed(v, m, s, place->text, place->start);
    return ugm_ends_spans(m, place->after) && is_closed(v, m, s, place->text, place->at);
}

static bool ugm_same(const void *a, const void *b) {
    const charsmap *first = &((const ugm_model *)a)->map, *second = &((const ugm_model *)b)->map;
    return first->n_units == second->n_units && first->text_n == second->text_n &&
           (!first->n_units ||
            !memcmp(first->unit, second->unit, first->n_units * sizeof *first->unit)) &&
           (!first->text_n || !memcmp(first->text, second->text, first->text_n));
}

const model_ops ggtok_model_ugm = {
    .build = ggtok_ugm_build,
    .free = ggtok_ugm_free,
    .scratch_new = ugm_scratch_new,
    .scratch_free = ugm_scratch_free,
    .encode = ugm_encode,
    .encode_recorded = ugm_encode_recorded,
    .cache_bytes = ugm_cache_bytes,
    .may_cut = ugm_may_cut,
    .same = ugm_same,
    .samples = SAMPLES_ALPHA,
};
