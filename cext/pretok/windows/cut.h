/*
 * Cuts a piece window by window. What a window can't decide (its last word, and everything after a
 * byte that is in no class) is left to the next one. If a window decides nothing, the pattern's
 * automaton takes over.
 */
#ifndef GGTOK_PRETOK_CUT_H
#define GGTOK_PRETOK_CUT_H

#include "pretok/windows/beyond_ascii.h"
#include "pretok/windows/starts.h"

/* Returns the known starts of words in the window at p, never bit 0. `left` bytes of the window are
 * text, followed by spaces; the end of the text counts as a start. If there is no start and the
 * known part ends with a letter, sets *last_letter to the position of that letter. With `lines`,
 * each line is a separate text, so each newline ends a word. */
ALWAYS_INLINE uint64_t word_starts(const pretok_high *high, const uint8_t *p, unsigned left,
                                   bool lines, shape s, cpu_level on, unsigned *last_letter) {
    unsigned known = left, done = 0;
    classes c = on == CPU_AVX512 ? classify_avx512(p, s) : classify(p, s);
    uint64_t strange = c.control & ~c.other_white & ~c.newline;
    if (s.no_digits) strange |= c.digit;
    strange &= window_first(known);
    if (strange) known = bits_lowest(strange);
    if (c.high) known = add_high(high, p, &c, known, s.han, on);
    const uint64_t ends = lines ? window_range_on(on, p, '\n', 1) : 0;
    uint64_t starts = s.gaps ? gap_starts(&c, s, known) : run_starts(&c, ends, p, s, &known, &done);
    starts |= ends << 1;

    /* A run of white space that reaches the end of the known part may continue, so only its start
     * counts. The same applies at the end of the text, as if only spaces followed. */
    const uint64_t white = c.space | c.other_white | c.newline;
    uint64_t in_sight = window_first(known);
    if (known == left && left < WINDOW) {
        in_sight |= (uint64_t)1 << left;
        starts |= (uint64_t)1 << left;
    } else if (known && white >> (known - 1) & 1) {
        uint64_t before = (~white | ends) & in_sight;
        unsigned run = before ? bits_highest(before) + 1 : 0;
        in_sight = run < WINDOW ? ((uint64_t)2 << run) - 1 : ~(uint64_t)0;
    }
    starts &= in_sight & ~(uint64_t)1;
    /* The end of a word that began with punctuation may depend on that character. */
    const bool by_letters = !s.ascii_prefix || ((c.letter | c.han) & 1);
    if (!starts && !done && known && by_letters && (c.letter | c.han) >> (known - 1) & 1) {
        *last_letter = bits_highest(in_sight & ~c.inner);
    }
    return starts;
}

ALWAYS_INLINE size_t cut(const pretok_scanner *self, shape s, cpu_level on, const uint8_t *text,
                         pretok_stage *st, size_t *ends, size_t max) {
    enum { FEW = 2, MANY = 64, LEAST = 2 };
    size_t n = 0, slow = FEW;
    while (st->pos < st->end) {
        size_t pos =
            st->pos; /* start of the next window: where a word begins, or inside its letters */
        slow = slow < MANY ? 2 * slow : MANY; /* windows that fail often are tried less often */
        while (max - n >= WINDOW && st->end - pos >= LEAST && !st->match_end) {
            const uint8_t *p = text + pos;
            uint8_t last[WINDOW];
            unsigned left = st->end - pos < WINDOW ? (unsigned)(st->end - pos) : WINDOW;
            unsigned last_letter = 0;
            if (left < WINDOW) {
                memset(last, ' ', sizeof last);
                p = memcpy(last, p, left);
            }
            uint64_t starts =
                word_starts(self->plain->high, p, left, st->lines, s, on, &last_letter);
            if (starts) {
                unsigned found = bits_count(starts);
                window_places_on(on, starts, found, pos, ends + n);
                n += found;
                st->pos = pos += bits_highest(starts);
                slow = FEW;
            } else if (last_letter) {
                pos += last_letter;
            } else {
                break;
            }
        }
        if (n && max - n < WINDOW) break;
        size_t most = max - n < slow ? max - n : slow;
        n += (st->lines ? ggtok_pretok_line_cut : ggtok_pretok_dfa_cut)(self->plain, text, st,
                                                                        ends + n, most);
        if (n == max) break;
    }
    return n;
}

#endif
