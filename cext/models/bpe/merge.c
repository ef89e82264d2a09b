/*
 * Merges one word: if it has few symbols, by searching their ranks; if many, in windows (claim bpe.3
 * of docs/design/bpe.md), each of which is merged by searching or, if it is large, with a heap.
 *
 * The word's initial symbols are numbered from left to right; these numbers are the positions. A
 * merged symbol keeps the position of its leftmost part. rank[i] is the rank of the pair that
 * begins at position i, or BPE_NO_RANK if the pair doesn't merge or the symbol at i is gone.
 */
#include "models/bpe/merge.h"

#include "base/cpu.h"
#include "base/heap.h"
#include "models/bpe/lanes.h"
#include "models/trace.h"
#include "unicode/space_mark.h"
#include "unicode/utf8.h"

#include <stdlib.h>

enum { SHORT = 32 };

/* Finds the first symbols of a word, at most `most`; the i-th begins at start[i], and start[count] is
 * the end of the last. Symbols are bytes, so that start[i] == i, unless the vocabulary's symbols are
 * characters. Returns their number, or 0 if interrupted. */
static size_t split_word(const bpe_table *t, const vocab *v, const uint8_t *word, size_t n,
                         size_t most, uint32_t *symbol, uint32_t *start, interrupt *in) {
    size_t count = 0, i = 0;
    if (!t->raw_utf8) {
        for (; i < n && i < most; i++) {
            if (interrupted(in, 1)) return 0;
            symbol[i] = t->byte_symbol[word[i]];
            start[i] = (uint32_t)i;
        }
        count = i;
    } else {
        for (; i < n && count < most; count++) {
            size_t len = utf8_lead_len(word[i]);
            if (len > n - i) len = n - i;
            if (interrupted(in, len)) return 0;
            start[count] = (uint32_t)i;
            symbol[count] =
                len == 1 ? t->byte_symbol[word[i]] : ggtok_bpe_symbol(t, v, word + i, len);
            i += len;
        }
    }
    start[count] = (uint32_t)i;
    return count;
}

/* Returns the rank of a pair, and prefetches the symbol it becomes, which is likely needed next. */
static inline uint32_t rank_of(const bpe_table *t, uint32_t left, uint32_t right) {
    if (left == BPE_NO_SYMBOL || right == BPE_NO_SYMBOL) return BPE_NO_RANK;
    uint32_t rank = bpe_rank(t, left, right);
    if (t->merged && rank != BPE_NO_RANK) PREFETCH(&t->merged[rank]);
    return rank;
}

/* Returns the rank of the pair of the word's i-th and (i + 1)-th initial symbols. */
static inline uint32_t first_rank(const bpe_table *t, const uint8_t *word, const uint32_t *symbol,
                                  size_t i) {
    return t->raw_utf8 || PLAIN ? rank_of(t, symbol[i], symbol[i + 1])
                                : t->byte_rank[word[i]][word[i + 1]];
}

/* Merges few symbols in place: searches all ranks for the least each time. Returns how many symbols
 * are left. */
static size_t merge_few(const bpe_table *t, const uint8_t *word, size_t count, uint32_t *symbol,
                        uint32_t *start) {
    uint32_t rank[SHORT];
    uint8_t next[SHORT + 1], prev[SHORT + 1];
    for (size_t i = 0; i < count; i++) {
        next[i] = (uint8_t)(i + 1);
        prev[i + 1] = (uint8_t)i;
        rank[i] = i + 1 < count ? first_rank(t, word, symbol, i) : BPE_NO_RANK;
    }
    for (;;) {
        uint32_t least = BPE_NO_RANK;
        size_t i = 0;
        for (size_t k = 0; k < count; k++) {
            if (rank[k] < least) least = rank[k], i = k;
        }
        if (least == BPE_NO_RANK) break;
        size_t gone = next[i], after = next[gone];
        symbol[i] = bpe_merged(t, least);
        rank[gone] = BPE_NO_RANK;
        next[i] = (uint8_t)after;
        prev[after] = (uint8_t)i;
        rank[i] = after < count ? rank_of(t, symbol[i], symbol[after]) : BPE_NO_RANK;
        if (i) {
            size_t before = prev[i];
            rank[before] = rank_of(t, symbol[before], symbol[i]);
        }
    }
    size_t left = 0;
    for (size_t i = 0; i < count; i = next[i], left++) {
        symbol[left] = symbol[i];
        start[left] = start[i];
    }
    start[left] = start[count];
    return left;
}

