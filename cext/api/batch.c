/*
 * Encodes many texts on several threads. The texts are divided into chunks of consecutive texts.
 * Threads take chunks in text order, so that most chunks' ids can be appended to the result as soon
 * as they are known, and their memory reused. Long texts are the exception: they are taken first,
 * the longest first, so that no thread begins a long text when the others have finished. Their ids
 * wait for their turn. Threads exist only during a call: starting one takes about 20 us, and a fork
 * between calls can't lose any.
 *
 * With a `receive` function, nothing is appended. Before the calling thread takes another chunk, it
 * passes finished ids to that function, while the other threads continue to encode.
 *
 * The texts may also be parts of one text, which ggtok_encode_parallel cuts.
 */
#include <stdlib.h>

#include "api/tokenizer.h"
#include "base/threads.h"

enum {
    CHUNKS = 8,          /* chunks per thread: more chunks balance the load better but cost more */
    CHUNK_MIN = 1 << 13, /* minimum bytes per chunk */
    CHUNK_MAX = 1 << 20, /* target size of a chunk at most; keep_going is called between chunks */
    MAY_WAIT = 2,        /* chunks per thread whose ids may wait for their turn */
    RECEIVE = 1 << 18,   /* bytes of text to receive at once; fewer aren't worth taking a lock */
    PARTS = 64,          /* maximum number of chunks received at once */
    MAX_THREADS = 256
};

typedef struct output { /* the result of a chunk, or of the batch */
    idbuf ids;
    bytebuf spans; /* a ggtok_span for each id, with GGTOK_SPANS */
} output;

typedef struct chunk {
    size_t first, n; /* index of the first text, and the number of texts */
    size_t n_bytes;  /* total size of the texts */
    output out;      /* the result, while it waits for its turn */
    bool taken, done;
} chunk;

struct ggtok_batch {
    size_t n_texts;
    int64_t *offsets; /* [n_texts + 1]; while encoding, [i + 1] is the number of ids of text i */
    output out;
};

typedef struct job { /* the state of a call, shared by its threads */
    ggtok_batch *batch;
    const ggtok_bytes *texts;
    const ggtok_batch_options *options;
    size_t n_parts; /* if the texts are parts of one text: their number */
    chunk *chunks;
    chunk **order; /* chunks in the order in which threads take them */
    size_t n_chunks;
    lock lock;         /* protects the fields below */
    condition changed; /* signalled when a chunk is appended, a thread ends or the job stops */
    size_t next;       /* index in `order` of the next chunk to take */
    size_t n_appended; /* number of chunks that have been appended or received */
    size_t waiting;    /* bytes of text whose ids wait for their turn */
    size_t may_wait;   /* maximum of `waiting` */
    bool appending;    /* whether a thread is appending or receiving; only one may do so */
    output *spare;     /* memory of appended chunks, for reuse */
    size_t n_spare;    /* at most one per thread */
    unsigned threads;  /* number of threads; at most the number of chunks */
    unsigned running;  /* number of unfinished threads, not counting the calling one */
    bool stop;
    ggtok_status status;
    size_t failed; /* index of the text that failed */
    ggtok_error err;
} job;

typedef struct worker {
    job *job;
    ggtok_context *ctx;
    bytebuf copy;  /* with GGTOK_COPY_TEXTS: a copy of the current text */
    bool receives; /* whether the worker calls `receive`; only the calling thread does */
    ggtok_interrupt_fn keep_going;
    void *user;
    thread thread;
    bool started;
} worker;

static void output_free(output *o) {
    ggtok_mem_free(o->ids.data);
    ggtok_mem_free(o->spans.data);
    *o = (output){0};
}

/* ---- chunks ---- */

/* Whether the chunk is one text longer than CHUNK_MAX. Several texts may exceed CHUNK_MAX together,
 * but their chunk isn't long. */
static bool is_long(const chunk *c) {
    return c->n == 1 && c->n_bytes > CHUNK_MAX;
}

