/*
 * The main path: text -> fragments -> ids. Each function calls the next:
 *
 *   ggtok_encode        the public call; ggtok_encode_trusted is the other one
 *   ggtok_encode_text   flags and interrupts
 *   encode_fragments    partition, BOS, each fragment, EOS
 *   encode_fragment     a special token, or raw text for the model (models/)
 *
 * The other half, ids -> text, is in api/decode.c.
 */
#include "api/tokenizer.h"

static ggtok_status begin_continuation(const vocab *v, unsigned *flags, ggtok_error *err);
static ggtok_status encode_fragments(ggtok_context *ctx, const uint8_t *text, size_t n,
                                     unsigned flags, const trusted_ranges *trusted,
                                     ggtok_error *err);
static ggtok_status encode_fragment(ggtok_context *ctx, model_call *call, const uint8_t *text,
                                    const fragment *f, const trusted_ranges *trusted);
static ggtok_status add_before(ggtok_context *ctx, ggtok_error *err);
static ggtok_status add_after(ggtok_context *ctx, ggtok_error *err);
static bool reserve_parts(ggtok_context *ctx, size_t n);

ggtok_status ggtok_encode(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                          ggtok_ids *out, ggtok_error *err) {
    *out = (ggtok_ids){NULL, 0};
    ggtok_status s = ggtok_encode_text(ctx, (const uint8_t *)text, n, flags, NULL, err);
    if (!s) *out = (ggtok_ids){ctx->ids.data, ctx->ids.n};
    return s;
}

ggtok_status ggtok_encode_trusted(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                                  const ggtok_range *trusted, size_t n_trusted, ggtok_ids *out,
                                  ggtok_parts *parts, ggtok_error *err) {
    *out = (ggtok_ids){NULL, 0};
    *parts = (ggtok_parts){NULL, 0};
    for (size_t i = 0, from = 0; i < n_trusted; from = trusted[i++].end + 1) {
        if (trusted[i].begin >= from && trusted[i].begin < trusted[i].end && trusted[i].end <= n) {
            continue;
        }
        return ggtok_error_set(
            err, GGTOK_ERR_ARGUMENT,
            "trusted range %lu is empty, outside the text, or not after the previous range",
            (unsigned long)i);
    }
    const trusted_ranges ranges = {
        .data = trusted, .n = n_trusted, .all = (flags & GGTOK_PLAIN_USER_DEFINED) != 0};
    ggtok_status s = ggtok_encode_text(ctx, (const uint8_t *)text, n, flags, &ranges, err);
    if (s) return s;
    *out = (ggtok_ids){ctx->ids.data, ctx->ids.n};
    *parts = (ggtok_parts){ctx->parts, ctx->partition.now.n};
    return GGTOK_OK;
}

ggtok_status ggtok_encode_text(ggtok_context *ctx, const uint8_t *text, size_t n, unsigned flags,
                               const trusted_ranges *trusted, ggtok_error *err) {
    if (!ctx->tok->ops) {
        return ggtok_error_set(
            err, GGTOK_ERR_UNSUPPORTED,
            "the file has no vocabulary (tokenizer model '%s'): nothing to encode with",
            ctx->tok->v.model);
    }
    if (flags & GGTOK_CONTINUATION) {
        ggtok_status s = begin_continuation(&ctx->tok->v, &flags, err);
        if (s) return s;
    }
    interrupt_begin(&ctx->interrupt);
    return encode_fragments(ctx, text, n, flags, trusted, err);
}

static ggtok_status encode_fragments(ggtok_context *ctx, const uint8_t *text, size_t n,
                                     unsigned flags, const trusted_ranges *trusted,
                                     ggtok_error *err) {
    /* Bytes of text per id: usually; seldom less. A large buffer that grows leaves a hole in the heap,
     * while pages that aren't used cost nothing. */
    enum { USUAL_BYTES = 4, FEW_BYTES = 2, LARGE = 1 << 21 };
    const ggtok_tokenizer *tok = ctx->tok;
    const bool parts = trusted || flags & GGTOK_SPANS;
    const bool assign = !PLAIN && !trusted && flags & GGTOK_SPANS;
    ggtok_status s;
    ctx->ids.n = 0;
    idbuf_reserve(&ctx->ids,
                  n / (n < LARGE ? USUAL_BYTES : FEW_BYTES)); /* a failure only costs time */
    if (flags & GGTOK_ADD_SPECIAL && !(flags & GGTOK_NOT_FIRST_BLOCK) &&
        (s = add_before(ctx, err))) {
        return s;
    }
    const special_set *set = ggtok_context_specials(ctx, flags);
    if (!ggtok_partition_text(&ctx->partition, set, &tok->v, text, n, trusted))
        return ggtok_error_failed(&ctx->interrupt, err);
    const fragments *fragments = &ctx->partition.now;
    ctx->text = text, ctx->n = n, ctx->flags = flags;
    ctx->assigned.n = 0;
    if ((parts && !reserve_parts(ctx, fragments->n)) ||
        (assign && !bytebuf_reserve(&ctx->assigned, fragments->n))) {
        return ggtok_error_memory(err);
    }
    model_call call = ggtok_context_call(ctx, flags, err);
    if (assign) call.spans = &ctx->spans;
    for (size_t i = 0; i < fragments->n; i++) {
        const fragment *f = &fragments->data[i];
        const size_t first = ctx->ids.n;
        const bool special = f->id != GGTOK_NO_TOKEN;
        if ((s = encode_fragment(ctx, &call, text, f, trusted))) return s;
        if (assign) ctx->assigned.data[ctx->assigned.n++] = !special && ctx->spans.assigned;
        if (parts) ctx->parts[i] = (ggtok_part){f->pos, f->n, first, ctx->ids.n - first, special};
    }
    return flags & GGTOK_ADD_SPECIAL && !(flags & GGTOK_NOT_LAST_BLOCK) ? add_after(ctx, err)
                                                                        : GGTOK_OK;
}

