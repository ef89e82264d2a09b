/*
 * The vocabulary: what a GGUF file says about tokens, with llama.cpp's defaults, overrides and
 * corrections applied. Only this folder deals with these; all other code uses the result. Immutable
 * once loaded.
 */
#ifndef GGTOK_VOCAB_H
#define GGTOK_VOCAB_H

#include "base/error.h"
#include "gguf/gguf.h"
#include "index/token_map.h"
#include "pretok/pretok.h"
#include "vocab/keys.h"

/* An attribute in addition to the ggtok_attr bits, private to this library. A reserved token
 * structures a conversation: it may come from the text of a chat template but never from a message
 * (models/recorder.h). A token is reserved if it is CONTROL, UNKNOWN or EOG, or was CONTROL in the
 * file: llama.cpp makes gpt-oss's <|start|>, <|end|>, <|message|> and others user-defined, so that
 * they are parsed everywhere. A plain token that is EOG only by llama.cpp's default isn't reserved
 * (vocab/special.c). */
#define VOCAB_RESERVED (1u << 31)

typedef struct vocab_range { /* a range of ids */
    uint32_t first, n;
} vocab_range;

typedef struct vocab {
    ggtok_vocab_type type;
    const char *model;     /* value of tokenizer.ggml.model: one of a fixed set of strings */
    const pretok_row *pre; /* the pre-tokenizer; NULL except in BPE */

    uint32_t n_tokens;
    uint8_t *text;      /* arena of all token texts */
    uint32_t *text_off; /* [n_tokens + 1], offsets into text */
    float *score;
    uint32_t *attr;        /* [n_tokens], ggtok_attr bits and VOCAB_RESERVED */
    vocab_range marked[2]; /* two ranges that contain all reserved and user-defined ids, and perhaps
                              others; in most vocabularies, the first and the last ids */
    token_map by_text;
    uint32_t kmer_from; /* hybriddna: from this id on, a trailing U+E000 is part of the key but not
                           of the text; n_tokens if there are no k-mers */

    int32_t special[GGTOK_N_SPECIAL];
    int32_t default_eos; /* EOS if it is llama.cpp's default; GGTOK_NO_TOKEN if a key names it */
    bool flag[GGTOK_N_FLAGS];
    idbuf eog; /* ids of the EOG tokens, ascending */
    idbuf suppress;
    bytebuf warnings; /* NUL-terminated sentences; see base/error.h */
} vocab;

/* Return the key by which a token is looked up, and the token's text (as from
 * llama_vocab_get_text). */
static inline gguf_view vocab_key(const vocab *v, uint32_t id) {
    return (gguf_view){v->text + v->text_off[id], v->text_off[id + 1] - v->text_off[id]};
}
static inline gguf_view vocab_text(const vocab *v, uint32_t id) {
    gguf_view t = vocab_key(v, id);
    if (id >= v->kmer_from && t.n > 3 && !memcmp(t.p + t.n - 3, "\xEE\x80\x80", 3)) t.n -= 3;
    return t;
}

int32_t ggtok_vocab_find(const vocab *v, const void *text, size_t n); /* -1: no such token */

/* Returns the id of the token for one byte in SPM, UGM and PLaMo: <0xXX>, otherwise (except in
 * PLaMo) the token whose text is that byte; -1 if there is neither. Equals
 * llama_vocab::byte_to_token. */
int32_t ggtok_vocab_byte_token(const vocab *v, uint8_t byte);

/* Returns the byte of a token with attribute BYTE, read from its text; -1 if the text is too short.
 * Equals llama_vocab::token_to_byte. */
int ggtok_vocab_token_byte(const vocab *v, uint32_t id);

/* Checks the keys for everything that ggtok_vocab_load_special rejects, before anything is
 * built. */
ggtok_status ggtok_vocab_check_special(const vocab *v, const vocab_keys *k, ggtok_error *err);

/* Load the vocabulary in llama.cpp's order. Between the two calls, the model is built and the
 * newline is tokenized, before special ids are known. */
ggtok_status ggtok_vocab_load_tokens(vocab *v, vocab_keys *k, const ggtok_load_options *options,
                                     ggtok_error *err);
ggtok_status ggtok_vocab_load_special(vocab *v, vocab_keys *k, ggtok_error *err);

/* Fills *out, except its field `size`. Leaves `known` false if the part of the file that was read
 * (with `whole`, all of its metadata) doesn't contain enough. See ggtok_peek. */
ggtok_status ggtok_vocab_summarize(const gguf *g, bool whole, ggtok_summary *out, ggtok_error *err);
void ggtok_vocab_free(vocab *v);

#endif
