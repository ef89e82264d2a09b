/*
 * RWKV: repeatedly finds the longest token that matches the next bytes.
 *
 * A token that crosses the position between two characters contains the two side by side, or parts
 * of them. If no token can cross a position, the text is cut there: the longest match before the
 * position doesn't depend on what follows, and the search restarts at the position. The pieces are
 * cached.
 */
#include "index/trie_long.h"
#include "models/bpe/cuts.h"
#include "models/model.h"
#include "models/tile.h"
#include "models/trace.h"
#include "models/words.h"
#include "vocab/rwkv_text.h"

#include <stdio.h>

/* Returns the value (modulo 256) of a "digit" as llama.cpp reads it with signed char: bytes from
 * 0x80 on are less than 'a'. */
static uint8_t hex_digit(uint8_t c) {
    return (uint8_t)(c >= 'a' && c < 0x80 ? c - 'a' + 10 : c - '0');
}

bool ggtok_rwkv_unescape(bytebuf *out, const uint8_t *text, size_t n) {
    if (!bytebuf_reserve(out, n)) return false; /* no escape is shorter than its bytes */
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
    trie_long longs;
    bytebuf bytes; /* the unescaped token texts, to which the trie's tails refer */
    uint32_t *off;
    bpe_cuts cuts;
    uint8_t apart[1 << 16]; /* by two bytes: whether no token contains them side by side */
} rwkv_model;

typedef struct rwkv_scratch {
    word_cache cache;
    idbuf hits; /* long tokens by position, from ggtok_trie_long_find */
    tiles tiles;
} rwkv_scratch;

static void rwkv_free(void *model) {
    rwkv_model *m = model;
    if (!m) return;
    ggtok_trie_free(&m->t);
    ggtok_trie_long_free(&m->longs);
    ggtok_adjacency_free(&m->cuts.set);
    ggtok_mem_free(m->bytes.data);
    ggtok_mem_free(m->off);
    ggtok_mem_free(m);
}

/* Returns two bytes as a number in native byte order. */
static inline uint16_t two_bytes(const uint8_t *p) {
    uint16_t x;
    memcpy(&x, p, 2);
    return x;
}

/* Records the positions inside tokens, since a text can't be cut where it contains them. */
static bool build_cuts(rwkv_model *m, size_t n_tokens) {
    const uint8_t *bytes = m->bytes.data;
    size_t n_pairs = 0; /* an estimate of the pairs beyond ASCII */
    for (size_t i = 1; i < m->bytes.n; i++) {
        n_pairs += (bytes[i] | bytes[i - 1]) >= 0x80 && !utf8_continues(bytes[i]);
    }
    if (!ggtok_adjacency_init(&m->cuts.set, n_pairs)) return false;
    memset(m->apart, !PLAIN, sizeof m->apart);
    for (size_t id = 0; id < n_tokens; id++) {
        for (size_t from = m->off[id], i = from + 1, end = m->off[id + 1]; i < end; i++) {
            uint8_t a = bytes[i - 1], b = bytes[i];
            m->apart[two_bytes(bytes + i - 1)] = 0;
            if ((a | b) < 0x80)
                pair_add(&m->cuts.set, a, b);
            else if (!utf8_continues(b))
                ggtok_bpe_cuts_add(&m->cuts, bytes + from, i - from, bytes + i, end - i);
        }
    }
    return true;
}

static ggtok_status rwkv_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                               void **model, ggtok_error *err) {
    (void)g, (void)options;
    rwkv_model *m = ggtok_mem_zalloc(sizeof *m);
    uint32_t *ids = ggtok_mem_alloc(mem_mul(v->n_tokens, sizeof *ids));
    if (!m || !ids) goto fail;
    m->off = ggtok_mem_alloc(mem_mul((size_t)v->n_tokens + 1, sizeof *m->off));
    if (!m->off) goto fail;
    m->off[0] = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        gguf_view text = vocab_text(v, id);
        if (!ggtok_rwkv_unescape(&m->bytes, text.p, text.n)) goto fail;
        m->off[id + 1] = (uint32_t)m->bytes.n;
        ids[id] = id;
    }
    if (!build_cuts(m, v->n_tokens)) goto fail;
    /* Different texts may unescape to the same bytes: the last one wins. */
    if (!ggtok_trie_build(&m->t, m->bytes.data, m->off, ids, v->n_tokens, true) ||
        !ggtok_trie_long_build(&m->longs, m->bytes.data, m->off, ids, v->n_tokens)) {
        goto fail;
    }
    ggtok_mem_free(ids);
    *model = m;
    return GGTOK_OK;
fail:
    ggtok_mem_free(ids);
    rwkv_free(m);
    return ggtok_error_memory(err);
}

