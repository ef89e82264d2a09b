#include "python/state.h"

PyObject *ggtok_python_fail(const entry *e, const ggtok_error *err, size_t text, bool in_batch) {
    PyObject *args = in_batch
                         ? Py_BuildValue("(y#n)", err, (Py_ssize_t)sizeof *err, (Py_ssize_t)text)
                         : Py_BuildValue("(y#O)", err, (Py_ssize_t)sizeof *err, Py_None);
    if (args) PyErr_SetObject(e->error, args);
    Py_XDECREF(args);
    return NULL;
}

/* ---- arguments ---- */

/* Returns the UTF-8 of a str or bytes object, in place: CPython keeps it with a str (an ASCII str
 * is its own UTF-8). For any other object, returns NULL with TypeError set. */
const char *ggtok_python_text_of(PyObject *text, Py_ssize_t *n) {
    char *data;
    if (PyUnicode_Check(text)) return PyUnicode_AsUTF8AndSize(text, n);
    return PyBytes_AsStringAndSize(text, &data, n) ? NULL : data;
}

bool ggtok_python_ids_of(PyObject *object, PyObject **tuple, int32_t **ids, size_t *n) {
    if (!(*tuple = PySequence_Tuple(object))) return false;
    *n = (size_t)PyTuple_Size(*tuple);
    if (!(*ids = ggtok_mem_alloc(mem_mul(*n, sizeof **ids)))) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < *n; i++) {
        long id = PyLong_AsLong(PyTuple_GetItem(*tuple, (Py_ssize_t)i));
        if (id == -1 && PyErr_Occurred()) return false;
        if (id < INT32_MIN || id > INT32_MAX) {
            PyErr_SetString(PyExc_OverflowError, "not an int32");
            return false;
        }
        (*ids)[i] = (int32_t)id;
    }
    return true;
}

const ggtok_tokenizer *ggtok_python_tokenizer(PyObject *self) {
    SELF;
    return e->tok;
}

ggtok_pool *ggtok_python_pool(PyObject *self) {
    SELF;
    return e->pool;
}

PyObject *ggtok_python_list(PyObject *self, const int32_t *ids, size_t n) {
    SELF;
    return ggtok_python_untracked_list_of(e, ids, n);
}

PyObject *ggtok_python_error(PyObject *self, const ggtok_error *err) {
    SELF;
    return PyObject_CallFunction(e->error, "y#O", err, (Py_ssize_t)sizeof *err, Py_None);
}