static int by_turn(const void *a, const void *b) {
    const chunk *x = *(chunk *const *)a, *y = *(chunk *const *)b;
    if (is_long(x) != is_long(y)) return is_long(x) ? -1 : 1;
    if (is_long(x) && x->n_bytes != y->n_bytes) return x->n_bytes < y->n_bytes ? 1 : -1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Divides the texts into chunks of about `target` bytes. A long text is a separate chunk. */
static bool make_chunks(job *j, const ggtok_bytes *texts, size_t n, size_t target) {
    for (int filling = 0; filling < 2; filling++) {
        size_t k = 0;
        for (size_t i = 0; i < n; k++) {
            chunk c = {.first = i};
            do {
                c.n_bytes += texts[i++].n;
                c.n++;
            } while (i < n && c.n_bytes < target && c.n < target && texts[i].n <= CHUNK_MAX);
            if (filling) j->chunks[k] = c;
        }
        if (filling) break;
        j->n_chunks = k;
        j->chunks = ggtok_mem_zalloc(mem_mul(k, sizeof *j->chunks));
        j->order = ggtok_mem_alloc(mem_mul(k, sizeof(chunk *)));
        if (!j->chunks || !j->order) return false;
    }
    for (size_t k = 0; k < j->n_chunks; k++) j->order[k] = &j->chunks[k];
    /* A single thread appends each chunk directly, so it takes them in text order. */
    if (j->threads > 1) qsort(j->order, j->n_chunks, sizeof *j->order, by_turn);
    return true;
}

/* Returns the next chunk, with memory for its result, or NULL. If *later is set, try again once
 * other chunks have been appended. If too many ids wait for one chunk, that chunk is next, unless
 * another thread already has it (*later is then set). Call this with the job locked. */
static chunk *next_chunk(job *j, bool *later) {
    chunk *c = NULL;
    *later = false;
    while (j->next < j->n_chunks && j->order[j->next]->taken) j->next++;
    if (!j->stop && j->next < j->n_chunks) {
        c = j->waiting > j->may_wait ? &j->chunks[j->n_appended] : j->order[j->next];
        *later = c->taken;
        if (*later) {
            c = NULL;
        } else {
            c->taken = true;
            if (j->n_spare) c->out = j->spare[--j->n_spare];
        }
    }
    return c;
}

static void fail(job *j, ggtok_status status, size_t text, const ggtok_error *err) {
    lock_acquire(&j->lock);
    j->stop = true;
    if (!j->status || text < j->failed) {
        j->status = status;
        j->failed = text;
        j->err = *err;
    }
    condition_signal_all(&j->changed);
    lock_release(&j->lock);
}

/* ---- encoding ---- */

/* Encodes *t, the text number `i`. With GGTOK_COPY_TEXTS, *t becomes a copy. */
static ggtok_status encode_text(worker *w, ggtok_bytes *t, size_t i, ggtok_ids *ids,
                                ggtok_error *err) {
    const job *j = w->job;
    unsigned flags = j->options->flags;
    if (j->n_parts && i) flags |= GGTOK_NOT_FIRST_BLOCK;
    if (i + 1 < j->n_parts) flags |= GGTOK_NOT_LAST_BLOCK;
    if (flags & GGTOK_COPY_TEXTS) {
        *ids = (ggtok_ids){0};
        if (!t->data) return GGTOK_OK;
        w->copy.n = 0;
        if (!bytebuf_append(&w->copy, t->data, t->n)) return ggtok_error_memory(err);
        t->data = t->n ? (const char *)w->copy.data : "";
    }
    if (!j->options->sampling) return ggtok_encode(w->ctx, t->data, t->n, flags, ids, err);
    ggtok_sampling sampling = *j->options->sampling;
    sampling.index += i;
    return ggtok_sample(w->ctx, t->data, t->n, flags, &sampling, ids, err);
}

/* Appends the spans of the n ids that the context has for `text`. */
static ggtok_status add_spans(const worker *w, ggtok_bytes text, bytebuf *to, size_t n,
                              ggtok_error *err) {
    const ggtok_batch_options *o = w->job->options;
    if (!bytebuf_reserve(to, mem_mul(n, sizeof(ggtok_span)))) return ggtok_error_memory(err);
    ggtok_span *spans = (void *)(to->data + to->n);
    ggtok_status s = ggtok_spans(w->ctx, spans, err);
    if (s) return s;
    if (o->convert) o->convert(o->user, text, spans, n);
    to->n += n * sizeof *spans;
    return GGTOK_OK;
}

static bool add_ids(idbuf *to, const int32_t *ids, size_t n) {
    if (!idbuf_reserve(to, n)) return false;
    if (n) memcpy(to->data + to->n, ids, n * sizeof *ids);
    to->n += n;
    return true;
}

/* Encodes a chunk and appends its result to *to. Returns false if the job has failed or was
 * stopped. */
static bool encode_chunk(worker *w, const chunk *c, output *to) {
    job *j = w->job;
    bool spans = (j->options->flags & GGTOK_SPANS) != 0;
    ggtok_error err;
    for (size_t i = c->first; i < c->first + c->n; i++) {
        ggtok_ids ids;
        ggtok_bytes text = j->texts[i];
        ggtok_status s = encode_text(w, &text, i, &ids, &err);
        if (!s && ids.n && spans) s = add_spans(w, text, &to->spans, ids.n, &err);
        if (s == GGTOK_ERR_STOPPED) return false; /* recorded in the job's status */
        if (!s && !add_ids(&to->ids, ids.data, ids.n)) s = ggtok_error_memory(&err);
        if (s) {
            fail(j, s, i, &err);
            return false;
        }
        j->batch->offsets[i + 1] = (int64_t)ids.n;
    }
    return true;
}

/* ---- appending in order ---- */

/* Appends a chunk's result to the batch's result and clears it. */
static bool append(output *all, output *out) {
    if (!all->ids.n && out->ids.n > CHUNK_MAX) { /* a long text: move it instead of copying */
        output empty = *all;
        *all = *out;
        *out = empty;
        return true;
    }
    if (!add_ids(&all->ids, out->ids.data, out->ids.n) ||
        !bytebuf_append(&all->spans, out->spans.data, out->spans.n))
        return false;
    out->ids.n = out->spans.n = 0;
    return true;
}

/* Keeps the memory of an appended chunk for reuse, unless it is large or enough memory is kept. */
static void recycle(job *j, output *out) {
    if (j->n_spare < j->threads && out->ids.cap <= CHUNK_MAX) {
        j->spare[j->n_spare++] = *out;
        *out = (output){0};
    } else {
        output_free(out);
    }
}

/* Passes the ids of consecutive chunks to `receive`; appends only their spans. */
static ggtok_status receive(job *j, chunk *chunks, size_t n, ggtok_error *err) {
    const ggtok_batch_options *o = j->options;
    ggtok_batch_part parts[PARTS];
    for (size_t i = 0; i < n; i++) {
        const chunk *c = &chunks[i];
        parts[i] =
            (ggtok_batch_part){c->first, c->n, c->out.ids.data, j->batch->offsets + c->first + 1};
    }
    if (!o->receive(o->user, parts, n)) return ggtok_error_stopped(err);
    for (size_t i = 0; i < n; i++) {
        output *out = &chunks[i].out;
        out->ids.n = 0;
        if (!append(&j->batch->out, out)) return ggtok_error_memory(err);
    }
    return GGTOK_OK;
}

/* Appends the chunks whose turn it is, or passes them to `receive`, unless another thread is doing
 * so or they have less than `min` bytes of text. Returns whether it did. Call this with the job
 * locked. */
static bool append_due(job *j, size_t min) {
    bool receives = j->options->receive != NULL, any = false;
    if (j->appending) return false;
    j->appending = true;
    while (!j->stop) {
        chunk *due = &j->chunks[j->n_appended];
        size_t n = 0, n_bytes = 0, most = receives ? PARTS : 1;
        if (most > j->n_chunks - j->n_appended) most = j->n_chunks - j->n_appended;
        while (n < most && due[n].done) n_bytes += due[n++].n_bytes;
        if (!n || n_bytes < min) break;
        lock_release(&j->lock);
        ggtok_error err;
        ggtok_status s = receives                              ? receive(j, due, n, &err)
                         : append(&j->batch->out, &due[0].out) ? GGTOK_OK
                                                               : ggtok_error_memory(&err);
        if (s) fail(j, s, s == GGTOK_ERR_STOPPED ? 0 : due[0].first, &err);
        lock_acquire(&j->lock);
        if (!s) j->n_appended += n;
        j->waiting -= n_bytes;
        for (size_t i = 0; i < n; i++) recycle(j, &due[i].out);
        condition_signal_all(&j->changed);
        any = true;
    }
    j->appending = false;
    return any;
}

/* Records that a chunk is done, and appends the chunks whose turn it is. */
static void end_chunk(worker *w, chunk *c) {
    job *j = w->job;
    lock_acquire(&j->lock);
    c->done = true;
    j->waiting += c->n_bytes;
    if (!j->options->receive) {
        append_due(j, 0);
    } else if (!w->receives) {
        condition_signal_all(&j->changed);
    }
    lock_release(&j->lock);
}

/* The ggtok_interrupt_fn of all workers. Stops them when the caller's callback, which runs on the
 * calling thread, returns false. */
static bool keep_going(void *user) {
    worker *w = user;
    job *j = w->job;
    if (w->keep_going && !w->keep_going(w->user)) {
        ggtok_error err;
        fail(j, ggtok_error_stopped(&err), 0, &err);
    }
    lock_acquire(&j->lock);
    bool going = j->status != GGTOK_ERR_STOPPED;
    lock_release(&j->lock);
    return going;
}

/* Waits until the job, which must be locked, changes; meanwhile calls the caller's callback.
 * Returns false if the job must stop. */
static bool wait_for_change(worker *w) {
    enum { INTERVAL_MS = 50 };
    job *j = w->job;
    condition_wait(&j->changed, &j->lock, w->keep_going ? INTERVAL_MS : 0);
    if (!w->keep_going) return !j->stop;
    lock_release(&j->lock);
    bool going = keep_going(w);
    lock_acquire(&j->lock);
    return going;
}

/* Waits for the next chunk. Returns NULL if there are no more or the job must stop. */
static chunk *take_chunk(worker *w) {
    job *j = w->job;
    chunk *c;
    bool later;
    lock_acquire(&j->lock);
    do {
        if (w->receives) append_due(j, RECEIVE);
        c = next_chunk(j, &later);
    } while (!c && later && ((w->receives && append_due(j, 0)) || wait_for_change(w)));
    lock_release(&j->lock);
    return c;
}

static void work(worker *w) {
    job *j = w->job;
    bool alone = j->threads == 1 && !w->receives;
    for (chunk *c; (c = take_chunk(w));) {
        bool done = encode_chunk(w, c, alone ? &j->batch->out : &c->out);
        if (done && !alone) end_chunk(w, c);
        keep_going(w);
    }
}

static void end_thread(job *j) {
    lock_acquire(&j->lock);
    j->running--;
    condition_signal_all(&j->changed);
    lock_release(&j->lock);
}

THREAD_BODY(thread_body, arg) {
    work(arg);
    end_thread(((worker *)arg)->job);
    return 0;
}

/* Calls the caller's callbacks until the other threads have finished; one of them may be encoding a
 * huge text. */
static void wait_for_others(worker *w) {
    job *j = w->job;
    lock_acquire(&j->lock);
    do {
        if (w->receives) append_due(j, 0);
    } while (j->running && wait_for_change(w));
    lock_release(&j->lock);
}

/* Runs the workers; workers[0] is the calling thread. If the system can't create some of the
 * threads, the others do the work of the missing ones. */
static void run_workers(worker *workers, unsigned n) {
    job *j = workers->job;
    j->next = 0;
    j->running = n - 1;
    for (unsigned i = 1; i < n; i++) {
        workers[i].started = thread_start(&workers[i].thread, thread_body, &workers[i]);
        if (!workers[i].started) end_thread(j);
    }
    work(&workers[0]);
    if (workers[0].keep_going || workers[0].receives) wait_for_others(&workers[0]);
    for (unsigned i = 1; i < n; i++) {
        if (workers[i].started) thread_join(workers[i].thread);
    }
}

/* ---- the calls ---- */

size_t ggtok_chunk_bytes(size_t total, unsigned threads) {
    size_t target = total / threads / CHUNKS;
    return target < CHUNK_MIN ? CHUNK_MIN : target > CHUNK_MAX ? CHUNK_MAX : target;
}

static ggtok_batch *batch_new(size_t n) {
    ggtok_batch *b = ggtok_mem_zalloc(sizeof *b);
    if (b) b->offsets = ggtok_mem_zalloc(mem_mul(n == SIZE_MAX ? n : n + 1, sizeof *b->offsets));
    if (b && b->offsets) {
        b->n_texts = n;
        return b;
    }
    ggtok_batch_free(b);
    return NULL;
}

static ggtok_status job_init(job *j, size_t n, ggtok_error *err) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += j->texts[i].n < SIZE_MAX / 2 - total ? j->texts[i].n : 0;
    lock_init(&j->lock);
    condition_init(&j->changed);
    j->spare = ggtok_mem_zalloc(j->threads * sizeof *j->spare);
    if (!j->spare || !make_chunks(j, j->texts, n, ggtok_chunk_bytes(total, j->threads)))
        return ggtok_error_memory(err);
    if (j->threads > j->n_chunks) j->threads = j->n_chunks ? (unsigned)j->n_chunks : 1;
    /* While one thread encodes a long text, each of the others may encode the same amount; MAY_WAIT
     * allows for delays. */
    size_t longest = j->n_chunks ? j->order[0]->n_bytes : 0;
    j->may_wait = mem_mul(j->threads, longest + MAY_WAIT * ggtok_chunk_bytes(total, j->threads));
    if (j->options->receive && j->may_wait < SIZE_MAX - RECEIVE) j->may_wait += RECEIVE;
    /* Reserved memory costs nothing until it is written to, and a buffer that needn't grow needn't
     * move. Only models that normalize can produce more ids than there are bytes. */
    output *out = &j->batch->out;
    size_t ids = total;
    while (ids && !j->options->receive && !idbuf_reserve(&out->ids, ids)) ids /= 2;
    if (ids && j->options->flags & GGTOK_SPANS)
        (void)bytebuf_reserve(&out->spans, mem_mul(ids, sizeof(ggtok_span)));
    return GGTOK_OK;
}

