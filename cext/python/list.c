/*
 * Makes lists of ids. The int object for each id is made once and kept. Making a list mostly means
 * waiting for these objects to be loaded into the processor's caches, so they are prefetched.
 */
#include "python/list.h"
#include "python/state.h"

#include "python/internal.h"

enum {
    AHEAD = 16,         /* ids to prefetch ahead */
    ASK = (1 << 20) - 1 /* ids converted between checks for signals */
};

/* Prefetches the pointer to a later id's int object, and the object of an id in between. */
static inline void fetch(PyObject *const *ints, uint32_t n_ints, int32_t later, int32_t id) {
    if ((uint32_t)later < n_ints) PREFETCH(&ints[later]);
    if ((uint32_t)id < n_ints) PREFETCH(ints[id]);
}

/* Makes the int object for an id and keeps it; returns a new reference. */
static PyObject *new_int(entry *e, int32_t id) {
    PyObject *number = PyLong_FromLong(id);
    if (number && (uint32_t)id < e->n_ints) {
        Py_INCREF(number);
        e->ints[id] = number;
    }
    return number;
}

PyObject *ggtok_python_untracked_list_of(entry *e, const int32_t *ids, size_t n) {
    if (KEEP && !e->ints) { /* pages that no id touches cost nothing */
        uint32_t n_ints = ggtok_n_tokens(e->tok);
        e->ints = ggtok_mem_zalloc(mem_mul(n_ints, sizeof *e->ints));
        e->n_ints = e->ints ? n_ints : 0;
    }
    PyObject *const *ints = e->ints;
    const uint32_t n_ints = e->n_ints;
    PyObject *list = ggtok_python_list_begin((Py_ssize_t)n);
    for (size_t i = 0; list && i < n;) {
        if (i && PyErr_CheckSignals()) {
            Py_CLEAR(list);
            break;
        }
        for (size_t stop = n - i < ASK ? n : i + ASK; i < stop; i++) {
            if (n - i > 2 * AHEAD) fetch(ints, n_ints, ids[i + 2 * AHEAD], ids[i + AHEAD]);
            PyObject *number = (uint32_t)ids[i] < n_ints ? ints[ids[i]] : NULL;
            if (number) {
                Py_INCREF(number);
            } else if (!(number = new_int(e, ids[i]))) {
                Py_DECREF(list);
                return NULL;
            }
            PyList_SetItem(list, (Py_ssize_t)i, number);
        }
    }
    return list;
}

PyObject *ggtok_python_list_of(entry *e, const int32_t *ids, size_t n) {
    return ggtok_python_list_end(ggtok_python_untracked_list_of(e, ids, n));
}
