/*
 * Simulates how the threads of a batch take its chunks, with equally fast threads and without a
 * clock. Checks the order of the chunks, and that no thread waits while there is work.
 *
 *     batch [SEED]
 */
#define ggtok_encode_batch test_encode_batch
#define ggtok_encode_batch_with test_encode_batch_with
#define ggtok_batch_n_ids test_batch_n_ids
#define ggtok_batch_ids test_batch_ids
#define ggtok_batch_offsets test_batch_offsets
#define ggtok_batch_spans test_batch_spans
#define ggtok_batch_free test_batch_free
#define ggtok_chunk_bytes test_chunk_bytes
#define ggtok_encode_texts test_encode_texts
#include "api/batch.c"

#include <stdio.h>

#include "random.h"

/* Stubs, because the simulation encodes nothing. */
ggtok_status ggtok_encode(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                          ggtok_ids *ids, ggtok_error *err) {
    (void)ctx, (void)text, (void)n, (void)flags, (void)ids, (void)err;
    abort();
}
ggtok_status ggtok_sample(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                          const ggtok_sampling *sampling, ggtok_ids *ids, ggtok_error *err) {
    (void)ctx, (void)text, (void)n, (void)flags, (void)sampling, (void)ids, (void)err;
    abort();
}
ggtok_status ggtok_check_sampling(const ggtok_tokenizer *tok, const ggtok_sampling *s,
                                  ggtok_error *err) {
    (void)tok, (void)s, (void)err;
    abort();
}
ggtok_status ggtok_spans(ggtok_context *ctx, ggtok_span *spans, ggtok_error *err) {
    (void)ctx, (void)spans, (void)err;
    abort();
}
ggtok_context *ggtok_pool_acquire(ggtok_pool *pool, ggtok_error *err) {
    (void)pool, (void)err;
    abort();
}
void ggtok_pool_release(ggtok_pool *pool, ggtok_context *ctx) {
    (void)pool, (void)ctx;
}
void ggtok_context_set_interrupt(ggtok_context *ctx, ggtok_interrupt_fn keep_going, void *user) {
    (void)ctx, (void)keep_going, (void)user;
}
void ggtok_context_set_special_choice(ggtok_context *ctx, const ggtok_special_choice *choice) {
    (void)ctx, (void)choice;
}

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("%s:%d: %s\n", name, __LINE__, #what); \
            exit(1); \
        } \
    } while (0)

enum { MANY = 40000, THREADS = 4 };

static ggtok_bytes texts[MANY];

static size_t received;

/* Checks that every text is received once, in order. */
static bool receive_parts(void *user, const ggtok_batch_part *parts, size_t n) {
    const char *name = user;
    for (size_t i = 0; i < n; received += parts[i++].n) CHECK(parts[i].first == received);
    return true;
}

/* Runs a batch of these texts on simulated threads: in each round, the thread that has encoded the
 * fewest bytes takes a chunk. Returns how often a thread had to wait for others. */
