/*
 * Prints for each file a checksum of the ids and spans of many texts. Builds of the library that
 * take different paths must print the same checksum.
 *
 *     paths FILE.gguf ...
 *
 * The plain build neither caches words nor cuts texts into pieces or windows, so equal checksums confirm
 * Claim bpe.1, Claim bpe.2, Claim bpe.3, Claim spm.1, Claim rwkv.1, Claim wpm.1, Claim ugm.1,
 * Claim plamo.1, Claim tries.1.
 */
#include "ggtok.h"
#include "made_texts.h"

#include <stdio.h>

enum { N_MADE = 400, TIMES = 2 }; /* texts are cached the second time */
enum { MANY = 11, WORDS = 140, WORD = 16 };

static uint64_t mix(uint64_t sum, uint64_t x) {
    return (sum ^ x) * 0x9E3779B97F4A7C15u + (sum >> 32);
}

static uint64_t sum_of(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                       uint64_t sum) {
    static ggtok_span spans[4 * MAX_TEXT];
    ggtok_ids ids = {NULL, 0};
    sum = mix(sum, ggtok_encode(ctx, text, n, flags | GGTOK_SPANS, &ids, NULL));
    if (ids.n > sizeof spans / sizeof *spans || ggtok_spans(ctx, spans, NULL)) return 0;
    for (size_t k = 0; k < ids.n; k++) {
        sum = mix(sum, (uint32_t)ids.data[k]);
        sum = mix(sum, (uint64_t)spans[k].begin << 32 | (uint64_t)spans[k].end);
    }
    return sum;
}

/* Encodes short words of MANY ids, first each on its own, then many in one text. A group of such
 * words needs more room in buffers than any other, so sanitizers detect here whether a buffer is
 * too small. */
static uint64_t sum_of_groups(const ggtok_tokenizer *tok, uint64_t sum) {
    static char words[WORDS][WORD], text[WORDS * WORD];
    ggtok_context *ctx;
    int n_words = 0;
    if (ggtok_context_new(tok, &ctx, NULL)) return 0;
    for (int i = 0; i < 5000 && n_words < WORDS; i++) {
        char *word = words[n_words];
        size_t n = 1;
        ggtok_ids ids;
        word[0] = ' ';
        for (size_t want = 5 + below(WORD - 6); n < want; n++) word[n] = "qzjxvkQZ"[below(8)];
        word[n] = 0;
        n_words += !ggtok_encode(ctx, word, n, 0, &ids, NULL) && ids.n == MANY;
    }
    ggtok_context_free(ctx);
    for (int many = 20; many <= n_words; many += 5) {
        size_t n = 0;
        if (ggtok_context_new(tok, &ctx, NULL)) return 0;
        for (int i = 0; i < many; i++) {
            size_t length = strlen(words[i]);
            sum = sum_of(ctx, words[i], length, 0, sum);
            memcpy(text + n, words[i], length);
            n += length;
        }
        for (int time = 0; time < TIMES; time++) sum = sum_of(ctx, text, n, 0, sum);
        ggtok_context_free(ctx);
    }
    return sum;
}

/* Prints a file's checksum; returns 0 after an error. */
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
            size_t n = make_text(text, below(i % 8 ? 700 : MAX_TEXT));
            sum = sum_of(ctx, (const char *)text, n, (unsigned)i % 4, sum);
        }
    }
    sum = sum_of_groups(tok, sum);
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
