/*
 * Reads plain Python objects in place, which takes a few tens of nanoseconds per object; going
 * through JSON would take several times as long. Runs under the GIL. Reading objects of exact types
 * runs no Python code, so they can't change during the read.
 */
#include "python/values.h"

enum { MAX_LEVEL = 90 }; /* as in ggtok/chat/values.py, which reports deeper objects */

static _Noreturn void raised(reader *r) {
    r->raised = true;
    ggtok_jinja_fail(r->mem, "a Python exception");
}

_Noreturn void ggtok_py_needs_python(reader *r) {
    PyErr_Clear();
    r->needs_python = true;
    ggtok_jinja_fail(r->mem, "an object that Python must read");
}

static void drop(reader *r) {
    Py_XDECREF(r->held);
    r->held = NULL;
}

/* Adds to a text the ranges that the template wrote. ggtok's subclasses of str have them as an
 * attribute. */
static jinja_text *with_ranges(reader *r, PyObject *object, jinja_text *text) {
    PyObject *ranges = r->held = PyObject_GetAttrString(object, "ranges");
    if (!ranges || !PyTuple_Check(ranges)) {
        PyErr_Clear();
        drop(r);
        return text;
    }
    jinja_builder b = ggtok_jinja_builder_new(r->mem, 0);
    b.merge = true;
    size_t at = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(ranges); i++) {
        PyObject *range = PyTuple_GetItem(ranges, i);
        bool pair = PyTuple_Check(range) && PyTuple_Size(range) == 2;
        Py_ssize_t begin = pair ? PyLong_AsSsize_t(PyTuple_GetItem(range, 0)) : -1;
        Py_ssize_t end = pair ? PyLong_AsSsize_t(PyTuple_GetItem(range, 1)) : -1;
        if (begin < (Py_ssize_t)at || end < begin || (size_t)end > text->n) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a text's ranges are wrong");
            raised(r);
        }
        ggtok_jinja_builder_cut(&b, text, at, (size_t)begin);
        ggtok_jinja_builder_add(&b, text->data + begin, (size_t)(end - begin), JINJA_FROM_TEMPLATE);
        at = (size_t)end;
    }
    ggtok_jinja_builder_cut(&b, text, at, text->n);
    drop(r);
    return ggtok_jinja_text_fuse(r->mem, ggtok_jinja_builder_end(&b));
}

static jinja_text *read_text(reader *r, PyObject *object) {
    enum { SHORT = 1 << 12 }; /* characters; for longer texts, CPython would keep the UTF-8 */
    Py_ssize_t n;
    const char *data;
    if (PyUnicode_GetLength(object) <= SHORT) {
        data = PyUnicode_AsUTF8AndSize(object, &n);
    } else {
        r->held = PyUnicode_AsUTF8String(object);
        char *bytes = NULL;
        data = r->held && !PyBytes_AsStringAndSize(r->held, &bytes, &n) ? bytes : NULL;
    }
    if (!data) {
        if (r->strict) ggtok_py_needs_python(r);
        raised(r);
    }
    ggtok_jinja_env_grow(r->env, (size_t)n);
    jinja_text *text = ggtok_jinja_text_copy(r->mem, data, (size_t)n, 0);
    drop(r);
    return PyUnicode_CheckExact(object) ? text : with_ranges(r, object, text);
}

/* Reads an integer of more than 64 bits from its digits. */
static jinja_value read_big(reader *r, PyObject *object) {
    Py_ssize_t n;
    r->held = PyObject_Str(object);
    const char *digits = r->held ? PyUnicode_AsUTF8AndSize(r->held, &n) : NULL;
    if (!digits) raised(r);
    jinja_value v = ggtok_jinja_read_json(r->mem, digits, (size_t)n, 0, r->dialect);
    drop(r);
    return v;
}

static jinja_value read_int(reader *r, PyObject *object) {
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow) return read_big(r, object);
    if (i == -1 && PyErr_Occurred()) raised(r);
    return jinja_int(i);
}

