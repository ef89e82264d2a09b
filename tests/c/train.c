/*
 * Trains on random texts with every kind of option and on several threads, and prints the results,
 * which must be the same in all builds. Compiled with GGTOK_TEST_ALLOC, it instead fails every N-th
 * allocation in turn (default: every one).
 *
 *     train [N]
 */
#include "base/threads.h"
#include "failing_alloc.h"
#include "ggtok_train.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPLIT_BYTES = 3 };
#include "split.h"

/* ---- texts ---- */

#ifdef GGTOK_TEST_ALLOC
enum { TEXT = 60 }; /* bytes of a text; few, since each failing allocation needs another run */
#else
enum { TEXT = 6000 };
#endif
enum { N_TEXTS = 4, N_THREADS = 3 };

static char texts[N_TEXTS][TEXT];
static size_t lengths[N_TEXTS];

/* Creates texts with few letters (and many ties), non-ASCII letters, malformed bytes, and one long
 * word. */
static void make_texts(void) {
    static const char *const parts[N_TEXTS][8] = {
        {"a", "b", "ab", "ba", " ", "aa", "\n", "abb"},
        {"the", " ", "\xC3\xA9", "\xE6\x97\xA5", "\xE6\x9C\xAC", "\xE2\x96\x81", "\n", "12"},
        {"x", "\xFF", "\xE2\x82", " ", "\xF0\x9F\x98\x80", "'s", "  ", "\r\n"},
        {"ACGT", "A", "C", "G", "T", "GAT", "TAC", "A"},
    };
    random_state = 7;
    for (int i = 0; i < N_TEXTS; i++) {
        for (;;) {
            const char *part = parts[i][below(8)];
            size_t n = strlen(part);
            if (lengths[i] + n > TEXT) break;
            memcpy(texts[i] + lengths[i], part, n);
            lengths[i] += n;
        }
    }
}

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("%s: %s does not hold (line %d, allocation %zu)\n", __func__, #what, __LINE__, \
                   fail_at); \
            exit(1); \
        } \
    } while (0)

/* ---- one training ---- */

typedef struct kind {
    const char *name;
    ggtok_counts_options counts;
    bool lines, pieces, characters;
    uint32_t most_new, max_length;
    uint64_t min_count;
    bool reserved;
} kind;

static const kind kinds[] = {
    {"gpt-2", {GGTOK_CUT_PRE, "gpt-2", NULL, NULL, 0}, true, false, false, 400, 0, 1, false},
    {"llama-bpe", {GGTOK_CUT_PRE, "llama-bpe", NULL, NULL, 0}, false, false, false, 90, 5, 2, true},
    {"gemma4", {GGTOK_CUT_PRE, "gemma4", NULL, NULL, 0}, false, false, true, 200, 0, 1, false},
    {"mmbert", {GGTOK_CUT_PRE, "mmbert", NULL, NULL, 0}, true, false, true, 200, 0, 3, true},
    {"pieces", {GGTOK_CUT_SPACES, NULL, NULL, NULL, 0}, true, true, true, 300, 0, 1, true},
    {"split", {GGTOK_CUT_CALLER, NULL, split, NULL, 0}, true, false, false, 100, 0, 1, false},
};

typedef struct job {
    ggtok_counts *counts;
    int first;
    bool lines;
    ggtok_status status;
} job;

static void count(job *j, int step) {
    ggtok_counter *counter;
    j->status = ggtok_counter_new(j->counts, &counter, NULL);
    if (j->status) return;
    for (int i = j->first; !j->status && i < N_TEXTS; i += step) {
        j->status = ggtok_counter_add(counter, texts[i], lengths[i], j->lines, NULL);
    }
    if (!j->status) j->status = ggtok_counter_flush(counter, NULL);
    ggtok_counter_free(counter);
}

THREAD_BODY(count_on_thread, arg) {
    count(arg, N_THREADS);
    return 0;
}

static ggtok_status count_all(ggtok_counts *counts, bool lines, bool threads) {
    job jobs[N_THREADS];
    thread started[N_THREADS];
    if (!threads) {
        jobs[0] = (job){counts, 0, lines, GGTOK_OK};
        count(&jobs[0], 1);
        return jobs[0].status;
    }
    for (int i = 0; i < N_THREADS; i++) {
        jobs[i] = (job){counts, i, lines, GGTOK_OK};
        CHECK(thread_start(&started[i], count_on_thread, &jobs[i]));
    }
    for (int i = 0; i < N_THREADS; i++) thread_join(started[i]);
    for (int i = 0; i < N_THREADS; i++) CHECK(!jobs[i].status);
    return GGTOK_OK;
}

static bool keep_going(void *user, const ggtok_merge_progress *progress) {
    (void)progress;
    return !user;
}

