/* Chat conversations to ids in one call; see chat.c. */
#ifndef GGTOK_PYTHON_CHAT_H
#define GGTOK_PYTHON_CHAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ggtok.h"

/* One of the functions that entry.c binds; `self` is the tokenizer's capsule. */
PyObject *ggtok_py_chat(PyObject *self, PyObject *const *args, Py_ssize_t n);

/* From entry.c: the tokenizer's pool, a list of ids, an exception that isn't raised. */
ggtok_pool *ggtok_py_pool(PyObject *self);
PyObject *ggtok_py_list(PyObject *self, const int32_t *ids, size_t n);
PyObject *ggtok_py_error(PyObject *self, const ggtok_error *err);

#endif
