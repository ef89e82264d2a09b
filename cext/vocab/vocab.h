/*
 * The vocabulary: what a GGUF file says about tokens, after llama.cpp's
 * defaults, overrides and corrections. This is the only place where those live;
 * everything downstream reads plain facts. Immutable once loaded.
 */
#ifndef GGTOK_VOCAB_H
#define GGTOK_VOCAB_H

#include "base/error.h"
#include "gguf/gguf.h"
#include "index/token_map.h"
#include "pretok/pretok.h"
#include "vocab/keys.h"

/* Beside the ggtok_attr bits, for this library alone: the token structures a conversation, so
 * it may come from a chat template's text but never from a message's (models/guard.h). It is
 * CONTROL, UNKNOWN or EOG, or it was CONTROL in the file: llama.cpp makes user-defined tokens
 * of gpt-oss's <|start|>, <|end|>, <|message|> and others, which are parsed everywhere. A plain
 * token that is EOG by llama.cpp's default alone is not (vocab/special.c). */
#define VOCAB_RESERVED (1u << 31)

typedef struct vocab_range { /* of ids */
    uint32_t first, n;
} vocab_range;

typedef struct vocab {
    ggtok_vocab_type type;
    const char *model;     /* tokenizer.ggml.model: one of a fixed set */
    const pretok_row *pre; /* BPE only, else NULL */

    uint32_t n_tokens;
    uint8_t *text;      /* all token texts, one after the other */
    uint32_t *text_off; /* n_tokens + 1 offsets into text */
    float *score;
    uint32_t *attr;        /* ggtok_attr bits and VOCAB_RESERVED */
    vocab_range marked[2]; /* all ids that are reserved or user-defined, and some others: they are
                              the first or last ones of most vocabularies */
    token_map by_text;
    uint32_t kmer_from; /* hybriddna: from this id on, a trailing U+E000 belongs to the
                               look-up key but not to the text; n_tokens when there is none */

    int32_t special[GGTOK_N_SPECIAL];
    int32_t default_eos; /* EOS, if no key of the file names it, or GGTOK_NO_TOKEN */
    bool flag[GGTOK_N_FLAGS];
    idbuf eog; /* ascending */
    idbuf suppress;
    bytebuf warnings; /* see base/error.h */
} vocab;

/* A token's text (what llama_vocab_get_text gives) and the key it is found by. */
static inline gguf_view vocab_key(const vocab *v, uint32_t id) {
    return (gguf_view){v->text + v->text_off[id], v->text_off[id + 1] - v->text_off[id]};
}
static inline gguf_view vocab_text(const vocab *v, uint32_t id) {
    gguf_view t = vocab_key(v, id);
    if (id >= v->kmer_from && t.n > 3 && !memcmp(t.p + t.n - 3, "\xEE\x80\x80", 3)) t.n -= 3;
    return t;
}

int32_t ggtok_vocab_find(const vocab *v, const void *text, size_t n); /* -1: none */

/* Id of the token for one byte in SPM, UGM and PLaMo: <0xXX>, else (not PLaMo)
 * the one-byte text; -1 if there is neither. llama_vocab::byte_to_token. */
int32_t ggtok_vocab_byte_token(const vocab *v, uint8_t byte);

/* The same for a token whose attribute is BYTE: the byte it stands for, from its
 * text; -1 if that is too short. llama_vocab::token_to_byte. */
int ggtok_vocab_token_byte(const vocab *v, uint32_t id);

/* What ggtok_vocab_load_special will find wrong with the keys, before anything is built. */
ggtok_status ggtok_vocab_check_special(const vocab *v, const vocab_keys *k, ggtok_error *err);

/* Loading, in llama.cpp's order; the model is built (and the newline tokenized)
 * between the two, before special ids are known. */
ggtok_status ggtok_vocab_load_tokens(vocab *v, vocab_keys *k, const ggtok_load_options *options,
                                     ggtok_error *err);
ggtok_status ggtok_vocab_load_special(vocab *v, vocab_keys *k, ggtok_error *err);

/* Fills *out but for its size, or leaves `known` false where a file's beginning
 * (`whole`: all its metadata) tells too little. ggtok_peek. */
ggtok_status ggtok_vocab_summarize(const gguf *g, bool whole, ggtok_summary *out, ggtok_error *err);
void ggtok_vocab_free(vocab *v);

#endif
