/*
 * Compares two ways to split texts into words, for each row of pretok/names.c: by the fast scanners
 * (windows, fused automata), and by the same chain of scanners as in llama.cpp. The texts are
 * generated; each of their lines is also compared. Prints the first difference for each chain; the
 * exit status is 1 if there is any.
 *
 *     pretok_chains [TEXTS [SEED]]    TEXTS: number for each chain (default 2000)
 *
 * Claim pretok.2, Claim windows.1.
 */
#include "made_texts.h"
#include "pretok/scan.h"

#include <stdio.h>
#include <stdlib.h>

enum { SHOWN = 70 };

/* ---- walks ---- */

typedef void begin_walk(pretok_walk *w, const pretok_row *row, const uint8_t *text, size_t n);

/* Finds the ends of all words, in calls for at most `max` words each; returns the number of
 * words. */
static size_t walk(begin_walk *begin, const pretok_row *row, const uint8_t *text, size_t n,
                   size_t max, size_t ends[MAX_TEXT]) {
    pretok_walk w;
    size_t *some = malloc(max * sizeof *some); /* exactly as large as the API requires */
    size_t total = 0, got;
    if (!some) abort();
    begin(&w, row, text, n);
    while ((got = ggtok_pretok_next(&w, some, max)) > 0) {
        if (got > max || got > MAX_TEXT - total) abort();
        memcpy(ends + total, some, got * sizeof *some);
        total += got;
    }
    free(some);
    return total;
}

static void print_bytes(const uint8_t *text, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        printf(text[i] < 0x20 || text[i] > 0x7E || text[i] == '\\' ? "\\x%02x" : "%c", text[i]);
}

static const size_t batches[] = {1, 2, 63, 64, 65, 512};

/* Finds the ends of all words with llama.cpp's chain, one line at a time. */
static size_t walk_lines(const pretok_row *row, const uint8_t *text, size_t n,
                         size_t ends[MAX_TEXT]) {
    size_t total = 0;
    for (size_t from = 0, end; from < n; from = end) {
        for (end = from + 1; end < n && text[end - 1] != '\n';) end++;
        size_t count = walk(ggtok_pretok_begin_plain, row, text + from, end - from, PICK(batches),
                            ends + total);
        for (size_t i = 0; i < count; i++) ends[total++] += from;
    }
    return total;
}

static bool same_words(const pretok_row *row, const uint8_t *text, size_t n, bool lines) {
    static size_t fast[MAX_TEXT], plain[MAX_TEXT];
    size_t max = PICK(batches);
    size_t n_fast =
        walk(lines ? ggtok_pretok_begin_lines : ggtok_pretok_begin, row, text, n, max, fast);
    size_t n_plain = lines ? walk_lines(row, text, n, plain)
                           : walk(ggtok_pretok_begin_plain, row, text, n, PICK(batches), plain);
    if (n_fast == n_plain && !memcmp(fast, plain, n_fast * sizeof *fast)) return true;

    size_t i = 0;
    while (i < n_fast && i < n_plain && fast[i] == plain[i]) i++;
    size_t at = i ? fast[i - 1] : 0;
    size_t from = at > SHOWN / 2 ? at - SHOWN / 2 : 0, to = n - at > SHOWN ? at + SHOWN : n;
    printf("%s%s: %zu bytes, %zu words a call: the word at %zu ends at %zu, by llama.cpp's chain "
           "at %zu\n  ",
           ggtok_pretok_name(row), lines ? ", lines" : "", n, max, at, i < n_fast ? fast[i] : 0,
           i < n_plain ? plain[i] : 0);
    print_bytes(text, from, at);
    printf(" >>> ");
    print_bytes(text, at, to);
    printf("\n");
    return false;
}

/* ---- rows ---- */

static bool seen_before(size_t i) {
    const pretok_row *row = ggtok_pretok_at(i);
    for (size_t k = 0; k < i; k++) {
        const pretok_row *other = ggtok_pretok_at(k);
        if (!memcmp(row->chain, other->chain, sizeof row->chain) &&
            !memcmp(row->fast, other->fast, sizeof row->fast)) {
            return true;
        }
    }
    return false;
}

static bool check_row(const pretok_row *row, size_t n_texts) {
    static const size_t sizes[] = {10, 70, 140, 300, 300, 700, MAX_TEXT};
    static uint8_t made[MAX_TEXT];
    for (size_t i = 0; i < n_texts; i++) {
        size_t size = below(PICK(sizes) + 1);
        size_t n = make_text(made, size);
        uint8_t *text = malloc(n + !n); /* exact size, for sanitizers to detect overreads */
        if (!text) abort();
        memcpy(text, made, n);
        bool same = same_words(row, text, n, false) && same_words(row, text, n, true);
        free(text);
        if (!same) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    size_t n_texts = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000;
    unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    unsigned chains = 0, bad = 0;
    for (size_t i = 0; ggtok_pretok_at(i); i++) {
        if (!ggtok_pretok_at(i)->fast[0] || seen_before(i)) continue;
        random_state = seed; /* the same texts for each chain */
        chains++;
        bad += !check_row(ggtok_pretok_at(i), n_texts);
    }
    printf("%u chains, %zu texts each, seed %lu: %u differ\n", chains, n_texts, seed, bad);
    return bad || !chains;
}