/* Fills `symbols` with the alphabet: all bytes, or all characters except the rarest. */
static ggtok_status alphabet(const kind *k, const ggtok_counts *counts, ggtok_symbol *symbols,
                             size_t *n) {
    ggtok_char_count *chars;
    *n = 256;
    for (uint32_t i = 0; i < 256; i++) symbols[i] = (ggtok_symbol){i, i, 0, 0};
    if (!k->characters) return GGTOK_OK;
    ggtok_status s = ggtok_counts_chars(counts, &chars, n, NULL);
    if (s) return s;
    CHECK(*n && *n < 256);
    for (uint32_t i = 0; i < *n; i++) {
        unsigned kind = chars[i].code == 0x2581 ? GGTOK_SYMBOL_SPACE | GGTOK_SYMBOL_ONLY_SPACES
                                                : (chars[i].code == '1' ? GGTOK_SYMBOL_ALONE : 0);
        uint16_t script = chars[i].code < 0x300 ? 1 : 2;
        symbols[i] = (ggtok_symbol){chars[i].code, i, script, kind};
    }
    --*n; /* exclude the rarest character */
    ggtok_chars_free(chars);
    return GGTOK_OK;
}

static ggtok_status merge(const kind *k, const ggtok_counts *counts, bool print) {
    ggtok_symbol symbols[256];
    const uint32_t pair[] = {0, 1}, three[] = {1, 0, 1}, bytes[] = {'a', 'b'};
    const ggtok_reserved reserved[] = {{k->characters ? pair : bytes, 2, 256}, {three, 3, 257}};
    ggtok_merges *merges;
    size_t n;
    ggtok_status s = alphabet(k, counts, symbols, &n);
    if (s) return s;
    const ggtok_merge_options options = {
        .rule = k->pieces ? GGTOK_RULE_PIECES : GGTOK_RULE_NUMBERS,
        .bytes = !k->characters,
        .initial = symbols,
        .n_initial = n,
        .first_new = 258,
        .most_new = k->most_new,
        .min_count = k->min_count,
        .max_length = k->max_length,
        .reserved = reserved,
        .n_reserved = k->reserved ? 2 : 0,
        .progress = keep_going,
    };
    s = ggtok_merge(counts, &options, &merges, NULL);
    if (s) return s;
    const ggtok_merge_row *rows = ggtok_merges_rows(merges, &n);
    for (size_t i = 0; print && i < n; i++) {
        printf("%s %u %u %u %llu %llu\n", k->name, rows[i].left, rows[i].right, rows[i].made,
               (unsigned long long)rows[i].count, (unsigned long long)rows[i].replaced);
    }
    ggtok_merges_free(merges);
    return GGTOK_OK;
}

static ggtok_status copy(const ggtok_counts *counts, bool print) {
    ggtok_counts_info info = ggtok_counts_get_info(counts);
    char *words = malloc(info.word_bytes + 1);
    size_t *ends = malloc((info.n_words + 1) * sizeof *ends);
    uint64_t *times = malloc((info.n_words + 1) * sizeof *times);
    CHECK(words && ends && times);
    ggtok_status s = ggtok_counts_copy(counts, words, ends, times, NULL);
    for (size_t i = 0, from = 0; !s && print && i < info.n_words; from = ends[i++]) {
        printf("%.*s %llu\n", (int)(ends[i] - from), words + from, (unsigned long long)times[i]);
    }
    free(words);
    free(ends);
    free(times);
    return s;
}

/* Cuts some texts out of the words, and prints the words that result. */
static ggtok_status cut_at(const ggtok_counts *counts, bool print) {
    static const char cut[] = "ththea";
    static const size_t ends[] = {2, 5, 6}, none[] = {1};
    const ggtok_counts_options options = {.cut = GGTOK_CUT_CALLER};
    ggtok_counts *to;
    bool any;
    ggtok_status s = ggtok_counts_new(&options, &to, NULL);
    if (s) return s;
    s = ggtok_counts_cut_at(counts, "\x7F", none, 1, '\x1F', to, &any, NULL);
    CHECK(s || (!any && !ggtok_counts_get_info(to).n_words));
    if (!s) s = ggtok_counts_cut_at(counts, cut, ends, 3, '\x1F', to, &any, NULL);
    CHECK(s || (any && ggtok_counts_get_info(to).total == ggtok_counts_get_info(counts).total));
    if (!s) s = copy(to, print);
    ggtok_counts_free(to);
    return s;
}

static ggtok_status train_kind(const kind *k, bool threads, bool print) {
    ggtok_counts *counts;
    ggtok_error err;
    ggtok_status s = ggtok_counts_new(&k->counts, &counts, &err);
    if (s) return s;
    s = count_all(counts, k->lines, threads);
    if (!s) s = copy(counts, print);
    if (!s) s = cut_at(counts, print);
    if (!s) s = merge(k, counts, print);
    ggtok_counts_free(counts);
    return s;
}

