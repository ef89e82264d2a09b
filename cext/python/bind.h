/* Passes functions to Python, which identifies them by their position in a list. */
#ifndef GGTOK_PYTHON_BIND_H
#define GGTOK_PYTHON_BIND_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

/*
 * Appends the n functions to the Python list whose id() is `list`. Unless `error_class` is NULL,
 * sets *error_class to the exception class whose id() is `error`. Called without the GIL. Returns
 * false if out of memory.
 */
bool ggtok_python_bind(PyMethodDef *functions, size_t n, uintptr_t list, uintptr_t error,
                       PyObject **error_class);

#endif
