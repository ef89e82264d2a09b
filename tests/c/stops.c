/*
 * Stops calls through their interrupt callback. In every model and for every kind of text, the
 * callback must be called often enough, and not again after it has returned false. Afterwards, the
 * context must give the same ids as before.
 *
 *     stops [-a] FILE.gguf ...     with -a: stops at the first, a middle and the last call of the
 *                                  callback; without: at one of these, for every other text
 *
 * Claim python.3.
 */
#include "ggtok_sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIZE = 300000,    /* bytes of a text */
    BETWEEN = 1 << 17 /* maximum bytes between two calls of the callback */
};

/* Each text repeats one of these: words, one letter, white space, special tokens, malformed UTF-8,
 * ... */
static const char *const repeated[] = {
    "The quick brown kettle, 123 of them; it's fine\n",
    "a",
    " ",
    "\n",
    "<",
    "aB1!",
    "!?",
    "<s></s>",
    "<|im_end|>",
    "\xE6\xBC\xA2\xE5\xAD\x97",
    "\xC3\xA9 \xF0\x9D\x84\x9E ",
    "\xFF\x80",
    "a\xC3",
    "<dna>ACGT",
    "\xE2\x96\x81x",
};
enum { N_REPEATED = sizeof repeated / sizeof *repeated };

typedef struct callback_state {
    size_t n_calls, last; /* call number `last` returns false; 0: none does */
} callback_state;

static bool keep_going(void *user) {
    callback_state *state = user;
    return ++state->n_calls != state->last;
}

static unsigned long long sum_of(const ggtok_ids *ids) {
    unsigned long long sum = 1469598103934665603u + ids->n;
    for (size_t i = 0; i < ids->n; i++) sum = (sum ^ (unsigned)ids->data[i]) * 1099511628211u;
    return sum;
}

/* Encodes the text with a callback that returns false at call number `last`. */
static ggtok_status encode(ggtok_context *ctx, const char *text, size_t last, callback_state *state,
                           unsigned long long *sum, ggtok_error *err) {
    ggtok_ids ids;
    *state = (callback_state){.last = last};
    ggtok_context_set_interrupt(ctx, keep_going, state);
    ggtok_status s = ggtok_encode(ctx, text, SIZE, GGTOK_PARSE_SPECIAL, &ids, err);
    *sum = sum_of(&ids);
    ggtok_context_set_interrupt(ctx, NULL, NULL);
    return s;
}

static bool all_stops;
static size_t next_stop;

static bool check_text(const ggtok_tokenizer *tok, ggtok_context *ctx, const char *text,
                       size_t *n_calls) {
    callback_state state;
    ggtok_error err;
    unsigned long long want, sum;
    if (encode(ctx, text, 0, &state, &want, &err)) return printf("%s\n", err.message), false;
    *n_calls = state.n_calls;
    next_stop++;
    for (size_t k = 0; k < 3; k++) {
        if (!all_stops && k != next_stop % 3) continue;
        size_t last = k == 0 ? !!*n_calls : k == 1 ? *n_calls / 2 : *n_calls;
        ggtok_context *fresh;
        if (!last) continue;
        if (ggtok_context_new(tok, &fresh, &err)) return false;
        for (int cached = 0; cached < 2; cached++) { /* uncached, then cached */
            ggtok_context *c = cached ? ctx : fresh;
            ggtok_status s = encode(c, text, last, &state, &sum, &err);
            if (!cached || s) { /* for cached text, the callback may be called less often */
                if (s != GGTOK_ERR_STOPPED || state.n_calls != last || err.status != s) {
                    printf("stopped at call %zu of the callback: status %d, %zu calls\n", last, s,
                           state.n_calls);
                    return false;
                }
            }
            if (encode(c, text, 0, &state, &sum, &err) || sum != want) {
                printf("different ids after a stop at call %zu of the callback\n", last);
                return false;
            }
        }
        ggtok_context_free(fresh);
    }
    return true;
}

/* Checks ggtok_safe_cut in the same way: a search through the whole text must call the callback. */
static bool check_cut(ggtok_context *ctx, const char *text) {
    callback_state all = {0}, first = {.last = 1};
    ggtok_context_set_interrupt(ctx, keep_going, &all);
    size_t at = ggtok_safe_cut(ctx, text, SIZE, 0);
    ggtok_context_set_interrupt(ctx, keep_going, &first);
    size_t stopped = ggtok_safe_cut(ctx, text, SIZE, 0), used = SIZE;
    callback_state block = {.last = 1};
    ggtok_ids ids;
    ggtok_error err;
    ggtok_context_set_interrupt(ctx, keep_going, &block);
    ggtok_status s = ggtok_encode_block(ctx, text, SIZE, 0, &ids, &used, &err);
    ggtok_context_set_interrupt(ctx, NULL, NULL);
    if (all.n_calls && (s != GGTOK_ERR_STOPPED || err.status != s || used || ids.n)) {
        printf("a block when stopped: status %d, %zu bytes, %zu ids\n", s, used, ids.n);
        return false;
    }
    if ((at || all.n_calls >= SIZE / BETWEEN) && stopped == (all.n_calls ? 0 : at) &&
        first.n_calls == !!all.n_calls && ggtok_safe_cut(ctx, text, SIZE, 0) == at) {
        return true;
    }
    printf("cut at %zu, %zu calls; when stopped: at %zu, %zu calls\n", at, all.n_calls, stopped,
           first.n_calls);
    return false;
}

