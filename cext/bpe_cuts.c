#include "bpe_cuts.h"

static uint32_t pack(const uint8_t *p, size_t n) {
    uint32_t key = 0;
    for (size_t i = 0; i < n; i++) key |= (uint32_t)p[i] << (8 * i);
    return key;
}

static bool continues(uint8_t c) {
    return (c & 0xC0) == 0x80;
}

void bpe_cuts_add(bpe_cuts *c, const uint8_t *left, size_t n_left, const uint8_t *right,
                  size_t n_right) {
    size_t tail = 1; /* bytes of left's last character, or what left has of it */
    while (tail < n_left && tail < 4 && continues(left[n_left - tail])) tail++;
    const uint8_t *last = left + n_left - tail;
    bool partial = continues(last[0]);
    /* left ends inside a character, or right begins in one: not a place between two */
    if ((!partial && utf8_lead_len(last[0]) != tail) || continues(right[0])) return;
    size_t head = utf8_lead_len(right[0]);
    if (head > n_right) {
        head = n_right;
        partial = true;
    }
    pair_add(&c->set, pack(last, tail), pack(right, head));
    if (partial) {
        c->partial[last[tail - 1]][right[0] >> 6] |= (uint64_t)1 << (right[0] & 63);
    }
}

/* May a merge that has a partial character join a (n_a bytes) to b (n_b bytes)? */
static bool joins_partial(const bpe_cuts *c, uint32_t a, size_t n_a, uint32_t b, size_t n_b) {
    for (size_t t = 0; t < n_a; t++) {     /* a without its first t bytes */
        for (size_t h = 0; h < n_b; h++) { /* b whole, or its first h bytes */
            if (pair_in(&c->set, a >> 8 * t, h ? b & ((1u << 8 * h) - 1) : b)) return true;
        }
    }
    return false;
}

/* May a merge join character a (n_a bytes) to character b? */
static inline bool joins(const bpe_cuts *c, uint32_t a, size_t n_a, uint32_t b, size_t n_b) {
    bool whole = pair_in(&c->set, a, b);
    uint8_t last = (uint8_t)(a >> 8 * (n_a - 1)), first = (uint8_t)b;
    if (!(c->partial[last][first >> 6] >> (first & 63) & 1)) return whole; /* nearly always */
    return whole || joins_partial(c, a, n_a, b, n_b);
}

size_t bpe_cuts_find(const bpe_cuts *c, const uint8_t *word, size_t n, size_t from, size_t *ends,
                     size_t max) {
    size_t count = 0, len, next_len;
    uint32_t a = char_at(word + from, n - from, &len);
    for (size_t at = from + len; at < n; at += len) {
        uint32_t b = char_at(word + at, n - at, &next_len);
        ends[count] = at; /* overwritten unless it is one: that can't be predicted */
        count += !joins(c, a, len, b, next_len);
        if (count == max) return count;
        a = b;
        len = next_len;
    }
    ends[count] = n;
    return count + 1;
}
