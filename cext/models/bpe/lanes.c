/* Merges each word as merge_few in models/bpe/merge.c does. */
#include "models/bpe/lanes.h"

#include "base/bits.h"
#include "base/cpu.h"

enum { PLACE_BITS = 5, RANK_BITS = 32 - PLACE_BITS, PLACES = BPE_TASK_MAX + 2 };

/* The state of one lane. Positions count from 1 here, so that each symbol has a position before
 * it. */
typedef struct lane {
    bpe_task *task;
    uint64_t begins; /* bits for the positions where symbols begin, for 0, and for the word's end */
    uint32_t at;     /* position of the symbol that was merged last */
    uint32_t before; /* position of the symbol before it */
    struct {         /* the two pairs of the merged symbol, and their prefetched slots */
        uint64_t key;
        size_t slot;
    } left, right;
    /* For each pair: its rank and, in the low bits, its position - 1. The least of these numbers
     * belongs to the leftmost pair of lowest rank. [0] is never read. */
    uint32_t order[PLACES];
    uint32_t symbol[PLACES];
} lane;

static const uint32_t no_order = BPE_NO_RANK << PLACE_BITS; /* this or a greater value: no merge */

bool ggtok_bpe_has_lanes(const bpe_table *t) {
    return !PLAIN && !t->raw_utf8 && !t->merged && t->symbol_bits + t->repeat_bits < RANK_BITS;
}

/* Copies of the table's fields. Behind a pointer, they would have to be read again after each write
 * of a byte, which may change any object. */
typedef struct pairs {
    const uint64_t *slots;
    size_t mask, reach;
    uint64_t factor;
    unsigned shift, symbol_bits, rank_bits, repeat_bits;
} pairs;

ALWAYS_INLINE size_t slot_of(pairs t, uint64_t key) {
    return (size_t)(((key ^ key >> 15) * t.factor) >> t.shift);
}

/* Returns the pair of the symbols at two positions or, unless `is_one`, a key that no pair has.
 * Such a key is looked up like any other, since the position of a merge in a word is
 * unpredictable. */
ALWAYS_INLINE uint64_t pair_of(pairs t, const lane *m, size_t left, size_t right, bool is_one) {
    uint64_t key = (uint64_t)m->symbol[left] << t.symbol_bits | m->symbol[right];
    return key | ((uint64_t)is_one - 1);
}

#ifdef CPU_DISPATCH
#include <immintrin.h>

/* Returns what bpe_rank returns, given the pair's home slot. Nearly always, the bucket of that slot
 * suffices. */
static TARGET_AVX2 inline uint32_t rank_at_avx2(pairs t, size_t own, uint64_t key) {
    const __m128i shift = _mm_cvtsi32_si128((int)t.rank_bits);
    const __m256i keys = _mm256_set1_epi64x((int64_t)key);
    size_t i = own & ~(size_t)(BPE_BUCKET - 1);
    for (size_t steps = BPE_BUCKET;; i = (i + BPE_BUCKET) & t.mask, steps += BPE_BUCKET) {
        const __m256i *bucket = (const __m256i *)(const void *)&t.slots[i];
        __m256i a = _mm256_load_si256(bucket), b = _mm256_load_si256(bucket + 1);
        __m256i in_a = _mm256_cmpeq_epi64(_mm256_srl_epi64(a, shift), keys);
        __m256i in_b = _mm256_cmpeq_epi64(_mm256_srl_epi64(b, shift), keys);
        /* at most one slot matches */
        __m256i slot = _mm256_or_si256(_mm256_and_si256(a, in_a), _mm256_and_si256(b, in_b));
        __m256i is_free = _mm256_or_si256(_mm256_cmpeq_epi64(a, _mm256_setzero_si256()),
                                          _mm256_cmpeq_epi64(b, _mm256_setzero_si256()));
        __m256i ends = _mm256_or_si256(slot, is_free);
        if (_mm256_testz_si256(ends, ends) && steps <= t.reach) continue;
        __m128i half =
            _mm_or_si128(_mm256_castsi256_si128(slot), _mm256_extracti128_si256(slot, 1));
        half = _mm_or_si128(half, _mm_unpackhi_epi64(half, half));
        return (uint32_t)((uint64_t)_mm_cvtsi128_si64(half) & (((uint64_t)1 << t.rank_bits) - 1)) -
               1;
    }
}
#else
#define rank_at_avx2 rank_at
#endif

/* Returns what bpe_rank returns, given the pair's home slot. */
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

/* Returns the least order. Call this before new writes to m->order: all elements are read at once,
 * and the read would have to wait for such a write. */
ALWAYS_INLINE uint32_t least_order(const lane *m) {
    uint32_t least = no_order;
    for (size_t k = 1; k <= BPE_TASK_MAX; k++) least = m->order[k] < least ? m->order[k] : least;
    return least;
}

/* Returns the last position before `place` where a symbol begins. */
ALWAYS_INLINE size_t begin_before(uint64_t begins, size_t place) {
    return bits_highest(begins & (((uint64_t)1 << place) - 1));
}

