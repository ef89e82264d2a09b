/*
 * SPM: the initial symbols are characters. Repeatedly merges the pair whose text is the token with
 * the best score (the leftmost of several). In the end, a symbol that isn't a token falls back to
 * bytes.
 *
 * A merge joins two neighbours only if some token's text contains them side by side. So the text
 * can be cut between two characters that occur side by side in no token, and each piece can be
 * merged and cached separately.
 */
#include "base/cpu.h"
#include "index/adjacency.h"
#include "models/model.h"
#include "models/tile.h"
#include "models/trace.h"
#include "models/words.h"
#include "unicode/space_mark.h"
#include "unicode/utf8_valid.h"

#include <math.h>
#include <stdio.h>

typedef struct spm_model {
    adjacency pairs; /* pairs of characters that occur in some token's text */
    bool unordered;  /* a score is NaN: the heap determines the order of merges, so no cuts */
    int32_t byte_id[256];
} spm_model;

typedef struct symbol { /* n == 0: the symbol has been merged into its left neighbour */
    size_t start, n;
    size_t prev, next;
} symbol;

typedef struct bigram {
    size_t left, right; /* indices of the two symbols */
    size_t n;           /* total bytes of both symbols when the bigram was pushed */
    float score;
} bigram;

typedef struct spm_state { /* scratch memory */
    word_cache cache;
    bytebuf text;  /* the fragment, with a space before it or with its spaces escaped */
    bytebuf piece; /* one piece, its spaces escaped */
    tiles tiles;
    symbol *symbols;
    size_t symbols_cap;
    bigram *heap;
    size_t heap_cap;
} spm_state;

#define NO_SYMBOL SIZE_MAX

/* Adds the pairs of a token's text. The text's last character may be incomplete; it then matches
 * only the same incomplete character at the end of an encoded text. */
static void add_pairs(adjacency *pairs, gguf_view text) {
    uint32_t before = 0;
    for (size_t i = 0, len; i < text.n; i += len) {
        uint32_t c = plain_char_at(text.p + i, text.n - i, &len);
        if (i) pair_add(pairs, before, c);
        before = c;
    }
}

/* ---- the immutable model ---- */

static void model_free(void *model) {
    spm_model *m = model;
    if (!m) return;
    ggtok_adjacency_free(&m->pairs);
    ggtok_mem_free(m);
}

static ggtok_status model_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                                void **model, ggtok_error *err) {
    (void)g, (void)options;
    spm_model *m = ggtok_mem_zalloc(sizeof *m);
    *model = m;
    if (!m) return ggtok_error_memory(err);
    if (!ggtok_adjacency_init(&m->pairs, v->text_off[v->n_tokens] / 2)) {
        model_free(m);
        *model = NULL;
        return ggtok_error_memory(err);
    }
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        add_pairs(&m->pairs, vocab_key(v, id));
        if (isnan(v->score[id])) m->unordered = true;
    }
    for (int b = 0; b < 256; b++) m->byte_id[b] = ggtok_vocab_byte_token(v, (uint8_t)b);
    return GGTOK_OK;
}

static void scratch_free(void *scratch) {
    spm_state *s = scratch;
    if (!s) return;
    ggtok_word_cache_free(&s->cache);
    ggtok_mem_free(s->text.data);
    ggtok_mem_free(s->piece.data);
    ggtok_mem_free(s->tiles.len);
    ggtok_mem_free(s->symbols);
    ggtok_mem_free(s->heap);
    ggtok_mem_free(s);
}

static size_t cache_bytes(const void *scratch) {
    const spm_state *s = scratch;
    return ggtok_word_cache_bytes(&s->cache);
}

static void *scratch_new(const vocab *v, const void *model) {
    (void)v, (void)model;
    spm_state *s = ggtok_mem_zalloc(sizeof *s);
    if (s && !ggtok_word_cache_init(&s->cache)) {
        ggtok_mem_free(s);
        return NULL;
    }
    return s;
}

/* Appends a token, or its bytes. A byte that has no token (on which llama.cpp aborts) becomes the
 * unknown token, if there is one. */
