/*
 * Partition: text -> raw fragments and special tokens.
 *
 * llama.cpp's rule: special tokens are processed in order of length, longest first; each
 * takes all its occurrences, leftmost first, in the text that is still raw. (This is not
 * leftmost-longest: in "<a><ab>..." a longer token further right goes first.)
 */
#ifndef GGTOK_PARTITION_H
#define GGTOK_PARTITION_H

#include "base/interrupt.h"
#include "special/set.h"

/* The ranges of a text that may contain reserved tokens (VOCAB_RESERVED): ascending, not empty, not
 * touching each other. */
typedef struct trusted_ranges {
    const ggtok_range *data;
    size_t n;
    bool all; /* this applies to all special tokens, user-defined ones, too */
} trusted_ranges;

typedef struct fragment {
    size_t pos, n; /* bytes of the text */
    int32_t id;    /* the special token, or GGTOK_NO_TOKEN: raw text */
} fragment;

typedef struct fragments {
    fragment *data;
    size_t n, cap;
} fragments;

/* Owned by one thread. */
typedef struct partition_scratch {
    fragments now, spare;
    uint64_t *heap;
    size_t heap_cap;
    bytebuf edges;        /* a bit for each position: does a token begin or end here? */
    interrupt *interrupt; /* the caller's, or NULL */
} partition_scratch;

/* Sets s->now to the fragments of text[0..n), in text order, none empty. With `trusted`, reserved
 * tokens are found only inside its ranges. False: out of memory, or interrupted. */
bool ggtok_partition_text(partition_scratch *s, const special_set *set, const vocab *v,
                          const uint8_t *text, size_t n, const trusted_ranges *trusted);
void ggtok_partition_scratch_free(partition_scratch *s); /* the scratch can be used again */
size_t ggtok_partition_scratch_bytes(const partition_scratch *s);

#endif