static void job_free(job *j) {
    for (size_t k = 0; j->chunks && k < j->n_chunks; k++) output_free(&j->chunks[k].out);
    while (j->n_spare) output_free(&j->spare[--j->n_spare]);
    ggtok_mem_free(j->spare);
    ggtok_mem_free(j->chunks);
    ggtok_mem_free(j->order);
    condition_free(&j->changed);
    lock_free(&j->lock);
}

/* Encodes the chunks on up to j->threads threads, each with a context from the pool. */
static ggtok_status encode_chunks(job *j, ggtok_pool *pool, ggtok_error *err) {
    unsigned n = 0;
    worker *workers = ggtok_mem_zalloc(j->threads * sizeof *workers);
    ggtok_status s = workers ? GGTOK_OK : ggtok_error_memory(err);
    for (; !s && n < j->threads; n++) {
        worker *w = &workers[n];
        w->job = j;
        if (!(w->ctx = ggtok_pool_acquire(pool, err))) {
            s = ggtok_error_memory(err);
            break;
        }
        if (j->options->keep_going) ggtok_context_set_interrupt(w->ctx, keep_going, w);
        ggtok_context_set_special_choice(w->ctx, j->options->choice);
    }
    if (!s) {
        workers[0].receives = j->options->receive != NULL;
        workers[0].keep_going = j->options->keep_going;
        workers[0].user = j->options->user;
        run_workers(workers, n);
    }
    while (n) {
        ggtok_pool_release(pool, workers[--n].ctx);
        ggtok_mem_free(workers[n].copy.data);
    }
    ggtok_mem_free(workers);
    return s;
}

