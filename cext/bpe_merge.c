#include "bpe_merge.h"

#include "bits.h"
#include "heap.h"
#include "newer.h"
#include "spaces.h"
#include "utf8.h"

/*
 * Positions: the word's first symbols are numbered from left to right, and a
 * merged symbol keeps the position of its leftmost part. rank[i] is that of the
 * pair that begins at position i, BPE_NO_RANK if it does not merge or i is gone.
 */

enum { SHORT = 32 };

static void emit_bytes(const bpe_table *t, const uint8_t *p, size_t n, idbuf *out) {
    for (size_t i = 0; i < n; i++) {
        if (p[i] == ' ' && t->escapes) {
            emit_bytes(t, (const uint8_t *)SPACE_MARK, 3, out);
            continue;
        }
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

static inline void fetch(const void *p) {
#if defined(__GNUC__)
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

/* What the pair becomes is fetched, since it is likely asked for next. */
static inline uint32_t rank_of(const bpe_table *t, uint32_t left, uint32_t right) {
    if (left == BPE_NO_SYMBOL || right == BPE_NO_SYMBOL) return BPE_NO_RANK;
    uint32_t rank = bpe_rank(t, left, right);
    if (t->merged && rank != BPE_NO_RANK) fetch(&t->merged[rank]);
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
    heap_make(s->heap, n_heap);
    while (n_heap) {
        uint32_t top = (uint32_t)(s->heap[0] >> 32);
        size_t i = (uint32_t)s->heap[0];
        s->heap[0] = s->heap[--n_heap];
        heap_down(s->heap, n_heap, 0);
        /* A rank names its pair, so an equal rank means the pair is still there. */
        if (rank[i] != top) continue;
        size_t gone = next[i], after = next[gone];
        symbol[i] = bpe_merged(t, top);
        rank[gone] = BPE_NO_RANK;
        next[i] = (uint32_t)after;
        prev[after] = (uint32_t)i;
        size_t at[2] = {i, i ? prev[i] : i};
        for (int k = 0; k < (i ? 2 : 1); k++) {
            size_t p = at[k], q = next[p];
            rank[p] = q < count ? rank_of(t, symbol[p], symbol[q]) : BPE_NO_RANK;
            if (rank[p] == BPE_NO_RANK) continue;
            if (!push(s, &n_heap, rank[p], p)) return false;
            heap_up(s->heap, n_heap - 1);
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

/* ---- many words at a time ---- */

/*
 * Each merge needs two look-ups in a table larger than the caches, so most of its time is
 * spent waiting. A word is therefore left when it has asked for them, and taken up again
 * when the others had their turn. What is done to it is what merge_short does.
 */
enum { PLACE_BITS = 5, RANK_BITS = 32 - PLACE_BITS, PLACES = BPE_JOB_MAX + 2 };

/* Places are counted from 1 here, so that each symbol has one before it. */
typedef struct in_merge {
    bpe_job *job;
    uint64_t begins; /* the places where symbols begin; and 0, and the one behind the word */
    uint32_t at;     /* the symbol that was merged last, */
    uint32_t before; /* and the one before it */
    struct {         /* the pairs that it is now part of, and their slots, which were fetched */
        uint64_t key;
        size_t slot;
    } left, right;
    /* Of each pair: its rank and, in the last bits, its place - 1; so the least of them is
     * the leftmost of those of lowest rank. [0] is not read. */
    uint32_t order[PLACES];
    uint32_t symbol[PLACES];
} in_merge;

static const uint32_t no_order = BPE_NO_RANK << PLACE_BITS; /* or more: no merge */

bool bpe_merges_many(const bpe_table *t) {
    return !PLAIN && !t->raw_utf8 && !t->merged && t->symbol_bits + t->again_bits < RANK_BITS;
}

/* What of the table is needed here, by value: of what lies elsewhere, compilers have to
 * think that it changes with each byte that is written. */
typedef struct pairs {
    const uint64_t *slots;
    size_t mask, reach;
    uint64_t factor;
    unsigned shift, symbol_bits, rank_bits, again_bits;
} pairs;

ALWAYS_INLINE size_t slot_of(pairs t, uint64_t key) {
    return (size_t)(((key ^ key >> 15) * t.factor) >> t.shift);
}

/* The pair of two places' symbols, or a key that no pair has: that is looked for like any
 * other, as where in a word something is merged can't be predicted. */
ALWAYS_INLINE uint64_t pair_of(pairs t, const in_merge *m, size_t left, size_t right, bool is_one) {
    uint64_t key = (uint64_t)m->symbol[left] << t.symbol_bits | m->symbol[right];
    return key | ((uint64_t)is_one - 1);
}

#ifdef NEWER_X86
#include <immintrin.h>

/* bpe_rank, given the pair's slot, whose bucket nearly always tells. */
static NEWER inline uint32_t rank_at_newer(pairs t, size_t slot_at, uint64_t key) {
    const __m128i shift = _mm_cvtsi32_si128((int)t.rank_bits);
    const __m256i keys = _mm256_set1_epi64x((int64_t)key);
    size_t i = slot_at & ~(size_t)(BPE_BUCKET - 1);
    for (size_t steps = BPE_BUCKET;; i = (i + BPE_BUCKET) & t.mask, steps += BPE_BUCKET) {
        __m256i slots = _mm256_load_si256((const __m256i *)(const void *)&t.slots[i]);
        __m256i found = _mm256_cmpeq_epi64(_mm256_srl_epi64(slots, shift), keys);
        __m256i is_free = _mm256_cmpeq_epi64(slots, _mm256_setzero_si256());
        __m256i ends = _mm256_or_si256(found, is_free);
        if (_mm256_testz_si256(ends, ends) && steps <= t.reach) continue;
        __m256i slot = _mm256_and_si256(slots, found); /* of one at most */
        __m128i half =
            _mm_or_si128(_mm256_castsi256_si128(slot), _mm256_extracti128_si256(slot, 1));
        half = _mm_or_si128(half, _mm_unpackhi_epi64(half, half));
        return (uint32_t)((uint64_t)_mm_cvtsi128_si64(half) & (((uint64_t)1 << t.rank_bits) - 1)) -
               1;
    }
}
#else
#define rank_at_newer rank_at
#endif

/* bpe_rank, given the pair's slot. */
ALWAYS_INLINE uint32_t rank_at(pairs t, size_t own, uint64_t key) {
    for (size_t steps = 0;; steps++) {
        uint64_t slot = t.slots[bpe_pair_at(own, steps, t.mask)];
        if ((slot >> t.rank_bits == key) | !slot | (steps == t.reach)) {
            bool found = slot >> t.rank_bits == key;
            return found ? (uint32_t)(slot & (((uint64_t)1 << t.rank_bits) - 1)) - 1 : BPE_NO_RANK;
        }
    }
}

ALWAYS_INLINE uint32_t order_of(uint32_t rank, size_t place) {
    return rank << PLACE_BITS | (uint32_t)(place - 1);
}

/* The least order. What was written just now would have to be waited for, since all are
 * read at once: it is not among them. */
ALWAYS_INLINE uint32_t least_order(const in_merge *m) {
    uint32_t least = no_order;
    for (size_t k = 1; k <= BPE_JOB_MAX; k++) least = m->order[k] < least ? m->order[k] : least;
    return least;
}

/* The last place before `place` where a symbol begins. */
ALWAYS_INLINE size_t begin_before(uint64_t begins, size_t place) {
    return bits_highest(begins & (((uint64_t)1 << place) - 1));
}

/* Merges the pair of that order and asks for those that it is now part of. */
ALWAYS_INLINE void merge_pair(pairs t, in_merge *m, uint32_t order) {
    size_t at = order % BPE_JOB_MAX + 1, before = begin_before(m->begins, at);
    uint64_t behind = m->begins & (UINT64_MAX - 1) << at;
    size_t gone = bits_lowest(behind), after = bits_lowest(behind & (behind - 1));
    m->begins ^= (uint64_t)1 << gone;
    m->symbol[at] = (order >> PLACE_BITS) >> t.again_bits;
    m->order[at] = m->order[gone] = m->order[before] = no_order;
    m->at = (uint32_t)at;
    m->before = (uint32_t)before;
    m->left.key = pair_of(t, m, before, at, before != 0);
    m->right.key = pair_of(t, m, at, after, after <= m->job->n);
    m->left.slot = slot_of(t, m->left.key);
    m->right.slot = slot_of(t, m->right.key);
    fetch(&t.slots[m->left.slot]);
    fetch(&t.slots[m->right.slot]);
}

/* False: nothing is merged. */
ALWAYS_INLINE bool begin_job(const bpe_table *table, pairs t, in_merge *m, bpe_job *job) {
    const uint8_t *word = job->word;
    uint32_t least = no_order;
    m->job = job;
    m->begins = ((uint64_t)1 << (job->n + 2)) - 1;
    for (size_t i = 1; i <= BPE_JOB_MAX; i++) m->order[i] = no_order;
    m->symbol[0] = m->symbol[job->n + 1] = 0;
    m->symbol[1] = table->byte_symbol[word[0]];
    for (size_t i = 1; i < job->n; i++) {
        uint32_t order = order_of(table->byte_rank[word[i - 1]][word[i]], i);
        m->symbol[i + 1] = table->byte_symbol[word[i]];
        m->order[i] = order;
        least = order < least ? order : least;
    }
    if (least >= no_order) return false;
    merge_pair(t, m, least);
    return true;
}

/* Looks up the pairs beside the symbol that was merged last, and merges the next one. False:
 * there is none. */
ALWAYS_INLINE bool go_on(pairs t, in_merge *m, bool newer) {
    size_t at = m->at, before = m->before;
    uint32_t least = least_order(m);
    uint32_t left =
        newer ? rank_at_newer(t, m->left.slot, m->left.key) : rank_at(t, m->left.slot, m->left.key);
    uint32_t right = newer ? rank_at_newer(t, m->right.slot, m->right.key)
                           : rank_at(t, m->right.slot, m->right.key);
    left = order_of(left, before);
    right = order_of(right, at);
    m->order[before] = left;
    m->order[at] = right;
    least = left < least ? left : least;
    least = right < least ? right : least;
    if (least >= no_order) return false;
    merge_pair(t, m, least);
    return true;
}

static void end_job(const bpe_table *t, const in_merge *m) {
    bpe_job *job = m->job;
    idbuf out = {job->ids, 0, BPE_JOB_IDS};
    for (size_t at = 1, next; at <= job->n; at = next) {
        next = bits_lowest(m->begins & (UINT64_MAX - 1) << at);
        if (m->symbol[at] < t->n_tokens) {
            out.data[out.n++] = (int32_t)m->symbol[at];
        } else {
            emit_bytes(t, job->word + at - 1, next - at, &out);
        }
    }
    job->n_ids = (uint32_t)out.n;
}

/* Begins the next job in which something is merged. False: there is none. */
ALWAYS_INLINE bool begin_next(const bpe_table *table, pairs t, in_merge *m, bpe_job *jobs, size_t n,
                              size_t *begun) {
    while (*begun < n) {
        if (begin_job(table, t, m, &jobs[(*begun)++])) return true;
        end_job(table, m);
    }
    return false;
}

ALWAYS_INLINE void merge_jobs(const bpe_table *table, bpe_job *jobs, size_t n, bool newer) {
    enum { AT_A_TIME = 16 };
    const pairs t = {table->pairs,      table->pair_mask,   table->pair_reach, table->pair_factor,
                     table->pair_shift, table->symbol_bits, table->rank_bits,  table->again_bits};
    in_merge turns[AT_A_TIME];
    size_t begun = 0, n_turns = 0;
    while (n_turns < AT_A_TIME && begin_next(table, t, &turns[n_turns], jobs, n, &begun)) n_turns++;
    while (n_turns) {
        for (size_t i = 0; i < n_turns; i++) {
            if (go_on(t, &turns[i], newer)) continue;
            end_job(table, &turns[i]);
            if (!begin_next(table, t, &turns[i], jobs, n, &begun)) turns[i--] = turns[--n_turns];
        }
    }
}

static NEWER void merge_jobs_newer(const bpe_table *t, bpe_job *jobs, size_t n) {
    merge_jobs(t, jobs, n, true);
}

void bpe_merge_many(const bpe_table *t, bpe_job *jobs, size_t n) {
    if (newer_machine()) {
        merge_jobs_newer(t, jobs, n);
    } else {
        merge_jobs(t, jobs, n, false);
    }
}

ggtok_status bpe_merge_word(const bpe_table *t, const vocab *v, bpe_scratch *s, const uint8_t *word,
                            size_t n, idbuf *out, ggtok_error *err) {
    /* By bytes, a space's mark has three. */
    if (!idbuf_reserve(out, mem_mul(n, t->escapes ? 3 : 2))) return error_memory(err);
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
