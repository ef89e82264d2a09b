/*
 * Lists of ids.
 *
 * An id's int object is made once. What a list takes is then waiting for its objects, whose counts of
 * references rise, and PyList_SetItem, a call that checks what is known here: a fifth of the time of a
 * warm text. The limited API has nothing else, so items are stored where a list has them, as they are
 * in CPython 3.10 to 3.14, if a list that was filled by calls looks like that.
 */
#include "python/state.h"

#include "base/cpu.h"

#include <stdatomic.h>

enum {
    FIRST_KNOWN = 0x030A0000, /* sys.hexversion */
    FIRST_UNKNOWN = 0x030F0000,
    AHEAD = 16,         /* ids */
    ASK = (1 << 20) - 1 /* ids between signals */
};

typedef struct list_object { /* how a list begins, of which one more field is not needed */
    PyObject_VAR_HEAD PyObject **items;
} list_object;

/* The attribute's value, 0 if that is no number that it could be. */
static long number_of(PyObject *object, const char *name) {
    PyObject *value = PyObject_GetAttrString(object, name);
    long number = value && PyLong_Check(value) ? PyLong_AsLong(value) : 0;
    Py_XDECREF(value);
    PyErr_Clear();
    return number;
}

static bool is_cpython_known(void) {
    PyObject *sys = PyImport_ImportModule("sys");
    PyObject *is = sys ? PyObject_GetAttrString(sys, "implementation") : NULL;
    PyObject *name = is ? PyObject_GetAttrString(is, "name") : NULL;
    const long version = sys ? number_of(sys, "hexversion") : 0;
    bool known = name && PyUnicode_Check(name) &&
                 !PyUnicode_CompareWithASCIIString(name, "cpython") && version >= FIRST_KNOWN &&
                 version < FIRST_UNKNOWN;
    Py_XDECREF(name);
    Py_XDECREF(is);
    Py_XDECREF(sys);
    PyErr_Clear();
    return known;
}

/* Are a list's items where list_object has them? */
static bool are_items_there(void) {
    PyObject *list = PyList_New(2);
    if (!list) {
        PyErr_Clear();
        return false;
    }
    Py_INCREF(Py_None);
    PyList_SetItem(list, 0, Py_None);
    Py_INCREF(Py_True);
    PyList_SetItem(list, 1, Py_True);
    const size_t size = sizeof(list_object) + sizeof(Py_ssize_t); /* and how many it has room for */
    const long own = number_of((PyObject *)&PyList_Type, "__basicsize__");
    PyObject **items = own == (long)size ? ((list_object *)list)->items : NULL;
    bool there = items && items[0] == Py_None && items[1] == Py_True;
    Py_DECREF(list);
    return there;
}

/* Where the items of a new list are, or NULL: they are to be stored by calls. */
static PyObject **items_of(PyObject *list) {
    enum { UNKNOWN, BY_CALL, THERE };
    static atomic_int found = UNKNOWN; /* of all interpreters of this process */
    int is = atomic_load_explicit(&found, memory_order_relaxed);
    if (is == UNKNOWN) {
        is = KEEP && is_cpython_known() && are_items_there() ? THERE : BY_CALL;
        atomic_store_explicit(&found, is, memory_order_relaxed);
    }
    return is == THERE ? ((list_object *)list)->items : NULL;
}

/* Where a later id's object is told, and the object of one before that, which are on their way by
 * the time they are asked for: most of a list's time is waiting for its objects. */
static inline void fetch(PyObject *const *ints, uint32_t n_ints, int32_t later, int32_t id) {
    if ((uint32_t)later < n_ints) PREFETCH(&ints[later]);
    if ((uint32_t)id < n_ints) PREFETCH(ints[id]);
}

/* An id's int object, which is kept, and a new reference to it. */
static PyObject *new_int(entry *e, int32_t id) {
    PyObject *number = PyLong_FromLong(id);
    if (number && (uint32_t)id < e->n_ints) {
        Py_INCREF(number);
        e->ints[id] = number;
    }
    return number;
}

PyObject *entry_list_of(entry *e, const int32_t *ids, size_t n) {
    if (KEEP && !e->ints) { /* pages of it that no id reaches cost nothing */
        uint32_t n_ints = ggtok_n_tokens(e->tok);
        e->ints = ggtok_mem_zalloc(mem_mul(n_ints, sizeof *e->ints));
        e->n_ints = e->ints ? n_ints : 0;
    }
    PyObject *const *ints = e->ints;
    const uint32_t n_ints = e->n_ints;
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n;) {
        if (i && PyErr_CheckSignals()) {
            Py_CLEAR(list);
            break;
        }
        /* A signal's handler may have found the list among all objects, and changed it. */
        PyObject **items = (size_t)PyList_Size(list) == n ? items_of(list) : NULL;
        for (size_t stop = n - i < ASK ? n : i + ASK; i < stop; i++) {
            if (n - i > 2 * AHEAD) fetch(ints, n_ints, ids[i + 2 * AHEAD], ids[i + AHEAD]);
            PyObject *number = (uint32_t)ids[i] < n_ints ? ints[ids[i]] : NULL;
            if (number) {
                Py_INCREF(number);
            } else {
                number = new_int(e, ids[i]);
            }
            if (items && number) {
                items[i] = number;
            } else if (!number || PyList_SetItem(list, (Py_ssize_t)i, number)) {
                Py_DECREF(list);
                return NULL;
            }
        }
    }
    return list;
}
