/*
 * Places of a text that no special token reaches across, for cutting it there.
 */
#ifndef GGTOK_SPECIAL_PLACES_H
#define GGTOK_SPECIAL_PLACES_H

#include "special/set.h"

enum {
    SPECIAL_CROSSED = 1, /* one may reach across the place, as far as the text before it tells */
    SPECIAL_NEAR = 2,    /* one may end there, or before white space that ends there */
    SPECIAL_BEGINS = 4   /* one begins there and is taken, and nothing reaches across */
};

/* Sets places[i - from] for each place i, from <= i < to <= n, 0 < from: the one before text[i]. */
void ggtok_special_places(const special_set *set, const vocab *v, const uint8_t *text, size_t from,
                          size_t to, uint8_t *places);

/* The length of the longest token, 0 if there are none. */
size_t ggtok_special_longest(const special_set *set, const vocab *v);

static inline bool special_is_space(uint8_t c) { /* what tokens strip: C's isspace */
    return c == ' ' || (c >= '\t' && c <= '\r');
}

#endif
