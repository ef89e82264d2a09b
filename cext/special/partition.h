/*
 * Partition: text -> raw fragments and special tokens.
 *
 * llama.cpp's rule: special tokens are processed in order of length, longest first; each matches
 * all its occurrences, from left to right, in the text that is still raw. (This is not
 * leftmost-longest: in "<a><ab>..." a longer token further right is matched first.)
 */
#ifndef GGTOK_PARTITION_H
#define GGTOK_PARTITION_H

#include "base/interrupt.h"
#include "special/set.h"

/* The ranges of a text that may contain reserved tokens (VOCAB_RESERVED): in ascending order,
 * neither empty nor adjacent. */
typedef struct trusted_ranges {
    const ggtok_range *data;
    size_t n;
    bool all; /* restricts all special tokens to the ranges, including user-defined ones */
} trusted_ranges;

typedef struct fragment {
    size_t pos, n; /* position and length in the text, in bytes */
    int32_t id;    /* id of the special token; GGTOK_NO_TOKEN: raw text */
} fragment;

typedef struct fragments {
    fragment *data;
    size_t n, cap;
} fragments;

/* Scratch memory for partitioning, owned by one thread. */
typedef struct partition_scratch {
    fragments now, spare;
    uint64_t *heap;
    size_t heap_cap;
    bytebuf edges;        /* one bit per position: whether an accepted token begins or ends there */
    interrupt *interrupt; /* the caller's interrupt, or NULL */
} partition_scratch;

/* Sets s->now to the fragments of text[0..n), in text order, none empty. If `trusted` isn't NULL,
 * reserved tokens are found only inside its ranges. Returns false if out of memory or
 * interrupted. */
bool ggtok_partition_text(partition_scratch *s, const special_set *set, const vocab *v,
                          const uint8_t *text, size_t n, const trusted_ranges *trusted);
void ggtok_partition_scratch_free(partition_scratch *s); /* the scratch can be reused */
size_t ggtok_partition_scratch_bytes(const partition_scratch *s);

#endif