#ifndef GGTOK_TEST_ALLOC

/* ---- errors ---- */

static void check_errors(void) {
    ggtok_counts *counts;
    ggtok_counter *counter;
    ggtok_merges *merges;
    ggtok_error err;
    const ggtok_counts_options unknown = {GGTOK_CUT_PRE, "no such", NULL, NULL, 0};
    const ggtok_counts_options caller = {GGTOK_CUT_CALLER, NULL, NULL, NULL, 0};
    CHECK(ggtok_counts_new(&unknown, &counts, &err) == GGTOK_ERR_PRETOKENIZER && !counts);
    CHECK(!ggtok_counts_new(&caller, &counts, &err));
    CHECK(!ggtok_counter_new(counts, &counter, &err));
    CHECK(ggtok_counter_add(counter, "a", 1, true, &err) == GGTOK_ERR_ARGUMENT);
    const size_t ends[] = {2, 2, 9};
    CHECK(ggtok_counter_add_words(counter, "abc", 3, ends, NULL, 2, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(ggtok_counter_add_words(counter, "abc", 3, ends + 2, NULL, 1, &err) ==
          GGTOK_ERR_ARGUMENT);
    CHECK(ggtok_counter_add_words(counter, "\xFFz", 2, ends, NULL, 1, &err) == GGTOK_ERR_ARGUMENT);
    const uint64_t often[] = {(uint64_t)1 << 63};
    CHECK(!ggtok_counter_add_words(counter, "ab", 2, ends, often, 1, &err));
    CHECK(!ggtok_counter_flush(counter, &err));
    ggtok_symbol symbols[] = {{'a', 0, 0, 0}, {'b', 1, 0, 0}};
    ggtok_merge_options o = {.bytes = true, .initial = symbols, .n_initial = 2};
    o.first_new = 2;
    o.most_new = 9;
    CHECK(ggtok_merge(counts, &o, &merges, &err) == GGTOK_ERR_ARGUMENT); /* min_count is 0 */
    o.min_count = 1;
    CHECK(ggtok_merge(counts, &o, &merges, &err) == GGTOK_ERR_ARGUMENT); /* 2^64 symbols in total */
    CHECK(strstr(err.message, "2^62") && !merges);
    CHECK(ggtok_counter_add_words(counter, "ab", 2, ends, often, 1, &err) == GGTOK_OK);
    CHECK(ggtok_counter_flush(counter, &err) == GGTOK_ERR_ARGUMENT); /* 2^64 words in total */
    ggtok_counter_free(counter);
    ggtok_counts_free(counts);
    CHECK(!ggtok_counts_new(&kinds[0].counts, &counts, &err));
    symbols[1].number = 2;
    CHECK(ggtok_merge(counts, &o, &merges, &err) == GGTOK_ERR_ARGUMENT);
    symbols[1] = (ggtok_symbol){256, 1, 0, 0};
    CHECK(ggtok_merge(counts, &o, &merges, &err) == GGTOK_ERR_ARGUMENT);
    symbols[1].code = 'b';
    const uint32_t text[] = {0, 1, 0};
    const ggtok_reserved falling[] = {{text, 3, 0}, {text, 2, 0}}, high[] = {{text, 2, 2}};
    o.reserved = falling;
    o.n_reserved = 2;
    CHECK(ggtok_merge(counts, &o, &merges, &err) == GGTOK_ERR_ARGUMENT);
    o.reserved = high;
    o.n_reserved = 1;
    CHECK(ggtok_merge(counts, &o, &merges, &err) == GGTOK_ERR_ARGUMENT);
    o.n_reserved = 0;
    o.first_new = UINT32_MAX;
    CHECK(ggtok_merge(counts, &o, &merges, &err) == GGTOK_ERR_ARGUMENT);
    o.first_new = 2; /* `counts` has no words */
    CHECK(!ggtok_merge(counts, &o, &merges, &err));
    ggtok_merges_free(merges);
    ggtok_counts_free(counts);
    ggtok_counts_free(NULL);
    ggtok_counter_free(NULL);
    ggtok_merges_free(NULL);
    ggtok_chars_free(NULL);
}

/* Checks that a merge doesn't produce a symbol that already exists, which would corrupt memory. */
static void check_reserved_number(void) {
    ggtok_counts *counts;
    ggtok_counter *counter;
    ggtok_merges *merges;
    ggtok_error err;
    const size_t end = 2;
    const uint32_t text[] = {0, 1};
    const ggtok_symbol symbols[] = {{'a', 0, 0, 0}, {'b', 1, 0, 0}};
    const ggtok_reserved reserved = {text, 2, 1};
    const ggtok_merge_options o = {.bytes = true,
                                   .initial = symbols,
                                   .n_initial = 2,
                                   .first_new = 2,
                                   .most_new = 1,
                                   .min_count = 1,
                                   .reserved = &reserved,
                                   .n_reserved = 1};
    CHECK(!ggtok_counts_new(&kinds[5].counts, &counts, &err));
    CHECK(!ggtok_counter_new(counts, &counter, &err));
    CHECK(!ggtok_counter_add_words(counter, "ab", 2, &end, NULL, 1, &err));
    CHECK(!ggtok_counter_flush(counter, &err));
    CHECK(ggtok_merge(counts, &o, &merges, &err) == GGTOK_ERR_ARGUMENT && !merges);
    CHECK(strstr(err.message, "the number 1 of a reserved text"));
    ggtok_counter_free(counter);
    ggtok_counts_free(counts);
}

/* Checks that words are dropped at the smallest possible limit. */
static void check_limit(void) {
    ggtok_counts *counts;
    ggtok_counts_options o = kinds[5].counts;
    o.max_words = 1;
    CHECK(!ggtok_counts_new(&o, &counts, NULL));
    CHECK(!count_all(counts, true, false));
    ggtok_counts_info info = ggtok_counts_get_info(counts);
    CHECK(info.n_words <= 16 && info.dropped && info.dropped_words);
    ggtok_counts_free(counts);
}

static bool stop(void *user, const ggtok_merge_progress *progress) {
    (void)user, (void)progress;
    return false;
}

/* Trains on two copies of a word of n random letters. */
static ggtok_status train_on_letters(size_t n, ggtok_merge_fn progress, ggtok_error *err) {
    ggtok_counts *counts;
    ggtok_counter *counter;
    ggtok_merges *merges;
    random_state = 9;
    char *text = malloc(n);
    CHECK(text);
    for (size_t i = 0; i < n; i++) text[i] = "ACGT"[below(4)];
    const uint64_t twice = 2;
    CHECK(!ggtok_counts_new(&kinds[5].counts, &counts, err));
    CHECK(!ggtok_counter_new(counts, &counter, err));
    CHECK(!ggtok_counter_add_words(counter, text, n, &n, &twice, 1, err));
    CHECK(!ggtok_counter_flush(counter, err));
    ggtok_symbol symbols[4];
    for (uint32_t i = 0; i < 4; i++) symbols[i] = (ggtok_symbol){"ACGT"[i] & 0xFFu, i, 0, 0};
    const ggtok_merge_options o = {.bytes = true,
                                   .initial = symbols,
                                   .n_initial = 4,
                                   .first_new = 4,
                                   .most_new = 100000,
                                   .min_count = 2,
                                   .progress = progress};
    ggtok_status s = ggtok_merge(counts, &o, &merges, err);
    CHECK(!s == (merges != NULL));
    ggtok_merges_free(merges);
    free(text);
    ggtok_counter_free(counter);
    ggtok_counts_free(counts);
    return s;
}

/* Checks that training ends if the callback stops it and, in builds with small bounds, if the
 * tokens' total length becomes too large. */
static void check_ends(void) {
    ggtok_error err;
    CHECK(train_on_letters(1 << 20, stop, &err) == GGTOK_ERR_STOPPED);
#ifdef GGTOK_TEST_SMALL
    CHECK(train_on_letters(1 << 12, NULL, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(strstr(err.message, "too long"));
#else
    CHECK(!train_on_letters(1 << 12, NULL, &err));
#endif
}

#endif

int main(int argc, char **argv) {
    make_texts();
    size_t n_kinds = sizeof kinds / sizeof *kinds, tried = 0;
#ifdef GGTOK_TEST_ALLOC
    size_t one_in = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    for (size_t i = 0; i < n_kinds; i++) {
        for (size_t on = 0; on < 2; on++) {
            bool done = false;
            for (size_t at = 1 + (i + on) % one_in; !done; at += one_in, tried++) {
                start_failing(at, on);
                ggtok_status s = train_kind(&kinds[i], false, false);
                CHECK(s == (failed ? GGTOK_ERR_MEMORY : GGTOK_OK));
                CHECK(!blocks_held());
                done = !failed;
            }
        }
    }
    printf("%zu failures\n", tried);
#else
    (void)tried, (void)argc, (void)argv;
    for (size_t i = 0; i < n_kinds; i++) {
        CHECK(!train_kind(&kinds[i], false, true));
        CHECK(!train_kind(&kinds[i], true, true));
    }
    check_errors();
    check_reserved_number();
    check_limit();
    check_ends();
    printf("ok\n");
#endif
    return 0;
}
