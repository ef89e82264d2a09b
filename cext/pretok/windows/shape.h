/*
 * What the patterns that are cut by windows have in common, and where they differ. A shape is a
 * row of constants from which each pattern gets code of its own; classes are the masks of one
 * window (bit i: byte i) in which the formulas of starts.h are written.
 */
#ifndef GGTOK_PRETOK_SHAPE_H
#define GGTOK_PRETOK_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shape {
    /* Words of letters. */
    bool any_prefix;   /* [^\r\n\p{L}\p{N}]? is their prefix; else only a space is, and it is one
                        * of numbers, too */
    bool ascii_prefix; /* ... but punctuation only before letters of ASCII, and only ASCII's */
    bool cased;        /* a lower-case letter ends a word before an upper-case one */
    bool han;          /* Chinese letters are words, without a prefix */
    bool han_apart;    /* ... and cut out first: white space ends before them */
    /* White space and newlines. */
    bool newline_words; /* \s*[\r\n]+ */
    bool joined;        /* newlines join the punctuation before them */
    bool slashes;       /* ... and so do slashes after those */
    /* Punctuation: all that is no letter, digit or white space. */
    bool punct_apart; /* cut out first: no space is its prefix, and white space ends before it */
    enum { NO_CONTRACTIONS, OWN_WORD, SUFFIX } contractions; /* SUFFIX: part of the word before */
    bool either_case;                                        /* ... in either case */
    /* Digits. */
    unsigned digits;      /* most digits a word has; 0: no limit */
    bool prefixed_digits; /* ... and a space is the prefix of those that are fewer */
    bool digits_apart;    /* cut out first: white space ends before them */
    /* Bytes that are in no class: left to the automaton. */
    bool no_controls, no_backtick, no_digits;
    enum { NO_GAPS, CODER, LLM } gaps; /* deepseek's first patterns, see gap_starts */
} shape;

/* White space is space, other_white or newline, three disjoint sets. */
typedef struct classes {
    uint64_t letter, upper, digit, space, other_white, newline, quote, slash, control, symbol;
    uint64_t high, inner; /* bytes from 0x80 on; those among them that continue a character */
    uint64_t han;         /* letters that patterns with `han` tell from others */
} classes;

#endif
