/*
 * Formulas that compute the starts of words from the classes of a window. docs/design/pretokenizers.md
 * derives them from the patterns.
 */
#ifndef GGTOK_PRETOK_STARTS_H
#define GGTOK_PRETOK_STARTS_H

#include "base/window.h"
#include "pretok/windows/shape.h"

/* Returns the whole runs of `run` that begin at the bits of `from` (each the first bit of its run).
 * Adding `from` carries through these runs and nothing else. */
ALWAYS_INLINE uint64_t runs_from(uint64_t run, uint64_t from) {
    return run & ~(run + from);
}

/* Returns the ends of those runs: the first byte after each. */
ALWAYS_INLINE uint64_t runs_end(uint64_t run, uint64_t from) {
    return (run + from) & ~run;
}

/* ---- contractions ---- */

/* Returns the length of the contraction at p, or 0 if there is none. p[0] is an apostrophe; 3 bytes
 * are readable. */
ALWAYS_INLINE unsigned contraction(const uint8_t *p, bool upper) {
    uint8_t a = p[1], b = p[2];
    if (upper) a |= 0x20, b |= 0x20;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    return ((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* The classes from which the formulas are built. Every byte is in exactly one of letter, digit,
 * blank, newline, han and punct; white is blank or newline. */
typedef struct groups {
    uint64_t letter, digit, blank, newline, white, han, punct;
    uint64_t punct_start; /* the first byte of each run of punctuation */
} groups;

ALWAYS_INLINE groups group_classes(const classes *c) {
    groups g = {.letter = c->letter, .digit = c->digit, .newline = c->newline, .han = c->han};
    g.blank = c->space | c->other_white;
    g.white = g.blank | g.newline;
    g.punct = ~(g.letter | g.digit | g.white | g.han);
    g.punct_start = g.punct & ~(g.punct << 1);
    return g;
}

/* Returns the starts of words of letters, except words with a prefix. Lowers *known to the first
 * position that can't be decided. */
ALWAYS_INLINE uint64_t letter_starts(const classes *c, const groups *g, shape s, unsigned *known) {
    uint64_t starts = g->letter & ~(g->letter << 1);
    if (!s.any_prefix) {
        starts &= ~(c->space << 1);
    } else {
        uint64_t prefix = g->punct_start & ~(c->space << 1); /* a prefix that starts a word */
        if (s.ascii_prefix) {
            const uint64_t ascii = g->letter & ~c->high;
            uint64_t prefixed = (prefix & ~c->high) << 1 & ascii;
            starts |= runs_end(ascii, prefixed) & g->letter;
            starts &= ~(g->blank << 1 | prefixed);
        } else {
            if (c->high) { /* include all bytes of the prefix */
                for (int i = 1; i < 4; i++) prefix |= prefix << 1 & c->inner & g->punct;
            }
            starts &= ~((g->blank | prefix) << 1);
        }
    }
    if (s.cased) {
        starts |= c->upper & (g->letter & ~c->upper) << 1;
        uint64_t doubt = c->upper & (g->letter & c->high) << 1; /* after a letter of unknown case */
        if (doubt && bits_lowest(doubt) < *known) *known = bits_lowest(doubt);
    }
    return starts;
}

ALWAYS_INLINE uint64_t digit_starts(const classes *c, const groups *g, shape s) {
    const uint64_t digit = g->digit, first = digit & ~(digit << 1);
    if (s.digits == 1) return digit;
    if (s.digits != 3) return first & ~(c->space << 1);
    uint64_t starts = 0, fourth = digit & digit << 1 & digit << 2 & digit << 3;
    for (uint64_t at = first; at; at = at << 3 & fourth) starts |= at;
    return starts;
}

/* Returns the newlines that join the punctuation before them. */
ALWAYS_INLINE uint64_t joined_newlines(const groups *g, uint64_t ends, shape s) {
    const uint64_t newline = g->newline & ~ends;
    uint64_t joined = runs_from(newline, g->punct << 1 & newline);
    return s.joined ? joined | (ends & (joined | g->punct) << 1) : 0;
}

/* Returns the starts of white-space words for patterns in which `\s*[\r\n]+` is a word: the start
 * of each run, the position after its last newline, and the last blank before something else, which
 * `\s+(?!\S)` excludes. */
ALWAYS_INLINE uint64_t newline_word_starts(const groups *g, uint64_t joined, uint64_t followed) {
    const uint64_t blank = g->blank, newline = g->newline, white = g->white;
    uint64_t tail = blank & newline << 1; /* blanks after the last newline of a run ... */
    uint64_t inner = tail & ~(joined << 1);
    uint64_t more = (blank + inner) & ~blank & newline; /* ... unless another newline follows */
    while (more) {
        unsigned end = bits_lowest(more);
        tail &= ~((uint64_t)2 << bits_highest(~blank & (((uint64_t)1 << end) - 1)));
        more &= more - 1;
    }
    return (white & ~(white << 1) & ~joined) | tail | (blank & followed >> 1);
}

/* Corrects `starts` at apostrophes that may begin a contraction or end a word that contains one.
 * Lowers *known to an apostrophe that is too close to the end of the window; sets *done to the end
 * of the last contraction. */
ALWAYS_INLINE uint64_t contract(uint64_t starts, const classes *c, const groups *g,
                                const uint8_t *p, shape s, unsigned *known, unsigned *done) {
    const bool suffix = s.contractions == SUFFIX;
    uint64_t quotes = c->quote & g->punct_start & ~(c->space << 1);
    quotes &= suffix ? g->letter << 1 : g->letter >> 1;
    for (; quotes; quotes &= quotes - 1) {
        unsigned at = bits_lowest(quotes), n;
        if (at > WINDOW - 4) {
            if (at < *known) *known = at;
            break;
        }
        /* A word contains at most one contraction; an apostrophe right after it is a prefix. */
        if (suffix && *done && at == *done) continue;
        if (!(n = contraction(p + at, s.either_case))) continue;
        *done = at + n;
        uint64_t inside =
            ((uint64_t)1 << n) - (suffix ? 1 : 2); /* of these bytes, only `at` may be a start */
        starts &= ~(inside << at);
        starts |= g->letter & (uint64_t)1 << *done;
    }
    return starts;
}

/* Returns the starts of words that are runs of one class, perhaps with a prefix. A newline in
 * `ends`, which ends a text, is a start only if it begins a run; the starts after it aren't
 * included. Lowers *known to the first position that can't be decided; sets *done to the end of the
 * last contraction. */
ALWAYS_INLINE uint64_t run_starts(const classes *c, uint64_t ends, const uint8_t *p, shape s,
                                  unsigned *known, unsigned *done) {
    const groups g = group_classes(c);
    uint64_t starts = letter_starts(c, &g, s, known);
    starts |= s.punct_apart ? g.punct_start : g.punct_start & ~(c->space << 1);
    starts |= digit_starts(c, &g, s);
    if (s.prefixed_digits) { /* a run that may continue is in the window's last word */
        const uint64_t first = g.digit & ~(g.digit << 1);
        starts &= ~(first & c->space << 1 & ~(g.digit >> 1 & g.digit >> 2));
    }
    starts |= g.han & ~(g.han << 1);

    const uint64_t apart =
        (s.digits_apart ? g.digit : 0) | (s.punct_apart ? g.punct : 0) | (s.han_apart ? g.han : 0);
    const uint64_t followed = ~(g.white | apart);
    if (s.newline_words) {
        const uint64_t joined = joined_newlines(&g, ends, s);
        starts |= newline_word_starts(&g, joined, followed);
        const uint64_t slash = (joined & ~ends) << 1 & c->slash;
        if (s.slashes && slash) {
            unsigned at = bits_lowest(slash);
            if (at < *known) *known = at;
        }
    } else {
        starts |= (g.white & ~(g.white << 1)) | (g.white & ~ends & followed >> 1);
    }
    return s.contractions ? contract(starts, c, &g, p, s, known, done) : starts;
}

/* Returns the starts of words for patterns in which one white-space character is the prefix of a
 * word, each newline is a word, and everything else between words and numbers is a gap:
 *
 *   CODER   [\r\n] | \s?\p{L}+ | \s?\p{P}+ | \p{N}; symbols are in the gaps
 *   LLM     [\r\n] | \s?[A-Za-z]+ | \s? other letters + | \s? punctuation + | \p{N}+
 */
ALWAYS_INLINE uint64_t gap_starts(const classes *c, shape s, unsigned known) {
    const bool coder = s.gaps == CODER;
    const uint64_t blank = c->space | c->other_white;
    const uint64_t not_punct = c->letter | c->digit | blank | c->newline | c->han | c->symbol;
    const uint64_t punct = ~not_punct & window_first(known);
    const uint64_t other = coder ? 0 : c->letter & c->high, letter = c->letter & ~other;
    const uint64_t first =
        (letter & ~(letter << 1)) | (other & ~(other << 1)) | (punct & ~(punct << 1));
    const uint64_t prefix = blank & (letter | other | punct | (coder ? c->han : 0)) >> 1;
    const uint64_t gap = (blank & ~prefix) | c->symbol;
    return c->newline | prefix | (first & ~(prefix << 1)) | (c->han & ~(c->han << 1)) |
           (gap & ~(gap << 1)) | (c->digit & ~(coder ? 0 : c->digit << 1));
}

#endif
