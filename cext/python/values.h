/* Converts Python objects to the values of templates and requests. */
#ifndef GGTOK_PYTHON_VALUES_H
#define GGTOK_PYTHON_VALUES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/internal.h"

#define GGTOK_PYTHON_TEMPLATE "ggtok.template" /* name of a template's capsule */

enum { KEY_BITS = 4, ROLE_BITS = 3 }; /* the caches have 2^bits slots */
/* What is known about an object that was a key of a dict. */
typedef struct dict_key {
    PyObject *object;        /* held if this is in the cache */
    const chat_shape *shape; /* of the dict */
    const chat_shape *row;   /* the key's row in `shape` */
    const char *name;        /* in UTF-8; NULL: not a string */
    jinja_value value;       /* not set if the key has no row in a shape */
} dict_key;

/* The state of a read. A failure jumps out of the C functions, so the objects that must live until
 * then are in `held`. */
typedef struct reader {
    chat_call call; /* its arena, and the language of messages */
    jinja_env *env;
    jinja_dialect dialect;
    bool is_request;          /* read what JSON could contain, and refuse all else */
    const jinja_value *names; /* of a request: texts of the keys in shapes */
    PyObject *convert; /* of a request: a function that converts an object of another type to one of
                          a plain type, or returns NotImplemented */
    PyObject *variables; /* of a template: a dict */
    PyObject **held;
    size_t n_held, cap_held;
    size_t n_values, n_bytes; /* read so far */
    dict_key keys[1 << KEY_BITS];
    struct {
        PyObject *object; /* held */
        const jinja_text *text;
    } roles[1 << ROLE_BITS];
    const void *more; /* the caller's data */
    bool raised;      /* a Python exception is set */
} reader;

reader ggtok_python_reader(jinja_env *env, jinja_dialect dialect);
/* Calls body(arena, reader). It may call the functions below, which don't return if they fail. */
ggtok_status ggtok_python_read(reader *r, void (*body)(jinja_arena *mem, void *user),
                               jinja_error *err);

/* A body for ggtok_python_read: reads reader.variables into the environment. */
void ggtok_python_read_variables(jinja_arena *mem, void *user);
/* Reads an object. `shape` and `items`: the part to read of a dict, and of the dicts in a list (NULL:
 * all); `at`: its path in a request;
 * `level`: the number of dicts and lists around it, including the request. */
jinja_value ggtok_python_read_object(reader *r, PyObject *object, const chat_shape *shape,
                                     const chat_shape *items, const chat_path *at, int level);
/* Keeps an object alive until the read ends. */
void ggtok_python_hold(reader *r, PyObject *object);
/* Jumps out of the read; a Python exception is set. */
_Noreturn void ggtok_python_raised(reader *r);

/* Returns a new object for a value, or NULL with an exception set. */
PyObject *ggtok_python_object_of(jinja_value v);

/* Sets *t from a tuple, made by Python's template module, with the current time. Returns false with
 * an exception set. */
bool ggtok_python_time(PyObject *now, jinja_time *t);
/* Returns a tuple of the ranges as tuples (begin, end). */
PyObject *ggtok_python_ranges(const ggtok_range *ranges, size_t n);
/* Returns an instance of the exception class that was passed to jinja.c. */
PyObject *ggtok_python_template_error(const jinja_error *err);

#endif
