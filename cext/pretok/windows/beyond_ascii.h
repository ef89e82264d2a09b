/*
 * Handles characters beyond ASCII in a window: finds the pattern's letters among them, and the
 * first character that is neither a letter nor punctuation.
 */
#ifndef GGTOK_PRETOK_BEYOND_ASCII_H
#define GGTOK_PRETOK_BEYOND_ASCII_H

#include "pretok/windows/classes.h"
#include "unicode/utf8.h"

/* Returns the lead bytes in `leads` whose characters are all letters. Takes one step for each
 * distinct byte, of which a window has few. */
ALWAYS_INLINE uint64_t letters_only(const pretok_high *high, const uint8_t *p, uint64_t leads) {
    uint64_t letters = 0;
    while (leads) {
        uint8_t lead = p[bits_lowest(leads)];
        uint64_t same = window_range(p, lead, 1);
        leads &= ~same;
        if (high->leads[lead & 15] >> (lead >> 4 & 3) & 1) letters |= same;
    }
    return letters;
}

/* Adds the non-ASCII letters among the window's first `known` bytes to c->letter. Returns the
 * position of the first character that is neither a letter nor punctuation or that is cut off by
 * the end of the window. */
ALWAYS_INLINE unsigned add_high(const pretok_high *high, const uint8_t *p, classes *c,
                                unsigned known, bool has_han, cpu_level on) {
    uint64_t leads = c->high & ~c->inner & window_first(known);
    if (!leads) return known;
    unsigned last = bits_highest(leads);
    if (utf8_lead_len(p[last]) > known - last) {
        leads ^= (uint64_t)1 << last;
        known = last;
    }
    uint64_t letter = on == CPU_AVX512 ? letters_only_avx512(high, p)
                      : on == CPU_AVX2 ? letters_only_avx2(high, p)
                                       : letters_only(high, p, leads);
    uint64_t two = leads & ~letter & window_range_on(on, p, 0xC0, 0x20);
    uint64_t four = leads & window_range_on(on, p, 0xF0, 0x10); /* rare, so left to the automaton */
    uint64_t three = leads & ~letter & ~two & ~four, strange = 0;
    letter &= leads;
    /* No branch depends on the kind of a character: punctuation can't be predicted. */
    for (; two; two &= two - 1) {
        unsigned at = bits_lowest(two), bit = p[at + 1] & 0x3F;
        const uint64_t *planes = &high->planes[2 * (p[at] & 0x1F)];
        letter |= (planes[0] >> bit & 1) << at;
        strange |= (planes[1] >> bit & 1) << at;
    }
    for (; three; three &= three - 1) {
        unsigned at = bits_lowest(three), bit = p[at + 2] & 0x3F;
        const uint64_t *planes = &high->planes[2 * ((p[at] & 0xF) << 6 | (p[at + 1] & 0x3F))];
        letter |= (planes[0] >> bit & 1) << at;
        strange |= (planes[1] >> bit & 1) << at;
    }
    if (has_han) {
        uint64_t han = letter & strange;
        letter &= ~han;
        strange &= ~han;
        c->han = han | han << 1 | han << 2; /* each letter has three bytes */
    }
    strange |= four;
    for (int i = 1; i < 4; i++) letter |= letter << 1 & c->inner;
    c->letter |= letter;
    return strange ? bits_lowest(strange) : known;
}

#endif
