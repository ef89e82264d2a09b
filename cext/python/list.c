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

/* A number's value, 0 if it isn't one, or none that a long holds. */
static long number_of(PyObject *object) {
    int overflow;
    return object && PyLong_Check(object) ? PyLong_AsLongAndOverflow(object, &overflow) : 0;
}

/* With an exception if asking raised one: what sys has may be the program's own. */
static bool is_cpython_known(void) {
    PyObject *is = PySys_GetObject("implementation");
    Py_XINCREF(is);
    PyObject *name = is ? PyObject_GetAttrString(is, "name") : NULL;
    if (is && !name && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    const long version = number_of(PySys_GetObject("hexversion"));
    bool known = name && PyUnicode_Check(name) &&
                 !PyUnicode_CompareWithASCIIString(name, "cpython") && version >= FIRST_KNOWN &&
                 version < FIRST_UNKNOWN;
    Py_XDECREF(name);
    Py_XDECREF(is);
    return known;
}

/* Are a list's items where list_object has them? With an exception if that can't be told. */
static bool are_items_there(void) {
    PyObject *list = PyList_New(2);
    PyObject *own = list ? PyObject_GetAttrString((PyObject *)&PyList_Type, "__basicsize__") : NULL;
    bool there = false;
    if (own) {
        Py_INCREF(Py_None);
        PyList_SetItem(list, 0, Py_None);
        Py_INCREF(Py_True);
        PyList_SetItem(list, 1, Py_True);
        const size_t size = sizeof(list_object) + sizeof(Py_ssize_t); /* and how many fit */
        PyObject **items = number_of(own) == (long)size ? ((list_object *)list)->items : NULL;
        there = items && items[0] == Py_None && items[1] == Py_True;
    }
    Py_XDECREF(own);
    Py_XDECREF(list);
    return there;
}

/* Are items to be stored where a list has them (1), or by calls (0)? Asking may run the program's
 * own code; -1 with the exception that it raised. */
static int find_items(void) {
    enum { UNKNOWN, BY_CALL, THERE };
    static atomic_int found = UNKNOWN; /* of all interpreters of this process */
    int is = atomic_load_explicit(&found, memory_order_relaxed);
    if (is == UNKNOWN) {
        is = KEEP && is_cpython_known() && are_items_there() ? THERE : BY_CALL;
        if (PyErr_Occurred()) return -1;
        atomic_store_explicit(&found, is, memory_order_relaxed);
    }
    return is == THERE;
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
    if (number && (uint32_t)id < e->n_ints && !e->ints[id]) { /* nor made by a signal's handler */
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
    const int found = find_items(); /* before there is a list that other code could change */
    PyObject *list = found < 0 ? NULL : PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n;) {
        if (i && PyErr_CheckSignals()) {
            Py_CLEAR(list);
            break;
        }
        /* A signal's handler may have found the list among all objects, and changed it. */
        const bool whole = (size_t)PyList_Size(list) == n;
        PyObject **items = found && whole ? ((list_object *)list)->items : NULL;
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
