/* Options of encode and decode: flags, and the choice of special tokens. */
#include "python/state.h"

/* Adds `bit` to *flags if the object is True. If it isn't a bool, sets TypeError and returns false;
 * Python code then finds the argument that caused this and converts other libraries' bools
 * (native/arguments.py). */
static bool add_flag(PyObject *object, unsigned bit, unsigned *flags) {
    if (object == Py_True) *flags |= bit;
    if (object == Py_True || object == Py_False) return true;
    PyErr_SetString(PyExc_TypeError, "not a bool");
    return false;
}

bool ggtok_python_decode_flags(PyObject *const *args, unsigned *flags) {
    *flags = args[2] == Py_False ? GGTOK_KEEP_SPACES : 0;
    return add_flag(args[0], GGTOK_REMOVE_SPECIAL, flags) &&
           add_flag(args[1], GGTOK_UNPARSE_SPECIAL, flags) &&
           (args[2] == Py_None || add_flag(args[2], GGTOK_CLEAN_SPACES, flags));
}

#define CHOICE "ggtok.choice"

bool ggtok_python_encode_flags(PyObject *const *args, unsigned *flags,
                               const ggtok_special_choice **choice) {
    *flags = 0;
    *choice = NULL;
    if (!add_flag(args[0], GGTOK_ADD_SPECIAL, flags) ||
        !add_flag(args[2], GGTOK_CONTINUATION, flags))
        return false;
    if (!PyCapsule_CheckExact(args[1])) return add_flag(args[1], GGTOK_PARSE_SPECIAL, flags);
    *flags |= GGTOK_PARSE_SPECIAL;
    *choice = PyCapsule_GetPointer(args[1], CHOICE);
    return *choice != NULL;
}

bool ggtok_python_sampling_of(PyObject *tuple, ggtok_sampling *s) {
    int rule;
    unsigned long long seed, index;
    if (!PyArg_ParseTuple(tuple, "idIKK", &rule, &s->value, &s->nbest, &seed, &index)) return false;
    s->rule = (ggtok_sampling_rule)rule;
    s->seed = seed;
    s->index = index;
    return true;
}

static void choice_free(PyObject *choice) {
    PyObject *self = PyCapsule_GetContext(choice);
    ggtok_special_choice_free(PyCapsule_GetPointer(choice, CHOICE));
    Py_DECREF(self);
}

PyObject *ggtok_python_choose(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    ggtok_error err;
    PyObject *tuple, *capsule = NULL;
    int32_t *ids = NULL;
    ggtok_special_choice *choice = NULL;
    size_t n;
    if (ggtok_python_ids_of(args[0], &tuple, &ids, &n)) {
        if (ggtok_special_choice_new(e->tok, ids, n, &choice, &err)) {
            ggtok_python_fail(e, &err, 0, false);
        } else if (!(capsule = PyCapsule_New(choice, CHOICE, NULL))) {
            ggtok_special_choice_free(choice);
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
