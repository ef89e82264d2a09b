/* Reads the counts, to save them or to choose an alphabet. */
#include "base/error.h"
#include "train/counter.h"
#include "unicode/utf8.h"

#include <stdlib.h>

static int by_count_and_bytes(const void *a, const void *b) {
    const table_word *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

ggtok_status ggtok_counts_copy(const ggtok_counts *counts, char *words, size_t *ends,
                               uint64_t *times, ggtok_error *err) {
    const table *t = &counts->table;
    size_t n = 0, end = 0;
    for (unsigned i = 0; i < TABLE_SHARDS; i++) n += t->shards[i].n;
    table_word *all = ggtok_mem_alloc(mem_mul(n, sizeof *all));
    if (!all) return ggtok_error_memory(err);
    n = 0;
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        for (size_t at = 0; ggtok_table_next(&t->shards[i], &at, &all[n]);) n++;
    }
    qsort(all, n, sizeof *all, by_count_and_bytes);
    for (size_t i = 0; i < n; i++) {
        memcpy(words + end, all[i].p, all[i].n);
        ends[i] = end += all[i].n;
        times[i] = all[i].count;
    }
    ggtok_mem_free(all);
    return GGTOK_OK;
}

static int by_count_and_code(const void *a, const void *b) {
    const ggtok_char_count *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return (x->code > y->code) - (x->code < y->code);
}

ggtok_status ggtok_counts_chars(const ggtok_counts *counts, ggtok_char_count **out, size_t *n,
                                ggtok_error *err) {
    enum { CODES = 0x110000 };
    uint64_t *count_of = ggtok_mem_zalloc(CODES * sizeof *count_of);
    *out = NULL;
    *n = 0;
    if (!count_of) return ggtok_error_memory(err);
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        table_word w;
        for (size_t at = 0; ggtok_table_next(&counts->table.shards[i], &at, &w);) {
            for (const uint8_t *p = w.p; p < w.p + w.n;) {
                uint64_t *count = &count_of[utf8_next(&p)];
                *count = *count > UINT64_MAX - w.count ? UINT64_MAX : *count + w.count;
            }
        }
    }
    for (size_t i = 0; i < CODES; i++) *n += count_of[i] > 0;
    *out = ggtok_mem_alloc(mem_mul(*n, sizeof **out));
    if (!*out) {
        ggtok_mem_free(count_of);
        return ggtok_error_memory(err);
    }
    ggtok_char_count *w = *out;
    for (uint32_t i = 0; i < CODES; i++) {
        if (count_of[i]) *w++ = (ggtok_char_count){i, count_of[i]};
    }
    ggtok_mem_free(count_of);
    qsort(*out, *n, sizeof **out, by_count_and_code);
    return GGTOK_OK;
}

void ggtok_chars_free(ggtok_char_count *chars) {
    ggtok_mem_free(chars);
}
