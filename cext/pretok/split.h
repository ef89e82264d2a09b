/* Splitting by the caller's function: calls a ggtok_split_fn and validates its result. */
#ifndef GGTOK_PRETOK_SPLIT_H
#define GGTOK_PRETOK_SPLIT_H

#include "base/mem.h"
#include "ggtok.h"

typedef struct split_ends { /* a buffer for the ends of words; zero-initialized */
    size_t *data;
    size_t cap;
} split_ends;

/* Splits text[0..n), which must be well-formed in the wide sense. Writes *count ends of words to
 * *ends: ascending, on character boundaries, the last equal to n. Calls `split` again if the
 * ends don't fit in the buffer. */
ggtok_status ggtok_split_text(ggtok_split_fn split, void *user, const uint8_t *text, size_t n,
                              split_ends *ends, size_t *count, ggtok_error *err);

#endif
