/* Python's case conversions for characters. */
#include "jinja/python/dialect.h"

#include <stdlib.h>

typedef struct case_row {
    uint32_t from, to[3];
} case_row;

typedef struct case_range {
    uint32_t first, last;
} case_range;

#include "jinja/python/case_tables.inc"

static int by_code(const void *code, const void *row) {
    uint32_t c = *(const uint32_t *)code, from = ((const case_row *)row)->from;
    return (c > from) - (c < from);
}

static int by_range(const void *code, const void *range) {
    uint32_t c = *(const uint32_t *)code;
    const case_range *r = range;
    return (c > r->last) - (c < r->first);
}

static const case_row *find_case_row(const case_row *rows, size_t n, uint32_t c) {
    return bsearch(&c, rows, n, sizeof *rows, by_code);
}

static bool within(const case_range *ranges, size_t n, uint32_t c) {
    return bsearch(&c, ranges, n, sizeof *ranges, by_range);
}

unsigned ggtok_jinja_case_of(uint32_t c, jinja_case how, uint32_t out[3]) {
    out[0] = c;
    if (c < 0x80) {
        bool low = c >= 'a' && c <= 'z', high = c >= 'A' && c <= 'Z';
        bool lower = how == JINJA_LOWER || how == JINJA_FOLD;
        if (lower ? high : low) out[0] = c ^ 32;
        return 1;
    }
    const case_row *row = NULL;
    if (how == JINJA_TITLE)
        row = find_case_row(title_rows, sizeof title_rows / sizeof title_rows[0], c);
    if (how == JINJA_FOLD)
        row = find_case_row(fold_rows, sizeof fold_rows / sizeof fold_rows[0], c);
    if (!row && (how == JINJA_LOWER || how == JINJA_FOLD)) {
        row = find_case_row(lower_rows, sizeof lower_rows / sizeof lower_rows[0], c);
    }
    if (!row && (how == JINJA_UPPER || how == JINJA_TITLE)) {
        row = find_case_row(upper_rows, sizeof upper_rows / sizeof upper_rows[0], c);
    }
    if (!row) return 1;
    unsigned n = 0;
    for (; n < 3 && row->to[n]; n++) out[n] = row->to[n];
    return n;
}

bool ggtok_jinja_is_case(uint32_t c, jinja_case how) {
    uint32_t out[3];
    if (c < 0x80) {
        bool small = c >= 'a' && c <= 'z', capital = c >= 'A' && c <= 'Z';
        return how == JINJA_LOWER ? small : how == JINJA_UPPER && capital;
    }
    bool low = ggtok_jinja_case_of(c, JINJA_UPPER, out) != 1 || out[0] != c;
    bool high = ggtok_jinja_case_of(c, JINJA_LOWER, out) != 1 || out[0] != c;
    if (how == JINJA_TITLE) return low && high;
    if (low || high) return low != high && low == (how == JINJA_LOWER);
    if (how == JINJA_LOWER) {
        return within(lower_alone, sizeof lower_alone / sizeof lower_alone[0], c);
    }
    return within(upper_alone, sizeof upper_alone / sizeof upper_alone[0], c);
}
