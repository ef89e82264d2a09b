/*
 * Encode and decode as CPython functions, in the limited API (build_ffi.py has the version).
 *
 * Encoding a prompt of 60 bytes takes about 150 ns in C. A cffi call with its conversions takes
 * three times as long, and making a list of new int objects takes as long again. So these few
 * functions read str objects in place and fill lists with int objects that are made once per token
 * and kept (list.c). Everything else goes through cffi.
 *
 * Without a GIL the kept objects would need locks, so none are kept.
 */
#include "python/entry.h"

#include "ggtok_trace.h"
#include "python/array.h"
#include "python/chat.h"
#include "python/internal.h"
#include "python/list.h"
#include "python/signals.h"
#include "python/state.h"

enum { POLL_FROM = 1 << 16 }; /* minimum bytes of a text whose encoding signals can interrupt */

static void free_entry(entry *e) {
    if (!e) return;
    for (uint32_t id = 0; e->ints && id < e->n_ints; id++) Py_XDECREF(e->ints[id]);
    ggtok_mem_free(e->ints);
    ggtok_mem_free(e->spare.data);
    Py_XDECREF(e->error);
    ggtok_pool_free(e->pool);
    ggtok_free(e->tok);
    ggtok_mem_free(e);
}

static void capsule_free(PyObject *capsule) {
    free_entry(PyCapsule_GetPointer(capsule, CAPSULE));
}

/* ---- arguments ---- */

static bool is_ascii(PyObject *text) {
    PyObject *answer = PyObject_CallMethod(text, "isascii", NULL);
    bool ascii = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Clear();
    return ascii;
}

/* ---- large texts ---- */

enum {
    LARGE = 1 << 15,    /* minimum characters of a large text */
    PART = 1 << 12,     /* characters converted at a time */
    TOO_LARGE = 1 << 22 /* maximum characters of a text whose UTF-8 is kept, and bytes of `spare` */
};
enum { ASK = (1 << 20) - 1 }; /* characters converted between checks for signals */

/* Appends the UTF-8 of at most PART characters. Returns false if there is none (a lone surrogate)
 * or if out of memory. */
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
    size_t added = ggtok_utf8_of_ucs4(cpts, n, utf8->data + utf8->n);
    if (added == SIZE_MAX) return false;
    utf8->n += added;
    return true;
}

/*
 * Makes the UTF-8 of a large str with characters beyond ASCII, one part at a time. CPython would
 * make it in new memory of three times the size, where each page costs a page fault (a fifth of the
 * time for an uncached text), and keep it with the str. Keeping it is worthwhile only if the text
 * is encoded again, so a text that occurs twice in a row is left to ggtok_python_text_of, unless its UTF-8
 * is too large to keep. Returns false if ggtok_python_text_of should be used. It may return true with an
 * exception set, if a signal handler raised one.
 */
static bool large_text(entry *e, PyObject *text, bytebuf *utf8) {
    Py_ssize_t n = PyUnicode_CheckExact(text) ? PyUnicode_GetLength(text) : 0;
    if (n < LARGE || is_ascii(text)) return false;
    if (KEEP) {
        bool same_text = e->last == (uintptr_t)text && e->last_n == n;
        e->last = (uintptr_t)text, e->last_n = n;
        if (same_text && n < TOO_LARGE) return false;
        *utf8 = e->spare, e->spare = (bytebuf){0};
    }
    bool ok = bytebuf_reserve(utf8, (size_t)n);
    for (Py_ssize_t at = 0; ok && at < n; at += PART) {
        if (!(at & ASK) && PyErr_CheckSignals()) return true;
        PyObject *part = PyUnicode_Substring(text, at, at + PART < n ? at + PART : n);
        ok = part && append_part(utf8, part);
        Py_XDECREF(part);
    }
    PyErr_Clear(); /* a lone surrogate, or out of memory: ggtok_python_text_of reports it */
    return ok;
}

static void give_large_text(entry *e, bytebuf *utf8) {
    if (KEEP && !e->spare.data && utf8->cap <= TOO_LARGE) {
        e->spare = (bytebuf){utf8->data, 0, utf8->cap};
    } else {
        ggtok_mem_free_large(utf8->data, utf8->cap);
    }
}

