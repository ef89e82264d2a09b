/* Makes NumPy arrays in C: making one in Python takes longer than encoding a short text. */
#ifndef GGTOK_PYTHON_ARRAY_H
#define GGTOK_PYTHON_ARRAY_H

#include "python/state.h"

/* Returns a new array of int32, shape (n,), with a copy of the ids; NULL with an exception set on
 * failure. The first call imports NumPy. */
PyObject *ggtok_python_array_of(const int32_t *ids, size_t n);

/* Returns a new array of int64, shape (n, 2), for spans, and sets *spans to its memory, which the
 * caller fills; NULL with an exception set on failure. */
PyObject *ggtok_python_array_of_spans(size_t n, ggtok_span **spans);

#endif
