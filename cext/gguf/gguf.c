#include "gguf/gguf.h"

#include "base/error.h"

#include <string.h>

/* Limits of llama.cpp's gguf.cpp, which refuses files beyond them, too. */
#define MAX_STRING ((uint64_t)1 << 30)
#define MAX_ELEMENTS ((uint64_t)1 << 30)

enum { HEADER = 24, MIN_KV = 8 + 1 + 4 + 1 };

/* clang-format off */
static const struct {
    const char *name;
    uint8_t size; /* size of a value in bytes; 0: variable */
} types[] = {
    [GGTOK_U8] = {"u8", 1},         [GGTOK_I8] = {"i8", 1},   [GGTOK_U16] = {"u16", 2},
    [GGTOK_I16] = {"i16", 2},       [GGTOK_U32] = {"u32", 4}, [GGTOK_I32] = {"i32", 4},
    [GGTOK_F32] = {"f32", 4},       [GGTOK_BOOL] = {"bool", 1}, [GGTOK_STRING] = {"string", 0},
    [GGTOK_ARRAY] = {"array", 0},   [GGTOK_U64] = {"u64", 8}, [GGTOK_I64] = {"i64", 8},
    [GGTOK_F64] = {"f64", 8},
};
/* clang-format on */
enum { N_TYPES = sizeof types / sizeof types[0] };

const char *ggtok_gguf_type_name(int type) {
    return type >= 0 && type < N_TYPES ? types[type].name : "unknown";
}

/* ---- reading numbers: the caller has checked the bounds ---- */

uint64_t ggtok_gguf_number(const gguf *g, size_t pos, unsigned size) {
    const uint8_t *p = g->data + pos;
    uint16_t x2;
    uint32_t x4;
    uint64_t x = *p;
    switch (size) {
    case 2: memcpy(&x2, p, 2), x = x2; break;
    case 4: memcpy(&x4, p, 4), x = x4; break;
    case 8: memcpy(&x, p, 8); break;
    default: return x;
    }
    if (!g->swap) return x;
    uint64_t y = 0;
    for (unsigned i = 0; i < size; i++) y = y << 8 | (x >> 8 * i & 0xFF);
    return y;
}

static uint32_t get32(const gguf *g, size_t pos) {
    return (uint32_t)ggtok_gguf_number(g, pos, 4);
}

static uint64_t get64(const gguf *g, size_t pos) {
    return ggtok_gguf_number(g, pos, 8);
}

/* ---- keys ---- */

static const uint8_t *key_text(const void *file, uint32_t i, size_t *n) {
    const gguf *g = file;
    *n = g->kv[i].key_n;
    return g->data + g->kv[i].key;
}

/* Makes room for one more key/value. Returns false if out of memory. */
static bool reserve_kv(gguf *g) {
    if (g->n_parsed < g->cap) return true;
    size_t cap = g->cap ? g->cap * 2 : 64;
    gguf_kv *kv = ggtok_mem_realloc(g->kv, mem_mul(cap, sizeof *kv));
    if (!kv) return false;
    g->kv = kv;
    g->cap = cap;
    return true;
}

const gguf_kv *ggtok_gguf_find(const gguf *g, const char *key) {
    uint32_t i = ggtok_interned_find(&g->keys, key_text, g, (const uint8_t *)key, strlen(key));
    return i == TEXTSET_NONE ? NULL : &g->kv[i];
}

gguf_view ggtok_gguf_key(const gguf *g, const gguf_kv *kv) {
    return (gguf_view){g->data + kv->key, kv->key_n};
}

/* ---- parsing ---- */

/* The state of a call to ggtok_gguf_parse. */
typedef struct parse {
    gguf *g;
    uint64_t file_size;
    size_t *need;
    ggtok_error *err;
    size_t key, key_n; /* offset and length of the key being parsed */
    uint64_t i;        /* index of that key/value */
} parse;

static ggtok_status bad(const parse *p, size_t offset, const char *what) {
    if (!p->key_n) {
        return ggtok_error_set_at(p->err, GGTOK_ERR_GGUF, NULL, 0, offset,
                                  "key/value %llu of %llu, at byte %llu: %s",
                                  (unsigned long long)p->i, (unsigned long long)p->g->n_kv,
                                  (unsigned long long)offset, what);
    }
    ggtok_error named = {0}; /* receives the key in printable form */
    ggtok_error_set_at(&named, GGTOK_ERR_GGUF, p->g->data + p->key, p->key_n, offset, "%s", "");
    return ggtok_error_set_at(p->err, GGTOK_ERR_GGUF, p->g->data + p->key, p->key_n, offset,
                              "key '%s', at byte %llu: %s", named.key, (unsigned long long)offset,
                              what);
}

