/* Encodes batches: a tuple, list or column of texts -> lists, arrays or a column of ids. */
#include "python/arrow.h"
#include "python/list.h"
#include "python/signals.h"
#include "python/state.h"

#define BATCH "ggtok.batch"

/* The state passed as `user` to a batch's callbacks. */
typedef struct filling {
    python_call call; /* must come first: ggtok_python_keep_going gets its address */
    entry *e;
    PyObject *lists; /* one list per text; NULL for other results */
    ggtok_unit unit; /* the unit of spans */
} filling;

/* Makes the list for one text. Lists stay untracked until all are full: the garbage collector,
 * which runs after every few hundred new lists, would traverse them again and again. */
static bool fill(filling *f, size_t text, const int32_t *ids, size_t n) {
    PyObject *list = ggtok_python_untracked_list_of(f->e, ids, n);
    return list && !PyList_SetItem(f->lists, (Py_ssize_t)text, list);
}

/* A ggtok_receive_fn that makes lists while other threads encode. */
static bool receive(void *user, const ggtok_batch_part *parts, size_t n) {
    filling *f = user;
    ggtok_python_return(&f->call);
    bool ok = !PyErr_CheckSignals();
    for (const ggtok_batch_part *p = parts; ok && p < parts + n; p++) {
        const int32_t *ids = p->ids;
        for (size_t i = 0; ok && i < p->n; ids += p->n_ids[i++])
            ok = fill(f, p->first + i, ids, (size_t)p->n_ids[i]);
    }
    ggtok_python_leave(&f->call);
    return ok;
}

/* Makes all lists for a batch that kept its ids. */
static bool fill_all(filling *f, const ggtok_batch *batch, size_t n) {
    const int32_t *ids = ggtok_batch_ids(batch);
    const int64_t *offsets = ggtok_batch_offsets(batch);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = fill(f, i, ids + offsets[i], (size_t)(offsets[i + 1] - offsets[i]));
    return ok;
}

static PyObject *end_lists(PyObject *lists) {
    for (Py_ssize_t i = 0, n = PyList_Size(lists); i < n; i++)
        ggtok_python_list_end(PyList_GetItem(lists, i));
    return ggtok_python_list_end(lists);
}

/* A ggtok_convert_fn that converts spans to the unit in `user`, a `filling`. */
static void convert(void *user, ggtok_bytes text, ggtok_span *spans, size_t n) {
    const filling *f = user;
    ggtok_convert_spans(text.data, text.n, spans, n, f->unit);
}

/* Splits (bytes, separator, n, skips_empty): `n` texts, each followed by a separator of one byte. If
 * skips_empty is set, empty texts are skipped and not counted. */
static bool split_joined(PyObject *joined, ggtok_bytes *texts, size_t n) {
    Py_ssize_t size, one;
    char *data, *separator;
    PyObject *skips_empty = PyTuple_GetItem(joined, 3);
    if (!skips_empty || PyBytes_AsStringAndSize(PyTuple_GetItem(joined, 0), &data, &size) ||
        PyBytes_AsStringAndSize(PyTuple_GetItem(joined, 1), &separator, &one))
        return false;
    const char *end = data + size;
    for (size_t i = 0; i < n; i++) {
        while (skips_empty == Py_True && data < end && *data == *separator) data++;
        const char *stop = memchr(data, *separator, (size_t)(end - data));
        if (!stop) {
            PyErr_SetString(PyExc_ValueError, "a separator is missing");
            return false;
        }
        texts[i] = (ggtok_bytes){data, (size_t)(stop - data)};
        data += texts[i].n + 1;
    }
    return true;
}

/* Returns the texts of a list whose items are bytes or joined texts; the list keeps the texts
 * alive. NULL with an exception set on failure. */
static ggtok_bytes *texts_of_list(PyObject *list, size_t *n) {
    size_t n_items = (size_t)PyList_Size(list);
    ggtok_bytes *texts = NULL;
    for (int filling = 0; filling < 2; filling++) {
        *n = 0;
        for (size_t i = 0; i < n_items; i++) {
            PyObject *item = PyList_GetItem(list, (Py_ssize_t)i);
            bool joined = PyTuple_Check(item);
            size_t here = joined ? PyLong_AsSize_t(PyTuple_GetItem(item, 2)) : 1;
            Py_ssize_t size = 0;
            if (filling && !joined) {
                texts[*n].data = ggtok_python_text_of(item, &size);
                texts[*n].n = (size_t)size;
            } else if (filling) {
                split_joined(item, texts + *n, here);
            }
            if (PyErr_Occurred()) {
                ggtok_mem_free(texts);
                return NULL;
            }
            *n += here;
        }
        if (!filling && !(texts = ggtok_mem_alloc(mem_mul(*n, sizeof *texts)))) {
            PyErr_NoMemory();
            return NULL;
        }
    }
    return texts;
}

/* Returns the texts of a tuple; the tuple keeps them alive. NULL with an exception set on failure
 * (TypeError for a text that is neither str nor bytes). */
