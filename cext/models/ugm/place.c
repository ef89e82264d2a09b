/*
 * Assigns spans to UGM's ids if the text can be cut into spans (words_apart in ugm.c), called words
 * here. Each word is normalized to one or more strings that begin with U+2581, and the texts of the
 * ids tile these strings.
 */
#include "models/tile.h"
#include "models/ugm/ugm.h"
#include "unicode/space_mark.h"
#include "unicode/utf8_valid.h"

typedef struct placing {
    const model_call *call;
    const model_source *source;
    size_t k;     /* index of the next id */
    size_t white; /* start of the white space before the next word */
    changes changes;
} placing;

/* Returns how many bytes of text[start..end), part of a word, are known to be kept. */
static size_t plain_run(const placing *p, size_t start, size_t end) {
    const model_source *s = p->source;
    return ggtok_ugm_plain(p->call->model, p->call->scratch, s->text + start, end - start,
                           s->n - start);
}

static void put_span(placing *p, size_t begin, size_t end) {
    int64_t base = p->source->base;
    p->source->spans[p->k++] = (ggtok_span){base + (int64_t)begin, base + (int64_t)end};
}

/*
 * A walk over the normalization of text[at..end), run by run: the bytes of a run have a common
 * source or are kept. `left` bytes of the current run remain. Their source is text[from..to) or, if
 * `own`, each byte is its own source.
 */
typedef struct walk {
    const placing *placing;
    const uint8_t *text;
    size_t at, end;
    size_t plain; /* number of bytes from `at` on that are known to be kept */
    size_t left, from, to;
    const uint8_t *bytes; /* the remaining bytes of the run */
    bool own;
    const uint8_t *with; /* the rest of a replacement */
    size_t with_n;
    size_t with_from, with_to; /* the source of the replacement */
    bool with_own;
    bool in_word;
    bool is_white; /* text[white_from..white_to) becomes the next word's U+2581 */
    size_t white_from, white_to;
} walk;

static void add_white(walk *w, size_t from, size_t to) {
    if (!w->is_white) w->white_from = from;
    w->white_to = to;
    w->is_white = true;
    w->in_word = false;
}

static bool set_run(walk *w, const uint8_t *bytes, size_t n, size_t from, size_t to, bool own) {
    w->bytes = bytes, w->left = n, w->from = from, w->to = to, w->own = own;
    return true;
}

/* Starts the run of the U+2581 before the word that begins at `from`. */
static bool begin_word(walk *w, size_t from) {
    w->in_word = true;
    bool white = w->is_white;
    w->is_white = false;
    return set_run(w, (const uint8_t *)SPACE_MARK, SPACE_MARK_BYTES, white ? w->white_from : from,
                   white ? w->white_to : from, false);
}

/* Starts the next run of a replacement. Returns false if only white space remains. */
static bool next_of_replacement(walk *w) {
    while (w->with_n) {
        size_t from = w->with_from, to = w->with_own ? from + 1 : w->with_to, n = 0;
        if (*w->with == ' ') {
            add_white(w, from, to);
            n = 1;
        } else if (!w->in_word) {
            return begin_word(w, from);
        } else {
            while (n < w->with_n && w->with[n] != ' ') n++;
            set_run(w, w->with, n, from, w->with_own ? from + n : to, w->with_own);
        }
        w->with += n;
        w->with_n -= n;
        if (w->with_own) w->with_from += n;
        if (w->left) return true;
    }
    return false;
}

/* Starts the next run. Returns false if there is none or if *fault is set. */
static bool next_run(walk *w, bool *fault) {
    const ugm_model *m = w->placing->call->model;
    for (;;) {
        if (w->with_n && next_of_replacement(w)) return true;
        if (w->at == w->end) return false;
        const uint8_t *p = w->text + w->at;
        size_t left = w->end - w->at, len = w->plain;
        if (!len) len = plain_run(w->placing, w->at, w->end);
        w->plain = w->in_word ? 0 : len;
        if (len) {
            if (!w->in_word) return begin_word(w, w->at);
            w->at += len;
            return set_run(w, p, len, w->at - len, w->at, true);
        }
        const char *unwanted = NULL;
        if (!(len = ggtok_ugm_match(m, p, left, &w->with, &w->with_n, &unwanted))) {
            *fault = true;
            return false;
        }
        w->with_from = w->at;
        w->with_to = w->at += len;
        w->with_own = w->with_n == len && !memcmp(w->with, p, len);
    }
}

