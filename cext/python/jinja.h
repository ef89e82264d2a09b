/* Templates as Python sees them; see jinja.c. */
#ifndef GGTOK_PYTHON_JINJA_H
#define GGTOK_PYTHON_JINJA_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Appends to the Python list whose id() is `list` the functions of jinja.c, by their order
 * there. `error` is the id() of the exception class that they raise with (status, message,
 * line or None, that line). False: out of memory.
 */
bool ggtok_jinja_bind(uintptr_t list, uintptr_t error);

#endif
