/* The main path. Encode: text -> partition -> fragments -> model -> ids, with
 * BOS/EOS around them; decode: ids -> pieces -> text. Then the accessors. */
#include "api/tokenizer.h"
#include "vocab/special.h"

const char *ggtok_version(void) {
    return GGTOK_VERSION;
}

ggtok_status ggtok_context_new(const ggtok_tokenizer *tok, ggtok_context **out, ggtok_error *err) {
    ggtok_context *ctx = *out = ggtok_mem_zalloc(sizeof *ctx);
    if (!ctx) return ggtok_error_memory(err);
    ctx->tok = tok;
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
    ggtok_guard_free(&ctx->guard);
    ggtok_mem_free(ctx->parts);
    ggtok_mem_free(ctx->spans.data);
    ggtok_mem_free(ctx->assigned.data);
    ggtok_mem_free(ctx->ids.data);
    ggtok_mem_free(ctx->reencoded.data);
    ggtok_mem_free(ctx->bytes.data);
    ggtok_mem_free(ctx);
}

void ggtok_free(ggtok_tokenizer *tok) {
    if (!tok) return;
    if (tok->ops) tok->ops->free(tok->model);
    ggtok_special_set_free(&tok->always);
    ggtok_special_set_free(&tok->all);
    ggtok_piece_table_free(&tok->pieces);
    ggtok_metadata_free(&tok->meta);
    ggtok_vocab_free(&tok->v);
    ggtok_mem_free(tok);
}

/* ---- encode ---- */

