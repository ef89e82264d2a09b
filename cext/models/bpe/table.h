/*
 * The merges of a BPE vocabulary, as a table over symbols.
 *
 * A symbol is a string that can occur between merges: at first a single character, later the result
 * of a merge. Symbols that are tokens have the token's id; the others (the result of a merge
 * needn't be a token) are numbered from n_tokens on. All strings are interned at load, so that
 * merging handles only integers; a pair of symbols maps to its rank and to the symbol it becomes.
 */
#ifndef GGTOK_BPE_TABLE_H
#define GGTOK_BPE_TABLE_H

#include "index/interned.h"
#include "models/bpe/cuts.h"
#include "vocab/vocab.h"

#define BPE_NO_RANK UINT32_MAX
#define BPE_PAIR_FACTOR 0x9E3779B97F4A7C15u
#define BPE_NO_SYMBOL UINT32_MAX /* a character that occurs in no merge and no token */

/* Strings that are symbols but not tokens. */
typedef struct bpe_extras {
    bytebuf text;
    uint32_t *off; /* [n + 1], offsets into text */
    uint32_t cap;
    interned set;
} bpe_extras;

typedef struct bpe_table {
    uint32_t n_tokens;
    bool raw_utf8; /* symbols are UTF-8 characters, not bytes in GPT-2's byte map */
    bool escapes;  /* each space in a word stands for U+2581 */
    bpe_extras extras;
    /* Pair -> rank, open addressing, at most 0.6 full. A slot is
     *     left : symbol_bits | right : symbol_bits | rank + 1 : rank_bits
     * and 0 when free: 8 bytes, so that a look-up takes one cache line.
     *
     * Only the order of the ranks matters, not their values. If the symbols that successive merges
     * produce are ascending (trainers number them in this order), a rank is
     *     symbol | index among the merges that make it : repeat_bits
     * and includes what the pair becomes, which saves another look-up. */
    uint64_t *pairs; /* in buckets; see bpe_pair_at */
    void *pair_block;
    size_t pair_mask;
    size_t pair_reach;    /* greatest distance from a home slot; see base/hash.h */
    uint64_t pair_factor; /* BPE_PAIR_FACTOR, unless the file's pairs are chosen to collide */
    unsigned pair_shift, symbol_bits, rank_bits, repeat_bits;
    uint32_t *merged; /* by rank: the symbol that the pair becomes; NULL: ranks include it */
    /* Used if `merged` is NULL: ascending indices of the file's merges without an entry in
     * `pairs` (duplicates, and merges without two halves). */
    uint32_t *unused;
    size_t n_unused, n_pairs;
    /* The ranks of the merges of two bytes. They save the look-ups for the initial symbols of a
     * word. Not used if `raw_utf8`, where they wouldn't be exact. */
    uint32_t byte_rank[256][256];
    bpe_cuts cuts;
    uint8_t byte_char[256][2]; /* GPT-2's character for each byte, in UTF-8; [1] == 0: one byte */
    uint32_t byte_symbol[256]; /* initial symbol for a byte (raw_utf8: for an ASCII character) */
    /* The tokens to which a byte falls back if no other token contains it: its <0xXX> token
     * (raw_utf8), or the one-byte tokens for the one or two bytes of its GPT-2 character; -1:
     * none. */
    int32_t fallback[256][2];
} bpe_table;

ggtok_status ggtok_bpe_table_build(bpe_table *t, const vocab *v, const gguf *g, ggtok_error *err);
void ggtok_bpe_table_free(bpe_table *t);

/* Whether two tables for the same tokens were built from the same merges. */
bool ggtok_bpe_table_same(const bpe_table *a, const bpe_table *b);

/* Returns the symbol for one character's bytes, or BPE_NO_SYMBOL. */
uint32_t ggtok_bpe_symbol(const bpe_table *t, const vocab *v, const uint8_t *p, size_t n);

static inline uint64_t bpe_pair_key(const bpe_table *t, uint32_t left, uint32_t right) {
    return (uint64_t)left << t->symbol_bits | right;
}

static inline size_t bpe_pair_slot(const bpe_table *t, uint64_t key) {
    return (size_t)(((key ^ key >> 15) * t->pair_factor) >> t->pair_shift);
}

/* Returns the slot that the search for a pair reaches after `steps` steps. The search visits first
 * the other slots of the home bucket, then the next bucket, so a bucket that isn't full ends it. */
enum { BPE_BUCKET = 8 };
static inline size_t bpe_pair_at(size_t own, size_t steps, size_t mask) {
    return ((own + steps / BPE_BUCKET * BPE_BUCKET) & mask) ^ steps % BPE_BUCKET;
}

/* Returns the rank of the merge of two symbols, or BPE_NO_RANK. */
static inline uint32_t bpe_rank(const bpe_table *t, uint32_t left, uint32_t right) {
    uint64_t key = bpe_pair_key(t, left, right), mask = ((uint64_t)1 << t->rank_bits) - 1;
    size_t own = bpe_pair_slot(t, key);
    for (size_t steps = 0;; steps++) {
        uint64_t slot = t->pairs[bpe_pair_at(own, steps, t->pair_mask)];
        /* BPE_NO_RANK if the slot is free */
        if ((slot >> t->rank_bits == key) | !slot) return (uint32_t)(slot & mask) - 1;
        if (steps == t->pair_reach) return BPE_NO_RANK;
    }
}

/* Returns the symbol that the pair with this rank becomes. */
static inline uint32_t bpe_merged(const bpe_table *t, uint32_t rank) {
    return t->merged ? t->merged[rank] : rank >> t->repeat_bits;
}

/* Appends the tokens to which a symbol that isn't a token falls back, given its bytes. `out` must
 * have room for 3 * n ids. */
void ggtok_bpe_emit_byte_tokens(const bpe_table *t, const uint8_t *p, size_t n, idbuf *out);

#endif
