#include "fuzz.h"

static const char *const fixtures[] = {FIXTURES}; /* the fixtures' paths, defined by the build */
enum { N_FIXTURES = sizeof fixtures / sizeof *fixtures };

char *copy_of(const uint8_t *p, size_t n) {
    char *copy = malloc(n + !n);
    CHECK(copy);
    if (p)
        memcpy(copy, p, n);
    else
        memset(copy, 0, n);
    return copy;
}

void pair_open(build_pair *t) {
    CHECK(!ggtok_context_new(t->tok, &t->ctx, NULL));
    CHECK(!plain_ggtok_context_new(t->plain, &t->plain_ctx, NULL));
}

void pair_close(build_pair *t) {
    ggtok_context_free(t->ctx);
    plain_ggtok_context_free(t->plain_ctx);
    ggtok_free(t->tok);
    plain_ggtok_free(t->plain);
}

static void load(build_pair *t, const char *path, const char *pre) {
    ggtok_load_options options = {.pre = pre};
    ggtok_error err;
    if (ggtok_load_file(path, pre ? &options : NULL, &t->tok, &err)) {
        fprintf(stderr, "%s: %s\n", path, err.message);
        abort();
    }
    CHECK(!plain_ggtok_load_file(path, pre ? &options : NULL, &t->plain, NULL));
    pair_open(t);
}

build_pair *pair_at(size_t i) {
    static build_pair all[256];
    static size_t n_pre;
    while (ggtok_pre_name(n_pre)) n_pre++;
    i %= N_FIXTURES + n_pre;
    if (!all[i].tok) {
        const char *pre = i < N_FIXTURES ? NULL : ggtok_pre_name(i - N_FIXTURES);
        load(&all[i], pre ? BASE : fixtures[i], pre);
    }
    return &all[i];
}

void check_same(ggtok_ids a, ggtok_ids b) {
    CHECK(a.n == b.n && (!a.n || !memcmp(a.data, b.data, a.n * sizeof *a.data)));
}

/* Checks the spans of the text that was encoded last, which has n bytes. */
static void check_spans(build_pair *t, size_t n_ids, size_t n) {
    ggtok_span *spans = calloc(n_ids + 1, sizeof *spans), *plain = calloc(n_ids + 1, sizeof *plain);
    CHECK(spans && plain);
    CHECK(!ggtok_spans(t->ctx, spans, NULL) && !plain_ggtok_spans(t->plain_ctx, plain, NULL));
    CHECK(!memcmp(spans, plain, n_ids * sizeof *spans));
    for (size_t i = 0; i < n_ids; i++) {
        CHECK(spans[i].begin >= 0 && spans[i].begin <= spans[i].end && spans[i].end <= (int64_t)n);
        CHECK(!i || spans[i - 1].begin <= spans[i].begin);
    }
    free(spans);
    free(plain);
}

ggtok_ids check_ids(build_pair *t, const char *text, size_t n, unsigned flags) {
    ggtok_ids ids, plain;
    ggtok_error err;
    flags |= GGTOK_SPANS;
    ggtok_status s = ggtok_encode(t->ctx, text, n, flags, &ids, &err);
    CHECK(plain_ggtok_encode(t->plain_ctx, text, n, flags, &plain, NULL) == s);
    CHECK(!s || (s != GGTOK_ERR_MEMORY && err.status == s && err.message[0] && !ids.n));
    check_same(ids, plain);
    if (!s) check_spans(t, ids.n, n);
    return ids;
}

void check_encode(build_pair *t, const char *text, size_t n, unsigned flags) {
    ggtok_ids ids = check_ids(t, text, n, flags);
    ggtok_bytes out;
    ggtok_error err;
    if (!ids.n) return;
    int32_t *copy = (int32_t *)copy_of((const uint8_t *)ids.data, ids.n * sizeof *ids.data);
    ggtok_status s = ggtok_decode(t->ctx, copy, ids.n, flags, &out, &err);
    /* Decoding fails if RWKV's unknown id is -1 (docs/design/types.md). */
    CHECK(!s || (s == GGTOK_ERR_ARGUMENT && err.message[0]));
    free(copy);
}
