/* Tells tests/mutants/recorder.py which of the module's basic blocks ran since the last call.
 * This file is linked into a module that clang compiled with
 * -fsanitize-coverage=inline-8bit-counters,pc-table. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static uint8_t *counters, *counters_end;
static const uintptr_t *blocks; /* for each block, its address and its flags */

void __sanitizer_cov_8bit_counters_init(uint8_t *from, uint8_t *to) {
    counters = from;
    counters_end = to;
}

void __sanitizer_cov_pcs_init(const uintptr_t *from, const uintptr_t *to) {
    (void)to;
    blocks = from;
}

EXPORT size_t reach_n_blocks(void) {
    return (size_t)(counters_end - counters);
}

/* Writes the blocks' addresses, relative to the module's base address. */
EXPORT void reach_blocks(const char *base, uintptr_t *out) {
    for (size_t i = 0; i < reach_n_blocks(); i++) out[i] = blocks[2 * i] - (uintptr_t)base;
}

/* Copies the counters and resets them. */
EXPORT void reach_take(uint8_t *out) {
    memcpy(out, counters, reach_n_blocks());
    memset(counters, 0, reach_n_blocks());
}

/* When a child process exits, writes a file with the test's name, a NUL, and the counters. */
__attribute__((destructor)) static void leave(void) {
    const char *folder = getenv("GGTOK_MUTANTS_REACH"), *test = getenv("PYTEST_CURRENT_TEST");
    if (!folder || !test) return;
    char path[4096];
    snprintf(path, sizeof path, "%s/%ld.%p.counters", folder, (long)getpid(), (void *)&path);
    FILE *file = fopen(path, "wb");
    if (!file) return;
    fwrite(test, 1, strlen(test) + 1, file);
    fwrite(counters, 1, reach_n_blocks(), file);
    fclose(file);
}
