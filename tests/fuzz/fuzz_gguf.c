/*
 * Loads any bytes as a file. If that succeeds, encodes the bytes after the file's key/value pairs,
 * and decodes the ids. The plain build must give the same results.
 */
#include "fuzz.h"
#include "gguf_parts.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
    parts all;
    parts_find(&all, data, size);
    if (all.n && seed % 8 == 0 && all.end < max) { /* mutate only the text */
        return all.end + LLVMFuzzerMutate(data + all.end, size - all.end, max - all.end);
    }
    size_t n = seed % 32 ? parts_mutate(data, size, max, seed) : 0;
    return n ? n : LLVMFuzzerMutate(data, size, max);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    build_pair t;
    ggtok_error err, plain_err;
    ggtok_status s = ggtok_load_buffer(data, size, NULL, &t.tok, &err);
    CHECK(plain_ggtok_load_buffer(data, size, NULL, &t.plain, &plain_err) == s);
    if (s) {
        CHECK(!t.tok && err.status == s && err.message[0] && err.key[sizeof err.key - 1] == 0);
        CHECK(!strcmp(err.message, plain_err.message));
        return 0;
    }
    parts all;
    parts_find(&all, data, size);
    size_t n = size - all.end;
    char *text = copy_of(data + all.end, n);
    pair_open(&t);
    for (unsigned flags = 0; flags < 4; flags++) {
        check_encode(&t, text, n, flags);
        check_encode(&t, text, n, flags); /* uses the caches that the first call filled */
    }
    for (int i = 0; i < GGTOK_N_SPECIAL; i++) {
        int32_t id = ggtok_special_id(t.tok, (ggtok_special)i);
        CHECK(id == plain_ggtok_special_id(t.plain, (ggtok_special)i));
        CHECK(id == GGTOK_NO_TOKEN || ggtok_type(t.tok) == GGTOK_VOCAB_NONE ||
              (uint32_t)id < ggtok_n_tokens(t.tok));
    }
    pair_close(&t);
    free(text);
    return 0;
}
