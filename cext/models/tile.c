#include "models/tile.h"

#include "unicode/space_mark.h"
#include "unicode/utf8.h"
#include "unicode/utf8_valid.h"

static bool is_mark(const uint8_t *p, size_t n) {
    return n >= 3 && !memcmp(p, SPACE_MARK, SPACE_MARK_BYTES);
}

bool ggtok_tile_alloc(tiles *t, const vocab *v) {
    tile_length *data = ggtok_mem_alloc((size_t)v->n_tokens + 1);
    if (!data) return false;
    *data = TILE_ASK;
    t->len = data + 1;
    return true;
}

void ggtok_tile_free(tiles *t) {
    if (t->len) ggtok_mem_free(t->len - 1);
}

bool ggtok_tile_are_known(const vocab *v, const int32_t *ids, size_t n) {
    /* All ids except the unknown one were found in the vocabulary. */
    const int32_t unknown = v->special[GGTOK_UNK];
    bool all = true;
    if (unknown == GGTOK_NO_TOKEN || (uint32_t)unknown < v->n_tokens) return true;
    for (size_t i = 0; i < n; i++) all &= (uint32_t)ids[i] < v->n_tokens;
    return all;
}

bool ggtok_tile_source(const model_call *call, const uint8_t *text, size_t n, size_t first,
                       model_source *source) {
    const idbuf *out = call->out;
    span_buf *to = call->spans;
    if (to->cap < out->n) {
        ggtok_span *data = ggtok_mem_realloc(to->data, mem_mul(out->cap, sizeof *data));
        if (!data) return false;
        to->data = data;
        to->cap = out->cap;
    }
    size_t n_ids = out->n - first;
    *source = (model_source){text, n, NULL, n_ids, NULL, to->base};
    if (!n_ids) return true;
    source->ids = out->data + first;
    source->spans = to->data + first;
    return ggtok_tile_are_known(call->v, source->ids, n_ids);
}

tile_length ggtok_tile_length(gguf_view text, bool escape) {
    const uint8_t *mark = (const uint8_t *)SPACE_MARK;
    size_t n = text.n;
    if (escape && n) {
        /* An incomplete U+2581 at either end may be part of a space. */
        bool part = text.p[0] == mark[1] || text.p[0] == mark[2] || text.p[n - 1] == mark[0] ||
                    (n > 1 && text.p[n - 2] == mark[0] && text.p[n - 1] == mark[1]);
        if (part) return TILE_ASK;
        for (size_t i = 0; i < text.n; i++) n -= is_mark(text.p + i, text.n - i) ? 2 : 0;
    }
    return n < TILE_ASK ? (tile_length)n : TILE_ASK;
}

bool ggtok_tile(const tiles *t, const model_source *source, bool prefix) {
    const tile_length *len = t->len;
    const int32_t *ids = source->ids;
    ggtok_span *out = source->spans;
    const int64_t base = source->base;
    int64_t at = base - prefix; /* as if the prefix were in the text */
    bool asked = false;
    for (size_t i = 0; i < source->n_ids; i++) {
        tile_length n = len[ids[i]];
        asked |= n == TILE_ASK;
        out[i].begin = at;
        out[i].end = at += n;
    }
    if (prefix && source->n_ids) out[0].begin = base;
    return !asked && at == base + (int64_t)source->n;
}

bool ggtok_tile_holds_mark(const uint8_t *text, size_t n) {
    const uint8_t *end = text + n;
    while (text < end && (text = memchr(text, SPACE_MARK[0] & 0xFF, (size_t)(end - text)))) {
        if (is_mark(text, (size_t)(end - text))) return true;
        text++;
    }
    return false;
}

bool ggtok_tile_is_plain(const uint8_t *text, size_t n) {
    return ggtok_utf8_valid_prefix(text, n) == n && !ggtok_tile_holds_mark(text, n);
}

/* A walk over the transformed text, unit by unit: a unit is a byte or character of the text, or an
 * added U+2581. `left` bytes of the last unit's result haven't been consumed. Their source is
 * text[begin..end) or, if `own`, each byte is its own source. */
typedef struct walk {
    const uint8_t *text;
    size_t n, at;
    tile_text kind;
    bool line_begins;
    size_t left, begin, end;
    bool own;
} walk;

/* Advances to the next unit. Returns false if there are no more. */
static bool next_unit(walk *w) {
    if (w->at == w->n) return false;
    const uint8_t *p = w->text + w->at;
    size_t n = w->n - w->at;
    w->begin = w->at;
    if (w->line_begins) {
        w->line_begins = false;
        if (*p != '\n' && *p != ' ' && !is_mark(p, n)) {
            w->left = SPACE_MARK_BYTES, w->own = false, w->end = w->begin;
            return true;
        }
    }
    w->own = true;
    w->left = 1;
    if (*p == ' ' && w->kind.escape) {
        w->left = SPACE_MARK_BYTES, w->own = false;
        w->at++;
    } else if (*p < 0x80 || !w->kind.repair) {
        w->line_begins = w->kind.mark_lines && *p == '\n';
        w->at++;
    } else {
        uint32_t cpt;
        uint8_t c[4];
        size_t len = ggtok_utf8_decode(p, p + n, &cpt);
        w->left = ggtok_utf8_encode(cpt, c);
        w->own = w->left == len && !memcmp(c, p, len);
        w->at += len;
    }
    w->end = w->at;
    return true;
}

/* Consumes n bytes and sets *span to their source. */
static bool take(walk *w, size_t n, ggtok_span *span) {
    for (bool first = true; n; first = false) {
        if (!w->left && !next_unit(w)) return false;
        size_t step = n < w->left ? n : w->left;
        if (first) span->begin = (int64_t)w->begin;
        if (w->own) w->begin += step;
        w->left -= step;
        n -= step;
        span->end = (int64_t)(w->own ? w->begin : w->end);
    }
    return true;
}

bool ggtok_tile_walk(const model_call *call, const tiles *t, const model_source *source,
                     tile_text kind) {
    walk w = {.text = source->text, .n = source->n, .kind = kind};
    w.line_begins = kind.mark_lines;
    if (kind.prefix) w.left = SPACE_MARK_BYTES;
    for (size_t i = 0; i < source->n_ids; i++) {
        int32_t id = source->ids[i];
        size_t n = t->len[id];
        ggtok_span *span = &source->spans[i];
        if (n == TILE_ASK || interrupted(call->interrupt, n)) return false;
        if (kind.escape) {
            /* Distinguishes byte tokens from others of length 1: a byte token's text has at least
             * the length of <0xXX>, while a single space has three bytes. */
            size_t whole = vocab_text(call->v, (uint32_t)id).n;
            bool is_byte = n == 1 && whole > SPACE_MARK_BYTES;
            n = is_byte ? 1 : whole;
        }
        *span = (ggtok_span){(int64_t)w.at, (int64_t)w.at};
        if (!take(&w, n, span)) return false;
        span->begin += source->base;
        span->end += source->base;
    }
    return !w.left && w.at == w.n;
}

bool ggtok_tile_measure_words(tiles *t, const vocab *v) {
    if (t->len) return true;
    if (!ggtok_tile_alloc(t, v)) return false;
    t->whole = true;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        const gguf_view text = vocab_text(v, id);
        const size_t begin = is_mark(text.p, text.n) ? SPACE_MARK_BYTES : 0;
        t->whole &= begin == text.n || !utf8_continues(text.p[begin]);
        t->len[id] =
            (int32_t)id == v->special[GGTOK_UNK] ? TILE_ASK : ggtok_tile_length(text, true);
    }
    return true;
}
