/*
 * Merges a piece: if it has few symbols, by searching for the best pair each time; if many, in
 * windows (models/long_word.h), or as a whole with a heap.
 */
#include "models/spm/merge.h"

#include "base/cpu.h"
#include "models/trace.h"
#include "unicode/utf8_valid.h"

#include <stdio.h>

struct spm_symbol { /* n == 0: the symbol has been merged into its left neighbour */
    size_t start, n;
    size_t prev, next;
};

struct spm_bigram {
    size_t left, right; /* indices of the two symbols */
    size_t n;           /* total bytes of both symbols when the pair was pushed */
    float score;
};

#define NO_SYMBOL SIZE_MAX

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

ggtok_trace_event ggtok_spm_with_score(const model_call *call, ggtok_trace_event e, int32_t id) {
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
    return ggtok_trace_token_at(call->recorder, e, call->recorder->n_made - 1);
}

/* Like emit, for text that the recorder may forbid to become the token. */
static bool emit_recorded(const model_call *call, const uint8_t *p, size_t n, int32_t id) {
    const spm_model *m = call->model;
    recorder *rec = call->recorder;
    size_t at = (size_t)(p - rec->text.data);
    if (id >= 0 && recorder_allows(rec, id, at, n)) {
        emit(call, p, n, id);
        if (!ggtok_recorder_add_span(rec, at, n)) return false;
        if (!rec->trace) return true;
        bool merged = n > utf8_lead_len(*p);
        ggtok_trace_event e = {.id = id, .how = merged ? GGTOK_HOW_MERGED : GGTOK_HOW_SYMBOL};
        return ggtok_trace_token_at(rec, ggtok_spm_with_score(call, e, id), rec->n_made - 1);
    }
    for (size_t i = 0; i < n; i++) {
        id = m->byte_id[p[i]];
        if (id < 0) recorder_refuse_unknown(rec, call->v->special[GGTOK_UNK], at + i, 1);
        if (id >= 0 && !recorder_allows(rec, id, at + i, 1)) recorder_refuse(rec, id);
        bool has_id = id >= 0 || call->v->special[GGTOK_UNK] >= 0;
        if (has_id && !ggtok_recorder_add_span(rec, at + i, 1)) return false;
        if (has_id && rec->trace && !trace_byte(call, p[i], id)) return false;
    }
    emit(call, p, n, GGTOK_NO_TOKEN);
    return true;
}

/* ---- few symbols: search for the best pair each time ---- */

enum { SHORT = 24, NOT_SOUGHT = -2 };

typedef struct short_word { /* linked list by position; a merged symbol keeps the leftmost */
    const vocab *v;
    const uint8_t *p;
    size_t start[SHORT + 1];
    uint8_t next[SHORT + 1], prev[SHORT + 1];
    int32_t id[SHORT];   /* the symbol's token, or NOT_SOUGHT */
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
    w->v = call->v;
    w->p = p;
    for (size_t i = 0; i < count; i++) {
        w->next[i] = (uint8_t)(i + 1);
        w->prev[i + 1] = (uint8_t)i;
        w->id[i] = NOT_SOUGHT;
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
        w->id[best] = w->pair[best];
        w->pair[gone] = GGTOK_NO_TOKEN;
        w->next[best] = (uint8_t)after;
        w->prev[after] = (uint8_t)best;
        find_pair(w, best, count);
        if (best) find_pair(w, w->prev[best], count);
    }
}

/* Appends the ids of a symbol whose token may not be known yet. */
static void emit_symbol(const model_call *call, const uint8_t *p, size_t n, int32_t id) {
    emit(call, p, n, id == NOT_SOUGHT ? ggtok_vocab_find(call->v, p, n) : id);
}

static void merge_short(const model_call *call, const uint8_t *p, short_word *w, size_t count) {
    merge_few(call, p, w, count, NULL);
}

static void merge_short_sampled(const model_call *call, const uint8_t *p, short_word *w,
                                size_t count) {
    merge_few(call, p, w, count, call->sampling);
}

/* ---- many symbols: llama.cpp's queue, which is libstdc++'s heap ---- */

enum { STEP = 8 }; /* a merge costs as much as this many bytes */

/* Whether x leaves the queue after y. With NaN, this is false in both directions; the result then
 * depends on how the heap moves its elements, so the moves below are those of libstdc++. */
static inline bool after(const spm_bigram *x, const spm_bigram *y) {
    return x->score < y->score || (x->score == y->score && x->left > y->left);
}

