/*
 * WPM: splits the text into words, normalizes them, then repeatedly finds the longest token in
 * each.
 *
 * The result depends only on the words, so words are cached by their bytes in the text; only a miss
 * is normalized.
 */
#include "index/trie_long.h"
#include "models/model.h"
#include "models/tile.h"
#include "models/trace.h"
#include "models/words.h"
#include "models/wpm/text.h"
#include "unicode/space_mark.h"
#include "unicode/utf8.h"

#include <stdio.h>

enum { PHANTOM = 3 /* length of the U+2581 before each word */ };

typedef struct wpm_model {
    trie t;
    trie_long longs;
} wpm_model;

typedef struct wpm_scratch {
    wpm_text text;
    wpm_words spans;
    bytebuf padded;   /* copy of a short text */
    bytebuf word;     /* PHANTOM bytes, then the normalized word */
    idbuf ids;        /* ids of one word */
    idbuf hits;       /* long tokens by position, from ggtok_trie_long_find */
    word_cache words; /* keys: words of the text, not normalized */
    tiles tiles;
    size_t unmatched; /* offset at which split_recorded found no token, or SIZE_MAX */
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
    /* All tokens, of whatever type, since llama.cpp's text_to_token doesn't distinguish types. */
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
    ggtok_tile_free(&s->tiles);
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
 * Finds the ids of the word in s->word, phantom included: the longest token at each position, over
 * bytes. If no token matches at some position, the whole word is unknown.
 *
 * Cost: the walk at each position takes at most TRIE_WALK steps, or as many as the vocabulary's
 * longest token has bytes, and a walk that finds nothing ends the word.
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

/* Normalizes a word of the text into s->word. */
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

/* Encodes a word that isn't cached. */
static ggtok_status encode_word(const model_call *call, const uint8_t *word, size_t n,
                                size_t room) {
    wpm_scratch *s = call->scratch;
    idbuf *out = call->out;
    s->ids.n = 0;
    if (!normalize_word(call, s, word, n)) return ggtok_call_failed(call);
    /* A word that consists of dropped characters has no ids. */
    if (s->word.n > PHANTOM && !split_word(call, s)) return ggtok_call_failed(call);
    if (!idbuf_reserve(out, s->ids.n)) return ggtok_call_failed(call);
    if (s->ids.n) memcpy(out->data + out->n, s->ids.data, s->ids.n * sizeof *s->ids.data);
    out->n += s->ids.n;
    ggtok_word_cache_put(&s->words, word, n, room, s->ids.data, s->ids.n);
    return GGTOK_OK;
}

/* ---- a word, recorded ---- */

/* Normalizes a word into the recorder's text. The phantom is added before the first character that
 * isn't dropped. */
static bool normalize_recorded(const model_call *call, size_t start, const uint8_t *word,
                               size_t n) {
    wpm_scratch *s = call->scratch;
    recorder *rec = call->recorder;
    ggtok_recorder_clear(rec);
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cpt;
        len = ggtok_utf8_decode(word + i, word + n, &cpt);
        const wpm_char *c = wpm_char_of(&s->text, call->v, cpt);
        if (!c) return false;
        if (c->len && !rec->text.n && !ggtok_recorder_add(rec, s->word.data, PHANTOM, start + i))
            return false;
        if (!ggtok_recorder_put(rec, c->bytes, c->len, start + i, len)) return false;
    }
    return ggtok_recorder_seal(rec);
}

/* Finds the ids of the recorder's text, like split_word. */
static bool split_recorded(const model_call *call) {
    const wpm_model *m = call->model;
    wpm_scratch *s = call->scratch;
    recorder *rec = call->recorder;
    const int32_t *hits = NULL;
    int32_t unknown = call->v->special[GGTOK_UNK];
    size_t n = rec->text.n;
    s->ids.n = 0;
    s->unmatched = SIZE_MAX;
    if (!n) return true;
    size_t before = rec->n_made;
    if (trie_long_for(&m->longs, n)) {
        if (!ggtok_trie_long_find(&m->longs, rec->text.data, n, &s->hits)) return false;
        hits = s->hits.data;
    }
    for (size_t i = 0, len; i < n; i += len) {
        int32_t id;
        if (!(len = ggtok_recorder_longest(rec, &m->t, &m->longs, hits, i, &id))) {
            recorder_refuse_unknown(rec, unknown, 0, n);
            s->unmatched = i;
            s->ids.n = 0;
            rec->n_made = before;
            return idbuf_push(&s->ids, unknown) && ggtok_recorder_add_span(rec, 0, n);
        }
        if (!idbuf_push(&s->ids, id) || !ggtok_recorder_add_span(rec, i, len)) return false;
    }
    return true;
}

