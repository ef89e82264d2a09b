#include "gguf_parts.h"

#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, N_KINDS };
static const uint8_t size_of[N_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

enum { HEADER = 24, N_KV = 16 };

/* ---- parsing ---- */

static uint64_t get(const uint8_t *p, size_t n) {
    uint64_t x = 0;
    while (n--) x = x << 8 | p[n];
    return x;
}

static void put(uint8_t *p, uint64_t x, size_t n) {
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(x >> 8 * i);
}

/* Returns the offset after the string at `at`, or 0 if the string is incomplete. */
static size_t string_end(const uint8_t *data, size_t size, size_t at) {
    if (size - at < 8) return 0;
    uint64_t n = get(data + at, 8);
    return n > size - at - 8 ? 0 : at + 8 + (size_t)n;
}

static size_t value_end(const uint8_t *data, size_t size, size_t at, uint32_t kind) {
    if (kind == STRING) return string_end(data, size, at);
    if (kind >= N_KINDS || kind == ARRAY || size_of[kind] > size - at) return 0;
    return at + size_of[kind];
}

static size_t find_part(part *p, const uint8_t *data, size_t size, size_t at) {
    size_t end = string_end(data, size, at);
    if (!end || size - end < 4) return 0;
    *p = (part){.start = at, .key = at + 8, .key_n = end - at - 8, .type = end, .count = 1};
    p->kind = p->elem = (uint32_t)get(data + end, 4);
    p->value = end + 4;
    if (p->kind == ARRAY) {
        if (size - p->value < 12) return 0;
        p->elem = (uint32_t)get(data + p->value, 4);
        p->count = get(data + p->value + 4, 8);
        p->value += 12;
    }
    at = p->value;
    for (uint64_t i = 0; i < p->count; i++) {
        if (!(at = value_end(data, size, at, p->elem))) return 0;
    }
    p->end = at;
    return at;
}

void parts_find(parts *p, const uint8_t *data, size_t size) {
    p->n = 0;
    p->end = size < HEADER ? size : HEADER;
    if (size < HEADER || memcmp(data, "GGUF", 4)) return;
    uint64_t n = get(data + N_KV, 8);
    while (p->n < n && p->n < MAX_PARTS) {
        size_t end = find_part(&p->at[p->n], data, size, p->end);
        if (!end) break;
        p->end = end;
        p->n++;
    }
}

/* ---- changing ---- */

typedef struct file {
    uint8_t *data;
    size_t size, max;
    uint32_t seed;
} file;

static size_t below(file *f, size_t n) {
    f->seed = f->seed * 1664525 + 1013904223;
    return (f->seed >> 8) % n;
}

#define PICK(f, list) ((list)[below(f, sizeof(list) / sizeof *(list))])

/* Replaces data[at .. at + old) by n bytes. Returns 0 if there isn't enough room. */
static size_t splice(file *f, size_t at, size_t old, const void *bytes, size_t n) {
    if (f->size - old + n > f->max) return 0;
    memmove(f->data + at + n, f->data + at + old, f->size - at - old);
    memmove(f->data + at, bytes, n);
    f->size = f->size - old + n;
    return 1;
}

static const char *const keys[] = {
    "general.architecture",
    "general.name",
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.precompiled_charsmap",
    "tokenizer.ggml.add_space_prefix",
    "tokenizer.ggml.remove_extra_whitespaces",
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.add_eos_token",
    "tokenizer.ggml.add_sep_token",
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.unknown_token_id",
    "tokenizer.ggml.seperator_token_id",
    "tokenizer.ggml.padding_token_id",
    "tokenizer.ggml.mask_token_id",
    "tokenizer.ggml.fim_pre_token_id",
    "tokenizer.ggml.suffix_token_id",
    "tokenizer.ggml.suppress_tokens",
    "tokenizer.ggml.normalizer.lowercase",
    "tokenizer.ggml.normalizer.strip_accents",
    "tokenizer.ggml.token_type_count",
    "tokenizer.chat_template",
};

/* Strings to use as values or tokens. */
static const char *const strings[] = {
    "llama",
    "bert",
    "gpt2",
    "t5",
    "rwkv",
    "plamo2",
    "plamo3",
    "gemma4",
    "hybriddna",
    "whitespace",
    "test",
    "none",
    "no_vocab",
    "default",
    "llama-bpe",
    "qwen2",
    "deepseek-llm",
    "deepseek-coder",
    "falcon",
    "gpt-4o",
    "tekken",
    "kimi-k2",
    "jais-2",
    "mmbert",
    "k2-horizon",
    "jina-v2-de",
    "chameleon",
    "superbpe",
    "afmoe",
    "viking",
    "bloom",
    "sarvam-moe",
    "command-r",
    "phi-3",
    "modern-bert",
    "nomic-bert-moe",
    "<mask>",
    "[MASK]",
    "<s>",
    "</s>",
    "<unk>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|im_end|>",
    "<EOT>",
    "_<EOT>",
    "<|end|>",
    "<|call|>",
    "<|return|>",
    "<|flush|>",
    "<|tool_response>",
    "<|plamo:eos|>",
    "<oov>",
    "<dna>",
    "</dna>",
    "AAAAAA",
    "ACGTAC",
    "<|channel|>",
    "<|message|>",
    "<PRE>",
    "<fim_suffix>",
    "<0x41>",
    "<0xE2>",
    "<0x",
    "\xE2\x96\x81",
    "\xE2\x96\x81the",
    "\xC4\xA0",
    "\xC4\x8A",
    "\xC4\xA0t h",
    "\xEE\x80\x80",
    "\xEF\xBF\xBD",
    "\xFF",
    "\xF4\x90\x80\x80",
    "\xED\xA0\x80",
    "\xE2\x96",
    "",
    " ",
    "  ",
    "a",
    "aa",
    "aaaa",
    "a b",
    "e r",
    "unused",
    "'\\xff'",
    "b'\\x00\\xe2'",
    "\"a'\"",
    "'\\u00e9'",
    "b'\\n'",
};

static const uint64_t numbers[] = {0,
                                   1,
                                   2,
                                   3,
                                   4,
                                   5,
                                   6,
                                   7,
                                   10,
                                   100,
                                   255,
                                   256,
                                   0x7FFF,
                                   0xFFFF,
                                   0x7FFFFFFF,
                                   0x80000000,
                                   0xFFFFFFFF,
                                   0x100000000,
                                   0x7FFFFFFFFFFFFFFF,
                                   0xFFFFFFFFFFFFFFFF,
                                   0x3F800000 /* 1.0f */,
                                   0xC47A0000 /* -1000.0f */,
                                   0x7F800000 /* inf */,
                                   0x7FC00000 /* NaN */,
                                   0xFF800000,
                                   0x00000001 /* smallest positive float */,
                                   0x7F7FFFFF /* largest float */};

static void change_number(file *f, size_t at, size_t n) {
    if (below(f, 3))
        put(f->data + at, PICK(f, numbers), n);
    else
        put(f->data + at, get(f->data + at, n) + below(f, 9) - 4, n);
}

/* Changes the string whose length is at `at`; `like` is the offset of another string in the
 * file. */
static void change_string(file *f, size_t at, size_t like) {
    uint8_t bytes[256];
    size_t old = (size_t)get(f->data + at, 8), n = old < sizeof bytes ? old : sizeof bytes;
    memcpy(bytes, f->data + at + 8, n);
    switch (below(f, 6)) {
    case 0: {
        const char *s = PICK(f, strings);
        memcpy(bytes, s, n = strlen(s));
        break;
    }
    case 1: { /* append the other string */
        size_t more = (size_t)get(f->data + like, 8);
        if (more > sizeof bytes - n) more = sizeof bytes - n;
        memcpy(bytes + n, f->data + like + 8, more);
        n += more;
        break;
    }
    case 2: n = below(f, n + 1); break;
    case 3:
        if (below(f, 8) == 0) { /* write a wrong length */
            put(f->data + at, PICK(f, numbers), 8);
            return;
        } /* fall through */
    default: n = LLVMFuzzerMutate(bytes, n, sizeof bytes);
    }
    if (splice(f, at + 8, old, bytes, n)) put(f->data + at, n, 8);
}

/* Returns the offset of an array's i-th element. */
static size_t element(const file *f, const part *p, uint64_t i) {
    size_t at = p->value;
    while (i--) at = value_end(f->data, f->size, at, p->elem);
    return at;
}

static void change_array(file *f, const part *p, const part *other) {
    size_t count_at = p->value - 8;
    if (!p->count) {
        if (p->elem == STRING && splice(f, p->value, 0, "\1\0\0\0\0\0\0\0a", 9)) {
            put(f->data + count_at, 1, 8);
        }
        return;
    }
    uint64_t i = below(f, (size_t)p->count);
    size_t at = element(f, p, i), end = value_end(f->data, f->size, at, p->elem);
    size_t like = other->elem == STRING && other->count
                      ? element(f, other, below(f, (size_t)other->count))
                      : p->value;
    switch (below(f, 8)) {
    case 0: /* remove an element */
        splice(f, at, end - at, "", 0);
        put(f->data + count_at, p->count - 1, 8);
        break;
    case 1: /* repeat an element */
    case 2: {
        uint8_t copy[256];
        if (end - at > sizeof copy) break;
        memcpy(copy, f->data + at, end - at);
        if (!splice(f, below(f, 2) ? end : p->value, 0, copy, end - at)) break;
        put(f->data + count_at, p->count + 1, 8);
        if (p->elem == STRING) change_string(f, end, end);
        break;
    }
    case 3: /* truncate the array */
        if (below(f, 4)) break;
        splice(f, at, p->end - at, "", 0);
        put(f->data + count_at, i, 8);
        break;
    default:
        if (p->elem == STRING)
            change_string(f, at, like < f->size ? like : at);
        else
            change_number(f, at, end - at);
    }
}

static void add_part(file *f, size_t end, uint64_t n_kv) {
    uint8_t bytes[256];
    const char *key = PICK(f, keys), *text = PICK(f, strings);
    static const uint32_t kinds[] = {STRING, BOOL, U32, U32, BOOL};
    uint32_t kind = PICK(f, kinds);
    size_t n = strlen(key);
    put(bytes, n, 8);
    memcpy(bytes + 8, key, n);
    put(bytes + 8 + n, kind, 4);
    uint8_t *w = bytes + 12 + n;
    if (kind == STRING) {
        put(w, strlen(text), 8);
        memcpy(w + 8, text, strlen(text));
        w += 8 + strlen(text);
    } else {
        put(w, below(f, 300), size_of[kind]);
        w += size_of[kind];
    }
    if (splice(f, end, 0, bytes, (size_t)(w - bytes))) put(f->data + N_KV, n_kv + 1, 8);
}

size_t parts_mutate(uint8_t *data, size_t size, size_t max, unsigned seed) {
    file f = {data, size, max, seed * 2654435761u + 1};
    parts all;
    parts_find(&all, data, size);
    if (!all.n) return 0;
    uint64_t n_kv = get(data + N_KV, 8);
    const part *p = &all.at[below(&f, all.n)], *other = &all.at[below(&f, all.n)];
    switch (below(&f, 24)) {
    case 0: change_number(&f, p->type, 4); break;
    case 1: put(data + p->type, below(&f, N_KINDS), 4); break;
    case 2: add_part(&f, all.end, n_kv); break;
    case 3: /* remove the key/value pair */
        splice(&f, p->start, p->end - p->start, "", 0);
        put(data + N_KV, n_kv - 1, 8);
        break;
    case 4: { /* rename the key */
        const char *key = PICK(&f, keys);
        if (splice(&f, p->key, p->key_n, key, strlen(key))) put(data + p->start, strlen(key), 8);
        break;
    }
    case 5: change_number(&f, below(&f, 2) ? N_KV : 4, 4); break;
    case 6:
        if (p->kind == ARRAY) change_number(&f, p->value - 8, 8);
        break;
    default:
        if (p->kind == ARRAY)
            change_array(&f, p, other);
        else if (p->kind == STRING)
            change_string(&f, p->value, p->value);
        else
            change_number(&f, p->value, size_of[p->kind]);
    }
    return f.size;
}
