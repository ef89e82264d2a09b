/*
 * Pre-tokenizers: where a BPE text is cut into words, before any merge.
 *
 * Each value of tokenizer.ggml.pre is one row of the table in pretok/names.c: a
 * chain of scanners and the vocabulary flags that llama.cpp ties to the name.
 * A chain's first scanner cuts the text into pieces, its second cuts each of
 * those pieces, and so on; the pieces of the last are the words.
 */
#ifndef GGTOK_PRETOK_H
#define GGTOK_PRETOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRETOK_MAX_CHAIN = 8 };

/* Flags a name sets before the file's own keys override them. */
enum {
    PRETOK_IGNORE_MERGES = 1 << 0, /* a word that is a token is not merged */
    PRETOK_ADD_BOS = 1 << 1,
    PRETOK_ADD_SEP = 1 << 2,
    PRETOK_KEEP_SPACES = 1 << 3,        /* clean_spaces off */
    PRETOK_NO_BOS = 1 << 4,             /* no default BOS id */
    PRETOK_RAW_UTF8 = 1 << 5,           /* symbols are UTF-8 characters, bytes fall back to <0xXX>:
                                          no GPT-2 byte map */
    PRETOK_ESCAPE_WHITESPACES = 1 << 6, /* ' ' becomes U+2581 before splitting */
    PRETOK_NEWLINE_WORDS = 1 << 7,      /* gemma4, mmbert: a word of newlines only is looked up
                                          whole */
    PRETOK_FORCE_BOS = 1 << 8,          /* gemma4: add_bos, whatever the file says */
    PRETOK_CASED = 1 << 9,              /* whitespace: no lower-casing by default */
    PRETOK_MARK_LINES = 1 << 10,        /* mmbert: each line begins with a U+2581 */
    PRETOK_LINES = 1 << 11              /* words are lines and runs of newlines: escaped or not,
                                          spaces don't matter to them */
};

typedef struct pretok_row pretok_row;

/* The row of a name (NULL: unknown), and the rows in table order (NULL past the last). */
const pretok_row *ggtok_pretok_find(const char *name, size_t n);
const pretok_row *ggtok_pretok_at(size_t i);
const char *ggtok_pretok_name(const pretok_row *row);
unsigned ggtok_pretok_flags(const pretok_row *row);

/*
 * A walk over one text. `text` must be well-formed UTF-8 in the wide sense (see
 * unicode/utf8.h: shortest forms up to U+10FFFF, surrogates allowed) and stay unchanged
 * during the walk. No allocation, no failure.
 */
enum { PRETOK_BUFFER = 64 };

typedef struct pretok_stage {
    size_t pos, end;  /* what this scanner has not cut yet of the piece it is at */
    size_t match_end; /* end of a match known to start at pos, or 0 */
    size_t memo[2];   /* scanner's own: what it knows of the text ahead */
    bool lines;       /* the piece's lines are to be cut each by itself (windows only), */
    size_t line_end;  /* and one ends here, if this is after pos */
    size_t start;     /* where the next of the pieces below starts */
    unsigned next, n; /* ends[next .. n): pieces cut and not yet handed to the next scanner */
    size_t ends[PRETOK_BUFFER];
} pretok_stage;

typedef struct pretok_walk {
    const struct pretok_scanner *const *chain;
    const uint8_t *text;
    unsigned last;  /* the chain's last stage */
    size_t next, n; /* text[next..n): lines that the first stage has not begun */
    pretok_stage stage[PRETOK_MAX_CHAIN];
} pretok_walk;

void ggtok_pretok_begin(pretok_walk *w, const pretok_row *row, const uint8_t *text, size_t n);

/* The same where each line, its newline ('\n') included, is a text of its own. */
void ggtok_pretok_begin_lines(pretok_walk *w, const pretok_row *row, const uint8_t *text, size_t n);

/* Writes the end offsets of the next words, ascending, at most `max` (>= 1);
 * returns how many, 0 when the text is used up. No word is empty. */
size_t ggtok_pretok_next(pretok_walk *w, size_t *ends, size_t max);

#endif