/* Consumes n bytes and sets *span to their source. */
static bool take(walk *w, size_t n, ggtok_range *span) {
    bool fault = false;
    for (bool first = true; n; first = false) {
        if (!w->left && !next_run(w, &fault)) return false;
        size_t step = n < w->left ? n : w->left;
        if (first) span->begin = w->from;
        if (w->own) w->from += step;
        span->end = w->own ? w->from : w->to;
        w->left -= step;
        w->bytes += step;
        n -= step;
    }
    return true;
}

/* Whether the character at p[0..n) is a token. */
static bool is_token(const ugm_model *m, const uint8_t *p, size_t n) {
    int32_t id;
    size_t len = n ? utf8_lead_len(*p) : 0;
    return len && len <= n && trie_longest(&m->tokens, p, len, &id) == len;
}

/*
 * Consumes the characters that an unknown token represents: all up to the next character that is
 * itself a token. The next token must begin with that character.
 */
static bool take_unknown(walk *w, const placing *p, ggtok_range *span) {
    const ugm_model *m = w->placing->call->model;
    const model_source *s = p->source;
    bool fault = false, any = false;
    while ((w->left || next_run(w, &fault)) && !is_token(m, w->bytes, w->left)) {
        ggtok_range more;
        size_t n = utf8_lead_len(*w->bytes);
        if (n > w->left || !take(w, n, &more)) return false;
        if (!any) span->begin = more.begin;
        span->end = more.end;
        any = true;
    }
    if (!any || fault || p->k + 1 == s->n_ids) return any && !fault;
    gguf_view text = vocab_text(w->placing->call->v, (uint32_t)s->ids[p->k + 1]);
    return is_token(m, text.p, text.n);
}

/* Assigns spans along a word from the lengths of its ids' texts. Returns false if the
 * lengths don't determine the spans. */
static bool place_lengths(placing *p, size_t start, size_t end) {
    const model_source *s = p->source;
    const vocab *v = p->call->v;
    walk w = {.placing = p, .text = s->text, .at = start, .end = end};
    size_t first = p->k;
    bool fault = false, ok = true;
    if (p->white < start) add_white(&w, p->white, start);
    while (ok && (w.left || next_run(&w, &fault))) {
        ggtok_range span;
        if (!(ok = p->k < s->n_ids)) break;
        int32_t id = s->ids[p->k];
        if (id == v->special[GGTOK_UNK]) {
            ok = take_unknown(&w, p, &span);
        } else {
            size_t n = vocab_text(v, (uint32_t)id).n;
            ok = n && take(&w, n, &span);
        }
        if (ok) put_span(p, span.begin, span.end);
    }
    if (!ok || fault) {
        p->k = first;
        return false;
    }
    p->white = w.is_white ? w.white_from : end;
    return true;
}

/* Assigns the spans of a path that was found again. */
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

/* Assigns the spans of a word whose lengths don't determine them, by finding its path again. The
 * word is in the text from p->white to `end`. */
static bool place_changed(placing *p, size_t end) {
    ugm_scratch *s = p->call->scratch;
    text_guard *g = &s->guard;
    size_t base = p->white, n = end - base;
    const uint8_t *text = p->source->text + base;
    model_call own = *p->call;
    ggtok_error unwanted;
    bool exact;
    own.guard = g;
    own.out = &s->reencoded;
    own.err = &unwanted;
    s->reencoded.n = 0;
    ggtok_guard_clear(g);
    if (!ggtok_guard_record(g, own.v, text, n)) return false;
    ugm_run r = {.call = &own, .m = own.model, .s = s, .keep = true};
    if (ggtok_ugm_run_text(&r, text, n, &exact)) return false;
    bool placed = place_path(p, &r, g, base);
    p->white = r.white_begin < r.white_end ? base + r.white_begin : end;
    return placed;
}

/*
 * Assigns spans along text[at..stop), words separated by one byte of white space each. Returns the
 * position up to which it assigned spans; unless that is `stop`, only the spans of whole words
 * before the position are valid. See claim offsets.6.
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
        if (!place_lengths(p, f->start[i], f->end[i]) && !place_changed(p, f->end[i])) return false;
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
