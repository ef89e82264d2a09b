/* encode's options: flags, and special tokens by choice. */
#include "python/state.h"

bool entry_flags(PyObject *first, PyObject *second, unsigned *flags) {
    int a = PyObject_IsTrue(first), b = a < 0 ? -1 : PyObject_IsTrue(second);
    *flags = (unsigned)a | (unsigned)b << 1;
    return a >= 0 && b >= 0;
}

#define CHOICE "ggtok.choice"

bool entry_encode_flags(PyObject *const *args, unsigned *flags, const ggtok_choice **choice) {
    int continuation;
    *choice = NULL;
    if (!entry_flags(args[0], args[1], flags) || (continuation = PyObject_IsTrue(args[2])) < 0)
        return false;
    if (continuation) *flags |= GGTOK_CONTINUATION;
    if (PyCapsule_CheckExact(args[1])) *choice = PyCapsule_GetPointer(args[1], CHOICE);
    return !PyErr_Occurred();
}

static void choice_free(PyObject *choice) {
    PyObject *self = PyCapsule_GetContext(choice);
    ggtok_choice_free(PyCapsule_GetPointer(choice, CHOICE));
    Py_DECREF(self);
}

PyObject *entry_choose(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    ggtok_error err;
    PyObject *tuple, *capsule = NULL;
    int32_t *ids = NULL;
    ggtok_choice *choice = NULL;
    size_t n;
    if (entry_ids_of(args[0], &tuple, &ids, &n)) {
        if (ggtok_choice_new(e->tok, ids, n, &choice, &err)) {
            entry_fail(e, &err, 0, false);
        } else if (!(capsule = PyCapsule_New(choice, CHOICE, NULL))) {
            ggtok_choice_free(choice);
        } else {
            Py_INCREF(self);
            PyCapsule_SetContext(capsule, self);
            PyCapsule_SetDestructor(capsule, choice_free);
        }
    }
    ggtok_mem_free(ids);
    Py_XDECREF(tuple);
    return capsule;
}
