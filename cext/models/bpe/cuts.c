#include "models/bpe/cuts.h"

static uint32_t pack(const uint8_t *p, size_t n) {
    uint32_t key = 0;
    for (size_t i = 0; i < n; i++) key |= (uint32_t)p[i] << (8 * i);
    return key;
}

static uint32_t plain(uint32_t c) {
    return c == PAIR_MARK ? ' ' : c;
}

void ggtok_bpe_cuts_add(bpe_cuts *c, const uint8_t *left, size_t n_left, const uint8_t *right,
                        size_t n_right) {
    size_t tail = 1; /* length of left's last character, which may be incomplete */
    while (tail < n_left && tail < 4 && utf8_continues(left[n_left - tail])) tail++;
    const uint8_t *last = left + n_left - tail;
    bool partial = utf8_continues(last[0]);
    /* left ends inside a character, or right begins inside one: the position isn't between two
     * characters */
    if ((!partial && utf8_lead_len(last[0]) != tail) || utf8_continues(right[0])) return;
    size_t head = utf8_lead_len(right[0]);
    if (head > n_right) {
        head = n_right;
        partial = true;
    }
    uint32_t a = pack(last, tail), b = pack(right, head);
    pair_add(&c->set, a, b);
    pair_add(&c->set, plain(a), plain(b)); /* texts are searched with spaces instead of U+2581 */
    if (partial) {
        c->partial[last[tail - 1]][right[0] >> 6] |= (uint64_t)1 << (right[0] & 63);
    }
}

bool ggtok_bpe_cuts_joins_partial(const bpe_cuts *c, uint32_t a, uint32_t b) {
    do { /* a, then a without its first bytes; NUL is a character, too */
        for (uint32_t mask = 0xFF;; mask = mask << 8 | 0xFF) { /* the first bytes of b, or all */
            if (pair_in(&c->set, a, b & mask)) return true;
            if (!(b & ~mask)) break;
        }
    } while (a >>= 8);
    return false;
}

bool ggtok_bpe_cuts_joined(const bpe_cuts *c, const uint8_t *text, size_t start, size_t at) {
    size_t len;
    uint32_t a = char_at(text + start, at - start, &len), b = char_at(text + at, 4, &len);
    return pair_in(&c->set, plain(a), plain(b)) || ggtok_bpe_cuts_joins_partial(c, a, b);
}

size_t ggtok_bpe_cuts_find(const bpe_cuts *c, const uint8_t *word, size_t n, size_t from,
                           size_t *ends, size_t max) {
    size_t count = 0, len, next_len;
    uint32_t a = plain_char_at(word + from, n - from, &len);
    for (size_t at = from + len; at < n;) {
        if (word[at - 1] < 0x80 && n - at >= 8 && pair_eight_ascii(word + at)) {
            count = pair_cut_eight(&c->set, word, at, a, ends, count);
            at += 8;
            a = word[at - 1];
            len = 1;
        } else {
            uint32_t b = plain_char_at(word + at, n - at, &next_len);
            bool joined = pair_in(&c->set, a, b);
            if (bpe_cuts_partial(c, word[at - 1], word[at])) { /* rare */
                size_t same;
                joined |= ggtok_bpe_cuts_joins_partial(c, char_at(word + at - len, len, &same),
                                                       char_at(word + at, next_len, &same));
            }
            ends[count] = at; /* overwritten unless it is an end: saves an unpredictable branch */
            count += !joined;
            at += next_len;
            a = b;
            len = next_len;
        }
        if (count > max - 8) return count;
    }
    ends[count] = n;
    return count + 1;
}
