/*
 * Prints the words into which a pre-tokenizer splits a text, one per line, in brackets.
 *
 *     words NAME TEXT
 */
#include "pretok/pretok.h"

#include <stdio.h>
#include <string.h>

/* The object files are shared with tests/c/work.c, in which each basic block calls this function.
 * Here, it does nothing. */
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const pretok_row *row = ggtok_pretok_find(argv[1], strlen(argv[1]));
    if (!row) return 2;
    pretok_walk w;
    size_t ends[PRETOK_BUFFER], from = 0;
    ggtok_pretok_begin(&w, row, (const uint8_t *)argv[2], strlen(argv[2]));
    for (size_t n; (n = ggtok_pretok_next(&w, ends, PRETOK_BUFFER));) {
        for (size_t i = 0; i < n; from = ends[i++]) {
            printf("[%.*s]\n", (int)(ends[i] - from), argv[2] + from);
        }
    }
    return 0;
}