/* What add_special puts around the ids. */
typedef enum added { NOTHING, BY_FLAG, ALWAYS } added;
static const struct {
    added before, after;
    ggtok_special last; /* the token after; BOS is the one before */
    ggtok_vocab_flag last_flag;
} frames[] = {
    [GGTOK_VOCAB_SPM] = {BY_FLAG, BY_FLAG, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
    [GGTOK_VOCAB_BPE] = {BY_FLAG, BY_FLAG, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
    [GGTOK_VOCAB_UGM] = {BY_FLAG, BY_FLAG, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
    [GGTOK_VOCAB_PLAMO2] = {BY_FLAG, BY_FLAG, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
    [GGTOK_VOCAB_PLAMO3] = {BY_FLAG, BY_FLAG, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
    [GGTOK_VOCAB_WPM] = {ALWAYS, ALWAYS, GGTOK_SEP, GGTOK_FLAG_ADD_SEP}, /* CLS, SEP */
    [GGTOK_VOCAB_RWKV] = {NOTHING, NOTHING, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
    [GGTOK_VOCAB_TEST] = {NOTHING, NOTHING, GGTOK_EOS, GGTOK_FLAG_ADD_EOS},
};

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
                                  "the vocabulary asks for a %s token but has none; encode without "
                                  "add_special",
                                  rows[which].name);
    }
    return idbuf_push(&ctx->ids, v->special[which]) ? GGTOK_OK : ggtok_error_memory(err);
}

static ggtok_status no_vocabulary(const ggtok_tokenizer *tok, ggtok_error *err) {
    return ggtok_error_set(
        err, GGTOK_ERR_UNSUPPORTED,
        "the file has no vocabulary (tokenizer model '%s'): nothing to encode with", tok->v.model);
}

void ggtok_context_set_go_on(ggtok_context *ctx, ggtok_interrupt_fn go_on, void *user) {
    ctx->interrupt = (interrupt){.go_on = go_on, .user = user};
}

static bool parts_reserve(ggtok_context *ctx, size_t n) {
    if (n <= ctx->parts_cap) return true;
    ggtok_part *parts = ggtok_mem_realloc(ctx->parts, mem_mul(n, sizeof *parts));
    if (!parts) return false;
    ctx->parts = parts;
    ctx->parts_cap = n;
    return true;
}

/* Why text that is not trusted has no ids. */
static ggtok_status refused(const vocab *v, int32_t id, ggtok_error *err) {
    gguf_view text = vocab_text(v, (uint32_t)id);
    return ggtok_error_set(
        err, GGTOK_ERR_ARGUMENT,
        "text that is not trusted holds '%.*s', which this vocabulary can spell only "
        "with the %s token %ld: take it out of the text",
        (int)(text.n < 64 ? text.n : 64), (const char *)text.p,
        v->attr[id] & VOCAB_RESERVED ? "control" : "user-defined", (long)id);
}

/* Is one of the ids from `first` on in the vocabulary's ranges of marked ones? Compilers make
 * vectors of it. */
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

/* Do the ids from `first` on hold one that only trusted text may give? */
static bool holds_reserved(const ggtok_context *ctx, size_t first, uint32_t reserved) {
    const uint32_t *attr = ctx->tok->v.attr;
    if (!holds_marked(ctx, first)) return false;
    for (size_t k = first; k < ctx->ids.n; k++) {
        int32_t id = ctx->ids.data[k];
        if (id >= 0 && attr[id] & reserved) return true;
    }
    return false;
}

/* The ids of raw text, appended. */
static ggtok_status encode_raw(ggtok_context *ctx, const model_call *call, const uint8_t *text,
                               const fragment *f, const trusted_ranges *trusted) {
    const model_ops *ops = ctx->tok->ops;
    size_t first = ctx->ids.n;
    ggtok_status s = ops->encode(call, text + f->pos, f->n);
    uint32_t reserved = VOCAB_RESERVED;
    if (trusted && trusted->all) reserved |= GGTOK_ATTR_USER_DEFINED;
    if (s || !trusted || !holds_reserved(ctx, first, reserved)) return s;
    text_guard *g = &ctx->guard;
    g->v = call->v;
    g->reserved = reserved;
    if (!ggtok_guard_begin(g, trusted->data, trusted->n, f->pos, f->n))
        return ggtok_error_memory(call->err);
    model_call guarded = *call;
    guarded.guard = g;
    ctx->ids.n = first;
    s = ops->encode_guarded(&guarded, text + f->pos, f->n);
    return s || g->refused < 0 ? s : refused(call->v, g->refused, call->err);
}

/* `trusted` is ggtok_encode_trusted's, which also wants ctx->parts; else NULL. */
static ggtok_status encode_parts(ggtok_context *ctx, const uint8_t *text, size_t n, unsigned flags,
                                 const trusted_ranges *trusted, ggtok_error *err) {
    const ggtok_tokenizer *tok = ctx->tok;
    enum { USUAL_BYTES = 4 }; /* of a token's text */
    bool parts = trusted || flags & GGTOK_SPANS;
    bool first = (flags & GGTOK_ADD_SPECIAL) && !(flags & GGTOK_NOT_FIRST_BLOCK);
    bool last = (flags & GGTOK_ADD_SPECIAL) && !(flags & GGTOK_NOT_LAST_BLOCK);
    bool assign = !PLAIN && !trusted && flags & GGTOK_SPANS;
    ggtok_status s;
    ctx->ids.n = 0;
    idbuf_reserve(&ctx->ids, n / USUAL_BYTES); /* failing costs time */
    if (first &&
        (s = add_token(ctx, frames[tok->v.type].before, GGTOK_BOS, GGTOK_FLAG_ADD_BOS, err))) {
        return s;
    }
    const special_set *set = ggtok_context_specials(ctx, flags);
    if (!ggtok_partition_text(&ctx->partition, set, &tok->v, text, n, trusted))
        return ggtok_error_memory(err);
    ctx->text = text, ctx->n = n, ctx->flags = flags;
    if (parts && !parts_reserve(ctx, ctx->partition.now.n)) return ggtok_error_memory(err);
    ctx->assigned.n = 0;
    if (assign && !bytebuf_reserve(&ctx->assigned, ctx->partition.now.n))
        return ggtok_error_memory(err);
    model_call call = {&tok->v,      tok->model, ctx->scratch,    true, &ctx->ids,
                       &ctx->counts, err,        &ctx->interrupt, NULL, NULL};
    if (assign) call.spans = &ctx->spans;
    call.after_special = !(flags & GGTOK_NOT_FIRST_BLOCK);
    for (size_t i = 0; i < ctx->partition.now.n; i++) {
        const fragment *f = &ctx->partition.now.data[i];
        size_t first = ctx->ids.n;
        if (f->id != GGTOK_NO_TOKEN) {
            if (interrupted(&ctx->interrupt, f->n)) return GGTOK_ERR_STOPPED;
            if (!idbuf_push(&ctx->ids, f->id)) return ggtok_error_memory(err);
            call.after_special = true;
        } else {
            ctx->spans.base = (int64_t)f->pos;
            ctx->spans.assigned = false;
            if ((s = encode_raw(ctx, &call, text, f, trusted))) return s;
            call.after_special = false;
        }
        if (assign)
            ctx->assigned.data[ctx->assigned.n++] = f->id == GGTOK_NO_TOKEN && ctx->spans.assigned;
        if (parts) {
            bool special = f->id != GGTOK_NO_TOKEN;
            ctx->parts[i] = (ggtok_part){f->pos, f->n, first, ctx->ids.n - first, special};
        }
    }
    return last ? add_token(ctx, frames[tok->v.type].after, frames[tok->v.type].last,
                            frames[tok->v.type].last_flag, err)
                : GGTOK_OK;
}

/* Whether a text can go on behind others; if so, *flags are those of ggtok_encode for it. */
static ggtok_status continues(const vocab *v, unsigned *flags, ggtok_error *err) {
    const char *why = v->type == GGTOK_VOCAB_WPM ? "a text's first word is always a new one"
                      : v->type == GGTOK_VOCAB_UGM && v->flag[GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES]
                          ? "white space is removed, and a space put before every word"
                          : NULL;
    *flags = (*flags & ~(unsigned)GGTOK_ADD_SPECIAL) | GGTOK_NOT_FIRST_BLOCK;
    return why ? ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                                 "this vocabulary can't encode a text as a continuation: %s; "
                                 "encode all of the text at once",
                                 why)
               : GGTOK_OK;
}

static ggtok_status encode(ggtok_context *ctx, const uint8_t *text, size_t n, unsigned flags,
                           const trusted_ranges *trusted, ggtok_error *err) {
    if (flags & GGTOK_CONTINUATION) {
        ggtok_status s = continues(&ctx->tok->v, &flags, err);
        if (s) return s;
    }
    interrupt_begin(&ctx->interrupt);
    ggtok_status s = encode_parts(ctx, text, n, flags, trusted, err);
    /* Whatever failed then, failed for that. */
    return ctx->interrupt.stopped
               ? ggtok_error_set(err, GGTOK_ERR_STOPPED, "the caller asked to stop")
               : s;
}

ggtok_status ggtok_encode(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                          ggtok_ids *out, ggtok_error *err) {
    *out = (ggtok_ids){NULL, 0};
    if (!ctx->tok->ops) return no_vocabulary(ctx->tok, err);
    ggtok_status s = encode(ctx, (const uint8_t *)text, n, flags, NULL, err);
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
            "trusted range %lu is empty, outside the text or not after the one before",
            (unsigned long)i);
    }
    if (!ctx->tok->ops) return no_vocabulary(ctx->tok, err);
    const trusted_ranges ranges = {trusted, n_trusted, (flags & GGTOK_PLAIN_USER_DEFINED) != 0};
    ggtok_status s = encode(ctx, (const uint8_t *)text, n, flags, &ranges, err);
    if (s) return s;
    *out = (ggtok_ids){ctx->ids.data, ctx->ids.n};
    *parts = (ggtok_parts){ctx->parts, ctx->partition.now.n};
    return GGTOK_OK;
}

