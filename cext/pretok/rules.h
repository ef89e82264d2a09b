/*
 * The rules by which the scanners of llama.cpp's chain found each word, for ggtok_trace. The words
 * come from a walk (pretok.h), which may use a chain of fewer scanners; the functions below run
 * llama.cpp's chain to find the rules.
 */
#ifndef GGTOK_PRETOK_RULES_H
#define GGTOK_PRETOK_RULES_H

#include "pretok/pretok.h"

typedef struct pretok_rule {
    const char *scanner;    /* name of the scanner's expression */
    const char *expression; /* the alternative that matched; NULL: the piece is between matches */
} pretok_rule;

typedef struct pretok_rules {
    const pretok_row *row;
    const uint8_t *text;
    size_t n;
    unsigned n_stages;
    pretok_rule rule[PRETOK_MAX_CHAIN]; /* rules for the current word, one per stage */
    struct {
        size_t begin, end; /* the stage's current piece */
        pretok_stage cuts;
    } stage[PRETOK_MAX_CHAIN];
} pretok_rules;

/* Starts at the beginning of a text, like ggtok_pretok_begin. */
void ggtok_pretok_rules_begin(pretok_rules *r, const pretok_row *row, const uint8_t *text,
                              size_t n);

/* Sets r->rule for the next word, text[begin..end). Returns false if llama.cpp's chain finds
 * a different word. */
bool ggtok_pretok_rules_next(pretok_rules *r, size_t begin, size_t end);

#endif
