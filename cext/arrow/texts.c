#include "arrow/texts.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdatomic.h>

enum { ROWS_BETWEEN_ASKING = 1 << 20 }; /* rows between two calls to keep_going */

/* A buffer with more rows doesn't fit into the address space. */
#define MAX_ROWS (SIZE_MAX > UINT32_MAX ? INT64_C(1) << 45 : INT64_C(1) << 30)

typedef enum layout { NO_TEXTS, OFFSETS_32, OFFSETS_64, VIEWS, ALL_NULL } layout;

/* ---- types ---- */

static const struct {
    const char *format;
    layout layout;
} LAYOUTS[] = {{"u", OFFSETS_32}, {"U", OFFSETS_64}, {"vu", VIEWS},  {"z", OFFSETS_32},
               {"Z", OFFSETS_64}, {"vz", VIEWS},     {"n", ALL_NULL}};

static const struct {
    char format;
    uint8_t size;
    bool is_signed;
} INDICES[] = {{'c', 1, true}, {'C', 1, false}, {'s', 2, true}, {'S', 2, false},
               {'i', 4, true}, {'I', 4, false}, {'l', 8, true}, {'L', 8, false}};

static ggtok_status malformed(ggtok_error *err, const char *what) {
    return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "malformed Arrow data: %s", what);
}

/* ---- taking ownership ---- */

typedef void (*array_release)(struct ArrowArray *);
typedef void (*stream_release)(struct ArrowArrayStream *);

/*
 * A struct is valid while its `release` isn't NULL; `private_data` is the only field after
 * `release`. Exchanging `release` for NULL atomically decides which thread gets the struct, with or
 * without a GIL.
 */
#define TAKE(from, to, function, what) \
    do { \
        function release = atomic_exchange((_Atomic(function) *)&(from)->release, NULL); \
        if (!release) return malformed(err, what " was released before, or is in use"); \
        memcpy(to, from, (size_t)((char *)&(from)->release - (char *)(from))); \
        (to)->release = release; \
        (to)->private_data = (from)->private_data; \
        return GGTOK_OK; \
    } while (0)

ggtok_status ggtok_arrow_take_array(struct ArrowArray *from, struct ArrowArray *to,
                                    ggtok_error *err) {
    TAKE(from, to, array_release, "the array");
}

ggtok_status ggtok_arrow_take_stream(struct ArrowArrayStream *from, struct ArrowArrayStream *to,
                                     ggtok_error *err) {
    TAKE(from, to, stream_release, "the stream");
}

/* ---- schemas ---- */

static const char *format_of(const struct ArrowSchema *schema) {
    return schema->format ? schema->format : "";
}

static ggtok_status unsupported(const struct ArrowSchema *schema, const char *what,
                                ggtok_error *err) {
    return ggtok_error_set(err, GGTOK_ERR_UNSUPPORTED,
                           "%s must be of strings (string, large_string, string_view), binaries "
                           "or a dictionary of them, but its Arrow format is '%.40s'",
                           what, format_of(schema));
}

static layout layout_of(const struct ArrowSchema *schema) {
    for (size_t i = 0; i < sizeof LAYOUTS / sizeof *LAYOUTS; i++) {
        if (!strcmp(format_of(schema), LAYOUTS[i].format)) return LAYOUTS[i].layout;
    }
    return NO_TEXTS;
}

ggtok_status ggtok_arrow_schema_read(const struct ArrowSchema *schema, arrow_column *c,
                                     ggtok_error *err) {
    *c = (arrow_column){0};
    const char *what = "the column";
    if (!schema->release) return malformed(err, "the schema was released before");
    if (!strcmp(format_of(schema), "+s")) {
        if (schema->n_children != 1) {
            return ggtok_error_set(err, GGTOK_ERR_UNSUPPORTED,
                                   "a table of one column is needed, but this one has %lld: "
                                   "select the column of texts",
                                   (long long)schema->n_children);
        }
        if (!schema->children || !(schema = schema->children[0])) {
            return malformed(err, "a struct without its field");
        }
        c->in_struct = true;
        what = "the table's column";
    }
    if (!schema->dictionary) {
        c->layout = layout_of(schema);
        return c->layout ? GGTOK_OK : unsupported(schema, what, err);
    }
    for (size_t i = 0; i < sizeof INDICES / sizeof *INDICES; i++) {
        if (format_of(schema)[0] == INDICES[i].format && !format_of(schema)[1]) {
            c->index_size = INDICES[i].size;
            c->index_signed = INDICES[i].is_signed;
        }
    }
    if (!c->index_size) return malformed(err, "the indices of a dictionary are not integers");
    c->layout = schema->dictionary->dictionary ? NO_TEXTS : layout_of(schema->dictionary);
    return c->layout ? GGTOK_OK : unsupported(schema->dictionary, "the column's dictionary", err);
}

