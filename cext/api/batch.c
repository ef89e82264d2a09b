/*
 * Many texts on several threads. The texts are cut into chunks of consecutive
 * ones; threads take the largest chunk that is left, so that none begins the
 * longest when the others are done. Threads live for one call: starting one
 * costs some 20 us, and a process that forks has none to lose.
 */
#include <stdlib.h>

#include "api/tokenizer.h"
#include "base/threads.h"

enum {
    CHUNKS = 8,          /* per thread: more even out unequal texts, fewer cost less */
    CHUNK_MIN = 1 << 13, /* bytes */
    CHUNK_MAX = 1 << 20, /* bytes: between chunks the caller is asked whether to go on */
    MAX_THREADS = 256
};

typedef struct chunk {
    size_t first, n;    /* texts */
    size_t n_bytes;     /* of them together */
    unsigned buffer;    /* the thread's, where theirs are, among those of other chunks, */
    size_t from, n_ids; /* here */
    size_t id_offset;   /* and in the result */
} chunk;

struct ggtok_batch {
    chunk *chunks;
    chunk **order; /* largest first */
    size_t n_chunks, n_texts, n_ids;
    uint64_t *counts; /* ids of each text */
    bytebuf *spans;   /* of ggtok_span, for each of `ids`; NULL: not asked for */
    idbuf *ids;       /* each thread's: one buffer, since new memory is what takes time */
    unsigned n_buffers;
};

typedef struct job { /* what the threads of one call share */
    ggtok_batch *batch;
    const ggtok_bytes *texts;
    const ggtok_batch_options *options;
    int32_t *ids; /* where the second pass copies to; or */
    ggtok_span *spans;
    lock lock;        /* of what follows */
    size_t next;      /* of batch->order */
    unsigned running; /* threads besides the caller's that are not done */
    bool stop;
    ggtok_status status;
    size_t failed; /* text */
    ggtok_error err;
} job;

