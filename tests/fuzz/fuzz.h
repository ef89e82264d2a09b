/*
 * Shared by the fuzz targets: pairs of one tokenizer from the library under test (with sanitizers)
 * and one from the plain build, whose symbols begin with plain_.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "ggtok.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Aborts with a message, which libFuzzer reports as a finding, if `condition` is false. */
#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

ggtok_status plain_ggtok_load_buffer(const void *data, size_t size,
                                     const ggtok_load_options *options, ggtok_tokenizer **out,
                                     ggtok_error *err);
ggtok_status plain_ggtok_load_file(const char *path, const ggtok_load_options *options,
                                   ggtok_tokenizer **out, ggtok_error *err);
ggtok_status plain_ggtok_context_new(const ggtok_tokenizer *tok, ggtok_context **out,
                                     ggtok_error *err);
void plain_ggtok_context_free(ggtok_context *ctx);
void plain_ggtok_free(ggtok_tokenizer *tok);
ggtok_status plain_ggtok_encode(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                                ggtok_ids *out, ggtok_error *err);
ggtok_status plain_ggtok_spans(ggtok_context *ctx, ggtok_span *spans, ggtok_error *err);
ggtok_status plain_ggtok_encode_trusted(ggtok_context *ctx, const char *text, size_t n,
                                        unsigned flags, const ggtok_range *trusted,
                                        size_t n_trusted, ggtok_ids *out, ggtok_parts *parts,
                                        ggtok_error *err);
int32_t plain_ggtok_special_id(const ggtok_tokenizer *tok, ggtok_special which);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct build_pair {
    ggtok_tokenizer *tok, *plain;
    ggtok_context *ctx, *plain_ctx;
} build_pair;

void pair_open(build_pair *t); /* creates contexts for the two loaded tokenizers */
void pair_close(build_pair *t);

/* Returns pair number i (modulo the number of pairs): a fixture, or BASE with one of the
 * pre-tokenizers. */
build_pair *pair_at(size_t i);

void check_same(ggtok_ids a, ggtok_ids b);

/* Encodes with both builds and compares ids and spans. */
ggtok_ids check_ids(build_pair *t, const char *text, size_t n, unsigned flags);

/* Like check_ids, and decodes the ids. */
void check_encode(build_pair *t, const char *text, size_t n, unsigned flags);

/* Returns a copy in exactly n bytes of memory, so that sanitizers detect reads beyond its end;
 * zeros if p is NULL. */
char *copy_of(const uint8_t *p, size_t n);

#endif
