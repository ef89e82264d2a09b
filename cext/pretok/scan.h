/*
 * Scanners: the elements of the chains in pretok/names.c. A scanner cuts a piece of text into
 * matches and the gaps between them; both are words.
 *
 * Most are automata, written to pretok/dfa.inc by gen/pretok_dfa.py; the others count characters.
 * docs/design/pretokenizers.md explains the automata.
 */
#ifndef GGTOK_PRETOK_SCAN_H
#define GGTOK_PRETOK_SCAN_H

#include "pretok/pretok.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

typedef struct pretok_scanner pretok_scanner;

/* Cuts from st->pos on: writes at most max (>= 1) ends of pieces in ascending order, and sets
 * st->pos to the last. Returns their number, which is at least one. On entry, st->pos
 * must be less than st->end. */
typedef size_t pretok_cut(const pretok_scanner *self, const uint8_t *text, pretok_stage *st,
                          size_t *ends, size_t max);

/*
 * For each character, an automaton reads one cell of the table `next`: in the row of
 * its state and the column of the character. A state is the offset of its row in
 * `next`; the initial state is 0. A cell is:
 *
 *   below begin           the next state
 *   below PRETOK_SAVE     the next state; a match ended before this character,
 *                         which is the first of the next match
 *   PRETOK_SAVE + state   the next state; a match ends before this character,
 *                         but a longer one may follow
 *   PRETOK_MEMO + state   the next state, which is memo_state
 *   PRETOK_STOP_HERE      a match ends before this character; no longer match is possible
 *   PRETOK_STOP_SAVED     no other match can end from here on
 *   PRETOK_STOP_BACK      as PRETOK_STOP_SAVED, and the last match ended one character back
 *   PRETOK_STOP_DECODE    the character is not ASCII: look up its class's column
 */
enum {
    PRETOK_SAVE = 0x4000,
    PRETOK_MEMO = 0x8000,
    PRETOK_STOP_HERE = 0xC000,
    PRETOK_STOP_SAVED = 0xC001,
    PRETOK_STOP_DECODE = 0xC002,
    PRETOK_STOP_BACK = 0xC003,
    PRETOK_STATE = 0x3FFF, /* mask of the state */
    PRETOK_COLUMN_END = 1, /* the column for the end of the piece */
    PRETOK_NO_MEMO = 0xFFFF
};

/* How a pattern classifies characters beyond ASCII: as letters, punctuation, letters of a third
 * class (`han` in gen/pretok_patterns.py), or others. */
typedef struct pretok_high {
    uint8_t leads[16]; /* bit r of leads[b]: the lead byte 0xC0 + 16 * r + b begins only letters */
    /* For code point 64 * b + i: bit i of planes[2 * b] is set for letters, of planes[2 * b + 1]
     * for others, of both for letters of the third class, and of neither for punctuation. */
    uint64_t planes[2048];
} pretok_high;

/* An instruction of a pattern's program, which a backtracking matcher runs: consume a character of
 * sets[set], or (PRETOK_RULE_LOOK) only check it, and go to `to`; or try `to`, then `other`
 * (PRETOK_RULE_SPLIT). */
typedef struct pretok_step {
    uint16_t set, to, other;
} pretok_step;

enum {
    PRETOK_RULE_SPLIT = 0xFFFF, /* value of `set` */
    PRETOK_RULE_LOOK = 0x8000,
    PRETOK_RULE_NONE = 0xFFFF, /* value of `to` or `other` */
    PRETOK_RULE_STEPS = 2048,  /* maximum instructions of a program */
    PRETOK_SET_WORDS = 4,      /* a set has a bit for each ASCII character, for each class of */
    PRETOK_SET_END = 255       /* other characters (from bit 128 on), and for the end of the text */
};

struct pretok_scanner {
    pretok_cut *cut;
    /* For pretok/rules.c; set for the scanners of llama.cpp's chains. */
    const char *name;
    const char *const *rules; /* the pattern's alternatives, as regular expressions */
    const pretok_step *steps; /* the program; its first n_rules steps are the ends of the
                                 alternatives */
    const uint64_t (*sets)[PRETOK_SET_WORDS];
    unsigned n_rules, n_steps, first;
    /* For automata only. */
    const uint16_t *next;
    const uint8_t *ascii;  /* column of each byte; from 0x80 on 0, the column of STOP_DECODE */
    const uint8_t *class_; /* column of each class of code points */
    unsigned begin; /* states from this one on are copies that record that a match has just ended */
    unsigned memo_state; /* state of the loop whose failures `memo` records; or PRETOK_NO_MEMO */
    const pretok_high *high; /* NULL if no windows implement the pattern */
    /* For windows only: the automaton for text that they can't decide. */
    const pretok_scanner *plain;
};

struct pretok_row {
    const char *name;   /* value of tokenizer.ggml.pre */
    const char *source; /* suffix of llama.cpp's LLAMA_VOCAB_PRE_TYPE_* */
    unsigned flags;
    const pretok_scanner *chain[PRETOK_MAX_CHAIN]; /* as in llama.cpp; NULL after the last */
    /* An equivalent chain of fewer scanners; empty if there is none. */
    const pretok_scanner *fast[PRETOK_MAX_CHAIN];
};

/* Starts a walk with row->chain instead of row->fast: the reference for tests. */
void ggtok_pretok_begin_plain(pretok_walk *w, const pretok_row *row, const uint8_t *text, size_t n);

pretok_cut ggtok_pretok_dfa_cut;
pretok_cut ggtok_pretok_line_cut; /* like dfa_cut, but stops at the end of the line at st->pos */

/* Divides runs of numeric characters (category N) into groups of three, counted from the right end
 * of the run. Cuts only at the right end of each group: "ab1234c" becomes ab1 234 c. */
extern const pretok_scanner ggtok_pretok_groups_right;

/* Cuts before an ASCII digit if the number of digits from there to the end of their run is a
 * multiple of three: "ab1234c" becomes ab1 234c. */
extern const pretok_scanner ggtok_pretok_groups_left;

/* Cuts into lines and runs of newlines, faster than the automaton. */
extern const pretok_scanner ggtok_pretok_newlines;

#endif
