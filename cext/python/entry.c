/*
 * Encode and decode as CPython functions, in the limited API (build_ffi.py says of which
 * version).
 *
 * A prompt of 60 bytes takes C about 150 ns; a cffi call with its conversions takes
 * three times that, and a list of new int objects as long again. So these few
 * functions read str objects in place and fill lists with int objects that they
 * keep: a token's is made once. Everything else goes through cffi.
 *
 * Without a GIL what is kept would need locks, and is left out.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#ifdef Py_GIL_DISABLED
#define KEEP 0
#else
#define KEEP 1
#endif

#include <time.h>

#include "entry.h"
#include "mem.h"
#include "utf8.h"

enum {
    RELEASE_FROM = 2048, /* bytes: shorter texts aren't worth letting other threads run */
    POLL_MS = 50
};

#define CAPSULE "ggtok.entry"

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

static void entry_free(entry *e) {
    if (!e) return;
    for (uint32_t id = 0; e->ints && id < e->n_ints; id++) Py_XDECREF(e->ints[id]);
    mem_free(e->ints);
    mem_free(e->spare.data);
    Py_XDECREF(e->error);
    ggtok_pool_free(e->pool);
    ggtok_free(e->tok);
    mem_free(e);
}

static void capsule_free(PyObject *capsule) {
    entry_free(PyCapsule_GetPointer(capsule, CAPSULE));
}

/* ---- errors ---- */

static PyObject *fail(const entry *e, const ggtok_error *err, size_t text, bool in_batch) {
    PyObject *args = in_batch
                         ? Py_BuildValue("(y#n)", err, (Py_ssize_t)sizeof *err, (Py_ssize_t)text)
                         : Py_BuildValue("(y#O)", err, (Py_ssize_t)sizeof *err, Py_None);
    if (args) PyErr_SetObject(e->error, args);
    Py_XDECREF(args);
    return NULL;
}

/* ---- arguments ---- */

/* A str or bytes object's UTF-8, in place: CPython keeps it with a str (of ASCII it is the
 * object's own text). NULL with an exception set: TypeError for any other object. */
static const char *text_of(PyObject *text, Py_ssize_t *n) {
    char *data;
    if (PyUnicode_Check(text)) return PyUnicode_AsUTF8AndSize(text, n);
    return PyBytes_AsStringAndSize(text, &data, n) ? NULL : data;
}

static bool is_ascii(PyObject *text) {
    PyObject *answer = PyObject_CallMethod(text, "isascii", NULL);
    bool ascii = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Clear();
    return ascii;
}

/* ---- large texts ---- */

enum { LARGE = 1 << 15, PART = 1 << 12, TOO_LARGE = 1 << 22 }; /* characters; a spare's bytes */

/* Appends the UTF-8 of at most PART characters. False: it has none, or there is no memory. */
static bool append_part(bytebuf *utf8, PyObject *part) {
    if (is_ascii(part)) {
        Py_ssize_t n;
        const char *data = PyUnicode_AsUTF8AndSize(part, &n);
        return data && bytebuf_append(utf8, data, (size_t)n);
    }
    uint32_t cpts[PART];
    size_t n = (size_t)PyUnicode_GetLength(part);
    if (!PyUnicode_AsUCS4(part, cpts, PART, 0) ||
        !bytebuf_reserve(utf8, 4 * (size_t)PART + UTF8_ROOM)) {
        return false;
    }
    size_t added = utf8_of_ucs4(cpts, n, utf8->data + utf8->n);
    if (added == SIZE_MAX) return false;
    utf8->n += added;
    return true;
}

/*
 * Makes the UTF-8 of a str beyond ASCII that is large, a part at a time. CPython would make it
 * in new memory three times as large, each page of which costs a fault (a fifth of the time
 * that a new text takes), and keep it with the str. That pays for a text that is encoded again:
 * for one that is met twice in a row, if it isn't too large to be kept. False: leave it to
 * text_of.
 */
static bool large_text(entry *e, PyObject *text, bytebuf *utf8) {
    Py_ssize_t n = PyUnicode_CheckExact(text) ? PyUnicode_GetLength(text) : 0;
    if (n < LARGE || is_ascii(text)) return false;
    if (KEEP) {
        bool again = e->last == (uintptr_t)text && e->last_n == n;
        e->last = (uintptr_t)text, e->last_n = n;
        if (again && n < TOO_LARGE) return false;
        *utf8 = e->spare, e->spare = (bytebuf){0};
    }
    bool ok = bytebuf_reserve(utf8, (size_t)n);
    for (Py_ssize_t at = 0; ok && at < n; at += PART) {
        PyObject *part = PyUnicode_Substring(text, at, at + PART < n ? at + PART : n);
        ok = part && append_part(utf8, part);
        Py_XDECREF(part);
    }
    PyErr_Clear(); /* a lone surrogate, or no memory: text_of says so */
    return ok;
}