typedef struct worker {
    job *job;
    ggtok_context *ctx; /* NULL in the second pass */
    unsigned buffer;
    bytebuf copy; /* of the text at hand, if GGTOK_COPY_TEXTS */
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
        b->chunks = ggtok_mem_zalloc(mem_mul(k, sizeof *b->chunks));
        b->order = ggtok_mem_alloc(mem_mul(k, sizeof *b->order));
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

static ggtok_status encode_text(worker *w, const ggtok_bytes *t, ggtok_ids *ids, ggtok_error *err) {
    const char *text = t->data;
    unsigned flags = w->job->options->flags;
    if (flags & GGTOK_COPY_TEXTS) {
        *ids = (ggtok_ids){0};
        if (!text) return GGTOK_OK;
        w->copy.n = 0;
        if (!bytebuf_append(&w->copy, text, t->n)) return ggtok_error_memory(err);
        text = t->n ? (const char *)w->copy.data : "";
    }
    return ggtok_encode(w->ctx, text, t->n, flags, ids, err);
}

/* Appends the spans of the context's ids. */
static ggtok_status add_spans(worker *w, size_t n, ggtok_error *err) {
    bytebuf *to = &w->job->batch->spans[w->buffer];
    if (!bytebuf_reserve(to, mem_mul(n, sizeof(ggtok_span)))) return ggtok_error_memory(err);
    ggtok_status s = ggtok_spans(w->ctx, (void *)(to->data + to->n), err);
    if (!s) to->n += n * sizeof(ggtok_span);
    return s;
}

static void encode_chunk(worker *w, chunk *c) {
    job *j = w->job;
    idbuf *to = &j->batch->ids[w->buffer];
    ggtok_error err;
    c->buffer = w->buffer;
    c->from = to->n;
    for (size_t i = c->first; i < c->first + c->n; i++) {
        ggtok_ids ids;
        ggtok_status s = encode_text(w, &j->texts[i], &ids, &err);
        if (!s && ids.n && j->batch->spans) s = add_spans(w, ids.n, &err);
        if (s == GGTOK_ERR_STOPPED) return; /* the job knows */
        if (!s && !idbuf_reserve(to, ids.n)) s = ggtok_error_memory(&err);
        if (s) {
            fail(j, s, i, &err);
            return;
        }
        if (ids.n) memcpy(to->data + to->n, ids.data, ids.n * sizeof *ids.data);
        to->n += ids.n;
        j->batch->counts[i] = ids.n;
    }
    c->n_ids = to->n - c->from;
}

static void copy_chunk(const worker *w, const chunk *c) {
    const job *j = w->job;
    if (!c->n_ids) return;
    if (j->ids) {
        const idbuf *from = &j->batch->ids[c->buffer];
        memcpy(j->ids + c->id_offset, from->data + c->from, c->n_ids * sizeof *j->ids);
    } else {
        const ggtok_span *from = (const void *)j->batch->spans[c->buffer].data;
        memcpy(j->spans + c->id_offset, from + c->from, c->n_ids * sizeof *from);
    }
}

/* Whether the caller, asked on its own thread, still wants the batch. */
static bool may_go_on(void *user) {
    worker *w = user;
    job *j = w->job;
    if (w->go_on && !w->go_on(w->user)) {
        ggtok_error err;
        fail(j, ggtok_error_set(&err, GGTOK_ERR_STOPPED, "the caller asked to stop"), 0, &err);
    }
    lock_take(&j->lock);
    bool go_on = j->status != GGTOK_ERR_STOPPED;
    lock_give(&j->lock);
    return go_on;
}

static void work(worker *w) {
    for (chunk *c; (c = take_chunk(w->job));) {
        if (w->ctx) {
            encode_chunk(w, c);
        } else {
            copy_chunk(w, c);
        }
        may_go_on(w);
    }
}

THREAD_BODY(thread_body, arg) {
    job *j = ((worker *)arg)->job;
    work(arg);
    lock_take(&j->lock);
    j->running--;
    lock_give(&j->lock);
    return 0;
}

/* The caller is asked until the other threads are done: one of them may have a huge text. Mostly
 * they are done soon, so sleeping comes later. */
static void wait_for_others(worker *w) {
    enum { YIELDS = 200, MS = 2 };
    for (unsigned i = 0;; i++) {
        lock_take(&w->job->lock);
        bool done = !w->job->running;
        lock_give(&w->job->lock);
        if (done || !may_go_on(w)) return;
        if (i < YIELDS) {
            thread_yield();
        } else {
            thread_sleep(MS);
        }
    }
}

/* The calling thread is workers[0]. A thread that the system does not grant is
 * done without. */
static void run(worker *workers, unsigned n) {
    job *j = workers->job;
    j->next = 0;
    j->running = n - 1;
    for (unsigned i = 1; i < n; i++) {
        workers[i].started = thread_start(&workers[i].thread, thread_body, &workers[i]);
        if (!workers[i].started) {
            lock_take(&j->lock);
            j->running--;
            lock_give(&j->lock);
        }
    }
    work(&workers[0]);
    if (workers[0].go_on) wait_for_others(&workers[0]);
    for (unsigned i = 1; i < n; i++) {
        if (workers[i].started) thread_join(workers[i].thread);
    }
}

/* ---- the calls ---- */

/* Bytes of a chunk: some for each thread, of bounded size. */
static size_t chunk_bytes(const ggtok_bytes *texts, size_t n, unsigned threads) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++) total += texts[i].n < SIZE_MAX / 2 - total ? texts[i].n : 0;
    size_t target = total / threads / CHUNKS;
    return target < CHUNK_MIN ? CHUNK_MIN : target > CHUNK_MAX ? CHUNK_MAX : target;
}

static ggtok_batch *batch_new(const ggtok_bytes *texts, size_t n, unsigned threads, bool spans) {
    ggtok_batch *b = ggtok_mem_zalloc(sizeof *b);
    if (!b) return NULL;
    b->n_texts = n;
    b->counts = ggtok_mem_zalloc(mem_mul(n, sizeof *b->counts));
    b->ids = ggtok_mem_zalloc(threads * sizeof *b->ids);
    if (spans) b->spans = ggtok_mem_zalloc(threads * sizeof *b->spans);
    if (b->ids) b->n_buffers = threads;
    if (b->counts && b->ids && (b->spans || !spans) &&
        make_chunks(b, texts, n, chunk_bytes(texts, n, threads)))
        return b;
    ggtok_batch_free(b);
    return NULL;
}

