/* Ids -> bytes: the pieces of tokens, and the spaces that llama_detokenize adds and removes around
 * them. */
#ifndef GGTOK_DETOK_H
#define GGTOK_DETOK_H

#include "vocab/vocab.h"

/* The piece of each token (for control and unknown tokens, their text), computed at load. */
typedef struct piece_table {
    uint8_t *bytes;
    uint32_t *off; /* [n_tokens + 1], offsets into bytes */
} piece_table;

/* Rejects byte tokens whose text names no byte. Called before anything is built. */
ggtok_status ggtok_piece_check_bytes(const vocab *v, ggtok_error *err);
ggtok_status ggtok_piece_table_build(piece_table *t, const vocab *v, ggtok_error *err);
void ggtok_piece_table_free(piece_table *t);

/* Returns the piece of one token; `id` must be in range. See ggtok_token_to_piece. */
gguf_view ggtok_piece_of(const piece_table *t, const vocab *v, uint32_t id, int32_t lstrip,
                         bool special);

/* Sets *out to the text of ids[0..n). */
ggtok_status ggtok_detok_text(const piece_table *t, const vocab *v, const int32_t *ids, size_t n,
                              unsigned flags, bytebuf *out, ggtok_error *err);

#endif
