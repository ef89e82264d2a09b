#include "gguf/metadata.h"

static ggtok_bytes keep(uint8_t **w, gguf_view v) {
    ggtok_bytes kept = {(const char *)*w, v.n};
    if (v.n) memcpy(*w, v.p, v.n);
    *w += v.n;
    return kept;
}

bool ggtok_metadata_copy(metadata *m, const gguf *g) {
    size_t bytes = 0;
    for (size_t i = 0; i < g->n_parsed; i++) {
        const gguf_kv *kv = &g->kv[i];
        bytes += kv->key_n + (kv->type == GGTOK_STRING ? ggtok_gguf_string(g, kv).n : 0);
    }
    m->kv = ggtok_mem_zalloc(mem_mul(g->n_parsed, sizeof *m->kv));
    m->bytes = ggtok_mem_alloc(bytes);
    if (!m->kv || !m->bytes) return false;
    m->end = g->pos;
    uint8_t *w = m->bytes;
    for (; m->n < g->n_parsed; m->n++) {
        const gguf_kv *kv = &g->kv[m->n];
        ggtok_kv *out = &m->kv[m->n];
        out->key = keep(&w, ggtok_gguf_key(g, kv));
        out->type = kv->type;
        out->elem_type = kv->elem;
        out->n = kv->count;
        switch (kv->type) {
        case GGTOK_STRING: out->str = keep(&w, ggtok_gguf_string(g, kv)); break;
        case GGTOK_F32:
        case GGTOK_F64: out->f64 = ggtok_gguf_float(g, kv); break;
        case GGTOK_I8:
        case GGTOK_I16:
        case GGTOK_I32:
        case GGTOK_I64: out->i64 = ggtok_gguf_int(g, kv); break;
        case GGTOK_ARRAY: break;
        default: out->u64 = ggtok_gguf_uint(g, kv); break;
        }
    }
    return true;
}

void ggtok_metadata_free(metadata *m) {
    ggtok_mem_free(m->kv);
    ggtok_mem_free(m->bytes);
}
