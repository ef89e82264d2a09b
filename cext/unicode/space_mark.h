/* SentencePiece's spelling of spaces: ' ' <-> U+2581. */
#ifndef GGTOK_SPACE_MARK_H
#define GGTOK_SPACE_MARK_H

#include "base/mem.h"

#define SPACE_MARK "\xE2\x96\x81"
enum { SPACE_MARK_BYTES = 3 };

/* Appends p[0..n) with every space replaced by U+2581. Returns false if out of memory. */
bool ggtok_space_mark_escape(bytebuf *out, const uint8_t *p, size_t n);
/* Like ggtok_space_mark_escape, but also adds U+2581 before each line that isn't empty and doesn't
 * begin with a space or U+2581. */
bool ggtok_space_mark_escape_lines(bytebuf *out, const uint8_t *p, size_t n);
bool ggtok_space_mark_unescape(bytebuf *out, const uint8_t *p, size_t n);

#endif
