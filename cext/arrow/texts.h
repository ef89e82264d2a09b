/* Columns of strings, read in place from the memory of the library that made them. */
#ifndef GGTOK_ARROW_TEXTS_H
#define GGTOK_ARROW_TEXTS_H

#include "arrow/c_data.h"
#include "ggtok.h"

/* Texts in row order, which point into the columns' memory; data == NULL marks a null. The arrays
 * are released together with the texts. */
typedef struct arrow_texts {
    ggtok_bytes *data;
    size_t n, cap;
    size_t first_null; /* index of the first null row, or SIZE_MAX if there is none */
    struct ArrowArray *arrays;
    size_t n_arrays, cap_arrays;
    ggtok_interrupt_fn keep_going; /* called while rows are read; may be NULL */
    void *user;
} arrow_texts;

typedef struct arrow_column { /* the type of a column, as read from its schema */
    bool in_struct;
    uint8_t layout; /* layout of the texts (or of the dictionary's texts); see texts.c */
    uint8_t index_size;
    bool index_signed;
} arrow_column;

/*
 * Moves *from to *to and marks *from as released, so that nobody else uses its contents. If several
 * threads do this at the same time, one gets the struct; the others, and later callers, get
 * GGTOK_ERR_ARGUMENT. Other libraries move structs without such a guarantee, but most do it under
 * the GIL: if there is one, hold it during this call.
 */
ggtok_status ggtok_arrow_take_array(struct ArrowArray *from, struct ArrowArray *to,
                                    ggtok_error *err);
ggtok_status ggtok_arrow_take_stream(struct ArrowArrayStream *from, struct ArrowArrayStream *to,
                                     ggtok_error *err);

/*
 * Reads a schema without changing it. Supported types are strings and binaries (also large ones and
 * views), dictionaries of them, nulls, and structs with one such field.
 *
 * GGTOK_ERR_UNSUPPORTED: another type. GGTOK_ERR_ARGUMENT: the schema is malformed or released.
 */
ggtok_status ggtok_arrow_schema_read(const struct ArrowSchema *schema, arrow_column *column,
                                     ggtok_error *err);

/*
 * Appends the texts of an array that the caller got from ggtok_arrow_take_array. `t` keeps the
 * array; on failure, it is released at once.
 *
 * GGTOK_ERR_ARGUMENT for arrays that are detectably malformed: a wrong number of buffers or
 * children, negative or decreasing offsets, indices beyond a dictionary, views beyond their
 * buffers, missing buffers. Every number is read once, so later changes to it are harmless. The
 * texts themselves may change at any time; see GGTOK_COPY_TEXTS.
 */
ggtok_status ggtok_arrow_texts_add(arrow_texts *t, const arrow_column *column,
                                   struct ArrowArray *array, ggtok_error *err);

/* Appends the texts of all arrays of a stream that the caller got from ggtok_arrow_take_stream. The
 * stream is always released. */
ggtok_status ggtok_arrow_texts_read(arrow_texts *t, struct ArrowArrayStream *stream,
                                    ggtok_error *err);

/* Releases the arrays and frees the list of texts. */
void ggtok_arrow_texts_free(arrow_texts *t);

#endif
