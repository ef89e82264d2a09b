/* NumPy arrays made in C: making one in Python takes longer than encoding a short text. */
#ifndef GGTOK_PYTHON_ARRAY_H
#define GGTOK_PYTHON_ARRAY_H

#include "python/state.h"

/* A new array of int32, shape (n,), with a copy of the ids. NULL: an exception is set. Imports NumPy
 * at the first call. */
PyObject *ggtok_python_array_of(const int32_t *ids, size_t n);

/* A new array of int64, shape (n, 2), for spans; the caller fills its memory, *spans. NULL: an
 * exception is set. */
PyObject *ggtok_python_array_of_spans(size_t n, ggtok_span **spans);

#endif
