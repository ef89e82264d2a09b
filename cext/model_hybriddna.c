/*
 * hybriddna: a BPE vocabulary in which <dna>...</dna> encloses a sequence of
 * bases, six to a token. Everything outside goes to BPE.
 *
 * Here the tags may be ordinary text: where they are special tokens, the
 * partition has taken them out already and nothing below finds any.
 */
#include "model.h"
#include "spaces.h"

enum { K = 6, N_KMERS = 1 << 2 * K };

/* K-mers of the four bases by number, two bits a base: nearly all there are. */
typedef struct dna_model {
    void *bpe;
    int32_t kmer[N_KMERS]; /* -1: no such token */
} dna_model;

typedef struct dna_scratch {
    void *bpe;
    bytebuf spaced;
} dna_scratch;

static const char OPEN[] = "<dna>", CLOSE[] = "</dna>";

static int32_t find_kmer(const vocab *v, const uint8_t kmer[K]) {
    uint8_t key[K + 3]; /* keys end in U+E000, which keeps them apart from ordinary tokens */
    memcpy(key, kmer, K);
    memcpy(key + K, "\xEE\x80\x80", 3);
    return vocab_find(v, key, sizeof key);
}

static void dna_free(void *model) {
    dna_model *m = model;
    if (m) model_bpe.free(m->bpe);
    mem_free(m);
}

static ggtok_status dna_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                              void **model, ggtok_error *err) {
    dna_model *m = mem_zalloc(sizeof *m);
    if (!m) return error_memory(err);
    ggtok_status status = model_bpe.build(v, g, options, &m->bpe, err);
    if (status) {
        dna_free(m);
        return status;
    }
    for (uint32_t i = 0; i < N_KMERS; i++) {
        uint8_t kmer[K];
        for (int k = 0; k < K; k++) kmer[k] = (uint8_t)"ACGT"[i >> 2 * (K - 1 - k) & 3];
        m->kmer[i] = find_kmer(v, kmer);
    }
    *model = m;
    return GGTOK_OK;
}

static void dna_scratch_free(void *scratch) {
    dna_scratch *s = scratch;
    if (!s) return;
    model_bpe.scratch_free(s->bpe);
    mem_free(s->spaced.data);
    mem_free(s);
}

static size_t dna_cache_bytes(const void *scratch) {
    const dna_scratch *s = scratch;
    return model_bpe.cache_bytes(s->bpe);
}

static void *dna_scratch_new(const vocab *v, const void *model) {
    const dna_model *m = model;
    dna_scratch *s = mem_zalloc(sizeof *s);
    if (s && !(s->bpe = model_bpe.scratch_new(v, m->bpe))) {
        mem_free(s);
        s = NULL;
    }
    return s;
}

/* Where `what` begins in text[from..n), or n. */
static size_t find(const uint8_t *text, size_t n, size_t from, const char *what, size_t len) {
    while (n - from >= len) {
        const uint8_t *p = memchr(text + from, what[0], n - from - len + 1);
        if (!p) break;
        if (!memcmp(p, what, len)) return (size_t)(p - text);
        from = (size_t)(p - text) + 1;
    }
    return n;
}

/* A base in either case; anything else has bit 7. */
static uint8_t base_number(uint8_t c) {
    switch (c & 0xDF) {
    case 'A': return 0;
    case 'C': return 1;
    case 'G': return 2;
    case 'T': return 3;
    default: return 0x80;
    }
}

/* One token for each six bases, upper-cased; the last is filled up with A. */
static bool push_kmers(const model_call *call, const uint8_t *seq, size_t n, int32_t oov) {
    const dna_model *m = call->model;
    uint8_t base[256];
    if (!idbuf_reserve(call->out, n / K + 1)) return false;
    if (n) {
        for (int c = 0; c < 256; c++) base[c] = base_number((uint8_t)c);
    }
    for (size_t i = 0; i < n; i += K) {
        uint8_t kmer[K] = {'A', 'A', 'A', 'A', 'A', 'A'};
        uint32_t number = 0, strange = 0;
        for (size_t k = 0; k < K; k++) {
            uint8_t c = i + k < n ? seq[i + k] : 'A';
            kmer[k] = c >= 'a' && c <= 'z' ? (uint8_t)(c - 32) : c;
            number = number << 2 | (base[c] & 3);
            strange |= base[c];
        }
        int32_t id = strange & 0x80 ? find_kmer(call->v, kmer) : m->kmer[number];
        call->out->data[call->out->n++] = id >= 0 ? id : oov;
    }
    return true;
}

static ggtok_status dna_encode(const model_call *call, const uint8_t *text, size_t n) {
    const vocab *v = call->v;
    dna_scratch *s = call->scratch;
    size_t open_n = sizeof OPEN - 1, close_n = sizeof CLOSE - 1;
    int32_t open = vocab_find(v, OPEN, open_n), close = vocab_find(v, CLOSE, close_n);
    int32_t oov = vocab_find(v, "<oov>", 5);
    model_call rest = *call;
    rest.model = ((const dna_model *)call->model)->bpe;
    rest.scratch = s->bpe;
    if (open < 0 || close < 0 || oov < 0) return model_bpe.encode(&rest, text, n);

    if (v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES]) { /* between the tags too */
        s->spaced.n = 0;
        if (!spaces_escape(&s->spaced, text, n)) return error_memory(call->err);
        text = s->spaced.data;
        n = s->spaced.n;
    }
    for (size_t pos = 0; pos < n;) {
        size_t start = find(text, n, pos, OPEN, open_n);
        if (start > pos) {
            ggtok_status status = model_bpe.encode(&rest, text + pos, start - pos);
            if (status) return status;
        }
        rest.after_special = true;
        if (start == n) break;
        if (!idbuf_push(call->out, open)) return error_memory(call->err);
        pos = start + open_n;
        size_t end = find(text, n, pos, CLOSE, close_n);
        if (!push_kmers(call, text + pos, end - pos, oov)) return error_memory(call->err);
        if (end == n) break;
        if (!idbuf_push(call->out, close)) return error_memory(call->err);
        pos = end + close_n;
    }
    return GGTOK_OK;
}

const model_ops model_hybriddna = {
    .build = dna_build,
    .free = dna_free,
    .scratch_new = dna_scratch_new,
    .scratch_free = dna_scratch_free,
    .encode = dna_encode,
    .cache_bytes = dna_cache_bytes,
};
