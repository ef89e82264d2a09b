/*
 * Compares ggtok_utf8_valid_prefix, which checks up to 32 bytes at a time, with a simple check of
 * one character at a time.
 *
 *   utf8_valid [TEXTS [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "random.h"
#include "unicode/utf8_valid.h"

enum { MAX_TEXT = 400 };

/* Whether p[0..n) begins with a well-formed character (including surrogates); sets its length. */
static bool shortest(const uint8_t *p, size_t n, size_t *len) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *len = p[0] < 0x80 ? 1 : p[0] < 0xC0 ? 0 : utf8_lead_len(p[0]);
    if (!*len || *len > n || p[0] >= 0xF8) return false;
    if (*len == 1) return true;
    uint32_t c = p[0] & (0x7Fu >> *len);
    for (size_t i = 1; i < *len; i++) {
        if (!utf8_continues(p[i])) return false;
        c = c << 6 | (p[i] & 0x3F);
    }
    return c >= least[*len] && c <= 0x10FFFF;
}

static size_t valid_prefix(const uint8_t *p, size_t n) {
    size_t i = 0, len;
    while (i < n && shortest(p + i, n - i, &len)) i += len;
    return i;
}

/* Builds a text with characters of all lengths, some changed bytes, and possibly a truncated
 * end. */
static size_t make_text(uint8_t *text) {
    static const uint32_t limits[] = {0x80, 0x80, 0x80, 0x800, 0x10000, 0x110000};
    static const uint8_t odd[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2,
                                  0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xF7, 0xF8, 0xFF};
    size_t n = 0, want = below(MAX_TEXT - 4), mixed = below(2);
    uint32_t limit = PICK(limits);
    while (n < want) {
        if (mixed) limit = PICK(limits);
        n += ggtok_utf8_encode((uint32_t)below(limit), text + n);
    }
    for (size_t changes = below(3); n && changes--;) text[below(n)] = PICK(odd);
    return n - below(n < 4 ? n + 1 : 4);
}

static bool check_prefix_length(const uint8_t *made, size_t n) {
    uint8_t *text = malloc(n + !n); /* exact size, for sanitizers to detect overreads */
    if (!text) abort();
    memcpy(text, made, n);
    size_t is = ggtok_utf8_valid_prefix(text, n), should_be = valid_prefix(text, n);
    free(text);
    if (is == should_be) return true;
    printf("%zu bytes: well-formed up to %zu, not %zu:", n, should_be, is);
    for (size_t i = 0; i < n; i++) printf(" %02X", made[i]);
    printf("\n");
    return false;
}

int main(int argc, char **argv) {
    size_t n_texts = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000, bad = 0;
    random_state = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    uint8_t text[MAX_TEXT];
    for (size_t i = 0; i < n_texts; i++) bad += !check_prefix_length(text, make_text(text));
    memset(text, 'a', sizeof text);
    for (unsigned i = 0; i < 1 << 16; i++) { /* all pairs of bytes, within and across blocks */
        size_t at = i % 3 ? 20 : 63;
        text[at] = (uint8_t)(i >> 8);
        text[at + 1] = (uint8_t)i;
        bad += !check_prefix_length(text, 128);
        text[at] = text[at + 1] = 'a';
    }
    printf("%zu texts and all pairs of bytes: %zu differ\n", n_texts, bad);
    return bad != 0;
}
