/*
 * Many texts on several threads. The texts are cut into chunks of consecutive
 * ones; threads take the largest chunk that is left, so that none begins the
 * longest when the others are done. Threads live for one call: starting one
 * costs some 20 us, and a process that forks has none to lose.
 */
#include <stdlib.h>

#include "threads.h"
#include "tokenizer.h"

enum {
    CHUNKS = 8,          /* per thread: more even out unequal texts, fewer cost less */
    CHUNK_MIN = 1 << 13, /* bytes */
    CHUNK_MAX = 1 << 20, /* bytes: between chunks the caller is asked whether to go on */
    MAX_THREADS = 256
};

typedef struct chunk {
    size_t first, n;    /* texts */
    size_t n_bytes;     /* of them together */
    const idbuf *ids;   /* theirs, among those of a thread's other chunks, */
    size_t from, n_ids; /* here */
    size_t id_offset;   /* and in the result */
} chunk;

struct ggtok_batch {
    chunk *chunks;
    chunk **order; /* largest first */
    size_t n_chunks, n_texts, n_ids;
    uint64_t *counts; /* ids of each text */
    idbuf *ids;       /* each thread's: one buffer, since new memory is what takes time */
    unsigned n_buffers;
};

typedef struct job { /* what the threads of one call share */
    ggtok_batch *batch;
    const ggtok_bytes *texts;
    unsigned flags;
    int32_t *ids; /* where the second pass copies to */
    lock lock;    /* of what follows */
    size_t next;  /* of batch->order */
    bool stop;
    ggtok_status status;
    size_t failed; /* text */
    ggtok_error err;
} job;

typedef struct worker {
    job *job;
    ggtok_context *ctx; /* NULL in the second pass */
    idbuf *ids;
    ggtok_go_on_fn go_on;
    void *user;
    thread thread;
    bool started;
} worker;

/* ---- chunks ---- */

static int by_size(const void *a, const void *b) {
    const chunk *x = *(chunk *const *)a, *y = *(chunk *const *)b;
    return x->n_bytes == y->n_bytes ? 0 : x->n_bytes < y->n_bytes ? 1 : -1;
}

/* Cuts the texts into chunks of about `target` bytes (a longer text is one). */
static bool make_chunks(ggtok_batch *b, const ggtok_bytes *texts, size_t n, size_t target) {
    for (int filling = 0; filling < 2; filling++) {
        size_t k = 0;
        for (size_t i = 0; i < n; k++) {
            chunk c = {.first = i};
            do {
                c.n_bytes += texts[i++].n;
                c.n++;
            } while (i < n && c.n_bytes < target && c.n < target);
            if (filling) b->chunks[k] = c;
        }
        if (filling) break;
        b->n_chunks = k;
        b->chunks = mem_zalloc(mem_mul(k, sizeof *b->chunks));
        b->order = mem_alloc(mem_mul(k, sizeof *b->order));
        if (!b->chunks || !b->order) return false;
    }
    for (size_t k = 0; k < b->n_chunks; k++) b->order[k] = &b->chunks[k];
    qsort(b->order, b->n_chunks, sizeof *b->order, by_size);
    return true;
}

static chunk *take_chunk(job *j) {
    lock_take(&j->lock);
    chunk *c = j->stop || j->next == j->batch->n_chunks ? NULL : j->batch->order[j->next++];
    lock_give(&j->lock);
    return c;
}

static void fail(job *j, ggtok_status status, size_t text, const ggtok_error *err) {
    lock_take(&j->lock);
    j->stop = true;
    if (!j->status || text < j->failed) {
        j->status = status;
        j->failed = text;
        j->err = *err;
    }
    lock_give(&j->lock);
}

/* ---- two passes ---- */

static void encode_chunk(worker *w, chunk *c) {
    job *j = w->job;
    ggtok_error err;
    c->ids = w->ids;
    c->from = w->ids->n;
    for (size_t i = c->first; i < c->first + c->n; i++) {
        ggtok_ids ids;
        const ggtok_bytes *t = &j->texts[i];
        ggtok_status s = ggtok_encode(w->ctx, t->data, t->n, j->flags, &ids, &err);
        if (!s && !idbuf_reserve(w->ids, ids.n)) s = error_memory(&err);
        if (s) {
            fail(j, s, i, &err);
            return;
        }
        if (ids.n) memcpy(w->ids->data + w->ids->n, ids.data, ids.n * sizeof *ids.data);
        w->ids->n += ids.n;
        j->batch->counts[i] = ids.n;
    }
    c->n_ids = w->ids->n - c->from;
}

static void copy_chunk(const worker *w, const chunk *c) {
    int32_t *to = w->job->ids + c->id_offset;
    if (c->n_ids) memcpy(to, c->ids->data + c->from, c->n_ids * sizeof *to);
}

