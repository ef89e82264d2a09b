/* How functions get to Python, which knows them by their order in a list. */
#ifndef GGTOK_PYTHON_BIND_H
#define GGTOK_PYTHON_BIND_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

/*
 * Appends the n functions to the Python list whose id() is `list`, and keeps the exception class
 * whose id() is `error` in *error_class, unless that is NULL. Called without the GIL. False: out of
 * memory.
 */
bool ggtok_py_bind(PyMethodDef *functions, size_t n, uintptr_t list, uintptr_t error,
                   PyObject **error_class);

#endif
