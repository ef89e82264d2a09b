/* Accessors of a tokenizer: its tokens, flags, warnings and metadata. */
#include "api/tokenizer.h"
#include "vocab/special.h"

const char *ggtok_version(void) {
    return GGTOK_VERSION;
}

/* Fails if the vocabulary has no token with this id. */
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

bool ggtok_knows_key(const char *key) {
    return ggtok_vocab_knows_key(key, strlen(key));
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
