/*
 * Assigns spans to ids from the lengths of their texts: see docs/design/offsets.md.
 */
#ifndef GGTOK_TILE_H
#define GGTOK_TILE_H

#include "models/model.h"

/* The bytes of the text that a token takes, spaces unescaped. TILE_ASK: unknown, or too many. One
 * byte, so that the lengths of a large vocabulary fit in the processor's caches. */
typedef uint8_t tile_length;
enum { TILE_ASK = UINT8_MAX };
typedef struct tiles {
    tile_length *len; /* [n_tokens]; NULL: not computed yet */
    bool clean;       /* no id represents less than its length */
    bool whole; /* no token (after a leading U+2581) begins inside a character: words are never
                      divided there */
} tiles;

/* How a text is transformed before it is tokenized. */
typedef struct tile_text {
    bool escape;     /* spaces become U+2581 */
    bool prefix;     /* U+2581 is added before the text, */
    bool mark_lines; /* or before each line that doesn't begin with one */
    bool repair;     /* characters get their shortest forms; malformed bytes become U+FFFD */
} tile_text;

/* The unknown id may be -1 or out of range if the file doesn't name it. */
bool ggtok_tile_are_tokens(const vocab *v, const int32_t *ids, size_t n);

/* Describes the ids from `first` on, which `encode` appended for text[0..n), and their spans in
 * call->spans. False: out of memory, or an id is no token. */
bool ggtok_tile_source(const model_call *call, const uint8_t *text, size_t n, size_t first,
                       model_source *source);

/* The length of a text in which U+2581 represents a space, or TILE_ASK. */
tile_length ggtok_tile_length(gguf_view text, bool escape);

/* Assigns all spans, assuming that the text is the tokens' bytes with spaces unescaped. False: the
 * lengths don't add up to it. */
bool ggtok_tile(const tiles *t, const model_source *source, bool prefix);

/* The same for a text that is transformed first. A token whose length differs from its text's
 * represents one byte. False if the lengths don't add up, or interrupted. */
bool ggtok_tile_walk(const model_call *call, const tiles *t, const model_source *source,
                     tile_text kind);

/* The same lengths for vocabularies whose words each begin with U+2581; that of the unknown token is
 * unknown. False: out of memory. */
bool ggtok_tile_measure_words(tiles *t, const vocab *v);

/* Does the text contain U+2581? */
bool ggtok_tile_holds_mark(const uint8_t *text, size_t n);

/* Is the text well-formed, without U+2581? */
bool ggtok_tile_is_plain(const uint8_t *text, size_t n);

#endif