/* Appends the ids of a merged symbol, word[from..to). */
static inline void emit(const bpe_table *t, const uint8_t *word, uint32_t symbol, size_t from,
                        size_t to, idbuf *out) {
    if (symbol < t->n_tokens) {
        out->data[out->n++] = (int32_t)symbol;
    } else {
        ggtok_bpe_emit_byte_tokens(t, word + from, to - from, out);
    }
}

/* ---- many symbols: a heap of (rank, position), stale entries skipped ---- */

static bool reserve(bpe_scratch *s, size_t n) {
    if (n <= s->cap) return true;
    size_t cap = n + n / 2;
    uint32_t **arrays[] = {&s->symbol, &s->start, &s->next, &s->prev, &s->rank};
    for (int i = 0; i < 5; i++) {
        uint32_t *p = ggtok_mem_realloc(*arrays[i], mem_mul(cap + 1, sizeof *p));
        if (!p) return false;
        *arrays[i] = p;
    }
    s->cap = cap;
    return true;
}

static bool push(bpe_scratch *s, size_t *n, uint32_t rank, size_t pos) {
    if (*n == s->heap_cap) {
        size_t cap = s->heap_cap ? s->heap_cap * 2 : 256;
        uint64_t *heap = ggtok_mem_realloc(s->heap, mem_mul(cap, sizeof *heap));
        if (!heap) return false;
        s->heap = heap;
        s->heap_cap = cap;
    }
    s->heap[(*n)++] = (uint64_t)rank << 32 | pos;
    return true;
}

/* A word in the recorder's text; `rec` is NULL if nothing is recorded. */
typedef struct recorded_word {
    recorder *rec;
    size_t at; /* offset of the word in the recorder's text */
} recorded_word;

/* Returns the rank of a merge that makes word[from..to) a symbol, if the recorder allows it; otherwise
 * BPE_NO_RANK. */
static inline uint32_t allowed(const bpe_table *t, recorded_word w, uint32_t rank, size_t from,
                               size_t to) {
    if (!w.rec || rank == BPE_NO_RANK) return rank;
    uint32_t symbol = bpe_merged(t, rank);
    bool is_token = symbol < t->n_tokens;
    return is_token && !recorder_allows(w.rec, (int32_t)symbol, w.at + from, to - from)
               ? BPE_NO_RANK
               : rank;
}

/* Emits a token for each byte of p[0..n), which merging left as `symbol`, a token that the recorder
 * forbids. In byte-level vocabularies, such a token is a single byte and has no alternative. */
static void emit_forbidden(const bpe_table *t, recorded_word w, uint32_t symbol, const uint8_t *p,
                           size_t n, size_t at, idbuf *out) {
    for (size_t i = 0; i < n; i++) {
        bool space = p[i] == ' ' && t->escapes;
        const uint8_t *bytes = space ? (const uint8_t *)SPACE_MARK : p + i;
        for (size_t k = 0; k < (space ? 3 : 1); k++) {
            int32_t id = t->raw_utf8 ? t->fallback[bytes[k]][0] : (int32_t)symbol;
            if (id < 0) id = (int32_t)symbol;
            if (!recorder_allows(w.rec, id, w.at + at + i, 1)) recorder_refuse(w.rec, id);
            out->data[out->n++] = id;
        }
    }
}

/* Checks the ids from index `before` on, to which bytes fell back. Refuses those that the recorder
 * forbids. */
static void check_bytes(recorded_word w, size_t at, size_t n, const idbuf *out, size_t before) {
    for (size_t k = before; w.rec && k < out->n; k++) {
        if (!recorder_allows(w.rec, out->data[k], w.at + at, n))
            recorder_refuse(w.rec, out->data[k]);
    }
}

/* Records the source byte of each id that ggtok_bpe_emit_byte_tokens writes for p[0..n). */
static bool note_bytes(const bpe_table *t, recorded_word w, const uint8_t *p, size_t n, size_t at) {
    for (size_t i = 0; w.rec && w.rec->spans && i < n; i++) {
        bool space = p[i] == ' ' && t->escapes;
        const uint8_t *bytes = space ? (const uint8_t *)SPACE_MARK : p + i;
        for (size_t k = 0; k < (space ? 6 : 2); k++) {
            if (t->fallback[bytes[k / 2]][k % 2] < 0) continue;
            if (!ggtok_recorder_add_span(w.rec, w.at + at + i, 1)) return false;
        }
    }
    return true;
}

/* Reports the initial symbols of a word. */
static bool trace_symbols(recorded_word w, const uint8_t *word, const uint32_t *start,
                          size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!ggtok_trace_symbol(w.rec, word + start[i], start[i + 1] - start[i])) return false;
    }
    return true;
}

