/* The functions for which bypassing cffi is worthwhile; see entry.c. */
#ifndef GGTOK_PYTHON_ENTRY_H
#define GGTOK_PYTHON_ENTRY_H

#include "ggtok.h"

/*
 * Adds the functions of entry.c to the Python dict whose id() is `functions`, by name, bound to the
 * tokenizer. They take ownership of the tokenizer, which is freed with the last of them. `error` is
 * the id() of the exception class that they raise, with a ggtok_error's bytes and the index of a
 * batch's text (or None) as arguments. Returns false if out of memory; the caller then still owns
 * the tokenizer and must clear the dict.
 */
bool ggtok_python_bind_tokenizer(ggtok_tokenizer *tok, uintptr_t functions, uintptr_t error);

#endif
