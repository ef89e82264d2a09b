/*
 * A growing set of texts, numbered in order of insertion. The texts are stored by the set's owner,
 * whose callback returns the i-th text.
 */
#ifndef GGTOK_INTERNED_H
#define GGTOK_INTERNED_H

#include "base/hash.h"

typedef struct interned {
    uint32_t *slots; /* open addressing, at most half full: text number + 1, or 0 */
    size_t mask;
    size_t reach; /* greatest distance from a home slot; see base/hash.h */
    uint64_t seed;
    uint32_t n;
} interned;

#define TEXTSET_NONE UINT32_MAX

/* A callback that returns the i-th text of `owner` and sets *n to its length. */
typedef const uint8_t *interned_text(const void *owner, uint32_t i, size_t *n);

/* Returns the number of the text p[0..n), or TEXTSET_NONE. */
uint32_t ggtok_interned_find(const interned *s, interned_text *text, const void *owner,
                             const uint8_t *p, size_t n);

/* Adds the owner's text number s->n, which must not be in the set yet. Returns false if out of
 * memory. */
bool ggtok_interned_add(interned *s, interned_text *text, const void *owner);
void ggtok_interned_free(interned *s);

#endif