/* Whether [pos, pos + n) is in the prefix. If not, requests more bytes or reports truncation. */
static bool have(const parse *p, size_t pos, uint64_t n, ggtok_status *status) {
    *status = GGTOK_OK;
    if (n <= p->g->size - pos) return true;
    if (n > p->file_size - pos || n > PTRDIFF_MAX - pos) {
        *status = bad(p, pos, "the file ends inside it (truncated, or a length is wrong)");
    } else {
        *p->need = pos + (size_t)n;
    }
    return false;
}

static ggtok_status string_length(const parse *p, size_t pos, uint64_t *n, const char *what) {
    *n = get64(p->g, pos);
    return *n > MAX_STRING ? bad(p, pos, what) : GGTOK_OK;
}

/* Requests the minimum number of bytes that a string array still needs: for a string of n bytes,
 * its length, and the lengths of the strings after it. */
static void need_lengths(const parse *p, const gguf_kv *kv, uint64_t n) {
    uint64_t left = n + 8 * (kv->count - p->g->array_i);
    uint64_t room = p->file_size - p->g->array_pos;
    if (left > room) left = room; /* truncated; reported once everything is read */
    if (left <= PTRDIFF_MAX - p->g->array_pos) *p->need = p->g->array_pos + (size_t)left;
}

/* Parses the remaining elements of a string array, from g->array_pos on. */
static ggtok_status parse_strings(parse *p, gguf_kv *kv) {
    gguf *g = p->g;
    ggtok_status s;
    while (g->array_i < kv->count) {
        uint64_t n = 0;
        if (have(p, g->array_pos, 8, &s)) {
            s = string_length(p, g->array_pos, &n, "a string is longer than 1 GiB");
            if (s) return s;
        }
        if (!have(p, g->array_pos, 8 + n, &s)) {
            if (!s) need_lengths(p, kv, n);
            return s;
        }
        g->array_pos += 8 + (size_t)n;
        g->array_i++;
    }
    kv->end = g->array_pos;
    g->array_i = 0;
    return GGTOK_OK;
}

static ggtok_status parse_array(parse *p, gguf_kv *kv, size_t pos) {
    gguf *g = p->g;
    ggtok_status s;
    if (!have(p, pos, 12, &s)) return s;
    uint32_t elem = get32(g, pos);
    kv->count = get64(g, pos + 4);
    if (elem == GGTOK_ARRAY) return bad(p, pos, "arrays of arrays are not supported");
    if (elem >= N_TYPES) return bad(p, pos, "unknown element type");
    kv->elem = (ggtok_value_type)elem;
    if (kv->count > MAX_ELEMENTS) return bad(p, pos + 4, "an array of more than 2^30 elements");
    kv->value = pos + 12;
    unsigned size = elem == GGTOK_STRING ? 8 : types[elem].size; /* minimum bytes of an element */
    if (kv->count * size > p->file_size - kv->value) {
        return bad(p, pos + 4, "more array elements than the file has room for");
    }
    if (elem == GGTOK_STRING) {
        if (!g->array_i) g->array_pos = kv->value;
        return parse_strings(p, kv);
    }
    if (!have(p, kv->value, kv->count * size, &s)) return s;
    kv->end = kv->value + (size_t)kv->count * size;
    return GGTOK_OK;
}

static ggtok_status parse_scalar(parse *p, gguf_kv *kv, size_t pos) {
    ggtok_status s;
    uint64_t n = types[kv->type].size;
    kv->value = pos;
    kv->count = 1;
    kv->elem = kv->type;
    if (kv->type == GGTOK_STRING) {
        if (!have(p, pos, 8, &s)) return s;
        if ((s = string_length(p, pos, &n, "a string is longer than 1 GiB"))) return s;
        n += 8;
    }
    if (!have(p, pos, n, &s)) return s;
    kv->end = pos + (size_t)n;
    return GGTOK_OK;
}

/* Parses one key/value. Advances g->pos only if the key/value was complete. */
static ggtok_status parse_kv(parse *p) {
    gguf *g = p->g;
    ggtok_status s;
    gguf_kv kv = {0};
    size_t pos = g->pos;
    uint64_t n;
    p->key_n = 0;
    if (!have(p, pos, 8, &s)) return s;
    if ((s = string_length(p, pos, &n, "a key is longer than 1 GiB"))) return s;
    if (n == 0) return bad(p, pos, "the key is empty");
    if (!have(p, pos, 8 + n + 4, &s)) return s;
    p->key = kv.key = pos + 8;
    p->key_n = kv.key_n = (size_t)n;
    if (ggtok_interned_find(&g->keys, key_text, g, g->data + kv.key, kv.key_n) != TEXTSET_NONE) {
        return bad(p, kv.key, "the key occurs twice");
    }
    pos = kv.key + kv.key_n;
    uint32_t type = get32(g, pos);
    if (type >= N_TYPES) return bad(p, pos, "unknown value type");
    kv.type = (ggtok_value_type)type;
    s = type == GGTOK_ARRAY ? parse_array(p, &kv, pos + 4) : parse_scalar(p, &kv, pos + 4);
    if (!s && *p->need && type == GGTOK_ARRAY && kv.value) g->open = kv;
    if (s || *p->need) return s;
    if (!reserve_kv(g)) return ggtok_error_memory(p->err);
    g->kv[g->n_parsed] = kv;
    if (!ggtok_interned_add(&g->keys, key_text, g)) return ggtok_error_memory(p->err);
    g->n_parsed++;
    g->pos = kv.end;
    return GGTOK_OK;
}