/* Releases unused memory, and turns counts into offsets. */
static void trim_batch(ggtok_batch *b) {
    output *o = &b->out;
    void *p = ggtok_mem_realloc(o->ids.data, o->ids.n * sizeof *o->ids.data);
    if (p) o->ids.data = p;
    if (o->spans.data && (p = ggtok_mem_realloc(o->spans.data, o->spans.n))) o->spans.data = p;
    for (size_t i = 0; i < b->n_texts; i++) b->offsets[i + 1] += b->offsets[i];
}

ggtok_status ggtok_encode_batch(ggtok_pool *pool, const ggtok_bytes *texts, size_t n,
                                unsigned flags, unsigned threads, ggtok_interrupt_fn keep_going,
                                void *user, ggtok_batch **out, size_t *failed, ggtok_error *err) {
    const ggtok_batch_options options = {
        .flags = flags, .threads = threads, .keep_going = keep_going, .user = user};
    return ggtok_encode_batch_with(pool, texts, n, &options, out, failed, err);
}

static ggtok_status check_sampling(ggtok_pool *pool, const ggtok_batch_options *options,
                                   ggtok_error *err) {
    if (options->flags & GGTOK_SPANS) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "sampled ids have no spans");
    }
    ggtok_context *ctx = ggtok_pool_acquire(pool, err);
    if (!ctx) return ggtok_error_memory(err);
    ggtok_status status = ggtok_check_sampling(ctx->tok, options->sampling, err);
    ggtok_pool_release(pool, ctx);
    return status;
}

