/* BPE's own, for its two parts: a text's words (model_bpe.c), and those that are new, many
 * at a time (bpe_learn.c). */
#ifndef GGTOK_MODEL_BPE_H
#define GGTOK_MODEL_BPE_H

#include "bpe_merge.h"
#include "model.h"
#include "words.h"

typedef struct bpe_model {
    bpe_table table;
    unsigned pre_flags;
    uint32_t longest[256]; /* by first byte: bytes of the longest word that is one token */
    /* The same by bpe_start(word), for words that begin with three bytes from 0x80 on: a
     * sentence in Chinese is one word, and seldom begins like a token of its length. */
    uint32_t longest_high[4096];
    ggtok_split_fn split; /* the caller's own words, instead of the pre-tokenizer's */
    void *split_user;
} bpe_model;

enum { BPE_BATCH = 1024, BPE_TWINS_LOG2 = 10 }; /* words */

typedef struct bpe_new { /* a word or piece that its cache doesn't hold */
    const uint8_t *p;
    uint32_t n, room;      /* bytes of it, and of those that may be read at p (or fewer) */
    uint32_t at;           /* its ids belong in front of those that the batch had so far */
    uint32_t first, n_ids; /* they are late_ids.data[first..first + n_ids), when they are made */
    uint16_t twin; /* one of the batch's that is the same, its own twin: its ids are this one's */
    bool is_piece, known; /* known: bpe_learn has made them */
} bpe_new;

typedef struct bpe_state { /* scratch */
    wordcache words;
    wordcache pieces; /* parts of words: never looked up whole in the vocabulary */
    bpe_scratch merge;
    bytebuf text;   /* the fragment, made well-formed */
    bytebuf spaced; /* the same with spaces escaped */
    bytebuf mapped; /* a word in GPT-2's characters */
    size_t *ends;   /* words of the caller's splitter */
    size_t ends_cap;
    bpe_new late[BPE_BATCH];                    /* what is new of the batch, left out so far */
    size_t n_late, late_from;                   /* how many; where the batch's ids begin */
    uint16_t late_by_hash[1 << BPE_TWINS_LOG2]; /* which of `late` had it last, or any number */
    idbuf late_ids;                             /* of those, in any order */
} bpe_state;

static inline wordcache *bpe_cache(bpe_state *s, const bpe_new *w) {
    return w->is_piece ? &s->pieces : &s->words;
}

static inline uint32_t bpe_start(const uint8_t *word) {
    uint32_t three = (uint32_t)word[0] << 16 | (uint32_t)word[1] << 8 | word[2];
    return three * 0x9E3779B1u >> 20;
}

/* Is a word not worth cutting into pieces that merges don't join? Where characters have
 * three bytes, as in Chinese, pieces are few and come again and again. */
static inline bool bpe_is_whole(const uint8_t *word, size_t n) {
    enum { WHOLE = 31, WHOLE_WIDE = 15, WIDE = 0xE0 };
    return n <= WHOLE_WIDE || (n <= WHOLE && word[0] < WIDE && word[1] < WIDE);
}

/* Is the word looked for in the vocabulary before it is merged, and not too long? */
bool bpe_may_be_token(const bpe_model *m, const vocab *v, const uint8_t *word, size_t n);

/* Writes the word as the vocabulary spells it, by GPT-2's byte map, to `out`, which has
 * room for 2 * n bytes. Returns how many they are. */
static inline size_t bpe_spell(const bpe_table *t, const uint8_t *word, size_t n, uint8_t *out) {
    uint8_t *w = out;
    for (size_t i = 0; i < n; i++) { /* always two bytes, of which one may be overwritten */
        memcpy(w, t->byte_char[word[i]], 2);
        w += 1 + (w[1] != 0);
    }
    return (size_t)(w - out);
}

/* The same, where `room` bytes (>= n) may be read at `word`, and `out` has room for 16 bytes
 * more: for a short word whose characters, but for the first, stand for themselves, as nearly
 * all do where letters are ASCII, without a loop whose end can't be predicted. */
static inline size_t bpe_spell_within(const bpe_table *t, const uint8_t *word, size_t n,
                                      size_t room, uint8_t *out) {
    if (n <= 16 && room > 16 && bpe_is_plain(word + 1, n - 1)) {
        memcpy(out, t->byte_char[word[0]], 2);
        size_t first = 1 + (out[1] != 0);
        memcpy(out + first, word + 1, 16);
        return first + n - 1;
    }
    return bpe_spell(t, word, n, out);
}

/* Makes what is new known where that pays, and puts it into the caches. */
void bpe_learn(const model_call *call, bpe_new *words, size_t n);

#endif
