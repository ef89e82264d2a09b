/* Batches: a tuple or a column of texts -> lists, arrays or a column of ids. */
#include "python/arrow.h"
#include "python/list.h"
#include "python/signals.h"
#include "python/state.h"

#define BATCH "ggtok.batch"

static PyObject *lists_of(entry *e, const int32_t *ids, const int64_t *offsets, Py_ssize_t n) {
    PyObject *lists = ggtok_py_list_begin(n);
    for (Py_ssize_t i = 0; lists && i < n; i++) {
        PyObject *list = entry_list_of(e, ids + offsets[i], (size_t)(offsets[i + 1] - offsets[i]));
        if (list) {
            PyList_SetItem(lists, i, list);
        } else {
            Py_CLEAR(lists);
        }
    }
    return ggtok_py_list_end(lists);
}

/* The texts of a tuple, which keeps them alive. NULL with an exception set: TypeError for a text that
 * is neither str nor bytes. */
static ggtok_bytes *texts_of(PyObject *tuple, size_t n) {
    ggtok_bytes *texts = ggtok_mem_alloc(mem_mul(n, sizeof *texts));
    if (!texts) {
        PyErr_NoMemory();
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        Py_ssize_t size;
        texts[i].data = entry_text_of(PyTuple_GetItem(tuple, (Py_ssize_t)i), &size);
        if (!texts[i].data) {
            ggtok_mem_free(texts);
            return NULL;
        }
        texts[i].n = (size_t)size;
    }
    return texts;
}

static void batch_free(PyObject *capsule) {
    ggtok_batch_free(PyCapsule_GetPointer(capsule, BATCH));
}

/* A batch's result: lists, or what native/arrays.py makes arrays of; arrays take over the batch. */
static PyObject *result_of(entry *e, ggtok_batch **batch, size_t n, bool as_lists, bool spans) {
    const int64_t *offsets = ggtok_batch_offsets(*batch);
    const void *data = spans ? (const void *)ggtok_batch_spans(*batch) : ggtok_batch_ids(*batch);
    PyObject *lists =
        as_lists ? lists_of(e, ggtok_batch_ids(*batch), offsets, (Py_ssize_t)n) : NULL;
    if (as_lists && (!lists || !spans)) return lists;
    PyObject *owner = PyCapsule_New(*batch, BATCH, batch_free), *arrays = NULL;
    if (owner) {
        Py_ssize_t n_ids = (Py_ssize_t)ggtok_batch_n_ids(*batch);
        *batch = NULL;
        arrays = Py_BuildValue("(NKnKn)", owner, (unsigned long long)(uintptr_t)data, n_ids,
                               (unsigned long long)(uintptr_t)offsets, (Py_ssize_t)n + 1);
    }
    if (!lists || !arrays) {
        Py_XDECREF(lists);
        return arrays;
    }
    return Py_BuildValue("(NN)", lists, arrays);
}

/* Converts spans from bytes to another unit, in the batch's own memory. */
static void convert_spans(const ggtok_batch *batch, const ggtok_bytes *texts, size_t n,
                          ggtok_unit unit) {
    const int64_t *offsets = ggtok_batch_offsets(batch);
    ggtok_span *spans = (ggtok_span *)ggtok_batch_spans(batch);
    for (size_t i = 0; i < n; i++) {
        size_t count = (size_t)(offsets[i + 1] - offsets[i]);
        if (count) ggtok_convert_spans(texts[i].data, texts[i].n, spans + offsets[i], count, unit);
    }
}

/* Makes a column of the batch, which it takes over. */
static PyObject *arrow_of(ggtok_batch **batch, const ggtok_bytes *texts, size_t n) {
    arrow_ids *ids = ggtok_arrow_ids_new(batch, texts, n);
    return ids ? ggtok_py_arrow_ids(ids) : PyErr_NoMemory();
}

/* (tuple of texts, or a capsule from arrow.c; add_special; parse_special; continuation; threads;
 * lists; is this the main thread; spans: None or their unit) -> if `lists` is True, lists, with spans
 * (lists, the arguments of arrays.py's `spans`); if False, the arguments of its `arrays`; if None, a
 * capsule of ids for arrow.c. */
PyObject *entry_encode_batch(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    ggtok_error err;
    ggtok_batch *batch = NULL;
    ggtok_batch_options options = {.threads = (unsigned)PyLong_AsUnsignedLong(args[4])};
    PyObject *result = NULL;
    if (PyErr_Occurred() || !entry_encode_flags(args + 1, &options.flags, &options.choice))
        return NULL;
    const arrow_texts *arrow = PyTuple_Check(args[0]) ? NULL : ggtok_py_arrow_texts(args[0]);
    if (PyErr_Occurred()) return NULL;
    size_t n = arrow ? arrow->n : (size_t)PyTuple_Size(args[0]);
    ggtok_bytes *texts = arrow ? arrow->data : texts_of(args[0], n);
    if (PyErr_Occurred()) return NULL;
    size_t failed;
    python_call call;
    if (arrow) options.flags |= GGTOK_COPY_TEXTS;
    ggtok_unit unit = args[7] == Py_None ? GGTOK_UNIT_BYTE : (ggtok_unit)PyLong_AsLong(args[7]);
    if (args[7] != Py_None) options.flags |= GGTOK_SPANS;
    options.keep_going = args[6] == Py_True ? ggtok_python_keep_going : NULL;
    options.user = &call;
    ggtok_python_leave(&call);
    ggtok_status s = ggtok_encode_batch_with(e->pool, texts, n, &options, &batch, &failed, &err);
    if (!s && unit != GGTOK_UNIT_BYTE) convert_spans(batch, texts, n, unit);
    ggtok_python_return(&call);
    if (s) { /* a text may fail after a signal handler has raised */
        if (!PyErr_Occurred()) entry_fail(e, &err, failed, failed < n);
    } else if (args[5] == Py_None) {
        result = arrow_of(&batch, texts, n);
    } else {
        result = result_of(e, &batch, n, args[5] == Py_True, args[7] != Py_None);
    }
    if (!arrow) ggtok_mem_free(texts);
    ggtok_batch_free(batch);
    return result;
}
