/* Scanners that count characters, which no automaton of bounded size can do, and one that splits
 * lines. */
#include "pretok/scan.h"

#include "unicode/unicode.h"

/* memo[0] is the end of the run of digits at st->pos, so that a run is scanned once, not once for
 * each of its groups. */

static size_t skip_chars(const uint8_t *text, size_t pos, size_t n) {
    while (n-- > 0) pos += utf8_lead_len(text[pos]);
    return pos;
}

/* Counts the characters of category N from pos on, up to `end`; returns the position where they
 * stop. */
static size_t number_run(const uint8_t *text, size_t pos, size_t end, size_t *count) {
    const uint8_t *p = text + pos, *stop = text + end;
    for (*count = 0; p < stop; ++*count) {
        const uint8_t *q = p;
        if (!(ggtok_unicode_flags(utf8_next(&q)) & UNICODE_NUMBER)) break;
        p = q;
    }
    return (size_t)(p - text);
}

/* Skips ASCII characters that aren't digits. */
static size_t skip_ascii(const uint8_t *text, size_t pos, size_t end) {
    while (pos < end && text[pos] < 0x80 && (unsigned)(text[pos] - '0') >= 10) pos++;
    return pos;
}

static size_t groups_right_cut(const pretok_scanner *self, const uint8_t *text, pretok_stage *st,
                               size_t *ends, size_t max) {
    (void)self;
    size_t n = 0;
    while (n < max && st->pos < st->end) {
        size_t first = 3;
        if (st->pos >= st->memo[0]) {
            size_t count, stop = number_run(text, st->pos, st->end, &count);
            while (count == 0 && st->pos < st->end) {
                st->pos = skip_ascii(text, st->pos + utf8_lead_len(text[st->pos]), st->end);
                stop = number_run(text, st->pos, st->end, &count);
            }
            st->memo[0] = stop;
            if (count == 0)
                first = 0;
            else if (count % 3)
                first = count % 3;
        }
        st->pos = skip_chars(text, st->pos, first);
        ends[n++] = st->pos;
    }
    return n;
}

const pretok_scanner ggtok_pretok_groups_right = {.cut = groups_right_cut, .name = "groups_right"};

/* Cuts at [^\n]+|[\n]+, as the automaton of this pattern does. */
static size_t newlines_cut(const pretok_scanner *self, const uint8_t *text, pretok_stage *st,
                           size_t *ends, size_t max) {
    (void)self;
    size_t n = 0;
    while (n < max && st->pos < st->end) {
        const uint8_t *p = text + st->pos, *end = text + st->end;
        if (*p == '\n') {
            while (p < end && *p == '\n') p++;
        } else {
            const uint8_t *newline = memchr(p, '\n', (size_t)(end - p));
            p = newline ? newline : end;
        }
        ends[n++] = st->pos = (size_t)(p - text);
    }
    return n;
}

const pretok_scanner ggtok_pretok_newlines = {.cut = newlines_cut};

static size_t digit_run(const uint8_t *text, size_t pos, size_t end) {
    while (pos < end && (unsigned)(text[pos] - '0') < 10) pos++;
    return pos;
}

static size_t groups_left_cut(const pretok_scanner *self, const uint8_t *text, pretok_stage *st,
                              size_t *ends, size_t max) {
    (void)self;
    size_t n = 0;
    while (n < max && st->pos < st->end) {
        size_t p = st->pos, cut = st->end;
        while (p < st->end) {
            size_t stop = p < st->memo[0] ? st->memo[0] : digit_run(text, p, st->end);
            /* Number of digits to the right of the cut: all in the run, or one fewer if the piece
             * starts here. */
            size_t left = stop - p - (p == st->pos && stop > p);
            if (left >= 3) {
                cut = stop - left / 3 * 3;
                st->memo[0] = stop;
                break;
            }
            p = stop;
            while (p < st->end && (unsigned)(text[p] - '0') >= 10) p++;
        }
        ends[n++] = st->pos = cut;
    }
    return n;
}

const pretok_scanner ggtok_pretok_groups_left = {.cut = groups_left_cut, .name = "groups_left"};
