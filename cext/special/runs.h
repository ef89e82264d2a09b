/*
 * Special tokens that are runs of one byte, such as GPT-NeoX's of 2 to 24 spaces.
 *
 * If they were tokens like any other, they would overlap at each byte of a run, and partition would
 * take 30 times as long. Here one walk finds them all: in a run of L bytes the longest such token
 * takes its occurrences from the left, the next longest from the rest, and so on. This is exact if
 * nothing else takes any of these bytes (docs/design/partition.md).
 */
#ifndef GGTOK_PARTITION_RUNS_H
#define GGTOK_PARTITION_RUNS_H

#include "vocab/vocab.h"

typedef struct special_runs {
    int byte;                   /* -1: there are none */
    uint32_t shortest, longest; /* lengths of tokens, in bytes */
    int32_t *id;                /* [longest + 1], by length; GGTOK_NO_TOKEN: no such token */
    uint32_t *
        fit; /* [longest + 1]: length of the longest token that fits in a run of so many bytes; 0: none */
} special_runs;

/* Moves the tokens that are runs of one byte from ids[0..*n) to *r, if the other tokens allow it and
 * there are several. False: out of memory. */
bool ggtok_special_runs_take(special_runs *r, const vocab *v, int32_t *ids, size_t *n);
void ggtok_special_runs_free(special_runs *r);

/* The first run in text[from..to) that contains a token, or `to`; its length in *n. */
size_t ggtok_special_runs_next(const special_runs *r, const uint8_t *text, size_t from, size_t to,
                               size_t *n);

#endif
