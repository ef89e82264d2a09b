#include "models/wpm/text.h"

#include "base/window.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

/* ---- characters ---- */

static bool is_chinese(uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) ||
           (c >= 0x2B920 && c <= 0x2CEAF) || /* not from 2B820: as in llama.cpp */
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static wpm_char normalize(const vocab *v, uint32_t cpt) {
    wpm_char c = {.kind = CHAR_WORD};
    bool strip = v->flag[GGTOK_FLAG_STRIP_ACCENTS];
    if (strip) cpt = ggtok_unicode_nfd_first(cpt);
    unsigned flags = ggtok_unicode_flags(cpt);
    if (flags & UNICODE_WHITESPACE) {
        c.kind = CHAR_SPACE;
    } else if (!cpt || cpt == UTF8_REPLACEMENT || (flags & UNICODE_CONTROL) ||
               (strip && (flags & UNICODE_MARK))) {
        c.kind = CHAR_DROP;
    } else {
        /* The kind is determined before the letter changes case. */
        if ((flags & UNICODE_PUNCTUATION) || (cpt < 0x7F && (flags & UNICODE_SYMBOL)) ||
            is_chinese(cpt)) {
            c.kind = CHAR_ALONE;
        }
        if (v->flag[GGTOK_FLAG_LOWERCASE]) cpt = ggtok_unicode_to_lower(cpt);
        c.len = (uint8_t)ggtok_utf8_encode(cpt, c.bytes);
    }
    return c;
}

static bool in_words(const wpm_char *c, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (c[i].kind == CHAR_SPACE || c[i].kind == CHAR_ALONE) return false;
    }
    return true;
}

static bool grows(const wpm_char *c, uint32_t cpt) {
    uint8_t own[4];
    return c->len > ggtok_utf8_encode(cpt, own);
}

const wpm_char *ggtok_wpm_new_page(wpm_text *t, const vocab *v, uint32_t number) {
    enum { TWO_BYTES = 0x800 / WPM_PAGE, OF_LEAD = 64 };
    wpm_char *page = ggtok_mem_alloc(WPM_PAGE * sizeof *page);
    if (!page) return NULL;
    for (uint32_t i = 0; i < WPM_PAGE; i++) {
        page[i] = normalize(v, number * WPM_PAGE + i);
        t->grows |= grows(&page[i], number * WPM_PAGE + i);
    }
    for (uint32_t i = 0; number < TWO_BYTES && i < WPM_PAGE; i += OF_LEAD) {
        uint32_t lead = (number * WPM_PAGE + i) / OF_LEAD;
        t->in_words |= (uint32_t)in_words(page + i, OF_LEAD) << lead;
    }
    return t->page[number] = page;
}

bool ggtok_wpm_text_init(wpm_text *t, const vocab *v) {
    return ggtok_wpm_new_page(t, v, 0) != NULL;
}

void ggtok_wpm_text_free(wpm_text *t) {
    for (size_t i = 0; i < WPM_PAGES; i++) ggtok_mem_free(t->page[i]);
}

/* ---- words, 64 bytes at a time ---- */

/* Masks for a window: white space, and characters that are words on their own (all their bytes; the
 * first byte; the last byte). All other bytes are parts of words. */
typedef struct kinds {
    uint64_t space, alone, first, last;
    unsigned known; /* number of classified bytes; the window cuts off the next character */
} kinds;

/* Removes from `leads` the lead bytes whose characters are all parts of words. Takes one step for
 * each distinct lead byte, of which a window has few. */
ALWAYS_INLINE uint64_t without_letters(const wpm_text *t, const uint8_t *p, uint64_t leads,
                                       uint64_t two) {
    for (two &= leads; two;) {
        uint8_t lead = p[bits_lowest(two)];
        uint64_t same = window_range(p, lead, 1);
        two &= ~same;
        if (t->in_words >> (lead & 31) & 1) leads &= ~same;
    }
    return leads;
}

/* Adds the characters beyond ASCII. Malformed bytes, which normalization drops one by one, count as
 * parts of words. Returns false if out of memory. */
ALWAYS_INLINE bool add_high(wpm_text *t, const vocab *v, const uint8_t *p, kinds *k) {
    uint64_t inner = window_range(p, 0x80, 0x40);
    uint64_t two = window_range(p, 0xC0, 0x20), three = window_range(p, 0xE0, 0x10);
    uint64_t four = window_range(p, 0xF0, 8);
    uint64_t cut = (two | three | four) >> 63 << 63;
    cut |= (three | four) & (uint64_t)1 << 62;
    cut |= four & (uint64_t)1 << 61;
    if (cut) k->known = bits_lowest(cut);
    two &= inner >> 1;
    three &= inner >> 1 & inner >> 2;
    four &= inner >> 1 & inner >> 2 & inner >> 3;
    uint64_t chinese = three & window_range(p, WPM_CHINESE_LEAD, WPM_CHINESE_LEADS);
    k->first |= chinese;
    k->last |= chinese << 2;
    k->alone |= chinese | chinese << 1 | chinese << 2;
    uint64_t leads = without_letters(t, p, (two | three | four) & ~chinese, two);
    for (; leads; leads &= leads - 1) { /* no branch depends on a character's kind */
        unsigned at = bits_lowest(leads);
        const uint8_t *q = p + at;
        uint32_t cpt = utf8_next(&q);
        if (cpt > 0x10FFFF) continue; /* malformed bytes */
        const wpm_char *c = wpm_char_of(t, v, cpt);
        if (!c) return false;
        unsigned n = (unsigned)(q - p) - at;
        uint64_t bytes = (((uint64_t)1 << n) - 1) << at;
        uint64_t alone = 0 - (uint64_t)(c->kind == CHAR_ALONE);
        k->space |= bytes & (0 - (uint64_t)(c->kind == CHAR_SPACE));
        k->alone |= bytes & alone;
        k->first |= (uint64_t)1 << at & alone;
        k->last |= (uint64_t)1 << (at + n - 1) & alone;
    }
    return true;
}

