#include "mem.h"

#include <stdlib.h>

#ifdef GGTOK_TEST_ALLOC
/* Test builds supply these, to fail the k-th allocation. */
void *ggtok_test_realloc(void *p, size_t n);
void ggtok_test_free(void *p);
#define SYS_REALLOC ggtok_test_realloc
#define SYS_FREE ggtok_test_free
#else
#define SYS_REALLOC realloc
#define SYS_FREE free
#endif

void *mem_realloc(void *p, size_t n) {
    return n > PTRDIFF_MAX ? NULL : SYS_REALLOC(p, n ? n : 1);
}

void *mem_alloc(size_t n) {
    return mem_realloc(NULL, n);
}

void *mem_zalloc(size_t n) {
#ifdef GGTOK_TEST_ALLOC
    void *p = mem_alloc(n);
    if (p) memset(p, 0, n ? n : 1);
    return p;
#else
    return n > PTRDIFF_MAX ? NULL : calloc(n ? n : 1, 1);
#endif
}

void mem_free(void *p) {
    SYS_FREE(p);
}

/* Next capacity for `n` used of `cap`, holding `extra` more; 0 if impossible. */
static size_t grown(size_t n, size_t cap, size_t extra) {
    if (extra > PTRDIFF_MAX - n) return 0;
    size_t want = n + extra, twice = cap > PTRDIFF_MAX / 2 ? PTRDIFF_MAX : cap * 2;
    if (want < twice) want = twice;
    return want < 64 ? 64 : want;
}

bool idbuf_grow(idbuf *b, size_t extra) {
    size_t cap = grown(b->n, b->cap, extra);
    int32_t *data = cap ? mem_realloc(b->data, mem_mul(cap, sizeof *data)) : NULL;
    if (!data) return false;
    b->data = data;
    b->cap = cap;
    return true;
}

bool bytebuf_grow(bytebuf *b, size_t extra) {
    size_t cap = grown(b->n, b->cap, extra);
    uint8_t *data = cap ? mem_realloc(b->data, cap) : NULL;
    if (!data) return false;
    b->data = data;
    b->cap = cap;
    return true;
}
