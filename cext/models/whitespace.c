/*
 * whitespace: a BPE vocabulary whose text is first split at white space, which is dropped, and
 * lower-cased if the vocabulary specifies it.
 */
#include "models/model.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

typedef struct ws_scratch {
    void *bpe;
    bytebuf segment;
    bytebuf trusted,
        origin; /* the recorder's data for each byte of `segment`; origin: ggtok_range */
} ws_scratch;

static ggtok_status ws_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                             void **model, ggtok_error *err) {
    return ggtok_model_bpe.build(v, g, options, model, err);
}

static void ws_free(void *model) {
    ggtok_model_bpe.free(model);
}

static void ws_scratch_free(void *scratch) {
    ws_scratch *s = scratch;
    if (!s) return;
    ggtok_model_bpe.scratch_free(s->bpe);
    ggtok_mem_free(s->segment.data);
    ggtok_mem_free(s->trusted.data);
    ggtok_mem_free(s->origin.data);
    ggtok_mem_free(s);
}

static size_t ws_cache_bytes(const void *scratch) {
    const ws_scratch *s = scratch;
    return ggtok_model_bpe.cache_bytes(s->bpe);
}

static void *ws_scratch_new(const vocab *v, const void *model) {
    ws_scratch *s = ggtok_mem_zalloc(sizeof *s);
    if (s && !(s->bpe = ggtok_model_bpe.scratch_new(v, model))) {
        ggtok_mem_free(s);
        s = NULL;
    }
    return s;
}

/* Encodes a segment by BPE. */
static ggtok_status encode_segment(const model_call *part, const ws_scratch *s) {
    const bytebuf *segment = &s->segment;
    recorder *rec = part->recorder;
    if (!rec) return ggtok_model_bpe.encode(part, segment->data, segment->n);
    bytebuf source = rec->source; /* BPE needs the recorder's data for this segment */
    const uint8_t *bytes = rec->bytes;
    rec->source = s->trusted;
    rec->bytes = segment->data;
    rec->origin = rec->spans ? (const void *)s->origin.data : NULL;
    ggtok_status status = ggtok_model_bpe.encode_recorded(part, segment->data, segment->n);
    rec->source = source;
    rec->bytes = bytes;
    rec->origin = NULL;
    return status;
}

/* Records the recorder's data for the last `size` bytes of the segment, whose source is text[at..at +
 * len). Returns false if out of memory. */
static bool note_origin(ws_scratch *s, const recorder *rec, size_t at, size_t len, size_t size) {
    bytebuf *trusted = &s->trusted, *origin = &s->origin;
    if (!bytebuf_reserve(trusted, size)) return false;
    memset(trusted->data + trusted->n, ggtok_recorder_trusts(rec, at, len), size);
    trusted->n += size;
    if (!rec->spans) return true;
    if (!bytebuf_reserve(origin, size * sizeof(ggtok_range))) return false;
    bool same =
        size == len && !memcmp(s->segment.data + s->segment.n - size, rec->bytes + at, size);
    for (size_t i = 0; i < size; i++) {
        ggtok_range from = {same ? at + i : at, same ? at + i + 1 : at + len};
        memcpy(origin->data + origin->n, &from, sizeof from);
        origin->n += sizeof from;
    }
    return true;
}

/* Whether llama.cpp splits at the code point. Spaces that will be escaped don't split the text. */
static bool is_space(const vocab *v, uint32_t cpt) {
    if (cpt < 0x80) {
        return (cpt == ' ' && !v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES]) || (cpt >= 9 && cpt <= 13);
    }
    return (ggtok_unicode_flags(cpt) & UNICODE_WHITESPACE) != 0;
}

static ggtok_status ws_encode(const model_call *call, const uint8_t *text, size_t n) {
    ws_scratch *s = call->scratch;
    bytebuf *segment = &s->segment;
    const uint8_t *begin = text;
    bool lowercase = call->v->flag[GGTOK_FLAG_LOWERCASE];
    model_call part = *call;
    part.scratch = s->bpe;
    segment->n = s->trusted.n = s->origin.n = 0;
    const uint8_t *end = text + n;
    while (text <= end) {
        if (interrupted(call->interrupt, 1)) return ggtok_call_failed(call);
        uint32_t cpt = '\n'; /* the end closes the last segment */
        size_t at = (size_t)(text - begin),
               len = text < end ? ggtok_utf8_decode(text, end, &cpt) : 1;
        text += len;
        if (!is_space(call->v, cpt)) {
            if (!bytebuf_reserve(segment, 4)) return ggtok_call_failed(call);
            if (lowercase) cpt = ggtok_unicode_to_lower(cpt);
            size_t size = ggtok_utf8_encode(cpt, segment->data + segment->n);
            segment->n += size;
            if (call->recorder && !note_origin(s, call->recorder, at, len, size))
                return ggtok_call_failed(call);
        } else if (segment->n) {
            ggtok_status status = encode_segment(&part, s);
            if (status) return status;
            segment->n = s->trusted.n = s->origin.n = 0;
        }
    }
    return GGTOK_OK;
}

static bool ws_may_cut(const vocab *v, const void *model, void *scratch, const model_place *place) {
    (void)model, (void)scratch;
    return is_space(v, place->before) || is_space(v, place->after);
}

static ggtok_status ws_trace_token(const model_call *call, uint32_t id, ggtok_token_trace *out) {
    model_call bpe = *call;
    bpe.scratch = ((ws_scratch *)call->scratch)->bpe;
    return ggtok_model_bpe.trace_token(&bpe, id, out);
}

static bool ws_same(const void *a, const void *b) {
    return ggtok_model_bpe.same(a, b);
}

const model_ops ggtok_model_whitespace = {
    .build = ws_build,
    .free = ws_free,
    .scratch_new = ws_scratch_new,
    .scratch_free = ws_scratch_free,
    .encode = ws_encode,
    .encode_recorded = ws_encode,
    .cache_bytes = ws_cache_bytes,
    .may_cut = ws_may_cut,
    .trace_token = ws_trace_token,
    .same = ws_same,
};