/* ---- one text ---- */

/* The state of a call that releases the GIL while the context is used for n bytes of text, and can
 * be stopped by signals if it takes long. */
typedef struct long_call {
    python_call call;
    bool released;
} long_call;

static void call_begin(long_call *p, ggtok_context *ctx, size_t n) {
    if (n >= POLL_FROM && ggtok_python_on_main_thread())
        ggtok_context_set_interrupt(ctx, ggtok_python_keep_going, &p->call);
    p->released = n >= RELEASE_FROM;
    if (p->released) ggtok_python_leave(&p->call);
}

static void call_end(long_call *p, ggtok_context *ctx) {
    if (!p->released) return;
    ggtok_python_return(&p->call);
    ggtok_context_set_interrupt(ctx, NULL, NULL);
}

/* Makes a new array of the spans of the context's ids for text[0..n). Returns false with an
 * exception set, or with *err filled. */
static bool spans_of(ggtok_context *ctx, const char *text, Py_ssize_t n, size_t n_ids,
                     PyObject *unit, PyObject **out, ggtok_error *err) {
    ggtok_span *spans;
    ggtok_unit counted = (ggtok_unit)PyLong_AsLong(unit);
    if (!(*out = ggtok_python_array_of_spans(n_ids, &spans))) return false;
    long_call p;
    call_begin(&p, ctx, (size_t)n);
    bool ok = !ggtok_spans(ctx, spans, err);
    if (ok) ggtok_convert_spans(text, (size_t)n, spans, n_ids, counted);
    call_end(&p, ctx);
    if (!ok) Py_CLEAR(*out);
    return ok;
}

/* Encodes args[0] with the flags args[1] to args[3]. On success, *ids are those of the returned
 * context, which the caller must release, and, unless `spans` is NULL, *spans are their spans in
 * the unit args[4]. Otherwise returns NULL with an exception set. `sampling` may be NULL. */
static ggtok_context *encode_text(entry *e, PyObject *const *args, const ggtok_sampling *sampling,
                                  ggtok_ids *ids, PyObject **spans) {
    ggtok_error err;
    Py_ssize_t n;
    unsigned flags;
    bytebuf utf8 = {0};
    const ggtok_special_choice *choice;
    if (!ggtok_python_encode_flags(args + 1, &flags, &choice)) return NULL;
    if (spans) flags |= GGTOK_SPANS;
    bool large = large_text(e, args[0], &utf8);
    const char *text = !large             ? ggtok_python_text_of(args[0], &n)
                       : PyErr_Occurred() ? NULL
                                          : (const char *)utf8.data;
    ggtok_context *ctx = text ? ggtok_pool_acquire(e->pool, &err) : NULL;
    if (!ctx) {
        if (text) ggtok_python_fail(e, &err, 0, false);
        give_large_text(e, &utf8);
        return NULL;
    }
    if (large) n = (Py_ssize_t)utf8.n;
    /* Sampling can take thousands of times longer than encoding. */
    size_t cost = sampling && (size_t)n < POLL_FROM ? POLL_FROM : (size_t)n;
    /* Handle signals that arrived while the text was converted, since call_begin would lose
     * them. */
    if (cost >= POLL_FROM && PyErr_CheckSignals()) {
        give_large_text(e, &utf8);
        ggtok_pool_release(e->pool, ctx);
        return NULL;
    }
    ggtok_context_set_special_choice(ctx, choice);
    long_call p;
    call_begin(&p, ctx, cost);
    ggtok_status s = sampling ? ggtok_sample(ctx, text, (size_t)n, flags, sampling, ids, &err)
                              : ggtok_encode(ctx, text, (size_t)n, flags, ids, &err);
    call_end(&p, ctx);
    bool ok = !s && (!spans || spans_of(ctx, text, n, ids->n, args[4], spans, &err));
    give_large_text(e, &utf8);
    if (ok) return ctx;
    ggtok_pool_release(e->pool, ctx);
    if (!PyErr_Occurred()) ggtok_python_fail(e, &err, 0, false);
    return NULL;
}

/* The only caller of these functions, native/native_tokenizer.py, passes the right number of arguments. */