static bool trace_merge(const bpe_table *t, bpe_scratch *s, recorded_word w, const uint8_t *word,
                        size_t i, size_t gone, size_t after, uint32_t rank) {
    const uint32_t *start = s->start;
    ggtok_trace_event e = {.kind = GGTOK_TRACE_MERGE, .at = i, .has_rank = true};
    return ggtok_bpe_file_rank(t, s, rank, &e.rank) &&
           ggtok_trace_merge(w.rec, e, word + start[i], start[gone] - start[i],
                             start[after] - start[gone]);
}

/* Reports the ids from index `before` on, to which bytes fell back. Their spans are the last
 * recorded. */
static bool trace_bytes(recorded_word w, const idbuf *out, size_t before) {
    for (size_t k = before; k < out->n; k++) {
        ggtok_trace_event e = {.id = out->data[k],
                               .how = GGTOK_HOW_BYTE,
                               .note = trace_note("the merged symbol is not a token")};
        if (!ggtok_trace_token_at(w.rec, e, w.rec->n_made - (out->n - k))) return false;
    }
    return true;
}

/* Returns the skipped pairs to the heap, which has room for them. */
static void return_skipped(bpe_scratch *s, sampling *r, size_t *n_heap) {
    for (size_t at = 0; at < r->skipped.n; at += sizeof *s->heap) {
        memcpy(&s->heap[(*n_heap)++], r->skipped.data + at, sizeof *s->heap);
        heap_up(s->heap, *n_heap - 1);
    }
    r->skipped.n = 0;
}

/* Merges the scratch's symbols: next[] then links the remaining ones. Compiled twice: `r` is NULL
 * unless merges are skipped at random. Returns false if interrupted or out of memory. */
ALWAYS_INLINE bool merge_symbols(const bpe_table *t, bpe_scratch *s, const uint8_t *word,
                                 size_t count, recorded_word w, sampling *r) {
    enum { STEP = 8 }; /* a merge costs as much as this many bytes */
    const uint32_t *start = s->start;
    uint32_t *symbol = s->symbol, *next = s->next, *prev = s->prev, *rank = s->rank;
    size_t n_heap = 0;
    for (size_t i = 0; i < count; i++) {
        if (interrupted(s->interrupt, 1)) return false;
        next[i] = (uint32_t)i + 1;
        prev[i + 1] = (uint32_t)i;
        rank[i] = i + 1 < count ? first_rank(t, word, symbol, i) : BPE_NO_RANK;
        if (w.rec && i + 1 < count) rank[i] = allowed(t, w, rank[i], start[i], start[i + 2]);
        if (rank[i] != BPE_NO_RANK && !push(s, &n_heap, rank[i], i)) return false;
    }
    if (!heap_make(s->heap, n_heap, s->interrupt)) return false;
    bool traced = trace_of(w.rec);
    if (traced && !trace_symbols(w, word, start, count)) return false;
    while (n_heap) {
        if (interrupted(s->interrupt, STEP)) return false;
        uint32_t top = (uint32_t)(s->heap[0] >> 32);
        size_t i = (uint32_t)s->heap[0];
        s->heap[0] = s->heap[--n_heap];
        heap_down(s->heap, n_heap, 0);
        if (r) {
            uint64_t pair = (uint64_t)top << 32 | i;
            if (sampling_skips(r)) {
                if (!bytebuf_append(&r->skipped, &pair, sizeof pair)) return false;
                continue;
            }
            return_skipped(s, r, &n_heap);
        }
        /* A rank identifies its pair, so if the rank is equal, the pair is still there. */
        if (rank[i] != top) continue;
        size_t gone = next[i], after = next[gone];
        if (traced && !trace_merge(t, s, w, word, i, gone, after, top)) return false;
        symbol[i] = bpe_merged(t, top);
        rank[gone] = BPE_NO_RANK;
        next[i] = (uint32_t)after;
        prev[after] = (uint32_t)i;
        size_t at[2] = {i, i ? prev[i] : i};
        for (int k = 0; k < (i ? 2 : 1); k++) {
            size_t p = at[k], q = next[p];
            rank[p] = q < count ? rank_of(t, symbol[p], symbol[q]) : BPE_NO_RANK;
            if (w.rec && q < count) rank[p] = allowed(t, w, rank[p], start[p], start[next[q]]);
            if (rank[p] == BPE_NO_RANK) continue;
            if (!push(s, &n_heap, rank[p], p)) return false;
            heap_up(s->heap, n_heap - 1);
        }
    }
    return true;
}

