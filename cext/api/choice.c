/* A caller's choice of the special tokens to parse. */
#include "api/tokenizer.h"
#include "base/prefix.h"

struct ggtok_special_choice {
    special_set set;
};

ggtok_status ggtok_special_choice_new(const ggtok_tokenizer *tok, const int32_t *ids, size_t n,
                                      ggtok_special_choice **out, ggtok_error *err) {
    const uint32_t special = GGTOK_ATTR_CONTROL | GGTOK_ATTR_UNKNOWN | GGTOK_ATTR_USER_DEFINED;
    const vocab *v = &tok->v;
    *out = NULL;
    bool *chosen = ggtok_mem_zalloc(v->n_tokens);
    ggtok_special_choice *c = ggtok_mem_zalloc(sizeof *c);
    ggtok_status s = chosen && c ? GGTOK_OK : ggtok_error_memory(err);
    for (size_t i = 0; !s && i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= v->n_tokens) {
            s = ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                                "id %ld is not in the vocabulary of %lu tokens", (long)ids[i],
                                (unsigned long)v->n_tokens);
        } else if (!(v->attr[ids[i]] & special)) {
            gguf_view text = vocab_text(v, (uint32_t)ids[i]);
            s = ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                                "token %ld, '%.*s', is not a special token, so it can't be parsed",
                                (long)ids[i], text_prefix(text.p, text.n, 64),
                                (const char *)text.p);
        } else {
            chosen[ids[i]] = true;
        }
    }
    if (!s) s = ggtok_special_set_build(&c->set, v, true, chosen, err);
    ggtok_mem_free(chosen);
    if (s) {
        ggtok_mem_free(c);
    } else {
        *out = c;
    }
    return s;
}

void ggtok_special_choice_free(ggtok_special_choice *choice) {
    if (!choice) return;
    ggtok_special_set_free(&choice->set);
    ggtok_mem_free(choice);
}

const special_set *ggtok_context_specials(const ggtok_context *ctx, unsigned flags) {
    if (!(flags & GGTOK_PARSE_SPECIAL)) return &ctx->tok->always;
    return ctx->choice ? &ctx->choice->set : &ctx->tok->all;
}
