/*
 * Finds the positions where a text can be cut without moving the end of a word: no decision of the
 * pre-tokenizer depends on characters on both sides. The two characters around a position determine
 * this. docs/design/blocks.md has the argument.
 */
#ifndef GGTOK_PRETOK_PLACES_H
#define GGTOK_PRETOK_PLACES_H

#include "pretok/pretok.h"

typedef struct pretok_places pretok_places;

/* Derives the positions from the automata of the row, in about 50 us per automaton. Returns NULL
 * if out of memory. */
pretok_places *ggtok_pretok_places_new(const pretok_row *row);
void ggtok_pretok_places_free(pretok_places *places); /* `places` may be NULL */

/*
 * What is known about a position between two code points (<= 10FFFF), whatever surrounds them. If
 * it is not PRETOK_CROSSED, the words of a text are those of its parts before and after the
 * position, except that a word that contains the position becomes two words.
 */
enum {
    PRETOK_CROSSED, /* nothing is known */
    PRETOK_APART,   /* a word may contain the position */
    PRETOK_BETWEEN  /* no word contains the position: a word ends there */
};
int ggtok_pretok_place(const pretok_places *places, uint32_t before, uint32_t after);

#endif
