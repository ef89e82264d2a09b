/* The GGUF keys of a vocabulary, and typed reads of them. */
#ifndef GGTOK_VOCAB_KEYS_H
#define GGTOK_VOCAB_KEYS_H

#include "error.h"
#include "gguf.h"

#define KEY_ARCHITECTURE "general.architecture"
#define KEY_NAME "general.name"
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
#define KEY_SUPPRESS "tokenizer.ggml.suppress_tokens"

/* Each succeeds with nothing found (*kv == NULL, *value unchanged) when the key is
 * absent, and is GGTOK_ERR_VOCAB when its value has another type. */
ggtok_status vocab_key_of(const gguf *g, const char *key, ggtok_value_type type, const gguf_kv **kv,
                          ggtok_error *err);
ggtok_status vocab_key_bool(const gguf *g, const char *key, bool *value, ggtok_error *err);
/* Cut at the first NUL; "" when absent. */
ggtok_status vocab_key_string(const gguf *g, const char *key, gguf_view *value, bool *found,
                              ggtok_error *err);
/* An array whose element type has its bit in `elems`; `want` names those in the error. */
ggtok_status vocab_array_of(const gguf *g, const char *key, unsigned elems, const char *want,
                            const gguf_kv **kv, ggtok_error *err);

#endif
