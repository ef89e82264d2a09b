/* Pools of contexts; see ggtok.h. */
#include "api/tokenizer.h"
#include "base/shared_lock.h"

struct ggtok_pool {
    const ggtok_tokenizer *tok;
    ggtok_context *idle; /* list linked by `next`, most recently used first */
    unsigned round;      /* contexts from earlier rounds are freed when they are released */
};

/* Acquires the lock of all pools. It is held for only a few instructions, so a lock per pool would
 * gain nothing. */
static void take_lock(void) {
    shared_lock_take(&ggtok_process_locks[LOCK_POOLS]);
}
static void give_lock(void) {
    shared_lock_give(&ggtok_process_locks[LOCK_POOLS]);
}

ggtok_status ggtok_pool_new(const ggtok_tokenizer *tok, ggtok_pool **out, ggtok_error *err) {
    ggtok_pool *p = *out = ggtok_forks_are_guarded() ? ggtok_mem_zalloc(sizeof *p) : NULL;
    if (!p) return ggtok_error_memory(err);
    p->tok = tok;
    return GGTOK_OK;
}

static void free_all(ggtok_context *ctx) {
    while (ctx) {
        ggtok_context *next = ctx->next;
        ggtok_context_free(ctx);
        ctx = next;
    }
}

void ggtok_pool_free(ggtok_pool *p) {
    if (!p) return;
    free_all(p->idle);
    ggtok_mem_free(p);
}

ggtok_context *ggtok_pool_acquire(ggtok_pool *p, ggtok_error *err) {
    take_lock();
    ggtok_context *ctx = p->idle;
    unsigned round = p->round;
    if (ctx) p->idle = ctx->next;
    give_lock();
    if (ctx || ggtok_context_new(p->tok, &ctx, err)) return ctx;
    ctx->round = round;
    return ctx;
}

/* Frees the large buffers of a context. An idle context keeps its caches but not the memory of its
 * largest result, which would add up over many threads. Buffers of up to 2 MB stay. For larger
 * texts, the cost of mapping new pages is at most half the cost of encoding a cached text. */
static void shed(ggtok_context *ctx) {
    enum { KEPT = 2 << 20 }; /* maximum bytes of a buffer that is kept */
    if (ctx->ids.cap > KEPT / sizeof *ctx->ids.data) {
        ggtok_mem_free_large(ctx->ids.data, ctx->ids.cap * sizeof *ctx->ids.data);
        ctx->ids = (idbuf){NULL, 0, 0};
    }
    if (ctx->bytes.cap > KEPT) {
        ggtok_mem_free_large(ctx->bytes.data, ctx->bytes.cap * sizeof *ctx->bytes.data);
        ctx->bytes = (bytebuf){NULL, 0, 0};
    }
    if (ctx->reencoded.cap > KEPT / sizeof *ctx->reencoded.data) {
        ggtok_mem_free_large(ctx->reencoded.data, ctx->reencoded.cap * sizeof *ctx->reencoded.data);
        ctx->reencoded = (idbuf){NULL, 0, 0};
    }
    if (ctx->parts_cap > KEPT / sizeof *ctx->parts) {
        ggtok_mem_free_large(ctx->parts, ctx->parts_cap * sizeof *ctx->parts);
        ctx->parts = NULL;
        ctx->parts_cap = 0;
    }
    if (ctx->spans.cap > KEPT / sizeof *ctx->spans.data) {
        ggtok_mem_free_large(ctx->spans.data, ctx->spans.cap * sizeof *ctx->spans.data);
        ctx->spans.data = NULL;
        ctx->spans.cap = 0;
    }
    if (ctx->assigned.cap > KEPT) {
        ggtok_mem_free_large(ctx->assigned.data, ctx->assigned.cap * sizeof *ctx->assigned.data);
        ctx->assigned = (bytebuf){NULL, 0, 0};
    }
    if (ctx->sampling && ggtok_sampling_bytes(ctx->sampling) > KEPT)
        ggtok_sampling_free(ctx->sampling);
    if (ggtok_recorder_bytes(&ctx->recorder) > KEPT) ggtok_recorder_free(&ctx->recorder);
    if (ggtok_partition_scratch_bytes(&ctx->partition) > KEPT)
        ggtok_partition_scratch_free(&ctx->partition);
}

void ggtok_pool_release(ggtok_pool *p, ggtok_context *ctx) {
    shed(ctx);
    if (ctx->interrupt.keep_going) ggtok_context_set_interrupt(ctx, NULL, NULL);
    ctx->choice = NULL;
    take_lock();
    bool current = ctx->round == p->round;
    if (current) {
        ctx->next = p->idle;
        p->idle = ctx;
    }
    give_lock();
    if (!current) ggtok_context_free(ctx);
}

void ggtok_pool_clear(ggtok_pool *p) {
    take_lock();
    ggtok_context *idle = p->idle;
    p->idle = NULL;
    p->round++;
    give_lock();
    free_all(idle);
}

ggtok_cache_info ggtok_pool_cache_info(ggtok_pool *p) {
    ggtok_cache_info info = {0, 0, 0};
    take_lock();
    for (const ggtok_context *ctx = p->idle; ctx; ctx = ctx->next) {
        info.hits += ctx->counts.hits;
        info.misses += ctx->counts.misses;
        if (ctx->tok->ops && ctx->tok->ops->cache_bytes) {
            info.bytes += ctx->tok->ops->cache_bytes(ctx->scratch);
        }
    }
    give_lock();
    return info;
}
