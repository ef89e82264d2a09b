/*
 * Finds the spans in a text: the parts that are separated by ASCII white space.
 */
#ifndef GGTOK_UGM_SPANS_H
#define GGTOK_UGM_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UGM_SPANS = 512 };

typedef struct ugm_spans { /* span i is text[start[i]..end[i]) */
    size_t start[UGM_SPANS], end[UGM_SPANS], n;
    size_t at;     /* the text before `at` has been searched */
    bool newlines; /* \t, \n and \r also separate spans */
    bool open;     /* start[n] is the start of a span that ends after `at` */
} ugm_spans;

void ggtok_ugm_spans_begin(ugm_spans *s, bool newlines);

/* Finds the next spans, possibly none, in at most about INTERRUPT_EVERY bytes. Returns false at the
 * end of the text. */
bool ggtok_ugm_spans_next(ugm_spans *s, const uint8_t *text, size_t n);

#endif
