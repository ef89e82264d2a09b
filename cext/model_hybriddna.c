/*
 * hybriddna: a BPE vocabulary in which <dna>...</dna> encloses a sequence of
 * bases, six to a token. Everything outside goes to BPE.
 *
 * Here the tags may be ordinary text: where they are special tokens, the
 * partition has taken them out already and nothing below finds any.
 */
#include "model.h"
#include "spaces.h"

enum { K = 6 };

typedef struct dna_scratch {
    void *bpe;
    bytebuf spaced;
} dna_scratch;

static const char OPEN[] = "<dna>", CLOSE[] = "</dna>";

static ggtok_status dna_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                              void **model, ggtok_error *err) {
    return model_bpe.build(v, g, options, model, err);
}

static void dna_free(void *model) {
    model_bpe.free(model);
}

static void dna_scratch_free(void *scratch) {
    dna_scratch *s = scratch;
    if (!s) return;
    model_bpe.scratch_free(s->bpe);
    mem_free(s->spaced.data);
    mem_free(s);
}

static void *dna_scratch_new(const vocab *v, const void *model) {
    dna_scratch *s = mem_zalloc(sizeof *s);
    if (s && !(s->bpe = model_bpe.scratch_new(v, model))) {
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

/* One token for each six bases, upper-cased; the last is filled up with A. The
 * look-up keys end in U+E000, which keeps them apart from ordinary tokens. */
static bool push_kmers(const model_call *call, const uint8_t *seq, size_t n, int32_t oov) {
    if (!idbuf_reserve(call->out, n / K + 1)) return false;
    for (size_t i = 0; i < n; i += K) {
        uint8_t key[K + 3] = {'A', 'A', 'A', 'A', 'A', 'A', 0xEE, 0x80, 0x80};
        for (size_t k = 0; k < K && i + k < n; k++) {
            uint8_t c = seq[i + k];
            key[k] = c >= 'a' && c <= 'z' ? (uint8_t)(c - 32) : c;
        }
        int32_t id = vocab_find(call->v, key, sizeof key);
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
};