static void rwkv_scratch_free(void *scratch) {
    rwkv_scratch *s = scratch;
    if (!s) return;
    ggtok_word_cache_free(&s->cache);
    ggtok_mem_free(s->hits.data);
    ggtok_tile_free(&s->tiles);
    ggtok_mem_free(s);
}

static size_t rwkv_cache_bytes(const void *scratch) {
    const rwkv_scratch *s = scratch;
    return ggtok_word_cache_bytes(&s->cache);
}

static void *rwkv_scratch_new(const vocab *v, const void *model) {
    (void)v, (void)model;
    rwkv_scratch *s = ggtok_mem_zalloc(sizeof *s);
    if (s && ggtok_word_cache_init(&s->cache)) return s;
    ggtok_mem_free(s);
    return NULL;
}

/*
 * Encodes a piece that isn't cached. If no token is a prefix of the text, the unknown id represents
 * one byte. llama.cpp does so only if no token even begins with that byte; if only a prefix of a
 * token matches, llama.cpp emits id 0 and starts over at the same byte, until memory runs out.
 * Here, the unknown id represents that byte, too.
 */
static ggtok_status encode_piece(const model_call *call, const uint8_t *text, size_t n,
                                 size_t room) {
    const rwkv_model *m = call->model;
    rwkv_scratch *s = call->scratch;
    idbuf *out = call->out;
    int32_t unknown = call->v->special[GGTOK_UNK];
    if (!idbuf_reserve(out, n)) return ggtok_call_failed(call);
    const int32_t *hits = NULL;
    if (trie_long_for(&m->longs, n)) {
        if (!ggtok_trie_long_find(&m->longs, text, n, &s->hits)) return ggtok_call_failed(call);
        hits = s->hits.data;
    }
    size_t before = out->n;
    for (size_t i = 0; i < n;) {
        int32_t id = unknown;
        size_t len = trie_longest_at(&m->t, &m->longs, hits, text, i, n, &id);
        i += len ? len : 1;
        if (interrupted(call->interrupt, len)) return ggtok_call_failed(call);
        out->data[out->n++] = id;
    }
    ggtok_word_cache_put(&s->cache, text, n, room, out->data + before, out->n - before);
    return GGTOK_OK;
}

/* ---- cutting ---- */

/* A scan of the text for cuts: by character where it is well-formed, otherwise by byte. */
typedef struct cutter {
    const rwkv_model *m;
    const uint8_t *text;
    size_t n;
    size_t at;     /* start of the next character */
    uint32_t last; /* the previous character, as from next_char */
} cutter;

#define STRAY 0xFF000000u /* flag of a stray byte; no character's last byte is FF */

/* Returns the character at p, packed as in an adjacency, or a stray byte; sets *size. */
static inline uint32_t next_char(const uint8_t *p, size_t n, size_t *size) {
    uint32_t c = p[0];
    *size = 1;
    if (c < 0x80) return c;
    if (c >= 0xE0 && c < 0xF0) {
        if (n >= 3 && utf8_continues(p[1]) && utf8_continues(p[2])) {
            return *size = 3, c | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
        }
    } else if (c >= 0xC0 && c < 0xE0) {
        if (n >= 2 && utf8_continues(p[1])) return *size = 2, c | (uint32_t)p[1] << 8;
    } else if (c >= 0xF0 && n >= 4 && utf8_continues(p[1]) && utf8_continues(p[2]) &&
               utf8_continues(p[3])) {
        return *size = 4, c | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    }
    return STRAY | c;
}

/* Whether a token may contain a, which ends at p, and b, which begins there, side by side. */
static inline bool joined(const rwkv_model *m, uint32_t a, uint32_t b, const uint8_t *p) {
    if ((a | b) >= STRAY) return !m->apart[two_bytes(p - 1)];
    bool whole = pair_in(&m->cuts.set, a, b);
    if (!bpe_cuts_partial(&m->cuts, p[-1], p[0])) return whole;
    return whole || ggtok_bpe_cuts_joins_partial(&m->cuts, a, b);
}

/* Writes the next cuts in order, at most `most`, and returns their number. The end of the text is
 * the last cut. No branch depends on where pieces end. */
static size_t find_cuts(cutter *c, size_t *ends, size_t most) {
    const rwkv_model *m = c->m;
    const uint8_t *text = c->text;
    size_t count = 0, n = c->n, at = c->at;
    uint32_t last = c->last;
    while (at < n && count + 8 < most) {
        uint64_t eight;
        if (last < 0x80 && n - at >= 8 &&
            (memcpy(&eight, text + at, 8), !(eight & 0x8080808080808080u))) {
            for (size_t i = 0; i < 8; i++) {
                ends[count] = at + i;
                count += m->apart[two_bytes(text + at + i - 1)];
            }
            at += 8;
            last = text[at - 1];
            continue;
        }
        size_t size;
        uint32_t next = next_char(text + at, n - at, &size);
        ends[count] = at;
        count += !joined(m, last, next, text + at);
        last = next;
        at += size;
    }
    if (at == n) ends[count++] = n;
    c->at = at;
    c->last = last;
    return count;
}

