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
    if (continues(last[0])) {
        c->partial_tail[last[tail - 1]] = true;
    } else if (utf8_lead_len(last[0]) != tail) {
        return; /* left ends inside a character: not a place between two */
    }
    if (continues(right[0])) return;
    size_t head = utf8_lead_len(right[0]);
    if (head > n_right) {
        head = n_right;
        c->partial_head[right[0]] = true;
    }
    pair_add(&c->set, pack(last, tail), pack(right, head));
}

/* May a merge join character a (n_a bytes) to character b? */
static bool joins(const bpe_cuts *c, uint32_t a, size_t n_a, uint32_t b, size_t n_b) {
    if (pair_in(&c->set, a, b)) return true;
    size_t tails = c->partial_tail[a >> 8 * (n_a - 1)] ? n_a : 1;
    size_t heads = c->partial_head[b & 0xFF] ? n_b : 1;
    for (size_t t = 0; t < tails; t++) {     /* a without its first t bytes */
        for (size_t h = 0; h < heads; h++) { /* b whole, or its first h bytes */
            if (pair_in(&c->set, a >> 8 * t, h ? b & ((1u << 8 * h) - 1) : b)) return true;
        }
    }
    return false;
}

size_t bpe_cuts_next(const bpe_cuts *c, const uint8_t *word, size_t n, size_t from) {
    size_t len, next_len;
    uint32_t a = char_at(word + from, n - from, &len);
    size_t at = from + len;
    while (at < n) {
        uint32_t b = char_at(word + at, n - at, &next_len);
        if (!joins(c, a, len, b, next_len)) break;
        a = b;
        len = next_len;
        at += len;
    }
    return at;
}
