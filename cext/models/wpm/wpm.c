/*
 * WPM: words, normalized, then the longest token again and again within each.
 *
 * The result depends on words alone, so a word seen before is a look-up, by its bytes
 * as they stand in the text: only a new one is normalized.
 */
#include "index/trie_long.h"
#include "models/model.h"
#include "models/tile.h"
#include "models/words.h"
#include "models/wpm/text.h"
#include "unicode/space_mark.h"
#include "unicode/utf8.h"

enum { PHANTOM = 3 /* length of the U+2581 before each word */ };

typedef struct wpm_model {
    trie t;
    trie_long longs;
} wpm_model;

typedef struct wpm_scratch {
    wpm_text text;
    wpm_spans spans;
    bytebuf padded;   /* a short text */
    bytebuf word;     /* PHANTOM bytes, then the word, normalized */
    idbuf ids;        /* of one word */
    idbuf hits;       /* of ggtok_trie_long_find */
    word_cache words; /* as they stand in the text */
    tiles tiles;
} wpm_scratch;

static void wpm_free(void *model) {
    wpm_model *m = model;
    if (!m) return;
    ggtok_trie_free(&m->t);
    ggtok_trie_long_free(&m->longs);
    ggtok_mem_free(m);
}

static ggtok_status wpm_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                              void **model, ggtok_error *err) {
    (void)g, (void)options;
    wpm_model *m = ggtok_mem_zalloc(sizeof *m);
    uint32_t *ids = ggtok_mem_alloc(mem_mul(v->n_tokens, sizeof *ids));
    bool ok = m && ids;
    for (uint32_t id = 0; ok && id < v->n_tokens; id++) ids[id] = id;
    /* All tokens, whatever their type: text_to_token makes no difference. */
    ok = ok && ggtok_trie_build(&m->t, v->text, v->text_off, ids, v->n_tokens, true) &&
         ggtok_trie_long_build(&m->longs, v->text, v->text_off, ids, v->n_tokens);
    ggtok_mem_free(ids);
    if (!ok) {
        wpm_free(m);
        return ggtok_error_memory(err);
    }
    *model = m;
    return GGTOK_OK;
}

static void wpm_scratch_free(void *scratch) {
    wpm_scratch *s = scratch;
    if (!s) return;
    ggtok_wpm_text_free(&s->text);
    ggtok_mem_free(s->padded.data);
    ggtok_mem_free(s->word.data);
    ggtok_mem_free(s->ids.data);
    ggtok_mem_free(s->hits.data);
    ggtok_mem_free(s->tiles.len);
    ggtok_word_cache_free(&s->words);
    ggtok_mem_free(s);
}

static size_t wpm_cache_bytes(const void *scratch) {
    const wpm_scratch *s = scratch;
    return ggtok_word_cache_bytes(&s->words);
}

static void *wpm_scratch_new(const vocab *v, const void *model) {
    static const uint8_t *const phantom = (const uint8_t *)SPACE_MARK;
    (void)model;
    wpm_scratch *s = ggtok_mem_zalloc(sizeof *s);
    if (!s) return NULL;
    if (!bytebuf_append(&s->word, phantom, PHANTOM) || !ggtok_wpm_text_init(&s->text, v) ||
        !ggtok_word_cache_init(&s->words)) {
        wpm_scratch_free(s);
        return NULL;
    }
    return s;
}

/*
 * Ids of the word in s->word, phantom included: the longest token at each place,
 * on bytes. If some place has none, the word as a whole is unknown.
 *
 * Cost: each place walks no further than TRIE_WALK, or than the longest token that
 * the vocabulary has, and a walk that finds nothing ends the word.
 */
static bool split_word(const model_call *call, wpm_scratch *s) {
    const wpm_model *m = call->model;
    const bytebuf *w = &s->word;
    const int32_t *hits = NULL;
    s->ids.n = 0;
    if (trie_long_for(&m->longs, w->n)) {
        if (!ggtok_trie_long_find(&m->longs, w->data, w->n, &s->hits)) return false;
        hits = s->hits.data;
    }
    for (size_t i = 0; i < w->n;) {
        int32_t id;
        size_t len = trie_longest_at(&m->t, &m->longs, hits, w->data, i, w->n, &id);
        if (interrupted(call->interrupt, len)) return false;
        if (!len) {
            s->ids.n = 0;
            break;
        }
        if (!idbuf_push(&s->ids, id)) return false;
        i += len;
    }
    return s->ids.n || idbuf_push(&s->ids, call->v->special[GGTOK_UNK]);
}

