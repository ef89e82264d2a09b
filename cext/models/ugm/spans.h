/*
 * Finds the spans of a text that are separated by ASCII white space.
 */
#ifndef GGTOK_UGM_SPANS_H
#define GGTOK_UGM_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UGM_SPANS = 512 };

typedef struct ugm_spans { /* text[start[i]..end[i]), i < n */
    size_t start[UGM_SPANS], end[UGM_SPANS], n;
    size_t at;     /* the text before it has been searched */
    bool newlines; /* \t, \n and \r are white space, like the space */
    bool open;     /* start[n] belongs to a span that ends after `at` */
} ugm_spans;

void ggtok_ugm_spans_begin(ugm_spans *s, bool newlines);

/* The next spans, possibly none; false: end of the text. */
bool ggtok_ugm_spans_next(ugm_spans *s, const uint8_t *text, size_t n);

#endif
