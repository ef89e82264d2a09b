/* Plain Python objects as values of templates. */
#ifndef GGTOK_PYTHON_VALUES_H
#define GGTOK_PYTHON_VALUES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "jinja/core/jinja.h"

#define GGTOK_PY_TEMPLATE "ggtok.template" /* a capsule's name */

/* Reading objects jumps out of C functions where it fails, so it owns none but `held`. */
typedef struct reader {
    jinja_env *env;
    jinja_arena *mem;
    jinja_dialect dialect;
    PyObject *variables; /* a dict */
    PyObject *held;
    const void *more;  /* of who reads */
    bool strict;       /* accept exact types only, as in JSON requests; others need Python */
    bool raised;       /* a Python exception says what is wrong */
    bool needs_python; /* an object has another type */
    int level;         /* of nested lists and dicts, if strict */
} reader;

reader ggtok_py_reader(jinja_env *env, jinja_dialect dialect);
/* Calls body(arena, reader), which may call the functions below. On failure they jump out of it. */
ggtok_status ggtok_py_read(reader *r, void (*body)(jinja_arena *mem, void *user), jinja_error *err);

/* A ggtok_py_read body: reader.variables into the env. */
void ggtok_py_read_variables(jinja_arena *mem, void *user);
jinja_value ggtok_py_read_object(reader *r, PyObject *object);
_Noreturn void ggtok_py_needs_python(reader *r);

/* What now is, from a tuple that _jinja.py makes. False: an exception is set. */
bool ggtok_py_time(PyObject *now, jinja_time *t);
/* An instance of the exception class that jinja.c was given. */
PyObject *ggtok_py_template_error(const jinja_error *err);

#endif