/* ---- loading numbers from memory that may change or be unaligned ---- */

/* `volatile` keeps the compiler from reading the number again after it was checked. */
static int64_t load_64(const void *base, size_t i) {
    int64_t number;
    memcpy(&number, (const char *)base + 8 * i, sizeof number);
    volatile int64_t once = number;
    return once;
}

static int32_t load_32(const void *base, size_t i) {
    int32_t number;
    memcpy(&number, (const char *)base + 4 * i, sizeof number);
    volatile int32_t once = number;
    return once;
}

/* Returns -1 if the index doesn't fit in int64_t. */
static int64_t load_index(const arrow_column *c, const void *base, size_t i) {
    uint8_t byte;
    uint16_t two;
    switch (c->index_size) {
    case 1:
        memcpy(&byte, (const char *)base + i, sizeof byte);
        return c->index_signed ? (int8_t)byte : byte;
    case 2:
        memcpy(&two, (const char *)base + 2 * i, sizeof two);
        return c->index_signed ? (int16_t)two : two;
    case 4: {
        int32_t four = load_32(base, i);
        return c->index_signed ? four : (int64_t)(uint32_t)four;
    }
    default: {
        int64_t eight = load_64(base, i);
        return eight < 0 ? -1 : eight;
    }
    }
}

/* ---- arrays ---- */

typedef struct values { /* the rows of an array that is being read */
    layout layout;
    size_t first, n;
    const uint8_t *validity;    /* validity bitmap; NULL: no nulls */
    const void *numbers;        /* offsets, views, or indices into a dictionary */
    const char *data;           /* for layouts with offsets: the bytes of the texts */
    int64_t limit;              /* size of `data` in bytes, which is the last offset */
    const void *const *buffers; /* for VIEWS: the data buffers */
    const void *sizes;          /* for VIEWS: the sizes of the data buffers */
    int64_t n_buffers;
} values;

/* Reads and checks the fields that all kinds of arrays have in common. */
static ggtok_status begin(const struct ArrowArray *a, int64_t n_buffers, values *v,
                          ggtok_error *err) {
    if (a->length < 0 || a->offset < 0 || a->length > MAX_ROWS || a->offset > MAX_ROWS) {
        return malformed(err, "an array's length or offset is negative, or too large");
    }
    v->first = (size_t)a->offset;
    v->n = (size_t)a->length;
    if (!v->n || v->layout == ALL_NULL) return GGTOK_OK; /* such an array may have no buffers */
    if (a->n_buffers < n_buffers || !a->buffers) return malformed(err, "an array lacks buffers");
    if (a->null_count < -1 || a->null_count > a->length) {
        return malformed(err, "an array's number of nulls is wrong");
    }
    if (a->null_count && !(v->validity = a->buffers[0]) && a->null_count > 0) {
        return malformed(err, "an array has nulls, but no validity buffer");
    }
    return GGTOK_OK;
}

static ggtok_status begin_texts(const struct ArrowArray *a, layout layout, values *v,
                                ggtok_error *err) {
    *v = (values){.layout = layout};
    ggtok_status s = begin(a, layout == VIEWS ? 2 : 3, v, err);
    if (s || !v->n || layout == ALL_NULL) return s;
    if (!(v->numbers = a->buffers[1])) {
        return malformed(err, "an array of texts has no offsets or views");
    }
    if (layout == VIEWS) {
        v->n_buffers = a->n_buffers > 3 ? a->n_buffers - 3 : 0;
        v->buffers = a->buffers + 2;
        v->sizes = a->buffers[a->n_buffers - 1];
        if (v->n_buffers && !v->sizes) return malformed(err, "an array of views has no sizes");
    } else {
        v->data = a->buffers[2];
    }
    return GGTOK_OK;
}

/* Reads the size of the data from the buffer of offsets. Call this after allocating memory for the
 * rows, so that an array that claims more rows than fit in memory is refused before its buffers are
 * read. */
