/*
 * RWKV: the longest token, again and again, over bytes.
 *
 * A token that crosses the place between two bytes holds them side by side. Where
 * none does, the text is cut: what is longest in front of the place does not depend
 * on what is behind it, and the search begins anew there. Pieces seen before are
 * looked up.
 */
#include "model.h"
#include "rwkv_text.h"
#include "trie.h"
#include "wordcache.h"

/* A "digit" as llama.cpp reads it, where char is signed: bytes from 0x80 up are
 * less than 'a'. Modulo 256. */
static uint8_t hex_digit(uint8_t c) {
    return (uint8_t)(c >= 'a' && c < 0x80 ? c - 'a' + 10 : c - '0');
}

bool rwkv_unescape(bytebuf *out, const uint8_t *text, size_t n) {
    if (!bytebuf_reserve(out, n)) return false; /* no escape is longer than what it gives */
    for (size_t i = 0; i < n; i++) {
        uint8_t c = text[i];
        if (c == '\\') {
            if (++i == n) break;
            c = text[i];
            if (c == 'x') {
                if (n - i <= 2) break;
                c = (uint8_t)(hex_digit(text[i + 1]) << 4) + hex_digit(text[i + 2]);
                i += 2;
            } else {
                c = c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
            }
        }
        out->data[out->n++] = c;
    }
    return true;
}

typedef struct rwkv_model {
    trie t;
    bytebuf bytes; /* the unescaped texts, which the trie's tails refer to */
    uint32_t *off;
    uint64_t pairs[256][4]; /* bit b of row a: some token holds byte a, then byte b */
} rwkv_model;

static inline bool joined(const rwkv_model *m, uint8_t a, uint8_t b) {
    return PLAIN || (m->pairs[a][b >> 6] >> (b & 63) & 1);
}

static void rwkv_free(void *model) {
    rwkv_model *m = model;
    if (!m) return;
    trie_free(&m->t);
    mem_free(m->bytes.data);
    mem_free(m->off);
    mem_free(m);
}

static ggtok_status rwkv_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                               void **model, ggtok_error *err) {
    (void)g, (void)options;
    rwkv_model *m = mem_zalloc(sizeof *m);
    uint32_t *ids = mem_alloc(mem_mul(v->n_tokens, sizeof *ids));
    if (!m || !ids) goto fail;
    m->off = mem_alloc(mem_mul((size_t)v->n_tokens + 1, sizeof *m->off));
    if (!m->off) goto fail;
    m->off[0] = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        gguf_view text = vocab_text(v, id);
        if (!rwkv_unescape(&m->bytes, text.p, text.n)) goto fail;
        for (size_t i = m->off[id] + 1; i < m->bytes.n; i++) {
            uint8_t a = m->bytes.data[i - 1], b = m->bytes.data[i];
            m->pairs[a][b >> 6] |= (uint64_t)1 << (b & 63);
        }
        m->off[id + 1] = (uint32_t)m->bytes.n;
        ids[id] = id;
    }
    /* Texts that differ may unescape to the same bytes: the last one has them. */
    if (!trie_build(&m->t, m->bytes.data, m->off, ids, v->n_tokens, true)) goto fail;
    mem_free(ids);
    *model = m;
    return GGTOK_OK;
fail:
    mem_free(ids);
    rwkv_free(m);
    return error_memory(err);
}

static void rwkv_scratch_free(void *scratch) {
    if (scratch) wordcache_free(scratch);
    mem_free(scratch);
}

static void *rwkv_scratch_new(const vocab *v, const void *model) {
    (void)v, (void)model;
    wordcache *cache = mem_alloc(sizeof *cache);
    if (cache && wordcache_init(cache)) return cache;
    mem_free(cache);
    return NULL;
}

/*
 * Where no token leads the text, the unknown id stands for one byte. llama.cpp
 * does so only if no token even begins with that byte; where a token's first
 * bytes are there but no token is complete, it emits id 0 and starts the text
 * over, for ever (until memory runs out). We treat that byte like the others.
 */
static bool encode_piece(const model_call *call, const uint8_t *text, size_t n, size_t room) {
    const rwkv_model *m = call->model;
    wordcache *cache = call->scratch;
    idbuf *out = call->out;
    int32_t unknown = call->v->special[GGTOK_UNK];
    if (!idbuf_reserve(out, n + WORD_LONG_IDS)) return false;
    if (wordcache_get(cache, text, n, room, out)) return true;
    size_t before = out->n;
    for (size_t i = 0; i < n;) {
        int32_t id = unknown;
        size_t len = trie_longest(&m->t, text + i, n - i, &id);
        i += len ? len : 1;
        out->data[out->n++] = id;
    }
    wordcache_put(cache, text, n, out->data + before, out->n - before);
    return true;
}

/* Pieces text[from..ends[0]), text[ends[0]..ends[1]), ... */
static bool encode_pieces(const model_call *call, const uint8_t *text, size_t n, size_t from,
                          const size_t *ends, size_t count) {
    while (count) {
        if (!idbuf_reserve(call->out, WORD_GROUP_IDS)) return false;
        size_t done = wordcache_group(call->scratch, text, n, from, ends, count, call->out);
        if (done) from = ends[done - 1];
        ends += done;
        count -= done;
        if (!count || done == WORD_GROUP) continue;
        if (!encode_piece(call, text + from, *ends - from, n - from)) return false;
        from = *ends++;
        count--;
    }
    return true;
}

static ggtok_status rwkv_encode(const model_call *call, const uint8_t *text, size_t n) {
    enum { BATCH = 512 };
    const rwkv_model *m = call->model;
    size_t ends[BATCH], from = 0;
    for (size_t i = 1; from < n;) {
        size_t count = 0;
        for (; i < n && count < BATCH - 1; i++) { /* no branch depends on where pieces end */
            ends[count] = i;
            count += !joined(m, text[i - 1], text[i]);
        }
        if (i == n) ends[count++] = n;
        if (!encode_pieces(call, text, n, from, ends, count)) return error_memory(call->err);
        from = ends[count - 1];
    }
    return GGTOK_OK;
}

const model_ops model_rwkv = {
    .build = rwkv_build,
    .free = rwkv_free,
    .scratch_new = rwkv_scratch_new,
    .scratch_free = rwkv_scratch_free,
    .encode = rwkv_encode,
};
