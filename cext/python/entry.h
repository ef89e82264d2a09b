/* The calls that pay for a way around cffi; see entry.c. */
#ifndef GGTOK_PYTHON_ENTRY_H
#define GGTOK_PYTHON_ENTRY_H

#include "ggtok.h"

/*
 * Appends to the Python list whose id() is `list` the functions of entry.c, by their
 * order there, bound to the tokenizer, which belongs to them from then on: it is freed
 * with the last of them. `error` is the id() of the exception class that they raise,
 * with a ggtok_error's bytes and a batch's text number (or None) as arguments. False:
 * out of memory; the tokenizer is still the caller's.
 */
bool entry_bind(ggtok_tokenizer *tok, uintptr_t list, uintptr_t error);

#endif
