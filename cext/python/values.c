/*
 * Reads Python objects in place, which takes a few tens of nanoseconds per object; going through
 * JSON would take several times as long. Runs under the GIL.
 *
 * Reading objects of plain types runs no Python code. `convert`, for all others, does, so each
 * container is held while it is read, and its size is checked for each item.
 */
#include "python/values.h"

#include <stdarg.h>
#include <stdio.h>

#include "python/internal.h"

/* Bounds of a request. Objects can contain the same object many times, so a few lists can stand for
 * any number of values; JSON text can't. */
enum { MOST_VALUES = 1 << 24, MOST_BYTES = 1 << 30 };

_Noreturn void ggtok_python_raised(reader *r) {
    r->raised = true;
    ggtok_jinja_fail(r->call.mem, "a Python exception");
}

void ggtok_python_hold(reader *r, PyObject *object) {
    if (r->n_held == r->cap_held) {
        size_t cap = 2 * r->cap_held + 16;
        PyObject **more = ggtok_mem_realloc(r->held, mem_mul(cap, sizeof *more));
        if (!more) {
            PyErr_NoMemory();
            ggtok_python_raised(r);
        }
        r->held = more;
        r->cap_held = cap;
    }
    Py_INCREF(object);
    r->held[r->n_held++] = object;
}

/* Like ggtok_python_hold, for a new reference, which may be NULL with an exception set. */
static PyObject *hold_new(reader *r, PyObject *object) {
    if (!object) ggtok_python_raised(r);
    ggtok_python_hold(r, object);
    Py_DECREF(object);
    return object;
}

static void drop(reader *r) {
    while (r->n_held) Py_DECREF(r->held[--r->n_held]);
    ggtok_mem_free(r->held);
    r->held = NULL;
    r->cap_held = 0;
}

/* Refuses an object of a request: "messages[0]['content']: ...". */
static _Noreturn void refuse(reader *r, chat_fault fault, const chat_path *at, const char *format,
                             ...) {
    char says[400];
    va_list args;
    va_start(args, format);
    if (vsnprintf(says, sizeof says, format, args) >= (int)sizeof says)
        text_drop_partial(says, sizeof says - 1);
    va_end(args);
    ggtok_chat_refuse(&r->call, fault, NULL, "%s: %s", ggtok_chat_path(&r->call, at), says);
}

static _Noreturn void refuse_type(reader *r, PyObject *object, const chat_path *at) {
    char type[84] = "?"; /* room for 20 characters */
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    PyObject *some = name ? PyUnicode_Substring(name, 0, 20) : NULL;
    const char *text = some ? PyUnicode_AsUTF8AndSize(some, NULL) : NULL;
    if (text) snprintf(type, sizeof type, "%s", text);
    PyErr_Clear();
    Py_XDECREF(some);
    Py_XDECREF(name);
    bool is_item = !at->name && at->parent && !at->parent->parent; /* a message or a tool */
    ggtok_chat_refuse(
        &r->call, CHAT_WRONG_TYPE, NULL, "%s%s, not %s%s", ggtok_chat_path(&r->call, at),
        is_item ? " must be a mapping" : ": must be str, a number, bool, None, a list or a mapping",
        type,
        PyCallable_Check(object)
            ? " (transformers.utils.get_json_schema makes a schema of a function)"
            : "");
}

/* ---- texts ---- */

/* Adds to a text the ranges that the template wrote. ggtok's subclasses of str have them as an
 * attribute. */