static void heap_up(spm_bigram *heap, size_t hole, spm_bigram x) {
    while (hole && after(&heap[(hole - 1) / 2], &x)) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = x;
}

ALWAYS_INLINE spm_bigram heap_pop(spm_bigram *heap, size_t *n) {
    spm_bigram top = heap[0], x = heap[--*n];
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
    if (call->recorder && !recorder_allows(call->recorder, id, s->symbols[left].start, n))
        return true;
    if (*n_heap == s->heap_cap) {
        size_t cap = s->heap_cap ? 2 * s->heap_cap : 256;
        spm_bigram *heap = ggtok_mem_realloc(s->heap, mem_mul(cap, sizeof *heap));
        if (!heap) return false;
        s->heap = heap;
        s->heap_cap = cap;
    }
    heap_up(s->heap, (*n_heap)++, (spm_bigram){left, right, n, call->v->score[id]});
    return true;
}

static bool trace_merge(const model_call *call, const uint8_t *p, const spm_symbol *left,
                        spm_bigram b) {
    ggtok_trace_event e = {
        .kind = GGTOK_TRACE_MERGE, .at = b.left, .has_score = true, .score = b.score};
    return ggtok_trace_merge(call->recorder, e, p + left->start, left->n, b.n - left->n);
}

/* Returns the skipped bigrams to the heap, which has room for them. */
static void return_skipped(spm_state *s, sampling *r, size_t *n_heap) {
    for (size_t at = 0; at < r->skipped.n; at += sizeof(spm_bigram)) {
        spm_bigram b;
        memcpy(&b, r->skipped.data + at, sizeof b);
        heap_up(s->heap, (*n_heap)++, b);
    }
    r->skipped.n = 0;
}

/* Merges at most the first `most` symbols of p[0..n): next then links the remaining ones. Compiled
 * twice: `r` is NULL unless merges are skipped at random. */
