/*
 * Python functions that compile and render templates, in the limited API.
 *
 * All values are read first, with the GIL (values.c). Rendering doesn't use Python, so it releases
 * the GIL.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/bind.h"
#include "python/jinja.h"
#include "python/list.h"
#include "python/values.h"

static PyObject *error_class;

/* Names in a message may have been cut within a character. */
static PyObject *text_of(const char *s) {
    return PyUnicode_DecodeUTF8(s, (Py_ssize_t)strlen(s), "replace");
}

PyObject *ggtok_python_template_error(const jinja_error *err) {
    PyObject *line = err->line ? PyLong_FromLong((long)err->line) : (Py_INCREF(Py_None), Py_None);
    return PyObject_CallFunction(error_class, "iNNNiN", (int)err->status, text_of(err->message),
                                 line, text_of(err->source), (int)err->fault, text_of(err->key));
}

static PyObject *fail(const jinja_error *err) {
    PyObject *error = ggtok_python_template_error(err);
    if (error) PyErr_SetObject(error_class, error);
    Py_XDECREF(error);
    return NULL;
}

/* ---- templates ---- */

static void free_template(PyObject *capsule) {
    ggtok_jinja_template_free(PyCapsule_GetPointer(capsule, GGTOK_PYTHON_TEMPLATE));
}

static PyObject *compile(PyObject *self, PyObject *args) {
    const char *source;
    Py_ssize_t n;
    int dialect;
    jinja_template *t;
    jinja_error err;
    (void)self;
    if (!PyArg_ParseTuple(args, "s#i", &source, &n, &dialect)) return NULL;
    ggtok_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = ggtok_jinja_compile(source, (size_t)n, (jinja_dialect)dialect, &t, &err);
    Py_END_ALLOW_THREADS;
    if (status != GGTOK_OK) return fail(&err);
    PyObject *capsule = PyCapsule_New(t, GGTOK_PYTHON_TEMPLATE, free_template);
    if (!capsule) ggtok_jinja_template_free(t);
    return capsule;
}

static PyObject *variables(PyObject *self, PyObject *capsule) {
    jinja_template *t = PyCapsule_GetPointer(capsule, GGTOK_PYTHON_TEMPLATE);
    const jinja_text *name;
    (void)self;
    if (!t) return NULL;
    PyObject *names = PyList_New(0);
    for (size_t i = 0; names && (name = ggtok_jinja_template_variable(t, i)); i++) {
        PyObject *text = PyUnicode_DecodeUTF8((const char *)name->data, name->n, "replace");
        if (!text || PyList_Append(names, text)) Py_CLEAR(names);
        Py_XDECREF(text);
    }
    return names;
}

/* ---- renderings ---- */

PyObject *ggtok_python_ranges(const ggtok_range *ranges, size_t n) {
    PyObject *list = ggtok_python_list_begin((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *range =
            Py_BuildValue("(nn)", (Py_ssize_t)ranges[i].begin, (Py_ssize_t)ranges[i].end);
        if (!range)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, range);
    }
    return ggtok_python_list_end_as_tuple(list);
}

bool ggtok_python_time(PyObject *now, jinja_time *t) {
    PyObject *offset;
    const char *zone;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(now, "iiiiiiiOs#i", &t->year, &t->month, &t->day, &t->hour, &t->minute,
                          &t->second, &t->microsecond, &offset, &zone, &n, &t->is_dst)) {
        return false;
    }
    t->has_zone = offset != Py_None;
    if (t->has_zone) t->utc_offset = (int)PyLong_AsLong(offset);
    if (n > (Py_ssize_t)sizeof t->zone - 1) n = sizeof t->zone - 1;
    memcpy(t->zone, zone, (size_t)n);
    return !PyErr_Occurred();
}

/* Reads the values and renders. Returns the status, or -1 with a Python exception set. */
static int render_template(const jinja_template *t, PyObject *values, PyObject *now, bool probe,
                           jinja_env **env, jinja_result *out, jinja_error *err) {
    jinja_options options = {.probe = probe};
    if (!ggtok_python_time(now, &options.now)) return -1;
    ggtok_status status = ggtok_jinja_env_new(&options, env, err);
    if (status != GGTOK_OK) return status;
    reader r = ggtok_python_reader(*env, ggtok_jinja_template_dialect(t));
    r.variables = values;
    status = ggtok_python_read(&r, ggtok_python_read_variables, err);
    if (r.raised) return -1;
    if (status != GGTOK_OK) return status;
    Py_BEGIN_ALLOW_THREADS;
    status = ggtok_jinja_render(*env, t, out, err);
    Py_END_ALLOW_THREADS;
    return status;
}

