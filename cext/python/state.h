/* What the files of python/ share that bind to a tokenizer. */
#ifndef GGTOK_PYTHON_STATE_H
#define GGTOK_PYTHON_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#ifdef Py_GIL_DISABLED
#define KEEP 0
#else
#define KEEP 1
#endif

#include "base/mem.h"
#include "ggtok.h"

enum { RELEASE_FROM = 2048 }; /* bytes: shorter texts aren't worth letting other threads run */

#define CAPSULE "ggtok.entry"
#define SELF entry *e = PyCapsule_GetPointer(self, CAPSULE)

typedef struct entry { /* what the functions are bound to */
    ggtok_tokenizer *tok;
    ggtok_pool *pool;
    PyObject **ints; /* by id: the token's int object, or NULL as long as no list held it */
    uint32_t n_ints;
    bytebuf spare;     /* memory for the next large text's UTF-8 */
    uintptr_t last;    /* where the last such str lies, or lay: it may be gone */
    Py_ssize_t last_n; /* its characters */
    PyObject *error;
} entry;

/* Raises a ggtok_error; of a batch, `text` says which. NULL. */
PyObject *entry_fail(const entry *e, const ggtok_error *err, size_t text, bool in_batch);

/* The flags of remove_special, unparse_special and clean_spaces, which may be None. False: an
 * exception is set. */
bool entry_decode_flags(PyObject *const *args, unsigned *flags);

/* The flags of add_special, parse_special (a bool or a choice) and continuation. False: an
 * exception is set. */
bool entry_encode_flags(PyObject *const *args, unsigned *flags,
                        const ggtok_special_choice **choice);

/* What spans count, as in _offsets.py. */
enum { UNIT_BYTE, UNIT_CHAR, UNIT_UTF16 };

/* Spans in bytes of the UTF-8 text[0..n), which is well-formed, to another unit. One that holds part
 * of a character is given all of it. */
void entry_convert_spans(const char *utf8, size_t n, ggtok_span *spans, size_t n_spans, int unit);

/* The UTF-8 of a str or the bytes of a bytes object, which keep it. NULL with TypeError set: it is
 * neither. */
const char *entry_text_of(PyObject *text, Py_ssize_t *n);

/* The ids as a list of ints. */
PyObject *entry_list_of(entry *e, const int32_t *ids, size_t n);

/* Converts an iterable of ints. False: an exception is set. */
bool entry_ids_of(PyObject *object, PyObject **tuple, int32_t **ids, size_t *n);

/* Methods: ids to bytes, and the same from where int32s lie. */
PyObject *entry_decode(PyObject *self, PyObject *const *args, Py_ssize_t n_args);
PyObject *entry_decode_at(PyObject *self, PyObject *const *args, Py_ssize_t n_args);

/* See batch.c. */
PyObject *entry_encode_batch(PyObject *self, PyObject *const *args, Py_ssize_t n_args);

/* (ids) -> what encode takes as parse_special: these of the special tokens, and no others */
PyObject *entry_choose(PyObject *self, PyObject *const *args, Py_ssize_t n_args);

#endif