/* Encodes the chunks on up to `threads` threads, each with a context of the pool. */
static ggtok_status encode_chunks(job *j, ggtok_pool *pool, unsigned threads, ggtok_error *err) {
    ggtok_batch *b = j->batch;
    unsigned n = 0;
    if (threads > b->n_chunks) threads = b->n_chunks ? (unsigned)b->n_chunks : 1;
    worker *workers = ggtok_mem_zalloc(threads * sizeof *workers);
    ggtok_status s = workers ? GGTOK_OK : ggtok_error_memory(err);
    for (; !s && n < threads; n++) {
        worker *w = &workers[n];
        w->job = j;
        w->buffer = n;
        if (!(w->ctx = ggtok_pool_take(pool, err))) {
            s = ggtok_error_memory(err);
            break;
        }
        if (j->options->go_on) ggtok_context_set_go_on(w->ctx, may_go_on, w);
        ggtok_context_set_choice(w->ctx, j->options->choice);
    }
    if (!s) {
        workers[0].go_on = j->options->go_on;
        workers[0].user = j->options->user;
        run(workers, threads);
    }
    while (n) {
        ggtok_pool_give(pool, workers[--n].ctx);
        ggtok_mem_free(workers[n].copy.data);
    }
    ggtok_mem_free(workers);
    return s;
}

ggtok_status ggtok_encode_batch(ggtok_pool *pool, const ggtok_bytes *texts, size_t n,
                                unsigned flags, unsigned threads, ggtok_go_on_fn go_on, void *user,
                                ggtok_batch **out, size_t *failed, ggtok_error *err) {
    const ggtok_batch_options options = {flags, threads, NULL, go_on, user};
    return ggtok_encode_batch_with(pool, texts, n, &options, out, failed, err);
}

ggtok_status ggtok_encode_batch_with(ggtok_pool *pool, const ggtok_bytes *texts, size_t n,
                                     const ggtok_batch_options *options, ggtok_batch **out,
                                     size_t *failed, ggtok_error *err) {
    unsigned threads = options->threads;
    *out = NULL;
    *failed = n;
    threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    ggtok_batch *b = batch_new(texts, n, threads, (options->flags & GGTOK_SPANS) != 0);
    if (!b) return ggtok_error_memory(err);
    job j = {.batch = b, .texts = texts, .options = options};
    lock_init(&j.lock);
    ggtok_status s = encode_chunks(&j, pool, threads, err);
    lock_free(&j.lock);
    if (!s && j.status) {
        s = j.status;
        if (err) *err = j.err;
        if (s != GGTOK_ERR_STOPPED) *failed = j.failed;
    }
    if (s) {
        ggtok_batch_free(b);
        return s;
    }
    for (size_t k = 0; k < b->n_chunks; k++) {
        b->chunks[k].id_offset = b->n_ids;
        b->n_ids += b->chunks[k].n_ids;
    }
    *out = b;
    return GGTOK_OK;
}

size_t ggtok_batch_n_ids(const ggtok_batch *b) {
    return b->n_ids;
}

/* Into one of the two. */
static void copy(const ggtok_batch *b, int32_t *ids, ggtok_span *spans, unsigned threads) {
    enum { ALONE = 1 << 16 }; /* ids that aren't worth a thread */
    worker workers[MAX_THREADS] = {{0}};
    ggtok_batch shared = *b;
    job j = {.batch = &shared, .ids = ids, .spans = spans};
    if (threads > b->n_chunks) threads = (unsigned)b->n_chunks;
    if (threads < 1 || b->n_ids < ALONE) threads = 1;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    lock_init(&j.lock);
    for (unsigned i = 0; i < threads; i++) workers[i].job = &j;
    run(workers, threads);
    lock_free(&j.lock);
}

void ggtok_batch_copy(const ggtok_batch *b, int32_t *ids, int64_t *offsets, unsigned threads) {
    if (b->n_ids) copy(b, ids, NULL, threads);
    offsets[0] = 0;
    for (size_t i = 0; i < b->n_texts; i++) offsets[i + 1] = offsets[i] + (int64_t)b->counts[i];
}

void ggtok_batch_copy_spans(const ggtok_batch *b, ggtok_span *spans, unsigned threads) {
    if (b->n_ids) copy(b, NULL, spans, threads);
}

void ggtok_batch_free(ggtok_batch *b) {
    if (!b) return;
    for (unsigned i = 0; b->spans && i < b->n_buffers; i++) ggtok_mem_free(b->spans[i].data);
    ggtok_mem_free(b->spans);
    for (unsigned i = 0; i < b->n_buffers; i++) ggtok_mem_free(b->ids[i].data);
    ggtok_mem_free(b->ids);
    ggtok_mem_free(b->chunks);
    ggtok_mem_free(b->order);
    ggtok_mem_free(b->counts);
    ggtok_mem_free(b);
}
