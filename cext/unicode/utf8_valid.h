/* Validation and repair of UTF-8. "Well-formed" has the wide sense of unicode/utf8.h. */
#ifndef GGTOK_UTF8_VALID_H
#define GGTOK_UTF8_VALID_H

#include "base/interrupt.h"
#include "unicode/utf8.h"

/* Returns the length of the longest well-formed prefix. */
size_t ggtok_utf8_valid_prefix(const uint8_t *p, size_t n);

/* Appends p[0..n) in well-formed form: decodes it as llama.cpp does and re-encodes it. Returns
 * false if out of memory or interrupted. */
bool ggtok_utf8_sanitize(bytebuf *out, const uint8_t *p, size_t n, interrupt *in);

#endif