/* (text, add_special, parse_special, continuation) -> list of int */
static PyObject *encode(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    SELF;
    (void)n;
    ggtok_ids ids;
    ggtok_context *ctx = encode_text(e, args, NULL, &ids, NULL);
    if (!ctx) return NULL;
    PyObject *list = ggtok_python_list_of(e, ids.data, ids.n);
    ggtok_pool_release(e->pool, ctx);
    return list;
}

/* (text, add_special, parse_special, continuation) -> NumPy array of int32 */
static PyObject *encode_array(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    SELF;
    (void)n;
    ggtok_ids ids;
    ggtok_context *ctx = encode_text(e, args, NULL, &ids, NULL);
    if (!ctx) return NULL;
    PyObject *array = ggtok_python_array_of(ids.data, ids.n);
    ggtok_pool_release(e->pool, ctx);
    return array;
}

/* (text, add_special, parse_special, continuation, unit) -> (list of int, array of their spans) */
static PyObject *encode_spans(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    SELF;
    (void)n;
    ggtok_ids ids;
    PyObject *spans;
    ggtok_context *ctx = encode_text(e, args, NULL, &ids, &spans);
    if (!ctx) return NULL;
    PyObject *list = ggtok_python_list_of(e, ids.data, ids.n);
    ggtok_pool_release(e->pool, ctx);
    PyObject *both = list ? PyTuple_Pack(2, list, spans) : NULL;
    Py_XDECREF(list);
    Py_DECREF(spans);
    return both;
}

/* (text, add_special, parse_special, continuation, sampling) -> list of int: ggtok_sample */
static PyObject *sample(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    SELF;
    (void)n;
    ggtok_ids ids;
    ggtok_sampling sampling;
    if (!ggtok_python_sampling_of(args[4], &sampling)) return NULL;
    ggtok_context *ctx = encode_text(e, args, &sampling, &ids, NULL);
    if (!ctx) return NULL;
    PyObject *list = ggtok_python_list_of(e, ids.data, ids.n);
    ggtok_pool_release(e->pool, ctx);
    return list;
}

static PyObject *parts_of(const ggtok_parts *parts) {
    PyObject *list = ggtok_python_list_begin((Py_ssize_t)parts->n);
    for (size_t i = 0; list && i < parts->n; i++) {
        const ggtok_part *p = &parts->data[i];
        PyObject *part =
            Py_BuildValue("(nnnnO)", (Py_ssize_t)p->pos, (Py_ssize_t)p->n, (Py_ssize_t)p->first,
                          (Py_ssize_t)p->n_ids, p->special ? Py_True : Py_False);
        if (part) {
            PyList_SetItem(list, (Py_ssize_t)i, part);
        } else {
            Py_CLEAR(list);
        }
    }
    return ggtok_python_list_end(list);
}

/* (str, flags, the ranges as bytes, whether to return parts) -> list of int, or (list of int, list
 * of the fields of each ggtok_part): ggtok_encode_trusted */
static PyObject *encode_trusted(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    ggtok_error err;
    ggtok_ids ids;
    ggtok_parts parts;
    Py_ssize_t n;
    char *packed;
    Py_ssize_t n_packed;
    const char *text = ggtok_python_text_of(args[0], &n);
    unsigned long flags = PyLong_AsUnsignedLong(args[1]);
    if (!text || PyErr_Occurred() || PyBytes_AsStringAndSize(args[2], &packed, &n_packed)) {
        return NULL;
    }
    ggtok_context *ctx = ggtok_pool_acquire(e->pool, &err);
    if (!ctx) return ggtok_python_fail(e, &err, 0, false);
    const ggtok_range *ranges = (const void *)packed; /* bytes objects are sufficiently aligned */
    size_t n_ranges = (size_t)n_packed / sizeof *ranges;
    long_call p;
    call_begin(&p, ctx, (size_t)n);
    ggtok_status s = ggtok_encode_trusted(ctx, text, (size_t)n, (unsigned)flags, ranges, n_ranges,
                                          &ids, &parts, &err);
    call_end(&p, ctx);
    PyObject *result = NULL;
    if (s) {
        if (!PyErr_Occurred()) ggtok_python_fail(e, &err, 0, false);
    } else {
        result = ggtok_python_list_of(e, ids.data, ids.n);
        if (result && args[3] == Py_True) result = Py_BuildValue("(NN)", result, parts_of(&parts));
    }
    ggtok_pool_release(e->pool, ctx);
    return result;
}

