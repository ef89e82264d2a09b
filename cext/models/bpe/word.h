/*
 * Encodes one word: as the token that equals it, or by merges. Also defines the BPE model, and the
 * state that a context keeps for it.
 */
#ifndef GGTOK_BPE_WORD_H
#define GGTOK_BPE_WORD_H

#include "cache/kept_words.h"
#include "models/bpe/merge.h"
#include "models/model.h"
#include "models/tile.h"
#include "models/words.h"
#include "pretok/places.h"
#include "pretok/split.h"
#include "vocab/byte_map.h"

typedef struct bpe_model {
    bpe_table table;
    unsigned pre_flags;
    uint32_t longest[256]; /* by first byte: length of the longest word that is one token */
    /* The same length, by bpe_start(word), for words that begin with three non-ASCII bytes. A whole
     * Chinese sentence is one word, but a token as long seldom begins with the same bytes. */
    uint32_t longest_high[4096];
    ggtok_split_fn split; /* the caller's splitter, which replaces the pre-tokenizer */
    void *split_user;
} bpe_model;

/* The caches, and the scratch memory for encoding single words; models/bpe/misses.h defines that
 * for batches. */
typedef struct bpe_state {
    word_cache words;
    word_cache pieces; /* parts of words, which are never looked up in the vocabulary */
    kept_words kept;
    bpe_scratch merge;
    bytebuf mapped;  /* a word in GPT-2's characters */
    bytebuf text;    /* the fragment, made well-formed */
    bytebuf spaced;  /* the well-formed fragment with its spaces escaped */
    split_ends ends; /* the ends of the words from the caller's splitter */
    struct bpe_misses *misses;
    pretok_places *places; /* for may_cut; created lazily */
    tiles tiles;
} bpe_state;

static inline uint32_t bpe_start(const uint8_t *word) {
    uint32_t three = (uint32_t)word[0] << 16 | (uint32_t)word[1] << 8 | word[2];
    return three * 0x9E3779B1u >> 20;
}

/* Whether the word is too short to be worth cutting into pieces. In scripts with three-byte
 * characters, such as Chinese, shorter words are cut, too: their pieces are few and recur. */
static inline bool bpe_is_whole(const uint8_t *word, size_t n) {
    enum { WHOLE = 31, WHOLE_WIDE = 15, WIDE = 0xE0 };
    return n <= WHOLE_WIDE || (n <= WHOLE && word[0] < WIDE && word[1] < WIDE);
}

/* Computes `longest` and `longest_high`. */
void ggtok_bpe_find_longest(bpe_model *m, const vocab *v);

/* Whether the word must be looked up in the vocabulary before it is merged, and is short enough to
 * be a token. */
bool ggtok_bpe_may_be_token(const bpe_model *m, const vocab *v, const uint8_t *word, size_t n);

/* Writes the word to `out`, which has room for 2 * n bytes, as the vocabulary spells it with
 * GPT-2's byte map. Returns the number of bytes. */
static inline size_t bpe_spell(const bpe_table *t, const uint8_t *word, size_t n, uint8_t *out) {
    uint8_t *w = out;
    for (size_t i = 0; i < n; i++) { /* always writes two bytes; the second may be overwritten */
        memcpy(w, t->byte_char[word[i]], 2);
        w += 1 + (w[1] != 0);
    }
    return (size_t)(w - out);
}

/* Like bpe_spell, if `room` bytes (>= n) are readable at `word` and `out` has room for 16 more
 * bytes. A short word whose characters, except the first, represent themselves is copied without a
 * loop of unpredictable length. Nearly all words of ASCII letters are of this kind. */
static inline size_t bpe_spell_within(const bpe_table *t, const uint8_t *word, size_t n,
                                      size_t room, uint8_t *out) {
    if (n <= 16 && room > 16 && byte_map_is_plain(word + 1, n - 1)) {
        memcpy(out, t->byte_char[word[0]], 2);
        size_t first = 1 + (out[1] != 0);
        memcpy(out + first, word + 1, 16);
        return first + n - 1;
    }
    return bpe_spell(t, word, n, out);
}

/* Sets *id to the token whose text is the word as the vocabulary spells it, or to -1. Returns false
 * if out of memory. */
bool ggtok_bpe_find_token(const bpe_model *m, bpe_state *s, const vocab *v, const uint8_t *word,
                          size_t n, int32_t *id);

/* Cuts a word into pieces that no merge joins, and encodes each from the cache or with `encode`. A
 * word that isn't worth cutting is merged whole. */
ggtok_status ggtok_bpe_encode_pieces(const model_call *call, word_fn encode, const uint8_t *word,
                                     size_t n, size_t room);

/* Encode a piece or a word that isn't cached: append its ids and store them. */
ggtok_status ggtok_bpe_encode_piece(const model_call *call, const uint8_t *piece, size_t n,
                                    size_t room);
ggtok_status ggtok_bpe_encode_word(const model_call *call, const uint8_t *word, size_t n,
                                   size_t room);

#endif
