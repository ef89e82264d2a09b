/*
 * Which two characters stand side by side inside some token. Where two that
 * never do meet in a text, no token reaches across, and the text may be cut: each
 * model that cuts has the argument in docs/design.
 */
#ifndef GGTOK_ADJACENCY_H
#define GGTOK_ADJACENCY_H

#include "base/mem.h"
#include "unicode/utf8.h"

/* A character is the bytes that its lead byte announces, packed, the first one
 * lowest. So is a part of one: no two of them look the same. */
typedef struct adjacency {
    uint8_t ascii[128][128]; /* exact */
    uint64_t *bits;          /* the others, hashed: a pair may wrongly seem present, never absent */
    unsigned shift;          /* 64 - log2(number of bits) */
} adjacency;

bool ggtok_adjacency_init(adjacency *p, size_t n_pairs); /* an estimate; false: out of memory */
void ggtok_adjacency_free(adjacency *p);

static inline uint64_t pair_bit(const adjacency *p, uint32_t a, uint32_t b) {
    uint64_t key = (uint64_t)a << 32 | b;
    return ((key ^ key >> 29) * 0x9E3779B97F4A7C15u) >> p->shift;
}

static inline bool pair_in(const adjacency *p, uint32_t a, uint32_t b) {
    if (PLAIN) return true;
    if ((a | b) < 0x80) return p->ascii[a][b];
    uint64_t i = pair_bit(p, a, b);
    return p->bits[i >> 6] >> (i & 63) & 1;
}

static inline void pair_add(adjacency *p, uint32_t a, uint32_t b) {
    if ((a | b) < 0x80) {
        p->ascii[a][b] = true;
    } else {
        uint64_t i = pair_bit(p, a, b);
        p->bits[i >> 6] |= (uint64_t)1 << (i & 63);
    }
}

/* The character at p, n >= 1 bytes left: packed, its length (cut to n) in *len. */
static inline uint32_t char_at(const uint8_t *p, size_t n, size_t *len) {
    uint32_t c = p[0];
    if (c < 0xC0) return *len = 1, c;
    size_t want = utf8_lead_len(p[0]);
    if (want > n) want = n;
    for (size_t i = 1; i < want; i++) c |= (uint32_t)p[i] << (8 * i);
    return *len = want, c;
}

/* U+2581, which stands for a space in texts whose spaces are escaped, packed. */
#define PAIR_MARK 0x8196E2u

/* The same, a space for the mark: for pairs of which either may be meant. */
static inline uint32_t plain_char_at(const uint8_t *p, size_t n, size_t *len) {
    uint32_t c = char_at(p, n, len);
    return c == PAIR_MARK ? ' ' : c;
}

/* Are these eight bytes ASCII? */
static inline bool pair_eight_ascii(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return !(x & 0x8080808080808080u);
}

/* Writes at ends[count..] which of the places at, at + 1, ... at + 7 of text lie between
 * two characters that are no pair, where text[at..at + 8) is ASCII and so is `before`, the
 * character before them. Returns the new count; all eight ends may be overwritten. */
static inline size_t pair_cut_eight(const adjacency *p, const uint8_t *text, size_t at,
                                    uint32_t before, size_t *ends, size_t count) {
    for (size_t i = at; i < at + 8; before = text[i++]) {
        ends[count] = i;
        count += PLAIN ? 0 : !p->ascii[before][text[i]];
    }
    return count;
}

/* Adds all pairs of one token's text. False if its last character is cut short:
 * it could then end inside a character of the text, which pairs don't show. */
bool ggtok_adjacency_add(adjacency *p, const uint8_t *text, size_t n);

#endif
