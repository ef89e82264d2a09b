/* Which text is well-formed in the wide sense (unicode/utf8.h), and making it so. */
#ifndef GGTOK_UTF8_VALID_H
#define GGTOK_UTF8_VALID_H

#include "base/interrupt.h"
#include "unicode/utf8.h"

/* Length of the longest prefix that is well-formed in the wide sense. */
size_t ggtok_utf8_valid_prefix(const uint8_t *p, size_t n);

/* Appends the well-formed form of p[0..n): decode, then re-encode. False: out of memory,
 * or interrupted. */
bool ggtok_utf8_sanitize(bytebuf *out, const uint8_t *p, size_t n, interrupt *in);

#endif
