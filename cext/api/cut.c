/* Finds where an incomplete text can be cut, and encodes it up to there: see ggtok_safe_cut,
 * ggtok_encode_block and docs/design/blocks.md. */
#include "api/tokenizer.h"
#include "special/places.h"
#include "unicode/utf8_valid.h"

enum {
    WINDOW = 1024,  /* minimum bytes of a block to search */
    MOST = 1 << 16, /* blocks double up to about this many bytes */
    AFTER = 4       /* maximum bytes of a character */
};

typedef struct search {
    const ggtok_tokenizer *tok;
    void *scratch;
    const special_set *set;
    bool prefixed; /* whether raw text after a special token gets a space prefix */
    const uint8_t *text;
    size_t n;
    size_t solid; /* offset of the first byte, from the current position on, that isn't white space;
                     n: none */
} search;

/* Whether no lead byte before the position announces bytes after it. If so, no character crosses
 * the position, wherever decoding starts, even in malformed text. */
static bool is_whole(const uint8_t *text, size_t at) {
    for (size_t i = 1; i < 4 && i <= at; i++) {
        if (utf8_lead_len(text[at - i]) > i) return false;
    }
    return true;
}

static bool decode(const uint8_t *p, size_t n, uint32_t *cpt) {
    if (utf8_lead_len(*p) != n || ggtok_utf8_valid_prefix(p, n) != n) return false;
    *cpt = utf8_next(&p);
    return true;
}

/* Reads the characters before and after the position. Returns false unless both are well-formed and
 * are decoded as these characters in any context. */
static bool read_place(const search *s, model_place *place) {
    const uint8_t *text = s->text;
    size_t at = place->at, start = at - 1;
    while (start && at - start < AFTER && utf8_continues(text[start])) start--;
    place->start = start;
    if (!is_whole(text, start) || !is_whole(text, at)) return false;
    return decode(text + start, at - start, &place->before) &&
           decode(text + at, utf8_lead_len(text[at]), &place->after);
}

/* Whether a special token on one side of the position may strip white space on the other. */
static bool may_strip(const search *s, size_t at, unsigned special) {
    if (!s->set->strips) return false;
    if (special & SPECIAL_NEAR) return true;
    if (!special_is_space(s->text[at - 1])) return false;
    return s->solid == s->n || s->set->first[s->text[s->solid]];
}

static bool is_safe(const search *s, size_t at, unsigned special) {
    if (special & SPECIAL_CROSSED) return false;
    if (special & SPECIAL_BEGINS && !s->set->strips) return true;
    if (!s->tok->ops->may_cut || at + AFTER > s->n) return false;
    if ((special & SPECIAL_NEAR && s->prefixed) || may_strip(s, at, special)) return false;
    model_place place = {.text = s->text, .at = at};
    return read_place(s, &place) &&
           s->tok->ops->may_cut(&s->tok->v, s->tok->model, s->scratch, &place);
}

size_t ggtok_safe_cut(ggtok_context *ctx, const char *text, size_t n, unsigned flags) {
    const ggtok_tokenizer *tok = ctx->tok;
    if (!tok->ops) return 0;
    const special_set *set = ggtok_context_specials(ctx, flags);
    search s = {.tok = tok, .scratch = ctx->scratch, .set = set, .n = n, .solid = n};
    s.text = (const uint8_t *)text;
    s.prefixed = tok->v.type == GGTOK_VOCAB_SPM && tok->v.flag[GGTOK_FLAG_ADD_SPACE_PREFIX];
    size_t longest = ggtok_special_longest(set, &tok->v),
           size = longest > WINDOW ? longest : WINDOW;
    /* A tail has no cut near its beginning, that is, within the length of a special token plus the
     * characters that read_place needs. Therefore ggtok_special_places needn't know the text before
     * the tail, except that a token in it may strip white space at the start of the tail. */
    size_t least = flags & GGTOK_TAIL ? longest + 3 * AFTER : 1;
    interrupt_begin(&ctx->interrupt);
    for (size_t to = n, from; to > least; to = from) {
        from = to - least > size ? to - size : least;
        if (interrupted(&ctx->interrupt, to - from)) return 0;
        ctx->bytes.n = 0;
        if (!bytebuf_reserve(&ctx->bytes, to - from)) return 0;
        ggtok_special_places(set, &tok->v, s.text, from, to, ctx->bytes.data);
        for (size_t at = to; at-- > from;) {
            if (!special_is_space(s.text[at])) s.solid = at;
            if (is_safe(&s, at, ctx->bytes.data[at - from])) return at;
        }
        if (size < MOST) size *= 2;
    }
    return 0;
}

ggtok_status ggtok_encode_block(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                                ggtok_ids *out, size_t *used, ggtok_error *err) {
    *out = (ggtok_ids){NULL, 0};
    *used = 0;
    size_t cut = ggtok_safe_cut(ctx, text, n, flags);
    if (!cut && ctx->interrupt.stopped) return ggtok_error_stopped(err);
    flags |= GGTOK_NOT_LAST_BLOCK;
    if (!cut) flags |= GGTOK_NOT_FIRST_BLOCK; /* nothing to encode, but errors are reported now */
    ggtok_status s = ggtok_encode(ctx, text, cut, flags, out, err);
    if (!s) *used = cut;
    return s;
}
