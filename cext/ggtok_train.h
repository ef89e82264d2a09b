/*
 * Training: counts the words of a corpus, and merges pairs of symbols, as BPE trainers do.
 *
 * Conventions are those of ggtok.h.
 *
 * Contents
 *   - words and their counts: ggtok_counts_new, ggtok_counter_add, ggtok_counts_copy
 *   - characters: ggtok_counts_chars
 *   - merges: ggtok_merge, ggtok_merges_rows
 */
#ifndef GGTOK_TRAIN_H
#define GGTOK_TRAIN_H

#include "ggtok.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The words of a corpus and how often each occurs, which is all that BPE training needs. Any number
 * of threads can add to the counts at the same time, each through its own ggtok_counter. The counts
 * are complete once every counter has been flushed. They don't depend on the number of threads or
 * the order of the texts.
 *
 *     ggtok_counts_options options = {.cut = GGTOK_CUT_PRE, .pre = "llama-bpe"};
 *     ggtok_counts_new(&options, &counts, &err);
 *     ggtok_counter_new(counts, &counter, &err);              (in each thread)
 *     ggtok_counter_add(counter, text, n, true, &err);        (as often as there is text)
 *     ggtok_counter_flush(counter, &err);
 *     ggtok_counter_free(counter);
 *     ggtok_merge(counts, &merge_options, &merges, &err);
 */
typedef struct ggtok_counts ggtok_counts;
typedef struct ggtok_counter ggtok_counter;

/* How texts are split into words. */
typedef enum ggtok_cut {
    GGTOK_CUT_PRE,    /* by the named pre-tokenizer */
    GGTOK_CUT_SPACES, /* as in SentencePiece: spaces become U+2581, and one is added before the
                         text; a word is a run of U+2581 and the characters up to the next one */
    GGTOK_CUT_CALLER  /* by `split`; if it is NULL, only ggtok_counter_add_words adds words */
} ggtok_cut;

typedef struct ggtok_counts_options {
    ggtok_cut cut;
    const char *pre;      /* for GGTOK_CUT_PRE: a name from ggtok_pre_name */
    ggtok_split_fn split; /* for GGTOK_CUT_CALLER; called on the counting thread */
    void *split_user;
    uint64_t max_words; /* maximum number of distinct words; beyond it, the rarest are dropped. 0:
                           no limit */
} ggtok_counts_options;

GGTOK_API ggtok_status ggtok_counts_new(const ggtok_counts_options *options, ggtok_counts **out,
                                        ggtok_error *err);
GGTOK_API void ggtok_counts_free(ggtok_counts *counts); /* `counts` may be NULL */

typedef struct ggtok_counts_info {
    uint64_t n_words, word_bytes;    /* number and total bytes of the distinct words */
    uint64_t total, total_bytes;     /* number and total bytes of all occurrences */
    uint64_t dropped_words, dropped; /* distinct words dropped for max_words, and their
                                        occurrences */
    uint64_t memory;                 /* bytes of memory in use */
} ggtok_counts_info;
GGTOK_API ggtok_counts_info ggtok_counts_get_info(const ggtok_counts *counts);

GGTOK_API ggtok_status ggtok_counter_new(ggtok_counts *counts, ggtok_counter **out,
                                         ggtok_error *err);
GGTOK_API void
ggtok_counter_free(ggtok_counter *counter); /* `counter` may be NULL; counts not flushed are lost */

/* Counts the words of text[0 .. n). If `lines` is true, each line is a document, including its
 * newline (excluding it for GGTOK_CUT_SPACES); otherwise, the text is one document. Malformed UTF-8
 * is read as in ggtok_encode. After a failure the counts are incomplete. */
GGTOK_API ggtok_status ggtok_counter_add(ggtok_counter *counter, const char *text, size_t n,
                                         bool lines, ggtok_error *err);

/* Counts the words text[0 .. ends[0]), text[ends[0] .. ends[1]), ...: the i-th word times[i] times
 * (`times` NULL: once). Each word must be well-formed UTF-8, except that surrogates may occur. */
GGTOK_API ggtok_status ggtok_counter_add_words(ggtok_counter *counter, const char *text, size_t n,
                                               const size_t *ends, const uint64_t *times,
                                               size_t count, ggtok_error *err);
GGTOK_API ggtok_status ggtok_counter_flush(ggtok_counter *counter, ggtok_error *err);

/* Writes all words to words[0 .. word_bytes), and their ends and counts to arrays of n_words
 * elements (see ggtok_counts_get_info). Words are ordered by descending count, then by bytes. */
GGTOK_API ggtok_status ggtok_counts_copy(const ggtok_counts *counts, char *words, size_t *ends,
                                         uint64_t *times, ggtok_error *err);

