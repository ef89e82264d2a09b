/* SentencePiece's spelling of spaces: ' ' <-> U+2581. */
#ifndef GGTOK_SPACES_H
#define GGTOK_SPACES_H

#include "mem.h"

#define SPACE_MARK "\xE2\x96\x81"

/* Appends p[0..n) with every space escaped. False: out of memory. */
bool spaces_escape(bytebuf *out, const uint8_t *p, size_t n);
/* The same, and U+2581 in front of each line that isn't empty and has none there. */
bool spaces_escape_lines(bytebuf *out, const uint8_t *p, size_t n);
bool spaces_unescape(bytebuf *out, const uint8_t *p, size_t n);

#endif
