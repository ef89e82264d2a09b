/* The main path. Encode: text -> partition -> fragments -> model -> ids, with
 * BOS/EOS around them; decode: ids -> pieces -> text. Then the accessors. */
#include "tokenizer.h"
#include "vocab_special.h"

ggtok_status ggtok_context_new(const ggtok_tokenizer *tok, ggtok_context **out, ggtok_error *err) {
    ggtok_context *ctx = *out = mem_zalloc(sizeof *ctx);
    if (!ctx) return error_memory(err);
    ctx->tok = tok;
    if (!tok->ops || (ctx->scratch = tok->ops->scratch_new(&tok->v, tok->model))) return GGTOK_OK;
    mem_free(ctx);
    *out = NULL;
    return error_memory(err);
}

void ggtok_context_free(ggtok_context *ctx) {
    if (!ctx) return;
    if (ctx->tok->ops) ctx->tok->ops->scratch_free(ctx->scratch);
    partition_scratch_free(&ctx->partition);
    mem_free(ctx->parts);
    mem_free(ctx->ids.data);
    mem_free(ctx->bytes.data);
    mem_free(ctx);
}

void ggtok_free(ggtok_tokenizer *tok) {
    if (!tok) return;
    if (tok->ops) tok->ops->free(tok->model);
    special_set_free(&tok->always);
    special_set_free(&tok->all);
    piece_table_free(&tok->pieces);
    metadata_free(&tok->meta);
    vocab_free(&tok->v);
    mem_free(tok);
}

/* ---- encode ---- */

/* What add_special puts around the ids. */
typedef enum added { NOTHING, BY_FLAG, ALWAYS } added;
static const struct {
    added before, behind;
    ggtok_special last; /* the token behind; BOS is the one before */
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
        return error_set_at(err, GGTOK_ERR_VOCAB, rows[which].key, strlen(rows[which].key),
                            GGTOK_NO_OFFSET,
                            "the vocabulary asks for a %s token but has none; encode without "
                            "add_special",
                            rows[which].name);
    }
    return idbuf_push(&ctx->ids, v->special[which]) ? GGTOK_OK : error_memory(err);
}

static ggtok_status no_vocabulary(const ggtok_tokenizer *tok, ggtok_error *err) {
    return error_set(err, GGTOK_ERR_UNSUPPORTED,
                     "the file has no vocabulary (tokenizer model '%s'): nothing to encode with",
                     tok->v.model);
}

static bool parts_reserve(ggtok_context *ctx, size_t n) {
    if (n <= ctx->parts_cap) return true;
    ggtok_part *parts = mem_realloc(ctx->parts, mem_mul(n, sizeof *parts));
    if (!parts) return false;
    ctx->parts = parts;
    ctx->parts_cap = n;
    return true;
}

/* Notes the ids that a fragment gave. RWKV and PLaMo keep the texts of control
 * tokens among all others, so that raw text gives them too: an error. */
static ggtok_status note_part(ggtok_context *ctx, size_t i, size_t first, ggtok_error *err) {
    const fragment *f = &ctx->partition.now.data[i];
    const vocab *v = &ctx->tok->v;
    bool special = f->id != GGTOK_NO_TOKEN;
    ctx->parts[i] = (ggtok_part){f->pos, f->n, first, ctx->ids.n - first, special};
    for (size_t k = first; !special && k < ctx->ids.n; k++) {
        int32_t id = ctx->ids.data[k];
        if (id < 0 || !(v->attr[id] & GGTOK_ATTR_CONTROL)) continue;
        gguf_view text = vocab_text(v, (uint32_t)id);
        return error_set(
            err, GGTOK_ERR_ARGUMENT,
            "text that is not trusted holds '%.*s', which this kind of vocabulary makes "
            "the control token %ld even so: take it out of the text",
            (int)(text.n < 64 ? text.n : 64), (const char *)text.p, (long)id);
    }
    return GGTOK_OK;
}