static ggtok_bytes *texts_of(PyObject *tuple, size_t n) {
    ggtok_bytes *texts = ggtok_mem_alloc(mem_mul(n, sizeof *texts));
    if (!texts) {
        PyErr_NoMemory();
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        Py_ssize_t size;
        texts[i].data = ggtok_python_text_of(PyTuple_GetItem(tuple, (Py_ssize_t)i), &size);
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

/* Returns a Result of native/arrays.py. The first argument owns the
 * batch, and *batch becomes NULL. */
static PyObject *arrays_of(ggtok_batch **batch, size_t n) {
    const int64_t *offsets = ggtok_batch_offsets(*batch);
    const int32_t *ids = ggtok_batch_ids(*batch);
    const ggtok_span *spans = ggtok_batch_spans(*batch);
    Py_ssize_t n_ids = (Py_ssize_t)ggtok_batch_n_ids(*batch);
    PyObject *owner = PyCapsule_New(*batch, BATCH, batch_free);
    if (!owner) return NULL;
    *batch = NULL;
    return Py_BuildValue("(NKnKnK)", owner, (unsigned long long)(uintptr_t)ids, n_ids,
                         (unsigned long long)(uintptr_t)offsets, (Py_ssize_t)n + 1,
                         (unsigned long long)(uintptr_t)spans);
}

/* Makes a column of the batch's ids. The column owns the batch, and *batch becomes NULL. */
static PyObject *arrow_of(ggtok_batch **batch, const ggtok_bytes *texts, size_t n) {
    arrow_ids *ids = ggtok_arrow_ids_new(batch, texts, n);
    return ids ? ggtok_python_arrow_ids(ids) : PyErr_NoMemory();
}

/* (tuple of texts, list of bytes and of joined texts, or a capsule from arrow.c; add_special;
 * parse_special; continuation; threads; lists; whether this is the main thread; None or the unit of
 * spans; sampling, which may be missing or None) -> if `lists` is True, lists or, with spans, (lists,
 * a Result of arrays.py); if False, a Result; if None, a capsule of ids for arrow.c. */
PyObject *ggtok_python_encode_batch(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    ggtok_error err;
    ggtok_sampling sampling;
    ggtok_batch *batch = NULL;
    ggtok_batch_options options = {.threads = (unsigned)PyLong_AsUnsignedLong(args[4])};
    PyObject *result = NULL;
    if (PyErr_Occurred() || !ggtok_python_encode_flags(args + 1, &options.flags, &options.choice))
        return NULL;
    if (n_args > 8 && args[8] != Py_None) {
        if (!ggtok_python_sampling_of(args[8], &sampling)) return NULL;
        options.sampling = &sampling;
    }
    bool tuple = PyTuple_Check(args[0]), list = PyList_Check(args[0]);
    const arrow_texts *arrow = tuple || list ? NULL : ggtok_python_arrow_texts(args[0]);
    if (PyErr_Occurred()) return NULL;
    size_t n = arrow ? arrow->n : tuple ? (size_t)PyTuple_Size(args[0]) : 0;
    ggtok_bytes *texts = arrow   ? arrow->data
                         : tuple ? texts_of(args[0], n)
                                 : texts_of_list(args[0], &n);
    if (PyErr_Occurred()) return NULL;
    size_t failed;
    const bool lists = args[5] == Py_True, spans = args[7] != Py_None, on_main = args[6] == Py_True;
    filling f = {.e = e, .unit = GGTOK_UNIT_BYTE};
    if (spans) f.unit = (ggtok_unit)PyLong_AsLong(args[7]);
    if (lists && !(f.lists = ggtok_python_list_begin((Py_ssize_t)n))) goto done;
    if (arrow) options.flags |= GGTOK_COPY_TEXTS;
    if (spans) options.flags |= GGTOK_SPANS;
    if (f.unit != GGTOK_UNIT_BYTE) options.convert = convert;
    /* Only the main thread may acquire the GIL during the batch; see ggtok_python_keep_going. */
    if (on_main) options.keep_going = ggtok_python_keep_going;
    if (on_main && lists) options.receive = receive;
    options.user = &f;
    ggtok_python_leave(&f.call);
    ggtok_status s = ggtok_encode_batch_with(e->pool, texts, n, &options, &batch, &failed, &err);
    ggtok_python_return(&f.call);
    if (s) { /* a text may fail after a signal handler has raised */
        if (!PyErr_Occurred()) ggtok_python_fail(e, &err, failed, failed < n);
    } else if (args[5] == Py_None) {
        result = arrow_of(&batch, texts, n);
    } else if (!lists) {
        result = arrays_of(&batch, n);
    } else if (options.receive || fill_all(&f, batch, n)) {
        result = end_lists(f.lists);
        f.lists = NULL;
        PyObject *arrays = spans ? arrays_of(&batch, n) : NULL;
        if (spans) result = Py_BuildValue("(NN)", result, arrays);
    }
done:
    Py_XDECREF(f.lists);
    if (!arrow) ggtok_mem_free(texts);
    ggtok_batch_free(batch);
    return result;
}

/* (bytes or str, add_special, parse_special, continuation, threads, whether this is the main thread)
 * -> the arguments of `arrays` in arrays.py for a batch of one text: ggtok_encode_parallel */
PyObject *ggtok_python_encode_parallel(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    ggtok_error err;
    ggtok_batch *batch = NULL;
    ggtok_batch_options options = {.threads = (unsigned)PyLong_AsUnsignedLong(args[4])};
    Py_ssize_t n;
    if (PyErr_Occurred() || !ggtok_python_encode_flags(args + 1, &options.flags, &options.choice))
        return NULL;
    const char *text = ggtok_python_text_of(args[0], &n);
    if (!text) return NULL;
    filling f = {.e = e};
    if (args[5] == Py_True) options.keep_going = ggtok_python_keep_going;
    options.user = &f;
    ggtok_python_leave(&f.call);
    ggtok_status s = ggtok_encode_parallel(e->pool, text, (size_t)n, &options, &batch, &err);
    ggtok_python_return(&f.call);
    if (s) return PyErr_Occurred() ? NULL : ggtok_python_fail(e, &err, 0, false);
    PyObject *result = arrays_of(&batch, 1);
    ggtok_batch_free(batch);
    return result;
}
