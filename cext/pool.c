#include "pool.h"

ggtok_status ggtok_pool_new(const ggtok_tokenizer *tok, ggtok_pool **out, ggtok_error *err) {
    ggtok_pool *p = *out = mem_zalloc(sizeof *p);
    if (!p) return error_memory(err);
    p->tok = tok;
    lock_init(&p->lock);
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
    lock_free(&p->lock);
    mem_free(p);
}

ggtok_context *ggtok_pool_take(ggtok_pool *p, ggtok_error *err) {
    lock_take(&p->lock);
    ggtok_context *ctx = p->idle;
    unsigned round = p->round;
    if (ctx) p->idle = ctx->next;
    lock_give(&p->lock);
    if (ctx || ggtok_context_new(p->tok, &ctx, err)) return ctx;
    ctx->round = round;
    return ctx;
}

void ggtok_pool_give(ggtok_pool *p, ggtok_context *ctx) {
    lock_take(&p->lock);
    bool current = ctx->round == p->round;
    if (current) {
        ctx->next = p->idle;
        p->idle = ctx;
    }
    lock_give(&p->lock);
    if (!current) ggtok_context_free(ctx);
}

void ggtok_pool_clear(ggtok_pool *p) {
    lock_take(&p->lock);
    ggtok_context *idle = p->idle;
    p->idle = NULL;
    p->round++;
    lock_give(&p->lock);
    free_all(idle);
}

ggtok_cache_info ggtok_pool_cache_info(ggtok_pool *p) {
    ggtok_cache_info info = {0, 0, 0};
    lock_take(&p->lock);
    for (const ggtok_context *ctx = p->idle; ctx; ctx = ctx->next) {
        info.hits += ctx->counts.hits;
        info.misses += ctx->counts.misses;
        if (ctx->tok->ops && ctx->tok->ops->cache_bytes) {
            info.bytes += ctx->tok->ops->cache_bytes(ctx->scratch);
        }
    }
    lock_give(&p->lock);
    return info;
}
