#include "fuzz.h"

static const char *const fixtures[] = {FIXTURES}; /* paths, from the build */
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

void twins_open(twins *t) {
    CHECK(!ggtok_context_new(t->tok, &t->ctx, NULL));
    CHECK(!plain_ggtok_context_new(t->plain, &t->plain_ctx, NULL));
}

void twins_close(twins *t) {
    ggtok_context_free(t->ctx);
    plain_ggtok_context_free(t->plain_ctx);
    ggtok_free(t->tok);
    plain_ggtok_free(t->plain);
}

static void load(twins *t, const char *path, const char *pre) {
    ggtok_load_options options = {.pre = pre};
    ggtok_error err;
    if (ggtok_load_file(path, pre ? &options : NULL, &t->tok, &err)) {
        fprintf(stderr, "%s: %s\n", path, err.message);
        abort();
    }
    CHECK(!plain_ggtok_load_file(path, pre ? &options : NULL, &t->plain, NULL));
    twins_open(t);
}

twins *twins_at(size_t i) {
    static twins all[256];
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

ggtok_ids check_ids(twins *t, const char *text, size_t n, unsigned flags) {
    ggtok_ids ids, plain;
    ggtok_error err;
    ggtok_status s = ggtok_encode(t->ctx, text, n, flags, &ids, &err);
    CHECK(plain_ggtok_encode(t->plain_ctx, text, n, flags, &plain, NULL) == s);
    CHECK(!s || (s != GGTOK_ERR_MEMORY && err.status == s && err.message[0] && !ids.n));
    check_same(ids, plain);
    return ids;
}

void check_encode(twins *t, const char *text, size_t n, unsigned flags) {
    ggtok_ids ids = check_ids(t, text, n, flags);
    ggtok_bytes out;
    ggtok_error err;
    if (!ids.n) return;
    int32_t *copy = (int32_t *)copy_of((const uint8_t *)ids.data, ids.n * sizeof *ids.data);
    ggtok_status s = ggtok_decode(t->ctx, copy, ids.n, flags, &out, &err);
    CHECK(!s || (s == GGTOK_ERR_ARGUMENT && err.message[0])); /* -1: see ggtok.h's RWKV */
    free(copy);
}