static void emit(const model_call *call, const uint8_t *p, size_t n, int32_t id) {
    const spm_model *m = call->model;
    idbuf *out = call->out;
    if (id >= 0) {
        out->data[out->n++] = id;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        id = m->byte_id[p[i]] >= 0 ? m->byte_id[p[i]] : call->v->special[GGTOK_UNK];
        if (id >= 0) out->data[out->n++] = id;
    }
}

static ggtok_trace_event with_score(const model_call *call, ggtok_trace_event e, int32_t id) {
    e.has_score = true;
    e.score = call->v->score[id];
    return e;
}

/* Reports the id of a byte that belongs to no token. */
static bool trace_byte(const model_call *call, uint8_t byte, int32_t id) {
    char note[64];
    ggtok_trace_event e = {.id = id, .how = GGTOK_HOW_BYTE};
    e.note = trace_note("no token has this text");
    if (id < 0) {
        snprintf(note, sizeof note, "there is no token for the byte %02X", byte);
        e = (ggtok_trace_event){.id = call->v->special[GGTOK_UNK], .how = GGTOK_HOW_UNKNOWN};
        e.note = trace_note(note);
    }
    return ggtok_trace_token_at(call->guard, e, call->guard->n_made - 1);
}

/* Like emit, for text that the guard may forbid to become the token. */
static bool emit_guarded(const model_call *call, const uint8_t *p, size_t n, int32_t id) {
    const spm_model *m = call->model;
    text_guard *g = call->guard;
    size_t at = (size_t)(p - g->text.data);
    if (id >= 0 && guard_allows(g, id, at, n)) {
        emit(call, p, n, id);
        if (!ggtok_guard_made(g, at, n)) return false;
        if (!g->trace) return true;
        bool merged = n > utf8_lead_len(*p);
        ggtok_trace_event e = {.id = id, .how = merged ? GGTOK_HOW_MERGED : GGTOK_HOW_SYMBOL};
        return ggtok_trace_token_at(g, with_score(call, e, id), g->n_made - 1);
    }
    for (size_t i = 0; i < n; i++) {
        id = m->byte_id[p[i]];
        if (id < 0) guard_unknown(g, call->v->special[GGTOK_UNK], at + i, 1);
        if (id >= 0 && !guard_allows(g, id, at + i, 1)) guard_refuse(g, id);
        bool has_id = id >= 0 || call->v->special[GGTOK_UNK] >= 0;
        if (has_id && !ggtok_guard_made(g, at + i, 1)) return false;
        if (has_id && g->trace && !trace_byte(call, p[i], id)) return false;
    }
    emit(call, p, n, GGTOK_NO_TOKEN);
    return true;
}

/* ---- few symbols: search for the best pair each time ---- */

enum { SHORT = 24 };

typedef struct short_word { /* linked list by position; a merged symbol keeps the leftmost */
    const vocab *v;
    const uint8_t *p;
    size_t start[SHORT + 1];
    uint8_t next[SHORT + 1], prev[SHORT + 1];
    int32_t pair[SHORT]; /* the token made of the symbols at i and next[i], or -1 */
    float score[SHORT];
} short_word;

ALWAYS_INLINE void find_pair(short_word *w, size_t i, size_t count) {
    size_t j = w->next[i];
    w->pair[i] = GGTOK_NO_TOKEN;
    if (j == count) return;
    w->pair[i] = ggtok_vocab_find(w->v, w->p + w->start[i], w->start[w->next[j]] - w->start[i]);
    if (w->pair[i] >= 0) w->score[i] = w->v->score[w->pair[i]];
}

/* Compiled twice: `r` is NULL unless merges are skipped at random, for good. */
ALWAYS_INLINE void merge_few(const model_call *call, const uint8_t *p, short_word *w, size_t count,
                             sampling *r) {
    int32_t id[SHORT];
    w->v = call->v;
    w->p = p;
    for (size_t i = 0; i < count; i++) {
        w->next[i] = (uint8_t)(i + 1);
        w->prev[i + 1] = (uint8_t)i;
        id[i] = -2; /* -2: not looked up yet */
    }
    w->next[count] = (uint8_t)count;
    for (size_t i = 0; i < count; i++) find_pair(w, i, count);
    for (;;) {
        size_t best = count;
        for (size_t i = 0; i < count; i++) {
            if (w->pair[i] >= 0 && (best == count || w->score[i] > w->score[best])) best = i;
        }
        if (best == count) break;
        if (r && sampling_skips(r)) {
            w->pair[best] = GGTOK_NO_TOKEN;
            continue;
        }
        size_t gone = w->next[best], after = w->next[gone];
        id[best] = w->pair[best];
        w->pair[gone] = GGTOK_NO_TOKEN;
        w->next[best] = (uint8_t)after;
        w->prev[after] = (uint8_t)best;
        find_pair(w, best, count);
        if (best) find_pair(w, w->prev[best], count);
    }
    for (size_t i = 0; i < count; i = w->next[i]) {
        size_t n = w->start[w->next[i]] - w->start[i];
        if (id[i] == -2) id[i] = ggtok_vocab_find(call->v, p + w->start[i], n);
        emit(call, p + w->start[i], n, id[i]);
    }
}

