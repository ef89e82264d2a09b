/* RWKV vocabularies store byte strings as escaped text. */
#ifndef GGTOK_RWKV_TEXT_H
#define GGTOK_RWKV_TEXT_H

#include "base/mem.h"

/*
 * Appends the bytes that a token's text represents: \t, \n, \r, \xHH; any other escaped byte
 * represents itself. As in llama.cpp, nothing is validated: any two bytes after \x count as
 * hexadecimal digits, and an escape that is cut off by the end of the text yields nothing. Returns
 * false if out of memory.
 */
bool ggtok_rwkv_unescape(bytebuf *out, const uint8_t *text, size_t n);

#endif