/* ---- decode ---- */

ggtok_status ggtok_decode(ggtok_context *ctx, const int32_t *ids, size_t n, unsigned flags,
                          ggtok_bytes *out, ggtok_error *err) {
    const ggtok_tokenizer *tok = ctx->tok;
    *out = (ggtok_bytes){NULL, 0};
    if (!tok->ops) return GGTOK_OK; /* without a vocabulary every id is empty, as in llama.cpp */
    ggtok_status s = ggtok_detok_text(&tok->pieces, &tok->v, ids, n, flags, &ctx->bytes, err);
    if (!s) *out = (ggtok_bytes){(const char *)ctx->bytes.data, ctx->bytes.n};
    return s;
}

/* ---- accessors ---- */

/* Everything about a single token first asks whether there is one. */
static ggtok_status check_id(const ggtok_tokenizer *tok, int32_t id, ggtok_error *err) {
    if (!tok->ops) {
        return ggtok_error_set(err, GGTOK_ERR_UNSUPPORTED,
                               "the file has no vocabulary (tokenizer model '%s')", tok->v.model);
    }
    if (id >= 0 && (uint32_t)id < tok->v.n_tokens) return GGTOK_OK;
    return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "id %ld is not in the vocabulary of %lu tokens",
                           (long)id, (unsigned long)tok->v.n_tokens);
}

ggtok_status ggtok_token_to_piece(const ggtok_tokenizer *tok, int32_t id, int32_t lstrip,
                                  bool special, ggtok_bytes *piece, ggtok_error *err) {
    ggtok_status s = check_id(tok, id, err);
    *piece = (ggtok_bytes){NULL, 0};
    if (s) return s;
    gguf_view p = ggtok_piece_of(&tok->pieces, &tok->v, (uint32_t)id, lstrip, special);
    *piece = (ggtok_bytes){(const char *)p.p, p.n};
    return GGTOK_OK;
}