/* Puts a word of the text into s->word. */
static bool normalize_word(const model_call *call, wpm_scratch *s, const uint8_t *word, size_t n) {
    s->word.n = PHANTOM;
    for (size_t i = 0; i < n;) {
        uint32_t cpt = word[i];
        i += cpt < 0x80 ? 1 : ggtok_utf8_decode(word + i, word + n, &cpt);
        const wpm_char *c = wpm_char_of(&s->text, call->v, cpt);
        if (interrupted(call->interrupt, 1)) return false;
        if (!c || !bytebuf_reserve(&s->word, sizeof c->bytes)) return false;
        memcpy(s->word.data + s->word.n, c->bytes, sizeof c->bytes);
        s->word.n += c->len;
    }
    return true;
}

/* A word that the cache doesn't know. */
static ggtok_status encode_word(const model_call *call, const uint8_t *word, size_t n,
                                size_t room) {
    wpm_scratch *s = call->scratch;
    idbuf *out = call->out;
    s->ids.n = 0;
    if (!normalize_word(call, s, word, n)) return ggtok_error_memory(call->err);
    /* A word of nothing but dropped characters is none. */
    if (s->word.n > PHANTOM && !split_word(call, s)) return ggtok_error_memory(call->err);
    if (!idbuf_reserve(out, s->ids.n)) return ggtok_error_memory(call->err);
    if (s->ids.n) memcpy(out->data + out->n, s->ids.data, s->ids.n * sizeof *s->ids.data);
    out->n += s->ids.n;
    ggtok_word_cache_put(&s->words, word, n, room, s->ids.data, s->ids.n);
    return GGTOK_OK;
}

/* ---- spans ---- */

/* Takes `n` normalized bytes of text[*at..end), of which *left remain of the character before
 * *at, into *span. */
typedef struct wpm_walk {
    const uint8_t *text;
    size_t at, end;           /* what is left of the word */
    size_t left, begin, stop; /* bytes of a character that are left, and its source */
    bool own;                 /* is each its own source? */
} wpm_walk;

static bool wpm_next(const model_call *call, wpm_walk *w) {
    wpm_scratch *s = call->scratch;
    while (w->at < w->end) {
        uint32_t cpt;
        size_t len = ggtok_utf8_decode(w->text + w->at, w->text + w->end, &cpt);
        const wpm_char *c = wpm_char_of(&s->text, call->v, cpt);
        if (!c) return false;
        w->begin = w->at;
        w->stop = w->at += len;
        w->left = c->len;
        w->own = c->len == len && !memcmp(c->bytes, w->text + w->begin, len);
        if (c->len) return true;
    }
    return false;
}

static bool wpm_take(const model_call *call, wpm_walk *w, size_t n, ggtok_span *span) {
    for (bool first = true; n; first = false) {
        if (!w->left && !wpm_next(call, w)) return false;
        size_t step = n < w->left ? n : w->left;
        if (first) span->begin = (int64_t)w->begin;
        if (w->own) w->begin += step;
        w->left -= step;
        n -= step;
        span->end = (int64_t)(w->own ? w->begin : w->stop);
    }
    return true;
}

/* Lays several ids along a word, or the unknown one. */
static bool place_pieces(const model_call *call, const model_source *source, size_t start,
                         size_t end, size_t *k) {
    const vocab *v = call->v;
    int32_t unknown = v->special[GGTOK_UNK];
    bool plain = ggtok_tile_ascii_end(source->text, start, end) == end;
    wpm_walk w = {.text = source->text, .at = start, .end = end};
    if (!plain && !wpm_next(call, &w)) return true; /* all of it is dropped: no ids */
    size_t at = start;
    for (bool first = true; plain ? at < end : w.left || wpm_next(call, &w); first = false) {
        if (*k == source->n_ids) return false;
        int32_t id = source->ids[*k];
        ggtok_span *span = &source->spans[(*k)++];
        if (id == unknown) { /* all of the word, unless it is met as a token */
            gguf_view text = vocab_text(v, (uint32_t)id);
            if (!first || (text.n >= PHANTOM && !memcmp(text.p, SPACE_MARK, PHANTOM))) return false;
            size_t from = plain ? start : w.begin, to = plain ? end : w.stop;
            while (!plain && wpm_next(call, &w)) to = w.stop;
            *span = (ggtok_span){source->base + (int64_t)from, source->base + (int64_t)to};
            return true;
        }
        size_t n = vocab_text(v, (uint32_t)id).n;
        if (first) {
            if (n < PHANTOM) return false; /* part of the phantom is a token */
            n -= PHANTOM;
        }
        if (plain) {
            *span = (ggtok_span){(int64_t)at, (int64_t)(at + n)};
            at += n;
        } else {
            *span = (ggtok_span){(int64_t)w.begin, (int64_t)w.begin};
            if (n && !wpm_take(call, &w, n, span)) return false;
        }
        span->begin += source->base;
        span->end += source->base;
    }
    return !plain || at == end;
}

