/*
 * WPM: words, normalized, then the longest token again and again within each.
 *
 * The result depends on words alone, so a word seen before is a look-up, by its bytes
 * as they stand in the text: only a new one is normalized.
 */
#include "model.h"
#include "trie_long.h"
#include "utf8.h"
#include "words.h"
#include "wpm_text.h"

enum { PHANTOM = 3 /* length of the U+2581 before each word */ };

typedef struct wpm_model {
    trie t;
    trie_long longs;
} wpm_model;

typedef struct wpm_scratch {
    wpm_text text;
    wpm_spans spans;
    bytebuf padded;  /* a short text */
    bytebuf word;    /* PHANTOM bytes, then the word, normalized */
    idbuf ids;       /* of one word */
    idbuf hits;      /* of trie_long_find */
    wordcache words; /* as they stand in the text */
} wpm_scratch;

static void wpm_free(void *model) {
    wpm_model *m = model;
    if (!m) return;
    trie_free(&m->t);
    trie_long_free(&m->longs);
    mem_free(m);
}

static ggtok_status wpm_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                              void **model, ggtok_error *err) {
    (void)g, (void)options;
    wpm_model *m = mem_zalloc(sizeof *m);
    uint32_t *ids = mem_alloc(mem_mul(v->n_tokens, sizeof *ids));
    bool ok = m && ids;
    for (uint32_t id = 0; ok && id < v->n_tokens; id++) ids[id] = id;
    /* All tokens, whatever their type: text_to_token makes no difference. */
    ok = ok && trie_build(&m->t, v->text, v->text_off, ids, v->n_tokens, true) &&
         trie_long_build(&m->longs, v->text, v->text_off, ids, v->n_tokens);
    mem_free(ids);
    if (!ok) {
        wpm_free(m);
        return error_memory(err);
    }
    *model = m;
    return GGTOK_OK;
}

static void wpm_scratch_free(void *scratch) {
    wpm_scratch *s = scratch;
    if (!s) return;
    wpm_text_free(&s->text);
    mem_free(s->padded.data);
    mem_free(s->word.data);
    mem_free(s->ids.data);
    mem_free(s->hits.data);
    wordcache_free(&s->words);
    mem_free(s);
}

static size_t wpm_cache_bytes(const void *scratch) {
    const wpm_scratch *s = scratch;
    return wordcache_bytes(&s->words);
}

static void *wpm_scratch_new(const vocab *v, const void *model) {
    static const uint8_t phantom[PHANTOM] = {0xE2, 0x96, 0x81};
    (void)model;
    wpm_scratch *s = mem_zalloc(sizeof *s);
    if (!s) return NULL;
    if (!bytebuf_append(&s->word, phantom, PHANTOM) || !wpm_text_init(&s->text, v) ||
        !wordcache_init(&s->words)) {
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
        if (!trie_long_find(&m->longs, w->data, w->n, &s->hits)) return false;
        hits = s->hits.data;
    }
    for (size_t i = 0; i < w->n;) {
        int32_t id;
        size_t len = trie_longest_at(&m->t, &m->longs, hits, w->data, i, w->n, &id);
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
        i += cpt < 0x80 ? 1 : utf8_decode(word + i, word + n, &cpt);
        const wpm_char *c = wpm_char_of(&s->text, call->v, cpt);
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
    if (!normalize_word(call, s, word, n)) return error_memory(call->err);
    /* A word of nothing but dropped characters is none. */
    if (s->word.n > PHANTOM && !split_word(call, s)) return error_memory(call->err);
    if (!idbuf_reserve(out, s->ids.n)) return error_memory(call->err);
    if (s->ids.n) memcpy(out->data + out->n, s->ids.data, s->ids.n * sizeof *s->ids.data);
    out->n += s->ids.n;
    wordcache_put(&s->words, word, n, room, s->ids.data, s->ids.n);
    return GGTOK_OK;
}

static ggtok_status wpm_encode(const model_call *call, const uint8_t *text, size_t n) {
    wpm_scratch *s = call->scratch;
    ggtok_status status = GGTOK_OK;
    size_t room;
    if (!(text = words_pad(&s->padded, text, n, &room))) return error_memory(call->err);
    for (size_t at = 0; !status && at < n;) {
        wpm_spans *f = &s->spans;
        if (!wpm_words(&s->text, call->v, text, n, &at, f)) return error_memory(call->err);
        status = spans_encode(call, &s->words, encode_word, text, room, f->start, f->end, f->n);
    }
    return status;
}

const model_ops model_wpm = {
    .build = wpm_build,
    .free = wpm_free,
    .scratch_new = wpm_scratch_new,
    .scratch_free = wpm_scratch_free,
    .encode = wpm_encode,
    .cache_bytes = wpm_cache_bytes,
};
