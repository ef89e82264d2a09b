/* Decoding: ids -> pieces -> text. */
#include "api/tokenizer.h"

ggtok_status ggtok_decode(ggtok_context *ctx, const int32_t *ids, size_t n, unsigned flags,
                          ggtok_bytes *out, ggtok_error *err) {
    const ggtok_tokenizer *tok = ctx->tok;
    *out = (ggtok_bytes){NULL, 0};
    if (!tok->ops) return GGTOK_OK; /* without a vocabulary, every id is empty */
    ggtok_status s = ggtok_detok_text(&tok->pieces, &tok->v, ids, n, flags, &ctx->bytes, err);
    if (!s) *out = (ggtok_bytes){(const char *)ctx->bytes.data, ctx->bytes.n};
    return s;
}