static ggtok_status parse_header(parse *p) {
    gguf *g = p->g;
    if (g->size >= 4 ? memcmp(g->data, "GGUF", 4) != 0 : p->file_size < 4) {
        return ggtok_error_set_at(p->err, GGTOK_ERR_GGUF, NULL, 0, 0,
                                  "not a GGUF file: it does not begin with 'GGUF'");
    }
    if (g->size < HEADER) {
        if (p->file_size < HEADER) {
            return ggtok_error_set_at(p->err, GGTOK_ERR_GGUF, NULL, 0, g->size,
                                      "the file ends inside the GGUF header, after %llu bytes",
                                      (unsigned long long)g->size);
        }
        *p->need = HEADER;
        return GGTOK_OK;
    }
    g->swap = false;
    g->version = get32(g, 4);
    if (!(g->version & 0xFFFF)) { /* llama.cpp's test for the other byte order */
        g->swap = true;
        g->version = get32(g, 4);
    }
    if (g->version != 2 && g->version != 3) {
        return ggtok_error_set_at(p->err, GGTOK_ERR_GGUF, NULL, 0, 4,
                                  "GGUF version %lu, at byte 4, is not supported (2 and 3 are)",
                                  (unsigned long)g->version);
    }
    g->n_tensors = get64(g, 8);
    g->n_kv = get64(g, 16);
    if (g->n_kv > UINT32_MAX - 1 || g->n_kv > (p->file_size - HEADER) / MIN_KV) {
        return ggtok_error_set_at(p->err, GGTOK_ERR_GGUF, NULL, 0, 16,
                                  "%llu key/values, at byte 16: more than the file has room for",
                                  (unsigned long long)g->n_kv);
    }
    g->pos = HEADER;
    return GGTOK_OK;
}

ggtok_status ggtok_gguf_parse(gguf *g, const uint8_t *data, size_t size, uint64_t file_size,
                              size_t *need, ggtok_error *err) {
    parse p = {g, file_size, need, err, 0, 0, 0};
    ggtok_status s;
    g->data = data;
    g->size = size;
    g->open.key_n = 0;
    *need = 0;
    if (!g->pos && ((s = parse_header(&p)) || *need)) return s;
    while (g->n_parsed < g->n_kv) {
        p.i = g->n_parsed;
        if ((s = parse_kv(&p)) || *need) return s;
    }
    return GGTOK_OK;
}

void ggtok_gguf_close(gguf *g) {
    ggtok_mem_free(g->kv);
    ggtok_interned_free(&g->keys);
    memset(g, 0, sizeof *g);
}

/* ---- values ---- */

uint64_t ggtok_gguf_uint(const gguf *g, const gguf_kv *kv) {
    uint64_t x = ggtok_gguf_number(g, kv->value, types[kv->type].size);
    return kv->type == GGTOK_BOOL ? x != 0 : x;
}

int64_t ggtok_gguf_int(const gguf *g, const gguf_kv *kv) {
    unsigned bits = 8u * types[kv->type].size;
    uint64_t x = ggtok_gguf_number(g, kv->value, types[kv->type].size);
    uint64_t sign = (uint64_t)1 << (bits - 1);
    return (int64_t)((x ^ sign) - sign);
}

double ggtok_gguf_float(const gguf *g, const gguf_kv *kv) {
    if (kv->type == GGTOK_F32) return (double)ggtok_gguf_f32_at(g, kv, 0);
    uint64_t x = get64(g, kv->value);
    double d;
    memcpy(&d, &x, sizeof d);
    return d;
}

gguf_view ggtok_gguf_string(const gguf *g, const gguf_kv *kv) {
    return (gguf_view){g->data + kv->value + 8, kv->end - kv->value - 8};
}

gguf_view ggtok_gguf_until_nul(gguf_view v) {
    const uint8_t *nul = v.n ? memchr(v.p, 0, v.n) : NULL;
    if (nul) v.n = (size_t)(nul - v.p);
    return v;
}

gguf_view ggtok_gguf_next_string(const gguf *g, size_t *pos) {
    size_t n = (size_t)get64(g, *pos);
    gguf_view view = {g->data + *pos + 8, n};
    *pos += 8 + n;
    return view;
}

int32_t ggtok_gguf_i32_at(const gguf *g, const gguf_kv *kv, size_t i) {
    return (int32_t)get32(g, kv->value + 4 * i);
}

float ggtok_gguf_f32_at(const gguf *g, const gguf_kv *kv, size_t i) {
    uint32_t x = get32(g, kv->value + 4 * i);
    float f;
    memcpy(&f, &x, sizeof f);
    return f;
}
