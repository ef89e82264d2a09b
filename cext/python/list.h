/*
 * Lists that are filled one item at a time.
 *
 * PyList_New(n) makes a list of n null pointers that the garbage collector tracks at once. Any
 * Python code that runs before the last item is set (a signal handler, a callback, or a finalizer
 * run by the collector) can find the list with gc.get_objects(), and reading a null item crashes.
 * So a list isn't tracked until it is full.
 *
 * All lists and tuples that are filled item by item must be made with these functions, which
 * tests/test_architecture.py checks. PyTuple_Pack and PyList_New(0) expose no null items.
 */
#ifndef GGTOK_PYTHON_LIST_H
#define GGTOK_PYTHON_LIST_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Returns an untracked list of n null pointers. Set each item with PyList_SetItem, then call
 * ggtok_python_list_end; on failure, drop the reference. Returns NULL with an exception set if out of
 * memory. */
static inline PyObject *ggtok_python_list_begin(Py_ssize_t n) {
    PyObject *list = PyList_New(n);
    if (list) PyObject_GC_UnTrack(list);
    return list;
}

/* Makes the garbage collector track a full list; returns the list. `list` may be NULL. */
static inline PyObject *ggtok_python_list_end(PyObject *list) {
    if (list) PyObject_GC_Track(list);
    return list;
}

/* Like ggtok_python_list_end, but converts the list to a tuple. */
static inline PyObject *ggtok_python_list_end_as_tuple(PyObject *list) {
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

#endif