static void merge_short(const model_call *call, const uint8_t *p, short_word *w, size_t count) {
    merge_few(call, p, w, count, NULL);
}

static void merge_short_sampled(const model_call *call, const uint8_t *p, short_word *w,
                                size_t count) {
    merge_few(call, p, w, count, call->sampling);
}

/* ---- many symbols: llama.cpp's queue, which is libstdc++'s heap ---- */

/* Whether x leaves the queue after y. With NaN, this is false in both directions; the result then
 * depends on how the heap moves its elements, so the moves below are those of libstdc++. */
static inline bool after(const bigram *x, const bigram *y) {
    return x->score < y->score || (x->score == y->score && x->left > y->left);
}

static void heap_up(bigram *heap, size_t hole, bigram x) {
    while (hole && after(&heap[(hole - 1) / 2], &x)) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = x;
}

ALWAYS_INLINE bigram heap_pop(bigram *heap, size_t *n) {
    bigram top = heap[0], x = heap[--*n];
    size_t len = *n, hole = 0, child = 0;
    if (!len) return top;
    while (child < (len - 1) / 2) { /* sift down to a leaf, then x up from there */
        child = 2 * (child + 1);
        if (after(&heap[child], &heap[child - 1])) child--;
        heap[hole] = heap[child];
        hole = child;
    }
    if (len % 2 == 0 && child == (len - 2) / 2) {
        heap[hole] = heap[2 * child + 1];
        hole = 2 * child + 1;
    }
    heap_up(heap, hole, x);
    return top;
}

static bool try_pair(const model_call *call, const uint8_t *p, size_t left, size_t right,
                     size_t *n_heap) {
    spm_state *s = call->scratch;
    if (left == NO_SYMBOL || right == NO_SYMBOL) return true;
    size_t n = s->symbols[left].n + s->symbols[right].n;
    int32_t id = ggtok_vocab_find(call->v, p + s->symbols[left].start, n);
    if (id < 0) return true;
    if (call->guard && !guard_allows(call->guard, id, s->symbols[left].start, n)) return true;
    if (*n_heap == s->heap_cap) {
        size_t cap = s->heap_cap ? 2 * s->heap_cap : 256;
        bigram *heap = ggtok_mem_realloc(s->heap, mem_mul(cap, sizeof *heap));
        if (!heap) return false;
        s->heap = heap;
        s->heap_cap = cap;
    }
    heap_up(s->heap, (*n_heap)++, (bigram){left, right, n, call->v->score[id]});
    return true;
}

static bool trace_merge(const model_call *call, const uint8_t *p, const symbol *left, bigram b) {
    ggtok_trace_event e = {
        .kind = GGTOK_TRACE_MERGE, .at = b.left, .has_score = true, .score = b.score};
    return ggtok_trace_merge(call->guard, e, p + left->start, left->n, b.n - left->n);
}

/* Returns the skipped bigrams to the heap, which has room for them. */
static void return_skipped(spm_state *s, sampling *r, size_t *n_heap) {
    for (size_t at = 0; at < r->skipped.n; at += sizeof(bigram)) {
        bigram b;
        memcpy(&b, r->skipped.data + at, sizeof b);
        heap_up(s->heap, (*n_heap)++, b);
    }
    r->skipped.n = 0;
}

