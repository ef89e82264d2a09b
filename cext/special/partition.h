/*
 * Partition: text -> raw fragments and special tokens.
 *
 * llama.cpp's rule: special tokens in order of length, longest first; each takes
 * all its occurrences, leftmost first, out of what is still raw. (That is not
 * leftmost-longest: in "<a><ab>..." a longer token further right goes first.)
 */
#ifndef GGTOK_PARTITION_H
#define GGTOK_PARTITION_H

#include "base/interrupt.h"
#include "special/set.h"

/* Where a text may hold reserved tokens (VOCAB_RESERVED): ascending ranges, none empty, that
 * don't touch each other. */
typedef struct trusted_ranges {
    const ggtok_range *data;
    size_t n;
    bool all; /* all special tokens, user-defined ones too, are looked for there alone */
} trusted_ranges;

typedef struct fragment {
    size_t pos, n; /* bytes of the text */
    int32_t id;    /* the special token, or GGTOK_NO_TOKEN: raw text */
} fragment;

typedef struct fragments {
    fragment *data;
    size_t n, cap;
} fragments;

/* A thread's own. */
typedef struct partition_scratch {
    fragments now, spare;
    uint64_t *heap;
    size_t heap_cap;
    bytebuf edges;        /* a bit for each place: does a token begin or end here? */
    interrupt *interrupt; /* the caller's, or NULL */
} partition_scratch;

/* Sets s->now to the fragments of text[0..n), in text order, none empty. With
 * `trusted`, reserved tokens are found only inside one of its ranges.
 * False: out of memory, or interrupted. */
bool ggtok_partition_text(partition_scratch *s, const special_set *set, const vocab *v,
                          const uint8_t *text, size_t n, const trusted_ranges *trusted);
void ggtok_partition_scratch_free(partition_scratch *s); /* it can be used again */
size_t ggtok_partition_scratch_bytes(const partition_scratch *s);

#endif