/* Checks ggtok_sample and ggtok_nbest in the same way. */
static bool check_sample(const ggtok_tokenizer *tok, ggtok_context *ctx, const char *text) {
    const bool is_ugm = ggtok_type(tok) == GGTOK_VOCAB_UGM;
    const ggtok_sampling sampling = {.rule = is_ugm ? GGTOK_SAMPLING_ALPHA : GGTOK_SAMPLING_DROPOUT,
                                     .value = 0.3};
    callback_state all = {0}, last = {0};
    ggtok_ids ids;
    ggtok_segmentations found;
    ggtok_error err;
    ggtok_context_set_interrupt(ctx, keep_going, &all);
    ggtok_status s = ggtok_sample(ctx, text, SIZE, 0, &sampling, &ids, &err);
    unsigned long long want = sum_of(&ids);
    if (s == GGTOK_ERR_ARGUMENT) return true; /* not BPE, SPM or UGM */
    last.last = all.n_calls / 2 + 1;
    ggtok_context_set_interrupt(ctx, keep_going, &last);
    ggtok_status stopped = ggtok_sample(ctx, text, SIZE, 0, &sampling, &ids, &err);
    ggtok_context_set_interrupt(ctx, NULL, NULL);
    bool same = !ggtok_sample(ctx, text, SIZE, 0, &sampling, &ids, &err) && sum_of(&ids) == want;
    callback_state best = {.last = 2};
    ggtok_context_set_interrupt(ctx, keep_going, &best);
    ggtok_status listed = ggtok_nbest(ctx, text, SIZE, 0, 3, &found, &err);
    ggtok_context_set_interrupt(ctx, NULL, NULL);
    bool fine = !s && all.n_calls >= SIZE / BETWEEN && stopped == GGTOK_ERR_STOPPED &&
                last.n_calls == last.last && same &&
                listed == (is_ugm ? GGTOK_ERR_STOPPED : GGTOK_ERR_ARGUMENT) && !found.n;
    if (!fine) {
        printf("sample: status %d, %zu calls; stopped: %d, %zu calls; best: %d\n", s, all.n_calls,
               stopped, last.n_calls, listed);
    }
    return fine;
}

static bool check_file_stops(const char *path, int number, char *text) {
    ggtok_tokenizer *tok;
    ggtok_context *ctx;
    ggtok_error err;
    if (ggtok_load_file(path, NULL, &tok, &err) || ggtok_context_new(tok, &ctx, &err)) {
        printf("%s: %s\n", path, err.message);
        return false;
    }
    ggtok_vocab_type type = ggtok_type(tok);
    /* NONE has no model; TEST only hashes the text, at 2 GB/s. */
    bool calls_back = type != GGTOK_VOCAB_NONE && type != GGTOK_VOCAB_TEST;
    for (int i = 0; calls_back && i < N_REPEATED; i++) {
        size_t n = strlen(repeated[i]), n_calls = 0;
        if (!all_stops && (i + number) % 2) continue;
        for (size_t at = 0; at < SIZE; at++) text[at] = repeated[i][at % n];
        bool fine = check_text(tok, ctx, text, &n_calls) && check_cut(ctx, text) &&
                    check_sample(tok, ctx, text);
        if (fine && n_calls >= SIZE / BETWEEN) continue;
        printf("%s: text %d: %zu calls of the callback\n", path, i, fine ? n_calls : 0);
        return false;
    }
    ggtok_context_free(ctx);
    ggtok_free(tok);
    return true;
}

static bool never(void *user) {
    ++*(size_t *)user;
    return false;
}

/* Checks that a batch of one text stops like a single call, and that releasing a context removes
 * its callback. */
static bool check_pool(const char *path, char *text) {
    ggtok_tokenizer *tok;
    ggtok_pool *pool;
    ggtok_batch *batch;
    ggtok_ids ids;
    ggtok_error err;
    size_t n_calls = 0, failed;
    if (ggtok_load_file(path, NULL, &tok, &err) || ggtok_pool_new(tok, &pool, &err)) return false;
    memset(text, 'a', SIZE);
    ggtok_bytes texts[] = {{text, SIZE}};
    ggtok_status s =
        ggtok_encode_batch(pool, texts, 1, 0, 2, never, &n_calls, &batch, &failed, &err);
    bool fine = s == GGTOK_ERR_STOPPED && !batch && failed == 1 &&
                n_calls == 2; /* the batch itself calls it once more */
    n_calls = 0;
    ggtok_context *ctx = ggtok_pool_acquire(pool, &err);
    ggtok_context_set_interrupt(ctx, never, &n_calls);
    ggtok_pool_release(pool, ctx);
    fine &= ggtok_pool_acquire(pool, &err) == ctx;
    fine &= !ggtok_encode(ctx, text, SIZE, 0, &ids, &err) && !n_calls;
    ggtok_pool_release(pool, ctx);
    ggtok_pool_free(pool);
    ggtok_free(tok);
    if (!fine) printf("%s: batch: status %d, %zu calls of the callback\n", path, s, n_calls);
    return fine;
}

int main(int argc, char **argv) {
    char *text = malloc(SIZE);
    all_stops = argc > 1 && !strcmp(argv[1], "-a");
    int first = 1 + all_stops;
    bool fine = text && argc > first && check_pool(argv[first], text);
    for (int i = first; fine && i < argc; i++) fine = check_file_stops(argv[i], i, text);
    free(text);
    if (fine) puts("ok");
    return !fine;
}