/* `trusted` is ggtok_encode_trusted's, which also wants ctx->parts; else NULL. */
static ggtok_status encode(ggtok_context *ctx, const uint8_t *text, size_t n, unsigned flags,
                           const trusted_ranges *trusted, ggtok_error *err) {
    const ggtok_tokenizer *tok = ctx->tok;
    enum { USUAL_BYTES = 4 }; /* of a token's text */
    bool add_special = (flags & GGTOK_ADD_SPECIAL) != 0;
    ggtok_status s;
    ctx->ids.n = 0;
    idbuf_reserve(&ctx->ids, n / USUAL_BYTES); /* failing costs time */
    if (add_special &&
        (s = add_token(ctx, frames[tok->v.type].before, GGTOK_BOS, GGTOK_FLAG_ADD_BOS, err))) {
        return s;
    }
    const special_set *set = flags & GGTOK_PARSE_SPECIAL ? &tok->all : &tok->always;
    if (!partition_text(&ctx->partition, set, &tok->v, text, n, trusted)) return error_memory(err);
    if (trusted && !parts_reserve(ctx, ctx->partition.now.n)) return error_memory(err);
    model_call call = {&tok->v, tok->model, ctx->scratch, true, &ctx->ids, &ctx->counts, err};
    for (size_t i = 0; i < ctx->partition.now.n; i++) {
        const fragment *f = &ctx->partition.now.data[i];
        size_t first = ctx->ids.n;
        if (f->id != GGTOK_NO_TOKEN) {
            if (!idbuf_push(&ctx->ids, f->id)) return error_memory(err);
            call.after_special = true;
        } else {
            if ((s = tok->ops->encode(&call, text + f->pos, f->n))) return s;
            call.after_special = false;
        }
        if (trusted && (s = note_part(ctx, i, first, err))) return s;
    }
    return add_special ? add_token(ctx, frames[tok->v.type].behind, frames[tok->v.type].last,
                                   frames[tok->v.type].last_flag, err)
                       : GGTOK_OK;
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
        return error_set(
            err, GGTOK_ERR_ARGUMENT,
            "trusted range %lu is empty, outside the text or not behind the one before",
            (unsigned long)i);
    }
    if (!ctx->tok->ops) return no_vocabulary(ctx->tok, err);
    const trusted_ranges ranges = {trusted, n_trusted};
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
    ggtok_status s = detok_text(&tok->pieces, &tok->v, ids, n, flags, &ctx->bytes, err);
    if (!s) *out = (ggtok_bytes){(const char *)ctx->bytes.data, ctx->bytes.n};
    return s;
}

/* ---- accessors ---- */

/* Everything about a single token first asks whether there is one. */
static ggtok_status check_id(const ggtok_tokenizer *tok, int32_t id, ggtok_error *err) {
    if (!tok->ops) {
        return error_set(err, GGTOK_ERR_UNSUPPORTED,
                         "the file has no vocabulary (tokenizer model '%s')", tok->v.model);
    }
    if (id >= 0 && (uint32_t)id < tok->v.n_tokens) return GGTOK_OK;
    return error_set(err, GGTOK_ERR_ARGUMENT, "id %ld is not in the vocabulary of %lu tokens",
                     (long)id, (unsigned long)tok->v.n_tokens);
}

ggtok_status ggtok_token_to_piece(const ggtok_tokenizer *tok, int32_t id, int32_t lstrip,
                                  bool special, ggtok_bytes *piece, ggtok_error *err) {
    ggtok_status s = check_id(tok, id, err);
    *piece = (ggtok_bytes){NULL, 0};
    if (s) return s;
    gguf_view p = piece_of(&tok->pieces, &tok->v, (uint32_t)id, lstrip, special);
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
    *attr = s ? 0 : tok->v.attr[id];
    return s;
}

bool ggtok_is_eog(const ggtok_tokenizer *tok, int32_t id) {
    return vocab_is_eog(&tok->v, id);
}

ggtok_ids ggtok_eog_ids(const ggtok_tokenizer *tok) {
    return (ggtok_ids){tok->v.eog.data, tok->v.eog.n};
}

ggtok_ids ggtok_suppress_tokens(const ggtok_tokenizer *tok) {
    return (ggtok_ids){tok->v.suppress.data, tok->v.suppress.n};
}

int32_t ggtok_text_to_token(const ggtok_tokenizer *tok, const char *text, size_t n) {
    return tok->ops ? vocab_find(&tok->v, text, n) : GGTOK_NO_TOKEN;
}

int32_t ggtok_special_id(const ggtok_tokenizer *tok, ggtok_special which) {
    int32_t id = (unsigned)which < GGTOK_N_SPECIAL ? tok->v.special[which] : GGTOK_NO_TOKEN;
    if (id == VOCAB_EOT_OPEN && !vocab_find_eot(&tok->v, &id)) id = GGTOK_NO_TOKEN;
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
    return tok->v.pre ? pretok_name(tok->v.pre) : NULL;
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
    const pretok_row *row = pretok_at(i);
    return row ? pretok_name(row) : NULL;
}

size_t ggtok_metadata_bytes(const ggtok_tokenizer *tok) {
    return tok->meta.end;
}

size_t ggtok_n_kv(const ggtok_tokenizer *tok) {
    return tok->meta.n;
}

ggtok_status ggtok_get_kv(const ggtok_tokenizer *tok, size_t i, ggtok_kv *out, ggtok_error *err) {
    if (i >= tok->meta.n) {
        return error_set(err, GGTOK_ERR_ARGUMENT, "there are only %llu key/values",
                         (unsigned long long)tok->meta.n);
    }
    *out = tok->meta.kv[i];
    return GGTOK_OK;
}
