/*
 * Finds the positions of a text that no special token crosses, so that the text can be cut there.
 */
#ifndef GGTOK_SPECIAL_PLACES_H
#define GGTOK_SPECIAL_PLACES_H

#include "special/set.h"

enum {
    SPECIAL_CROSSED = 1, /* judging by the text before the position, a token may cross it */
    SPECIAL_NEAR = 2,    /* a token may end here, or before white space that ends here */
    SPECIAL_BEGINS = 4   /* a token that begins here is accepted, and none crosses the position */
};

/* Sets places[i - from] for each position i (just before text[i]) with from <= i < to <= n; 0 <
 * from. */
void ggtok_special_places(const special_set *set, const vocab *v, const uint8_t *text, size_t from,
                          size_t to, uint8_t *places);

/* Returns the length of the longest token, or 0 if there are none. */
size_t ggtok_special_longest(const special_set *set, const vocab *v);

static inline bool special_is_space(uint8_t c) { /* whether tokens can strip c: C's isspace */
    return c == ' ' || (c >= '\t' && c <= '\r');
}

#endif
