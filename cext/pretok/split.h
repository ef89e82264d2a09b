/* Words that the caller cuts: a ggtok_split_fn, asked and checked. */
#ifndef GGTOK_PRETOK_SPLIT_H
#define GGTOK_PRETOK_SPLIT_H

#include "base/mem.h"
#include "ggtok.h"

typedef struct split_ends { /* room for the ends of words; all zero at first */
    size_t *data;
    size_t cap;
} split_ends;

/* Cuts text[0..n), well-formed in the wide sense: writes *count ends, ascending, none inside a
 * character, the last equal to n; asks again with more room if that is needed. */
ggtok_status ggtok_split_text(ggtok_split_fn split, void *user, const uint8_t *text, size_t n,
                              split_ends *ends, size_t *count, ggtok_error *err);

#endif