static jinja_text *with_ranges(reader *r, PyObject *object, jinja_text *text) {
    jinja_arena *mem = r->call.mem;
    PyObject *ranges = PyObject_GetAttrString(object, "ranges");
    if (!ranges || !PyTuple_Check(ranges)) {
        PyErr_Clear();
        Py_XDECREF(ranges);
        return text;
    }
    hold_new(r, ranges);
    jinja_builder b = ggtok_jinja_builder_new(mem, 0);
    b.merge = true;
    size_t at = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(ranges); i++) {
        PyObject *range = PyTuple_GetItem(ranges, i);
        bool pair = PyTuple_Check(range) && PyTuple_Size(range) == 2;
        Py_ssize_t begin = pair ? PyLong_AsSsize_t(PyTuple_GetItem(range, 0)) : -1;
        Py_ssize_t end = pair ? PyLong_AsSsize_t(PyTuple_GetItem(range, 1)) : -1;
        if (begin < (Py_ssize_t)at || end < begin || (size_t)end > text->n) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a text's ranges are wrong");
            ggtok_python_raised(r);
        }
        ggtok_jinja_builder_cut(&b, text, at, (size_t)begin);
        ggtok_jinja_builder_add(&b, text->data + begin, (size_t)(end - begin), JINJA_FROM_TEMPLATE);
        at = (size_t)end;
    }
    ggtok_jinja_builder_cut(&b, text, at, text->n);
    return ggtok_jinja_text_fuse(mem, ggtok_jinja_builder_end(&b));
}

static _Noreturn void refuse_surrogate(reader *r, PyObject *object, const chat_path *at) {
    Py_ssize_t i = 0;
    if (!r->is_request) ggtok_python_raised(r);
    PyErr_Clear();
    for (; i < PyUnicode_GetLength(object); i++) {
        Py_UCS4 c = PyUnicode_ReadChar(object, i);
        if (c >= 0xD800 && c < 0xE000) break;
    }
    refuse(r, CHAT_WRONG_VALUE, at, "character %lld is a lone surrogate, which JSON can't contain",
           (long long)i);
}

static jinja_text *read_text(reader *r, PyObject *object, const chat_path *at) {
    enum { SHORT = 1 << 12 }; /* characters; for longer texts, CPython would keep the UTF-8 */
    Py_ssize_t n;
    const char *data;
    PyObject *encoded = NULL;
    if (PyUnicode_GetLength(object) <= SHORT) {
        data = PyUnicode_AsUTF8AndSize(object, &n);
    } else {
        encoded = PyUnicode_AsUTF8String(object);
        char *bytes = NULL;
        if (encoded) ggtok_python_hold(r, encoded);
        data = encoded && !PyBytes_AsStringAndSize(encoded, &bytes, &n) ? bytes : NULL;
        Py_XDECREF(encoded);
    }
    if (!data) refuse_surrogate(r, object, at);
    if ((r->n_bytes += (size_t)n) > MOST_BYTES && r->is_request)
        refuse(r, CHAT_WRONG_VALUE, at,
               "the request's texts have more than 1 GiB, with each text "
               "counted as often as it occurs");
    ggtok_jinja_env_grow(r->env, (size_t)n);
    jinja_text *text = ggtok_jinja_text_copy(r->call.mem, data, (size_t)n, 0);
    if (encoded) Py_DECREF(r->held[--r->n_held]); /* a long text isn't kept twice */
    return PyUnicode_CheckExact(object) || r->is_request ? text : with_ranges(r, object, text);
}

/* ---- numbers ---- */

/* Reads an integer of more than 64 bits. */
static jinja_value read_big(reader *r, PyObject *object, const chat_path *at) {
    enum { MOST_BITS = 14000 }; /* Python prints at most 4,300 digits */
    Py_ssize_t n;
    if (r->is_request && r->dialect == JINJA_LLAMA_CPP) {
        unsigned long long u = PyLong_AsUnsignedLongLong(object);
        if (!PyErr_Occurred()) {
            jinja_value v = jinja_int((int64_t)u);
            v.is_unsigned = true;
            return v;
        }
        PyErr_Clear();
        double f = PyLong_AsDouble(object);
        if (!PyErr_Occurred()) return jinja_float(f);
        PyErr_Clear();
        refuse(r, CHAT_WRONG_VALUE, at, "an integer too large for a double");
    }
    PyObject *bits = hold_new(r, PyObject_CallMethod(object, "bit_length", NULL));
    if (r->is_request && PyLong_AsLong(bits) > MOST_BITS)
        refuse(r, CHAT_WRONG_VALUE, at, "an integer that is too long to be written");
    PyObject *digits = hold_new(r, PyObject_Str(object));
    const char *text = PyUnicode_AsUTF8AndSize(digits, &n);
    if (!text) ggtok_python_raised(r);
    return ggtok_jinja_read_json(r->call.mem, text, (size_t)n, 0, r->dialect);
}