/* (text, add_special, parse_special, continuation) -> int */
static PyObject *count(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    SELF;
    (void)n;
    ggtok_ids ids;
    ggtok_context *ctx = encode_text(e, args, NULL, &ids, NULL);
    if (!ctx) return NULL;
    ggtok_pool_release(e->pool, ctx);
    return PyLong_FromSize_t(ids.n);
}

/* Returns the list of (ids, score), or NULL with an exception set. */
static PyObject *segmentations_of(entry *e, const ggtok_segmentations *found) {
    PyObject *list = ggtok_python_list_begin((Py_ssize_t)found->n);
    for (size_t i = 0, from = 0; list && i < found->n; from = found->ends[i++]) {
        PyObject *ids = ggtok_python_list_of(e, found->ids + from, found->ends[i] - from);
        PyObject *one = ids ? Py_BuildValue("(Nd)", ids, found->scores[i]) : NULL;
        if (one) {
            PyList_SetItem(list, (Py_ssize_t)i, one);
        } else {
            Py_CLEAR(list);
        }
    }
    return ggtok_python_list_end(list);
}

/* (bytes, add_special, parse_special, continuation, n) -> list of (list of int, score): ggtok_nbest */
static PyObject *nbest(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    ggtok_error err;
    ggtok_segmentations found;
    Py_ssize_t n;
    unsigned flags;
    const ggtok_special_choice *choice;
    if (!ggtok_python_encode_flags(args + 1, &flags, &choice)) return NULL;
    size_t most = PyLong_AsSize_t(args[4]);
    const char *text = PyErr_Occurred() ? NULL : ggtok_python_text_of(args[0], &n);
    ggtok_context *ctx = text ? ggtok_pool_acquire(e->pool, &err) : NULL;
    if (!ctx) return text ? ggtok_python_fail(e, &err, 0, false) : NULL;
    ggtok_context_set_special_choice(ctx, choice);
    long_call p;
    call_begin(&p, ctx, POLL_FROM); /* finding many paths takes longer than encoding */
    ggtok_status s = ggtok_nbest(ctx, text, (size_t)n, flags, most, &found, &err);
    call_end(&p, ctx);
    PyObject *list = s ? NULL : segmentations_of(e, &found);
    ggtok_pool_release(e->pool, ctx);
    if (s && !PyErr_Occurred()) ggtok_python_fail(e, &err, 0, false);
    return list;
}

/* ---- steps ---- */

/* Returns a new bytes object, or raises an exception for a failure. Releases the context. */
static PyObject *finish_trace(entry *e, ggtok_context *ctx, ggtok_status s, ggtok_bytes json,
                              const ggtok_error *err) {
    PyObject *bytes = s ? NULL : PyBytes_FromStringAndSize(json.data, (Py_ssize_t)json.n);
    ggtok_pool_release(e->pool, ctx);
    if (s && !PyErr_Occurred()) ggtok_python_fail(e, err, 0, false);
    return bytes;
}

/* (bytes, add_special, parse_special, continuation) -> bytes: ggtok_trace_json */
static PyObject *trace(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    ggtok_error err;
    ggtok_bytes json;
    Py_ssize_t n;
    unsigned flags;
    const ggtok_special_choice *choice;
    if (!ggtok_python_encode_flags(args + 1, &flags, &choice)) return NULL;
    const char *text = ggtok_python_text_of(args[0], &n);
    ggtok_context *ctx = text ? ggtok_pool_acquire(e->pool, &err) : NULL;
    if (!ctx) return text ? ggtok_python_fail(e, &err, 0, false) : NULL;
    ggtok_context_set_special_choice(ctx, choice);
    long_call p;
    call_begin(&p, ctx, RELEASE_FROM); /* reporting takes longer than encoding */
    ggtok_status s = ggtok_trace_json(ctx, text, (size_t)n, flags, SIZE_MAX, &json, &err);
    call_end(&p, ctx);
    return finish_trace(e, ctx, s, json, &err);
}