/* Compiled twice: `r` is NULL unless merges are skipped at random. */
ALWAYS_INLINE ggtok_status merge_symbols(const model_call *call, const uint8_t *p, size_t n,
                                         sampling *r) {
    enum { STEP = 8 }; /* a merge costs as much as this many bytes */
    spm_state *s = call->scratch;
    size_t count = 0, n_heap = 0;
    if (n > s->symbols_cap) {
        symbol *symbols = ggtok_mem_realloc(s->symbols, mem_mul(n, sizeof *symbols));
        if (!symbols) return ggtok_call_failed(call);
        s->symbols = symbols;
        s->symbols_cap = n;
    }
    symbol *sym = s->symbols;
    for (size_t i = 0; i < n; count++) {
        size_t len;
        char_at(p + i, n - i, &len);
        if (interrupted(call->interrupt, len)) return ggtok_call_failed(call);
        sym[count] = (symbol){i, len, count ? count - 1 : NO_SYMBOL, count + 1};
        i += len;
    }
    sym[count - 1].next = NO_SYMBOL;
    const bool traced = trace_of(call->guard);
    for (size_t i = 0; traced && i < count; i++) {
        if (!ggtok_trace_symbol(call->guard, p + sym[i].start, sym[i].n))
            return ggtok_call_failed(call);
    }
    for (size_t i = 1; i < count; i++) {
        if (interrupted(call->interrupt, STEP)) return ggtok_call_failed(call);
        if (!try_pair(call, p, i - 1, i, &n_heap)) return ggtok_call_failed(call);
    }
    while (n_heap) {
        if (interrupted(call->interrupt, STEP)) return ggtok_call_failed(call);
        bigram b = heap_pop(s->heap, &n_heap);
        if (r && r->skipped_returns) {
            if (sampling_skips(r)) {
                if (!bytebuf_append(&r->skipped, &b, sizeof b)) return ggtok_call_failed(call);
                continue;
            }
            return_skipped(s, r, &n_heap);
        }
        symbol *left = &sym[b.left], *right = &sym[b.right];
        if (!left->n || !right->n || left->n + right->n != b.n) continue; /* stale */
        if (r && !r->skipped_returns && sampling_skips(r)) continue;
        if (traced && !trace_merge(call, p, left, b)) return ggtok_call_failed(call);
        left->n = b.n;
        right->n = 0;
        left->next = right->next;
        if (left->next != NO_SYMBOL) sym[left->next].prev = b.left;
        if (!try_pair(call, p, left->prev, b.left, &n_heap) ||
            !try_pair(call, p, b.left, left->next, &n_heap)) {
            return ggtok_call_failed(call);
        }
    }
    for (size_t i = 0; i != NO_SYMBOL; i = sym[i].next) {
        if (interrupted(call->interrupt, STEP)) return ggtok_call_failed(call);
        int32_t id = ggtok_vocab_find(call->v, p + sym[i].start, sym[i].n);
        if (!call->guard) {
            emit(call, p + sym[i].start, sym[i].n, id);
        } else if (!emit_guarded(call, p + sym[i].start, sym[i].n, id)) {
            return ggtok_call_failed(call);
        }
    }
    return GGTOK_OK;
}

static ggtok_status merge_long(const model_call *call, const uint8_t *p, size_t n) {
    return merge_symbols(call, p, n, NULL);
}

static ggtok_status merge_sampled(const model_call *call, const uint8_t *p, size_t n) {
    call->sampling->skipped.n = 0;
    return merge_symbols(call, p, n, call->sampling);
}

/* ---- pieces and fragments ---- */

/* Merges a piece whose spaces are escaped. */
static ggtok_status merge_piece(const model_call *call, const uint8_t *p, size_t n) {
    const spm_model *m = call->model;
    short_word w;
    size_t count = 0, i = 0;
    if (!idbuf_reserve(call->out, n)) return ggtok_call_failed(call);
    if (call->sampling && call->sampling->skipped_returns) return merge_sampled(call, p, n);
    for (size_t len; i < n && count < SHORT; count++, i += len) {
        w.start[count] = i;
        char_at(p + i, n - i, &len);
    }
    if (i < n || m->unordered || PLAIN)
        return call->sampling ? merge_sampled(call, p, n) : merge_long(call, p, n);
    w.start[count] = n;
    (call->sampling ? merge_short_sampled : merge_short)(call, p, &w, count);
    return GGTOK_OK;
}

