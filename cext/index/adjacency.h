/*
 * The set of character pairs that occur side by side inside some token. No token crosses the
 * position between two characters of a text that aren't such a pair, so the text can be cut there.
 * docs/design proves this for each model that cuts texts in this way.
 */
#ifndef GGTOK_ADJACENCY_H
#define GGTOK_ADJACENCY_H

#include "base/mem.h"
#include "unicode/utf8.h"

/* A character is represented by the bytes that its lead byte announces, packed with the first byte
 * lowest. An incomplete character is represented by the bytes that are present; no two characters
 * have the same representation. */
typedef struct adjacency {
    uint8_t ascii[128][128]; /* pairs of ASCII characters, exact */
    uint64_t *bits;          /* hashed set of the other pairs: false positives, no false
                                negatives */
    unsigned shift;          /* 64 - log2(number of bits) */
} adjacency;

bool ggtok_adjacency_init(adjacency *p,
                          size_t n_pairs); /* n_pairs: an estimate; false: out of memory */
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

/* Returns the character at p, packed; n >= 1 bytes are left. Sets *len to its length, at most n. */
static inline uint32_t char_at(const uint8_t *p, size_t n, size_t *len) {
    uint32_t c = p[0];
    if (c < 0xC0) return *len = 1, c;
    size_t want = utf8_lead_len(p[0]);
    if (want > n) want = n;
    for (size_t i = 1; i < want; i++) c |= (uint32_t)p[i] << (8 * i);
    return *len = want, c;
}

/* U+2581, packed. It represents a space in texts with escaped spaces. */
#define PAIR_MARK 0x8196E2u

/* Like char_at, but returns a space for U+2581, for pairs in which either spelling may be meant. */
static inline uint32_t plain_char_at(const uint8_t *p, size_t n, size_t *len) {
    uint32_t c = char_at(p, n, len);
    return c == PAIR_MARK ? ' ' : c;
}

/* Whether the eight bytes at p are ASCII. */
static inline bool pair_eight_ascii(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return !(x & 0x8080808080808080u);
}

/* Finds cuts in eight bytes: text[at..at + 8) and `before`, the preceding character, are ASCII.
 * Appends to ends[count..] each offset from `at` to at + 7 at which the characters before and after
 * it aren't a pair of the set. Returns the new count; may overwrite eight elements of
 * ends[count..]. */
static inline size_t pair_cut_eight(const adjacency *p, const uint8_t *text, size_t at,
                                    uint32_t before, size_t *ends, size_t count) {
    for (size_t i = at; i < at + 8; before = text[i++]) {
        ends[count] = i;
        count += PLAIN ? 0 : !p->ascii[before][text[i]];
    }
    return count;
}

/* Adds all pairs in one token's text. Returns false if its last character is incomplete: the token
 * could then end inside a character of the text, which pairs don't represent. */
bool ggtok_adjacency_add(adjacency *p, const uint8_t *text, size_t n);

#endif
