/* The calls that pay for a way around cffi; see entry.c. */
#ifndef GGTOK_PYTHON_ENTRY_H
#define GGTOK_PYTHON_ENTRY_H

#include "ggtok.h"

/*
 * Puts the functions of entry.c into the Python dict whose id() is `functions`, by name,
 * bound to the tokenizer, which belongs to them from then on: it is freed with the last of
 * them. `error` is the id() of the exception class that they raise, with a ggtok_error's
 * bytes and a batch's text number (or None) as arguments. False: out of memory; the
 * tokenizer is still the caller's, and the dict to be cleared.
 */
bool entry_bind(ggtok_tokenizer *tok, uintptr_t functions, uintptr_t error);

#endif