static void give_large_text(entry *e, bytebuf *utf8) {
    if (KEEP && !e->spare.data && utf8->cap <= TOO_LARGE) {
        e->spare = (bytebuf){utf8->data, 0, utf8->cap};
    } else {
        mem_free(utf8->data);
    }
}

/* Two truth values as the bits 1 and 2 of *flags. False: an exception is set. */
static bool flags_of(PyObject *first, PyObject *second, unsigned *flags) {
    int a = PyObject_IsTrue(first), b = a < 0 ? -1 : PyObject_IsTrue(second);
    *flags = (unsigned)a | (unsigned)b << 1;
    return a >= 0 && b >= 0;
}

/* ---- results ---- */

/* A new reference to an id's int object. */
static PyObject *int_of(entry *e, int32_t id) {
    if (!KEEP || (uint32_t)id >= e->n_ints) return PyLong_FromLong(id);
    PyObject *number = e->ints[id];
    if (!number && !(number = e->ints[id] = PyLong_FromLong(id))) return NULL;
    Py_INCREF(number);
    return number;
}

static PyObject *list_of(entry *e, const int32_t *ids, size_t n) {
    if (KEEP && !e->ints) { /* pages of it that no id reaches cost nothing */
        uint32_t n_ints = ggtok_n_tokens(e->tok);
        e->ints = mem_zalloc(mem_mul(n_ints, sizeof *e->ints));
        e->n_ints = e->ints ? n_ints : 0;
    }
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *number = int_of(e, ids[i]);
        if (number) {
            PyList_SetItem(list, (Py_ssize_t)i, number);
        } else {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *bytearray_of(const void *data, size_t n) {
    PyObject *bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)n);
    if (!bytes) return NULL;
    char *to = PyByteArray_AsString(bytes);
    if (data) {
        mem_will_fill(to, n);
        if (n) memcpy(to, data, n);
    } else { /* several threads will write there */
        mem_on_huge_pages(to, n);
    }
    return bytes;
}

/* ---- one text ---- */

/* Encodes args[0] with the flags args[1] and args[2]; on success *ids are those of a
 * context which the caller gives back. NULL: an exception is set. */
static ggtok_context *run(entry *e, PyObject *const *args, ggtok_ids *ids) {
    ggtok_error err;
    Py_ssize_t n;
    unsigned flags;
    bytebuf utf8 = {0};
    if (!flags_of(args[1], args[2], &flags)) return NULL;
    bool large = large_text(e, args[0], &utf8);
    const char *text = large ? (const char *)utf8.data : text_of(args[0], &n);
    ggtok_context *ctx = text ? ggtok_pool_take(e->pool, &err) : NULL;
    if (!ctx) {
        if (text) fail(e, &err, 0, false);
        give_large_text(e, &utf8);
        return NULL;
    }
    if (large) n = (Py_ssize_t)utf8.n;
    ggtok_status s;
    if (n < RELEASE_FROM) {
        s = ggtok_encode(ctx, text, (size_t)n, flags, ids, &err);
    } else {
        PyThreadState *state = PyEval_SaveThread();
        s = ggtok_encode(ctx, text, (size_t)n, flags, ids, &err);
        PyEval_RestoreThread(state);
    }
    give_large_text(e, &utf8);
    if (!s) return ctx;
    ggtok_pool_give(e->pool, ctx);
    fail(e, &err, 0, false);
    return NULL;
}

#define SELF entry *e = PyCapsule_GetPointer(self, CAPSULE)

/* How many arguments each takes is its one caller's business: _native.py. */

/* (text, add_special, parse_special) -> list of int */
static PyObject *encode(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    SELF;
    (void)n;
    ggtok_ids ids;
    ggtok_context *ctx = run(e, args, &ids);
    if (!ctx) return NULL;
    PyObject *list = list_of(e, ids.data, ids.n);
    ggtok_pool_give(e->pool, ctx);
    return list;
}

/* (text, add_special, parse_special) -> bytearray of int32 */
static PyObject *encode_bytes(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    SELF;
    (void)n;
    ggtok_ids ids;
    ggtok_context *ctx = run(e, args, &ids);
    if (!ctx) return NULL;
    PyObject *bytes = bytearray_of(ids.data, ids.n * sizeof *ids.data);
    ggtok_pool_give(e->pool, ctx);
    return bytes;
}

/* (text, add_special, parse_special) -> int */
static PyObject *count(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    SELF;
    (void)n;
    ggtok_ids ids;
    ggtok_context *ctx = run(e, args, &ids);
    if (!ctx) return NULL;
    ggtok_pool_give(e->pool, ctx);
    return PyLong_FromSize_t(ids.n);
}

