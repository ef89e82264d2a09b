/*
 * Where spans of a text between white space of ASCII begin and end.
 */
#ifndef GGTOK_UGM_SPANS_H
#define GGTOK_UGM_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UGM_SPANS = 512 };

typedef struct ugm_spans { /* text[start[i]..end[i]), i < n */
    size_t start[UGM_SPANS], end[UGM_SPANS], n;
    size_t at;     /* what lies before it has been looked at */
    bool newlines; /* \t, \n and \r are white space, as the space is */
    bool open;     /* start[n] is that of a span whose end is after `at` */
} ugm_spans;

void ggtok_ugm_spans_begin(ugm_spans *s, bool newlines);

/* The next spans; false: the text is used up. There may be none of them in it. */
bool ggtok_ugm_spans_next(ugm_spans *s, const uint8_t *text, size_t n);

#endif