ggtok_status ggtok_encode_texts(ggtok_pool *pool, const ggtok_bytes *texts, size_t n, bool is_one,
                                const ggtok_batch_options *options, ggtok_batch **out,
                                size_t *failed, ggtok_error *err) {
    unsigned threads = options->threads;
    *out = NULL;
    *failed = n;
    if (options->sampling) {
        ggtok_status refused = check_sampling(pool, options, err);
        if (refused) return refused;
    }
    ggtok_batch *b = batch_new(n);
    if (!b) return ggtok_error_memory(err);
    job j = {.batch = b, .texts = texts, .options = options, .n_parts = is_one ? n : 0};
    j.threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    ggtok_status s = job_init(&j, n, err);
    if (!s) s = encode_chunks(&j, pool, err);
    if (!s && j.status) {
        s = j.status;
        if (err) *err = j.err;
        if (s != GGTOK_ERR_STOPPED) *failed = j.failed;
    }
    job_free(&j);
    if (s) {
        ggtok_batch_free(b);
        return s;
    }
    trim_batch(b);
    if (is_one) {
        b->offsets[1] = b->offsets[n];
        b->n_texts = 1;
    }
    *out = b;
    return GGTOK_OK;
}

ggtok_status ggtok_encode_batch_with(ggtok_pool *pool, const ggtok_bytes *texts, size_t n,
                                     const ggtok_batch_options *options, ggtok_batch **out,
                                     size_t *failed, ggtok_error *err) {
    return ggtok_encode_texts(pool, texts, n, false, options, out, failed, err);
}

size_t ggtok_batch_n_ids(const ggtok_batch *b) {
    return (size_t)b->offsets[b->n_texts];
}

const int32_t *ggtok_batch_ids(const ggtok_batch *b) {
    return b->out.ids.data;
}

const int64_t *ggtok_batch_offsets(const ggtok_batch *b) {
    return b->offsets;
}

const ggtok_span *ggtok_batch_spans(const ggtok_batch *b) {
    return (const void *)b->out.spans.data;
}

void ggtok_batch_free(ggtok_batch *b) {
    if (!b) return;
    output_free(&b->out);
    ggtok_mem_free(b->offsets);
    ggtok_mem_free(b);
}