static jinja_value read_int(reader *r, PyObject *object, const chat_path *at) {
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow) return read_big(r, object, at);
    if (i == -1 && PyErr_Occurred()) ggtok_python_raised(r);
    return jinja_int(i);
}

static jinja_value read_float(reader *r, PyObject *object, const chat_path *at) {
    double f = PyFloat_AsDouble(object);
    if (f - f == 0 || r->dialect == JINJA_TRANSFORMERS) return jinja_float(f);
    const char *name = f != f ? "nan" : f > 0 ? "inf" : "-inf";
    if (r->is_request) refuse(r, CHAT_WRONG_VALUE, at, "%s can't be written as JSON", name);
    PyErr_SetString(PyExc_ValueError, "JSON has neither NaN nor infinities");
    ggtok_python_raised(r);
}

/* ---- lists and dicts ---- */

/* Returns an object's slot in a cache with 2^bits slots. */
static size_t slot_of(const PyObject *object, int bits) {
    return (uint32_t)((uintptr_t)object >> 4) * 0x9E3779B1u >> (32 - bits);
}

static const chat_shape *row_of(const chat_shape *shape, const char *key, size_t n) {
    for (; shape->key; shape++) {
        if (shape->n == n && !memcmp(shape->key, key, n)) return shape;
    }
    return NULL;
}

static _Noreturn void refuse_key(reader *r, PyObject *object, const chat_path *at) {
    if (!r->is_request) {
        PyErr_SetString(PyExc_TypeError, "a key is not a str");
        ggtok_python_raised(r);
    }
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    const char *type = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    PyErr_Clear(); /* a metaclass may have any `__name__` */
    if (name) ggtok_python_hold(r, name);
    Py_XDECREF(name);
    refuse(r, CHAT_WRONG_TYPE, at, "a key is %s, not str", type ? type : "?");
}

/* Reads a key of a dict, or finds it in the cache if the same object was a key before. */
static void read_key(reader *r, PyObject *object, const chat_shape *shape, const chat_path *at,
                     int level, dict_key *out) {
    dict_key *cached = &r->keys[slot_of(object, KEY_BITS)];
    if (cached->object == object && cached->shape == shape) {
        *out = *cached;
        return;
    }
    *out = (dict_key){.object = object, .shape = shape};
    if (PyUnicode_Check(object)) {
        Py_ssize_t n;
        out->name = PyUnicode_AsUTF8AndSize(object, &n);
        if (!out->name) refuse_surrogate(r, object, at);
        if (!shape)
            out->value = jinja_of_text(read_text(r, object, at));
        else if ((out->row = row_of(shape, out->name, (size_t)n)))
            out->value = r->names[out->row->name];
    } else if (r->is_request || r->dialect == JINJA_LLAMA_CPP) {
        refuse_key(r, object, at);
    } else {
        out->value = ggtok_python_read_object(r, object, NULL, NULL, at, level);
        if (!ggtok_jinja_hashable(r->call.mem, out->value)) {
            PyErr_SetString(PyExc_TypeError, "a key is not hashable");
            ggtok_python_raised(r);
        }
    }
    if (PyUnicode_CheckExact(object)) {
        ggtok_python_hold(r, object);
        *cached = *out;
    }
}

/* Reads a message's role. The same object is converted once; `sameas` tells the texts apart. */
static jinja_value read_role(reader *r, PyObject *object, const chat_path *at, int level) {
    size_t slot = slot_of(object, ROLE_BITS);
    if (r->roles[slot].object == object) {
        const jinja_text *role = r->roles[slot].text;
        return jinja_of_text(ggtok_jinja_text_of(r->call.mem, role->data, role->n, 0));
    }
    jinja_value v = ggtok_python_read_object(r, object, NULL, NULL, at, level);
    if (PyUnicode_CheckExact(object)) {
        ggtok_python_hold(r, object);
        r->roles[slot].object = object;
        r->roles[slot].text = v.as.text;
    }
    return v;
}

