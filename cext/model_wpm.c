/*
 * WPM: words, normalized, then the longest token again and again within each.
 *
 * The result depends on words alone, so a word seen before is a look-up. Words
 * of ASCII letters and digits, most of a Latin text, are found and lower-cased
 * eight bytes at a time and go from the text into a cache key without a copy;
 * everything else is taken character by character through a table.
 */
#include "bits.h"
#include "model.h"
#include "piece_cache.h"
#include "trie_long.h"
#include "unicode.h"
#include "utf8.h"

/* What a character does to the text. */
enum { CHAR_WORD = 1, CHAR_ALONE, CHAR_SPACE, CHAR_DROP };

/* A character after normalization: kind, and the bytes that it adds to a word. */
typedef struct wpm_char {
    uint8_t bytes[4];
    uint8_t len;
    uint8_t kind;
} wpm_char;

enum {
    PAGE = 256, /* characters are normalized a page at a time, when first met */
    N_PAGES = 0x110000 / PAGE,
    PAD = 40,   /* readable bytes behind a text that is scanned fast */
    PHANTOM = 3 /* length of the U+2581 before each word */
};

typedef struct wpm_model {
    trie t;
    trie_long longs;
} wpm_model;

typedef struct wpm_scratch {
    wpm_char *page[N_PAGES];
    bytebuf word; /* PHANTOM bytes, then the word; padded for piece_key_of */
    bytebuf tail; /* the end of a text, padded */
    idbuf ids;    /* of one word */
    idbuf hits;   /* of trie_long_find */
    piece_cache cache;
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
    for (size_t i = 0; i < N_PAGES; i++) mem_free(s->page[i]);
    mem_free(s->word.data);
    mem_free(s->tail.data);
    mem_free(s->ids.data);
    mem_free(s->hits.data);
    piece_cache_free(&s->cache);
    mem_free(s);
}

static bool is_chinese(uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) ||
           (c >= 0x2B920 && c <= 0x2CEAF) || /* from 2B920, not 2B820, as in the original */
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static wpm_char normalize(const vocab *v, uint32_t cpt) {
    wpm_char c = {.kind = CHAR_WORD};
    bool strip = v->flag[GGTOK_FLAG_STRIP_ACCENTS];
    if (strip) cpt = unicode_nfd_first(cpt);
    unsigned flags = unicode_flags(cpt);
    if (flags & UNICODE_WHITESPACE) {
        c.kind = CHAR_SPACE;
    } else if (!cpt || cpt == UTF8_REPLACEMENT || (flags & UNICODE_CONTROL) ||
               (strip && (flags & UNICODE_MARK))) {
        c.kind = CHAR_DROP;
    } else {
        /* Everything is decided before the letter changes case. */
        if ((flags & UNICODE_PUNCTUATION) || (cpt < 0x7F && (flags & UNICODE_SYMBOL)) ||
            is_chinese(cpt)) {
            c.kind = CHAR_ALONE;
        }
        if (v->flag[GGTOK_FLAG_LOWERCASE]) cpt = unicode_to_lower(cpt);
        c.len = (uint8_t)utf8_encode(cpt, c.bytes);
    }
    return c;
}

static wpm_char *new_page(const vocab *v, wpm_scratch *s, uint32_t number) {
    wpm_char *page = mem_alloc(PAGE * sizeof *page);
    if (!page) return NULL;
    for (uint32_t i = 0; i < PAGE; i++) page[i] = normalize(v, number * PAGE + i);
    return s->page[number] = page;
}

static size_t wpm_cache_bytes(const void *scratch) {
    const wpm_scratch *s = scratch;
    return piece_cache_bytes(&s->cache);
}