static ggtok_status read_limit(values *v, ggtok_error *err) {
    if (!v->n || (v->layout != OFFSETS_32 && v->layout != OFFSETS_64)) return GGTOK_OK;
    size_t last = v->first + v->n;
    v->limit = v->layout == OFFSETS_32 ? load_32(v->numbers, last) : load_64(v->numbers, last);
    if (v->limit < 0) return malformed(err, "an offset of texts is negative");
    if (v->limit && !v->data) return malformed(err, "an array of texts has no data");
    return GGTOK_OK;
}

static bool is_null(const values *v, size_t i) {
    size_t at = v->first + i;
    return v->layout == ALL_NULL || (v->validity && !(v->validity[at / 8] >> at % 8 & 1));
}

static ggtok_status read_view(const values *v, size_t at, ggtok_bytes *text, ggtok_error *err) {
    enum { IN_PLACE = 12 };
    const char *view = (const char *)v->numbers + 16 * at;
    int32_t n = load_32(view, 0);
    if (n < 0) return malformed(err, "a view of a text has a negative length");
    text->n = (size_t)n;
    text->data = view + 4;
    if (n <= IN_PLACE) return GGTOK_OK;
    int32_t buffer = load_32(view, 2), from = load_32(view, 3);
    if (buffer < 0 || buffer >= v->n_buffers || from < 0 || !v->buffers[buffer] ||
        load_64(v->sizes, (size_t)buffer) < (int64_t)from + n) {
        return malformed(err, "a view of a text points outside of its buffers");
    }
    text->data = (const char *)v->buffers[buffer] + from;
    return GGTOK_OK;
}

/* Reads the i-th row, which must not be null. */
static ggtok_status read_text(const values *v, size_t i, ggtok_bytes *text, ggtok_error *err) {
    size_t at = v->first + i;
    if (v->layout == VIEWS) return read_view(v, at, text, err);
    bool wide = v->layout == OFFSETS_64;
    int64_t from = wide ? load_64(v->numbers, at) : load_32(v->numbers, at);
    int64_t to = wide ? load_64(v->numbers, at + 1) : load_32(v->numbers, at + 1);
    if (from < 0 || to < from || to > v->limit || (uint64_t)(to - from) > SIZE_MAX / 2) {
        return malformed(err, "the offsets of texts are negative or decrease");
    }
    text->n = (size_t)(to - from);
    text->data = text->n ? v->data + from : ""; /* an empty text isn't a null */
    return GGTOK_OK;
}

/* ---- rows ---- */

typedef struct rows {
    const arrow_column *column;
    values parent; /* the struct around the column, if any: only its nulls are used */
    values items;  /* the column's texts, or its indices into `texts` */
    values texts;
} rows;

static ggtok_status begin_rows(const struct ArrowArray *a, const arrow_column *c, rows *r,
                               ggtok_error *err) {
    *r = (rows){.column = c};
    ggtok_status s;
    const struct ArrowArray *items = a;
    if (c->in_struct) {
        if ((s = begin(a, 1, &r->parent, err))) return s;
        if (a->n_children != 1 || !a->children || !(items = a->children[0])) {
            return malformed(err, "an array of structs lacks its field");
        }
    }
    if ((items->dictionary != NULL) != (c->index_size > 0)) {
        return malformed(err, "an array and its schema differ in having a dictionary");
    }
    if (!c->index_size) {
        s = begin_texts(items, c->layout, &r->items, err);
    } else if (!(s = begin(items, 2, &r->items, err)) && r->items.n) {
        r->items.numbers = items->buffers[1];
        if (!r->items.numbers) return malformed(err, "a dictionary's indices are missing");
        s = begin_texts(items->dictionary, c->layout, &r->texts, err);
    }
    if (s || !c->in_struct) return s;
    if (r->items.n < r->parent.first || r->items.n - r->parent.first < r->parent.n) {
        return malformed(err, "an array of structs is longer than its field");
    }
    return GGTOK_OK;
}

