/* Functions on a whole vocabulary: the pieces, texts, scores and attributes of all tokens, and
 * comparison with another vocabulary. */
#include "api/tokenizer.h"

ggtok_bytes ggtok_pieces(const ggtok_tokenizer *tok, const uint32_t **offsets) {
    static const uint32_t none = 0;
    *offsets = tok->ops ? tok->pieces.off : &none;
    if (!tok->ops) return (ggtok_bytes){NULL, 0};
    return (ggtok_bytes){(const char *)tok->pieces.bytes, tok->pieces.off[tok->v.n_tokens]};
}

ggtok_bytes ggtok_texts(const ggtok_tokenizer *tok, const uint32_t **offsets) {
    static const uint32_t none = 0;
    *offsets = tok->ops ? tok->v.text_off : &none;
    if (!tok->ops) return (ggtok_bytes){NULL, 0};
    return (ggtok_bytes){(const char *)tok->v.text, tok->v.text_off[tok->v.n_tokens]};
}

const float *ggtok_scores(const ggtok_tokenizer *tok) {
    return tok->ops ? tok->v.score : NULL;
}

size_t ggtok_attrs(const ggtok_tokenizer *tok, uint32_t *out, size_t max) {
    size_t n = tok->ops ? tok->v.n_tokens : 0;
    for (size_t id = 0; id < n && id < max; id++) out[id] = tok->v.attr[id] & ~VOCAB_RESERVED;
    return n;
}

static bool same_bytes(const void *a, const void *b, size_t n) {
    return !n || !memcmp(a, b, n);
}

static bool same_ids(const idbuf *a, const idbuf *b) {
    return a->n == b->n && same_bytes(a->data, b->data, a->n * sizeof *a->data);
}

static bool same_tokens(const vocab *a, const vocab *b) {
    size_t n = a->n_tokens;
    return n == b->n_tokens && a->kmer_from == b->kmer_from &&
           (!n || (same_bytes(a->text_off, b->text_off, (n + 1) * sizeof *a->text_off) &&
                   same_bytes(a->text, b->text, a->text_off[n]) &&
                   same_bytes(a->score, b->score, n * sizeof *a->score) &&
                   same_bytes(a->attr, b->attr, n * sizeof *a->attr)));
}

bool ggtok_same_vocabulary(const ggtok_tokenizer *tok, const ggtok_tokenizer *other) {
    const vocab *a = &tok->v, *b = &other->v;
    if (tok == other) return true;
    if (tok->ops != other->ops || a->type != b->type || a->pre != b->pre) return false;
    if (!tok->ops) return true;
    return !strcmp(a->model, b->model) && same_tokens(a, b) &&
           same_bytes(a->special, b->special, sizeof a->special) &&
           same_bytes(a->flag, b->flag, sizeof a->flag) && same_ids(&a->eog, &b->eog) &&
           same_ids(&a->suppress, &b->suppress) &&
           (!tok->ops->same || tok->ops->same(tok->model, other->model));
}
