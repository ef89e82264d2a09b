/*
 * GGUF metadata as bounds-checked views: bytes -> keys and values, uninterpreted.
 *
 *   "GGUF" | version u32 | n_tensors u64 | n_kv u64 | n_kv x (key, type u32, value) | tensors...
 *   string = length u64, bytes;  array = element type u32, count u64, elements
 *
 * The parser takes a prefix of the file. If the prefix is too short, the parser reports how many
 * bytes it needs, so that a caller can read the file in growing blocks. It reads nothing after the
 * last key/value (tensor infos, tensors).
 */
#ifndef GGTOK_GGUF_H
#define GGTOK_GGUF_H

#include "ggtok.h"
#include "index/interned.h"

typedef struct gguf_view { /* a range of bytes in the file's buffer */
    const uint8_t *p;
    size_t n;
} gguf_view;

typedef struct gguf_kv {
    size_t key, key_n;     /* offset and length of the key's bytes */
    size_t value;          /* offset of the value; for an array, of its first element */
    size_t end;            /* offset after the value */
    uint64_t count;        /* number of elements of an array; otherwise 1 */
    ggtok_value_type type; /* GGTOK_ARRAY, or the scalar's type */
    ggtok_value_type elem; /* element type of an array; otherwise == type */
} gguf_kv;

typedef struct gguf {
    const uint8_t *data; /* the prefix passed to the last call of ggtok_gguf_parse */
    size_t size;
    bool swap; /* the file's byte order differs from the machine's */
    uint32_t version;
    uint64_t n_tensors, n_kv;
    gguf_kv *kv;
    size_t n_parsed, cap;
    interned keys;
    size_t pos;       /* offset of the first key/value not parsed yet; 0: none parsed */
    size_t array_pos; /* if the value at `pos` is a string array: offset of its next element */
    uint64_t array_i; /* index of that element */
    gguf_kv open;     /* an array that the prefix cuts off after its count; key_n 0: none */
} gguf;

/* Parses a prefix of the file. Start with a zeroed *g; a later call continues where the last one
 * stopped. `data` holds the first `size` bytes of the file, at least those of the last call. If the
 * metadata is complete, sets *need to 0; otherwise, to the prefix size for the next call. That size
 * is at most `file_size` (UINT64_MAX: unknown); a file that would need more is reported as
 * truncated. */
ggtok_status ggtok_gguf_parse(gguf *g, const uint8_t *data, size_t size, uint64_t file_size,
                              size_t *need, ggtok_error *err);
void ggtok_gguf_close(gguf *g);

const gguf_kv *ggtok_gguf_find(const gguf *g, const char *key); /* NULL: no such key */
gguf_view ggtok_gguf_key(const gguf *g, const gguf_kv *kv);

/* Returns the part of a string before its first NUL, since llama.cpp reads strings as C strings. */
gguf_view ggtok_gguf_until_nul(gguf_view v);

/* Typed reads. The caller must check the type first. */
uint64_t ggtok_gguf_uint(const gguf *g, const gguf_kv *kv); /* U8 to U64, BOOL (0 or 1) */
int64_t ggtok_gguf_int(const gguf *g, const gguf_kv *kv);   /* I8 to I64 */
double ggtok_gguf_float(const gguf *g, const gguf_kv *kv);
gguf_view ggtok_gguf_string(const gguf *g, const gguf_kv *kv);
const char *ggtok_gguf_type_name(int type);

/* Returns the number of `size` bytes (1, 2, 4 or 8) at an offset whose bounds are checked. */
uint64_t ggtok_gguf_number(const gguf *g, size_t pos, unsigned size);

/* Returns the next element of a string array: start with *pos = kv->value and call this kv->count
 * times. */
gguf_view ggtok_gguf_next_string(const gguf *g, size_t *pos);
/* Return the i-th element of an array of I32 or F32. */
int32_t ggtok_gguf_i32_at(const gguf *g, const gguf_kv *kv, size_t i);
float ggtok_gguf_f32_at(const gguf *g, const gguf_kv *kv, size_t i);

#endif
