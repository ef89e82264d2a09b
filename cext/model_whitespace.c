/*
 * whitespace: a BPE vocabulary whose text is first cut at white space, which is
 * dropped, and lower-cased if the vocabulary says so.
 */
#include "model.h"
#include "unicode.h"
#include "utf8.h"

typedef struct ws_scratch {
    void *bpe;
    bytebuf segment;
} ws_scratch;

static ggtok_status ws_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                             void **model, ggtok_error *err) {
    return model_bpe.build(v, g, options, model, err);
}

static void ws_free(void *model) {
    model_bpe.free(model);
}

static void ws_scratch_free(void *scratch) {
    ws_scratch *s = scratch;
    if (!s) return;
    model_bpe.scratch_free(s->bpe);
    mem_free(s->segment.data);
    mem_free(s);
}

static size_t ws_cache_bytes(const void *scratch) {
    const ws_scratch *s = scratch;
    return model_bpe.cache_bytes(s->bpe);
}

static void *ws_scratch_new(const vocab *v, const void *model) {
    ws_scratch *s = mem_zalloc(sizeof *s);
    if (s && !(s->bpe = model_bpe.scratch_new(v, model))) {
        mem_free(s);
        s = NULL;
    }
    return s;
}

static ggtok_status ws_encode(const model_call *call, const uint8_t *text, size_t n) {
    ws_scratch *s = call->scratch;
    bytebuf *segment = &s->segment;
    bool lowercase = call->v->flag[GGTOK_FLAG_LOWERCASE];
    /* A space that is to be escaped is none in llama.cpp's eyes any more. */
    bool escape = call->v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES];
    model_call part = *call;
    part.scratch = s->bpe;
    segment->n = 0;
    const uint8_t *end = text + n;
    while (text <= end) {
        uint32_t cpt = '\n'; /* the end closes the last segment */
        text += text < end ? utf8_decode(text, end, &cpt) : 1;
        bool space = cpt < 0x80 ? (cpt == ' ' && !escape) || (cpt >= 9 && cpt <= 13)
                                : unicode_flags(cpt) & UNICODE_WHITESPACE;
        if (!space) {
            if (!bytebuf_reserve(segment, 4)) return error_memory(call->err);
            if (lowercase) cpt = unicode_to_lower(cpt);
            segment->n += utf8_encode(cpt, segment->data + segment->n);
        } else if (segment->n) {
            ggtok_status status = model_bpe.encode(&part, segment->data, segment->n);
            if (status) return status;
            segment->n = 0;
        }
    }
    return GGTOK_OK;
}

const model_ops model_whitespace = {
    .build = ws_build,
    .free = ws_free,
    .scratch_new = ws_scratch_new,
    .scratch_free = ws_scratch_free,
    .encode = ws_encode,
    .cache_bytes = ws_cache_bytes,
};