/* Assigns spans from the lengths of tokens. The unknown token represents one byte; if its own text
 * also occurs, the lengths don't add up, and this returns false. */
static bool rwkv_tile(const model_call *call, const model_source *source) {
    const rwkv_model *m = call->model;
    tiles *t = &((rwkv_scratch *)call->scratch)->tiles;
    int32_t unknown = call->v->special[GGTOK_UNK];
    if (unknown < 0) return false; /* ids may be -1 */
    if (!t->len) {
        if (!ggtok_tile_alloc(t, call->v)) return false;
        for (uint32_t id = 0; id < call->v->n_tokens; id++) {
            uint32_t n = m->off[id + 1] - m->off[id];
            t->len[id] = n < TILE_ASK ? (tile_length)n : TILE_ASK;
        }
        t->len[unknown] = 1;
    }
    return ggtok_tile(t, source, false);
}

static ggtok_status rwkv_encode(const model_call *call, const uint8_t *text, size_t n) {
    enum { BATCH = 512 };
    rwkv_scratch *s = call->scratch;
    size_t ends[BATCH];
    ggtok_status st = GGTOK_OK;
    cutter c = {.m = call->model, .text = text, .n = n};
    c.last = next_char(text, n, &c.at);
    for (size_t from = 0, count; !st && from < n; from = ends[count - 1]) {
        count = find_cuts(&c, ends, BATCH);
        if (interrupted(call->interrupt, ends[count - 1] - from)) return ggtok_call_failed(call);
        st = ggtok_words_encode(call, &s->cache, encode_piece, text, n, from, ends, count);
    }
    return st;
}

static bool trace_token(const model_call *call, int32_t id, bool found, uint8_t byte) {
    char note[64];
    snprintf(note, sizeof note, "no token starts with the byte %02X", byte);
    return ggtok_trace_last(call->recorder, id, found ? GGTOK_HOW_LONGEST_MATCH : GGTOK_HOW_UNKNOWN,
                            found ? NULL : note);
}

static ggtok_status rwkv_encode_recorded(const model_call *call, const uint8_t *text, size_t n) {
    const rwkv_model *m = call->model;
    rwkv_scratch *s = call->scratch;
    recorder *rec = call->recorder;
    int32_t unknown = call->v->special[GGTOK_UNK];
    const int32_t *hits = NULL;
    ggtok_recorder_clear(rec);
    bool ok = idbuf_reserve(call->out, n);
    for (size_t i = 0; ok && i < n; i++) ok = ggtok_recorder_put(rec, text + i, 1, i, 1);
    if (!ok || !ggtok_recorder_seal(rec)) return ggtok_call_failed(call);
    if (trie_long_for(&m->longs, n)) {
        if (!ggtok_trie_long_find(&m->longs, text, n, &s->hits)) return ggtok_call_failed(call);
        hits = s->hits.data;
    }
    if (rec->trace && !ggtok_trace_word(rec, 0, n)) return ggtok_call_failed(call);
    for (size_t i = 0; i < n;) {
        int32_t id = unknown, usual;
        size_t len = ggtok_recorder_longest(rec, &m->t, &m->longs, hits, i, &id);
        if (!len && trie_longest_at(&m->t, &m->longs, hits, text, i, n, &usual)) {
            recorder_refuse(rec, usual);
        }
        if (!len) recorder_refuse_unknown(rec, unknown, i, 1);
        call->out->data[call->out->n++] = id;
        if (!ggtok_recorder_add_span(rec, i, len ? len : 1) ||
            (rec->trace && !trace_token(call, id, len, text[i]))) {
            return ggtok_call_failed(call);
        }
        if (!len) len = 1;
        i += len;
    }
    return GGTOK_OK;
}

static bool rwkv_may_cut(const vocab *v, const void *model, void *scratch,
                         const model_place *place) {
    (void)v, (void)scratch;
    size_t len;
    uint32_t a = next_char(place->text + place->start, place->at - place->start, &len);
    return !joined(model, a, next_char(place->text + place->at, 4, &len), place->text + place->at);
}

const model_ops ggtok_model_rwkv = {
    .build = rwkv_build,
    .free = rwkv_free,
    .scratch_new = rwkv_scratch_new,
    .scratch_free = rwkv_scratch_free,
    .encode = rwkv_encode,
    .encode_recorded = rwkv_encode_recorded,
    .tile = rwkv_tile,
    .cache_bytes = rwkv_cache_bytes,
    .may_cut = rwkv_may_cut,
};
