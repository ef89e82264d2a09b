/*
 * Laying ids along the text that they come from, by their lengths: see docs/design/offsets.md.
 */
#ifndef GGTOK_TILE_H
#define GGTOK_TILE_H

#include "models/model.h"

/* Bytes of the text that each token takes, spaces unescaped; TILE_ASK: they don't tell. */
enum { TILE_ASK = UINT16_MAX };
typedef struct tiles {
    uint16_t *len; /* [n_tokens]; NULL as long as nobody asked */
    bool clean;    /* no id is that of less than its length tells */
    bool whole;    /* no token, or what follows the U+2581 that it begins with, begins inside a
                      character: no word is divided there */
} tiles;

/* What becomes of a text before its bytes are tokens'. */
typedef struct tile_text {
    bool escape;     /* a space is U+2581 */
    bool prefix;     /* which also stands before the text, */
    bool mark_lines; /* or before each line that doesn't begin with one */
    bool repair;     /* characters are in their shortest forms, bad bytes U+FFFD */
} tile_text;

/* The unknown id may be none, or beyond the vocabulary, where a file names no other. */
bool ggtok_tile_are_tokens(const vocab *v, const int32_t *ids, size_t n);

/* The ids from `first` on, which `encode` has appended, as what is to be laid along text[0..n) into
 * call->spans. False: there is no memory, or one is no token. */
bool ggtok_tile_source(const model_call *call, const uint8_t *text, size_t n, size_t first,
                       model_source *source);

/* The length of a text in which U+2581 stands for a space, or TILE_ASK. */
uint16_t ggtok_tile_length(gguf_view text, bool escape);

/* Lays all ids along the text, whose bytes are the tokens' with spaces unescaped. False: their
 * lengths don't add up to that. */
bool ggtok_tile(const tiles *t, const model_source *source, bool prefix);

/* The same where the text isn't as it will be; a length that isn't the text's is one byte's. False
 * if the lengths don't add up, or interrupted. */
bool ggtok_tile_walk(const model_call *call, const tiles *t, const model_source *source,
                     tile_text kind);

/*
 * Words text[start[i]..end[i]) for i < n that hold no U+2581 and to which nothing happens but that
 * one stands before each, or at most that bytes change. Where `joined` is set, that is the white space before the word, which
 * goes back to the word before it or, for the first, to `white`.
 */
typedef struct tile_words {
    const size_t *start, *end;
    size_t n, white;
    bool joined;
} tile_words;

/* Their ids' lengths, without the U+2581 that some begin with: those have TILE_FIRST. Those of the
 * unknown token aren't known. */
enum { TILE_FIRST = 1 << 15, TILE_LONGEST = TILE_FIRST - 1 };
bool ggtok_tile_measure_words(tiles *t, const vocab *v); /* false: out of memory */
static inline bool tile_is_short(size_t start, size_t end) {
    return end - start < TILE_LONGEST;
}

/* Lays ids along the words, from *k on, and moves that. Returns for how many words, from the first
 * on, that worked. Words are shorter than TILE_LONGEST. */
size_t ggtok_tile_words(const tiles *t, const model_source *source, size_t *k, tile_words words);

/* The same of `joined` words with one byte of white space before each but the first, which may have
 * none; all of them are shorter than TILE_LONGEST. Lays all or none. */
size_t ggtok_tile_even_words(const tiles *t, const model_source *source, size_t *k,
                             tile_words words);

/* Where text[from..n) is graphic ASCII and white space no longer. */
size_t ggtok_tile_ascii_end(const uint8_t *text, size_t from, size_t n);

/* How many of the words start[0..n), from the first on, are of that, and short enough. */
size_t ggtok_tile_ascii_words(const uint8_t *text, const size_t *start, const size_t *end,
                              size_t n);

/* Is there a U+2581 in the text? */
bool ggtok_tile_holds_mark(const uint8_t *text, size_t n);

/* Is the text well-formed, and no U+2581 in it? */
bool ggtok_tile_is_plain(const uint8_t *text, size_t n);

#endif
