/*
 * hybriddna: a BPE vocabulary with additional tokens of six bases each, for sequences of
 * bases between <dna> and </dna>. Everything else is encoded by BPE.
 *
 * This code finds the tags in raw text. If they are special tokens, partition has already
 * removed them, and raw text contains none.
 */
#include "models/model.h"
#include "models/trace.h"
#include "unicode/space_mark.h"

enum { K = 6, N_KMERS = 1 << 2 * K };

/* `kmer` has the tokens for all sequences of A, C, G and T, indexed by two bits per base. Tokens
 * with other letters, which are rare, are looked up by text. */
typedef struct dna_model {
    void *bpe;
    int32_t kmer[N_KMERS]; /* -1: no such token */
} dna_model;

typedef struct dna_scratch {
    void *bpe;
    bytebuf spaced;
    bytebuf trusted,
        origin; /* the recorder's data for each byte of `spaced`; origin: ggtok_range */
} dna_scratch;

static const char OPEN[] = "<dna>", CLOSE[] = "</dna>";

static int32_t find_kmer(const vocab *v, const uint8_t kmer[K]) {
    uint8_t key[K + 3]; /* keys end with U+E000, which distinguishes them from ordinary tokens */
    memcpy(key, kmer, K);
    memcpy(key + K, "\xEE\x80\x80", 3);
    return ggtok_vocab_find(v, key, sizeof key);
}

static void dna_free(void *model) {
    dna_model *m = model;
    if (m) ggtok_model_bpe.free(m->bpe);
    ggtok_mem_free(m);
}

static ggtok_status dna_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                              void **model, ggtok_error *err) {
    dna_model *m = ggtok_mem_zalloc(sizeof *m);
    if (!m) return ggtok_error_memory(err);
    ggtok_status status = ggtok_model_bpe.build(v, g, options, &m->bpe, err);
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
    ggtok_model_bpe.scratch_free(s->bpe);
    ggtok_mem_free(s->spaced.data);
    ggtok_mem_free(s->trusted.data);
    ggtok_mem_free(s->origin.data);
    ggtok_mem_free(s);
}

static size_t dna_cache_bytes(const void *scratch) {
    const dna_scratch *s = scratch;
    return ggtok_model_bpe.cache_bytes(s->bpe);
}

static void *dna_scratch_new(const vocab *v, const void *model) {
    const dna_model *m = model;
    dna_scratch *s = ggtok_mem_zalloc(sizeof *s);
    if (s && !(s->bpe = ggtok_model_bpe.scratch_new(v, m->bpe))) {
        ggtok_mem_free(s);
        s = NULL;
    }
    return s;
}

/* Returns the offset of `needle` in text[from..n), or n. */
static size_t find_needle(const uint8_t *text, size_t n, size_t from, const char *needle,
                          size_t len) {
    while (n - from >= len) {
        const uint8_t *p = memchr(text + from, needle[0], n - from - len + 1);
        if (!p) break;
        if (!memcmp(p, needle, len)) return (size_t)(p - text);
        from = (size_t)(p - text) + 1;
    }
    return n;
}

/* Returns the number of a base in upper or lower case; for anything else, a value with bit 7
 * set. */
static uint8_t base_number(uint8_t c) {
    switch (c & 0xDF) {
    case 'A': return 0;
    case 'C': return 1;
    case 'G': return 2;
    case 'T': return 3;
    default: return 0x80;
    }
}

/* Whether p[0..n) may become the token `id`. With a recorder, p points into s->spaced. */
static bool allows(const model_call *call, int32_t id, const uint8_t *p, size_t n) {
    const dna_scratch *s = call->scratch;
    const recorder *rec = call->recorder;
    if (!rec || !(call->v->attr[id] & rec->reserved)) return true;
    return !memchr(s->trusted.data + (p - s->spaced.data), 0, n);
}