/*
 * Adds the same words with the same counts to `to`, except that every occurrence of one of n texts
 * in a word is replaced by the byte `boundary`. The texts are text[0 .. ends[0]), text[ends[0] ..
 * ends[1]), ..., none empty. The leftmost occurrence is replaced first; of several at one position,
 * the longest. If no word contains any of the texts, sets *any to false and adds nothing.
 * SentencePiece's trainer does this with special tokens.
 */
GGTOK_API ggtok_status ggtok_counts_cut_at(const ggtok_counts *counts, const char *text,
                                           const size_t *ends, size_t n, char boundary,
                                           ggtok_counts *to, bool *any, ggtok_error *err);

typedef struct ggtok_char_count {
    uint32_t code;
    uint64_t count;
} ggtok_char_count;

/* Counts each character. *out is ordered by descending count, then by code point. Free it with
 * ggtok_chars_free. */
GGTOK_API ggtok_status ggtok_counts_chars(const ggtok_counts *counts, ggtok_char_count **out,
                                          size_t *n, ggtok_error *err);
GGTOK_API void ggtok_chars_free(ggtok_char_count *chars);

/* Which of several equally frequent pairs is merged first. */
typedef enum ggtok_rule {
    GGTOK_RULE_NUMBERS, /* the one with the smallest left number, then the smallest right number, as
                           in Hugging Face's trainer (and in rustbpe, if numbers are byte values) */
    GGTOK_RULE_PIECES   /* the one with the fewest characters, then the smallest bytes; merges make
                           only pieces that SentencePiece accepts */
} ggtok_rule;

enum {                               /* kinds of symbols, for GGTOK_RULE_PIECES */
       GGTOK_SYMBOL_SPACE = 1,       /* contains U+2581 */
       GGTOK_SYMBOL_ONLY_SPACES = 2, /* consists only of U+2581 */
       GGTOK_SYMBOL_ALONE = 4,       /* a digit that is never merged */
       GGTOK_SYMBOL_NEVER = 8        /* never merged for another reason */
};

typedef struct ggtok_symbol {
    uint32_t code;   /* a byte or a code point */
    uint32_t number; /* identifies the symbol */
    uint16_t script; /* for GGTOK_RULE_PIECES: all characters of a piece must have the same script;
                        0 matches any */
    unsigned kind;   /* a combination of the kinds above */
} ggtok_symbol;

/* A text that already has a number, such as the text of a special token. A merge that produces this
 * text uses that number (with GGTOK_RULE_PIECES, no merge produces this text). */
typedef struct ggtok_reserved {
    const uint32_t *symbols; /* numbers of its initial symbols */
    size_t n;
    uint32_t number; /* not that of an initial symbol or of another text, unless n is 1 */
} ggtok_reserved;

typedef struct ggtok_merge_progress {
    size_t n_merges, most; /* new symbols so far, and most_new */
    uint64_t count;        /* occurrences of the last merged pair */
} ggtok_merge_progress;

/* Called several times a second on the calling thread. Returning false stops the training. */
typedef bool (*ggtok_merge_fn)(void *user, const ggtok_merge_progress *progress);

typedef struct ggtok_merge_options {
    ggtok_rule rule;
    bool bytes;                  /* whether words consist of bytes, not of characters */
    const ggtok_symbol *initial; /* symbols of one byte or character; any others divide words */
    size_t n_initial;
    uint32_t first_new;  /* number of the first new symbol; greater than all other numbers */
    uint32_t most_new;   /* maximum number of new symbols */
    uint64_t min_count;  /* stop when every pair occurs fewer times; at least 1 */
    uint32_t max_length; /* GGTOK_RULE_NUMBERS: a new symbol made from three or more initial symbols
                            must have fewer of them than this; 0: no limit */
    const ggtok_reserved *reserved; /* in ascending order of `n` */
    size_t n_reserved;
    ggtok_merge_fn progress; /* may be NULL */
    void *user;
} ggtok_merge_options;

typedef struct ggtok_merge_row {
    uint32_t left, right, made;
    uint64_t count;    /* occurrences of the pair when it was merged, including overlapping ones */
    uint64_t replaced; /* occurrences that were replaced; these don't overlap */
} ggtok_merge_row;

typedef struct ggtok_merges ggtok_merges;

/*
 * Trains BPE: merges the most frequent pair of adjacent symbols in all counted words, from left to
 * right, and repeats. Returns GGTOK_ERR_ARGUMENT if the number of symbols, their counts or the
 * lengths of new symbols overflow 32 or 64 bits, or if a merge would give a symbol the number of
 * another one (see ggtok_reserved).
 */
GGTOK_API ggtok_status ggtok_merge(const ggtok_counts *counts, const ggtok_merge_options *options,
                                   ggtok_merges **out, ggtok_error *err);

GGTOK_API const ggtok_merge_row *ggtok_merges_rows(const ggtok_merges *merges, size_t *n);
GGTOK_API void ggtok_merges_free(ggtok_merges *merges); /* `merges` may be NULL */

#ifdef __cplusplus
}
#endif
#endif
