/* Arrow data to and from Python, as PyCapsules; see arrow.c. */
#ifndef GGTOK_PYTHON_ARROW_H
#define GGTOK_PYTHON_ARROW_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "arrow/ids.h"
#include "arrow/texts.h"

/*
 * Appends to the Python list whose id() is `list` the functions of arrow.c, by their order
 * there. `error` is the id() of the exception class that they raise, with a ggtok_error's bytes
 * and None. False: out of memory.
 */
bool ggtok_arrow_bind(uintptr_t list, uintptr_t error);

/* The texts in what arrow.c's `read_texts` gave; NULL with an exception set if it didn't give that. */
const arrow_texts *ggtok_py_arrow_texts(PyObject *capsule);

/* What arrow.c's `export` takes; NULL with an exception set. It takes the reference. */
PyObject *ggtok_py_arrow_ids(arrow_ids *ids);

#endif