/* ---- spans ---- */

/* Whether the n bytes at p are one character from U+4E00 to U+9FFF; these characters are kept. The
 * id of such a character may be the unknown id. */
static inline bool is_chinese(const uint8_t *p, size_t n) {
    return (uint8_t)(*p - 0xE4) <= 0xE9 - 0xE4 && n == 3 && p[1] >= (*p == 0xE4 ? 0xB8 : 0x80) &&
           utf8_continues(p[1]) && utf8_continues(p[2]);
}

/* Assigns the spans of ids[k..to) along a word from their lengths, assuming that its characters
 * keep their lengths. No branch distinguishes one id from two, since that is unpredictable. */
static inline bool assign_even(const model_source *source, const tile_length *len, size_t start,
                               size_t end, size_t k, size_t to) {
    const int64_t from = source->base + (int64_t)start, stop = source->base + (int64_t)end;
    const int32_t *ids = source->ids;
    ggtok_span *spans = source->spans;
    if (to == k || end - start >= TILE_ASK - 1) return false;
    int64_t at = from - 1 + len[ids[k]]; /* U+2581 counts as one byte */
    spans[k] = (ggtok_span){from, at};
    if (to - k <= 2) {
        const size_t second = to - k - 1;
        const int64_t last = at + (len[ids[k + second]] & -(int64_t)second);
        spans[k + second] = (ggtok_span){second ? at : from, last};
        if (last == stop || second) return last == stop;
        spans[k].end = stop;
        return is_chinese(source->text + start, end - start);
    }
    for (size_t i = k + 1; i < to; i++) {
        spans[i].begin = at;
        spans[i].end = at += len[ids[i]];
    }
    return at == stop;
}

/* Assigns the spans of ids[k..to) along a word from the bytes that each character becomes. Fails if
 * a character is dropped or divided. */
static bool assign_letters(const model_call *call, const model_source *source, size_t start,
                           size_t end, size_t k, size_t to) {
    wpm_text *t = &((wpm_scratch *)call->scratch)->text;
    const tile_length *len = ((wpm_scratch *)call->scratch)->tiles.len;
    size_t at = start;
    for (size_t i = k; i < to; i++) {
        size_t n = len[source->ids[i]];
        if (n == TILE_ASK) return false;
        n -= i == k; /* without the U+2581 before the word */
        source->spans[i].begin = source->base + (int64_t)at;
        while (n) {
            if (at == end) return false;
            const uint8_t *p = source->text + at;
            uint32_t cpt = *p;
            const size_t size = cpt < 0x80 ? 1 : ggtok_utf8_decode(p, source->text + end, &cpt);
            const wpm_char *c = wpm_char_of(t, call->v, cpt);
            if (!c || !c->len || c->len > n) return false;
            n -= c->len;
            at += size;
        }
        source->spans[i].end = source->base + (int64_t)at;
    }
    return at == end;
}

/* Assigns the spans of the ids from..to of the word text[start..end) by encoding it again. */
static bool assign_recorded(const model_call *call, const model_source *source, size_t start,
                            size_t end, size_t from, size_t to) {
    const uint8_t *word = source->text + start;
    const size_t size = end - start;
    const wpm_scratch *s = call->scratch;
    model_call again = *call;
    recorder *rec = again.recorder = call->spans->recorder;
    if (!ggtok_recorder_begin_spans(rec, call->v, word, size) ||
        !normalize_recorded(&again, 0, word, size) || !split_recorded(&again) ||
        s->ids.n != to - from)
        return false;
    if (to > from)
        ggtok_recorder_copy_spans(rec, source->spans + from, source->base + (int64_t)start);
    return true;
}

/* Assigns the spans of a batch of words. A character that is dropped at the end of a word belongs
 * to the word's last id. See claim offsets.5. */
static bool assign_words(const model_call *call, const uint8_t *text, size_t n, size_t first) {
    wpm_scratch *s = call->scratch;
    const wpm_words *f = &s->spans;
    const tile_length *len = s->tiles.len;
    const bool grows = s->text.grows;
    model_source source;
    if (!s->tiles.whole || !ggtok_tile_source(call, text, n, first, &source)) return false;
    for (size_t i = 0, k = 0; i < f->n; i++) {
        const size_t start = f->start[i], end = f->end[i], to = f->id_ends[i] - first;
        if ((grows || !assign_even(&source, len, start, end, k, to)) &&
            !assign_letters(call, &source, start, end, k, to) &&
            !assign_recorded(call, &source, start, end, k, to))
            return false;
        if (to > k) source.spans[to - 1].end = source.base + (int64_t)end;
        k = to;
    }
    return true;
}

