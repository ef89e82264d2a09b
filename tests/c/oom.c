/*
 * Fails each allocation in turn, alone or with all later ones. Loading, encoding and decoding must
 * either succeed or report that memory ran out; nothing may leak, and existing objects must remain
 * usable. Compiled with GGTOK_TEST_ALLOC (cext/base/mem.c).
 *
 *     oom FILE.gguf ...
 */
#include "failing_alloc.h"
#include "ggtok_sample.h"
#include "texts.h"

#include <stdio.h>
#include <string.h>

enum { SPLIT_BYTES = 50 };
#include "split.h"

/* ---- the calls ---- */

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("%s: allocation %zu%s: %s does not hold (line %d)\n", path, at, \
                   on ? " and all after it" : "", #what, __LINE__); \
            return false; \
        } \
    } while (0)

typedef struct result {
    int32_t *ids;
    ggtok_span *spans; /* one for each id */
    char *text;
    size_t n, n_text;
} result;

static void result_free(result *r) {
    free(r->ids);
    free(r->spans);
    free(r->text);
    *r = (result){0};
}

/* Encodes a text with spans, and decodes the ids. */
static ggtok_status encode_and_decode(ggtok_context *ctx, const char *text, unsigned flags,
                                      result *r, ggtok_error *err) {
    ggtok_ids ids;
    ggtok_bytes out = {NULL, 0};
    *r = (result){0};
    ggtok_status s = ggtok_encode(ctx, text, strlen(text), flags | GGTOK_SPANS, &ids, err);
    if (s) return s;
    r->n = ids.n;
    r->ids = malloc(ids.n * sizeof *r->ids + 1);
    if (!r->ids) abort();
    if (ids.n) memcpy(r->ids, ids.data, ids.n * sizeof *r->ids);
    r->spans = calloc(ids.n + 1, sizeof *r->spans);
    if (!r->spans) abort();
    if ((s = ggtok_spans(ctx, r->spans, err))) {
        result_free(r);
        return s;
    }
    s = ggtok_decode(ctx, r->ids, r->n, GGTOK_UNPARSE_SPECIAL, &out, err);
    if (s == GGTOK_ERR_ARGUMENT) s = GGTOK_OK; /* an id is -1: there is no unknown token */
    if (s) {
        result_free(r);
        return s;
    }
    r->n_text = out.n;
    r->text = malloc(out.n + 1);
    if (!r->text) abort();
    if (out.n) memcpy(r->text, out.data, out.n);
    return GGTOK_OK;
}

static bool same(const result *a, const result *b) {
    return a->n == b->n && a->n_text == b->n_text &&
           !memcmp(a->ids, b->ids, a->n * sizeof *a->ids) &&
           !memcmp(a->spans, b->spans, a->n * sizeof *a->spans) &&
           !memcmp(a->text, b->text, a->n_text);
}

typedef struct expected {
    ggtok_status status[N_TEXTS][4];
    result r[N_TEXTS][4];
    int32_t special[GGTOK_N_SPECIAL];
} expected;

/* Samples a text by each rule, and lists its best segmentations, while allocations may fail. A
 * vocabulary that can't encode can't sample. */
static bool check_samples(const char *path, ggtok_context *ctx, const expected *want, size_t at,
                          bool on) {
    static const char text[] = "The quick brown kettles</s> on fire";
    for (int rule = 0; rule < 4; rule++) {
        const ggtok_sampling sampling = {.rule = (ggtok_sampling_rule)(rule > 0),
                                         .value = 0.5,
                                         .nbest = rule == 2 ? 3 : 0,
                                         .seed = 1};
        ggtok_ids ids;
        ggtok_segmentations found = {0};
        ggtok_error err;
        bool before = failed;
        unsigned flags = GGTOK_ADD_SPECIAL | GGTOK_PARSE_SPECIAL;
        ggtok_status s =
            rule < 3 ? ggtok_sample(ctx, text, sizeof text - 1, flags, &sampling, &ids, &err)
                     : ggtok_nbest(ctx, text, sizeof text - 1, flags, 4, &found, &err);
        CHECK(!s || s == GGTOK_ERR_ARGUMENT || s == GGTOK_ERR_VOCAB || s == want->status[0][3] ||
              (failed && s == GGTOK_ERR_MEMORY && err.status == s && err.message[0]));
        CHECK(s != GGTOK_ERR_MEMORY || failed != before || on);
        CHECK(s || rule < 3 || (found.n && found.ends[found.n - 1] > 0));
    }
    return true;
}

