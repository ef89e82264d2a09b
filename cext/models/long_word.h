/*
 * Merges a long word in windows; see docs/design/bpe.md, claim bpe.3.
 *
 *     merged so far   t h e | c at | s at     the last symbols are merged again,
 *     window                | c at | s at down on the m ...    with the text after them
 *
 * A window that begins with the same symbol as before continues the result. Otherwise, the window
 * begins earlier. If windows are merged side by side, the word is divided into parts, whose results
 * are joined.
 */
#ifndef GGTOK_LONG_WORD_H
#define GGTOK_LONG_WORD_H

#include "base/interrupt.h"
#include "base/mem.h"

typedef struct merged_symbol {
    uint32_t start; /* offset in the text */
    uint32_t value; /* the model's number */
} merged_symbol;

typedef struct merged_symbols {
    merged_symbol *data; /* [n + 1]: the last one is the end of the text */
    size_t n, cap;
} merged_symbols;

/* A text, of which at most the first `most` symbols are merged alone. */
typedef struct merge_window {
    const uint8_t *p;
    size_t n, most;
    merged_symbols merged; /* offsets are relative to p */
} merge_window;

/* A model's function that merges windows, and when it is fast. */
typedef struct merge_ops {
    /* Merges windows. Returns false if interrupted or out of memory. */
    bool (*merge)(const void *model, merge_window *const *windows, size_t n);
    const void *model;
    size_t few;        /* symbols in the smallest window; `merge` is fast up to this */
    bool side_by_side; /* whether many windows in one call are faster than one */
} merge_ops;

enum { LONG_WORD_PARTS = 16 };

/* A part of the word, and its result so far. */
typedef struct word_part {
    size_t end; /* offset in the word */
    size_t pos; /* end of the text that is merged */
    merged_symbols done;
    size_t overlap; /* how many symbols are merged again */
    size_t from;    /* where the window begins */
    struct {
        size_t from, n;
    } last; /* the previous window, and how many symbols it has */
    merge_window window;
} word_part;

/* One thread's memory. */
typedef struct long_word {
    word_part parts[LONG_WORD_PARTS];
} long_word;

/* Whether a word may be merged in windows. */
static inline bool long_word_suits(size_t n) {
    return n < UINT32_MAX;
}

/* Merges p[0..n). The result is valid until the next call. Sets *slow if windows would take too
 * long: the caller must merge the word as a whole. Returns NULL if so, or if interrupted or out of
 * memory. */
const merged_symbols *ggtok_long_word_merge(long_word *w, const merge_ops *ops, const uint8_t *p,
                                            size_t n, interrupt *in, bool *slow);

/* Makes room for n symbols and the end. Returns false if out of memory. */
bool ggtok_merged_reserve(merged_symbols *m, size_t n);
void ggtok_long_word_free(long_word *w);

#endif
