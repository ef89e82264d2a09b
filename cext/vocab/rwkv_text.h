/* RWKV vocabularies hold byte strings as escaped text. */
#ifndef GGTOK_RWKV_TEXT_H
#define GGTOK_RWKV_TEXT_H

#include "base/mem.h"

/*
 * Appends the bytes that a token's text stands for: \t \n \r, \xHH, and any
 * other escaped byte for itself. Nothing is checked, as in llama.cpp: what
 * follows \x counts as two hexadecimal digits whatever it is, and an escape that
 * the text's end cuts short gives nothing. False: out of memory.
 */
bool ggtok_rwkv_unescape(bytebuf *out, const uint8_t *text, size_t n);

#endif
