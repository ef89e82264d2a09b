/*
 * Assigns spans to UGM's ids if the text can be cut into spans (words_apart in ugm.c), called words
 * here. Each word is normalized to one or more strings that begin with U+2581, and the texts of the
 * ids tile these strings.
 */
#include "models/ugm/ugm.h"

typedef struct placing {
    const model_call *call;
    const model_source *source;
    size_t k;     /* index of the next id */
    size_t white; /* start of the white space before the next word */
    changes changes;
} placing;

/* Assigns the spans of a path that was found again. */
static bool place_path(placing *p, ugm_run *r, const recorder *rec, size_t base) {
    const idbuf *ids = r->call->out;
    const model_source *to = p->source;
    if (ggtok_ugm_drain(r, true) || rec->n_made != ids->n || ids->n > to->n_ids - p->k)
        return false;
    if (!ids->n) return true;
    if (memcmp(ids->data, to->ids + p->k, ids->n * sizeof *ids->data)) return false;
    ggtok_recorder_copy_spans(rec, to->spans + p->k, to->base + (int64_t)base);
    p->k += ids->n;
    return true;
}

/* Assigns the spans of a word whose lengths don't determine them, by finding its path again. The
 * word is in the text from p->white to `end`. */
static bool place_changed(placing *p, size_t end) {
    ugm_scratch *s = p->call->scratch;
    recorder *rec = p->call->spans->recorder;
    size_t base = p->white, n = end - base;
    const uint8_t *text = p->source->text + base;
    model_call own = *p->call;
    ggtok_error unwanted;
    bool exact;
    own.recorder = rec;
    own.out = &s->reencoded;
    own.err = &unwanted;
    s->reencoded.n = 0;
    ggtok_recorder_clear(rec);
    if (!ggtok_recorder_begin_spans(rec, own.v, text, n)) return false;
    ugm_run r = {.call = &own, .m = own.model, .s = s, .keep = true};
    if (ggtok_ugm_run_text(&r, text, n, &exact)) return false;
    bool placed = place_path(p, &r, rec, base);
    p->white = r.white_begin < r.white_end ? base + r.white_begin : end;
    return placed;
}

/*
 * Assigns spans along text[at..stop), words separated by one byte of white space each. Returns the
 * position up to which it assigned spans; unless that is `stop`, only the spans of whole words
 * before the position are valid. See claim offsets.4.
 */
static int64_t place_stretch(placing *p, int64_t at, int64_t stop) {
    const ugm_scratch *s = p->call->scratch;
    const tile_length *len = s->tiles.len;
    const int32_t *ids = p->source->ids;
    const size_t n_ids = p->source->n_ids;
    const int64_t base = p->source->base;
    ggtok_span *spans = p->source->spans;
    change_place place = {at, 0};
    size_t k = p->k;
    while (k < n_ids && place.at < stop) {
        const int64_t next = changes_next(&p->changes), end = next < stop ? next : stop;
        int64_t from = place.at;
        for (; k < n_ids; k++) {
            const tile_length own = len[ids[k]];
            const int64_t to = from + own;
            if ((to > end) | (own == TILE_ASK)) break;
            spans[k].begin = base + from;
            spans[k].end = base + to;
            from = to;
        }
        place.at = from;
        if (k == n_ids || from == stop || len[ids[k]] == TILE_ASK) break;
        const change_place before = place;
        if (!ggtok_changes_take(&p->changes, &place, stop, len[ids[k]], &spans[k])) {
            place = before;
            break;
        }
        spans[k].begin += base;
        spans[k].end += base;
        k++;
    }
    p->k = k;
    return place.at;
}

/* Returns the end of the sequence of words from i on that are separated by one byte of white space
 * each. */
static size_t stretch_end(const ugm_spans *f, size_t i) {
    enum { STEP = 8 };
    for (; i + STEP < f->n; i += STEP) {
        size_t wider = 0;
        for (size_t k = i + 1; k <= i + STEP; k++) wider |= f->start[k] - f->end[k - 1] - 1;
        if (wider) break;
    }
    while (++i < f->n && f->start[i] == f->end[i - 1] + 1) {}
    return i;
}

/* Assigns spans to the ids of a batch of words: for most words from lengths, a stretch at a time;
 * for the others, one by one. */
static bool place_words(placing *p, const ugm_spans *f) {
    const int64_t base = p->source->base;
    for (size_t i = 0, stretch = 0; i < f->n;) {
        if (i >= stretch) stretch = stretch_end(f, i);
        const size_t first = p->k, from = i;
        const int64_t stop = (int64_t)f->end[stretch - 1];
        const int64_t at = place_stretch(p, (int64_t)f->start[i] - 1, stop);
        if (at == stop) i = stretch;
        while (i < stretch && (int64_t)f->end[i] <= at) i++;
        const size_t end = i > from ? f->end[i - 1] : p->white;
        if (i < stretch) { /* go back to the incomplete word */
            while (p->k > first &&
                   (i == from || p->source->spans[p->k - 1].begin >= base + (int64_t)end))
                p->k--;
        }
        if (i > from) p->source->spans[first].begin = base + (int64_t)p->white;
        p->white = end;
        if (i == stretch) continue;
        if (!place_changed(p, f->end[i])) return false;
        changes_skip(&p->changes, (int64_t)f->end[i++]);
    }
    return p->k == p->source->n_ids;
}

bool ggtok_ugm_can_place(const model_call *call) {
    enum { MATCHED = GGTOK_ATTR_NORMAL | GGTOK_ATTR_USER_DEFINED | GGTOK_ATTR_UNUSED };
    ugm_scratch *s = call->scratch;
    int32_t unk = call->v->special[GGTOK_UNK];
    bool is_matched = unk >= 0 && (uint32_t)unk < call->v->n_tokens && call->v->attr[unk] & MATCHED;
    return call->spans && !is_matched && ggtok_tile_measure_words(&s->tiles, call->v);
}

bool ggtok_ugm_place(const model_call *call, const uint8_t *text, size_t n, size_t first,
                     size_t *white) {
    ugm_scratch *s = call->scratch;
    const ugm_spans *f = &s->found;
    model_source source;
    placing p;
    p.call = call, p.source = &source, p.k = 0, p.white = *white;
    ugm_finder finder = {.m = call->model, .s = s};
    if (!ggtok_tile_source(call, text, n, first, &source)) return false;
    if (!f->n) return !source.n_ids;
    p.changes.find = ggtok_ugm_find_changes;
    p.changes.user = &finder;
    ggtok_changes_begin(&p.changes, text, f->start[0], f->end[f->n - 1]);
    if (!place_words(&p, f)) return false;
    *white = p.white;
    return true;
}
