/*
 * The rules by which the scanners of llama.cpp's chain found a word, for ggtok_trace. The words come
 * from a walk (pretok.h), which may use a chain of fewer scanners; this follows them.
 */
#ifndef GGTOK_PRETOK_RULES_H
#define GGTOK_PRETOK_RULES_H

#include "pretok/pretok.h"

typedef struct pretok_rule {
    const char *scanner;    /* the name of its expression */
    const char *expression; /* the alternative that matched; NULL: the piece is between matches */
} pretok_rule;

typedef struct pretok_rules {
    const pretok_row *row;
    const uint8_t *text;
    size_t n;
    unsigned n_stages;
    pretok_rule rule[PRETOK_MAX_CHAIN]; /* of the current word, one for each stage */
    struct {
        size_t begin, end; /* the current piece of the stage */
        pretok_stage cuts;
    } stage[PRETOK_MAX_CHAIN];
} pretok_rules;

/* Starts at the beginning of a text: see ggtok_pretok_begin. */
void ggtok_pretok_rules_begin(pretok_rules *r, const pretok_row *row, const uint8_t *text,
                              size_t n);

/* Sets r->rule for the next word, text[begin..end). False: the chain cuts another word. */
bool ggtok_pretok_rules_next(pretok_rules *r, size_t begin, size_t end);

#endif
