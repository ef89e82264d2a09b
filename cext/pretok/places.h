/*
 * Between which characters a pre-tokenizer never looks: where a text may be cut without
 * moving an end of a word. docs/design/blocks.md has the argument.
 */
#ifndef GGTOK_PRETOK_PLACES_H
#define GGTOK_PRETOK_PLACES_H

#include "pretok/pretok.h"

typedef struct pretok_places pretok_places;

/* Worked out from the automata of the row, some 50 us each. NULL: out of memory. */
pretok_places *ggtok_pretok_places_new(const pretok_row *row);
void ggtok_pretok_places_free(pretok_places *places); /* NULL is allowed */

/*
 * What is known of each place between two code points (<= 10FFFF), whatever stands around
 * them. If it is not PRETOK_CROSSED, the words of a text are those of its parts before and
 * after the place, but that the word around it, if there is one, is two words then.
 */
enum {
    PRETOK_CROSSED, /* nothing */
    PRETOK_APART,   /* there may be a word around it */
    PRETOK_BETWEEN  /* there is none: a word ends here */
};
int ggtok_pretok_place(const pretok_places *places, uint32_t before, uint32_t after);

#endif