/* Is the unknown token's text never part of a word? An ASCII character in it that stands alone is
 * enough. */
static bool is_apart(wpm_text *t, const vocab *v, int32_t unknown) {
    if (unknown < 0) return true;
    if ((uint32_t)unknown >= v->n_tokens) return false;
    gguf_view text = vocab_text(v, (uint32_t)unknown);
    for (size_t i = 0; i < text.n && text.n > 1; i++) {
        if (text.p[i] < 0x80 && wpm_char_of(t, v, text.p[i])->kind == CHAR_ALONE) return true;
    }
    return false;
}

/* Does the id surely begin a word that holds no U+2581? */
static inline bool begins_word(const model_call *call, int32_t id, bool apart) {
    const wpm_scratch *s = call->scratch;
    uint16_t n = s->tiles.len[id];
    return (n & TILE_FIRST && n != TILE_ASK) || (apart && id == call->v->special[GGTOK_UNK]);
}

static inline bool is_mark(const wpm_char *c) {
    const uint8_t *mark = (const uint8_t *)SPACE_MARK;
    return c->bytes[0] == mark[0] && c->bytes[1] == mark[1] && c->bytes[2] == mark[2];
}

/* Lays ids along a word, the first from *k on, and moves that. */
static bool place_word(const model_call *call, const model_source *source, size_t start, size_t end,
                       bool apart, size_t *k) {
    wpm_scratch *s = call->scratch;
    const uint8_t *text = source->text;
    size_t from = end, to = end;
    bool marked = false;
    for (size_t i = start, len; i < end; i += len) {
        uint32_t cpt = text[i];
        len = cpt < 0x80 ? 1 : ggtok_utf8_decode(text + i, text + end, &cpt);
        const wpm_char *c = wpm_char_of(&s->text, call->v, cpt);
        if (!c) return false;
        if (!c->len) continue;
        if (from == end) from = i;
        to = i + len;
        marked |= is_mark(c);
    }
    if (from == end) return true; /* all of it is dropped: no ids */
    if (*k == source->n_ids) return false;
    if (!marked && (*k + 1 == source->n_ids || begins_word(call, source->ids[*k + 1], apart))) {
        source->spans[(*k)++] =
            (ggtok_span){source->base + (int64_t)from, source->base + (int64_t)to};
        return true;
    }
    return place_pieces(call, source, from, to, k);
}

/* Is each character of the word, normalized, as long as it is in the text, and none a U+2581? */
static bool is_even(const model_call *call, const uint8_t *p, const uint8_t *end) {
    wpm_scratch *s = call->scratch;
    size_t len;
    for (; p < end; p += len) {
        uint32_t cpt = *p;
        len = 2;
        if ((*p & 0xE0) == 0xC0 && s->text.even >> (*p & 31) & 1 && p + 1 < end &&
            utf8_continues(p[1]))
            continue;
        if (wpm_is_chinese_lead(*p) && end - p >= 3 && utf8_continues(p[1]) &&
            utf8_continues(p[2])) {
            len = 3;
            continue;
        }
        len = cpt < 0x80 ? 1 : ggtok_utf8_decode(p, end, &cpt);
        const wpm_char *c = wpm_char_of(&s->text, call->v, cpt);
        if (!c || c->len != len || is_mark(c)) return false;
    }
    return true;
}

