/*
 * What the patterns that windows implement have in common, and how they differ. A shape is a row
 * of constants; each pattern gets its own code, compiled for its shape. Classes are masks of one
 * window (bit i: byte i), in terms of which the formulas of starts.h are written.
 */
#ifndef GGTOK_PRETOK_SHAPE_H
#define GGTOK_PRETOK_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shape {
    /* Words of letters. */
    bool any_prefix;   /* the prefix is [^\r\n\p{L}\p{N}]?; otherwise it is only a space, which is
                        * a prefix of numbers, too */
    bool ascii_prefix; /* ... but punctuation is one only if it and the next letter are ASCII */
    bool cased;        /* a lower-case letter ends a word before an upper-case one */
    bool han;          /* Chinese letters are words, without a prefix */
    bool han_apart;    /* ... and are cut out first: white space ends before them */
    /* White space and newlines. */
    bool newline_words; /* \s*[\r\n]+ */
    bool joined;        /* newlines join the punctuation before them, */
    bool slashes;       /* ... and so do slashes after these newlines */
    /* Punctuation: everything but letters, digits and white space. */
    bool punct_apart; /* cut out first: no space is its prefix, and white space ends before it */
    enum { NO_CONTRACTIONS, OWN_WORD, SUFFIX } contractions; /* SUFFIX: part of the word before */
    bool either_case;                                        /* ... in upper and lower case */
    /* Digits. */
    unsigned digits;      /* maximum digits of a word; 0: no limit */
    bool prefixed_digits; /* ... and a space is the prefix of a word with fewer */
    bool digits_apart;    /* cut out first: white space ends before them */
    /* Bytes that are in no class, so left to the automaton. */
    bool no_controls, no_backtick, no_digits;
    enum { NO_GAPS, CODER, LLM } gaps; /* deepseek's first patterns, see gap_starts */
} shape;

/* White space is space, other_white or newline, three disjoint sets. */
typedef struct classes {
    uint64_t letter, upper, digit, space, other_white, newline, quote, slash, control, symbol;
    uint64_t high, inner; /* bytes from 0x80 on; continuation bytes among them */
    uint64_t han;         /* letters that patterns with `han` treat differently */
} classes;

#endif
