/* Functions that compile and render templates, for Python; see jinja.c. */
#ifndef GGTOK_PYTHON_JINJA_H
#define GGTOK_PYTHON_JINJA_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Appends the functions of jinja.c, in their order there, to the Python list whose id() is `list`.
 * `error` is the id() of the exception class that they raise with (status, message, line or None,
 * text of that line). Returns false if out of memory.
 */
bool ggtok_jinja_bind(uintptr_t list, uintptr_t error);

#endif