/* Appends the ids of the symbols that merge_symbols left. */
static bool emit_symbols(const bpe_table *t, bpe_scratch *s, const uint8_t *word, size_t count,
                         recorded_word w, idbuf *out) {
    const uint32_t *start = s->start, *symbol = s->symbol, *next = s->next;
    bool traced = trace_of(w.rec);
    for (size_t i = 0; i < count; i = next[i]) {
        if (interrupted(s->interrupt, 1)) return false;
        size_t n = start[next[i]] - start[i];
        size_t before = out->n;
        if (symbol[i] >= t->n_tokens) {
            ggtok_bpe_emit_byte_tokens(t, word + start[i], n, out);
            check_bytes(w, start[i], n, out, before);
            if (!note_bytes(t, w, word + start[i], n, start[i])) return false;
            if (traced && !trace_bytes(w, out, before)) return false;
        } else if (w.rec && !recorder_allows(w.rec, (int32_t)symbol[i], w.at + start[i], n)) {
            emit_forbidden(t, w, symbol[i], word + start[i], n, start[i], out);
        } else {
            out->data[out->n++] = (int32_t)symbol[i];
            if (w.rec && !ggtok_recorder_add_span(w.rec, w.at + start[i], n)) return false;
            ggtok_how how = next[i] == i + 1 ? GGTOK_HOW_SYMBOL : GGTOK_HOW_MERGED;
            if (traced && !ggtok_trace_last(w.rec, (int32_t)symbol[i], how, NULL)) return false;
        }
    }
    return true;
}

static bool merge_all(const bpe_table *t, bpe_scratch *s, const uint8_t *word, size_t count,
                      recorded_word w) {
    return merge_symbols(t, s, word, count, w, NULL);
}

static bool merge_skipping(const bpe_table *t, bpe_scratch *s, const uint8_t *word, size_t count,
                           sampling *r) {
    r->skipped.n = 0;
    return merge_symbols(t, s, word, count, (recorded_word){NULL, 0}, r);
}

/* Merges a word of any length; `out` has room for its ids. `r` may be NULL. */
static ggtok_status merge_word(const bpe_table *t, const vocab *v, bpe_scratch *s,
                               const uint8_t *word, size_t n, recorded_word w, sampling *r,
                               idbuf *out, ggtok_error *err) {
    if (n >= UINT32_MAX) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                               "the text contains a single word of %llu bytes; "
                               "words are limited to 4 GiB",
                               (unsigned long long)n);
    }
    if (!reserve(s, n)) return ggtok_error_memory(err);
    size_t count = split_word(t, v, word, n, n, s->symbol, s->start, s->interrupt);
    bool ok = count && (r ? merge_skipping(t, s, word, count, r) : merge_all(t, s, word, count, w));
    ok = ok && emit_symbols(t, s, word, count, w, out);
    return ok ? GGTOK_OK : ggtok_error_failed(s->interrupt, err);
}

/* ---- many symbols, unrecorded: windows ---- */

typedef struct merging {
    const bpe_table *t;
    const vocab *v;
    bpe_scratch *s;
    bool has_lanes;
} merging;

static bool merge_one(const merging *m, merge_window *w) {
    bpe_scratch *s = m->s;
    if (!reserve(s, w->most)) return false;
    size_t count = split_word(m->t, m->v, w->p, w->n, w->most, s->symbol, s->start, s->interrupt);
    if (!count) return false;
    merged_symbol *out = w->merged.data;
    uint32_t end = s->start[count];
    w->merged.n = 0;
    if (count <= SHORT) {
        count = merge_few(m->t, w->p, count, s->symbol, s->start);
        for (size_t i = 0; i < count; i++)
            out[w->merged.n++] = (merged_symbol){s->start[i], s->symbol[i]};
    } else {
        if (!merge_all(m->t, s, w->p, count, (recorded_word){NULL, 0})) return false;
        for (size_t i = 0; i < count; i = s->next[i])
            out[w->merged.n++] = (merged_symbol){s->start[i], s->symbol[i]};
    }
    out[w->merged.n].start = end;
    return true;
}

static bool merge_windows(const void *model, merge_window *const *windows, size_t n) {
    const merging *m = model;
    bpe_task task[LONG_WORD_PARTS];
    size_t n_tasks = 0;
    for (size_t i = 0; i < n; i++) {
        merge_window *w = windows[i];
        if (!ggtok_merged_reserve(&w->merged, w->most)) return false;
        if (!m->has_lanes || w->most > BPE_TASK_MAX) {
            if (!merge_one(m, w)) return false;
            continue;
        }
        task[n_tasks].word = w->p;
        task[n_tasks].n = (uint32_t)(w->n < w->most ? w->n : w->most);
        task[n_tasks++].merged = &w->merged;
    }
    if (n_tasks) ggtok_bpe_merge_tasks(m->t, task, n_tasks);
    return true;
}

