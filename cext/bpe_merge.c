#include "bpe_merge.h"

#include "utf8.h"

/*
 * Positions: the word's first symbols are numbered from left to right, and a
 * merged symbol keeps the position of its leftmost part. rank[i] is that of the
 * pair that begins at position i, BPE_NO_RANK if it does not merge or i is gone.
 */

enum { SHORT = 32 };

static void emit_bytes(const bpe_table *t, const uint8_t *p, size_t n, idbuf *out) {
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            if (t->fallback[p[i]][k] >= 0) out->data[out->n++] = t->fallback[p[i]][k];
        }
    }
}

/* First symbols of a word; start[i] is where the i-th begins (start[count] == n).
 * Byte for byte, so start[i] == i, unless the symbols are characters. */
static size_t split_word(const bpe_table *t, const vocab *v, const uint8_t *word, size_t n,
                         uint32_t *symbol, uint32_t *start) {
    size_t count = 0;
    if (!t->raw_utf8) {
        for (; count < n; count++) {
            symbol[count] = t->byte_symbol[word[count]];
            start[count] = (uint32_t)count;
        }
    } else {
        for (size_t i = 0; i < n; count++) {
            size_t len = utf8_lead_len(word[i]);
            if (len > n - i) len = n - i;
            start[count] = (uint32_t)i;
            symbol[count] = len == 1 ? t->byte_symbol[word[i]] : bpe_symbol(t, v, word + i, len);
            i += len;
        }
    }
    start[count] = (uint32_t)n;
    return count;
}

/* What the pair becomes is fetched, since it is likely asked for next. */
static inline uint32_t rank_of(const bpe_table *t, uint32_t left, uint32_t right) {
    if (left == BPE_NO_SYMBOL || right == BPE_NO_SYMBOL) return BPE_NO_RANK;
    uint32_t rank = bpe_rank(t, left, right);
#if defined(__GNUC__)
    if (rank != BPE_NO_RANK) __builtin_prefetch(&t->merged[rank]);
#endif
    return rank;
}

/* The same for the word's i-th and next first symbol. */
static inline uint32_t first_rank(const bpe_table *t, const uint8_t *word, const uint32_t *symbol,
                                  size_t i) {
    return t->raw_utf8 || PLAIN ? rank_of(t, symbol[i], symbol[i + 1])
                                : t->byte_rank[word[i]][word[i + 1]];
}

/* Few symbols: look through all ranks for the least each time. */
static void merge_short(const bpe_table *t, const uint8_t *word, size_t count, uint32_t *symbol,
                        const uint32_t *start, idbuf *out) {
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
        symbol[i] = t->merged[least];
        rank[gone] = BPE_NO_RANK;
        next[i] = (uint8_t)after;
        prev[after] = (uint8_t)i;
        rank[i] = after < count ? rank_of(t, symbol[i], symbol[after]) : BPE_NO_RANK;
        if (i) {
            size_t before = prev[i];
            rank[before] = rank_of(t, symbol[before], symbol[i]);
        }
    }
    for (size_t i = 0; i < count; i = next[i]) {
        if (symbol[i] < t->n_tokens) {
            out->data[out->n++] = (int32_t)symbol[i];
        } else {
            emit_bytes(t, word + start[i], start[next[i]] - start[i], out);
        }
    }
}

/* ---- many symbols: a heap of (rank, position), out-of-date entries skipped ---- */

static bool reserve(bpe_scratch *s, size_t n) {
    if (n <= s->cap) return true;
    size_t cap = n + n / 2;
    uint32_t **arrays[] = {&s->symbol, &s->start, &s->next, &s->prev, &s->rank};
    for (int i = 0; i < 5; i++) {
        uint32_t *p = mem_realloc(*arrays[i], mem_mul(cap + 1, sizeof *p));
        if (!p) return false;
        *arrays[i] = p;
    }
    s->cap = cap;
    return true;
}

static void sift_up(uint64_t *heap, size_t i) {
    uint64_t x = heap[i];
    for (; i && heap[(i - 1) / 2] > x; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = x;
}

static void sift_down(uint64_t *heap, size_t n, size_t i) {
    uint64_t x = heap[i];
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && heap[c + 1] < heap[c]) c++;
        if (heap[c] >= x) break;
        heap[i] = heap[c];
    }
    heap[i] = x;
}

