/*
 * Pre-tokenizers split a BPE text into words, before any merge.
 *
 * Each value of tokenizer.ggml.pre is one row of the table in pretok/names.c: a
 * chain of scanners and the vocabulary flags that llama.cpp ties to the name.
 * The first scanner of a chain cuts the text into pieces, the second cuts each of these
 * pieces, and so on; the pieces of the last scanner are the words.
 */
#ifndef GGTOK_PRETOK_H
#define GGTOK_PRETOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRETOK_MAX_CHAIN = 8 };

/* Flags that a pre-tokenizer's name sets. Keys of the file are read later and may override them. */
enum {
    PRETOK_IGNORE_MERGES = 1 << 0, /* a word that is a token is not merged */
    PRETOK_ADD_BOS = 1 << 1,
    PRETOK_ADD_SEP = 1 << 2,
    PRETOK_KEEP_SPACES = 1 << 3, /* turns clean_spaces off */
    PRETOK_NO_BOS = 1 << 4,      /* there is no default BOS id */
    PRETOK_RAW_UTF8 = 1 << 5,    /* symbols are UTF-8 characters and bytes fall back to <0xXX>; no
                                    GPT-2 byte map */
    PRETOK_ESCAPE_WHITESPACES = 1 << 6, /* ' ' becomes U+2581 before splitting */
    PRETOK_NEWLINE_WORDS = 1 << 7,      /* gemma4, mmbert: a word of only newlines is looked up
                                           whole */
    PRETOK_FORCE_BOS = 1 << 8,          /* gemma4: turns add_bos on, whatever the file says */
    PRETOK_CASED = 1 << 9,              /* whitespace: no lower-casing by default */
    PRETOK_MARK_LINES = 1 << 10,        /* mmbert: U+2581 is added before each line */
    PRETOK_LINES = 1 << 11              /* words are lines and runs of newlines, which escaping
                                           spaces doesn't change */
};

typedef struct pretok_row pretok_row;

/* Return the row for a name, or the i-th row of the table; NULL if there is none. */
const pretok_row *ggtok_pretok_find(const char *name, size_t n);
const pretok_row *ggtok_pretok_at(size_t i);
const char *ggtok_pretok_name(const pretok_row *row);
unsigned ggtok_pretok_flags(const pretok_row *row);

/*
 * A walk splits one text into words. `text` must be well-formed UTF-8 in the wide
 * sense (see unicode/utf8.h: shortest forms up to U+10FFFF, surrogates allowed) and
 * stay unchanged during the walk. A walk allocates no memory and can't fail.
 */
enum { PRETOK_BUFFER = 64 };

typedef struct pretok_stage {
    size_t pos, end;  /* the part of the current piece that this scanner hasn't cut yet */
    size_t match_end; /* end of a match known to start at pos, or 0 */
    size_t memo[2];   /* private to the scanner: what it knows about the text ahead */
    bool lines;       /* cut each line of the piece separately (windows only) */
    size_t line_end;  /* with `lines`: end of the line at pos; unknown if at most pos */
    size_t start;     /* start of the next piece in `ends` */
    unsigned next, n; /* ends[next .. n): pieces not yet passed to the next scanner */
    size_t ends[PRETOK_BUFFER];
} pretok_stage;

typedef struct pretok_walk {
    const struct pretok_scanner *const *chain;
    const uint8_t *text;
    unsigned last;  /* index of the chain's last stage */
    size_t next, n; /* text[next..n): lines that the first stage hasn't begun */
    pretok_stage stage[PRETOK_MAX_CHAIN];
} pretok_walk;

void ggtok_pretok_begin(pretok_walk *w, const pretok_row *row, const uint8_t *text, size_t n);

/* Like ggtok_pretok_begin, but each line, including its newline ('\n'), is a separate text. */
void ggtok_pretok_begin_lines(pretok_walk *w, const pretok_row *row, const uint8_t *text, size_t n);

/* Writes the end offsets of the next words in ascending order, at most `max` (>= 1). Returns their
 * number; 0 at the end of the text. No word is empty. */
size_t ggtok_pretok_next(pretok_walk *w, size_t *ends, size_t max);

#endif
