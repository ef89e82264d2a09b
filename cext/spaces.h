/* SentencePiece's spelling of spaces: ' ' <-> U+2581. */
#ifndef GGTOK_SPACES_H
#define GGTOK_SPACES_H

#include "mem.h"

#define SPACE_MARK "\xE2\x96\x81"

/* Appends p[0..n) with every space escaped (or unescaped). False: out of memory. */
bool spaces_escape(bytebuf *out, const uint8_t *p, size_t n);
bool spaces_unescape(bytebuf *out, const uint8_t *p, size_t n);

#endif
