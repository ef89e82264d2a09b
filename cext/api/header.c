/* The public view of a GGUF header: gguf/gguf.h, and the tensor descriptions after the pairs. */
#include "base/error.h"
#include "gguf/gguf.h"

#include <string.h>

enum { MAX_NAME = 1 << 20, MAX_DIMS = 4 };

struct ggtok_header {
    gguf g;
};

ggtok_status ggtok_header_open(const void *data, size_t size, ggtok_header **out,
                               ggtok_error *err) {
    size_t need;
    *out = NULL;
    ggtok_header *header = ggtok_mem_zalloc(sizeof *header);
    if (!header) return ggtok_error_memory(err);
    ggtok_status s = ggtok_gguf_parse(&header->g, data, size, size, &need, err);
    if (s) {
        ggtok_header_free(header);
        return s;
    }
    *out = header;
    return GGTOK_OK;
}

void ggtok_header_free(ggtok_header *header) {
    if (!header) return;
    ggtok_gguf_close(&header->g);
    ggtok_mem_free(header);
}

static bool is_big_endian(const gguf *g) {
    return g->data[7] == (uint8_t)g->version; /* the last byte of the version */
}

ggtok_header_info ggtok_header_get_info(const ggtok_header *header) {
    const gguf *g = &header->g;
    return (ggtok_header_info){g->version, is_big_endian(g), g->n_kv, g->n_tensors, g->pos};
}

bool ggtok_header_pair(const ggtok_header *header, uint64_t i, ggtok_pair *out) {
    const gguf *g = &header->g;
    if (i >= g->n_parsed) return false;
    const gguf_kv *kv = &g->kv[i];
    gguf_view key = ggtok_gguf_key(g, kv);
    *out = (ggtok_pair){
        .key = {(const char *)key.p, key.n},
        .type = kv->type,
        .elem_type = kv->elem,
        .n = kv->count,
        .begin = kv->key + kv->key_n + 4,
        .end = kv->end,
        .first = kv->value,
    };
    return true;
}

ggtok_status ggtok_header_string_ends(const ggtok_header *header, uint64_t i, uint64_t *ends,
                                      ggtok_error *err) {
    const gguf *g = &header->g;
    const gguf_kv *kv = i < g->n_parsed ? &g->kv[i] : NULL;
    if (!kv || kv->type != GGTOK_ARRAY || kv->elem != GGTOK_STRING) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "key/value %llu is not an array of strings",
                               (unsigned long long)i);
    }
    size_t pos = kv->value;
    for (uint64_t j = 0; j < kv->count; j++) {
        ggtok_gguf_next_string(g, &pos);
        ends[j] = pos;
    }
    return GGTOK_OK;
}

/* Whether the file's first bytes contain [pos, pos + n). If not, sets *end to pos + n. */
static bool have(const gguf *g, size_t pos, uint64_t n, uint64_t *end) {
    if (n <= g->size - pos) return true;
    *end = pos + n;
    return false;
}

static ggtok_status bad_tensor(ggtok_error *err, uint64_t offset, uint64_t n, const char *what) {
    return ggtok_error_set_at(err, GGTOK_ERR_GGUF, NULL, 0, offset,
                              "the tensor described at byte %llu has %llu %s",
                              (unsigned long long)offset, (unsigned long long)n, what);
}

ggtok_status ggtok_header_tensor(const ggtok_header *header, uint64_t offset, ggtok_tensor *out,
                                 ggtok_error *err) {
    const gguf *g = &header->g;
    memset(out, 0, sizeof *out);
    if (offset < g->pos || offset > g->size) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "no tensor is described at byte %llu",
                               (unsigned long long)offset);
    }
    size_t pos = (size_t)offset;
    if (!have(g, pos, 8, &out->end)) return GGTOK_OK;
    uint64_t n = ggtok_gguf_number(g, pos, 8);
    if (n > MAX_NAME) return bad_tensor(err, offset, n, "bytes in its name");
    if (!have(g, pos, 8 + n + 4, &out->end)) return GGTOK_OK;
    size_t name = pos + 8;
    pos = name + (size_t)n;
    uint32_t n_dims = (uint32_t)ggtok_gguf_number(g, pos, 4);
    pos += 4;
    if (n_dims > MAX_DIMS) return bad_tensor(err, offset, n_dims, "dimensions");
    if (!have(g, pos, 8 * n_dims + 12, &out->end)) return GGTOK_OK;
    out->name = (ggtok_bytes){(const char *)g->data + name, (size_t)n};
    out->n_dims = n_dims;
    for (unsigned i = 0; i < n_dims; i++, pos += 8) out->dims[i] = ggtok_gguf_number(g, pos, 8);
    out->type = (uint32_t)ggtok_gguf_number(g, pos, 4);
    out->offset = ggtok_gguf_number(g, pos + 4, 8);
    out->end = pos + 12;
    return GGTOK_OK;
}
