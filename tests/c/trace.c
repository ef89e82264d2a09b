/*
 * Tests ggtok_trace and ggtok_trace_token: stopped at each event, limited to each number of events,
 * and (compiled with GGTOK_TEST_ALLOC) with each allocation failing in turn. The ids are those of
 * ggtok_encode, and the context stays usable.
 *
 *     trace FILE.gguf ...
 */
#include "failing_alloc.h"
#include "ggtok_trace.h"
#include "texts.h"

#include <stdio.h>
#include <string.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("%s: %s does not hold (line %d)\n", path, #what, __LINE__); \
            return false; \
        } \
    } while (0)

typedef struct counter {
    size_t n, stop_at;
    size_t tokens;
} counter;

static bool count(void *user, const ggtok_trace_event *e) {
    counter *c = user;
    c->tokens += e->kind == GGTOK_TRACE_TOKEN;
    return c->n++ != c->stop_at;
}

/* A call to trace a text or, if the text is NULL, a token. */
typedef struct call {
    ggtok_context *ctx;
    const char *text;
    unsigned flags;
    int32_t id;
} call;

static ggtok_status run_trace(const call *c, size_t max, counter *to, ggtok_error *err) {
    ggtok_token_trace found;
    ggtok_ids ids;
    return c->text
               ? ggtok_trace(c->ctx, c->text, strlen(c->text), c->flags, max, count, to, &ids, err)
               : ggtok_trace_token(c->ctx, c->id, max, count, to, &found, err);
}

static ggtok_status as_json(const call *c, ggtok_bytes *out, ggtok_error *err) {
    return c->text
               ? ggtok_trace_json(c->ctx, c->text, strlen(c->text), c->flags, SIZE_MAX, out, err)
               : ggtok_trace_token_json(c->ctx, c->id, SIZE_MAX, out, err);
}

static bool check_call(const char *path, const call *c, size_t step) {
    ggtok_error err;
    counter all = {.stop_at = SIZE_MAX};
    ggtok_status s = run_trace(c, SIZE_MAX, &all, &err);
    ggtok_ids ids = {NULL, 0};
    if (c->text) {
        CHECK(s == ggtok_encode(c->ctx, c->text, strlen(c->text), c->flags, &ids, &err));
        if (!s) CHECK(all.tokens == ids.n);
    }
    if (s) return true; /* the vocabulary adds a token that it lacks */
    for (size_t at = 0; at < all.n; at += step) {
        counter some = {.stop_at = at};
        CHECK(run_trace(c, SIZE_MAX, &some, &err) == GGTOK_ERR_STOPPED && some.n == at + 1);
        some = (counter){.stop_at = SIZE_MAX};
        CHECK(run_trace(c, at, &some, &err) == GGTOK_ERR_ARGUMENT && some.n == at);
    }
    counter repeated = {.stop_at = SIZE_MAX};
    CHECK(!run_trace(c, all.n, &repeated, &err) && repeated.n == all.n &&
          repeated.tokens == all.tokens);
    return true;
}

/* Builds the JSON while each allocation fails, alone or with all later ones, each time with a new
 * context. */
static bool fail_all(const char *path, const ggtok_tokenizer *tok, call *c) {
    ggtok_error err;
    ggtok_bytes out;
    char *want = NULL;
    size_t n = 0, before = blocks_held();
    for (int on = 0; on < 2; on++) {
        bool done = false;
        for (size_t at = 0; !done; at++) { /* 0: none fails */
            start_failing(0, false);
            CHECK(!ggtok_context_new(tok, &c->ctx, &err));
            start_failing(at, on);
            ggtok_status s = as_json(c, &out, &err);
            done = at && !failed;
            start_failing(0, false);
            CHECK(s == GGTOK_OK || s == GGTOK_ERR_MEMORY);
            if (!s && !want) {
                want = malloc(n = out.n);
                if (!want) abort();
                memcpy(want, out.data, n);
            }
            if (!s) CHECK(out.n == n && !memcmp(out.data, want, n));
            CHECK(!as_json(c, &out, &err) && out.n == n && !memcmp(out.data, want, n));
            ggtok_context_free(c->ctx);
            CHECK(blocks_held() == before);
        }
    }
    free(want);
    return true;
}

static bool check_file(const char *path) {
    enum { TEXTS_THAT_FAIL = 6, TOKENS = 5 };
    ggtok_tokenizer *tok;
    ggtok_error err;
    start_failing(0, false);
    CHECK(!ggtok_load_file(path, NULL, &tok, &err));
    if (ggtok_type(tok) == GGTOK_VOCAB_NONE) {
        ggtok_free(tok);
        return true;
    }
    call c = {0};
    CHECK(!ggtok_context_new(tok, &c.ctx, &err));
    for (int i = 0; i < N_TEXTS; i++) {
        for (c.flags = 0; c.flags < 4; c.flags++) {
            c.text = texts[i];
            if (strlen(c.text) <= GGTOK_TRACE_BYTES &&
                !check_call(path, &c, 1 + strlen(c.text) / 16))
                return false;
        }
    }
    char *longest = calloc(GGTOK_TRACE_BYTES + 2, 1);
    if (!longest) abort();
    memset(longest, 'a', GGTOK_TRACE_BYTES + 1);
    c.text = longest;
    counter none = {.stop_at = SIZE_MAX};
    CHECK(run_trace(&c, SIZE_MAX, &none, &err) == GGTOK_ERR_ARGUMENT && !none.n);
    free(longest);
    c.text = NULL;
    bool merges = ggtok_type(tok) == GGTOK_VOCAB_BPE || ggtok_type(tok) == GGTOK_VOCAB_SPM;
    const int32_t n = (int32_t)ggtok_n_tokens(tok);
    for (c.id = 0; merges && c.id < n; c.id += 1 + n / 100) {
        if (!check_call(path, &c, 1)) return false;
    }
    c.id = 0;
    if (!merges) CHECK(run_trace(&c, SIZE_MAX, &none, &err) == GGTOK_ERR_UNSUPPORTED);
    c.id = n;
    CHECK(run_trace(&c, SIZE_MAX, &none, &err) == GGTOK_ERR_ARGUMENT);
    ggtok_context_free(c.ctx);
#ifdef GGTOK_TEST_ALLOC
    c.flags = GGTOK_PARSE_SPECIAL;
    for (int i = 0; i < TEXTS_THAT_FAIL; i++) {
        c.text = texts[i];
        if (!fail_all(path, tok, &c)) return false;
    }
    c.text = NULL;
    for (int i = 0; merges && i < TOKENS; i++) {
        c.id = n / TOKENS * i + 7;
        if (!fail_all(path, tok, &c)) return false;
    }
#else
    (void)fail_all;
#endif
    ggtok_free(tok);
    return true;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (!check_file(argv[i])) return 1;
    }
    puts("ok");
    return 0;
}
