/* test: llama.cpp's stand-in for a vocabulary, a hash of every five bytes. */
#include "model.h"
#include "vocab_keys.h"

enum { CHUNK = 5 };

static ggtok_status test_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                               void **model, ggtok_error *err) {
    (void)g, (void)options;
    *model = NULL;
    /* The hash is taken modulo the number of tokens; llama.cpp dies of it here. */
    if (v->n_tokens) return GGTOK_OK;
    return error_set_at(err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS), GGTOK_NO_OFFSET,
                        "a 'test' vocabulary has no tokens");
}

static void test_free(void *model) {
    (void)model;
}

static void *test_scratch_new(const vocab *v, const void *model) {
    (void)v, (void)model;
    return mem_zalloc(1); /* nothing to remember, but NULL would mean failure */
}

/* h * 31 + c over the bytes, in 32 bits, of which five bytes take 28. */
static uint32_t hash_of(const uint8_t *p, size_t n) {
    uint32_t hash = 0;
    for (size_t i = 0; i < n; i++) hash = hash * 31 + p[i];
    return hash;
}

static ggtok_status test_encode(const model_call *call, const uint8_t *text, size_t n) {
    if (!idbuf_reserve(call->out, n / CHUNK + 1)) return error_memory(call->err);
    const uint32_t n_tokens = call->v->n_tokens;
    int32_t *id = call->out->data + call->out->n;
    size_t i = 0;
    for (; n - i >= CHUNK; i += CHUNK) *id++ = (int32_t)(hash_of(text + i, CHUNK) % n_tokens);
    if (i < n) *id++ = (int32_t)(hash_of(text + i, n - i) % n_tokens);
    call->out->n = (size_t)(id - call->out->data);
    return GGTOK_OK;
}

const model_ops model_test = {
    .build = test_build,
    .free = test_free,
    .scratch_new = test_scratch_new,
    .scratch_free = mem_free,
    .encode = test_encode,
};
