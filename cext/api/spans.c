/*
 * Finds where in the text each id comes from: see docs/design/offsets.md.
 *
 * The spans of a part are assigned from the lengths of its tokens: by `encode`, if the model finds
 * words, otherwise here. If the lengths don't determine them, the part is encoded again by
 * encode_recorded.
 */
#include "api/tokenizer.h"
#include "models/tile.h"

/* Whether token `a`, which is left of token `b`, strips white space before `b` does, that is,
 * whether partition finds it first: it finds longer tokens first, tokens of one length in the set's
 * order, and equal tokens from left to right. */
static bool goes_first(const ggtok_context *ctx, const special_set *set, int32_t a, int32_t b) {
    const vocab *v = &ctx->tok->v;
    size_t n = vocab_text(v, (uint32_t)a).n, m = vocab_text(v, (uint32_t)b).n;
    if (n != m || a == b) return n >= m;
    for (size_t i = 0; i < set->n; i++) {
        if (set->ids[i] == a || set->ids[i] == b) return set->ids[i] == a;
    }
    return true;
}

size_t ggtok_part_boundary(const ggtok_context *ctx, size_t i) {
    const special_set *set = ggtok_context_specials(ctx, ctx->flags);
    const ggtok_part *parts = ctx->parts;
    const size_t n = ctx->partition.now.n;
    size_t begin = i ? parts[i - 1].pos + parts[i - 1].n : 0, end = i < n ? parts[i].pos : ctx->n;
    if (begin == end || i == n) return end;
    if (!i || !parts[i - 1].special) return begin;
    if (!parts[i].special) return end;
    int32_t left = ctx->ids.data[parts[i - 1].first], right = ctx->ids.data[parts[i].first];
    const uint32_t *attr = ctx->tok->v.attr;
    bool by_left = attr[left] & GGTOK_ATTR_RSTRIP, by_right = attr[right] & GGTOK_ATTR_LSTRIP;
    return by_left && (!by_right || goes_first(ctx, set, left, right)) ? end : begin;
}

/* Finds the spans of raw text by encoding it again and recording sources. */
static ggtok_status record(ggtok_context *ctx, const model_call *call, const ggtok_part *part,
                           ggtok_span *out) {
    recorder *rec = &ctx->recorder;
    const uint8_t *text = ctx->text + part->pos;
    if (!ggtok_recorder_begin_spans(rec, call->v, text, part->n)) return ggtok_call_failed(call);
    model_call plain = *call;
    plain.recorder = rec;
    plain.out = &ctx->reencoded;
    ctx->reencoded.n = 0;
    ggtok_status s = ctx->tok->ops->encode_recorded(&plain, text, part->n);
    if (s) return s;
    if (rec->n_made !=
        part->n_ids) { /* the caller's splitter returned other words, or the text changed */
        return ggtok_error_set(call->err, GGTOK_ERR_ARGUMENT,
                               "the text has different ids when it is encoded again");
    }
    ggtok_recorder_copy_spans(rec, out, (int64_t)part->pos);
    return GGTOK_OK;
}

/* Finds the spans of raw text from token lengths, or by recording. */
static ggtok_status spans_of_raw(ggtok_context *ctx, const model_call *call, const ggtok_part *part,
                                 ggtok_span *out) {
    const model_ops *ops = ctx->tok->ops;
    const model_source source = {.text = ctx->text + part->pos,
                                 .n = part->n,
                                 .ids = ctx->ids.data + part->first,
                                 .n_ids = part->n_ids,
                                 .spans = out,
                                 .base = (int64_t)part->pos};
    bool assigned = !PLAIN && ops->tile &&
                    ggtok_tile_are_known(call->v, source.ids, source.n_ids) &&
                    ops->tile(call, &source);
    return assigned ? GGTOK_OK : record(ctx, call, part, out);
}

static ggtok_status assign_spans(ggtok_context *ctx, ggtok_span *out, ggtok_error *err) {
    size_t n = ctx->partition.now.n, k = 0;
    model_call call = ggtok_context_call(ctx, ctx->flags, err);
    call.out = NULL;
    for (; k < (n ? ctx->parts[0].first : 0); k++) out[k] = (ggtok_span){0, 0};
    for (size_t i = 0; i < n; i++) {
        const ggtok_part *part = &ctx->parts[i];
        if (part->special) {
            size_t begin = ggtok_part_boundary(ctx, i), end = ggtok_part_boundary(ctx, i + 1);
            out[part->first] = (ggtok_span){(int64_t)begin, (int64_t)end};
        } else if (i < ctx->assigned.n && ctx->assigned.data[i]) {
            const size_t size = part->n_ids * sizeof *out;
            if (size) memcpy(out + part->first, ctx->spans.data + part->first, size);
        } else if (part->n_ids) {
            ggtok_status s = spans_of_raw(ctx, &call, part, out + part->first);
            if (s) return s;
        }
        call.after_special = part->special;
        k = part->first + part->n_ids;
    }
    for (; k < ctx->ids.n; k++) out[k] = (ggtok_span){(int64_t)ctx->n, (int64_t)ctx->n};
    return GGTOK_OK;
}

ggtok_status ggtok_spans(ggtok_context *ctx, ggtok_span *out, ggtok_error *err) {
    interrupt_begin(&ctx->interrupt);
    return assign_spans(ctx, out, err);
}
