/* Converts results of training to Python objects. */
#include "python/train.h"

#include "ggtok_train.h"
#include "python/bind.h"
#include "python/list.h"

/* (texts, address, n) -> list of the pairs of texts merged by the n ggtok_merge_rows at the
 * address. `texts` is a list of the bytes of each symbol; the bytes of new symbols are appended. */
static PyObject *spell(PyObject *self, PyObject *args) {
    PyObject *texts, *address, *merges = NULL, *pair;
    Py_ssize_t n;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!On", &PyList_Type, &texts, &address, &n)) return NULL;
    const ggtok_merge_row *rows = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred() || !(merges = ggtok_python_list_begin(n))) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *left = PyList_GetItem(texts, rows[i].left);
        PyObject *right = PyList_GetItem(texts, rows[i].right);
        if (!left || !right || !(pair = PyTuple_Pack(2, left, right))) goto failed;
        PyObject_GC_UnTrack(pair); /* bytes refer to nothing, so the pair is in no cycle */
        PyList_SetItem(merges, i, pair);
        if (rows[i].made != PyList_Size(texts)) continue;
        PyObject *made = PySequence_Concat(left, right);
        int failed = made ? PyList_Append(texts, made) : -1;
        Py_XDECREF(made);
        if (failed) goto failed;
    }
    return ggtok_python_list_end(merges);
failed:
    Py_DECREF(merges);
    return NULL;
}

static PyMethodDef functions[] = {{"spell", spell, METH_VARARGS, NULL}};

bool ggtok_train_bind(uintptr_t list) {
    return ggtok_python_bind(functions, sizeof functions / sizeof *functions, list, 0, NULL);
}
