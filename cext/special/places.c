#include "special/places.h"

size_t ggtok_special_longest(const special_set *set, const vocab *v) {
    return set->n ? vocab_text(v, (uint32_t)set->ids[0]).n : 0;
}

/* Whether a token begins with the node's text, or with a suffix of it, and continues. Amortized
 * over a text, this takes one step per byte, since special_step follows the same links for the next
 * byte. */
static bool is_open(const special_set *set, uint32_t node) {
    while (node && !set->nodes[node].child) node = set->nodes[node].fail;
    return node != 0;
}

void ggtok_special_places(const special_set *set, const vocab *v, const uint8_t *text, size_t from,
                          size_t to, uint8_t *places) {
    size_t longest = ggtok_special_longest(set, v), i = from > longest ? from - longest : 0;
    uint32_t node = 0;
    bool stripped = set->strips && i; /* a token may precede, then only white space */
    for (;; i++) {                    /* `node` is the node after text[..i) */
        uint32_t token = set->n ? set->nodes[node].token : 0;
        bool open = set->n && is_open(set, node);
        if (token && !open) {
            size_t begin = i - vocab_text(v, (uint32_t)set->ids[token - 1]).n;
            if (begin >= from && !(places[begin - from] & SPECIAL_CROSSED)) {
                places[begin - from] |= SPECIAL_BEGINS;
            }
        }
        if (i == to) return;
        if (i >= from) {
            bool in_run = set->runs.byte >= 0 && text[i - 1] == set->runs.byte;
            open |= in_run && text[i] == set->runs.byte;
            places[i - from] = (uint8_t)((open ? SPECIAL_CROSSED : 0) |
                                         (token || stripped || in_run ? SPECIAL_NEAR : 0));
        }
        stripped = set->strips && (token || stripped) && special_is_space(text[i]);
        if (set->n) node = special_step(set, node, text[i]);
    }
}
