/* Columns of strings, in the memory of the library that made them. */
#ifndef GGTOK_ARROW_TEXTS_H
#define GGTOK_ARROW_TEXTS_H

#include "arrow/c_data.h"
#include "ggtok.h"

/* Texts in the order of their rows, where their column holds them; data == NULL: a null. The
 * arrays are kept, unreleased, as long as the texts. */
typedef struct arrow_texts {
    ggtok_bytes *data;
    size_t n, cap;
    size_t first_null; /* row, or SIZE_MAX: there is none */
    struct ArrowArray *arrays;
    size_t n_arrays, cap_arrays;
    ggtok_go_on_fn go_on; /* asked while rows are read, or NULL */
    void *user;
} arrow_texts;

/*
 * Appends the texts of an array of `schema`, which is only looked at; *array is moved away, and
 * released at once if this fails. Taken are strings and binaries (also large ones and views),
 * dictionaries of them, nulls, and structs with one such field.
 *
 * GGTOK_ERR_UNSUPPORTED: columns of another type. GGTOK_ERR_ARGUMENT: malformed ones, as far as
 * that can be seen: what has a wrong number of buffers or children, negative or decreasing
 * offsets, indices beyond a dictionary, views beyond their buffers, missing buffers. Every
 * number is read once, so that one which changes afterwards does no harm. The texts themselves
 * may change at any time: see GGTOK_COPY_TEXTS.
 */
ggtok_status ggtok_arrow_texts_add(arrow_texts *t, const struct ArrowSchema *schema,
                                   struct ArrowArray *array, ggtok_error *err);

/* Appends those of all arrays of a stream, which is released, whatever happens. */
ggtok_status ggtok_arrow_texts_read(arrow_texts *t, struct ArrowArrayStream *stream,
                                    ggtok_error *err);

/* Releases the arrays. */
void ggtok_arrow_texts_free(arrow_texts *t);

#endif
