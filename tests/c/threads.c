/*
 * Sixteen threads use one tokenizer, each with its own context, and must get the same ids and texts
 * as a single thread. It is also run under ThreadSanitizer.
 *
 *     threads FILE.gguf ...
 */
#include "ggtok.h"
#include "texts.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_THREADS = 16, ROUNDS = 5 };

/* Computes a checksum of a context's results for all texts; 0 if memory runs out. */
static unsigned long long checksum(const ggtok_tokenizer *tok, int from) {
    ggtok_context *ctx;
    ggtok_error err;
    unsigned long long sum = 1;
    if (ggtok_context_new(tok, &ctx, &err)) return 0;
    for (int k = 0; k < N_TEXTS * 4 * ROUNDS; k++) {
        int i = (from + k) % (N_TEXTS * 4);
        ggtok_ids ids;
        ggtok_bytes out = {NULL, 0};
        ggtok_status s =
            ggtok_encode(ctx, texts[i / 4], strlen(texts[i / 4]), (unsigned)i % 4, &ids, &err);
        unsigned long long one = 1469598103934665603u + (unsigned)s;
        for (size_t j = 0; j < ids.n; j++) one = (one ^ (unsigned)ids.data[j]) * 1099511628211u;
        int32_t *copy = malloc(ids.n * sizeof *copy + 1);
        if (!copy) abort();
        if (ids.n) memcpy(copy, ids.data, ids.n * sizeof *copy);
        s = ggtok_decode(ctx, copy, ids.n, (unsigned)i % 16, &out, &err);
        for (size_t j = 0; j < out.n; j++)
            one = (one ^ (unsigned char)out.data[j]) * 1099511628211u;
        free(copy);
        sum += one * ((unsigned)i + 1); /* the order of texts doesn't matter */
    }
    for (int i = 0; i < GGTOK_N_SPECIAL; i++) {
        sum += (unsigned)ggtok_special_id(tok, (ggtok_special)i) * 31u;
    }
    sum += (unsigned)ggtok_text_to_token(tok, "Hello", 5);
    ggtok_context_free(ctx);
    return sum;
}

typedef struct job {
    const ggtok_tokenizer *tok;
    int from;
    unsigned long long sum;
} job;

static void *work(void *arg) {
    job *j = arg;
    j->sum = checksum(j->tok, j->from);
    return NULL;
}

/* Whether one text on several threads has the ids of one thread. */
static bool check_parallel(const ggtok_tokenizer *tok) {
    enum { SIZE = 1 << 17 };
    char *text = malloc(SIZE);
    ggtok_pool *pool;
    ggtok_error err;
    if (!text || ggtok_pool_new(tok, &pool, &err)) abort();
    for (int i = 0; i < SIZE; i++) text[i] = "the kettle is on\n"[i * 7919 / 5 % 17];
    ggtok_batch *one, *many;
    ggtok_batch_options options = {.flags = GGTOK_ADD_SPECIAL, .threads = 1};
    ggtok_status failed = ggtok_encode_parallel(pool, text, SIZE, &options, &one, &err);
    options.threads = 4;
    bool same = ggtok_encode_parallel(pool, text, SIZE, &options, &many, &err) == failed;
    if (!failed && same) { /* a file without a vocabulary has no ids */
        size_t n = ggtok_batch_n_ids(one);
        same = n > 0 && ggtok_batch_n_ids(many) == n &&
               !memcmp(ggtok_batch_ids(one), ggtok_batch_ids(many), n * sizeof(int32_t));
    }
    ggtok_batch_free(one);
    ggtok_batch_free(many);
    ggtok_pool_free(pool);
    free(text);
    return same;
}

static bool check_file(const char *path) {
    ggtok_tokenizer *tok;
    ggtok_error err;
    if (ggtok_load_file(path, NULL, &tok, &err)) {
        printf("%s: %s\n", path, err.message);
        return false;
    }
    pthread_t threads[N_THREADS];
    job jobs[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        jobs[i] = (job){tok, i, 0};
        if (pthread_create(&threads[i], NULL, work, &jobs[i])) abort();
    }
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    unsigned long long want = checksum(tok, 0);
    bool same = want != 0 && check_parallel(tok);
    for (int i = 0; i < N_THREADS; i++) same &= jobs[i].sum == want;
    if (!same) printf("%s: threads differ\n", path);
    ggtok_free(tok);
    return same;
}

int main(int argc, char **argv) {
    int bad = argc < 2;
    for (int i = 1; i < argc; i++) bad += !check_file(argv[i]);
    if (!bad) printf("%d files, %d threads: the same ids and texts\n", argc - 1, N_THREADS);
    return bad != 0;
}
