/* Keeps untrusted text from becoming reserved tokens; see ggtok_encode_trusted and models/recorder.h. */
#include "api/tokenizer.h"
#include "base/prefix.h"

/* Whether any id from index `first` on is in one of the ranges v.marked, which contain all reserved
 * and user-defined ids. Compilers vectorize this loop. */
static bool holds_marked(const ggtok_context *ctx, size_t first) {
    const vocab_range a = ctx->tok->v.marked[0], b = ctx->tok->v.marked[1];
    const int32_t *ids = ctx->ids.data;
    const size_t n = ctx->ids.n;
    uint32_t found = 0;
    for (size_t k = first; k < n; k++) {
        uint32_t id = (uint32_t)ids[k];
        found |= (id - a.first < a.n) | (id - b.first < b.n);
    }
    return found;
}

/* Whether any id from index `first` on has an attribute in `reserved`. Only trusted text may
 * produce such ids. */
static bool holds_reserved(const ggtok_context *ctx, size_t first, uint32_t reserved) {
    const uint32_t *attr = ctx->tok->v.attr;
    if (!holds_marked(ctx, first)) return false;
    for (size_t k = first; k < ctx->ids.n; k++) {
        int32_t id = ctx->ids.data[k];
        if (id >= 0 && attr[id] & reserved) return true;
    }
    return false;
}

/* Reports untrusted text that can't be encoded without a reserved token. */
static ggtok_status refused(const vocab *v, int32_t id, ggtok_error *err) {
    gguf_view text = vocab_text(v, (uint32_t)id);
    return ggtok_error_set(
        err, GGTOK_ERR_ARGUMENT,
        "untrusted text contains '%.*s', which this vocabulary can represent only by the %s token "
        "%ld; remove it from the text",
        text_prefix(text.p, text.n, 64), (const char *)text.p,
        v->attr[id] & VOCAB_RESERVED ? "control" : "user-defined", (long)id);
}

ggtok_status ggtok_encode_without_reserved(ggtok_context *ctx, const model_call *call,
                                           const uint8_t *text, const fragment *f, size_t first,
                                           const trusted_ranges *trusted) {
    recorder *rec = &ctx->recorder;
    uint32_t reserved = VOCAB_RESERVED | (trusted->all ? GGTOK_ATTR_USER_DEFINED : 0);
    if (!holds_reserved(ctx, first, reserved)) return GGTOK_OK;
    rec->v = call->v;
    rec->reserved = reserved;
    if (!ggtok_recorder_begin(rec, trusted->data, trusted->n, f->pos, f->n))
        return ggtok_call_failed(call);
    model_call again = *call;
    again.recorder = rec;
    ctx->ids.n = first;
    ggtok_status s = ctx->tok->ops->encode_recorded(&again, text + f->pos, f->n);
    return s || rec->refused < 0 ? s : refused(call->v, rec->refused, call->err);
}