static ggtok_status wpm_encode(const model_call *call, const uint8_t *text, size_t n) {
    wpm_scratch *s = call->scratch;
    ggtok_status status = GGTOK_OK;
    size_t room;
    bool assign = call->spans && ggtok_tile_measure_words(&s->tiles, call->v);
    s->text.interrupt = call->interrupt;
    if (!(text = ggtok_words_pad(&s->padded, text, n, &room))) return ggtok_call_failed(call);
    for (size_t at = 0, before = 0; !status && at < n; before = at) {
        wpm_words *f = &s->spans;
        if (!ggtok_wpm_words(&s->text, call->v, text, n, &at, f)) return ggtok_call_failed(call);
        if (interrupted(call->interrupt, at - before)) return ggtok_call_failed(call);
        size_t first = call->out->n;
        status = ggtok_words_encode_spans(call, &s->words, encode_word, text, room, f->start,
                                          f->end, f->n, assign ? f->id_ends : NULL);
        assign = assign && !status && assign_words(call, text, n, first);
    }
    if (call->spans) call->spans->assigned = assign;
    return status;
}

/* ---- the whole text, recorded ---- */

/* Reports a word whose source ends at `end`, and its tokens, which have the last spans. */
static bool trace_word(const model_call *call, size_t end) {
    const idbuf *ids = &((const wpm_scratch *)call->scratch)->ids;
    recorder *rec = call->recorder;
    const size_t unmatched = ((const wpm_scratch *)call->scratch)->unmatched;
    bool unknown = unmatched != SIZE_MAX;
    char note[96];
    if (!ggtok_trace_word_until(rec, 0, rec->text.n, end)) return false;
    snprintf(note, sizeof note,
             "no token matches at byte %llu of the word, so all of it is unknown",
             (unsigned long long)unmatched);
    for (size_t i = 0; i < ids->n; i++) {
        ggtok_trace_event e = {.id = ids->data[i],
                               .how = unknown ? GGTOK_HOW_UNKNOWN : GGTOK_HOW_LONGEST_MATCH};
        if (unknown) e.note = trace_note(note);
        if (!ggtok_trace_token_at(rec, e, rec->n_made - ids->n + i)) return false;
    }
    return true;
}

static ggtok_status wpm_encode_recorded(const model_call *call, const uint8_t *text, size_t n) {
    wpm_scratch *s = call->scratch;
    idbuf *out = call->out;
    for (size_t at = 0; at < n;) {
        wpm_words *f = &s->spans;
        if (!ggtok_wpm_words(&s->text, call->v, text, n, &at, f)) return ggtok_call_failed(call);
        for (size_t i = 0; i < f->n; i++) {
            size_t start = f->start[i];
            if (!normalize_recorded(call, start, text + start, f->end[i] - start) ||
                !split_recorded(call) || !idbuf_reserve(out, s->ids.n)) {
                return ggtok_call_failed(call);
            }
            if (s->ids.n) ggtok_recorder_extend(call->recorder, f->end[i]);
            if (s->ids.n && call->recorder->trace && !trace_word(call, f->end[i]))
                return ggtok_call_failed(call);
            if (s->ids.n) memcpy(out->data + out->n, s->ids.data, s->ids.n * sizeof *out->data);
            out->n += s->ids.n;
        }
    }
    return GGTOK_OK;
}

/* Whether there are word boundaries before and after the character. */
static bool separates_words(wpm_text *t, const vocab *v, uint32_t cpt) {
    const wpm_char *c = wpm_char_of(t, v, cpt);
    return c && (c->kind == CHAR_SPACE || c->kind == CHAR_ALONE);
}

static bool wpm_may_cut(const vocab *v, const void *model, void *scratch,
                        const model_place *place) {
    (void)model;
    wpm_scratch *s = scratch;
    return separates_words(&s->text, v, place->before) ||
           separates_words(&s->text, v, place->after);
}

const model_ops ggtok_model_wpm = {
    .build = wpm_build,
    .free = wpm_free,
    .scratch_new = wpm_scratch_new,
    .scratch_free = wpm_scratch_free,
    .encode = wpm_encode,
    .encode_recorded = wpm_encode_recorded,
    .cache_bytes = wpm_cache_bytes,
    .may_cut = wpm_may_cut,
};