/* (id) -> bytes: ggtok_trace_token_json */
static PyObject *trace_token(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    ggtok_error err;
    ggtok_bytes json;
    long id = PyLong_AsLong(args[0]);
    ggtok_context *ctx = PyErr_Occurred() ? NULL : ggtok_pool_acquire(e->pool, &err);
    if (!ctx) return PyErr_Occurred() ? NULL : ggtok_python_fail(e, &err, 0, false);
    long_call p;
    call_begin(&p, ctx, RELEASE_FROM);
    ggtok_status s = ggtok_trace_token_json(ctx, (int32_t)id, SIZE_MAX, &json, &err);
    call_end(&p, ctx);
    return finish_trace(e, ctx, s, json, &err);
}

/* ---- caches ---- */

/* () -> None: clears the caches */
static PyObject *clear(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)args, (void)n_args;
    ggtok_pool_clear(e->pool);
    if (KEEP) { /* the spare buffer still contains a text */
        ggtok_mem_free(e->spare.data);
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

/* ---- a text in blocks ---- */

#define LOAN "ggtok.loan"

static void loan_free(PyObject *loan) {
    PyObject *self = PyCapsule_GetContext(loan);
    SELF;
    ggtok_pool_release(e->pool, PyCapsule_GetPointer(loan, LOAN));
    Py_DECREF(self);
}

/* () -> a capsule of a context, which is released when the capsule is freed. An explicit call to
 * release the context might not be reached: a signal handler can raise an exception between any two
 * steps of Python code. */
static PyObject *take(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)args, (void)n_args;
    ggtok_error err;
    ggtok_context *ctx = ggtok_pool_acquire(e->pool, &err);
    if (!ctx) return ggtok_python_fail(e, &err, 0, false);
    PyObject *loan = PyCapsule_New(ctx, LOAN, NULL);
    if (!loan) {
        ggtok_pool_release(e->pool, ctx);
        return NULL;
    }
    Py_INCREF(self);
    PyCapsule_SetContext(loan, self);
    PyCapsule_SetDestructor(loan, loan_free);
    return loan;
}

/* (a context from take(), address of a text, its length in bytes, flags) -> its ids as the bytes of
 * int32s or, with GGTOK_SPANS, their spans as bytes */
static PyObject *encode_part(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    ggtok_context *ctx = PyCapsule_GetPointer(args[0], LOAN);
    const char *text = PyLong_AsVoidPtr(args[1]);
    size_t n = PyLong_AsSize_t(args[2]);
    unsigned long flags = PyLong_AsUnsignedLong(args[3]);
    if (PyErr_Occurred()) return NULL;
    ggtok_error err;
    ggtok_ids ids;
    long_call p;
    call_begin(&p, ctx, n);
    ggtok_status s = ggtok_encode(ctx, text, n, (unsigned)flags, &ids, &err);
    call_end(&p, ctx);
    if (s) return PyErr_Occurred() ? NULL : ggtok_python_fail(e, &err, 0, false);
    if (flags & GGTOK_SPANS) {
        PyObject *spans = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(ids.n * sizeof(ggtok_span)));
        if (!spans || !ggtok_spans(ctx, (void *)PyBytes_AsString(spans), &err)) return spans;
        Py_DECREF(spans);
        return ggtok_python_fail(e, &err, 0, false);
    }
    return PyBytes_FromStringAndSize((const char *)ids.data,
                                     (Py_ssize_t)(ids.n * sizeof *ids.data));
}

/* (the arguments of encode_part) -> number of bytes that can be encoded separately:
 * ggtok_safe_cut */
static PyObject *safe_cut(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    (void)self, (void)n_args;
    ggtok_context *ctx = PyCapsule_GetPointer(args[0], LOAN);
    const char *text = PyLong_AsVoidPtr(args[1]);
    size_t n = PyLong_AsSize_t(args[2]);
    unsigned long flags = PyLong_AsUnsignedLong(args[3]);
    if (PyErr_Occurred()) return NULL;
    long_call p;
    call_begin(&p, ctx, n);
    size_t at = ggtok_safe_cut(ctx, text, n, (unsigned)flags);
    call_end(&p, ctx);
    return PyErr_Occurred() ? NULL : PyLong_FromSize_t(at);
}

