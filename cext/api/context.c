/* A context: one thread's caches and scratch memory, and its settings. */
#include "api/tokenizer.h"

ggtok_status ggtok_context_new(const ggtok_tokenizer *tok, ggtok_context **out, ggtok_error *err) {
    ggtok_context *ctx = *out = ggtok_mem_zalloc(sizeof *ctx);
    if (!ctx) return ggtok_error_memory(err);
    ctx->tok = tok;
    ctx->spans.recorder = &ctx->recorder;
    ctx->partition.interrupt = &ctx->interrupt;
    if (!tok->ops || (ctx->scratch = tok->ops->scratch_new(&tok->v, tok->model))) return GGTOK_OK;
    ggtok_mem_free(ctx);
    *out = NULL;
    return ggtok_error_memory(err);
}

void ggtok_context_free(ggtok_context *ctx) {
    if (!ctx) return;
    if (ctx->tok->ops) ctx->tok->ops->scratch_free(ctx->scratch);
    ggtok_partition_scratch_free(&ctx->partition);
    ggtok_recorder_free(&ctx->recorder);
    ggtok_mem_free(ctx->parts);
    ggtok_mem_free(ctx->spans.data);
    ggtok_mem_free(ctx->assigned.data);
    ggtok_mem_free(ctx->ids.data);
    ggtok_mem_free(ctx->reencoded.data);
    ggtok_mem_free(ctx->bytes.data);
    if (ctx->sampling) ggtok_sampling_free(ctx->sampling);
    ggtok_mem_free(ctx->sampling);
    ggtok_mem_free(ctx);
}

void ggtok_context_set_interrupt(ggtok_context *ctx, ggtok_interrupt_fn keep_going, void *user) {
    ctx->interrupt = (interrupt){.keep_going = keep_going, .user = user};
}

void ggtok_context_set_special_choice(ggtok_context *ctx, const ggtok_special_choice *choice) {
    ctx->choice = choice;
}

model_call ggtok_context_call(ggtok_context *ctx, unsigned flags, ggtok_error *err) {
    return (model_call){
        .v = &ctx->tok->v,
        .model = ctx->tok->model,
        .scratch = ctx->scratch,
        .after_special = !(flags & GGTOK_NOT_FIRST_BLOCK),
        .out = &ctx->ids,
        .counts = &ctx->counts,
        .err = err,
        .interrupt = &ctx->interrupt,
        .sampling = ctx->samples ? ctx->sampling : NULL,
    };
}