/* Appends an id that has no alternative; `note` is for a trace. Returns false if out of memory. */
static bool push(const model_call *call, int32_t id, ggtok_how how, ggtok_bytes note,
                 const uint8_t *p, size_t n) {
    recorder *rec = call->recorder;
    if (!allows(call, id, p, n)) recorder_refuse(rec, id);
    if (!idbuf_push(call->out, id)) return false;
    if (!rec) return true;
    const dna_scratch *s = call->scratch;
    size_t at = (size_t)(p - s->spaced.data);
    if (!ggtok_recorder_add_span_of(rec, at, at + n)) return false;
    if (!rec->trace) return true;
    rec->trace->marks = false; /* BPE may have set it for an earlier part */
    ggtok_trace_event e = {.id = id, .how = how, .note = note};
    return ggtok_trace_word_of(rec, p, n, at, at + n) &&
           ggtok_trace_token_at(rec, e, rec->n_made - 1);
}

static bool push_tag(const model_call *call, int32_t id, const uint8_t *p, size_t n) {
    return push(call, id, GGTOK_HOW_TAG, (ggtok_bytes){NULL, 0}, p, n);
}

/* Like find_needle, for a tag that is allowed to become the token `id`. */
static size_t find_tag(const model_call *call, const uint8_t *text, size_t n, size_t from,
                       const char *tag, size_t len, int32_t id) {
    size_t at = find_needle(text, n, from, tag, len);
    while (at < n && !allows(call, id, text + at, len)) at = find_needle(text, n, at + 1, tag, len);
    return at;
}

/* Encodes a part of the text by BPE. */
static ggtok_status encode_rest(const model_call *rest, const dna_scratch *s, const uint8_t *text,
                                size_t n) {
    recorder *rec = rest->recorder;
    if (!rec) return ggtok_model_bpe.encode(rest, text, n);
    bytebuf source = rec->source; /* BPE needs the recorder's data for this part */
    const ggtok_range *origin = rec->origin;
    rec->source.data = s->trusted.data + (text - s->spaced.data);
    rec->source.n = n;
    rec->bytes = text;
    if (rec->spans) rec->origin = origin + (text - s->spaced.data);
    ggtok_status status = ggtok_model_bpe.encode_recorded(rest, text, n);
    rec->source = source;
    rec->origin = origin;
    return status;
}

/* Appends one token for each six bases, converted to upper case. The last group is padded with
 * A. */
static bool push_kmers(const model_call *call, const uint8_t *seq, size_t n, int32_t oov) {
    const dna_model *m = call->model;
    uint8_t base[256];
    if (!idbuf_reserve(call->out, n / K + 1)) return false;
    if (n) {
        for (int c = 0; c < 256; c++) base[c] = base_number((uint8_t)c);
    }
    for (size_t i = 0; i < n; i += K) {
        if (interrupted(call->interrupt, K)) return false;
        uint8_t kmer[K] = {'A', 'A', 'A', 'A', 'A', 'A'};
        uint32_t number = 0, strange = 0;
        for (size_t k = 0; k < K; k++) {
            uint8_t c = i + k < n ? seq[i + k] : 'A';
            kmer[k] = c >= 'a' && c <= 'z' ? (uint8_t)(c - 32) : c;
            number = number << 2 | (base[c] & 3);
            strange |= base[c];
        }
        int32_t id = strange & 0x80 ? find_kmer(call->v, kmer) : m->kmer[number];
        static const char unknown[] = "there is no token for ";
        char note[sizeof unknown + K];
        memcpy(note, unknown, sizeof unknown);
        memcpy(note + sizeof unknown - 1, kmer, K);
        bool found = id >= 0;
        ggtok_bytes reason = {note, found ? 0 : sizeof unknown - 1 + K};
        if (!push(call, found ? id : oov, found ? GGTOK_HOW_KMER : GGTOK_HOW_UNKNOWN, reason,
                  seq + i, n - i < K ? n - i : K)) {
            return false;
        }
    }
    return true;
}

