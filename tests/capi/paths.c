/*
 * Prints a number for each file that tells the ids of many texts by it: to be compared
 * with those of the same library compiled to take other paths.
 *
 *     paths FILE.gguf ...
 */
#include "ggtok.h"
#include "made_texts.h"

#include <stdio.h>

enum { N_MADE = 400, TIMES = 2 }; /* what came before is then in the caches */

static uint64_t mix(uint64_t sum, uint64_t x) {
    return (sum ^ x) * 0x9E3779B97F4A7C15u + (sum >> 32);
}

/* False: out of memory. */
static int print_sum(const char *path) {
    static uint8_t text[MAX_TEXT];
    ggtok_tokenizer *tok;
    ggtok_context *ctx;
    ggtok_error err;
    uint64_t sum = 0;
    if (ggtok_load_file(path, NULL, &tok, &err) || ggtok_context_new(tok, &ctx, &err)) {
        printf("%s: %s\n", path, err.message);
        return 0;
    }
    for (int time = 0; time < TIMES; time++) {
        random_state = 1;
        for (int i = 0; i < N_MADE; i++) {
            ggtok_ids ids = {NULL, 0};
            size_t n = make_text(text, below(i % 8 ? 700 : MAX_TEXT));
            sum = mix(sum, ggtok_encode(ctx, (const char *)text, n, (unsigned)i % 4, &ids, &err));
            for (size_t k = 0; k < ids.n; k++) sum = mix(sum, (uint32_t)ids.data[k]);
        }
    }
    printf("%s %016llx\n", path, (unsigned long long)sum);
    ggtok_context_free(ctx);
    ggtok_free(tok);
    return 1;
}

int main(int argc, char **argv) {
    int good = 1;
    for (int i = 1; i < argc; i++) good &= print_sum(argv[i]);
    return !good;
}