/* How many of the words, from the first on, may be laid out by their ids' lengths. */
static size_t even_words(const model_call *call, const uint8_t *text, const size_t *start,
                         const size_t *end, size_t n) {
    wpm_scratch *s = call->scratch;
    size_t k = 0;
    while (k < n) {
        if (text[start[k]] < 0x80) {
            size_t ascii = ggtok_tile_ascii_words(text, start + k, end + k, n - k);
            k += ascii;
            if (ascii) continue;
        }
        if (!s->tiles.whole || !tile_is_short(start[k], end[k]) ||
            !is_even(call, text + start[k], text + end[k])) {
            break;
        }
        k++;
    }
    return k;
}

/* Does the first of ids[from..to) begin a word, and surely no other of them? */
static bool is_one_word(const model_call *call, const model_source *source, size_t from, size_t to,
                        bool apart) {
    const wpm_scratch *s = call->scratch;
    for (size_t i = from; i < to; i++) {
        bool known = s->tiles.len[source->ids[i]] != TILE_ASK;
        if (begins_word(call, source->ids[i], apart) ? i > from : i == from || !known) return false;
    }
    return true;
}

/* Lays ids along the words by their lengths alone, and by a word's characters only where these
 * don't tell. False: that isn't sure to be right. Claim offsets.5. */
static bool lay_lengths(const model_call *call, const model_source *source, bool apart) {
    const wpm_scratch *s = call->scratch;
    const wpm_spans *f = &s->spans;
    const size_t begin = f->start[0], end = f->end[f->n - 1];
    const uint8_t *text = source->text;
    const int32_t unknown = call->v->special[GGTOK_UNK];
    size_t i = 0, k = 0;
    if (!s->tiles.whole || s->text.grows || !tile_is_short(begin, end)) return false;
    while (i < f->n) {
        const tile_words words = {f->start + i, f->end + i, f->n - i, f->start[i], false};
        i += ggtok_tile_words(&s->tiles, source, &k, words);
        const size_t before = k;
        while (i < f->n && k < source->n_ids && source->ids[k] == unknown &&
               is_even(call, text + f->start[i], text + f->end[i])) { /* it is all of its word */
            source->spans[k++] = (ggtok_span){source->base + (int64_t)f->start[i],
                                              source->base + (int64_t)f->end[i]};
            i++;
        }
        if (i == f->n || k > before) continue;
        if (!place_word(call, source, f->start[i], f->end[i], apart, &k) ||
            !is_one_word(call, source, before, k, apart))
            return false;
        i++;
    }
    return k == source->n_ids;
}

/* Lays the ids that a batch of words has become along them. */
static bool lay_words(const model_call *call, const uint8_t *text, size_t n, size_t first,
                      bool apart) {
    wpm_scratch *s = call->scratch;
    const wpm_spans *f = &s->spans;
    const int32_t unknown = call->v->special[GGTOK_UNK];
    model_source source;
    size_t k = 0;
    if (!ggtok_tile_source(call, text, n, first, &source)) return false;
    if (apart && f->n && lay_lengths(call, &source, apart)) return true;
    for (size_t i = 0, even = 0; i < f->n;) {
        const size_t *start = f->start + i, *end = f->end + i;
        if (i >= even && apart) even = i + even_words(call, text, start, end, f->n - i);
        if (i < even && k < source.n_ids && source.ids[k] == unknown) { /* is all of its word */
            source.spans[k++] =
                (ggtok_span){source.base + (int64_t)*start, source.base + (int64_t)*end};
            i++;
            continue;
        }
        if (i < even) { /* as many as possible at once, others one by one */
            const tile_words words = {start, end, even - i, *start, false};
            i += ggtok_tile_words(&s->tiles, &source, &k, words);
            if (i == even) continue;
        }
        if (!place_word(call, &source, f->start[i], f->end[i], apart, &k)) return false;
        i++;
    }
    return k == source.n_ids;
}

static ggtok_status wpm_encode(const model_call *call, const uint8_t *text, size_t n) {
    wpm_scratch *s = call->scratch;
    ggtok_status status = GGTOK_OK;
    size_t room;
    bool lay = call->spans && ggtok_tile_measure_words(&s->tiles, call->v);
    bool apart = lay && is_apart(&s->text, call->v, call->v->special[GGTOK_UNK]);
    s->text.interrupt = call->interrupt;
    if (!(text = ggtok_words_pad(&s->padded, text, n, &room))) return ggtok_error_memory(call->err);
    for (size_t at = 0, before = 0; !status && at < n; before = at) {
        wpm_spans *f = &s->spans;
        if (!ggtok_wpm_words(&s->text, call->v, text, n, &at, f))
            return ggtok_error_memory(call->err);
        if (interrupted(call->interrupt, at - before)) return GGTOK_ERR_STOPPED;
        size_t first = call->out->n;
        status = ggtok_words_encode_spans(call, &s->words, encode_word, text, room, f->start,
                                          f->end, f->n);
        lay = lay && !status && lay_words(call, text, n, first, apart);
    }
    if (call->spans) call->spans->laid = lay;
    return status;
}

