/*
 * Parts of a text with gaps between them that give no ids (white space): from the cache
 * where it has them, from the model where it hasn't. As words.h, which has no gaps.
 */
#ifndef GGTOK_SPANS_H
#define GGTOK_SPANS_H

#include "words.h"

/* The probes of a group of spans, whose entries are fetched meanwhile. */
static inline void spans_prepare(const wordcache *cache, words_probe *probe, const uint8_t *text,
                                 size_t n, const size_t *starts, const size_t *ends, size_t count) {
    for (size_t i = 0; i < count; i++)
        words_prepare(cache, &probe[i], text, n, starts[i], &ends[i], 1);
}

/* Spans text[starts[0]..ends[0]), text[starts[1]..ends[1]), ...; `n` bytes of the text
 * are readable. */
static inline ggtok_status spans_encode(const model_call *call, wordcache *cache, word_fn encode,
                                        const uint8_t *text, size_t n, const size_t *starts,
                                        const size_t *ends, size_t count) {
    words_probe probe[WORDS_GROUP];
    idbuf *out = call->out;
    for (size_t group; count; starts += group, ends += group, count -= group) {
        group = count < WORDS_GROUP ? count : WORDS_GROUP;
        spans_prepare(cache, probe, text, n, starts, ends, group);
        if (!idbuf_reserve(out, WORDS_GROUP_IDS)) return error_memory(call->err);
        int32_t *w = out->data + out->n;
        call->counts->hits += group;
        for (size_t i = 0; i < group; i++) {
            const word_short *e = word_short_find(probe[i].set, probe[i].key);
            if (!e) e = word_short_near(cache, probe[i].set, probe[i].key);
            if (e) {
                word_short_ids(e, w);
                w += word_short_n(e);
                continue;
            }
            const word_short *before = cache->shorts;
            out->n = (size_t)(w - out->data);
            ggtok_status s = words_other(call, cache, encode, &probe[i], text + starts[i],
                                         ends[i] - starts[i], n - starts[i]);
            if (s) return s;
            for (size_t k = i + 1; cache->shorts != before && k < group; k++) { /* it grew */
                probe[k].set = word_short_set(cache, probe[k].key);
            }
            if (!idbuf_reserve(out, WORDS_GROUP_IDS)) return error_memory(call->err);
            w = out->data + out->n;
        }
        out->n = (size_t)(w - out->data);
    }
    return GGTOK_OK;
}

#endif