/* Merges the pair with that order, and prefetches the pairs to which the merged symbol belongs. */
ALWAYS_INLINE void merge_pair(pairs t, lane *m, uint32_t order) {
    size_t at = order % BPE_TASK_MAX + 1, before = begin_before(m->begins, at);
    uint64_t after_at = m->begins & (UINT64_MAX - 1) << at;
    size_t gone = bits_lowest(after_at), after = bits_lowest(after_at & (after_at - 1));
    m->begins ^= (uint64_t)1 << gone;
    m->symbol[at] = (order >> PLACE_BITS) >> t.repeat_bits;
    m->order[at] = m->order[gone] = m->order[before] = no_order;
    m->at = (uint32_t)at;
    m->before = (uint32_t)before;
    m->left.key = pair_of(t, m, before, at, before != 0);
    m->right.key = pair_of(t, m, at, after, after <= m->task->n);
    m->left.slot = slot_of(t, m->left.key);
    m->right.slot = slot_of(t, m->right.key);
    PREFETCH(&t.slots[m->left.slot]);
    PREFETCH(&t.slots[m->right.slot]);
}

/* Starts a word. Returns false if nothing merges. */
ALWAYS_INLINE bool lane_begin(const bpe_table *table, pairs t, lane *m, bpe_task *task) {
    const uint8_t *word = task->word;
    uint32_t least = no_order;
    m->task = task;
    m->begins = ((uint64_t)1 << (task->n + 2)) - 1;
    for (size_t i = 1; i <= BPE_TASK_MAX; i++) m->order[i] = no_order;
    m->symbol[0] = m->symbol[task->n + 1] = 0;
    m->symbol[1] = table->byte_symbol[word[0]];
    for (size_t i = 1; i < task->n; i++) {
        uint32_t order = order_of(table->byte_rank[word[i - 1]][word[i]], i);
        m->symbol[i + 1] = table->byte_symbol[word[i]];
        m->order[i] = order;
        least = order < least ? order : least;
    }
    if (least >= no_order) return false;
    merge_pair(t, m, least);
    return true;
}

/* Looks up the two pairs of the symbol that was merged last, and merges the next pair. Returns
 * false if no pair is left. */
ALWAYS_INLINE bool lane_step(pairs t, lane *m, bool avx2) {
    size_t at = m->at, before = m->before;
    uint32_t least = least_order(m);
    uint32_t left =
        avx2 ? rank_at_avx2(t, m->left.slot, m->left.key) : rank_at(t, m->left.slot, m->left.key);
    uint32_t right = avx2 ? rank_at_avx2(t, m->right.slot, m->right.key)
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

static void store_symbols(const lane *m, merged_symbols *out) {
    out->n = 0;
    for (size_t at = 1; at <= m->task->n; at = bits_lowest(m->begins & (UINT64_MAX - 1) << at))
        out->data[out->n++] = (merged_symbol){(uint32_t)at - 1, m->symbol[at]};
    out->data[out->n].start = m->task->n;
}

static void lane_end(const bpe_table *t, const lane *m) {
    bpe_task *task = m->task;
    if (task->merged) {
        store_symbols(m, task->merged);
        return;
    }
    idbuf out = {task->ids, 0, BPE_TASK_IDS};
    for (size_t at = 1, next; at <= task->n; at = next) {
        next = bits_lowest(m->begins & (UINT64_MAX - 1) << at);
        if (m->symbol[at] < t->n_tokens) {
            out.data[out.n++] = (int32_t)m->symbol[at];
        } else {
            ggtok_bpe_emit_byte_tokens(t, task->word + at - 1, next - at, &out);
        }
    }
    task->n_ids = (uint32_t)out.n;
}

/* Starts the next task in which something merges. Returns false if there is none. */
ALWAYS_INLINE bool begin_next(const bpe_table *table, pairs t, lane *m, bpe_task *tasks, size_t n,
                              size_t *begun) {
    while (*begun < n) {
        if (lane_begin(table, t, m, &tasks[(*begun)++])) return true;
        lane_end(table, m);
    }
    return false;
}

ALWAYS_INLINE void run_lanes(const bpe_table *table, bpe_task *tasks, size_t n, bool avx2) {
    enum { LANES = 16 };
    const pairs t = {table->pairs,      table->pair_mask,   table->pair_reach, table->pair_factor,
                     table->pair_shift, table->symbol_bits, table->rank_bits,  table->repeat_bits};
    lane lanes[LANES], *turn[LANES]; /* the first n_lanes in `turn` have a task */
    size_t begun = 0, n_lanes = 0;
    for (size_t i = 0; i < LANES; i++) turn[i] = &lanes[i];
    while (n_lanes < LANES && begin_next(table, t, turn[n_lanes], tasks, n, &begun)) n_lanes++;
    while (n_lanes) {
        for (size_t i = 0; i < n_lanes; i++) {
            if (lane_step(t, turn[i], avx2)) continue;
            lane_end(table, turn[i]);
            if (!begin_next(table, t, turn[i], tasks, n, &begun)) turn[i--] = turn[--n_lanes];
        }
    }
}

static TARGET_AVX2 void run_lanes_avx2(const bpe_table *t, bpe_task *tasks, size_t n) {
    run_lanes(t, tasks, n, true);
}

void ggtok_bpe_merge_tasks(const bpe_table *t, bpe_task *tasks, size_t n) {
    if (cpu_has_avx2()) {
        run_lanes_avx2(t, tasks, n);
    } else {
        run_lanes(t, tasks, n, false);
    }
}
