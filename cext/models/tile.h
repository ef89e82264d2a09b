/*
 * Assigns spans to ids from the lengths of their texts; see docs/design/offsets.md.
 */
#ifndef GGTOK_TILE_H
#define GGTOK_TILE_H

#include "models/model.h"

/* The number of bytes of the text that a token represents, with spaces unescaped; TILE_ASK:
 * unknown, or too large. A length takes one byte, so that those of a large vocabulary fit in the
 * processor's caches. */
typedef uint8_t tile_length;
enum { TILE_ASK = UINT8_MAX };
typedef struct tiles {
    tile_length *len; /* [n_tokens], lengths by id; NULL: not computed yet. len[-1] is TILE_ASK, for
                         the id of an unknown token that the file doesn't specify */
    bool clean;       /* whether no id represents fewer bytes than its length */
    bool whole; /* whether no token begins inside a character (after a leading U+2581), so that
                   words are never divided there */
} tiles;

/* How a text is transformed before it is tokenized. */
typedef struct tile_text {
    bool escape;     /* spaces become U+2581 */
    bool prefix;     /* U+2581 is added before the text */
    bool mark_lines; /* U+2581 is added before each line that doesn't begin with one */
    bool repair;     /* characters get their shortest forms; malformed bytes become U+FFFD */
} tile_text;

/* Allocates the lengths. Returns false if out of memory. */
bool ggtok_tile_alloc(tiles *t, const vocab *v);
void ggtok_tile_free(tiles *t);

/* Whether all ids have a length: they are tokens, or the id -1 of an unknown token that the file
 * doesn't specify. */
bool ggtok_tile_are_known(const vocab *v, const int32_t *ids, size_t n);

/* Fills *source with the ids from index `first` on, which `encode` appended for text[0..n), and
 * their spans in call->spans. Returns false if out of memory or if an id isn't a token. */
bool ggtok_tile_source(const model_call *call, const uint8_t *text, size_t n, size_t first,
                       model_source *source);

/* Returns the length of a token's text, in which U+2581 represents a space if `escape`; or
 * TILE_ASK. */
tile_length ggtok_tile_length(gguf_view text, bool escape);

/* Assigns all spans, assuming that the text consists of the tokens' bytes with spaces unescaped.
 * Returns false if the lengths don't add up to the text's length. */
bool ggtok_tile(const tiles *t, const model_source *source, bool prefix);

/* Like ggtok_tile, for a text that is transformed first. In the transformed text, a token
 * represents the bytes of its own text; a byte token, one byte. Returns false if the lengths don't
 * add up, or if interrupted. */
bool ggtok_tile_walk(const model_call *call, const tiles *t, const model_source *source,
                     tile_text kind);

/* Computes t->len and t->whole for vocabularies whose words each begin with U+2581; the unknown
 * token gets TILE_ASK. Returns false if out of memory. */
bool ggtok_tile_measure_words(tiles *t, const vocab *v);

/* Whether the text contains U+2581. */
bool ggtok_tile_holds_mark(const uint8_t *text, size_t n);

/* Whether the text is well-formed and contains no U+2581. */
bool ggtok_tile_is_plain(const uint8_t *text, size_t n);

#endif
