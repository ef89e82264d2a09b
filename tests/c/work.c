/*
 * Counts the work of loading a file and encoding texts in steps, which don't depend on the machine
 * or its load. A step is an executed basic block of the library, or 16 bytes processed by memcmp,
 * memcpy or a similar function. The library is compiled with -fsanitize-coverage=trace-pc, this
 * file is not.
 *
 *     work [-p | -t] [-s] FILE.gguf [TEXT...]
 *
 * Prints the steps for loading the file and, for each text, the steps for encoding it with a new
 * context, and its number of ids.
 *
 *     -p    parse special tokens
 *     -t    parse them, but only in 999 of every 1000 bytes (ggtok_encode_trusted)
 *     -s    find spans, too (ggtok_spans)
 */
#undef _FORTIFY_SOURCE /* otherwise, the headers would define the functions below as macros */
#define _FORTIFY_SOURCE 0

#include "ggtok.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long long steps;

void __sanitizer_cov_trace_pc(void); /* called at each basic block */
void __sanitizer_cov_trace_pc(void) {
    steps++;
}

/* ---- the C library's loops ---- */

/* Without volatile, compilers would turn each loop into a call to the function that contains it. */
typedef volatile unsigned char byte;

enum { BYTES_A_STEP = 16 };

static void *copy(byte *t, const byte *f, size_t n) {
    void *to = (void *)t;
    steps += n / BYTES_A_STEP;
    if (t < f) {
        for (size_t i = 0; i < n; i++) t[i] = f[i];
    } else {
        while (n--) t[n] = f[n];
    }
    return to;
}

void *memmove(void *to, const void *from, size_t n) {
    return copy(to, from, n);
}

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    return copy(to, from, n);
}

void *memset(void *to, int value, size_t n) {
    byte *t = to;
    steps += n / BYTES_A_STEP;
    for (size_t i = 0; i < n; i++) t[i] = (unsigned char)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t n) {
    const byte *x = a, *y = b;
    size_t i = 0;
    while (i < n && x[i] == y[i]) i++;
    steps += i / BYTES_A_STEP;
    return i == n ? 0 : x[i] < y[i] ? -1 : 1;
}

void *memchr(const void *text, int value, size_t n) {
    const byte *t = text;
    size_t i = 0;
    while (i < n && t[i] != (unsigned char)value) i++;
    steps += i / BYTES_A_STEP;
    return i == n ? NULL : (void *)(t + i);
}

/* ---- a file and its texts ---- */

enum { TRUSTED = 999, EVERY = 1000 }; /* bytes; TRUSTED of each EVERY bytes are trusted */

typedef struct options {
    bool parse, trusted, spans;
} options;

static char *read_all(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) return NULL;
    long size = ftell(f);
    rewind(f);
    char *data = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (data && fread(data, 1, (size_t)size, f) != (size_t)size) return NULL;
    fclose(f);
    *n = (size_t)size;
    return data;
}

static ggtok_status encode_trusted(ggtok_context *ctx, const char *text, size_t n, ggtok_ids *ids,
                                   ggtok_error *err) {
    size_t n_ranges = n / EVERY;
    ggtok_range *ranges = malloc((n_ranges + 1) * sizeof *ranges);
    ggtok_parts parts;
    if (!ranges) return GGTOK_ERR_MEMORY;
    for (size_t i = 0; i < n_ranges; i++) ranges[i] = (ggtok_range){i * EVERY, i * EVERY + TRUSTED};
    ggtok_status s =
        ggtok_encode_trusted(ctx, text, n, GGTOK_PARSE_SPECIAL, ranges, n_ranges, ids, &parts, err);
    free(ranges);
    return s;
}

static ggtok_status encode(ggtok_context *ctx, const char *text, size_t n, options o,
                           ggtok_ids *ids, ggtok_error *err) {
    unsigned flags = (o.parse ? GGTOK_PARSE_SPECIAL : 0) | (o.spans ? GGTOK_SPANS : 0);
    ggtok_status s = o.trusted ? encode_trusted(ctx, text, n, ids, err)
                               : ggtok_encode(ctx, text, n, flags, ids, err);
    if (s || !o.spans) return s;
    ggtok_span *spans = malloc((ids->n + 1) * sizeof *spans);
    s = spans ? ggtok_spans(ctx, spans, err) : GGTOK_ERR_MEMORY;
    free(spans);
    return s;
}

static bool measure(const ggtok_tokenizer *tok, const char *path, options o, ggtok_error *err) {
    size_t n;
    ggtok_ids ids;
    ggtok_context *ctx;
    char *text = read_all(path, &n);
    if (!text || ggtok_context_new(tok, &ctx, err)) return false;
    steps = 0;
    ggtok_status s = encode(ctx, text, n, o, &ids, err);
    if (!s) printf("%llu %zu\n", steps, ids.n);
    ggtok_context_free(ctx);
    free(text);
    return !s;
}

int main(int argc, char **argv) {
    options o = {0};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        o.parse |= argv[i][1] == 'p';
        o.trusted |= argv[i][1] == 't';
        o.spans |= argv[i][1] == 's';
    }
    size_t n;
    ggtok_tokenizer *tok;
    ggtok_error err = {.message = "cannot read a file"};
    char *data = i < argc ? read_all(argv[i++], &n) : NULL;
    steps = 0;
    bool fine = data && !ggtok_load_buffer(data, n, NULL, &tok, &err);
    if (fine) {
        printf("%llu\n", steps);
        while (fine && i < argc) fine = measure(tok, argv[i++], o, &err);
        ggtok_free(tok);
    }
    free(data);
    if (!fine) printf("%s\n", err.message);
    return !fine;
}
