/* NumPy arrays made in C: through Python a short text's array takes longer than its ids. */
#ifndef GGTOK_PYTHON_ARRAY_H
#define GGTOK_PYTHON_ARRAY_H

#include "python/state.h"

/* A new array of int32, shape (n,), that owns a copy of the ids. NULL: an exception is set. Imports
 * NumPy when it is first called. */
PyObject *ggtok_python_array_of(const int32_t *ids, size_t n);

/* A new array of spans, int64 of shape (n, 2), whose memory *spans is to be filled. NULL: likewise. */
PyObject *ggtok_python_array_of_spans(size_t n, ggtok_span **spans);

#endif
