/*
 * WPM's view of a text: what each character becomes, and where words begin and end.
 *
 * A word is a run of characters without white space, or a single character that is a word on its
 * own (punctuation, Chinese characters). Dropped characters are part of the word around them.
 */
#ifndef GGTOK_WPM_TEXT_H
#define GGTOK_WPM_TEXT_H

#include "base/interrupt.h"
#include "vocab/vocab.h"

/* Kinds of characters. */
enum { CHAR_WORD = 1, CHAR_ALONE, CHAR_SPACE, CHAR_DROP };

/* A normalized character: its kind, and the bytes that it adds to a word. */
typedef struct wpm_char {
    uint8_t bytes[4];
    uint8_t len;
    uint8_t kind;
} wpm_char;

enum {
    WPM_PAGE = 256, /* characters are normalized lazily, one page at a time */
    WPM_PAGES = 0x110000 / WPM_PAGE,
    WPM_WORDS = 512
};

typedef struct wpm_text {
    wpm_char *page[WPM_PAGES];
    /* Bit i: all characters with lead byte C0 + i are known to be parts of words, as are most
     * letters of Latin, Greek and Cyrillic. */
    uint32_t in_words;
    bool grows;           /* normalization makes a character on a computed page longer */
    interrupt *interrupt; /* interrupt of the current call */
} wpm_text;

typedef struct wpm_words { /* word i is text[start[i]..end[i]) */
    size_t start[WPM_WORDS], end[WPM_WORDS], n;
    size_t id_ends[WPM_WORDS]; /* number of ids in call->out after each word */
} wpm_words;

bool ggtok_wpm_text_init(wpm_text *t, const vocab *v); /* zero *t first; false: out of memory */
void ggtok_wpm_text_free(wpm_text *t);

/* Computes a page: the normalized characters from number * WPM_PAGE on. Returns NULL if out of
 * memory. */
const wpm_char *ggtok_wpm_new_page(wpm_text *t, const vocab *v, uint32_t number);

static inline const wpm_char *wpm_char_of(wpm_text *t, const vocab *v, uint32_t cpt) {
    const wpm_char *page = t->page[cpt / WPM_PAGE];
    if (!page && !(page = ggtok_wpm_new_page(t, v, cpt / WPM_PAGE))) return NULL;
    return &page[cpt % WPM_PAGE];
}

/* Lead bytes of U+5000 to U+9FFF, most Chinese characters. These characters are words on their own
 * and kept unchanged, whatever the vocabulary's flags, so they aren't looked up. */
enum { WPM_CHINESE_LEAD = 0xE5, WPM_CHINESE_LEADS = 5 };
static inline bool wpm_is_chinese_lead(uint8_t c) {
    return (uint8_t)(c - WPM_CHINESE_LEAD) < WPM_CHINESE_LEADS;
}

/* Finds the next words in text[*at..n), and moves *at past them; *at must not be inside a word.
 * Finds none at the end of the text and in long white space. Returns false if out of memory or
 * interrupted. */
bool ggtok_wpm_words(wpm_text *t, const vocab *v, const uint8_t *text, size_t n, size_t *at,
                     wpm_words *spans);

#endif
