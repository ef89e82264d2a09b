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

/* Words text[from..ends[0]), text[ends[0]..ends[1]), ...; `n` bytes of the text are
 * readable, which may be more than its words take. */
static inline ggtok_status words_encode(const model_call *call, wordcache *cache, word_fn encode,
                                        const uint8_t *text, size_t n, size_t from,
                                        const size_t *ends, size_t count) {
    while (count) {
        if (!idbuf_reserve(call->out, WORD_GROUP_IDS)) return error_memory(call->err);
        size_t done = wordcache_group(cache, text, n, from, ends, count, call->out);
        if (done) from = ends[done - 1];
        ends += done;
        count -= done;
        call->counts->hits += done;
        if (!count || done == WORD_GROUP) continue;
        if (!idbuf_reserve(call->out, WORD_LONG_IDS)) return error_memory(call->err);
        if (wordcache_get(cache, text + from, *ends - from, n - from, call->out)) {
            call->counts->hits++;
        } else {
            call->counts->misses++;
            ggtok_status s = encode(call, text + from, *ends - from, n - from);
            if (s) return s;
        }
        from = *ends++;
        count--;
    }
    return GGTOK_OK;
}

#endif
