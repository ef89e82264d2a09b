/*
 * The allocator for builds with GGTOK_TEST_ALLOC (cext/base/mem.c): it fails a chosen allocation,
 * alone or with all later ones, and counts allocated blocks.
 */
#ifndef FAILING_ALLOC_H
#define FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static size_t n_asked, n_live, fail_at; /* fail_at: 1 is the next allocation, 0 none */
static bool fail_on;                    /* whether all later allocations fail, too */
static bool failed;

static inline void start_failing(size_t at, bool on) {
    n_asked = 0;
    fail_at = at;
    fail_on = on;
    failed = false;
}

/* Returns the number of allocated blocks that haven't been freed. */
static inline size_t blocks_held(void) {
    return n_live;
}

#ifdef GGTOK_TEST_ALLOC
void *ggtok_test_realloc(void *p, size_t n);
void ggtok_test_free(void *p);

void *ggtok_test_realloc(void *p, size_t n) {
    n_asked++;
    if (fail_at && (n_asked == fail_at || (fail_on && n_asked > fail_at))) {
        failed = true;
        return NULL;
    }
    void *q = realloc(p, n);
    n_live += q && !p;
    return q;
}

void ggtok_test_free(void *p) {
    n_live -= p != NULL;
    free(p);
}
#endif

#endif
