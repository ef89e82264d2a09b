/* One text on several threads: it is cut into parts, which are encoded like the texts of a batch. */
#include "api/tokenizer.h"

enum { FEW = 8 }; /* initial capacity of the list of parts */

typedef struct parts {
    ggtok_bytes *data;
    size_t n, cap;
} parts;

static bool add_part(parts *p, const char *text, size_t n) {
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : FEW;
        ggtok_bytes *data = ggtok_mem_realloc(p->data, mem_mul(cap, sizeof *data));
        if (!data) return false;
        p->data = data;
        p->cap = cap;
    }
    p->data[p->n++] = (ggtok_bytes){text, n};
    return true;
}

/* Divides the text into parts of about `size` bytes. Where such a part can't be cut, it doubles, so
 * the search takes linear time. */
static ggtok_status cut(ggtok_context *ctx, const char *text, size_t n, unsigned flags, size_t size,
                        parts *out, ggtok_error *err) {
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
    parts found = {0};
    size_t failed, size = options->threads > 1 ? ggtok_chunk_bytes(n, options->threads) : n;
    if (ctx->tok->v.type == GGTOK_VOCAB_UGM || options->sampling) size = n;
    ggtok_context_set_special_choice(ctx, options->choice);
    ggtok_context_set_interrupt(ctx, options->keep_going, options->user);
    ggtok_status s = cut(ctx, text, n, options->flags, size, &found, err);
    ggtok_pool_release(pool, ctx);
    if (!s) s = ggtok_encode_texts(pool, found.data, found.n, true, &own, out, &failed, err);
    ggtok_mem_free(found.data);
    return s;
}