ggtok_status ggtok_token_text(const ggtok_tokenizer *tok, int32_t id, ggtok_bytes *text,
                              ggtok_error *err) {
    ggtok_status s = check_id(tok, id, err);
    *text = (ggtok_bytes){NULL, 0};
    if (s) return s;
    gguf_view t = vocab_text(&tok->v, (uint32_t)id);
    *text = (ggtok_bytes){(const char *)t.p, t.n};
    return GGTOK_OK;
}

ggtok_status ggtok_token_score(const ggtok_tokenizer *tok, int32_t id, float *score,
                               ggtok_error *err) {
    ggtok_status s = check_id(tok, id, err);
    *score = s ? 0 : tok->v.score[id];
    return s;
}

ggtok_status ggtok_token_attr(const ggtok_tokenizer *tok, int32_t id, uint32_t *attr,
                              ggtok_error *err) {
    ggtok_status s = check_id(tok, id, err);
    *attr = s ? 0 : tok->v.attr[id] & ~VOCAB_RESERVED;
    return s;
}

bool ggtok_is_eog(const ggtok_tokenizer *tok, int32_t id) {
    return ggtok_vocab_is_eog(&tok->v, id);
}

size_t ggtok_special_ids(const ggtok_tokenizer *tok, int32_t *out, size_t max) {
    size_t n = 0;
    for (uint32_t id = 0; tok->ops && id < tok->v.n_tokens; id++) {
        bool special = tok->v.attr[id] & (VOCAB_RESERVED | GGTOK_ATTR_UNUSED);
        if (!special && (int32_t)id != tok->v.default_eos) continue;
        if (n < max) out[n] = (int32_t)id;
        n++;
    }
    return n;
}

ggtok_ids ggtok_eog_ids(const ggtok_tokenizer *tok) {
    return (ggtok_ids){tok->v.eog.data, tok->v.eog.n};
}

ggtok_ids ggtok_suppress_tokens(const ggtok_tokenizer *tok) {
    return (ggtok_ids){tok->v.suppress.data, tok->v.suppress.n};
}

int32_t ggtok_text_to_token(const ggtok_tokenizer *tok, const char *text, size_t n) {
    return tok->ops ? ggtok_vocab_find(&tok->v, text, n) : GGTOK_NO_TOKEN;
}

int32_t ggtok_special_id(const ggtok_tokenizer *tok, ggtok_special which) {
    int32_t id = (unsigned)which < GGTOK_N_SPECIAL ? tok->v.special[which] : GGTOK_NO_TOKEN;
    if (id == VOCAB_EOT_OPEN && !ggtok_vocab_find_eot(&tok->v, &id)) id = GGTOK_NO_TOKEN;
    return id;
}

uint32_t ggtok_n_tokens(const ggtok_tokenizer *tok) {
    return tok->v.n_tokens;
}

ggtok_vocab_type ggtok_type(const ggtok_tokenizer *tok) {
    return tok->v.type;
}

const char *ggtok_model(const ggtok_tokenizer *tok) {
    return tok->v.model;
}

const char *ggtok_pre(const ggtok_tokenizer *tok) {
    return tok->v.pre ? ggtok_pretok_name(tok->v.pre) : NULL;
}

bool ggtok_flag(const ggtok_tokenizer *tok, ggtok_vocab_flag flag) {
    return (unsigned)flag < GGTOK_N_FLAGS && tok->v.flag[flag];
}

const char *ggtok_warning(const ggtok_tokenizer *tok, size_t i) {
    const bytebuf *w = &tok->v.warnings;
    for (size_t pos = 0; pos < w->n; pos += strlen((const char *)w->data + pos) + 1) {
        if (!i--) return (const char *)w->data + pos;
    }
    return NULL;
}

const char *ggtok_pre_name(size_t i) {
    const pretok_row *row = ggtok_pretok_at(i);
    return row ? ggtok_pretok_name(row) : NULL;
}

bool ggtok_pre_is_raw(const char *name) {
    const pretok_row *row = ggtok_pretok_find(name, strlen(name));
    return row && ggtok_pretok_flags(row) & PRETOK_RAW_UTF8;
}

size_t ggtok_metadata_bytes(const ggtok_tokenizer *tok) {
    return tok->meta.end;
}

size_t ggtok_n_kv(const ggtok_tokenizer *tok) {
    return tok->meta.n;
}

ggtok_status ggtok_get_kv(const ggtok_tokenizer *tok, size_t i, ggtok_kv *out, ggtok_error *err) {
    if (i >= tok->meta.n) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "there are only %llu key/values",
                               (unsigned long long)tok->meta.n);
    }
    *out = tok->meta.kv[i];
    return GGTOK_OK;
}
