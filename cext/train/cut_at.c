/* Cuts counted words at the texts of special tokens; see ggtok_counts_cut_at in ggtok.h. */
#include "base/error.h"
#include "train/counter.h"

#include <stdlib.h>

typedef struct cut_text {
    const uint8_t *p;
    size_t n;
} cut_text;

typedef struct cut_texts {
    cut_text *sorted; /* sorted bytewise, so that texts with a common prefix are adjacent */
    size_t n;
    bool begins[256]; /* by byte: whether any text begins with it */
} cut_texts;

static int by_bytes(const void *a, const void *b) {
    const cut_text *x = a, *y = b;
    int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* In sorted[from..to), all longer than `at`, returns the index of the first text whose byte at `at`
 * is at least `least`. */
static size_t first_from(const cut_texts *c, size_t from, size_t to, size_t at, unsigned least) {
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (c->sorted[middle].p[at] < least) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

/* Returns the length of the longest text with which p[0..n) begins, or 0. */
static size_t longest_at(const cut_texts *c, const uint8_t *p, size_t n) {
    size_t from = 0, to = c->n, longest = 0;
    for (size_t at = 0; at < n && from < to; at++) {
        if (to - from == 1) {
            const cut_text *left = &c->sorted[from];
            return left->n <= n && !memcmp(left->p + at, p + at, left->n - at) ? left->n : longest;
        }
        from = first_from(c, from, to, at, p[at]);
        to = first_from(c, from, to, at, p[at] + 1u);
        for (; from < to && c->sorted[from].n == at + 1; from++) longest = at + 1;
    }
    return longest;
}

/* Returns the position of the first text in p[i..n) and sets *length to its length; n and 0 if
 * there is none. */
static size_t find_text(const cut_texts *c, const uint8_t *p, size_t i, size_t n, size_t *length) {
    *length = 0;
    for (; i < n; i++) {
        if (c->begins[p[i]] && (*length = longest_at(c, p + i, n - i))) return i;
    }
    return n;
}

static bool any_word_contains_text(const cut_texts *c, const ggtok_counts *counts) {
    table_word w;
    size_t length;
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        for (size_t at = 0; ggtok_table_next(&counts->table.shards[i], &at, &w);) {
            if (find_text(c, w.p, 0, w.n, &length) < w.n) return true;
        }
    }
    return false;
}

static ggtok_status add_cut(const cut_texts *c, const ggtok_counts *counts, char boundary,
                            ggtok_counter *to, ggtok_error *err) {
    bytebuf word = {0};
    ggtok_status s = GGTOK_OK;
    table_word w;
    for (unsigned i = 0; !s && i < TABLE_SHARDS; i++) {
        for (size_t at = 0; !s && ggtok_table_next(&counts->table.shards[i], &at, &w);) {
            bool ok = true;
            word.n = 0;
            for (size_t from = 0, length; ok && from < w.n; from += length) {
                size_t found = find_text(c, w.p, from, w.n, &length);
                ok = bytebuf_append(&word, w.p + from, found - from) &&
                     (!length || bytebuf_append(&word, &boundary, 1));
                from = found;
            }
            s = ok ? ggtok_counter_add_words(to, (const char *)word.data, word.n, &word.n, &w.count,
                                             1, err)
                   : ggtok_error_memory(err);
        }
    }
    ggtok_mem_free(word.data);
    return s ? s : ggtok_counter_flush(to, err);
}

ggtok_status ggtok_counts_cut_at(const ggtok_counts *counts, const char *text, const size_t *ends,
                                 size_t n, char boundary, ggtok_counts *to, bool *any,
                                 ggtok_error *err) {
    ggtok_status s = GGTOK_OK;
    ggtok_counter *counter = NULL;
    cut_texts c = {ggtok_mem_alloc(mem_mul(n + 1, sizeof *c.sorted)), n, {false}};
    *any = false;
    if (!c.sorted) return ggtok_error_memory(err);
    for (size_t i = 0, start = 0; i < n; start = ends[i++]) {
        c.sorted[i] = (cut_text){(const uint8_t *)text + start, ends[i] - start};
        c.begins[c.sorted[i].p[0]] = true;
    }
    if (n) qsort(c.sorted, n, sizeof *c.sorted, by_bytes);
    if ((*any = any_word_contains_text(&c, counts))) s = ggtok_counter_new(to, &counter, err);
    if (counter) s = add_cut(&c, counts, boundary, counter, err);
    ggtok_counter_free(counter);
    ggtok_mem_free(c.sorted);
    return s;
}