/* Encodes a piece that isn't cached. */
static ggtok_status encode_piece(const model_call *call, const uint8_t *text, size_t n,
                                 size_t room) {
    spm_state *s = call->scratch;
    size_t before = call->out->n;
    s->piece.n = 0;
    if (!ggtok_space_mark_escape(&s->piece, text, n)) return ggtok_call_failed(call);
    ggtok_status st = merge_piece(call, s->piece.data, s->piece.n);
    if (!st && !call->sampling)
        ggtok_word_cache_put(&s->cache, text, n, room, call->out->data + before,
                             call->out->n - before);
    return st;
}

/* Writes the ends of the pieces of text[from..n), at most `max` (> 8); text[from] must begin a
 * piece. Positions that aren't ends are also written, and then overwritten: cuts are unpredictable,
 * so no branch depends on them. Texts are cut and looked up before their spaces are escaped. */
static size_t cut_pieces(const adjacency *pairs, const uint8_t *text, size_t n, size_t from,
                         size_t *ends, size_t max) {
    size_t count = 0, len;
    uint32_t a = plain_char_at(text + from, n - from, &len), b;
    for (size_t i = from + len; i < n; a = b) {
        if (a < 0x80 && n - i >= 8 && pair_eight_ascii(text + i)) {
            count = pair_cut_eight(pairs, text, i, a, ends, count);
            i += 8;
            b = text[i - 1];
        } else {
            b = plain_char_at(text + i, n - i, &len);
            ends[count] = i;
            count += !pair_in(pairs, a, b);
            i += len;
        }
        if (count > max - 8) return count;
    }
    ends[count] = n;
    return count + 1;
}

/* Encodes pieces without the cache. */
static ggtok_status sample_pieces(const model_call *call, const uint8_t *text, size_t room,
                                  size_t from, const size_t *ends, size_t count) {
    ggtok_status st = GGTOK_OK;
    for (size_t i = 0; !st && i < count; from = ends[i++])
        st = encode_piece(call, text + from, ends[i] - from, room - from);
    return st;
}

static ggtok_status encode(const model_call *call, const uint8_t *text, size_t n) {
    enum { BATCH = 512 };
    const spm_model *m = call->model;
    spm_state *s = call->scratch;
    bool prefix = call->after_special && call->v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX];
    size_t ends[BATCH], room = n;
    bytebuf *own = &s->text;
    own->n = 0;
    /* A merge that returns after the next one depends on all pairs of the text. */
    const bool whole = m->unordered || (call->sampling && call->sampling->skipped_returns);
    if (whole || ggtok_utf8_valid_prefix(text, n) < n) {
        /* A malformed lead byte before a space would include part of the U+2581 for that space, so
         * the spaces must be escaped first. */
        if ((prefix && !bytebuf_append(own, SPACE_MARK, 3)) ||
            !ggtok_space_mark_escape(own, text, n)) {
            return ggtok_call_failed(call);
        }
        if (whole) return merge_piece(call, own->data, own->n);
    } else if (prefix || n < WORDS_SHORT) {
        if (!bytebuf_append(own, " ", prefix) || !bytebuf_append(own, text, n)) {
            return ggtok_call_failed(call);
        }
    }
    if (own->n) {
        if (!bytebuf_reserve(own, WORDS_PAD)) return ggtok_call_failed(call);
        memset(own->data + own->n, 0, WORDS_PAD);
        text = own->data;
        n = own->n;
        room = n + WORDS_PAD;
    }
    ggtok_status st = GGTOK_OK;
    for (size_t from = 0; !st && from < n;) {
        size_t count = cut_pieces(&m->pairs, text, n, from, ends, BATCH);
        st = call->sampling
                 ? sample_pieces(call, text, room, from, ends, count)
                 : ggtok_words_encode(call, &s->cache, encode_piece, text, room, from, ends, count);
        if (interrupted(call->interrupt, ends[count - 1] - from)) return ggtok_call_failed(call);
        from = ends[count - 1];
    }
    return st;
}