static bool push(bpe_scratch *s, size_t *n, uint32_t rank, size_t pos) {
    if (*n == s->heap_cap) {
        size_t cap = s->heap_cap ? s->heap_cap * 2 : 256;
        uint64_t *heap = mem_realloc(s->heap, mem_mul(cap, sizeof *heap));
        if (!heap) return false;
        s->heap = heap;
        s->heap_cap = cap;
    }
    s->heap[(*n)++] = (uint64_t)rank << 32 | pos;
    return true;
}

static bool merge_long(const bpe_table *t, bpe_scratch *s, const uint8_t *word, size_t count,
                       idbuf *out) {
    uint32_t *symbol = s->symbol, *next = s->next, *prev = s->prev, *rank = s->rank;
    size_t n_heap = 0;
    for (size_t i = 0; i < count; i++) {
        next[i] = (uint32_t)i + 1;
        prev[i + 1] = (uint32_t)i;
        rank[i] = i + 1 < count ? first_rank(t, word, symbol, i) : BPE_NO_RANK;
        if (rank[i] != BPE_NO_RANK && !push(s, &n_heap, rank[i], i)) return false;
    }
    for (size_t i = n_heap / 2; i--;) sift_down(s->heap, n_heap, i);
    while (n_heap) {
        uint32_t top = (uint32_t)(s->heap[0] >> 32);
        size_t i = (uint32_t)s->heap[0];
        s->heap[0] = s->heap[--n_heap];
        if (n_heap) sift_down(s->heap, n_heap, 0);
        /* A rank names its pair, so an equal rank means the pair is still there. */
        if (rank[i] != top) continue;
        size_t gone = next[i], after = next[gone];
        symbol[i] = t->merged[top];
        rank[gone] = BPE_NO_RANK;
        next[i] = (uint32_t)after;
        prev[after] = (uint32_t)i;
        size_t at[2] = {i, i ? prev[i] : i};
        for (int k = 0; k < (i ? 2 : 1); k++) {
            size_t p = at[k], q = next[p];
            rank[p] = q < count ? rank_of(t, symbol[p], symbol[q]) : BPE_NO_RANK;
            if (rank[p] == BPE_NO_RANK) continue;
            if (!push(s, &n_heap, rank[p], p)) return false;
            sift_up(s->heap, n_heap - 1);
        }
    }
    for (size_t i = 0; i < count; i = next[i]) {
        if (symbol[i] < t->n_tokens) {
            out->data[out->n++] = (int32_t)symbol[i];
        } else {
            emit_bytes(t, word + s->start[i], s->start[next[i]] - s->start[i], out);
        }
    }
    return true;
}

ggtok_status bpe_merge_word(const bpe_table *t, const vocab *v, bpe_scratch *s, const uint8_t *word,
                            size_t n, idbuf *out, ggtok_error *err) {
    if (!idbuf_reserve(out, mem_mul(n, 2))) return error_memory(err);
    if (n <= SHORT && !PLAIN) {
        uint32_t symbol[SHORT], start[SHORT + 1];
        size_t count = split_word(t, v, word, n, symbol, start);
        merge_short(t, word, count, symbol, start, out);
        return GGTOK_OK;
    }
    if (n >= UINT32_MAX) {
        return error_set(err, GGTOK_ERR_ARGUMENT,
                         "the text holds a single word of %llu bytes; "
                         "words are limited to 4 GiB",
                         (unsigned long long)n);
    }
    if (!reserve(s, n)) return error_memory(err);
    size_t count = split_word(t, v, word, n, s->symbol, s->start);
    if (!merge_long(t, s, word, count, out)) return error_memory(err);
    return GGTOK_OK;
}

void bpe_scratch_free(bpe_scratch *s) {
    mem_free(s->symbol);
    mem_free(s->start);
    mem_free(s->next);
    mem_free(s->prev);
    mem_free(s->rank);
    mem_free(s->heap);
    memset(s, 0, sizeof *s);
}