static jinja_value read_dict(reader *r, PyObject *object) {
    Py_ssize_t at = 0;
    PyObject *key, *value;
    jinja_dict *dict = ggtok_jinja_dict_new(r->mem, (size_t)PyDict_Size(object));
    while (PyDict_Next(object, &at, &key, &value)) {
        if (r->strict && !PyUnicode_CheckExact(key)) ggtok_py_needs_python(r);
        if (!PyUnicode_Check(key) && r->dialect == JINJA_LLAMA_CPP) {
            PyErr_Format(PyExc_TypeError, "a key is not a str");
            raised(r);
        }
        jinja_value k = ggtok_py_read_object(r, key);
        if (!ggtok_jinja_hashable(r->mem, k)) raised(r);
        ggtok_jinja_dict_set(r->mem, dict, k, ggtok_py_read_object(r, value));
    }
    return jinja_of_dict(dict);
}

static jinja_value read_items(reader *r, PyObject *object) {
    bool tuple = PyTuple_Check(object);
    jinja_list *list =
        ggtok_jinja_list_new(r->mem, (size_t)(tuple ? PyTuple_Size(object) : PyList_Size(object)));
    for (Py_ssize_t i = 0; i < (tuple ? PyTuple_Size(object) : PyList_Size(object)); i++) {
        PyObject *item = tuple ? PyTuple_GetItem(object, i) : PyList_GetItem(object, i);
        ggtok_jinja_list_push(r->mem, list, ggtok_py_read_object(r, item));
    }
    bool keep = tuple && r->dialect == JINJA_TRANSFORMERS;
    return keep ? jinja_of_tuple(list) : jinja_of_list(list);
}

/* Whether a request may contain an object of this type. Numbers must fit in 64 bits and be
 * finite. */
static bool is_readable(const reader *r, PyObject *object) {
    if (PyUnicode_CheckExact(object) || object == Py_None || PyBool_Check(object)) return true;
    if (PyLong_CheckExact(object)) {
        int overflow;
        (void)PyLong_AsLongLongAndOverflow(object, &overflow);
        return !overflow;
    }
    if (PyFloat_CheckExact(object)) {
        double f = PyFloat_AsDouble(object);
        return f - f == 0 || r->dialect == JINJA_TRANSFORMERS;
    }
    bool nests =
        PyDict_CheckExact(object) || PyList_CheckExact(object) || PyTuple_CheckExact(object);
    return nests && r->level < MAX_LEVEL;
}

jinja_value ggtok_py_read_object(reader *r, PyObject *object) {
    jinja_value v;
    jinja_charge(r->mem, 1);
    jinja_enter(r->mem);
    if (r->strict && !is_readable(r, object)) ggtok_py_needs_python(r);
    r->level++;
    ggtok_jinja_env_grow(r->env, 8);
    if (PyUnicode_Check(object))
        v = jinja_of_text(read_text(r, object));
    else if (PyDict_Check(object))
        v = read_dict(r, object);
    else if (PyList_Check(object) || PyTuple_Check(object))
        v = read_items(r, object);
    else if (object == Py_None)
        v = jinja_none();
    else if (PyBool_Check(object))
        v = jinja_bool(object == Py_True);
    else if (PyLong_Check(object))
        v = read_int(r, object);
    else if (PyFloat_Check(object))
        v = jinja_float(PyFloat_AsDouble(object));
    else {
        PyErr_Format(PyExc_TypeError, "templates take plain data, not %R",
                     (PyObject *)Py_TYPE(object));
        raised(r);
    }
    if (v.type == JINJA_FLOAT && v.as.f - v.as.f != 0 && r->dialect == JINJA_LLAMA_CPP) {
        PyErr_SetString(PyExc_ValueError, "JSON has neither NaN nor infinities");
        raised(r);
    }
    r->level--;
    jinja_leave(r->mem);
    return v;
}

void ggtok_py_read_variables(jinja_arena *mem, void *user) {
    reader *r = user;
    Py_ssize_t at = 0, n;
    PyObject *key, *value;
    (void)mem;
    while (PyDict_Next(r->variables, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &n) : NULL;
        if (!name) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "a variable's name is not a str");
            raised(r);
        }
        ggtok_jinja_env_set(r->env, name, (size_t)n, ggtok_py_read_object(r, value));
    }
}

reader ggtok_py_reader(jinja_env *env, jinja_dialect dialect) {
    return (reader){.env = env, .mem = ggtok_jinja_env_arena(env), .dialect = dialect};
}

ggtok_status ggtok_py_read(reader *r, void (*body)(jinja_arena *mem, void *user),
                           jinja_error *err) {
    ggtok_status status = ggtok_jinja_protect(r->mem, body, r, err);
    drop(r);
    return status;
}