ggtok_status ggtok_bpe_merge_word(const bpe_table *t, const vocab *v, bpe_scratch *s,
                                  const uint8_t *word, size_t n, idbuf *out, ggtok_error *err) {
    /* As bytes, the U+2581 for a space needs three ids. */
    if (!idbuf_reserve(out, mem_mul(n, t->escapes ? 3 : 2))) return ggtok_error_memory(err);
    if (n <= SHORT && !PLAIN) {
        uint32_t symbol[SHORT], start[SHORT + 1];
        size_t count = split_word(t, v, word, n, SHORT, symbol, start, NULL);
        count = merge_few(t, word, count, symbol, start);
        for (size_t i = 0; i < count; i++) emit(t, word, symbol[i], start[i], start[i + 1], out);
        return GGTOK_OK;
    }
    bool slow = PLAIN || !long_word_suits(n);
    if (!slow) {
        const merging m = {t, v, s, ggtok_bpe_has_lanes(t)};
        const merge_ops ops = {merge_windows, &m, SHORT, m.has_lanes};
        const merged_symbols *merged =
            ggtok_long_word_merge(&s->long_word, &ops, word, n, s->interrupt, &slow);
        for (size_t i = 0; merged && i < merged->n; i++)
            emit(t, word, merged->data[i].value, merged->data[i].start, merged->data[i + 1].start,
                 out);
        if (!slow) return merged ? GGTOK_OK : ggtok_error_failed(s->interrupt, err);
    }
    return merge_word(t, v, s, word, n, (recorded_word){NULL, 0}, NULL, out, err);
}

ggtok_status ggtok_bpe_merge_recorded(const bpe_table *t, bpe_scratch *s, recorder *rec, size_t at,
                                      size_t n, idbuf *out, ggtok_error *err) {
    if (!idbuf_reserve(out, mem_mul(n, t->escapes ? 3 : 2))) return ggtok_error_memory(err);
    return merge_word(t, rec->v, s, rec->text.data + at, n, (recorded_word){rec, at}, NULL, out,
                      err);
}

ggtok_status ggtok_bpe_merge_sampled(const bpe_table *t, const vocab *v, bpe_scratch *s,
                                     sampling *r, const uint8_t *word, size_t n, idbuf *out,
                                     ggtok_error *err) {
    if (!idbuf_reserve(out, mem_mul(n, t->escapes ? 3 : 2))) return ggtok_error_memory(err);
    return merge_word(t, v, s, word, n, (recorded_word){NULL, 0}, r, out, err);
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Computes the index of a rank. If ranks include symbols, they have gaps: the index is then the
 * rank's position among all ranks, plus the number of preceding merges in the file that belong to
 * no pair. */
bool ggtok_bpe_file_rank(const bpe_table *t, bpe_scratch *s, uint32_t rank, uint32_t *index) {
    *index = rank;
    if (t->merged) return true;
    if (!s->ranks) {
        if (!(s->ranks = ggtok_mem_alloc(mem_mul(t->n_pairs, sizeof *s->ranks)))) return false;
        uint64_t mask = ((uint64_t)1 << t->rank_bits) - 1;
        for (size_t i = 0; i <= t->pair_mask; i++) {
            if (t->pairs[i]) s->ranks[s->n_ranks++] = (uint32_t)(t->pairs[i] & mask) - 1;
        }
        qsort(s->ranks, s->n_ranks, sizeof *s->ranks, by_value);
    }
    size_t low = 0, high = s->n_ranks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    /* The merge unused[k] comes before the pair if unused[k] <= low + k. */
    size_t from = 0, to = t->n_unused;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (t->unused[middle] <= low + middle)
            from = middle + 1;
        else
            to = middle;
    }
    *index = (uint32_t)(low + from);
    return true;
}

void ggtok_bpe_scratch_free(bpe_scratch *s) {
    ggtok_mem_free(s->ranks);
    ggtok_mem_free(s->symbol);
    ggtok_mem_free(s->start);
    ggtok_mem_free(s->next);
    ggtok_mem_free(s->prev);
    ggtok_mem_free(s->rank);
    ggtok_mem_free(s->heap);
    ggtok_long_word_free(&s->long_word);
    memset(s, 0, sizeof *s);
}