static ggtok_status encode_fragment(ggtok_context *ctx, model_call *call, const uint8_t *text,
                                    const fragment *f, const trusted_ranges *trusted) {
    if (f->id != GGTOK_NO_TOKEN) {
        call->after_special = true;
        if (interrupted(&ctx->interrupt, f->n)) return ggtok_call_failed(call);
        return idbuf_push(&ctx->ids, f->id) ? GGTOK_OK : ggtok_call_failed(call);
    }
    const size_t first = ctx->ids.n;
    ctx->spans.base = (int64_t)f->pos;
    ctx->spans.assigned = false;
    ggtok_status s = ctx->tok->ops->encode(call, text + f->pos, f->n);
    if (!s && trusted) s = ggtok_encode_without_reserved(ctx, call, text, f, first, trusted);
    call->after_special = false;
    return s;
}

static bool reserve_parts(ggtok_context *ctx, size_t n) {
    if (n <= ctx->parts_cap) return true;
    ggtok_part *parts = ggtok_mem_realloc(ctx->parts, mem_mul(n, sizeof *parts));
    if (!parts) return false;
    ctx->parts = parts;
    ctx->parts_cap = n;
    return true;
}

/* ---- flags ---- */

/* The tokens that GGTOK_ADD_SPECIAL adds before and after the ids, by vocabulary type. */
typedef enum added { NOTHING, BY_FLAG, ALWAYS } added;
static const struct {
    added before, after;
    ggtok_special last; /* the token added after the ids; BOS is added before them */
    ggtok_vocab_flag last_flag;
} added_tokens[] = {
    [GGTOK_VOCAB_SPM] = {BY_FLAG, BY_FLAG, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
    [GGTOK_VOCAB_BPE] = {BY_FLAG, BY_FLAG, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
    [GGTOK_VOCAB_UGM] = {BY_FLAG, BY_FLAG, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
    [GGTOK_VOCAB_PLAMO2] = {BY_FLAG, BY_FLAG, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
    [GGTOK_VOCAB_PLAMO3] = {BY_FLAG, BY_FLAG, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
    [GGTOK_VOCAB_WPM] = {ALWAYS, ALWAYS, GGTOK_SEP, GGTOK_FLAG_ADD_SEP}, /* CLS, SEP */
    [GGTOK_VOCAB_RWKV] = {NOTHING, NOTHING, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
    [GGTOK_VOCAB_TEST] = {NOTHING, NOTHING, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
};

bool ggtok_adds_before(const ggtok_context *ctx) {
    const vocab *v = &ctx->tok->v;
    added when = added_tokens[v->type].before;
    return ctx->flags & GGTOK_ADD_SPECIAL && !(ctx->flags & GGTOK_NOT_FIRST_BLOCK) &&
           (when == ALWAYS || (when == BY_FLAG && v->flag[GGTOK_FLAG_ADD_BOS]));
}

static ggtok_status add_token(ggtok_context *ctx, added when, ggtok_special which,
                              ggtok_vocab_flag flag, ggtok_error *err) {
    static const struct {
        const char *name, *key;
    } rows[] = {
        [GGTOK_BOS] = {"BOS", "tokenizer.ggml.bos_token_id"},
        [GGTOK_EOS] = {"EOS", "tokenizer.ggml.eos_token_id"},
        [GGTOK_SEP] = {"SEP", "tokenizer.ggml.seperator_token_id"},
    };
    const vocab *v = &ctx->tok->v;
    if (when == NOTHING || (when == BY_FLAG && !v->flag[flag])) return GGTOK_OK;
    if (v->special[which] < 0) {
        return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, rows[which].key, strlen(rows[which].key),
                                  GGTOK_NO_OFFSET,
                                  "the vocabulary adds %s to texts, but has no such token; encode "
                                  "without add_special",
                                  rows[which].name);
    }
    return idbuf_push(&ctx->ids, v->special[which]) ? GGTOK_OK : ggtok_error_memory(err);
}

static ggtok_status add_before(ggtok_context *ctx, ggtok_error *err) {
    return add_token(ctx, added_tokens[ctx->tok->v.type].before, GGTOK_BOS, GGTOK_FLAG_ADD_BOS,
                     err);
}

static ggtok_status add_after(ggtok_context *ctx, ggtok_error *err) {
    const vocab *v = &ctx->tok->v;
    return add_token(ctx, added_tokens[v->type].after, added_tokens[v->type].last,
                     added_tokens[v->type].last_flag, err);
}

/* Fails if this vocabulary can't encode a continuation; otherwise changes *flags to encode one. */
static ggtok_status begin_continuation(const vocab *v, unsigned *flags, ggtok_error *err) {
    const char *reason =
        v->type == GGTOK_VOCAB_WPM ? "a text always begins with a new word"
        : v->type == GGTOK_VOCAB_UGM && v->flag[GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES]
            ? "white space is removed, and a space is added before every word"
            : NULL;
    *flags = (*flags & ~(unsigned)GGTOK_ADD_SPECIAL) | GGTOK_NOT_FIRST_BLOCK;
    return reason ? ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                                    "this vocabulary can't encode a text as a continuation: %s; "
                                    "encode the whole text at once",
                                    reason)
                  : GGTOK_OK;
}
