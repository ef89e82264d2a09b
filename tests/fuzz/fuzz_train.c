/*
 * Trains merges on arbitrary text. Byte 0 of the input selects how the text is split into words and
 * what counts as a symbol; byte 1, the merge rule and the limits; byte 2, the number of blocks in
 * which the text is added, and the size of the initial alphabet. The rest is the text. The plain
 * build (without SIMD; its functions are named plain_*) must produce the same merges, and each merge
 * must be plausible.
 */
#include "fuzz.h"
#include "ggtok_train.h"

ggtok_status plain_ggtok_counts_new(const ggtok_counts_options *options, ggtok_counts **out,
                                    ggtok_error *err);
void plain_ggtok_counts_free(ggtok_counts *counts);
ggtok_status plain_ggtok_counter_new(ggtok_counts *counts, ggtok_counter **out, ggtok_error *err);
void plain_ggtok_counter_free(ggtok_counter *counter);
ggtok_status plain_ggtok_counter_add(ggtok_counter *counter, const char *text, size_t n, bool lines,
                                     ggtok_error *err);
ggtok_status plain_ggtok_counter_flush(ggtok_counter *counter, ggtok_error *err);
ggtok_status plain_ggtok_merge(const ggtok_counts *counts, const ggtok_merge_options *options,
                               ggtok_merges **out, ggtok_error *err);
const ggtok_merge_row *plain_ggtok_merges_rows(const ggtok_merges *merges, size_t *n);
void plain_ggtok_merges_free(ggtok_merges *merges);

enum { ALPHABET = 300, NEW = 200 };

/* Fills `symbols` with all characters of the words except the rarest, or with all bytes. */
static size_t make_alphabet(const ggtok_counts *counts, bool bytes, unsigned kinds,
                            ggtok_symbol *symbols) {
    ggtok_char_count *chars;
    size_t n;
    if (bytes) {
        for (uint32_t i = 0; i < 256; i++) symbols[i] = (ggtok_symbol){i, i, 0, 0};
        return 256;
    }
    CHECK(!ggtok_counts_chars(counts, &chars, &n, NULL));
    if (n > ALPHABET) n = ALPHABET;
    if (n) n--;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = chars[i].code;
        unsigned space = c == 0x2581 ? GGTOK_SYMBOL_SPACE | GGTOK_SYMBOL_ONLY_SPACES : 0;
        symbols[i] = (ggtok_symbol){c, i, (uint16_t)(c >> 8 & kinds), space};
    }
    ggtok_chars_free(chars);
    return n;
}

static void check_merges(const ggtok_merge_options *o, const ggtok_merge_row *rows, size_t n) {
    uint32_t next = o->first_new;
    for (size_t i = 0; i < n; i++) {
        CHECK(rows[i].made == next++ && rows[i].left < rows[i].made &&
              rows[i].right < rows[i].made);
        CHECK(rows[i].count >= o->min_count && rows[i].replaced <= rows[i].count);
        CHECK(rows[i].replaced && (!i || rows[i].count <= rows[i - 1].count));
    }
    CHECK(n <= o->most_new);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3) return 0;
    size_t n_names = 0;
    while (ggtok_pre_name(n_names)) n_names++;
    const char *pre = ggtok_pre_name(data[0] % n_names);
    bool pieces = data[1] & 1, lines = data[1] & 2;
    bool bytes = !pieces && !ggtok_pre_is_raw(pre);
    const ggtok_counts_options options = {pieces ? GGTOK_CUT_SPACES : GGTOK_CUT_PRE, pre, NULL,
                                          NULL, 0};
    ggtok_counts *counts, *plain;
    ggtok_counter *counter, *plain_counter;
    CHECK(!ggtok_counts_new(&options, &counts, NULL) && !ggtok_counter_new(counts, &counter, NULL));
    CHECK(!plain_ggtok_counts_new(&options, &plain, NULL));
    CHECK(!plain_ggtok_counter_new(plain, &plain_counter, NULL));
    size_t n = size - 3, step = n / (1 + data[2] % 4) + 1;
    for (size_t at = 0; at < n; at += step) {
        size_t length = n - at < step ? n - at : step;
        char *text = copy_of(data + 3 + at, length);
        CHECK(!ggtok_counter_add(counter, text, length, lines, NULL));
        CHECK(!plain_ggtok_counter_add(plain_counter, text, length, lines, NULL));
        free(text);
    }
    CHECK(!ggtok_counter_flush(counter, NULL) && !plain_ggtok_counter_flush(plain_counter, NULL));
    ggtok_counter_free(counter);
    plain_ggtok_counter_free(plain_counter);
    ggtok_symbol symbols[ALPHABET];
    ggtok_merge_options o = {.rule = pieces ? GGTOK_RULE_PIECES : GGTOK_RULE_NUMBERS,
                             .bytes = bytes,
                             .initial = symbols,
                             .first_new = ALPHABET,
                             .most_new = NEW,
                             .min_count = 1 + (data[1] >> 2 & 3),
                             .max_length = data[1] >> 4};
    o.n_initial = make_alphabet(counts, bytes, data[2] >> 2, symbols);
    ggtok_merges *merges, *plain_merges;
    CHECK(!ggtok_merge(counts, &o, &merges, NULL));
    CHECK(!plain_ggtok_merge(plain, &o, &plain_merges, NULL));
    size_t n_plain;
    const ggtok_merge_row *rows = ggtok_merges_rows(merges, &n);
    const ggtok_merge_row *same = plain_ggtok_merges_rows(plain_merges, &n_plain);
    CHECK(n == n_plain);
    for (size_t i = 0; i < n; i++) {
        CHECK(rows[i].left == same[i].left && rows[i].right == same[i].right);
        CHECK(rows[i].count == same[i].count && rows[i].replaced == same[i].replaced);
    }
    check_merges(&o, rows, n);
    ggtok_merges_free(merges);
    plain_ggtok_merges_free(plain_merges);
    ggtok_counts_free(counts);
    plain_ggtok_counts_free(plain);
    return 0;
}
