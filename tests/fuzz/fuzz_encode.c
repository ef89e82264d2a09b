/*
 * Encodes any text with any fixture or pre-tokenizer, which byte 0 of the input selects; byte 1 has
 * the flags. A context that has encoded thousands of texts, a new context and the plain build must
 * return the same ids.
 */
#include "fuzz.h"

enum { NEW_CONTEXT = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    build_pair *t = pair_at(data[0]);
    unsigned flags = data[1] & 3;
    char *text = copy_of(data + 2, size - 2);
    check_encode(t, text, size - 2, flags);
    if (data[1] & NEW_CONTEXT) {
        ggtok_context *used = t->ctx;
        CHECK(!ggtok_context_new(t->tok, &t->ctx, NULL));
        check_encode(t, text, size - 2, flags);
        check_encode(t, text, size - 2, flags);
        ggtok_context_free(t->ctx);
        t->ctx = used;
    }
    free(text);
    return 0;
}
