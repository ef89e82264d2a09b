/* The GGUF keys of a vocabulary, and functions that read their values by type, after applying the
 * caller's overrides. */
#ifndef GGTOK_VOCAB_KEYS_H
#define GGTOK_VOCAB_KEYS_H

#include "base/error.h"
#include "gguf/gguf.h"

#define KEY_PREFIX "tokenizer.ggml."
#define KEY_ARCHITECTURE "general.architecture"
#define KEY_NAME "general.name"
#define KEY_KIND "general.type"
#define KEY_MODEL "tokenizer.ggml.model"
#define KEY_PRE "tokenizer.ggml.pre"
#define KEY_TOKENS "tokenizer.ggml.tokens"
#define KEY_TYPES "tokenizer.ggml.token_type"
#define KEY_TYPE_COUNT "tokenizer.ggml.token_type_count"
#define KEY_SCORES "tokenizer.ggml.scores"
#define KEY_MERGES "tokenizer.ggml.merges"
#define KEY_ADD_BOS "tokenizer.ggml.add_bos_token"
#define KEY_ADD_EOS "tokenizer.ggml.add_eos_token"
#define KEY_ADD_SEP "tokenizer.ggml.add_sep_token"
#define KEY_ADD_SPACE_PREFIX "tokenizer.ggml.add_space_prefix"
#define KEY_REMOVE_EXTRA_WS "tokenizer.ggml.remove_extra_whitespaces"
#define KEY_CHARSMAP "tokenizer.ggml.precompiled_charsmap"
#define KEY_LOWERCASE "tokenizer.ggml.normalizer.lowercase"
#define KEY_STRIP_ACCENTS "tokenizer.ggml.normalizer.strip_accents"
#define KEY_NFC "tokenizer.ggml.normalizer.nfc"
#define KEY_SUPPRESS "tokenizer.ggml.suppress_tokens"

/* The source of values: the file, and the caller's overrides of its scalars. Zero it before use,
 * except for `g` and `warnings`. */
typedef struct vocab_keys {
    const gguf *g;
    bytebuf *warnings;
    const ggtok_override *overrides;
    size_t n_overrides;
    bool *met; /* [n_overrides]: whether the override's key has been read */
} vocab_keys;

/* The first function checks the caller's overrides; the second warns about overrides whose keys
 * were never read. */
ggtok_status ggtok_vocab_keys_open(vocab_keys *k, const ggtok_load_options *options,
                                   ggtok_error *err);
ggtok_status ggtok_vocab_keys_close(vocab_keys *k, ggtok_error *err);
void ggtok_vocab_keys_free(vocab_keys *k);

/* Whether this version knows what a key "tokenizer.ggml.*" means: it reads the key, or llama.cpp
 * doesn't use it for ids. */
bool ggtok_vocab_knows_key(const char *key, size_t n);

/* Warns about the file's keys "tokenizer.ggml.*" that this version doesn't know. */
ggtok_status ggtok_vocab_warn_of_keys(const vocab_keys *k, ggtok_error *err);

/* If the key is absent, these functions succeed, set *found to false and leave *value unchanged.
 * They return GGTOK_ERR_VOCAB if the value has another type. */
ggtok_status ggtok_vocab_key_u32(vocab_keys *k, const char *key, uint32_t *value, bool *found,
                                 ggtok_error *err);
ggtok_status ggtok_vocab_key_bool(vocab_keys *k, const char *key, bool *value, ggtok_error *err);
/* Like ggtok_vocab_key_u32, for a string. It ends at its first NUL, and is "" if the key is
 * absent. */
ggtok_status ggtok_vocab_key_string(vocab_keys *k, const char *key, gguf_view *value, bool *found,
                                    ggtok_error *err);
/* Finds an array whose element type is one of `elems`, a set of bits; `want` describes the expected
 * type in the error message. Sets *kv to NULL if the key is absent. */
ggtok_status ggtok_vocab_array_of(const gguf *g, const char *key, unsigned elems, const char *want,
                                  const gguf_kv **kv, ggtok_error *err);

#endif