static size_t run_batch(const char *name, size_t n, unsigned threads, bool receives) {
    const ggtok_batch_options options = {.user = (void *)(uintptr_t)name,
                                         .receive = receives ? receive_parts : NULL};
    ggtok_error err;
    worker workers[THREADS] = {{0}};
    ggtok_batch *b = batch_new(n);
    job j = {.batch = b, .texts = texts, .options = &options, .threads = threads};
    CHECK(b && !job_init(&j, n, &err));
    for (unsigned i = 0; i < THREADS; i++) workers[i].job = &j;
    workers[0].receives = receives;
    received = 0;
    size_t total = 0, longest = 0, waits = 0, encoded[THREADS] = {0}, taken = 0;
    for (size_t i = 0; i < n; i++) {
        total += texts[i].n;
        longest = longest < texts[i].n ? texts[i].n : longest;
    }
    /* A chunk of several texts would be smaller than the target without its last text. */
    size_t target = ggtok_chunk_bytes(total, threads), first = 0;
    for (size_t k = 0; k < j.n_chunks; k++) {
        const chunk *c = &j.chunks[k];
        CHECK(c->first == first && c->n);
        CHECK(c->n == 1 || c->n_bytes - texts[first + c->n - 1].n < target);
        first += c->n;
    }
    CHECK(first == n);
    /* Long texts come first, in descending order of length; all others follow in their original
     * order. */
    for (size_t k = 1; threads > 1 && k < j.n_chunks; k++) {
        const chunk *a = j.order[k - 1], *c = j.order[k];
        bool was_long = a->n == 1 && a->n_bytes > CHUNK_MAX;
        if (c->n == 1 && c->n_bytes > CHUNK_MAX)
            CHECK(was_long && a->n_bytes >= c->n_bytes);
        else
            CHECK(was_long || a->first < c->first);
    }
    chunk *at[THREADS] = {NULL};
    for (size_t done = 0; done < j.n_chunks;) {
        /* The thread that has encoded the least is next: it finishes its chunk, or takes one. */
        unsigned t = 0;
        for (unsigned i = 1; i < j.threads; i++) {
            if (encoded[i] < encoded[t]) t = i;
        }
        if (at[t]) {
            end_chunk(&workers[t], at[t]);
            at[t] = NULL;
            done++;
            continue;
        }
        bool later;
        chunk *c;
        lock_acquire(&j.lock);
        do { /* the same steps as take_chunk */
            if (workers[t].receives) append_due(&j, RECEIVE);
            c = next_chunk(&j, &later);
        } while (!c && later && workers[t].receives && append_due(&j, 0));
        lock_release(&j.lock);
        if (c) {
            at[t] = c;
            encoded[t] += c->n_bytes + 1;
            taken++;
            continue;
        }
        waits += later;
        /* The thread waits until another one finishes. */
        unsigned next = THREADS;
        for (unsigned i = 0; i < j.threads; i++) {
            if (at[i] && (next == THREADS || encoded[i] < encoded[next])) next = i;
        }
        CHECK(next < THREADS);
        encoded[t] = encoded[next] + 1;
    }
    lock_acquire(&j.lock);
    if (receives) append_due(&j, 0);
    lock_release(&j.lock);
    CHECK(taken == j.n_chunks && j.n_appended == j.n_chunks && !j.waiting);
    CHECK(received == (receives ? n : 0));
    /* The work is divided evenly, except that a single text can't be divided. */
    size_t most = 0;
    for (unsigned i = 0; i < j.threads; i++) most = most < encoded[i] ? encoded[i] : most;
    size_t fair = total / j.threads, slack = 2 * target + n + 64;
    CHECK(most <= (longest > fair ? longest : fair + longest) + slack);
    job_free(&j);
    ggtok_batch_free(b);
    return waits;
}

/* Runs the batch both with and without a function that receives the ids on the first thread. */
static size_t simulate(const char *name, size_t n, unsigned threads) {
    return run_batch(name, n, threads, false) + run_batch(name, n, threads, true);
}

static void even(size_t n, size_t size) {
    for (size_t i = 0; i < n; i++) texts[i] = (ggtok_bytes){NULL, size};
}

int main(int argc, char **argv) {
    random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    for (unsigned threads = 1; threads <= THREADS; threads++) {
        const char *name = "even";
        /* Sizes from a few bytes to more than the largest chunks can hold. */
        for (size_t size = 1; size <= 1 << 16; size *= 4) {
            for (size_t n = 1; n <= MANY && n * size < (size_t)1 << 31; n *= 5) {
                even(n, size);
                CHECK(!simulate(name, n, threads));
            }
        }
        name = "uneven";
        for (int round = 0; round < 20; round++) {
            size_t n = 1 + below(MANY);
            for (size_t i = 0; i < n; i++) texts[i] = (ggtok_bytes){NULL, below(9000)};
            CHECK(!simulate(name, n, threads));
        }
        /* A huge text is started first, wherever it is, while other threads encode the rest. */
        name = "one huge text";
        for (int place = 0; place < 3; place++) {
            even(MANY, 1000);
            texts[place * (MANY - 1) / 2].n = 30 << 20;
            CHECK(!simulate(name, MANY, threads));
        }
    }
    puts("ok");
    return 0;
}