/* Runs every text with all flags and checks the results, while allocations may fail. */
static bool check_texts(const char *path, ggtok_context *ctx, const expected *want, size_t at,
                        bool on) {
    for (int i = 0; i < N_TEXTS; i++) {
        for (unsigned flags = 0; flags < 4; flags++) {
            result r;
            ggtok_error err;
            bool before = failed;
            ggtok_status s = encode_and_decode(ctx, texts[i], flags, &r, &err);
            bool right = s == want->status[i][flags] && (s || same(&r, &want->r[i][flags]));
            CHECK(right || (failed && s == GGTOK_ERR_MEMORY && err.status == s && err.message[0]));
            CHECK(right || failed != before || on);
            result_free(&r);
        }
    }
    return true;
}

/* Loads the file and runs the texts while the at-th allocation fails. Sets *done if there are fewer
 * than `at` allocations. */
static bool run_file(const char *path, const ggtok_load_options *options, const expected *want,
                     size_t at, bool on, bool *done) {
    ggtok_tokenizer *tok;
    ggtok_context *ctx = NULL;
    ggtok_error err;
    start_failing(at, on);
    ggtok_status s = ggtok_load_file(path, options, &tok, &err);
    CHECK(s ? s == GGTOK_ERR_MEMORY && failed && !tok && err.message[0] : tok != NULL);
    if (!s) {
        s = ggtok_context_new(tok, &ctx, &err);
        CHECK(s ? s == GGTOK_ERR_MEMORY && failed && !ctx : ctx != NULL);
    }
    if (!s) {
        if (!check_texts(path, ctx, want, at, on)) return false;
        if (!check_samples(path, ctx, want, at, on)) return false;
        for (int i = 0; i < GGTOK_N_SPECIAL; i++) ggtok_special_id(tok, (ggtok_special)i);
        *done = !failed;
        start_failing(0, false); /* no more allocations fail */
        if (!check_texts(path, ctx, want, at, on)) return false;
        for (int i = 0; i < GGTOK_N_SPECIAL; i++) {
            CHECK(ggtok_special_id(tok, (ggtok_special)i) == want->special[i]);
        }
    }
    start_failing(0, false);
    ggtok_context_free(ctx);
    ggtok_free(tok);
    CHECK(!blocks_held());
    return true;
}

/* ---- the test ---- */

static bool record(const char *path, const ggtok_load_options *options, expected *want) {
    size_t at = 0;
    bool on = false;
    ggtok_tokenizer *tok;
    ggtok_context *ctx;
    ggtok_error err = {0};
    start_failing(0, false);
    if (ggtok_load_file(path, options, &tok, &err)) {
        printf("%s: %s\n", path, err.message);
        return false;
    }
    CHECK(!ggtok_context_new(tok, &ctx, &err));
    for (int i = 0; i < N_TEXTS; i++) {
        for (unsigned flags = 0; flags < 4; flags++) {
            want->status[i][flags] =
                encode_and_decode(ctx, texts[i], flags, &want->r[i][flags], &err);
        }
    }
    for (int i = 0; i < GGTOK_N_SPECIAL; i++) {
        want->special[i] = ggtok_special_id(tok, (ggtok_special)i);
    }
    ggtok_context_free(ctx);
    ggtok_free(tok);
    return true;
}

static bool check_file(const char *path, const ggtok_load_options *options) {
    static expected want;
    if (!record(path, options, &want)) return false;
    size_t tried = 0;
    for (int on = 0; on < 2; on++) {
        bool done = false;
        for (size_t at = 1; !done; at++, tried++) {
            if (!run_file(path, options, &want, at, on, &done)) return false;
        }
    }
    for (int i = 0; i < N_TEXTS; i++) {
        for (unsigned flags = 0; flags < 4; flags++) result_free(&want.r[i][flags]);
    }
    printf("%s%s: %zu failures\n", path, options ? ", words by a callback" : "", tried - 2);
    return tried > 2;
}

int main(int argc, char **argv) {
    const ggtok_load_options by_callback = {.split = split};
    int bad = argc < 2;
    for (int i = 1; i < argc; i++) {
        bad += !check_file(argv[i], NULL);
        if (strstr(argv[i], "bpe-gpt2")) bad += !check_file(argv[i], &by_callback);
    }
    return bad != 0;
}
