/*
 * Uses NumPy's C API without its headers: a capsule holds a table of functions, and the indices in
 * the table never change (code compiled against an old NumPy runs with a new one). So NumPy isn't
 * needed to build ggtok, and importing ggtok doesn't import it.
 */
#include "python/array.h"

#include <stdatomic.h>

enum { /* indices in the table, and type numbers */
       ARRAY_TYPE = 2,
       ARRAY_NEW = 93,
       INT32 = 5,
       INT64 = sizeof(long) == 8 ? 7 : 9 /* C's long if it has 64 bits, otherwise long long */
};

/* PyArray_New(subtype, nd, dims, type_num, strides, data, itemsize, flags, obj) */
typedef PyObject *(*array_new)(void *, int, const Py_ssize_t *, int, const Py_ssize_t *, void *,
                               int, int, PyObject *);

typedef struct array_object { /* the initial fields of every array object */
    PyObject_HEAD char *data;
} array_object;

static _Atomic(void **) table; /* set once, since NumPy can't be unloaded */

static void **find_table(void) {
    static const char *const modules[] = {"numpy._core._multiarray_umath", /* since NumPy 2 */
                                          "numpy.core._multiarray_umath"};
    PyObject *module = PyImport_ImportModule(modules[0]);
    if (!module && PyErr_ExceptionMatches(PyExc_ModuleNotFoundError)) {
        PyErr_Clear();
        module = PyImport_ImportModule(modules[1]);
    }
    if (!module) return NULL;
    PyObject *capsule = PyObject_GetAttrString(module, "_ARRAY_API");
    void **found = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    Py_XDECREF(capsule);
    Py_DECREF(module);
    atomic_store_explicit(&table, found, memory_order_release);
    return found;
}

static PyObject *new_array(int type, int n_dims, const Py_ssize_t *shape, void **data) {
    void **api = atomic_load_explicit(&table, memory_order_acquire);
    *data = NULL;
    if (!api && !(api = find_table())) return NULL;
    array_new new = (array_new)(uintptr_t)api[ARRAY_NEW];
    PyObject *array = new(api[ARRAY_TYPE], n_dims, shape, type, NULL, NULL, 0, 0, NULL);
    if (array) *data = ((array_object *)array)->data;
    return array;
}

PyObject *ggtok_python_array_of(const int32_t *ids, size_t n) {
    const Py_ssize_t shape = (Py_ssize_t)n;
    void *to;
    PyObject *array = new_array(INT32, 1, &shape, &to);
    if (!array || !n) return array;
    ggtok_mem_will_fill(to, n * sizeof *ids);
    memcpy(to, ids, n * sizeof *ids);
    return array;
}

PyObject *ggtok_python_array_of_spans(size_t n, ggtok_span **spans) {
    const Py_ssize_t shape[] = {(Py_ssize_t)n, 2};
    void *to;
    PyObject *array = new_array(INT64, 2, shape, &to);
    if (array && n) ggtok_mem_will_fill(to, n * sizeof **spans);
    *spans = to;
    return array;
}
