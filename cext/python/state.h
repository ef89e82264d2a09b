/* Definitions shared by the files in python/ that bind functions to a tokenizer. */
#ifndef GGTOK_PYTHON_STATE_H
#define GGTOK_PYTHON_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#ifdef Py_GIL_DISABLED
#define KEEP 0
#else
#define KEEP 1
#endif

#include "ggtok_sample.h"
#include "python/internal.h"

enum { RELEASE_FROM = 2048 }; /* bytes; releasing the GIL for shorter texts isn't worthwhile */

#define CAPSULE "ggtok.entry"
#define SELF entry *e = PyCapsule_GetPointer(self, CAPSULE)

typedef struct entry { /* the state to which functions are bound */
    ggtok_tokenizer *tok;
    ggtok_pool *pool;
    PyObject **ints; /* by id: the token's int object; NULL: not made yet */
    uint32_t n_ints;
    bytebuf spare;     /* memory for the UTF-8 of the next large text */
    uintptr_t last;    /* address of the last large str, which may have been freed */
    Py_ssize_t last_n; /* number of characters in that str */
    PyObject *error;
} entry;

/* Raises an exception for a ggtok_error; for a batch, with the index of the text. Returns NULL. */
PyObject *ggtok_python_fail(const entry *e, const ggtok_error *err, size_t text, bool in_batch);

/* Sets *flags from remove_special, unparse_special and clean_spaces (which may be None). Returns
 * false with an exception set. */
bool ggtok_python_decode_flags(PyObject *const *args, unsigned *flags);

/* Sets *flags from add_special, parse_special (a bool or a choice) and continuation. Returns false
 * with an exception set. */
bool ggtok_python_encode_flags(PyObject *const *args, unsigned *flags,
                               const ggtok_special_choice **choice);

/* Reads (rule, value, nbest, seed, index). Returns false with an exception set. */
bool ggtok_python_sampling_of(PyObject *tuple, ggtok_sampling *s);

/* Returns the UTF-8 of a str, or the bytes of a bytes object; the object keeps them alive. For any
 * other object, returns NULL with TypeError set. */
const char *ggtok_python_text_of(PyObject *text, Py_ssize_t *n);

/* Return a list of the ids as ints. The second one leaves the list untracked; call
 * ggtok_python_list_end. */
PyObject *ggtok_python_list_of(entry *e, const int32_t *ids, size_t n);
PyObject *ggtok_python_untracked_list_of(entry *e, const int32_t *ids, size_t n);

/* Converts an iterable of ints to *ids. Returns false with an exception set. */
bool ggtok_python_ids_of(PyObject *object, PyObject **tuple, int32_t **ids, size_t *n);

/* Methods that decode ids to bytes; the second takes the address of int32s. */
PyObject *ggtok_python_decode(PyObject *self, PyObject *const *args, Py_ssize_t n_args);
PyObject *ggtok_python_decode_at(PyObject *self, PyObject *const *args, Py_ssize_t n_args);

/* See batch.c. */
PyObject *ggtok_python_encode_batch(PyObject *self, PyObject *const *args, Py_ssize_t n_args);
PyObject *ggtok_python_encode_parallel(PyObject *self, PyObject *const *args, Py_ssize_t n_args);

/* (ids) -> a value for encode's parse_special that selects only these special tokens */
PyObject *ggtok_python_choose(PyObject *self, PyObject *const *args, Py_ssize_t n_args);

/* Return the tokenizer of a capsule, its pool, an untracked list of ids, and an exception that isn't
 * raised. */
const ggtok_tokenizer *ggtok_python_tokenizer(PyObject *self);
ggtok_pool *ggtok_python_pool(PyObject *self);
PyObject *ggtok_python_list(PyObject *self, const int32_t *ids, size_t n);
PyObject *ggtok_python_error(PyObject *self, const ggtok_error *err);

#endif
