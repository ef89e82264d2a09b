/* Decodes ids to text. */
#include "python/state.h"

static PyObject *decoded(entry *e, const int32_t *ids, size_t n, unsigned flags) {
    ggtok_error err;
    ggtok_bytes text;
    ggtok_context *ctx = ggtok_pool_acquire(e->pool, &err);
    if (!ctx) return ggtok_python_fail(e, &err, 0, false);
    ggtok_status s;
    if (n < RELEASE_FROM) {
        s = ggtok_decode(ctx, ids, n, flags, &text, &err);
    } else {
        PyThreadState *state = PyEval_SaveThread();
        s = ggtok_decode(ctx, ids, n, flags, &text, &err);
        PyEval_RestoreThread(state);
    }
    PyObject *bytes = s ? ggtok_python_fail(e, &err, 0, false)
                        : PyBytes_FromStringAndSize(text.data, (Py_ssize_t)text.n);
    ggtok_pool_release(e->pool, ctx);
    return bytes;
}

/* (ids, remove_special, unparse_special, clean_spaces) -> bytes. */
PyObject *ggtok_python_decode(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    PyObject *tuple, *bytes = NULL;
    int32_t *ids = NULL;
    size_t n;
    unsigned flags;
    if (ggtok_python_ids_of(args[0], &tuple, &ids, &n) &&
        ggtok_python_decode_flags(args + 1, &flags)) {
        bytes = decoded(e, ids, n, flags);
    }
    ggtok_mem_free(ids);
    Py_XDECREF(tuple);
    return bytes;
}

/* (address of int32s, their number, remove_special, unparse_special, clean_spaces) -> bytes */
PyObject *ggtok_python_decode_at(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    const int32_t *ids = PyLong_AsVoidPtr(args[0]);
    size_t n = PyLong_AsSize_t(args[1]);
    unsigned flags;
    if (PyErr_Occurred() || !ggtok_python_decode_flags(args + 2, &flags)) return NULL;
    return decoded(e, ids, n, flags);
}
