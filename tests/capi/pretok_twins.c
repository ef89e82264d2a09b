/*
 * Words by the fast chains of pretok_names.c (windows, fused automata) against words
 * by llama.cpp's own chains, over generated texts. Prints the first difference of each
 * chain; exit status 1 if any.
 *
 *     pretok_twins [TEXTS [SEED]]    texts for each chain (default 2000)
 */
#include "pretok_scan.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_TEXT = 5000, MAX_CHAR = 4, SHOWN = 70 };

/* ---- texts ---- */

/* Characters that meet in one text. */
static const char *const alphabets[] = {
    "abcST DM'relvd1 2\n\r\t.,/\"(",
    "aA'sStTmMdDreREllLLveVE ' ",
    "  \n\n\r\t x.",
    " \n",
    " \t\r\n\v\f",
    "0123456789 a.",
    "0123 \u0663\uff13\u2167\u00bd",
    "abcdefghijklmnopqrstuvwxyz      .,'\n",
    "the cat's don't I'LL we're\n  {}();/\n\n",
    "aB'./\n ",
    "ABCdef ghI",
    "/\n/\r.",
    "$+<=>^~|`!?-_ a",
    "\x01\x1f\x7f a1'\n.",
    "a\u00e9\u00df\u0130\u01c5 A'",
    "\u4f60\u597d\u6f22\u3042\u30a2\u3001\u3002 a1",
    "\uac00\u1100\u0e01\u0e31\u0915\u093e a",
    "\u00a0\u2003\u3000\u2028\x0b \n.a",
    "\u2019\u201c'\"\u2026 s",
    "\u0301a \u0301'\u0301.1\n",
    "\U0001f600\u200d\ufe0f \U0001f44d!a",
    "\u0378\ue000\U000e0001\U0010ffff a.", /* no letters, no marks: unassigned, private */
    "\xed\xa0\x80 a1.\n",                  /* a surrogate */
    "<sentinel:0>IMGAZ ",
    "ab\u00e9\u0436'.\u00ab\u2014 \n", /* letters and marks of ASCII and beyond */
    "\u4f60\u3042.a1 \n'\u30fb",
    "$+ a.\u4f60\u2603 \t1\n",
};

/* What a character by character choice seldom makes. */
static const char *const words[] = {
    "'s",
    "'T",
    "'re",
    "'Ve",
    "'LL",
    "'m",
    "'d",
    "'x",
    "'\u017f",
    "'",
    "a's",
    " the",
    "The",
    "camelCase",
    " x1",
    "\r\n",
    "\n\n ",
    " \n  a",
    "  \n",
    "...\n",
    "//\n",
    " 1234",
    "1,000",
    "  ",
    "\t\t",
    "\u00e9t\u00e9",
    "\u4f60\u597d",
    "\u3002\n",
    "<sentinel:12>",
};

static size_t put(uint8_t *text, size_t n, const char *what, size_t len) {
    if (n + len > MAX_TEXT) return n;
    memcpy(text + n, what, len);
    return n + len;
}

/* Appends a character of the alphabet `times` times. */
static size_t put_char(uint8_t *text, size_t n, const char *alphabet, size_t times) {
    const char *p = alphabet + below(strlen(alphabet));
    while (((uint8_t)*p & 0xC0) == 0x80) p--;
    while (times--) n = put(text, n, p, utf8_lead_len((uint8_t)*p));
    return n;
}

/* A text of about `size` bytes: segments, each dense in something. */
static size_t make_text(uint8_t *text, size_t size) {
    const char *alphabet = PICK(alphabets);
    size_t n = 0;
    while (n < size && n < MAX_TEXT - MAX_CHAR) {
        size_t many = 1 + below(below(4) ? 12 : 80);
        switch (below(6)) {
        case 0: alphabet = PICK(alphabets); break;
        case 1: /* a run */ n = put_char(text, n, alphabet, many); break;
        case 2: /* something at the edge of a window that began with what is here */
            n = put_char(text, n, alphabets[below(4) ? 7 : below(10)], 58 + below(8));
            /* fall through */
        case 3: {
            const char *word = PICK(words);
            n = put(text, n, word, strlen(word));
            break;
        }
        default:
            while (many--) n = put_char(text, n, alphabet, 1);
        }
    }
    return n;
}

/* ---- walks ---- */

typedef void begin_walk(pretok_walk *w, const pretok_row *row, const uint8_t *text, size_t n);

/* The ends of all words, asked for `max` at a time; returns how many. */
static size_t walk(begin_walk *begin, const pretok_row *row, const uint8_t *text, size_t n,
                   size_t max, size_t ends[MAX_TEXT]) {
    pretok_walk w;
    size_t *some = malloc(max * sizeof *some); /* no longer than promised */
    size_t total = 0, got;
    if (!some) abort();
    begin(&w, row, text, n);
    while ((got = pretok_next(&w, some, max)) > 0) {
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

static bool same_words(const pretok_row *row, const uint8_t *text, size_t n) {
    static const size_t batches[] = {1, 2, 63, 64, 65, 512};
    static size_t fast[MAX_TEXT], plain[MAX_TEXT];
    size_t max = PICK(batches);
    size_t n_fast = walk(pretok_begin, row, text, n, max, fast);
    size_t n_plain = walk(pretok_begin_plain, row, text, n, PICK(batches), plain);
    if (n_fast == n_plain && !memcmp(fast, plain, n_fast * sizeof *fast)) return true;

    size_t i = 0;
    while (i < n_fast && i < n_plain && fast[i] == plain[i]) i++;
    size_t at = i ? fast[i - 1] : 0;
    size_t from = at > SHOWN / 2 ? at - SHOWN / 2 : 0, to = n - at > SHOWN ? at + SHOWN : n;
    printf("%s: %zu bytes, %zu words a call: the word at %zu ends at %zu, by llama.cpp's chain "
           "at %zu\n  ",
           pretok_name(row), n, max, at, i < n_fast ? fast[i] : 0, i < n_plain ? plain[i] : 0);
    print_bytes(text, from, at);
    printf(" >>> ");
    print_bytes(text, at, to);
    printf("\n");
    return false;
}

/* ---- rows ---- */

static bool seen_before(size_t i) {
    const pretok_row *row = pretok_at(i);
    for (size_t k = 0; k < i; k++) {
        const pretok_row *other = pretok_at(k);
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
        uint8_t *text = malloc(n + !n); /* as long as it is: sanitizers see what is read behind */
        if (!text) abort();
        memcpy(text, made, n);
        bool same = same_words(row, text, n);
        free(text);
        if (!same) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    size_t n_texts = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000;
    unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    unsigned chains = 0, bad = 0;
    for (size_t i = 0; pretok_at(i); i++) {
        if (!pretok_at(i)->fast[0] || seen_before(i)) continue;
        random_state = seed; /* each chain gets the same texts */
        chains++;
        bad += !check_row(pretok_at(i), n_texts);
    }
    printf("%u chains, %zu texts each, seed %lu: %u differ\n", chains, n_texts, seed, bad);
    return bad || !chains;
}
