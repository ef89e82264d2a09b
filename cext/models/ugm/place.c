/*
 * Spans of UGM's ids, where the text may be cut into spans (words_apart in ugm.c), which are called
 * words here: each is normalized to words that begin with U+2581, and its ids' texts are that.
 */
#include "models/tile.h"
#include "models/ugm/ugm.h"
#include "unicode/space_mark.h"

typedef struct placing {
    const model_call *call;
    const model_source *source;
    size_t k;     /* the next id */
    size_t white; /* where the white space before the next word begins */
} placing;

static bool begins_word(const vocab *v, int32_t id) {
    gguf_view text = vocab_text(v, (uint32_t)id);
    return text.n >= SPACE_MARK_BYTES && !memcmp(text.p, SPACE_MARK, SPACE_MARK_BYTES);
}

/* How many normalized bytes the next id is, of `left` that the word still has. The unknown one is
 * all of them, if no other follows in the word; else that can't be told: 0. */
static size_t length_of(const placing *p, size_t left) {
    const model_source *s = p->source;
    const vocab *v = p->call->v;
    int32_t id = s->ids[p->k];
    if (id != v->special[GGTOK_UNK]) return vocab_text(v, (uint32_t)id).n;
    return p->k + 1 == s->n_ids || begins_word(v, s->ids[p->k + 1]) ? left : 0;
}

static void put_span(placing *p, size_t begin, size_t end) {
    int64_t base = p->source->base;
    p->source->spans[p->k++] = (ggtok_span){base + (int64_t)begin, base + (int64_t)end};
}

/* The word text[start..end), of which nothing changes. */
static bool place_plain(placing *p, size_t start, size_t end) {
    size_t total = SPACE_MARK_BYTES + end - start, at = 0, first = p->k;
    while (at < total && p->k < p->source->n_ids) {
        size_t n = length_of(p, total - at), to = at + n;
        if (!n || to > total) break;
        put_span(p, at < SPACE_MARK_BYTES ? p->white : start + at - SPACE_MARK_BYTES,
                 to <= SPACE_MARK_BYTES ? start : start + to - SPACE_MARK_BYTES);
        at = to;
    }
    if (at < total) p->k = first;
    return at == total;
}

/* Lays ids along what the word was normalized to. */
static bool place_normalized(placing *p, const text_guard *g, size_t base) {
    size_t total = g->text.n, at = 0, first = p->k;
    while (at < total && p->k < p->source->n_ids) {
        /* Of unknown characters in a word that isn't the last there is no end in sight. */
        size_t n = length_of(p, 0);
        if (!n || n > total - at) break;
        put_span(p, base + g->from[at].begin, base + g->from[at + n - 1].end);
        at += n;
    }
    if (at < total) p->k = first;
    return at == total;
}

/* Takes the spans of the path that is found for it anew. */
static bool place_path(placing *p, ugm_run *r, const text_guard *g, size_t base) {
    idbuf *ids = r->call->out;
    if (ggtok_ugm_drain(r, true) || g->n_made != ids->n) return false;
    if (ids->n > p->source->n_ids - p->k) return false;
    for (size_t i = 0; i < ids->n; i++) {
        if (ids->data[i] != p->source->ids[p->k]) return false;
        put_span(p, base + (size_t)g->made[i].begin, base + (size_t)g->made[i].end);
    }
    return true;
}

/* Any other word, that is what stands from p->white on: normalized once more. */
static bool place_changed(placing *p, size_t end) {
    ugm_scratch *s = p->call->scratch;
    text_guard *g = &s->guard;
    size_t base = p->white, n = end - base;
    const uint8_t *text = p->source->text + base;
    model_call own = *p->call;
    ggtok_error unwanted;
    bool exact;
    own.guard = g;
    own.out = &s->again;
    own.err = &unwanted;
    s->again.n = 0;
    ggtok_guard_clear(g);
    if (!ggtok_guard_record(g, own.v, text, n)) return false;
    ugm_run r = {.call = &own, .m = own.model, .s = s, .keep = true};
    if (ggtok_ugm_run_text(&r, text, n, &exact)) return false;
    bool placed = place_normalized(p, g, base) || place_path(p, &r, g, base);
    p->white = r.white_begin < r.white_end ? base + r.white_begin : end;
    return placed;
}

/* The words of a batch: those of ASCII all at once, others one by one. */
static bool place_words(placing *p, const ugm_spans *f) {
    ugm_scratch *s = p->call->scratch;
    const ugm_model *m = p->call->model;
    const model_source *source = p->source;
    size_t ascii = 0; /* up to this word there is no other */
    for (size_t i = 0; i < f->n;) {
        size_t start = f->start[i], end = f->end[i];
        if (m->all_plain && i >= ascii) {
            const tile_words words = {f->start + i, f->end + i, f->n - i, p->white, true};
            size_t n,
                placed = ggtok_tile_ascii_words(&s->tiles, p->call->v, source, &p->k, words, &n);
            ascii = i + n;
            i += placed;
            if (placed) {
                p->white = f->end[i - 1];
                continue;
            }
        }
        bool same = ggtok_ugm_keeps(m, s, source->text + start, end - start, source->n - start);
        if (same && place_plain(p, start, end)) {
            p->white = end;
        } else if (!place_changed(p, end)) {
            return false;
        }
        i++;
    }
    return true;
}

bool ggtok_ugm_place(const model_call *call, const model_source *source) {
    enum { MATCHED = GGTOK_ATTR_NORMAL | GGTOK_ATTR_USER_DEFINED | GGTOK_ATTR_UNUSED };
    const ugm_model *m = call->model;
    ugm_scratch *s = call->scratch;
    ugm_spans *f = &s->found;
    int32_t unk = call->v->special[GGTOK_UNK];
    placing p = {.call = call, .source = source};
    if (!ggtok_tile_measure_words(&s->tiles, call->v)) return false;
    if (!s->by_span || (unk >= 0 && call->v->attr[unk] & MATCHED)) return false;
    size_t before = 0;
    for (ggtok_ugm_spans_begin(f, m->newlines); ggtok_ugm_spans_next(f, source->text, source->n);) {
        if (interrupted(call->interrupt, f->at - before)) return false;
        before = f->at;
        if (!place_words(&p, f)) return false;
    }
    return p.k == source->n_ids;
}
