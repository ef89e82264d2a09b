/* test: llama.cpp's stand-in for a vocabulary, which hashes each group of five bytes. */
#include "base/cpu.h"
#include "models/model.h"
#include "models/trace.h"
#include "vocab/keys.h"

enum { CHUNK = 5, HASH_BITS = 28 }; /* five bytes can set only these bits of llama.cpp's 32 */

static ggtok_status test_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                               void **model, ggtok_error *err) {
    (void)g, (void)options;
    *model = NULL;
    /* The hash is taken modulo the number of tokens; with none, llama.cpp crashes. */
    if (v->n_tokens) return GGTOK_OK;
    return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS), GGTOK_NO_OFFSET,
                              "a 'test' vocabulary has no tokens");
}

static void test_free(void *model) {
    (void)model;
}

static void *test_scratch_new(const vocab *v, const void *model) {
    (void)v, (void)model;
    return ggtok_mem_zalloc(1); /* there is no state, but NULL would mean failure */
}

/* A modulo n without division: x / n == x * factor >> shift for all x < 2^HASH_BITS, since factor
 * exceeds 2^shift / n by less than 1, and x * n is below 2^shift. */
typedef struct modulo {
    uint32_t n, factor;
    unsigned shift;
} modulo;

static modulo modulo_of(uint32_t n) {
    unsigned bits = 0;
    while (bits < 32 && n >> bits) bits++;
    uint64_t power = (uint64_t)1 << (HASH_BITS + bits);
    return (modulo){n, (uint32_t)((power + n - 1) / n), HASH_BITS + bits};
}

/* Returns the id of p[0..n), n <= CHUNK: h * 31 + c over all bytes, modulo the number of tokens. */
static int32_t id_of(modulo m, const uint8_t *p, size_t n) {
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++) hash = hash * 31 + p[i];
    return (int32_t)(hash - (hash * m.factor >> m.shift) * m.n);
}

#ifdef CPU_DISPATCH
#include <immintrin.h>

/* Hashes four chunks at a time, each in 64 bits. Returns the number of bytes hashed. */
TARGET_AVX2 static size_t chunks_avx2(modulo m, const uint8_t *p, size_t n, int32_t *ids) {
    enum { HALF = 2 * CHUNK, LOAD = 16 };
#define CHUNKS(a) a, a + 1, a + 2, a + 3, a + 4, -1, -1, -1
    const __m256i spread = _mm256_setr_epi8(CHUNKS(0), CHUNKS(CHUNK), CHUNKS(0), CHUNKS(CHUNK));
    /* (a * 31 + b), (c * 31 + d), e; then these multiplied by 31^3, 31, 1 */
    const __m256i by_bytes = _mm256_set1_epi64x(1ll << 32 | 0x011F011F);
    const __m256i by_pairs = _mm256_set1_epi64x(1ll << 32 | 31 << 16 | 31 * 31 * 31);
    const __m256i low = _mm256_set1_epi64x(UINT32_MAX),
                  every_second = _mm256_setr_epi32(0, 2, 4, 6, 0, 0, 0, 0);
    const __m256i divisor = _mm256_set1_epi64x(m.n), factor = _mm256_set1_epi64x(m.factor);
    const __m128i shift = _mm_cvtsi32_si128((int)m.shift);
    size_t i = 0;
    for (; n - i >= HALF + LOAD; i += 2 * HALF, ids += 4) {
        const __m128i *first = (const void *)(p + i), *second = (const void *)(p + i + HALF);
        __m256i x = _mm256_setr_m128i(_mm_loadu_si128(first), _mm_loadu_si128(second));
        x = _mm256_maddubs_epi16(_mm256_shuffle_epi8(x, spread), by_bytes);
        x = _mm256_madd_epi16(x, by_pairs);
        x = _mm256_add_epi64(_mm256_srli_epi64(x, 32), _mm256_and_si256(x, low));
        __m256i quotient = _mm256_srl_epi64(_mm256_mul_epu32(x, factor), shift);
        x = _mm256_sub_epi64(x, _mm256_mul_epu32(quotient, divisor));
        x = _mm256_permutevar8x32_epi32(x, every_second);
        _mm_storeu_si128((__m128i *)(void *)ids, _mm256_castsi256_si128(x));
    }
    return i;
}
#endif

static size_t chunks_at_once(modulo m, const uint8_t *p, size_t n, int32_t *ids) {
#ifdef CPU_DISPATCH
    if (!PLAIN && cpu_has_avx2()) return chunks_avx2(m, p, n, ids);
#endif
    (void)m, (void)p, (void)n, (void)ids;
    return 0;
}

static ggtok_status test_encode(const model_call *call, const uint8_t *text, size_t n) {
    if (!idbuf_reserve(call->out, n / CHUNK + 1)) return ggtok_call_failed(call);
    const modulo m = modulo_of(call->v->n_tokens);
    int32_t *id = call->out->data + call->out->n;
    size_t i = chunks_at_once(m, text, n, id);
    id += i / CHUNK;
    for (; n - i >= CHUNK; i += CHUNK) *id++ = id_of(m, text + i, CHUNK);
    if (i < n) *id++ = id_of(m, text + i, n - i);
    call->out->n = (size_t)(id - call->out->data);
    return GGTOK_OK;
}

/* A chunk's id is its hash, so there is no alternative id. */
static ggtok_status test_encode_recorded(const model_call *call, const uint8_t *text, size_t n) {
    recorder *rec = call->recorder;
    size_t first = call->out->n;
    ggtok_status s = test_encode(call, text, n);
    for (size_t i = 0, at = 0; !s && at < n; i++, at += CHUNK) {
        int32_t id = call->out->data[first + i];
        bool reserved = (call->v->attr[id] & rec->reserved) != 0;
        size_t len = n - at < CHUNK ? n - at : CHUNK;
        if (reserved && !ggtok_recorder_trusts(rec, at, len)) recorder_refuse(rec, id);
        bool ok = ggtok_recorder_add_span_of(rec, at, at + len);
        if (ok && rec->trace) {
            ok = ggtok_trace_word_of(rec, text + at, len, at, at + len) &&
                 ggtok_trace_last(rec, id, GGTOK_HOW_HASH, NULL);
        }
        if (!ok) s = ggtok_call_failed(call);
    }
    return s;
}

const model_ops ggtok_model_test = {
    .build = test_build,
    .free = test_free,
    .scratch_new = test_scratch_new,
    .scratch_free = ggtok_mem_free,
    .encode = test_encode,
    .encode_recorded = test_encode_recorded,
};
