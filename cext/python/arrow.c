/*
 * Arrow data to and from Python: the PyCapsule interface
 * (arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html). A capsule holds an Arrow
 * struct. A consumer moves the struct's contents out; the capsule's destructor releases contents
 * that no consumer has moved.
 */
#include "python/arrow.h"

#include "python/bind.h"
#include "python/internal.h"
#include "python/signals.h"

#define SCHEMA "arrow_schema"
#define ARRAY "arrow_array"
#define STREAM "arrow_array_stream"
#define TEXTS "ggtok.arrow_texts"
#define IDS "ggtok.arrow_ids"

static PyObject *error_class;

/* Raises the error. Returns NULL (or false). */
static void *fail(const ggtok_error *err) {
    PyObject *args = Py_BuildValue("(y#O)", err, (Py_ssize_t)sizeof *err, Py_None);
    if (args) PyErr_SetObject(error_class, args);
    Py_XDECREF(args);
    return NULL;
}

/* ---- import ---- */

typedef struct raised { /* an exception to restore later */
    PyObject *type, *value, *traceback;
} raised;

/* Releases the arrays without holding the GIL, since the producer's release function may wait for a
 * thread that needs it. If the function is Python code, it must not see a pending exception. */
static void texts_free(PyObject *capsule) {
    raised r;
    arrow_texts *texts = PyCapsule_GetPointer(capsule, TEXTS);
    PyErr_Fetch(&r.type, &r.value, &r.traceback);
    PyThreadState *state = PyEval_SaveThread();
    ggtok_arrow_texts_free(texts);
    PyEval_RestoreThread(state);
    PyErr_Restore(r.type, r.value, r.traceback);
    ggtok_mem_free(texts);
}

typedef struct reading {
    python_call call;
    raised raised; /* an exception from a signal handler */
} reading;

static bool keep_going(void *user) {
    reading *r = user;
    if (ggtok_python_keep_going(&r->call)) return true;
    PyEval_RestoreThread(r->call.thread);
    PyErr_Fetch(&r->raised.type, &r->raised.value, &r->raised.traceback);
    r->call.thread = PyEval_SaveThread();
    return false;
}

const arrow_texts *ggtok_python_arrow_texts(PyObject *capsule) {
    return PyCapsule_GetPointer(capsule, TEXTS);
}

/* The contents of a capsule, or of a pair of capsules, moved here so that only this call uses
 * them. */
typedef struct contents {
    bool is_array;
    arrow_column column; /* the type of the array, from its schema */
    struct ArrowArray array;
    struct ArrowArrayStream stream;
} contents;

/*
 * Moves the contents of the capsules to *t. Runs under the GIL, which other libraries also hold
 * when they move contents out of the same capsule. Without a GIL, threads of ggtok are still safe
 * from each other; see ggtok_arrow_take_array. Returns false with an exception set.
 */
static bool take(PyObject *first, PyObject *second, contents *t) {
    ggtok_error err;
    *t = (contents){.is_array = second != Py_None};
    if (!t->is_array) {
        struct ArrowArrayStream *stream = PyCapsule_GetPointer(first, STREAM);
        if (stream && ggtok_arrow_take_stream(stream, &t->stream, &err)) return fail(&err);
        return stream != NULL;
    }
    const struct ArrowSchema *schema = PyCapsule_GetPointer(first, SCHEMA);
    struct ArrowArray *array = schema ? PyCapsule_GetPointer(second, ARRAY) : NULL;
    if (array && (ggtok_arrow_schema_read(schema, &t->column, &err) ||
                  ggtok_arrow_take_array(array, &t->array, &err))) {
        return fail(&err);
    }
    return array != NULL;
}

/* (capsule of a stream, None, whether this is the main thread) or (capsule of a schema, capsule of
 * an array, whether this is the main thread) -> (capsule of texts, number of texts, first row that
 * is null, or None) */
