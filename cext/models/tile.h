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
} tiles;

/* What becomes of a text before its bytes are tokens'. */
typedef struct tile_text {
    bool escape;     /* a space is U+2581 */
    bool prefix;     /* which also stands before the text, */
    bool mark_lines; /* or before each line that doesn't begin with one */
    bool repair;     /* characters are in their shortest forms, bad bytes U+FFFD */
} tile_text;

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
 * Words of graphic ASCII, text[start[i]..end[i]) for i < n, to which nothing happens but that a
 * U+2581 stands before each. Where `joined` is set, that is the white space before the word, which
 * goes back to the word before it or, for the first, to `white`.
 */
typedef struct tile_words {
    const size_t *start, *end;
    size_t n, white;
    bool joined;
} tile_words;

/* Their ids' lengths, without the U+2581 that some begin with: those have TILE_FIRST. */
enum { TILE_FIRST = 1 << 15 };
bool ggtok_tile_measure_words(tiles *t, const vocab *v); /* false: out of memory */

/* Lays ids along the words, from *k on, and moves that. False: the lengths don't add up. An unknown
 * token is all that is left of its word. */
bool ggtok_tile_words(const tiles *t, const vocab *v, const model_source *source, size_t *k,
                      tile_words words);

/* Where text[from..n) is graphic ASCII and white space no longer. */
size_t ggtok_tile_ascii_end(const uint8_t *text, size_t from, size_t n);

/* Lays ids along the first words of start[0..n), as many as are ASCII; returns how many these are
 * if it worked. */
size_t ggtok_tile_ascii_words(const tiles *t, const vocab *v, const model_source *source, size_t *k,
                              tile_words words, size_t *ascii);

/* Is there a U+2581 in the text? */
bool ggtok_tile_holds_mark(const uint8_t *text, size_t n);

/* Is the text well-formed, and no U+2581 in it? */
bool ggtok_tile_is_plain(const uint8_t *text, size_t n);

#endif
