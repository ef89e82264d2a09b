/*
 * A byte trie in one flat array: texts -> ids, for longest-match and all-prefixes
 * queries of WPM, UGM, RWKV and PLaMo2.
 *
 * It is a double array with XOR addressing: the child of unit s for byte c is unit
 * t = base(s) ^ c if unit[t].parent == s. All children of a unit are therefore in
 * one block of 256 units (2 KB).
 *
 *   unit:  link  [ has value : 1 | tail : 1 | base : 30 ]
 *          parent  index of the parent unit (TRIE_FREE: none)
 *
 * A unit below which only one text is left is a tail: it has no children, its value is that text's
 * number, and the rest of the text is compared in the arena. This halves the number of units of a
 * real vocabulary and the time to build them. Instead of a base, a tail has the first bytes of the
 * rest. Most rests have no further bytes, or differ from the searched text in these bytes, so that
 * the token's text needn't be read.
 *
 *   tail:  link  [ 0 | 1 | : 3 | whole rest? : 1 | number of bytes : 2 | bytes : 24 ]
 * Texts may contain any bytes, including NUL.
 */
#ifndef GGTOK_TRIE_H
#define GGTOK_TRIE_H

#include "base/mem.h"

#define TRIE_FREE UINT32_MAX
#define TRIE_VALUE (1u << 31)
#define TRIE_TAIL (1u << 30)
#define TRIE_BASE (TRIE_TAIL - 1)
#define TRIE_WHOLE (1u << 26)
enum {
    TRIE_HEAD = 3,   /* maximum bytes of a rest in a link */
    TRIE_HEAD_N = 24 /* the lowest bit of their number */
};

typedef struct trie_unit {
    uint32_t link, parent;
} trie_unit;

typedef struct trie {
    trie_unit *unit;      /* unit[0] is the root */
    int32_t *value;       /* by unit, if it has a value or is a tail: the id */
    size_t n_units;       /* number of units, a multiple of 256 */
    const uint8_t *arena; /* the texts and their offsets, as passed to ggtok_trie_build */
    const uint32_t *off;
} trie;

/*
 * Builds the trie of the n texts whose numbers are in `ids`, in ascending order; a text's number
 * is its value. Of equal texts, the last one wins; empty texts are skipped. If `tails`
 * is true, the arena and the offsets must outlive the trie; otherwise there are no
 * tails and the trie doesn't refer to them. Returns false if out of memory (or if
 * there are more than 2^30 units); the trie is then empty, and ggtok_trie_free is
 * still allowed.
 */
bool ggtok_trie_build(trie *t, const uint8_t *arena, const uint32_t *off, const uint32_t *ids,
                      size_t n, bool tails);
void ggtok_trie_free(trie *t);

/* Returns the child of unit s (not a tail) for byte c, or 0: the root, which is no unit's child. */
static inline uint32_t trie_child(const trie *t, uint32_t s, uint8_t c) {
    uint32_t next = (t->unit[s].link & TRIE_BASE) ^ c;
    return t->unit[next].parent == s ? next : 0;
}

/* At a tail unit s reached after `depth` bytes: returns the length of the rest of its text if
 * p[0..n) begins with that rest (0: the text ends at the unit); otherwise SIZE_MAX. */
static inline size_t trie_tail(const trie *t, uint32_t s, size_t depth, const uint8_t *p,
                               size_t n) {
    uint32_t link = t->unit[s].link, head = link >> TRIE_HEAD_N & TRIE_HEAD;
    if (head > n) return SIZE_MAX;
    for (size_t k = 0; k < head; k++) {
        if ((uint8_t)(link >> 8 * k) != p[k]) return SIZE_MAX;
    }
    if (link & TRIE_WHOLE) return head;
    uint32_t i = (uint32_t)t->value[s];
    size_t at = t->off[i] + depth, rest = t->off[i + 1] - at;
    if (rest > n) return SIZE_MAX;
    const uint8_t *text = t->arena + at;
    /* Most rests are short, and most of them differ in the first byte. */
    for (size_t k = head; k < rest; k++) {
        if (text[k] != p[k]) return SIZE_MAX;
    }
    return rest;
}

/* Returns the length of the longest text with which p[0..n) begins and sets *id; returns 0 if there
 * is none. */
static inline size_t trie_longest(const trie *t, const uint8_t *p, size_t n, int32_t *id) {
    const trie_unit *unit = t->unit;
    uint32_t s = 0, link = unit[0].link, hit = 0;
    size_t best = 0;
    for (size_t i = 0; i < n;) {
        uint32_t next = (link & TRIE_BASE) ^ p[i];
        if (unit[next].parent != s) break;
        i++;
        s = next;
        link = unit[s].link;
        if (link & TRIE_TAIL) {
            size_t rest = trie_tail(t, s, i, p + i, n - i);
            if (rest != SIZE_MAX) best = i + rest, hit = s;
            break;
        }
        if (link & TRIE_VALUE) best = i, hit = s;
    }
    if (best) *id = t->value[hit];
    return best;
}

#endif
