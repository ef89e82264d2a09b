/*
 * Normalization Form C by Unicode 16.0.0, the version of llama.cpp's tables for it. (Its other
 * tables have another version: unicode/unicode.h.) Malformed bytes, and all bytes of an overlong
 * form, become U+FFFD, as in the builds of llama.cpp that normalize.
 *
 * A text is a sequence of parts that are normalized separately:
 *
 *   text    Zoe U+0308, |n U+0303| <FF>
 *           kept |e U+0308|, |n U+0303|   |U+FFFD
 */
#ifndef GGTOK_NFC_H
#define GGTOK_NFC_H

#include "base/interrupt.h"
#include "base/mem.h"

/* Returns the length of the longest prefix of p[0..n), n >= 1, that NFC is known to keep. It ends
 * where a part ends: its NFC doesn't depend on the text that follows. */
size_t ggtok_nfc_kept(const uint8_t *p, size_t n);

/* Appends the NFC of the first part of p[0..n), n >= 1, to *out: a character and those that NFC may
 * combine with it, or a malformed byte. `marks` is scratch memory. Returns the number of bytes in
 * the part, or 0 if out of memory or interrupted. */
size_t ggtok_nfc_part(bytebuf *marks, const uint8_t *p, size_t n, bytebuf *out, interrupt *in);

#endif