static PyObject *read_texts(PyObject *self, PyObject *args) {
    PyObject *first, *second, *main;
    ggtok_error err;
    contents t;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO", &first, &second, &main)) return NULL;
    arrow_texts *texts = ggtok_mem_zalloc(sizeof *texts);
    PyObject *capsule = texts ? PyCapsule_New(texts, TEXTS, texts_free) : NULL;
    if (!capsule) {
        ggtok_mem_free(texts);
        return PyErr_NoMemory();
    }
    if (!take(first, second, &t)) {
        Py_DECREF(capsule);
        return NULL;
    }
    texts->first_null = SIZE_MAX;
    reading r = {0};
    ggtok_python_leave(&r.call);
    if (main == Py_True) texts->keep_going = keep_going, texts->user = &r;
    ggtok_status s = t.is_array ? ggtok_arrow_texts_add(texts, &t.column, &t.array, &err)
                                : ggtok_arrow_texts_read(texts, &t.stream, &err);
    ggtok_python_return(&r.call);
    texts->keep_going = NULL;
    if (s) {
        Py_DECREF(capsule);
        if (!r.raised.type) return fail(&err);
        PyErr_Restore(r.raised.type, r.raised.value, r.raised.traceback);
        return NULL;
    }
    PyObject *null = Py_None;
    if (texts->first_null == SIZE_MAX) {
        Py_INCREF(null);
    } else {
        null = PyLong_FromSize_t(texts->first_null);
    }
    return Py_BuildValue("(NnN)", capsule, (Py_ssize_t)texts->n, null);
}

/* ---- export ---- */

static void ids_free(PyObject *capsule) {
    ggtok_arrow_ids_drop(PyCapsule_GetPointer(capsule, IDS));
}

PyObject *ggtok_python_arrow_ids(arrow_ids *ids) {
    PyObject *capsule = PyCapsule_New(ids, IDS, ids_free);
    if (!capsule) ggtok_arrow_ids_drop(ids);
    return capsule;
}

static void schema_free(PyObject *capsule) {
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, SCHEMA);
    if (schema->release) schema->release(schema);
    ggtok_mem_free(schema);
}

static void array_free(PyObject *capsule) {
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, ARRAY);
    if (array->release) array->release(array);
    ggtok_mem_free(array);
}

/* () -> capsule of a schema */
static PyObject *schema(PyObject *self, PyObject *args) {
    (void)self, (void)args;
    struct ArrowSchema *schema = ggtok_mem_zalloc(sizeof *schema);
    if (!schema || !ggtok_arrow_ids_schema(schema)) {
        ggtok_mem_free(schema);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(schema, SCHEMA, schema_free);
    if (!capsule) {
        schema->release(schema);
        ggtok_mem_free(schema);
    }
    return capsule;
}

/* (capsule of ids) -> capsule of an array */
static PyObject *export(PyObject *self, PyObject *ids_capsule) {
    (void)self;
    arrow_ids *ids = PyCapsule_GetPointer(ids_capsule, IDS);
    if (!ids) return NULL;
    struct ArrowArray *array = ggtok_mem_zalloc(sizeof *array);
    if (!array || !ggtok_arrow_ids_export(ids, array)) {
        ggtok_mem_free(array);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(array, ARRAY, array_free);
    if (!capsule) {
        array->release(array);
        ggtok_mem_free(array);
    }
    return capsule;
}

/* (capsule of ids) -> (rows, nulls) */
static PyObject *sizes(PyObject *self, PyObject *ids_capsule) {
    (void)self;
    const arrow_ids *ids = PyCapsule_GetPointer(ids_capsule, IDS);
    if (!ids) return NULL;
    return Py_BuildValue("(nn)", (Py_ssize_t)ggtok_arrow_ids_rows(ids),
                         (Py_ssize_t)ggtok_arrow_ids_nulls(ids));
}

static PyMethodDef functions[] = {
    {"read_texts", read_texts, METH_VARARGS, NULL},
    {"schema", schema, METH_NOARGS, NULL},
    {"export", export, METH_O, NULL},
    {"sizes", sizes, METH_O, NULL},
};

bool ggtok_arrow_bind(uintptr_t list, uintptr_t error) {
    return ggtok_python_bind(functions, sizeof functions / sizeof *functions, list, error,
                             &error_class);
}