/* Reads the text of a row into *text; {NULL, 0} if it is null. */
static ggtok_status read_row(const rows *r, size_t i, ggtok_bytes *text, ggtok_error *err) {
    *text = (ggtok_bytes){0};
    if (r->column->in_struct) {
        if (is_null(&r->parent, i)) return GGTOK_OK;
        i += r->parent.first;
    }
    if (is_null(&r->items, i)) return GGTOK_OK;
    if (!r->column->index_size) return read_text(&r->items, i, text, err);
    int64_t at = load_index(r->column, r->items.numbers, r->items.first + i);
    if (at < 0 || (uint64_t)at >= r->texts.n) {
        return malformed(err, "an index is outside of its dictionary");
    }
    return is_null(&r->texts, (size_t)at) ? GGTOK_OK : read_text(&r->texts, (size_t)at, text, err);
}

/* Grows `data`, which has n elements of `size` bytes, to hold `extra` more. */
static bool grow(void **data, size_t n, size_t *cap, size_t extra, size_t size) {
    if (*cap - n >= extra) return true;
    size_t least = extra > SIZE_MAX - n ? SIZE_MAX : n + extra;
    size_t new_cap = *cap < least / 2 ? least : *cap < SIZE_MAX / 2 ? 2 * *cap : SIZE_MAX;
    if (new_cap < least) new_cap = least;
    void *grown = ggtok_mem_realloc(*data, mem_mul(new_cap, size));
    if (!grown) return false;
    *data = grown;
    *cap = new_cap;
    return true;
}

static ggtok_status add_rows(arrow_texts *t, rows *r, ggtok_error *err) {
    size_t n = r->column->in_struct ? r->parent.n : r->items.n;
    void *data = t->data;
    if (!grow(&data, t->n, &t->cap, n, sizeof *t->data)) return ggtok_error_memory(err);
    t->data = data;
    ggtok_status s = read_limit(r->column->index_size ? &r->texts : &r->items, err);
    if (s) return s;
    for (size_t i = 0; i < n; i++) {
        if (i % ROWS_BETWEEN_ASKING == 0 && t->keep_going && !t->keep_going(t->user)) {
            return ggtok_error_set(err, GGTOK_ERR_STOPPED, "the caller asked to stop");
        }
        if ((s = read_row(r, i, &t->data[t->n], err))) return s;
        if (!t->data[t->n].data && t->first_null == SIZE_MAX) t->first_null = t->n;
        t->n++;
    }
    return GGTOK_OK;
}

ggtok_status ggtok_arrow_texts_add(arrow_texts *t, const arrow_column *c, struct ArrowArray *array,
                                   ggtok_error *err) {
    rows r;
    size_t before = t->n;
    ggtok_status s = begin_rows(array, c, &r, err);
    void *arrays = t->arrays;
    if (!s && !grow(&arrays, t->n_arrays, &t->cap_arrays, 1, sizeof *t->arrays)) {
        s = ggtok_error_memory(err);
    }
    t->arrays = arrays;
    if (!s) s = add_rows(t, &r, err);
    if (s || t->n == before) {
        array->release(array);
    } else {
        t->arrays[t->n_arrays++] = *array;
    }
    return s;
}

/* ---- streams ---- */

static ggtok_status stream_failed(struct ArrowArrayStream *stream, int code, ggtok_error *err) {
    const char *said = stream->get_last_error ? stream->get_last_error(stream) : NULL;
    return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "the Arrow stream failed: %.400s",
                           said && *said ? said : strerror(code));
}

ggtok_status ggtok_arrow_texts_read(arrow_texts *t, struct ArrowArrayStream *stream,
                                    ggtok_error *err) {
    struct ArrowSchema schema = {0};
    arrow_column c;
    int code = stream->get_schema(stream, &schema);
    ggtok_status s =
        code ? stream_failed(stream, code, err) : ggtok_arrow_schema_read(&schema, &c, err);
    while (!s) {
        struct ArrowArray array = {0};
        if (t->keep_going && !t->keep_going(t->user)) {
            s = ggtok_error_set(err, GGTOK_ERR_STOPPED, "the caller asked to stop");
        } else if ((code = stream->get_next(stream, &array))) {
            s = stream_failed(stream, code, err);
        } else if (!array.release) {
            break; /* end of the stream */
        } else {
            s = ggtok_arrow_texts_add(t, &c, &array, err);
        }
    }
    if (schema.release) schema.release(&schema);
    stream->release(stream);
    return s;
}

void ggtok_arrow_texts_free(arrow_texts *t) {
    for (size_t i = 0; i < t->n_arrays; i++) t->arrays[i].release(&t->arrays[i]);
    ggtok_mem_free(t->arrays);
    ggtok_mem_free(t->data);
    *t = (arrow_texts){0};
}
