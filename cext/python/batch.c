/* Batches: a tuple of texts, or a column of them, to lists, arrays or a column of ids. */
#include "python/arrow.h"
#include "python/signals.h"
#include "python/state.h"

static PyObject *lists_of(entry *e, const int32_t *ids, const int64_t *offsets, Py_ssize_t n) {
    PyObject *lists = PyList_New(n);
    for (Py_ssize_t i = 0; lists && i < n; i++) {
        PyObject *list = entry_list_of(e, ids + offsets[i], (size_t)(offsets[i + 1] - offsets[i]));
        if (list) {
            PyList_SetItem(lists, i, list);
        } else {
            Py_CLEAR(lists);
        }
    }
    return lists;
}

/* The spans of a batch into a new bytearray. */
static PyObject *batch_spans(const ggtok_batch *batch, const ggtok_bytes *texts, size_t n,
                             const int64_t *offsets, unsigned threads, bool chars) {
    PyObject *array = entry_bytearray_of(NULL, ggtok_batch_n_ids(batch) * sizeof(ggtok_span));
    if (!array) return NULL;
    ggtok_span *spans = (void *)PyByteArray_AsString(array);
    PyThreadState *thread = PyEval_SaveThread();
    ggtok_batch_copy_spans(batch, spans, threads);
    for (size_t i = 0; chars && i < n; i++) {
        size_t count = (size_t)(offsets[i + 1] - offsets[i]);
        entry_spans_in_chars(texts[i].data, texts[i].n, spans + offsets[i], count);
    }
    PyEval_RestoreThread(thread);
    return array;
}

/* The texts of a tuple, which keeps them. NULL with an exception set: TypeError for a text that
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

/* A batch's result: arrays or, from them, lists; with `spans` (not None; True: in code points) of
 * `texts`, lists, spans and offsets. */
static PyObject *arrays_of(entry *e, const ggtok_batch *batch, const ggtok_bytes *texts, size_t n,
                           unsigned threads, bool as_lists, PyObject *in_chars) {
    PyObject *result = NULL,
             *ids = entry_bytearray_of(NULL, ggtok_batch_n_ids(batch) * sizeof(int32_t));
    PyObject *offsets = ids ? entry_bytearray_of(NULL, (n + 1) * sizeof(int64_t)) : NULL;
    if (offsets) {
        int32_t *to = (int32_t *)(void *)PyByteArray_AsString(ids);
        int64_t *at = (int64_t *)(void *)PyByteArray_AsString(offsets);
        PyThreadState *state = PyEval_SaveThread();
        ggtok_batch_copy(batch, to, at, threads);
        PyEval_RestoreThread(state);
        if (in_chars != Py_None) {
            PyObject *spans = batch_spans(batch, texts, n, at, threads, in_chars == Py_True);
            PyObject *lists = spans ? lists_of(e, to, at, (Py_ssize_t)n) : NULL;
            if (lists) result = Py_BuildValue("(NOO)", lists, spans, offsets);
            Py_XDECREF(spans);
        } else {
            result = as_lists ? lists_of(e, to, at, (Py_ssize_t)n) : PyTuple_Pack(2, ids, offsets);
        }
    }
    Py_XDECREF(ids);
    Py_XDECREF(offsets);
    return result;
}

static PyObject *arrow_of(const ggtok_batch *batch, const ggtok_bytes *texts, size_t n,
                          unsigned threads) {
    PyThreadState *state = PyEval_SaveThread();
    arrow_ids *ids = ggtok_arrow_ids_new(batch, texts, n, threads);
    PyEval_RestoreThread(state);
    return ids ? ggtok_py_arrow_ids(ids) : PyErr_NoMemory();
}

/* (tuple of texts or arrow.c's, add_special, parse_special, continuation, threads, lists, is this
 * the main thread, spans: None, or in code points?) -> by `lists`: True: lists, with spans (lists,
 * bytearrays of ggtok_span and int64 offsets); False: a bytearray of int32 and one of int64 offsets;
 * None: arrow.c's ids. */
PyObject *entry_encode_batch(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    unsigned threads = (unsigned)PyLong_AsUnsignedLong(args[4]);
    ggtok_error err;
    ggtok_batch *batch = NULL;
    ggtok_batch_options options = {.threads = threads};
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
    if (args[7] != Py_None) options.flags |= GGTOK_SPANS;
    options.go_on = args[6] == Py_True ? ggtok_python_go_on : NULL;
    options.user = &call;
    ggtok_python_leave(&call);
    ggtok_status s = ggtok_encode_batch_with(e->pool, texts, n, &options, &batch, &failed, &err);
    ggtok_python_return(&call);
    if (s) { /* a text may fail, too, after a signal handler has raised */
        if (!PyErr_Occurred()) entry_fail(e, &err, failed, failed < n);
    } else if (args[5] == Py_None) {
        result = arrow_of(batch, texts, n, threads);
    } else {
        result = arrays_of(e, batch, texts, n, threads, args[5] == Py_True, args[7]);
    }
    if (!arrow) ggtok_mem_free(texts);
    ggtok_batch_free(batch);
    return result;
}
