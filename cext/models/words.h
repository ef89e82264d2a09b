/*
 * Encodes a text's words, or its pieces between cuts, in order: hits from the cache, misses with
 * the model.
 */
#ifndef GGTOK_WORDS_H
#define GGTOK_WORDS_H

#include "cache/word_cache.h"
#include "models/model.h"

/* A text of fewer than WORDS_SHORT bytes is copied, so that WORDS_PAD bytes after it are readable.
 * Looking up its last words is then as fast as looking up the others. */
enum { WORDS_SHORT = 1024, WORDS_PAD = 32 };

/* Returns the text or, if it is short, its copy in `pad`; NULL if out of memory. Sets *room to the
 * number of readable bytes, at least n. */
const uint8_t *ggtok_words_pad(bytebuf *pad, const uint8_t *text, size_t n, size_t *room);

/* Appends the ids of one word that isn't cached; `room` (>= n) bytes are readable. */
typedef ggtok_status (*word_fn)(const model_call *call, const uint8_t *word, size_t n, size_t room);

/* For a word_fn that found the ids of n bytes elsewhere: counts a hit instead of a miss. Returns an
 * error if interrupted. */
ggtok_status ggtok_words_hit(const model_call *call, size_t n);

/* Encodes the words text[from..ends[0]), text[ends[0]..ends[1]), ...; `n` bytes of the text are
 * readable, perhaps more than belong to words. */
ggtok_status ggtok_words_encode(const model_call *call, word_cache *cache, word_fn encode,
                                const uint8_t *text, size_t n, size_t from, const size_t *ends,
                                size_t count);

/* Encodes the words text[starts[0]..ends[0]), text[starts[1]..ends[1]), ...; the text between them
 * (white space) has no ids. If `id_ends` isn't NULL, sets id_ends[i] to the value of call->out->n
 * after word i. */
ggtok_status ggtok_words_encode_spans(const model_call *call, word_cache *cache, word_fn encode,
                                      const uint8_t *text, size_t n, const size_t *starts,
                                      const size_t *ends, size_t count, size_t *id_ends);

#endif