/* (template, variables, time) -> (text, ranges from the template, generated ranges) */
static PyObject *render(PyObject *self, PyObject *args) {
    PyObject *capsule, *values, *now, *result = NULL;
    jinja_env *env = NULL;
    jinja_error err;
    jinja_result out;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!O!", &capsule, &PyDict_Type, &values, &PyTuple_Type, &now)) {
        return NULL;
    }
    const jinja_template *t = PyCapsule_GetPointer(capsule, GGTOK_PYTHON_TEMPLATE);
    if (!t) return NULL;
    int status = render_template(t, values, now, false, &env, &out, &err);
    if (status > 0) {
        fail(&err);
    } else if (status == GGTOK_OK) {
        PyObject *text = PyUnicode_DecodeUTF8(out.text, (Py_ssize_t)out.n, NULL);
        if (!text) { /* the template cut a character in two: return bytes */
            PyErr_Clear();
            text = PyBytes_FromStringAndSize(out.text, (Py_ssize_t)out.n);
        }
        PyObject *from_template = ggtok_python_ranges(out.from_template, out.n_from_template),
                 *generated = ggtok_python_ranges(out.generated, out.n_generated);
        if (text && from_template && generated)
            result = PyTuple_Pack(3, text, from_template, generated);
        Py_XDECREF(text);
        Py_XDECREF(from_template);
        Py_XDECREF(generated);
    }
    ggtok_jinja_env_free(env);
    return result;
}

/* Returns the value at a path of names and indices, or JINJA_ABSENT. */
static jinja_value walk(jinja_env *env, PyObject *path, bool after) {
    jinja_value v = jinja_absent();
    for (Py_ssize_t i = 0; i < PyTuple_Size(path); i++) {
        PyObject *step = PyTuple_GetItem(path, i);
        Py_ssize_t n;
        const char *name = PyUnicode_Check(step) ? PyUnicode_AsUTF8AndSize(step, &n) : NULL;
        if (i == 0) {
            if (name) v = ggtok_jinja_env_get(env, name, (size_t)n, after);
        } else if (name) {
            jinja_value *found = NULL;
            for (uint32_t k = 0; v.type == JINJA_DICT && k < v.as.dict->n; k++) {
                jinja_value key = v.as.dict->entries[k].key;
                if (key.type != JINJA_STRING || key.as.text->n != (size_t)n) continue;
                if (!memcmp(key.as.text->data, name, (size_t)n)) {
                    found = &v.as.dict->entries[k].value;
                }
            }
            v = found ? *found : jinja_absent();
        } else {
            long at = PyLong_AsLong(step);
            bool there = v.type == JINJA_LIST && at >= 0 && at < (long)v.as.list->n;
            v = there ? v.as.list->data[at] : jinja_absent();
        }
    }
    return v;
}

/* (template, variables, time, paths) -> (text or None, notes about the value at each path) */
static PyObject *probe(PyObject *self, PyObject *args) {
    PyObject *capsule, *values, *now, *paths, *result = NULL;
    jinja_env *env = NULL;
    jinja_error err;
    jinja_result out;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!O!O!", &capsule, &PyDict_Type, &values, &PyTuple_Type, &now,
                          &PyList_Type, &paths)) {
        return NULL;
    }
    const jinja_template *t = PyCapsule_GetPointer(capsule, GGTOK_PYTHON_TEMPLATE);
    if (!t) return NULL;
    int status = render_template(t, values, now, true, &env, &out, &err);
    PyObject *notes = status < 0 ? NULL : PyList_New(0);
    for (Py_ssize_t i = 0; notes && i < PyList_Size(paths); i++) {
        PyObject *path = PyList_GetItem(paths, i);
        bool one = PyTuple_Check(path) && PyTuple_Size(path) == 1;
        if (!PyTuple_Check(path)) PyErr_SetString(PyExc_TypeError, "a path must be a tuple");
        jinja_value v = PyErr_Occurred() ? jinja_absent() : walk(env, path, one);
        PyObject *note =
            PyErr_Occurred() ? NULL : PyLong_FromLong((long)ggtok_jinja_env_notes(env, v));
        if (!note || PyList_Append(notes, note)) Py_CLEAR(notes);
        Py_XDECREF(note);
    }
    if (notes) {
        PyObject *text = status == GGTOK_OK
                             ? PyUnicode_DecodeUTF8(out.text, (Py_ssize_t)out.n, "replace")
                             : (Py_INCREF(Py_None), Py_None);
        if (text) result = PyTuple_Pack(2, text, notes);
        Py_XDECREF(text);
        Py_DECREF(notes);
    }
    ggtok_jinja_env_free(env);
    return result;
}

static PyMethodDef functions[] = {
    {"compile", compile, METH_VARARGS, NULL},
    {"variables", variables, METH_O, NULL},
    {"render", render, METH_VARARGS, NULL},
    {"probe", probe, METH_VARARGS, NULL},
};

bool ggtok_jinja_bind(uintptr_t list, uintptr_t error) {
    return ggtok_python_bind(functions, sizeof functions / sizeof *functions, list, error,
                             &error_class);
}