static void work(worker *w) {
    for (chunk *c; (c = take_chunk(w->job));) {
        if (w->ctx) {
            encode_chunk(w, c);
        } else {
            copy_chunk(w, c);
        }
        if (w->go_on && !w->go_on(w->user)) {
            ggtok_error err;
            ggtok_status s = error_set(&err, GGTOK_ERR_STOPPED, "the caller asked to stop");
            fail(w->job, s, 0, &err);
        }
    }
}

THREAD_BODY(thread_body, arg) {
    work(arg);
    return 0;
}

/* The calling thread is workers[0]. A thread that the system does not grant is
 * done without. */
static void run(worker *workers, unsigned n) {
    workers->job->next = 0;
    for (unsigned i = 1; i < n; i++) {
        workers[i].started = thread_start(&workers[i].thread, thread_body, &workers[i]);
    }
    work(&workers[0]);
    for (unsigned i = 1; i < n; i++) {
        if (workers[i].started) thread_join(workers[i].thread);
    }
}

/* ---- the calls ---- */

ggtok_status ggtok_encode_batch(ggtok_pool *pool, const ggtok_bytes *texts, size_t n,
                                unsigned flags, unsigned threads, ggtok_go_on_fn go_on, void *user,
                                ggtok_batch **out, size_t *failed, ggtok_error *err) {
    ggtok_batch *b = *out = mem_zalloc(sizeof *b);
    worker *workers = NULL;
    unsigned n_workers = 0;
    job j = {.batch = b, .texts = texts, .flags = flags};
    size_t total = 0;
    lock_init(&j.lock);
    *failed = n;
    for (size_t i = 0; i < n; i++) total += texts[i].n < SIZE_MAX / 2 - total ? texts[i].n : 0;
    if (threads < 1) threads = 1;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    size_t target = total / threads / CHUNKS;
    if (target < CHUNK_MIN) target = CHUNK_MIN;
    if (target > CHUNK_MAX) target = CHUNK_MAX;
    if (!b) goto out_of_memory;
    b->n_texts = n;
    b->counts = mem_zalloc(mem_mul(n, sizeof *b->counts));
    if (!b->counts || !make_chunks(b, texts, n, target)) goto out_of_memory;
    if (threads > b->n_chunks) threads = b->n_chunks ? (unsigned)b->n_chunks : 1;
    if (!(workers = mem_zalloc(threads * sizeof *workers))) goto out_of_memory;
    if (!(b->ids = mem_zalloc(threads * sizeof *b->ids))) goto out_of_memory;
    b->n_buffers = threads;
    for (; n_workers < threads; n_workers++) {
        worker *w = &workers[n_workers];
        w->job = &j;
        w->ids = &b->ids[n_workers];
        if (!(w->ctx = ggtok_pool_take(pool, err))) goto out_of_memory;
    }
    workers[0].go_on = go_on;
    workers[0].user = user;
    run(workers, threads);
    if (j.status) {
        if (err) *err = j.err;
        if (j.status != GGTOK_ERR_STOPPED) *failed = j.failed;
        goto done;
    }
    for (size_t k = 0; k < b->n_chunks; k++) {
        b->chunks[k].id_offset = b->n_ids;
        b->n_ids += b->chunks[k].n_ids;
    }
    goto done;
out_of_memory:
    j.status = error_memory(err);
done:
    while (n_workers) ggtok_pool_give(pool, workers[--n_workers].ctx);
    mem_free(workers);
    lock_free(&j.lock);
    if (j.status) {
        ggtok_batch_free(b);
        *out = NULL;
    }
    return j.status;
}

size_t ggtok_batch_n_ids(const ggtok_batch *b) {
    return b->n_ids;
}

void ggtok_batch_copy(const ggtok_batch *b, int32_t *ids, int64_t *offsets, unsigned threads) {
    enum { ALONE = 1 << 16 }; /* ids that aren't worth a thread */
    worker workers[MAX_THREADS] = {{0}};
    ggtok_batch shared = *b;
    job j = {.batch = &shared, .ids = ids};
    if (threads > b->n_chunks) threads = (unsigned)b->n_chunks;
    if (threads < 1 || b->n_ids < ALONE) threads = 1;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    lock_init(&j.lock);
    for (unsigned i = 0; i < threads; i++) workers[i].job = &j;
    run(workers, threads);
    lock_free(&j.lock);
    offsets[0] = 0;
    for (size_t i = 0; i < b->n_texts; i++) offsets[i + 1] = offsets[i] + (int64_t)b->counts[i];
}

void ggtok_batch_free(ggtok_batch *b) {
    if (!b) return;
    for (unsigned i = 0; i < b->n_buffers; i++) mem_free(b->ids[i].data);
    mem_free(b->ids);
    mem_free(b->chunks);
    mem_free(b->order);
    mem_free(b->counts);
    mem_free(b);
}