/* Encodes the text as one piece, with all spaces escaped. */
static ggtok_status encode_guarded(const model_call *call, const uint8_t *text, size_t n) {
    text_guard *g = call->guard;
    bool prefix = call->after_special && call->v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX];
    ggtok_guard_clear(g);
    bool ok = !prefix || ggtok_guard_add(g, SPACE_MARK, 3, 0);
    for (size_t i = 0; ok && i < n; i++) {
        bool space = text[i] == ' ';
        ok = ggtok_guard_put(g, space ? (const void *)SPACE_MARK : text + i, space ? 3 : 1, i, 1);
    }
    if (!ok || !ggtok_guard_seal(g) || !idbuf_reserve(call->out, g->text.n)) {
        return ggtok_call_failed(call);
    }
    if (g->trace && !ggtok_trace_word(g, 0, g->text.n)) return ggtok_call_failed(call);
    return merge_long(call, g->text.data, g->text.n);
}

/* ---- spans ---- */

/* Computes how many bytes of the text each token represents. A byte token represents one byte. */
static bool measure(const vocab *v, const spm_model *m, tiles *t) {
    if (t->len) return true;
    if (!(t->len = ggtok_mem_alloc(mem_mul(v->n_tokens, sizeof *t->len)))) return false;
    for (uint32_t id = 0; id < v->n_tokens; id++)
        t->len[id] = ggtok_tile_length(vocab_text(v, id), true);
    for (int b = 0; b < 256; b++) {
        int32_t id = m->byte_id[b], unk = v->special[GGTOK_UNK];
        if (id >= 0 && vocab_text(v, (uint32_t)id).n > 1) t->len[id] = 1;
        if (id < 0 && unk >= 0) t->len[unk] = TILE_ASK; /* one byte, or its own text */
    }
    t->clean = ggtok_vocab_find(v, SPACE_MARK, SPACE_MARK_BYTES) >= 0;
    return true;
}

static bool place(const model_call *call, const model_source *source) {
    spm_state *s = call->scratch;
    bool prefix = call->after_special && call->v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX];
    if (!measure(call->v, call->model, &s->tiles)) return false;
    if (s->tiles.clean && ggtok_tile_is_plain(source->text, source->n) &&
        ggtok_tile(&s->tiles, source, prefix)) {
        return true;
    }
    const tile_text kind = {.escape = true, .prefix = prefix};
    return ggtok_tile_walk(call, &s->tiles, source, kind);
}

static bool may_cut(const vocab *v, const void *model, void *scratch, const model_place *place) {
    (void)v, (void)scratch;
    const spm_model *m = model;
    size_t len;
    uint32_t a = plain_char_at(place->text + place->start, place->at - place->start, &len);
    uint32_t b = plain_char_at(place->text + place->at, 4, &len);
    return !m->unordered && !pair_in(&m->pairs, a, b);
}

/* Whether merges can produce this symbol: it is a token or a single character. */
static bool can_be(const vocab *v, const uint8_t *p, size_t n) {
    return n <= utf8_lead_len(*p) || ggtok_vocab_find(v, p, n) >= 0;
}

static ggtok_status trace_token(const model_call *call, uint32_t id, ggtok_token_trace *out) {
    text_guard *g = call->guard;
    gguf_view text = vocab_text(call->v, id);
    ggtok_guard_clear(g);
    out->reached = true;
    out->text = (ggtok_bytes){(const char *)text.p, text.n};
    if (!ggtok_guard_put(g, text.p, text.n, 0, text.n) || !ggtok_guard_seal(g) ||
        !idbuf_reserve(call->out, text.n)) {
        return ggtok_call_failed(call);
    }
    ggtok_status st = text.n ? merge_long(call, g->text.data, text.n) : GGTOK_OK;
    for (size_t i = 0, len; !st && i < text.n; i += len) {
        char_at(text.p + i, text.n - i, &len);
        if (!i || !can_be(call->v, text.p, i) || !can_be(call->v, text.p + i, text.n - i)) continue;
        ggtok_trace_event e =
            with_score(call, (ggtok_trace_event){.kind = GGTOK_TRACE_PAIR}, (int32_t)id);
        if (!ggtok_trace_merge(g, e, text.p, i, text.n - i)) st = ggtok_call_failed(call);
    }
    return st;
}

const model_ops ggtok_model_spm = {
    .build = model_build,
    .free = model_free,
    .scratch_new = scratch_new,
    .scratch_free = scratch_free,
    .encode = encode,
    .encode_guarded = encode_guarded,
    .place = place,
    .cache_bytes = cache_bytes,
    .may_cut = may_cut,
    .trace_token = trace_token,
    .samples = SAMPLES_DROPOUT | SAMPLES_ALPHA,
};