/* Fills s->trusted and s->origin with the recorder's data for each byte of s->spaced. */
static bool spread_trust(dna_scratch *s, recorder *rec, const uint8_t *text, size_t n,
                         bool escape) {
    s->trusted.n = s->origin.n = 0;
    size_t n_origin = rec->spans ? s->spaced.n : 0;
    if (!bytebuf_reserve(&s->trusted, s->spaced.n) ||
        !bytebuf_reserve(&s->origin, mem_mul(n_origin, sizeof(ggtok_range)))) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        size_t size = escape && text[i] == ' ' ? sizeof SPACE_MARK - 1 : 1;
        memset(s->trusted.data + s->trusted.n, rec->source.data[i], size);
        s->trusted.n += size;
        for (; size && rec->spans; size--, s->origin.n += sizeof(ggtok_range))
            memcpy(s->origin.data + s->origin.n, &(ggtok_range){i, i + 1}, sizeof(ggtok_range));
    }
    rec->origin = rec->spans ? (const void *)s->origin.data : NULL;
    return true;
}

static ggtok_status dna_encode(const model_call *call, const uint8_t *text, size_t n) {
    const vocab *v = call->v;
    dna_scratch *s = call->scratch;
    size_t open_n = sizeof OPEN - 1, close_n = sizeof CLOSE - 1;
    int32_t open = ggtok_vocab_find(v, OPEN, open_n), close = ggtok_vocab_find(v, CLOSE, close_n);
    int32_t oov = ggtok_vocab_find(v, "<oov>", 5);
    model_call rest = *call;
    rest.model = ((const dna_model *)call->model)->bpe;
    rest.scratch = s->bpe;
    bool has_dna = open >= 0 && close >= 0 && oov >= 0;
    if (!has_dna && call->recorder) return ggtok_model_bpe.encode_recorded(&rest, text, n);
    if (!has_dna) return ggtok_model_bpe.encode(&rest, text, n);

    bool escape = v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES]; /* between the tags, too */
    if (escape || call->recorder) {
        s->spaced.n = 0;
        if (!(escape ? ggtok_space_mark_escape(&s->spaced, text, n)
                     : bytebuf_append(&s->spaced, text, n)) ||
            (call->recorder && !spread_trust(s, call->recorder, text, n, escape))) {
            return ggtok_call_failed(call);
        }
        text = s->spaced.data;
        n = s->spaced.n;
    }
    for (size_t pos = 0; pos < n;) {
        size_t start = find_tag(call, text, n, pos, OPEN, open_n, open);
        if (start > pos) {
            ggtok_status status = encode_rest(&rest, s, text + pos, start - pos);
            if (status) return status;
        }
        rest.after_special = true;
        if (start == n) break;
        if (!push_tag(call, open, text + start, open_n)) return ggtok_call_failed(call);
        pos = start + open_n;
        size_t end = find_tag(call, text, n, pos, CLOSE, close_n, close);
        if (!push_kmers(call, text + pos, end - pos, oov)) return ggtok_call_failed(call);
        if (end == n) break;
        if (!push_tag(call, close, text + end, close_n)) return ggtok_call_failed(call);
        pos = end + close_n;
    }
    return GGTOK_OK;
}

static ggtok_status dna_trace_token(const model_call *call, uint32_t id, ggtok_token_trace *out) {
    model_call bpe = *call;
    bpe.model = ((const dna_model *)call->model)->bpe;
    bpe.scratch = ((dna_scratch *)call->scratch)->bpe;
    return ggtok_model_bpe.trace_token(&bpe, id, out);
}

static bool dna_same(const void *a, const void *b) {
    const dna_model *first = a, *second = b;
    return ggtok_model_bpe.same(first->bpe, second->bpe);
}

const model_ops ggtok_model_hybriddna = {
    .build = dna_build,
    .free = dna_free,
    .scratch_new = dna_scratch_new,
    .scratch_free = dna_scratch_free,
    .encode = dna_encode,
    .encode_recorded = dna_encode,
    .cache_bytes = dna_cache_bytes,
    .trace_token = dna_trace_token,
    .same = dna_same,
};