/* Whether reading the object can't run Python code, which subclasses can bring. */
static bool is_plain(PyObject *object) {
    return PyUnicode_CheckExact(object) || object == Py_None || PyBool_Check(object) ||
           PyLong_CheckExact(object) || PyFloat_CheckExact(object);
}

static jinja_value read_dict(reader *r, PyObject *object, const chat_shape *shape,
                             const chat_path *at, int level) {
    jinja_arena *mem = r->call.mem;
    Py_ssize_t pos = 0;
    PyObject *key, *value;
    size_t room = (size_t)PyDict_Size(object);
    jinja_dict *dict = ggtok_jinja_dict_new(mem, shape && room > 4 ? 4 : room);
    bool distinct = true; /* only subclasses of str can have equal texts */
    while (PyDict_Next(object, &pos, &key, &value)) {
        dict_key k;
        if (!is_plain(value)) { /* Python code might change the dict */
            ggtok_python_hold(r, key);
            ggtok_python_hold(r, value);
        }
        read_key(r, key, shape, at, level, &k);
        if (shape && !k.row) continue;
        const chat_path inside = {at, k.name ? k.name : "", 0};
        jinja_value v = k.row && k.row->name == CHAT_ROLE
                            ? read_role(r, value, &inside, level)
                            : ggtok_python_read_object(r, value, k.row ? k.row->value : NULL,
                                                       k.row ? k.row->items : NULL, &inside, level);
        distinct = distinct && PyUnicode_CheckExact(key);
        if (distinct)
            ggtok_jinja_dict_add(mem, dict, k.value, v);
        else
            ggtok_jinja_dict_set(mem, dict, k.value, v);
    }
    return jinja_of_dict(dict);
}

static jinja_value read_items(reader *r, PyObject *object, const chat_shape *items,
                              const chat_path *at, int level) {
    bool tuple = PyTuple_Check(object);
    jinja_list *list = ggtok_jinja_list_new(
        r->call.mem, (size_t)(tuple ? PyTuple_Size(object) : PyList_Size(object)));
    for (Py_ssize_t i = 0; i < (tuple ? PyTuple_Size(object) : PyList_Size(object)); i++) {
        PyObject *item = tuple ? PyTuple_GetItem(object, i) : PyList_GetItem(object, i);
        const chat_path inside = {at, NULL, (size_t)i};
        if (!is_plain(item)) ggtok_python_hold(r, item);
        ggtok_jinja_list_push(r->call.mem, list,
                              ggtok_python_read_object(r, item, items, NULL, &inside, level));
    }
    bool keep = tuple && r->dialect == JINJA_TRANSFORMERS;
    return keep ? jinja_of_tuple(list) : jinja_of_list(list);
}

/* Returns an object of a plain type for one of another type. */
static PyObject *converted(reader *r, PyObject *object, const chat_path *at) {
    if (!r->convert) {
        PyErr_Format(PyExc_TypeError, "templates take plain data, not %R",
                     (PyObject *)Py_TYPE(object));
        ggtok_python_raised(r);
    }
    PyObject *plain = hold_new(r, PyObject_CallFunctionObjArgs(r->convert, object, NULL));
    if (!PyDict_CheckExact(plain) && !PyList_CheckExact(plain) && !PyTuple_CheckExact(plain))
        refuse_type(r, object, at);
    return plain;
}

