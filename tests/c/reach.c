/*
 * Loads a file's vocabulary and prints, for each hash table that the file fills, its reach (the
 * greatest distance of an entry from its home slot) and whether it was rebuilt with another seed:
 *
 *     keys 3 0
 *     texts 12 0
 *     extras 140 1      BPE only: strings that aren't tokens
 *     pairs 8 0         BPE only
 */
#include "models/bpe/table.h"
#include "vocab/keys.h"

#include <stdio.h>
#include <stdlib.h>

static uint8_t *read_all(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) return NULL;
    long size = ftell(f);
    rewind(f);
    uint8_t *data = size > 0 ? malloc((size_t)size) : NULL;
    if (data && fread(data, 1, (size_t)size, f) != (size_t)size) return NULL;
    fclose(f);
    *n = (size_t)size;
    return data;
}

/* The object files are shared with tests/c/work.c, in which each basic block calls this function.
 * Here, it does nothing. */
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {}

int main(int argc, char **argv) {
    gguf g = {0};
    vocab v = {0};
    vocab_keys k = {.g = &g, .warnings = &v.warnings};
    bpe_table t = {0};
    ggtok_error err = {0};
    size_t n, need;
    uint8_t *data = argc == 2 ? read_all(argv[1], &n) : NULL;
    if (!data || ggtok_gguf_parse(&g, data, n, n, &need, &err) ||
        ggtok_vocab_load_tokens(&v, &k, NULL, &err) ||
        (v.type == GGTOK_VOCAB_BPE && ggtok_bpe_table_build(&t, &v, &g, &err))) {
        printf("%s\n", err.message);
        return 1;
    }
    printf("keys %zu %d\n", g.keys.reach, g.keys.seed != 0);
    printf("texts %zu %d\n", v.by_text.reach, v.by_text.seed != 0);
    if (v.type == GGTOK_VOCAB_BPE) {
        printf("extras %zu %d\n", t.extras.set.reach, t.extras.set.seed != 0);
        printf("pairs %zu %d\n", t.pair_reach, t.pair_factor != BPE_PAIR_FACTOR);
    }
    ggtok_bpe_table_free(&t);
    ggtok_vocab_free(&v);
    ggtok_gguf_close(&g);
    free(data);
    return 0;
}