static void *wpm_scratch_new(const vocab *v, const void *model) {
    static const uint8_t phantom[PHANTOM] = {0xE2, 0x96, 0x81};
    (void)model;
    wpm_scratch *s = mem_zalloc(sizeof *s);
    if (!s) return NULL;
    if (!bytebuf_reserve(&s->word, 256) || !bytebuf_append(&s->word, phantom, PHANTOM) ||
        !new_page(v, s, 0)) {
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

static inline bool push_slot(idbuf *out, const piece_slot *slot) {
    if (!idbuf_reserve(out, PIECE_IDS)) return false;
    memcpy(out->data + out->n, slot->id, sizeof slot->id); /* a fixed size is faster */
    out->n += slot->n;
    return true;
}

/* A word that the cache doesn't know; `key` is NULL for a long one. */
static bool miss(const model_call *call, wpm_scratch *s, const piece_key *key, uint64_t hash) {
    call->counts->misses++;
    if (!split_word(call, s) || !idbuf_reserve(call->out, s->ids.n)) return false;
    memcpy(call->out->data + call->out->n, s->ids.data, s->ids.n * sizeof *s->ids.data);
    call->out->n += s->ids.n;
    if (key) piece_add(&s->cache, key, hash, s->ids.data, s->ids.n);
    return true;
}

/* Ends the word in s->word, if there is one. */
static bool flush(const model_call *call, wpm_scratch *s) {
    size_t n = s->word.n - PHANTOM;
    if (!n) return true;
    bool ok;
    if (n > PIECE_MAX) {
        ok = miss(call, s, NULL, 0);
    } else {
        piece_key key = piece_key_of(s->word.data + PHANTOM, n);
        uint64_t hash = piece_hash(&key);
        const piece_slot *slot = piece_find(&s->cache, &key, hash);
        call->counts->hits += slot != NULL;
        ok = slot ? push_slot(call->out, slot) : miss(call, s, &key, hash);
    }
    s->word.n = PHANTOM;
    return ok;
}

/* ---- words of ASCII letters and digits ---- */

#define EACH(x) ((uint64_t)(x) * 0x0101010101010101u)

/* The word at p, lower-cased, into *key; returns its length, or 0 if it is longer
 * than PIECE_MAX. 32 bytes at p must be readable. */
static inline size_t ascii_word(const uint8_t *p, bool lowercase, piece_key *key) {
    if (PLAIN) return 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    *key = (piece_key){{0}};
    for (size_t i = 0; i < 4; i++) {
        uint64_t x;
        memcpy(&x, p + 8 * i, 8);
        /* Sums that carry into a byte's top bit show that the byte is at least so much. */
        uint64_t y = x & EACH(0x7F), l = y | EACH(0x20);
        uint64_t alpha = (l + EACH(0x80 - 'a')) & ~(l + EACH(0x80 - 'z' - 1));
        uint64_t digit = (y + EACH(0x80 - '0')) & ~(y + EACH(0x80 - '9' - 1));
        uint64_t stop = ~((alpha | digit) & ~x) & EACH(0x80);
        if (lowercase) x |= (alpha & EACH(0x80)) >> 2;
        if (!stop) {
            key->w[i] = x;
            continue;
        }
        unsigned bits = bits_lowest(stop) & ~7u;
        key->w[i] = x & (((uint64_t)1 << bits) - 1);
        size_t n = 8 * i + bits / 8;
        key->w[3] |= (uint64_t)n << 56;
        return n;
    }
#else
    (void)p, (void)lowercase, (void)key;
#endif
    return 0;
}

/* The ids of p[0..end), words that have begun included. PAD bytes behind `end` are
 * readable; the word at `end`, if any, goes on there. */
static bool run(const model_call *call, wpm_scratch *s, const uint8_t *p, const uint8_t *end) {
    const wpm_char *ascii = s->page[0];
    bool lowercase = call->v->flag[GGTOK_FLAG_LOWERCASE];
    while (p < end) {
        if (*p < 0x80 && s->word.n == PHANTOM) {
            if (ascii[*p].kind == CHAR_SPACE) {
                p++;
                continue;
            }
            if (ascii[*p].kind == CHAR_WORD) {
                piece_key key;
                size_t n = ascii_word(p, lowercase, &key);
                /* The word ends here only if what follows is not part of it. */
                uint8_t next = p[n];
                if (n && (p + n >= end || (next < 0x80 && ascii[next].kind < CHAR_DROP))) {
                    uint64_t hash = piece_hash(&key);
                    const piece_slot *slot = piece_find(&s->cache, &key, hash);
                    if (slot) {
                        call->counts->hits++;
                        if (!push_slot(call->out, slot)) return false;
                    } else {
                        for (size_t i = 0; i < n; i++) {
                            s->word.data[PHANTOM + i] = ascii[p[i]].bytes[0];
                        }
                        s->word.n += n;
                        if (!miss(call, s, &key, hash)) return false;
                        s->word.n = PHANTOM;
                    }
                    p += n;
                    continue;
                }
            }
        }
        uint32_t cpt = *p;
        p += cpt < 0x80 ? 1 : utf8_decode(p, end, &cpt);
        const wpm_char *page = s->page[cpt / PAGE];
        if (!page && !(page = new_page(call->v, s, cpt / PAGE))) return false;
        const wpm_char *c = &page[cpt % PAGE];
        if (c->kind == CHAR_DROP) continue; /* a word goes on behind it */
        if (c->kind != CHAR_WORD && !flush(call, s)) return false;
        if (c->kind == CHAR_SPACE) continue;
        if (!bytebuf_reserve(&s->word, 4 + PIECE_MAX + 1)) return false;
        memcpy(s->word.data + s->word.n, c->bytes, 4);
        s->word.n += c->len;
        if (c->kind == CHAR_ALONE && !flush(call, s)) return false;
    }
    return true;
}

/* Scans in place up to some white space, behind which no word goes on, that has
 * PAD bytes behind it; the rest is copied to where there is room. */
static ggtok_status wpm_encode(const model_call *call, const uint8_t *text, size_t n) {
    wpm_scratch *s = call->scratch;
    size_t cut = n > PAD ? n - PAD : 0;
    while (cut && text[cut - 1] != ' ' && text[cut - 1] != '\n') cut--;
    s->word.n = PHANTOM;
    s->tail.n = 0;
    bool ok = bytebuf_reserve(&s->tail, n - cut + PAD);
    if (ok) {
        memcpy(s->tail.data, text + cut, n - cut);
        memset(s->tail.data + (n - cut), 0, PAD);
        ok = run(call, s, text, text + cut) &&
             run(call, s, s->tail.data, s->tail.data + (n - cut)) && flush(call, s);
    }
    return ok ? GGTOK_OK : error_memory(call->err);
}

const model_ops model_wpm = {
    .build = wpm_build,
    .free = wpm_free,
    .scratch_new = wpm_scratch_new,
    .scratch_free = wpm_scratch_free,
    .encode = wpm_encode,
    .cache_bytes = wpm_cache_bytes,
};
