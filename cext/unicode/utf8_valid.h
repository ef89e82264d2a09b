/* Validation and repair of UTF-8, well-formed in the wide sense (unicode/utf8.h). */
#ifndef GGTOK_UTF8_VALID_H
#define GGTOK_UTF8_VALID_H

#include "base/interrupt.h"
#include "unicode/utf8.h"

/* Length of the longest prefix that is well-formed in the wide sense. */
size_t ggtok_utf8_valid_prefix(const uint8_t *p, size_t n);

/* Appends p[0..n) in well-formed form: decodes it as llama.cpp does and re-encodes it. False: out of
 * memory, or interrupted. */
bool ggtok_utf8_sanitize(bytebuf *out, const uint8_t *p, size_t n, interrupt *in);

#endif