/* ---- a batch ---- */

typedef struct poll_state {
    PyThreadState *thread;
    double due;
} poll_state;

static double now_ms(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/*
 * Lets Python handle signals: false once a handler has raised (KeyboardInterrupt). Only on
 * the main thread, where handlers run. Another may never come back from here: once the
 * interpreter is going down, CPython ends it (3.13 and earlier), stack and all, and the batch's
 * other threads would go on with what was there.
 */
static bool may_go_on(void *user) {
    poll_state *p = user;
    double now = now_ms();
    if (now < p->due && now > p->due - 2 * POLL_MS) return true; /* clocks may be set back */
    p->due = now + POLL_MS;
    PyEval_RestoreThread(p->thread);
    bool go_on = !PyErr_CheckSignals();
    p->thread = PyEval_SaveThread();
    return go_on;
}

static PyObject *lists_of(entry *e, const int32_t *ids, const int64_t *offsets, Py_ssize_t n) {
    PyObject *lists = PyList_New(n);
    for (Py_ssize_t i = 0; lists && i < n; i++) {
        PyObject *list = list_of(e, ids + offsets[i], (size_t)(offsets[i + 1] - offsets[i]));
        if (list) {
            PyList_SetItem(lists, i, list);
        } else {
            Py_CLEAR(lists);
        }
    }
    return lists;
}

/* (tuple of texts, add_special, parse_special, threads, lists, is this the main thread) ->
 * lists, or a bytearray of int32 and one of int64 offsets. TypeError for a text that is
 * neither str nor bytes. */
static PyObject *encode_batch(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    Py_ssize_t n = PyTuple_Size(args[0]);
    unsigned flags, threads = (unsigned)PyLong_AsUnsignedLong(args[3]);
    ggtok_error err;
    ggtok_batch *batch = NULL;
    PyObject *ids = NULL, *offsets = NULL, *result = NULL;
    if (PyErr_Occurred() || !flags_of(args[1], args[2], &flags)) return NULL;
    ggtok_bytes *texts = mem_alloc(mem_mul((size_t)n, sizeof *texts));
    if (!texts) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t size;
        texts[i].data = text_of(PyTuple_GetItem(args[0], i), &size);
        if (!texts[i].data) goto done;
        texts[i].n = (size_t)size;
    }
    size_t failed;
    ggtok_go_on_fn go_on = args[5] == Py_True ? may_go_on : NULL;
    poll_state state = {PyEval_SaveThread(), now_ms() + POLL_MS};
    ggtok_status s = ggtok_encode_batch(e->pool, texts, (size_t)n, flags, threads, go_on, &state,
                                        &batch, &failed, &err);
    PyEval_RestoreThread(state.thread);
    if (s) { /* a text may fail, too, after a signal handler has raised */
        if (!PyErr_Occurred()) fail(e, &err, failed, failed < (size_t)n);
        goto done;
    }
    ids = bytearray_of(NULL, ggtok_batch_n_ids(batch) * sizeof(int32_t));
    offsets = bytearray_of(NULL, ((size_t)n + 1) * sizeof(int64_t));
    if (!ids || !offsets) goto done;
    int32_t *to = (int32_t *)(void *)PyByteArray_AsString(ids);
    int64_t *at = (int64_t *)(void *)PyByteArray_AsString(offsets);
    state.thread = PyEval_SaveThread();
    ggtok_batch_copy(batch, to, at, threads);
    PyEval_RestoreThread(state.thread);
    result = args[4] == Py_True ? lists_of(e, to, at, n) : PyTuple_Pack(2, ids, offsets);
done:
    mem_free(texts);
    ggtok_batch_free(batch);
    Py_XDECREF(ids);
    Py_XDECREF(offsets);
    return result;
}

/* ---- decode ---- */

/* Converts an iterable of ints. False: an exception is set. */
static bool ids_of(PyObject *object, PyObject **tuple, int32_t **ids, size_t *n) {
    if (!(*tuple = PySequence_Tuple(object))) return false;
    *n = (size_t)PyTuple_Size(*tuple);
    if (!(*ids = mem_alloc(mem_mul(*n, sizeof **ids)))) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < *n; i++) {
        long id = PyLong_AsLong(PyTuple_GetItem(*tuple, (Py_ssize_t)i));
        if (id == -1 && PyErr_Occurred()) return false;
        if (id < INT32_MIN || id > INT32_MAX) {
            PyErr_SetString(PyExc_OverflowError, "not an int32");
            return false;
        }
        (*ids)[i] = (int32_t)id;
    }
    return true;
}

