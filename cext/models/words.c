#include "models/words.h"

#include "base/cpu.h"

const uint8_t *ggtok_words_pad(bytebuf *pad, const uint8_t *text, size_t n, size_t *room) {
    *room = n;
    if (n >= WORDS_SHORT) return text;
    pad->n = 0;
    if (!bytebuf_reserve(pad, WORDS_SHORT + WORDS_PAD)) return NULL;
    memset(pad->data + n, 0, WORDS_PAD);
    *room = n + WORDS_PAD;
    return memcpy(pad->data, text, n);
}

/*
 * Words are looked up in groups: first, each word's key and set are computed and the set is
 * prefetched; then the entries are read while the next group's sets are prefetched.
 */
enum { GROUP = 32, GROUP_IDS = GROUP * (WORD_WIDE_IDS + 1) };

/* The look-up of one word. For a word that doesn't belong in the short table, key[1] is NOT_SHORT,
 * which the table never contains since no length is 255, and key[0] is the word's piece_hash or
 * ggtok_long_hash. */
typedef struct probe {
    uint64_t key[2];
    const word_short *set;
} probe;

#define NOT_SHORT UINT64_MAX /* value of key[1] */

/* A list of words text[starts[i]..ends[i]). Without `starts`, each word begins at the end of the
 * previous one, the first at `from`. */
typedef struct word_list {
    const uint8_t *text;
    size_t n, from; /* n: readable bytes; from: start of the first word */
    const size_t *starts, *ends;
    size_t count;
    size_t *id_ends; /* receives call->out->n after each word; may be NULL */
} word_list;

static inline size_t word_start(const word_list *w, size_t i) {
    return w->starts ? w->starts[i] : i ? w->ends[i - 1] : w->from;
}

/* Discards the first n words. */
static inline void words_skip(word_list *w, size_t n) {
    if (n) w->from = w->ends[n - 1];
    w->ends += n;
    if (w->starts) w->starts += n;
    if (w->id_ends) w->id_ends += n;
    w->count -= n;
}

static inline size_t group_of(const word_list *w) {
    return w->count < GROUP ? w->count : GROUP;
}

/* Computes the probes for the next group of words and prefetches their sets. */
ALWAYS_INLINE void prepare(const word_cache *cache, probe *probes, const word_list *w) {
    const size_t count = group_of(w);
    size_t next = w->from;
    for (size_t i = 0; i < count; next = w->ends[i++]) {
        size_t start = w->starts ? w->starts[i] : next;
        const uint8_t *p = w->text + start;
        size_t n = w->ends[i] - start, room = w->n - start;
        probe *to = &probes[i];
        if (n <= WORD_SHORT && room >= 16) {
            word_short_key(to->key, p, n);
        } else {
            to->key[0] = 0;
            to->key[1] = NOT_SHORT;
            if (n > WORD_SHORT && n <= PIECE_MAX && room > PIECE_MAX) {
                piece_key key = piece_key_of(p, n);
                to->key[0] = piece_hash(&key);
                piece_cache_prefetch(&cache->pieces, to->key[0]);
            } else if (n > PIECE_MAX && n <= LONG_MAX_BYTES) {
                to->key[0] = ggtok_long_hash(p, n);
                long_cache_prefetch(&cache->longs, to->key[0]);
            }
        }
        to->set = word_short_set(cache, to->key);
        PREFETCH(to->set);
    }
}

/* Finds the sets for probes that haven't been used yet, after the cache has grown and moved its
 * sets. */
static void refresh_sets(const word_cache *cache, probe *probes, size_t from, size_t n) {
    for (size_t i = from; i < n; i++) probes[i].set = word_short_set(cache, probes[i].key);
}