ALWAYS_INLINE ggtok_status merge_symbols(const model_call *call, const uint8_t *p, size_t n,
                                         size_t most, sampling *r) {
    spm_state *s = call->scratch;
    size_t count = 0, n_heap = 0;
    if (most > n) most = n;
    if (most > s->symbols_cap) {
        spm_symbol *symbols = ggtok_mem_realloc(s->symbols, mem_mul(most, sizeof *symbols));
        if (!symbols) return ggtok_call_failed(call);
        s->symbols = symbols;
        s->symbols_cap = most;
    }
    spm_symbol *sym = s->symbols;
    for (size_t i = 0; i < n && count < most; count++) {
        size_t len;
        char_at(p + i, n - i, &len);
        if (interrupted(call->interrupt, len)) return ggtok_call_failed(call);
        sym[count] = (spm_symbol){i, len, count ? count - 1 : NO_SYMBOL, count + 1};
        i += len;
    }
    sym[count - 1].next = NO_SYMBOL;
    const bool traced = trace_of(call->recorder);
    for (size_t i = 0; traced && i < count; i++) {
        if (!ggtok_trace_symbol(call->recorder, p + sym[i].start, sym[i].n))
            return ggtok_call_failed(call);
    }
    for (size_t i = 1; i < count; i++) {
        if (interrupted(call->interrupt, STEP)) return ggtok_call_failed(call);
        if (!try_pair(call, p, i - 1, i, &n_heap)) return ggtok_call_failed(call);
    }
    while (n_heap) {
        if (interrupted(call->interrupt, STEP)) return ggtok_call_failed(call);
        spm_bigram b = heap_pop(s->heap, &n_heap);
        if (r && r->skipped_returns) {
            if (sampling_skips(r)) {
                if (!bytebuf_append(&r->skipped, &b, sizeof b)) return ggtok_call_failed(call);
                continue;
            }
            return_skipped(s, r, &n_heap);
        }
        spm_symbol *left = &sym[b.left], *right = &sym[b.right];
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
    return GGTOK_OK;
}

/* Appends the ids of the symbols that merge_symbols left. */
static ggtok_status emit_symbols(const model_call *call, const uint8_t *p) {
    const spm_symbol *sym = ((const spm_state *)call->scratch)->symbols;
    for (size_t i = 0; i != NO_SYMBOL; i = sym[i].next) {
        if (interrupted(call->interrupt, STEP)) return ggtok_call_failed(call);
        int32_t id = ggtok_vocab_find(call->v, p + sym[i].start, sym[i].n);
        if (!call->recorder) {
            emit(call, p + sym[i].start, sym[i].n, id);
        } else if (!emit_recorded(call, p + sym[i].start, sym[i].n, id)) {
            return ggtok_call_failed(call);
        }
    }
    return GGTOK_OK;
}

static ggtok_status merge_all(const model_call *call, const uint8_t *p, size_t n, size_t most) {
    return merge_symbols(call, p, n, most, NULL);
}

static ggtok_status merge_sampled(const model_call *call, const uint8_t *p, size_t n) {
    call->sampling->skipped.n = 0;
    ggtok_status s = merge_symbols(call, p, n, n, call->sampling);
    return s ? s : emit_symbols(call, p);
}

static ggtok_status merge_whole(const model_call *call, const uint8_t *p, size_t n) {
    ggtok_status s = merge_all(call, p, n, n);
    return s ? s : emit_symbols(call, p);
}

/* Divides at most SHORT characters. Returns the offset of their end. */
static size_t split_short(const uint8_t *p, size_t n, short_word *w, size_t *count) {
    size_t i = 0;
    *count = 0;
    for (size_t len; i < n && *count < SHORT; ++*count, i += len) {
        w->start[*count] = i;
        char_at(p + i, n - i, &len);
    }
    w->start[*count] = i;
    return i;
}

static bool merge_one(const model_call *call, merge_window *w) {
    size_t count;
    if (!ggtok_merged_reserve(&w->merged, w->most)) return false;
    merged_symbol *out = w->merged.data;
    w->merged.n = 0;
    if (w->most <= SHORT) {
        short_word few;
        size_t end = split_short(w->p, w->n, &few, &count);
        merge_short(call, w->p, &few, count);
        for (size_t i = 0; i < count; i = few.next[i])
            out[w->merged.n++] = (merged_symbol){(uint32_t)few.start[i], (uint32_t)few.id[i]};
        out[w->merged.n].start = (uint32_t)end;
        return true;
    }
    if (merge_all(call, w->p, w->n, w->most)) return false;
    const spm_symbol *sym = ((const spm_state *)call->scratch)->symbols;
    for (size_t i = 0; i != NO_SYMBOL; i = sym[i].next) {
        out[w->merged.n++] = (merged_symbol){(uint32_t)sym[i].start, (uint32_t)NOT_SOUGHT};
        out[w->merged.n].start = (uint32_t)(sym[i].start + sym[i].n);
    }
    return true;
}

static bool merge_windows(const void *model, merge_window *const *windows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!merge_one(model, windows[i])) return false;
    }
    return true;
}

static ggtok_status merge_long(const model_call *call, const uint8_t *p, size_t n) {
    const merge_ops ops = {merge_windows, call, SHORT, false};
    bool slow;
    if (PLAIN || !long_word_suits(n)) return merge_whole(call, p, n);
    const merged_symbols *merged = ggtok_long_word_merge(&((spm_state *)call->scratch)->long_word,
                                                         &ops, p, n, call->interrupt, &slow);
    if (slow) return merge_whole(call, p, n);
    if (!merged) return ggtok_call_failed(call);
    const merged_symbol *s = merged->data;
    for (size_t i = 0; i < merged->n; i++)
        emit_symbol(call, p + s[i].start, s[i + 1].start - s[i].start, (int32_t)s[i].value);
    return GGTOK_OK;
}

ggtok_status ggtok_spm_merge(const model_call *call, const uint8_t *p, size_t n) {
    const spm_model *m = call->model;
    short_word w;
    size_t count;
    if (!idbuf_reserve(call->out, n)) return ggtok_call_failed(call);
    if (call->sampling && call->sampling->skipped_returns) return merge_sampled(call, p, n);
    if (m->unordered) return call->sampling ? merge_sampled(call, p, n) : merge_whole(call, p, n);
    if (split_short(p, n, &w, &count) < n || PLAIN)
        return call->sampling ? merge_sampled(call, p, n) : merge_long(call, p, n);
    (call->sampling ? merge_short_sampled : merge_short)(call, p, &w, count);
    for (size_t i = 0; i < count; i = w.next[i])
        emit_symbol(call, p + w.start[i], w.start[w.next[i]] - w.start[i], w.id[i]);
    return GGTOK_OK;
}

ggtok_status ggtok_spm_merge_recorded(const model_call *call) {
    return merge_whole(call, call->recorder->text.data, call->recorder->text.n);
}
