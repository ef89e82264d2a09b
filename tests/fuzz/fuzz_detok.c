/*
 * Decodes any ids with any fixture. Byte 0 of the input selects the fixture, byte 1 the flags; each
 * id has two bytes. Unless an option or flag changes spaces, the text must be the joined pieces of
 * the ids.
 */
#include "fuzz.h"

/* Returns an id of at least -8, which may be outside the vocabulary. */
static int32_t id_of(const uint8_t *p) {
    return (int32_t)(p[0] | p[1] << 8) - 8;
}

static void check_pieces(const ggtok_tokenizer *tok, const int32_t *ids, size_t n, bool special,
                         ggtok_bytes text) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        ggtok_bytes piece;
        CHECK(!ggtok_token_to_piece(tok, ids[i], 0, special, &piece, NULL));
        CHECK(piece.n <= text.n - at && !memcmp(text.data + at, piece.data, piece.n));
        at += piece.n;
    }
    CHECK(at == text.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    build_pair *t = pair_at(data[0]);
    unsigned flags = data[1] & 15;
    size_t n = (size - 2) / 2;
    int32_t *ids = (int32_t *)copy_of(NULL, n * sizeof *ids);
    bool all_known = true;
    for (size_t i = 0; i < n; i++) {
        ids[i] = id_of(data + 2 + 2 * i);
        all_known &= ids[i] >= 0 && (uint32_t)ids[i] < ggtok_n_tokens(t->tok);
    }
    ggtok_bytes text, piece;
    ggtok_error err;
    ggtok_status s = ggtok_decode(t->ctx, ids, n, flags, &text, &err);
    CHECK(s == GGTOK_OK || (s == GGTOK_ERR_ARGUMENT && !all_known && err.message[0]));
    CHECK(s || all_known || ggtok_type(t->tok) == GGTOK_VOCAB_NONE);
    if (!s && !(flags & GGTOK_REMOVE_SPECIAL) && ggtok_type(t->tok) != GGTOK_VOCAB_NONE &&
        (flags & GGTOK_KEEP_SPACES ||
         (!(flags & GGTOK_CLEAN_SPACES) && !ggtok_flag(t->tok, GGTOK_FLAG_ADD_SPACE_PREFIX) &&
          !ggtok_flag(t->tok, GGTOK_FLAG_CLEAN_SPACES)))) {
        check_pieces(t->tok, ids, n, (flags & GGTOK_UNPARSE_SPECIAL) != 0, text);
    }
    if (!s) { /* the decoded text can be encoded */
        size_t n_text = text.n;
        char *copy = copy_of((const uint8_t *)text.data, n_text);
        check_encode(t, copy, n_text, flags & 3);
        free(copy);
    }
    for (size_t i = 0; i < n && i < 8; i++) {
        ggtok_token_to_piece(t->tok, ids[i], (int32_t)(data[1] >> 4) - 8, true, &piece, NULL);
    }
    free(ids);
    return 0;
}
