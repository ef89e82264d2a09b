/*
 * Compares ggtok_utf8_of_ucs4, which writes up to 16 code points at a time, with ggtok_utf8_encode.
 *
 *   utf8_ucs4 [TEXTS [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "random.h"
#include "unicode/utf8.h"

enum { MAX_TEXT = 200 };

static size_t make_text(uint32_t *cpts) {
    static const uint32_t limits[] = {0x80, 0x80, 0x80, 0x800, 0x10000, 0x110000};
    static const uint32_t edges[] = {0,      0x7F,   0x80,   0x7FF,   0x800,   0xD7FF,
                                     0xE000, 0xFEFF, 0xFFFF, 0x10000, 0x10FFFF};
    size_t n = below(MAX_TEXT), mixed = below(2);
    uint32_t limit = PICK(limits);
    for (size_t i = 0; i < n; i++) {
        if (mixed) limit = PICK(limits);
        cpts[i] = below(8) ? (uint32_t)below(limit) : PICK(edges);
        if (cpts[i] >= 0xD800 && cpts[i] < 0xE000 && below(50)) cpts[i] = 0xE000;
    }
    return n;
}

static bool check_length(const uint32_t *made, size_t n) {
    uint8_t expected[4 * MAX_TEXT];
    size_t should_be = 0;
    for (size_t i = 0; i < n && should_be != SIZE_MAX; i++) {
        bool good = made[i] < 0xD800 || made[i] >= 0xE000;
        should_be = good ? should_be + ggtok_utf8_encode(made[i], expected + should_be) : SIZE_MAX;
    }
    /* Use exactly the documented sizes, so that sanitizers detect accesses beyond them. */
    uint32_t *cpts = malloc(n * sizeof *cpts + !n);
    uint8_t *out = malloc(4 * n + UTF8_ROOM);
    if (!cpts || !out) abort();
    memcpy(cpts, made, n * sizeof *cpts);
    size_t is = ggtok_utf8_of_ucs4(cpts, n, out);
    bool same = is == should_be && (is == SIZE_MAX || !memcmp(out, expected, is));
    free(cpts);
    free(out);
    if (same) return true;
    printf("%zu code points: %zu bytes, not %zu, or others:", n, is, should_be);
    for (size_t i = 0; i < n; i++) printf(" %X", (unsigned)made[i]);
    printf("\n");
    return false;
}

int main(int argc, char **argv) {
    size_t texts = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    random_state = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    uint32_t cpts[MAX_TEXT];
    for (size_t i = 0; i < texts; i++) {
        size_t n = make_text(cpts);
        if (!check_length(cpts, n)) return 1;
    }
    return 0;
}