/* (bytes, add_special, parse_special, continuation, whether it isn't the first block, whether it is
 * the last) -> list of int or, unless it is the last, (list of int, number of bytes encoded):
 * ggtok_encode_block */
static PyObject *encode_block(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    SELF;
    (void)n_args;
    ggtok_error err;
    ggtok_ids ids;
    Py_ssize_t n;
    size_t used;
    unsigned flags;
    const ggtok_special_choice *choice;
    if (!ggtok_python_encode_flags(args + 1, &flags, &choice)) return NULL;
    if (args[4] == Py_True) flags |= GGTOK_NOT_FIRST_BLOCK;
    const char *text = ggtok_python_text_of(args[0], &n);
    ggtok_context *ctx = text ? ggtok_pool_acquire(e->pool, &err) : NULL;
    if (!ctx) return text ? ggtok_python_fail(e, &err, 0, false) : NULL;
    ggtok_context_set_special_choice(ctx, choice);
    long_call p;
    call_begin(&p, ctx, (size_t)n);
    bool is_last = args[5] == Py_True;
    ggtok_status s = is_last ? ggtok_encode(ctx, text, (size_t)n, flags, &ids, &err)
                             : ggtok_encode_block(ctx, text, (size_t)n, flags, &ids, &used, &err);
    call_end(&p, ctx);
    PyObject *list = s ? NULL : ggtok_python_list_of(e, ids.data, ids.n);
    ggtok_pool_release(e->pool, ctx);
    if (s && !PyErr_Occurred()) ggtok_python_fail(e, &err, 0, false);
    return !list || is_last ? list : Py_BuildValue("(Nn)", list, (Py_ssize_t)used);
}

/* (list of lists) -> None: makes the garbage collector track the lists it doesn't track yet */
static PyObject *track(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    (void)self, (void)n_args;
    for (Py_ssize_t i = 0, n = PyList_Size(args[0]); i < n; i++) {
        PyObject *list = PyList_GetItem(args[0], i);
        if (!PyObject_GC_IsTracked(list)) ggtok_python_list_end(list);
    }
    Py_RETURN_NONE;
}

/* ---- binding ---- */

#define BOUND(name) {#name, (PyCFunction)(void (*)(void))ggtok_python_##name, METH_FASTCALL, NULL}
#define METHOD(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef methods[] = {
    METHOD(encode),       METHOD(encode_array), METHOD(encode_trusted), METHOD(count),
    BOUND(decode),        BOUND(decode_at),     BOUND(encode_batch),    METHOD(clear),
    METHOD(take),         METHOD(encode_part),  METHOD(safe_cut),       METHOD(cache_info),
    METHOD(encode_spans), BOUND(choose),        METHOD(track),          METHOD(trace),
    METHOD(trace_token),  METHOD(encode_block), METHOD(sample),         METHOD(nbest),
    BOUND(chat),          BOUND(chat_compile),  BOUND(encode_parallel),
};

bool ggtok_python_bind_tokenizer(ggtok_tokenizer *tok, uintptr_t functions, uintptr_t error) {
    PyGILState_STATE gil = PyGILState_Ensure(); /* cffi released the GIL */
    bool bound = false;
    PyObject *capsule = NULL;
    entry *e = ggtok_mem_zalloc(sizeof *e);
    if (!e || ggtok_pool_new(tok, &e->pool, NULL)) goto done;
    e->error = (PyObject *)error;
    Py_INCREF(e->error);
    if (!(capsule = PyCapsule_New(e, CAPSULE, capsule_free))) goto done;
    bound = true;
    for (size_t i = 0; bound && i < sizeof methods / sizeof *methods; i++) {
        PyObject *function = PyCFunction_New(&methods[i], capsule);
        bound =
            function && !PyDict_SetItemString((PyObject *)functions, methods[i].ml_name, function);
        Py_XDECREF(function);
    }
    if (bound) e->tok = tok;
done:
    PyErr_Clear();
    if (capsule) {
        Py_DECREF(capsule);
    } else {
        free_entry(e);
    }
    PyGILState_Release(gil);
    return bound;
}