static PyObject *decoded(entry *e, const int32_t *ids, size_t n, unsigned flags) {
    ggtok_error err;
    ggtok_bytes text;
    ggtok_context *ctx = ggtok_pool_take(e->pool, &err);
    if (!ctx) return fail(e, &err, 0, false);
    ggtok_status s;
    if (n < RELEASE_FROM) {
        s = ggtok_decode(ctx, ids, n, flags, &text, &err);
    } else {
        PyThreadState *state = PyEval_SaveThread();
        s = ggtok_decode(ctx, ids, n, flags, &text, &err);
        PyEval_RestoreThread(state);
    }
    PyObject *bytes =
        s ? fail(e, &err, 0, false) : PyBytes_FromStringAndSize(text.data, (Py_ssize_t)text.n);
    ggtok_pool_give(e->pool, ctx);
    return bytes;
}

/* (ids, remove_special, unparse_special) -> bytes. */
static PyObject *decode(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    PyObject *tuple, *bytes = NULL;
    int32_t *ids = NULL;
    size_t n;
    unsigned flags;
    if (ids_of(args[0], &tuple, &ids, &n) && flags_of(args[1], args[2], &flags)) {
        bytes = decoded(e, ids, n, flags);
    }
    mem_free(ids);
    Py_XDECREF(tuple);
    return bytes;
}

/* (address of int32s, how many, remove_special, unparse_special) -> bytes */
static PyObject *decode_at(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    const int32_t *ids = PyLong_AsVoidPtr(args[0]);
    size_t n = PyLong_AsSize_t(args[1]);
    unsigned flags;
    if (PyErr_Occurred() || !flags_of(args[2], args[3], &flags)) return NULL;
    return decoded(e, ids, n, flags);
}

/* () -> None */
static PyObject *clear(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)args, (void)n_args;
    ggtok_pool_clear(e->pool);
    if (KEEP) { /* it still has a text in it */
        mem_free(e->spare.data);
        e->spare = (bytebuf){0};
    }
    Py_RETURN_NONE;
}

/* () -> (hits, misses, bytes) */
static PyObject *cache_info(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)args, (void)n_args;
    ggtok_cache_info info = ggtok_pool_cache_info(e->pool);
    return Py_BuildValue("(KKK)", (unsigned long long)info.hits, (unsigned long long)info.misses,
                         (unsigned long long)info.bytes);
}

/* ---- a context on loan ---- */

#define LOAN "ggtok.loan"

static void loan_free(PyObject *loan) {
    PyObject *self = PyCapsule_GetContext(loan);
    SELF;
    ggtok_pool_give(e->pool, PyCapsule_GetPointer(loan, LOAN));
    Py_DECREF(self);
}

/* () -> (the address of a context, for what goes through cffi; what gives the context back when
 * it is freed). A call to give it back might not be reached: a signal handler may raise between
 * any two steps of Python's. */
static PyObject *take(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)args, (void)n_args;
    ggtok_error err;
    ggtok_context *ctx = ggtok_pool_take(e->pool, &err);
    if (!ctx) return fail(e, &err, 0, false);
    PyObject *loan = PyCapsule_New(ctx, LOAN, NULL);
    if (!loan) {
        ggtok_pool_give(e->pool, ctx);
        return NULL;
    }
    Py_INCREF(self);
    PyCapsule_SetContext(loan, self);
    PyCapsule_SetDestructor(loan, loan_free);
    return Py_BuildValue("(NN)", PyLong_FromVoidPtr(ctx), loan);
}

/* ---- binding ---- */

#define METHOD(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef methods[] = {
    METHOD(encode),       METHOD(encode_bytes), METHOD(count),
    METHOD(encode_batch), METHOD(decode),       METHOD(decode_at),
    METHOD(clear),        METHOD(cache_info),   METHOD(take),
};

bool entry_bind(ggtok_tokenizer *tok, uintptr_t list, uintptr_t error) {
    PyGILState_STATE gil = PyGILState_Ensure(); /* cffi released it */
    bool bound = false;
    PyObject *capsule = NULL;
    entry *e = mem_zalloc(sizeof *e);
    if (!e || ggtok_pool_new(tok, &e->pool, NULL)) goto done;
    e->error = (PyObject *)error;
    Py_INCREF(e->error);
    if (!(capsule = PyCapsule_New(e, CAPSULE, capsule_free))) goto done;
    bound = true;
    for (size_t i = 0; bound && i < sizeof methods / sizeof *methods; i++) {
        PyObject *function = PyCFunction_New(&methods[i], capsule);
        bound = function && !PyList_Append((PyObject *)list, function);
        Py_XDECREF(function);
    }
    if (bound) e->tok = tok;
done:
    PyErr_Clear();
    if (capsule) {
        Py_DECREF(capsule);
    } else {
        entry_free(e);
    }
    PyGILState_Release(gil);
    return bound;
}