/* Classifies the bytes of a window. The kinds of ASCII characters are the same in all
 * vocabularies. */
ALWAYS_INLINE bool classify(wpm_text *t, const vocab *v, const uint8_t *p, kinds *k) {
    uint64_t graphic = window_range(p, '!', '~' - '!' + 1);
    uint64_t letter = window_range(p, 'a', 26) | window_range(p, 'A', 26);
    k->space = window_range(p, '\t', 5) | window_range(p, ' ', 1);
    k->alone = k->first = k->last = graphic & ~(letter | window_range(p, '0', 10));
    k->known = WINDOW;
    return !window_range(p, 0x80, 0x80) || add_high(t, v, p, k);
}

/*
 * Appends the words that end in the window at p, which must not begin inside a word. Returns the
 * start of the next window, relative to this one; 0 if the window's first word doesn't end in it;
 * SIZE_MAX if out of memory.
 */
ALWAYS_INLINE size_t add_words(wpm_text *t, const vocab *v, const uint8_t *p, size_t at,
                               wpm_words *spans) {
    kinds k;
    if (!classify(t, v, p, &k)) return SIZE_MAX;
    const uint64_t known = window_first(k.known), part = ~(k.space | k.alone);
    uint64_t starts = (k.first | (part & ~(part << 1))) & known;
    uint64_t ends = (part << 1 & ~part & known) | (k.last & known) << 1;
    uint64_t seen = ends ? window_first(bits_highest(ends)) : 0; /* the bytes before the last end */
    unsigned n = bits_count(ends);
    window_places(starts & seen, n, at, spans->start + spans->n);
    window_places(ends, n, at, spans->end + spans->n);
    spans->n += n;
    starts &= ~seen;
    return starts ? bits_lowest(starts) : k.known;
}

/* Appends the next word, character by character. */
static bool add_word(wpm_text *t, const vocab *v, const uint8_t *text, size_t n, size_t *at,
                     wpm_words *spans) {
    size_t start = n, i = *at;
    while (i < n) {
        uint32_t cpt;
        size_t len = ggtok_utf8_decode(text + i, text + n, &cpt);
        const wpm_char *c = wpm_char_of(t, v, cpt);
        if (!c || interrupted(t->interrupt, len)) return false;
        bool apart = c->kind == CHAR_SPACE || c->kind == CHAR_ALONE;
        if (apart && start < i) break;
        if (c->kind != CHAR_SPACE && start == n) start = i;
        i += len;
        if (c->kind == CHAR_ALONE) break;
    }
    if (start < i) {
        spans->start[spans->n] = start;
        spans->end[spans->n++] = i;
    }
    *at = i;
    return true;
}

ALWAYS_INLINE bool find_words(wpm_text *t, const vocab *v, const uint8_t *text, size_t n,
                              size_t *at, wpm_words *spans) {
    enum { STRETCH = INTERRUPT_EVERY };
    size_t stop = n - *at < STRETCH ? n : *at + STRETCH; /* long white space has no words */
    spans->n = 0;
    while (*at < stop && spans->n <= WPM_WORDS - WINDOW) {
        uint8_t padded[WINDOW];
        const uint8_t *p = text + *at;
        size_t left = n - *at, step = 0;
        if (left < WINDOW) {
            memset(padded, ' ', sizeof padded);
            p = memcpy(padded, p, left);
        }
        if (!PLAIN) step = add_words(t, v, p, *at, spans);
        if (step == SIZE_MAX) return false;
        *at += step < left ? step : left;
        if (!step && !add_word(t, v, text, n, at, spans)) return false;
    }
    return true;
}

static TARGET_AVX2 bool find_words_avx2(wpm_text *t, const vocab *v, const uint8_t *text, size_t n,
                                        size_t *at, wpm_words *spans) {
    return find_words(t, v, text, n, at, spans);
}

bool ggtok_wpm_words(wpm_text *t, const vocab *v, const uint8_t *text, size_t n, size_t *at,
                     wpm_words *spans) {
    return cpu_has_avx2() ? find_words_avx2(t, v, text, n, at, spans)
                          : find_words(t, v, text, n, at, spans);
}