/* ---- guarded ---- */

/* normalize_word into the guard's text. The phantom stands before the first character that
 * isn't dropped. */
static bool normalize_guarded(const model_call *call, size_t start, const uint8_t *word, size_t n) {
    wpm_scratch *s = call->scratch;
    text_guard *g = call->guard;
    ggtok_guard_clear(g);
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cpt;
        len = ggtok_utf8_decode(word + i, word + n, &cpt);
        const wpm_char *c = wpm_char_of(&s->text, call->v, cpt);
        if (!c) return false;
        if (c->len && !g->text.n && !ggtok_guard_add(g, s->word.data, PHANTOM, start + i))
            return false;
        if (!ggtok_guard_put(g, c->bytes, c->len, start + i, len)) return false;
    }
    return ggtok_guard_seal(g);
}

/* split_word of the guard's text. */
static bool split_guarded(const model_call *call) {
    const wpm_model *m = call->model;
    wpm_scratch *s = call->scratch;
    text_guard *g = call->guard;
    const int32_t *hits = NULL;
    int32_t unknown = call->v->special[GGTOK_UNK];
    size_t n = g->text.n;
    s->ids.n = 0;
    if (!n) return true;
    size_t before = g->n_made;
    if (trie_long_for(&m->longs, n)) {
        if (!ggtok_trie_long_find(&m->longs, g->text.data, n, &s->hits)) return false;
        hits = s->hits.data;
    }
    for (size_t i = 0, len; i < n; i += len) {
        int32_t id;
        if (!(len = ggtok_guard_longest(g, &m->t, &m->longs, hits, i, &id))) {
            guard_unknown(g, unknown, 0, n);
            s->ids.n = 0;
            g->n_made = before;
            return idbuf_push(&s->ids, unknown) && ggtok_guard_made(g, 0, n);
        }
        if (!idbuf_push(&s->ids, id) || !ggtok_guard_made(g, i, len)) return false;
    }
    return true;
}

static ggtok_status wpm_encode_guarded(const model_call *call, const uint8_t *text, size_t n) {
    wpm_scratch *s = call->scratch;
    idbuf *out = call->out;
    for (size_t at = 0; at < n;) {
        wpm_spans *f = &s->spans;
        if (!ggtok_wpm_words(&s->text, call->v, text, n, &at, f))
            return ggtok_error_memory(call->err);
        for (size_t i = 0; i < f->n; i++) {
            size_t start = f->start[i];
            if (!normalize_guarded(call, start, text + start, f->end[i] - start) ||
                !split_guarded(call) || !idbuf_reserve(out, s->ids.n)) {
                return ggtok_error_memory(call->err);
            }
            if (s->ids.n) memcpy(out->data + out->n, s->ids.data, s->ids.n * sizeof *out->data);
            out->n += s->ids.n;
        }
    }
    return GGTOK_OK;
}

/* Does a word end before the character and after it? */
static bool parts_words(wpm_text *t, const vocab *v, uint32_t cpt) {
    const wpm_char *c = wpm_char_of(t, v, cpt);
    return c && (c->kind == CHAR_SPACE || c->kind == CHAR_ALONE);
}

static bool wpm_may_cut(const vocab *v, const void *model, void *scratch,
                        const model_place *place) {
    (void)model;
    wpm_scratch *s = scratch;
    return parts_words(&s->text, v, place->before) || parts_words(&s->text, v, place->after);
}

const model_ops ggtok_model_wpm = {
    .build = wpm_build,
    .free = wpm_free,
    .scratch_new = wpm_scratch_new,
    .scratch_free = wpm_scratch_free,
    .encode = wpm_encode,
    .encode_guarded = wpm_encode_guarded,
    .cache_bytes = wpm_cache_bytes,
    .may_cut = wpm_may_cut,
};
