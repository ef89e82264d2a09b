/*
 * Laying ids along the text that they come from, by their lengths: see docs/design/offsets.md.
 */
#ifndef GGTOK_TILE_H
#define GGTOK_TILE_H

#include "models/model.h"

/* Bytes of the text that a token takes, spaces unescaped; TILE_ASK: it doesn't tell, or takes more.
 * One byte, so that those of a large vocabulary are not far from the processor. */
typedef uint8_t tile_length;
enum { TILE_ASK = UINT8_MAX };
typedef struct tiles {
    tile_length *len; /* [n_tokens]; NULL as long as nobody asked */
    bool clean;       /* no id is that of less than its length tells */
    bool whole;       /* no token, or what follows the U+2581 that it begins with, begins inside a
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

/* The ids from `first` on, which `encode` has appended, as the source of spans that are assigned from text[0..n) to
 * call->spans. False: there is no memory, or one is no token. */
bool ggtok_tile_source(const model_call *call, const uint8_t *text, size_t n, size_t first,
                       model_source *source);

/* The length of a text in which U+2581 stands for a space, or TILE_ASK. */
tile_length ggtok_tile_length(gguf_view text, bool escape);

/* Assigns all spans: the text is the tokens' bytes with spaces unescaped. False: their
 * lengths don't add up to that. */
bool ggtok_tile(const tiles *t, const model_source *source, bool prefix);

/* The same where the text isn't as it will be; a length that isn't the text's is one byte's. False
 * if the lengths don't add up, or interrupted. */
bool ggtok_tile_walk(const model_call *call, const tiles *t, const model_source *source,
                     tile_text kind);

/* Lengths of tokens of words, each of which begins with a U+2581, likewise: the unknown one's isn't
 * known. False: out of memory. */
bool ggtok_tile_measure_words(tiles *t, const vocab *v);

/* Is there a U+2581 in the text? */
bool ggtok_tile_holds_mark(const uint8_t *text, size_t n);

/* Is the text well-formed, and no U+2581 in it? */
bool ggtok_tile_is_plain(const uint8_t *text, size_t n);

#endif
