/*
 * A text's words, or its pieces between cuts, one behind the other: from the cache
 * where it has them, from the model where it hasn't.
 */
#ifndef GGTOK_WORDS_H
#define GGTOK_WORDS_H

#include "model.h"
#include "wordcache.h"

/* Short texts are copied, so that WORDS_PAD bytes behind them may be read: their last
 * words then take the hot path, too. */
enum { WORDS_SHORT = 1024, WORDS_PAD = 32 };

/* Appends the ids of one word, which the cache doesn't hold; `room` (>= n) bytes may be
 * read. */
typedef ggtok_status (*word_fn)(const model_call *call, const uint8_t *word, size_t n, size_t room);

enum { WORDS_GROUP = 32, WORDS_GROUP_IDS = WORDS_GROUP * (WORD_SHORT_IDS + 1) };

typedef struct words_probe {
    uint64_t key[2];
    const word_short *set;
} words_probe;

/* The keys of a group of words, whose sets are fetched meanwhile. Words that are not for
 * the short table get a key that it never holds, as no length is 255. */
static inline void words_prepare(const wordcache *cache, words_probe *probe, const uint8_t *text,
                                 size_t n, size_t from, const size_t *ends, size_t count) {
    for (size_t i = 0; i < count; from = ends[i++]) {
        if (ends[i] - from <= WORD_SHORT && n - from >= 16) {
            word_short_key(probe[i].key, text + from, ends[i] - from);
        } else {
            probe[i].key[0] = probe[i].key[1] = UINT64_MAX;
        }
        probe[i].set = word_short_set(cache, probe[i].key);
        word_prefetch(probe[i].set);
    }
}

/* Words text[from..ends[0]), text[ends[0]..ends[1]), ...; `n` bytes of the text are
 * readable, which may be more than its words take. */
static inline ggtok_status words_encode(const model_call *call, wordcache *cache, word_fn encode,
                                        const uint8_t *text, size_t n, size_t from,
                                        const size_t *ends, size_t count) {
    words_probe probe[WORDS_GROUP];
    idbuf *out = call->out;
    for (size_t group; count; ends += group, count -= group) {
        group = count < WORDS_GROUP ? count : WORDS_GROUP;
        words_prepare(cache, probe, text, n, from, ends, group);
        if (!idbuf_reserve(out, WORDS_GROUP_IDS)) return error_memory(call->err);
        int32_t *w = out->data + out->n;
        call->counts->hits += group;
        for (size_t i = 0; i < group; i++) {
            const word_short *e = word_short_find(probe[i].set, probe[i].key);
            if (e) {
                memcpy(w, e->ids, 16); /* one move; what is behind the ids is overwritten */
                w += e->n;
                continue;
            }
            const word_short *before = cache->shorts;
            size_t start = i ? ends[i - 1] : from;
            out->n = (size_t)(w - out->data);
            if (!idbuf_reserve(out, WORD_LONG_IDS)) return error_memory(call->err);
            if (!wordcache_get(cache, text + start, ends[i] - start, n - start, out)) {
                call->counts->hits--;
                call->counts->misses++;
                ggtok_status s = encode(call, text + start, ends[i] - start, n - start);
                if (s) return s;
            }
            for (size_t k = i + 1; cache->shorts != before && k < group; k++) { /* it grew */
                probe[k].set = word_short_set(cache, probe[k].key);
            }
            if (!idbuf_reserve(out, WORDS_GROUP_IDS)) return error_memory(call->err);
            w = out->data + out->n;
        }
        out->n = (size_t)(w - out->data);
        from = ends[group - 1];
    }
    return GGTOK_OK;
}

#endif
