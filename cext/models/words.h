/*
 * Encodes a text's words, or its pieces between cuts, in order: hits from the cache, misses by the
 * model.
 */
#ifndef GGTOK_WORDS_H
#define GGTOK_WORDS_H

#include "cache/word_cache.h"
#include "models/model.h"

/* Short texts are copied, so that WORDS_PAD bytes after them are readable: then their last words take
 * the hot path, too. */
enum { WORDS_SHORT = 1024, WORDS_PAD = 32 };

/* The text or, if it is short, its copy in `pad`. *room: the number of readable bytes, at least n.
 * NULL: out of memory. */
const uint8_t *ggtok_words_pad(bytebuf *pad, const uint8_t *text, size_t n, size_t *room);

/* Appends the ids of one word that the cache lacks; `room` (>= n) bytes are readable. */
typedef ggtok_status (*word_fn)(const model_call *call, const uint8_t *word, size_t n, size_t room);

/* Encodes the words text[from..ends[0]), text[ends[0]..ends[1]), ...; `n` bytes of the text are
 * readable, which may be more than its words take. */
ggtok_status ggtok_words_encode(const model_call *call, word_cache *cache, word_fn encode,
                                const uint8_t *text, size_t n, size_t from, const size_t *ends,
                                size_t count);

/* Encodes the words text[starts[0]..ends[0]), text[starts[1]..ends[1]), ...; what is between them
 * (white space) has no ids. made[i], if not NULL: the number of ids after word i. */
ggtok_status ggtok_words_encode_spans(const model_call *call, word_cache *cache, word_fn encode,
                                      const uint8_t *text, size_t n, const size_t *starts,
                                      const size_t *ends, size_t count, size_t *made);

#endif
