/*
 * Special tokens that are runs of one byte, such as GPT-NeoX's tokens of 2 to 24 spaces.
 *
 * If they were handled like other tokens, they would overlap at each byte of a run, and partition
 * would take 30 times as long. Here one pass over the text finds them all: in a run of L bytes, the
 * longest such token matches as often as it fits, from the left, the next longest matches in the
 * rest, and so on. This is exact if no other token can match any of these bytes
 * (docs/design/partition.md).
 */
#ifndef GGTOK_PARTITION_RUNS_H
#define GGTOK_PARTITION_RUNS_H

#include "vocab/vocab.h"

typedef struct special_runs {
    int byte;                   /* the byte of the runs; -1: there are no run tokens */
    uint32_t shortest, longest; /* lengths of the shortest and longest run token, in bytes */
    int32_t *id;                /* [longest + 1], ids by length; GGTOK_NO_TOKEN: no such token */
    uint32_t *fit; /* [longest + 1], by run length: length of the longest fitting token; 0: none */
} special_runs;

/* Moves tokens that are runs of one byte from ids[0..*n) to *r, if there are several and the other
 * tokens allow it. Returns false if out of memory. */
bool ggtok_special_runs_take(special_runs *r, const vocab *v, int32_t *ids, size_t *n);
void ggtok_special_runs_free(special_runs *r);

/* Returns the first run in text[from..to) that contains a token, or `to`; sets *n to its length. */
size_t ggtok_special_runs_next(const special_runs *r, const uint8_t *text, size_t from, size_t to,
                               size_t *n);

#endif
