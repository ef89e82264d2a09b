/*
 * A byte trie in one flat array: texts -> ids, for longest-match and
 * all-prefixes questions. Serves WPM, UGM, RWKV and PLaMo2.
 *
 * A double array with XOR addressing: the child of unit s for byte c is unit
 * t = base(s) ^ c, and it is one if unit[t].parent == s. All children of a unit
 * thus lie in one block of 256 units (2 KB).
 *
 *   unit:  link  [ has value : 1 | tail : 1 | base : 30 ]
 *          parent  index of the unit it is a child of (TRIE_FREE: none)
 *
 * A unit below which only one text is left is a tail: it has no children, its
 * value is that text's number, and the rest of the text is compared in place.
 * That halves the units of a real vocabulary and the time to build them. Where a
 * base would be, such a unit has the first bytes of the rest: most rests have no
 * others, or differ in these, and then the text need not be fetched.
 *
 *   tail:  link  [ 0 | 1 | : 3 | is that all? : 1 | how many : 2 | bytes : 24 ]
 * Any bytes may occur in a text, NUL included.
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
    TRIE_HEAD = 3,
    TRIE_HEAD_N = 24
}; /* most bytes of a rest in a link; where their number is */

typedef struct trie_unit {
    uint32_t link, parent;
} trie_unit;

typedef struct trie {
    trie_unit *unit;      /* unit[0] is the root */
    int32_t *value;       /* for each unit: id, where it has a value or is a tail */
    size_t n_units;       /* a multiple of 256 */
    const uint8_t *arena; /* the texts, as given to ggtok_trie_build */
    const uint32_t *off;
} trie;

/*
 * Builds the trie of the n texts whose numbers are in `ids`; a text's number is
 * its value. Of equal texts the last one in `ids` counts; empty ones are
 * skipped. With `tails` the arena and the offsets must outlive the trie; without,
 * there are no tails and nothing refers to them. False: out of memory (or more
 * than 2^30 units); the trie is then empty and ggtok_trie_free is still allowed.
 */
bool ggtok_trie_build(trie *t, const uint8_t *arena, const uint32_t *off, const uint32_t *ids,
                      size_t n, bool tails);
void ggtok_trie_free(trie *t);

/* Child of unit s (not a tail) for byte c, or 0: the root is nobody's child. */
static inline uint32_t trie_child(const trie *t, uint32_t s, uint8_t c) {
    uint32_t next = (t->unit[s].link & TRIE_BASE) ^ c;
    return t->unit[next].parent == s ? next : 0;
}

/* At a tail unit reached after `depth` bytes: does p[0..n) begin with the
 * rest of its text? Returns the rest's length (0: the text ends at the unit), or SIZE_MAX. */
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
    for (size_t k = head; k < rest; k++) { /* mostly short, and different from the start */
        if (text[k] != p[k]) return SIZE_MAX;
    }
    return rest;
}

/* Length of the longest text that p[0..n) begins with, its id in *id; 0 if there is none. */
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
