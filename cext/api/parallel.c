/* One text on several threads: it is cut into parts, which are encoded like the texts of a batch. */
#include "api/tokenizer.h"

static bool add_part(bytebuf *parts, const char *text, size_t n) {
    const ggtok_bytes part = {text, n};
    return bytebuf_append(parts, &part, sizeof part);
}

/* Divides the text into parts (ggtok_bytes) of about `size` bytes. Where such a part can't be cut,
 * it doubles, so the search takes linear time. */
static ggtok_status cut(ggtok_context *ctx, const char *text, size_t n, unsigned flags, size_t size,
                        bytebuf *out, ggtok_error *err) {
    for (size_t at = 0, next; at < n; at = next) {
        size_t found = 0;
        for (size_t step = size; !found && step <= (n - at) / 2; step *= 2) {
            found = ggtok_safe_cut(ctx, text + at, step, flags);
            if (ctx->interrupt.stopped) return ggtok_error_stopped(err);
        }
        next = found ? at + found : n;
        if (!add_part(out, text + at, next - at)) return ggtok_error_memory(err);
    }
    return n || add_part(out, text, 0) ? GGTOK_OK : ggtok_error_memory(err);
}

ggtok_status ggtok_encode_parallel(ggtok_pool *pool, const char *text, size_t n,
                                   const ggtok_batch_options *options, ggtok_batch **out,
                                   ggtok_error *err) {
    *out = NULL;
    if (options->flags & (GGTOK_SPANS | GGTOK_COPY_TEXTS)) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                               "ggtok_encode_parallel takes neither GGTOK_SPANS nor "
                               "GGTOK_COPY_TEXTS");
    }
    ggtok_batch_options own = *options;
    own.receive = NULL;
    own.convert = NULL;
    ggtok_context *ctx = ggtok_pool_acquire(pool, err);
    if (!ctx) return ggtok_error_memory(err);
    bytebuf parts = {0};
    size_t failed, size = options->threads > 1 ? ggtok_chunk_bytes(n, options->threads) : n;
    if (ctx->tok->v.type == GGTOK_VOCAB_UGM || options->sampling) size = n;
    ggtok_context_set_special_choice(ctx, options->choice);
    ggtok_context_set_interrupt(ctx, options->keep_going, options->user);
    ggtok_status s = cut(ctx, text, n, options->flags, size, &parts, err);
    ggtok_pool_release(pool, ctx);
    size_t n_parts = parts.n / sizeof(ggtok_bytes);
    if (!s)
        s = ggtok_encode_texts(pool, (void *)parts.data, n_parts, true, &own, out, &failed, err);
    ggtok_mem_free(parts.data);
    return s;
}
