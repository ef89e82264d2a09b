/*
 * A cache of up to eight words that are too long for the word cache, those encoded last: exact,
 * bounded, owned by one thread. A word is stored the first time, since encoding it usually takes
 * far longer than copying it.
 */
#ifndef GGTOK_KEPT_WORDS_H
#define GGTOK_KEPT_WORDS_H

#include "base/mem.h"
#include "cache/long_cache.h"

enum { KEPT_WORDS = 8 };

typedef struct kept_word {
    int32_t *ids;    /* the ids, then the word's bytes */
    size_t n_ids, n; /* n: bytes of the word; 0: none */
} kept_word;

typedef struct kept_words {
    kept_word word[KEPT_WORDS];
    unsigned next; /* the one that is replaced next */
} kept_words;

/* Whether words of n bytes are kept. */
static inline bool kept_words_suits(size_t n) {
    return n > LONG_MAX_BYTES && !PLAIN;
}

/* Appends the ids of the word p[0..n), n >= 1, if it is stored and *out has or gets room for them. */
bool ggtok_kept_words_get(const kept_words *k, const uint8_t *p, size_t n, idbuf *out);

/* Stores a word, unless it is too large. Storing may fail, which only costs time. */
void ggtok_kept_words_put(kept_words *k, const uint8_t *p, size_t n, const int32_t *ids,
                          size_t n_ids);

size_t ggtok_kept_words_bytes(const kept_words *k); /* bytes of memory in use */
void ggtok_kept_words_free(kept_words *k);

#endif