/* Looks up a word that isn't in its set or the next one, like ggtok_word_cache_get. */
static bool find_elsewhere(word_cache *cache, const probe *at, const uint8_t *word, size_t n,
                           size_t room, idbuf *out) {
    const uint64_t *key = at->key;
    if (n > LONG_MAX_BYTES || (key[1] != NOT_SHORT && !word_is_far(at->set))) return false;
    if (ggtok_word_cache_get_recent(cache, word, n, out)) return true;
    if (key[1] != NOT_SHORT) return ggtok_word_cache_get_far(cache, key, word, n, out);
    if (n > PIECE_MAX) return ggtok_word_cache_get_long(cache, word, n, key[0], out);
    if (n > WORD_SHORT && room > PIECE_MAX) {
        return ggtok_word_cache_get_piece(cache, word, n, key[0], out);
    }
    return ggtok_word_cache_get(cache, word, n, room, out); /* near the end of the text */
}

/* Appends the ids of a word that isn't in its set or the next one. */
static ggtok_status encode_other(const model_call *call, word_cache *cache, word_fn encode,
                                 const probe *at, const uint8_t *word, size_t n, size_t room) {
    if (!idbuf_reserve(call->out, LONG_MAX_IDS)) return ggtok_call_failed(call);
    if (find_elsewhere(cache, at, word, n, room, call->out)) return GGTOK_OK;
    call->counts->hits--;
    call->counts->misses++;
    return encode(call, word, n, room);
}

ggtok_status ggtok_words_hit(const model_call *call, size_t n) {
    call->counts->hits++;
    call->counts->misses--;
    return interrupted(call->interrupt, n) ? ggtok_call_failed(call) : GGTOK_OK;
}

ALWAYS_INLINE ggtok_status words_at(const model_call *call, word_cache *cache, word_fn encode,
                                    word_list w) {
    probe probes[2][GROUP], *now = probes[0], *next = probes[1];
    idbuf *out = call->out;
    prepare(cache, now, &w);
    while (w.count) {
        const size_t group = group_of(&w);
        word_list rest = w;
        words_skip(&rest, group);
        prepare(cache, next, &rest);
        if (!idbuf_reserve(out, GROUP_IDS)) return ggtok_call_failed(call);
        int32_t *to = out->data + out->n;
        call->counts->hits += group;
        for (size_t i = 0; i < group; i++) {
            const word_short *e = word_short_find(now[i].set, now[i].key);
            if (!e) e = word_short_near(cache, now[i].set, now[i].key);
            if (e) {
                to += word_short_ids(e, to);
                if (w.id_ends) w.id_ends[i] = (size_t)(to - out->data);
                continue;
            }
            const unsigned before = cache->short_shift;
            size_t start = word_start(&w, i);
            out->n = (size_t)(to - out->data);
            ggtok_status s = encode_other(call, cache, encode, &now[i], w.text + start,
                                          w.ends[i] - start, w.n - start);
            if (s) return s;
            if (cache->short_shift != before) {
                refresh_sets(cache, now, i + 1, group);
                refresh_sets(cache, next, 0, group_of(&rest));
            }
            if (!idbuf_reserve(out, GROUP_IDS)) return ggtok_call_failed(call);
            to = out->data + out->n;
            if (w.id_ends) w.id_ends[i] = out->n;
        }
        out->n = (size_t)(to - out->data);
        w = rest;
        probe *previous = now;
        now = next;
        next = previous;
    }
    return GGTOK_OK;
}

ggtok_status ggtok_words_encode(const model_call *call, word_cache *cache, word_fn encode,
                                const uint8_t *text, size_t n, size_t from, const size_t *ends,
                                size_t count) {
    return words_at(call, cache, encode, (word_list){text, n, from, NULL, ends, count, NULL});
}

ggtok_status ggtok_words_encode_spans(const model_call *call, word_cache *cache, word_fn encode,
                                      const uint8_t *text, size_t n, const size_t *starts,
                                      const size_t *ends, size_t count, size_t *id_ends) {
    /* Two calls, each compiled for its case, so that `id_ends` costs nothing if it is NULL. */
    if (!id_ends) {
        return words_at(call, cache, encode, (word_list){text, n, 0, starts, ends, count, NULL});
    }
    return words_at(call, cache, encode, (word_list){text, n, 0, starts, ends, count, id_ends});
}
