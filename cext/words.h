/*
 * A text's words, or its pieces between cuts, one behind the other: from the cache
 * where it has them, from the model where it hasn't.
 */
#ifndef GGTOK_WORDS_H
#define GGTOK_WORDS_H

#include "model.h"
#include "newer.h"
#include "wordcache.h"

/* Short texts are copied, so that WORDS_PAD bytes behind them may be read: their last
 * words then take the hot path, too. */
enum { WORDS_SHORT = 1024, WORDS_PAD = 32 };

/* The text, or its copy in `pad` if it is short. *room: how many bytes may be read, from n on.
 * NULL: out of memory. */
const uint8_t *words_pad(bytebuf *pad, const uint8_t *text, size_t n, size_t *room);

/* Appends the ids of one word, which the cache doesn't hold; `room` (>= n) bytes may be
 * read. */
typedef ggtok_status (*word_fn)(const model_call *call, const uint8_t *word, size_t n, size_t room);

enum { WORDS_GROUP = 32, WORDS_GROUP_IDS = WORDS_GROUP * (WORD_WIDE_IDS + 1) };

/* What a word is looked for with. Words that are not for the short table have a key that
 * it never holds, as no length is 255, and their piece_hash or long_hash in its other
 * half. */
typedef struct words_probe {
    uint64_t key[2];
    const word_short *set;
} words_probe;

#define WORDS_NOT_SHORT UINT64_MAX /* key[1] */

/* The probes of a group of words, whose entries are fetched meanwhile. */
static inline void words_prepare(const wordcache *cache, words_probe *probe, const uint8_t *text,
                                 size_t n, size_t from, const size_t *ends, size_t count) {
    for (size_t i = 0; i < count; from = ends[i++]) {
        size_t length = ends[i] - from, room = n - from;
        if (length <= WORD_SHORT && room >= 16) {
            word_short_key(probe[i].key, text + from, length);
        } else {
            probe[i].key[0] = 0;
            probe[i].key[1] = WORDS_NOT_SHORT;
            if (length > WORD_SHORT && length <= PIECE_MAX && room > PIECE_MAX) {
                piece_key key = piece_key_of(text + from, length);
                probe[i].key[0] = piece_hash(&key);
                piece_prefetch(&cache->pieces, probe[i].key[0]);
            } else if (length > PIECE_MAX && length <= LONG_MAX_BYTES) {
                probe[i].key[0] = long_hash(text + from, length);
                long_prefetch(&cache->longs, probe[i].key[0]);
            }
        }
        probe[i].set = word_short_set(cache, probe[i].key);
        word_prefetch(probe[i].set);
    }
}

/* Those of words text[starts[i]..ends[i]), or, without `starts`, each beginning where the one
 * before it ends. */
ALWAYS_INLINE void words_prepare_at(const wordcache *cache, words_probe *probe, const uint8_t *text,
                                    size_t n, size_t from, const size_t *starts, const size_t *ends,
                                    size_t count) {
    if (!starts) {
        words_prepare(cache, probe, text, n, from, ends, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        words_prepare(cache, &probe[i], text, n, starts[i], &ends[i], 1);
    }
}

/* wordcache_get of a word whose set and the one next to it don't hold it. */
bool words_find(wordcache *cache, const words_probe *probe, const uint8_t *word, size_t n,
                size_t room, idbuf *out);

/* Appends the ids of such a word. Its place in `out` is reserved there. */
ggtok_status words_other(const model_call *call, wordcache *cache, word_fn encode,
                         const words_probe *probe, const uint8_t *word, size_t n, size_t room);

/* words_encode and spans_encode; without `starts`, each word begins where the one before it
 * ends. */
ALWAYS_INLINE ggtok_status words_at(const model_call *call, wordcache *cache, word_fn encode,
                                    const uint8_t *text, size_t n, size_t from,
                                    const size_t *starts, const size_t *ends, size_t count) {
    words_probe probes[2][WORDS_GROUP], *probe = probes[0], *next = probes[1];
    idbuf *out = call->out;
    size_t group = count < WORDS_GROUP ? count : WORDS_GROUP, n_next;
    words_prepare_at(cache, probe, text, n, from, starts, ends, group);
    for (; count; count -= group, group = n_next) {
        /* The next group's entries are fetched while this one's are read. */
        n_next = count - group < WORDS_GROUP ? count - group : WORDS_GROUP;
        words_prepare_at(cache, next, text, n, ends[group - 1], starts ? starts + group : NULL,
                         ends + group, n_next);
        if (!idbuf_reserve(out, WORDS_GROUP_IDS)) return error_memory(call->err);
        int32_t *w = out->data + out->n;
        call->counts->hits += group;
        for (size_t i = 0; i < group; i++) {
            const word_short *e = word_short_find(probe[i].set, probe[i].key);
            if (!e) e = word_short_near(cache, probe[i].set, probe[i].key);
            if (e) {
                w += word_short_ids(e, w);
                continue;
            }
            const word_short *before = cache->shorts;
            size_t start = starts ? starts[i] : i ? ends[i - 1] : from;
            out->n = (size_t)(w - out->data);
            ggtok_status s = words_other(call, cache, encode, &probe[i], text + start,
                                         ends[i] - start, n - start);
            if (s) return s;
            if (cache->shorts != before) { /* it grew */
                for (size_t k = i + 1; k < group; k++) {
                    probe[k].set = word_short_set(cache, probe[k].key);
                }
                for (size_t k = 0; k < n_next; k++) {
                    next[k].set = word_short_set(cache, next[k].key);
                }
            }
            if (!idbuf_reserve(out, WORDS_GROUP_IDS)) return error_memory(call->err);
            w = out->data + out->n;
        }
        out->n = (size_t)(w - out->data);
        from = ends[group - 1];
        ends += group;
        if (starts) starts += group;
        words_probe *done = probe;
        probe = next;
        next = done;
    }
    return GGTOK_OK;
}

/* Words text[from..ends[0]), text[ends[0]..ends[1]), ...; `n` bytes of the text are
 * readable, which may be more than its words take. */
static inline ggtok_status words_encode(const model_call *call, wordcache *cache, word_fn encode,
                                        const uint8_t *text, size_t n, size_t from,
                                        const size_t *ends, size_t count) {
    return words_at(call, cache, encode, text, n, from, NULL, ends, count);
}

/* Words text[starts[0]..ends[0]), text[starts[1]..ends[1]), ..., what is between them
 * (white space) giving no ids. */
static inline ggtok_status spans_encode(const model_call *call, wordcache *cache, word_fn encode,
                                        const uint8_t *text, size_t n, const size_t *starts,
                                        const size_t *ends, size_t count) {
    return words_at(call, cache, encode, text, n, 0, starts, ends, count);
}

#endif