jinja_value ggtok_python_read_object(reader *r, PyObject *object, const chat_shape *shape,
                                     const chat_shape *items, const chat_path *at, int level) {
    jinja_arena *mem = r->call.mem;
    jinja_value v;
    jinja_charge(mem, 1);
    if (++r->n_values > MOST_VALUES && r->is_request)
        refuse(r, CHAT_WRONG_VALUE, at,
               "the request has more than %d values, with each object "
               "counted as often as it occurs",
               MOST_VALUES);
    ggtok_jinja_env_grow(r->env, 8);
    if (PyUnicode_Check(object)) return jinja_of_text(read_text(r, object, at));
    if (object == Py_None) return jinja_none();
    if (PyBool_Check(object)) return jinja_bool(object == Py_True);
    if (PyLong_Check(object)) return read_int(r, object, at);
    if (PyFloat_Check(object)) return read_float(r, object, at);
    if (r->is_request && level == CHAT_MAX_DEPTH)
        refuse(r, CHAT_WRONG_VALUE, at, "nested more than %d deep", CHAT_MAX_DEPTH);
    bool is_exact =
        PyDict_CheckExact(object) || PyList_CheckExact(object) || PyTuple_CheckExact(object);
    bool nests = PyDict_Check(object) || PyList_Check(object) || PyTuple_Check(object);
    jinja_enter(mem);
    if (!is_exact && (r->convert || !nests)) object = converted(r, object, at);
    if (PyDict_Check(object))
        v = read_dict(r, object, shape, at, level + 1);
    else
        v = read_items(r, object, items, at, level + 1);
    jinja_leave(mem);
    return v;
}

/* ---- from values to objects ---- */

static PyObject *text_object(const jinja_text *t) {
    return PyUnicode_DecodeUTF8((const char *)t->data, (Py_ssize_t)t->n, "replace");
}

static PyObject *dict_object(const jinja_dict *dict) {
    PyObject *out = PyDict_New();
    for (uint32_t i = 0; out && i < dict->n; i++) {
        PyObject *key = ggtok_python_object_of(dict->entries[i].key),
                 *value = key ? ggtok_python_object_of(dict->entries[i].value) : NULL;
        if (!value || PyDict_SetItem(out, key, value)) Py_CLEAR(out);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return out;
}

static PyObject *list_object(const jinja_list *list) {
    PyObject *out = PyList_New(0);
    for (uint32_t i = 0; out && i < list->n; i++) {
        PyObject *item = ggtok_python_object_of(list->data[i]);
        if (!item || PyList_Append(out, item)) Py_CLEAR(out);
        Py_XDECREF(item);
    }
    return out;
}

static PyObject *big_object(const jinja_text *digits) {
    PyObject *text = text_object(digits), *out = NULL;
    const char *data = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (data) out = PyLong_FromString(data, NULL, 10);
    Py_XDECREF(text);
    return out;
}

PyObject *ggtok_python_object_of(jinja_value v) {
    switch (v.type) {
    case JINJA_BOOL: return PyBool_FromLong(v.as.truth);
    case JINJA_INT:
        return v.is_unsigned ? PyLong_FromUnsignedLongLong((unsigned long long)v.as.i)
                             : PyLong_FromLongLong(v.as.i);
    case JINJA_FLOAT: return PyFloat_FromDouble(v.as.f);
    case JINJA_STRING: return text_object(v.as.text);
    case JINJA_BIG: return big_object(v.as.text);
    case JINJA_LIST:
    case JINJA_TUPLE: return list_object(v.as.list);
    case JINJA_DICT: return dict_object(v.as.dict);
    default: return Py_INCREF(Py_None), Py_None;
    }
}

/* ---- reading ---- */

void ggtok_python_read_variables(jinja_arena *mem, void *user) {
    reader *r = user;
    Py_ssize_t at = 0, n;
    PyObject *key, *value;
    (void)mem;
    while (PyDict_Next(r->variables, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &n) : NULL;
        if (!name) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "a variable's name is not a str");
            ggtok_python_raised(r);
        }
        ggtok_jinja_env_set(r->env, name, (size_t)n,
                            ggtok_python_read_object(r, value, NULL, NULL, NULL, 0));
    }
}

reader ggtok_python_reader(jinja_env *env, jinja_dialect dialect) {
    return (reader){.env = env,
                    .call = {.mem = ggtok_jinja_env_arena(env), .language = CHAT_PYTHON},
                    .dialect = dialect};
}

ggtok_status ggtok_python_read(reader *r, void (*body)(jinja_arena *mem, void *user),
                               jinja_error *err) {
    ggtok_status status = ggtok_jinja_protect(r->call.mem, body, r, err);
    drop(r);
    return status;
}
