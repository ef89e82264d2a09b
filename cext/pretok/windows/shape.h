/*
 * Shapes describe how the patterns that windows implement differ. A shape is a row of constants;
 * each pattern gets its own code, compiled for its shape. Classes are masks of one window (bit i:
 * byte i), to which the formulas of starts.h apply.
 */
#ifndef GGTOK_PRETOK_SHAPE_H
#define GGTOK_PRETOK_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shape {
    /* Words of letters. */
    bool any_prefix;   /* a word may begin with one character of [^\r\n\p{L}\p{N}]; otherwise its
                          only prefix is a space, which numbers may have, too */
    bool ascii_prefix; /* punctuation is a prefix only if it and the next letter are ASCII */
    bool cased;        /* a lower-case letter ends a word before an upper-case one */
    bool han;          /* Chinese letters are words, without a prefix */
    bool han_apart;    /* these words are cut out first, so white space ends before them */
    /* White space and newlines. */
    bool newline_words; /* \s*[\r\n]+ is a word */
    bool joined;        /* newlines join the punctuation before them */
    bool slashes;       /* and slashes join these newlines */
    /* Punctuation: everything but letters, digits and white space. */
    bool punct_apart; /* cut out first: no space is its prefix, and white space ends before it */
    enum { NO_CONTRACTIONS, OWN_WORD, SUFFIX } contractions; /* SUFFIX: part of the word before */
    bool either_case;                                        /* contractions in upper case, too */
    /* Digits. */
    unsigned digits;      /* maximum digits per word; 0: no limit */
    bool prefixed_digits; /* a word of fewer than `digits` digits may have a space as prefix */
    bool digits_apart;    /* cut out first: white space ends before them */
    /* Bytes that are in no class and therefore left to the automaton. */
    bool no_controls, no_backtick, no_digits;
    enum { NO_GAPS, CODER, LLM } gaps; /* for deepseek-coder and -llm; see gap_starts */
} shape;

/* White space consists of space, other_white and newline, which are disjoint. */
typedef struct classes {
    uint64_t letter, upper, digit, space, other_white, newline, quote, slash, control, symbol;
    uint64_t high, inner; /* high: bytes from 0x80 on; inner: the continuation bytes among them */
    uint64_t han;         /* letters that patterns with `han` treat differently */
} classes;

#endif
