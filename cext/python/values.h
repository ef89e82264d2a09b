/* Converts plain Python objects to the values of templates. */
#ifndef GGTOK_PYTHON_VALUES_H
#define GGTOK_PYTHON_VALUES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "jinja/core/jinja.h"

#define GGTOK_PY_TEMPLATE "ggtok.template" /* name of a template's capsule */

/* The state of a read. A failure jumps out of the C functions, so these must own no object except
 * `held`. */
typedef struct reader {
    jinja_env *env;
    jinja_arena *mem;
    jinja_dialect dialect;
    PyObject *variables; /* a dict of the template's variables */
    PyObject *held;
    const void *more;  /* the caller's data */
    bool strict;       /* accept only exact types, as in JSON requests; others need Python */
    bool raised;       /* a Python exception is set */
    bool needs_python; /* an object has a type that is left to Python */
    int level;         /* with `strict`: nesting depth of lists and dicts */
} reader;

reader ggtok_py_reader(jinja_env *env, jinja_dialect dialect);
/* Calls body(arena, reader). It may call the functions below, which don't return if they fail. */
ggtok_status ggtok_py_read(reader *r, void (*body)(jinja_arena *mem, void *user), jinja_error *err);

/* A body for ggtok_py_read: reads reader.variables into the environment. */
void ggtok_py_read_variables(jinja_arena *mem, void *user);
jinja_value ggtok_py_read_object(reader *r, PyObject *object);
_Noreturn void ggtok_py_needs_python(reader *r);

/* Sets *t from a tuple, made by Python's template module, with the current time. Returns false with
 * an exception set. */
bool ggtok_py_time(PyObject *now, jinja_time *t);
/* Returns a tuple of the ranges as tuples (begin, end). */
PyObject *ggtok_py_ranges(const ggtok_range *ranges, size_t n);
/* Returns an instance of the exception class that was passed to jinja.c. */
PyObject *ggtok_py_template_error(const jinja_error *err);

#endif
