#include "pretok/split.h"

#include "base/error.h"
#include "unicode/utf8.h"

ggtok_status ggtok_split_text(ggtok_split_fn split, void *user, const uint8_t *text, size_t n,
                              split_ends *ends, size_t *count, ggtok_error *err) {
    size_t want = ends->cap ? ends->cap : 256;
    for (;;) {
        if (want > ends->cap) {
            size_t *grown = ggtok_mem_realloc(ends->data, mem_mul(want, sizeof *grown));
            if (!grown) return ggtok_error_memory(err);
            ends->data = grown;
            ends->cap = want;
        }
        want = split(user, (const char *)text, n, ends->data, ends->cap);
        if (want <= ends->cap) break;
        if (want > n) {
            return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "the word splitter failed");
        }
    }
    for (size_t i = 0; i < want; i++) {
        if (ends->data[i] > n || ends->data[i] <= (i ? ends->data[i - 1] : 0)) {
            return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                                   "the word splitter's offset %llu is out of order",
                                   (unsigned long long)i);
        }
        if (ends->data[i] < n && utf8_continues(text[ends->data[i]])) {
            return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                                   "the word splitter's offset %llu is inside a character",
                                   (unsigned long long)i);
        }
    }
    if (!want || ends->data[want - 1] != n) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                               "the word splitter's words do not cover the text");
    }
    *count = want;
    return GGTOK_OK;
}
