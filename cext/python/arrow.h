/* Converts Arrow data to and from Python, as PyCapsules; see arrow.c. */
#ifndef GGTOK_PYTHON_ARROW_H
#define GGTOK_PYTHON_ARROW_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/internal.h"

/*
 * Appends the functions of arrow.c, in their order there, to the Python list whose id() is `list`.
 * `error` is the id() of the exception class that they raise, with a ggtok_error's bytes and None.
 * Returns false if out of memory.
 */
bool ggtok_arrow_bind(uintptr_t list, uintptr_t error);

/* Returns the texts in a capsule made by arrow.c's `read_texts`; for any other capsule, NULL with
 * an exception set. */
const arrow_texts *ggtok_python_arrow_texts(PyObject *capsule);

/* Returns a capsule, to be passed to arrow.c's `export`, that takes ownership of the reference
 * `ids`; NULL with an exception set on failure. */
PyObject *ggtok_python_arrow_ids(arrow_ids *ids);

#endif
