#if defined(__linux__)
#define _DEFAULT_SOURCE /* declares madvise, MAP_ANONYMOUS, sysconf */
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "base/mem.h"

#include <stdlib.h>

#ifdef GGTOK_TEST_ALLOC
/* Test programs define these functions, to make the k-th allocation fail. */
void *ggtok_test_realloc(void *p, size_t n);
void ggtok_test_free(void *p);
#define SYS_REALLOC ggtok_test_realloc
#define SYS_FREE ggtok_test_free
#else
#define SYS_REALLOC realloc
#define SYS_FREE free
#endif

void *ggtok_mem_realloc(void *p, size_t n) {
    return n > PTRDIFF_MAX ? NULL : SYS_REALLOC(p, n ? n : 1);
}

enum { HUGE = 2 << 20 };

#ifdef MADV_HUGEPAGE
/* Calls madvise for all pages that p[0..n) touches; failure doesn't matter. If malloc mapped
 * separate pages for a block, the whole block must be advised: realloc can't move a mapping whose
 * parts have different advice. */
static void advise(void *p, size_t n, int advice) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)p & ~(page - 1), to = ((uintptr_t)p + n + page - 1) & ~(page - 1);
    madvise((void *)from, to - from, advice);
}
#endif

void ggtok_mem_on_huge_pages(void *p, size_t n) {
#ifdef MADV_HUGEPAGE
    if (n >= HUGE) advise(p, n, MADV_HUGEPAGE);
#else
    (void)p, (void)n;
#endif
}

void ggtok_mem_will_fill(void *p, size_t n) {
    ggtok_mem_on_huge_pages(p, n);
#ifdef MADV_POPULATE_WRITE /* available since Linux 5.14 */
    enum { WORTH_A_CALL = 1 << 16 };
    if (n >= WORTH_A_CALL) advise(p, n, MADV_POPULATE_WRITE);
#endif
}

/* Allocates a large block aligned for huge pages. If it returns NULL, use an ordinary block. */
static void *alloc_huge(size_t n) {
#if defined(__linux__) && !defined(GGTOK_TEST_ALLOC)
    if (n < HUGE || n > PTRDIFF_MAX - HUGE) return NULL;
    n = (n + HUGE - 1) & ~((size_t)HUGE - 1);
    void *p = aligned_alloc(HUGE, n);
    if (p) ggtok_mem_on_huge_pages(p, n);
    return p;
#else
    (void)n;
    return NULL;
#endif
}

void *ggtok_mem_alloc(size_t n) {
    void *p = alloc_huge(n);
    return p ? p : ggtok_mem_realloc(NULL, n);
}

void *ggtok_mem_zalloc(size_t n) {
    void *p = alloc_huge(n);
    if (p) return memset(p, 0, n);
#ifdef GGTOK_TEST_ALLOC
    p = ggtok_mem_alloc(n);
    if (p) memset(p, 0, n ? n : 1);
    return p;
#else
    return n > PTRDIFF_MAX ? NULL : calloc(n ? n : 1, 1);
#endif
}

void *ggtok_mem_lines(size_t n, void **block) {
    enum { LINE = 64 };
    void *huge = alloc_huge(n); /* without adding LINE, which might need one more huge page */
    if (huge) return *block = memset(huge, 0, n);
    *block = n > PTRDIFF_MAX - LINE ? NULL : ggtok_mem_zalloc(n + LINE);
    size_t skew = (uintptr_t)*block % LINE;
    return *block ? (uint8_t *)*block + (skew ? LINE - skew : 0) : NULL;
}

void ggtok_mem_free(void *p) {
    SYS_FREE(p);
}

void ggtok_mem_free_large(void *p, size_t n) {
#if defined(__linux__) && !defined(GGTOK_TEST_ALLOC)
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)p;
    uintptr_t from = (start + page - 1) & ~(page - 1), to = (start + n) & ~(page - 1);
    if (p && from < to) madvise((void *)from, to - from, MADV_DONTNEED);
#else
    (void)n;
#endif
    SYS_FREE(p);
}

#if defined(__linux__) && !defined(GGTOK_TEST_ALLOC)
/* Maps n zeroed bytes at a huge-page boundary. Returns NULL if out of memory. */
static void *map_pages(size_t n) {
    const size_t more = n + HUGE;
    uint8_t *p = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t before = (HUGE - (uintptr_t)p % HUGE) % HUGE;
    if (before) munmap(p, before);
    munmap(p + before + n, more - before - n);
    ggtok_mem_on_huge_pages(p + before, n);
    return p + before;
}
#endif

void *ggtok_mem_table_new(mem_table *t, size_t n, size_t most) {
    void *block = NULL, *data;
#if defined(__linux__) && !defined(GGTOK_TEST_ALLOC)
    enum { LARGE = HUGE / 4 }; /* bytes; below this, small pages cost no more than one huge page */
    if (n >= LARGE && most % HUGE == 0 && most <= PTRDIFF_MAX - HUGE) {
        if (!(data = map_pages(most))) return NULL;
        *t = (mem_table){data, NULL, most};
        return data;
    }
#else
    (void)most;
#endif
    if (!(data = ggtok_mem_lines(n, &block))) return NULL;
    *t = (mem_table){data, block, 0};
    return data;
}

void ggtok_mem_table_free(mem_table *t) {
#if defined(__linux__) && !defined(GGTOK_TEST_ALLOC)
    if (t->room) munmap(t->data, t->room);
#endif
    ggtok_mem_free(t->block);
    *t = (mem_table){NULL, NULL, 0};
}

/* Returns the new capacity for a buffer that uses `n` of `cap` elements and needs `extra` more; 0
 * if impossible. */
static size_t grown(size_t n, size_t cap, size_t extra) {
    if (extra > PTRDIFF_MAX - n) return 0;
    size_t want = n + extra, twice = cap > PTRDIFF_MAX / 2 ? PTRDIFF_MAX : cap * 2;
    if (want < twice) want = twice;
    return want < 64 ? 64 : want;
}

/* Reallocates p, a block of which `used` bytes have been written, to n bytes. */
static void *regrown(void *p, size_t used, size_t n) {
    void *q = used ? NULL : alloc_huge(n);
    if (q) {
        ggtok_mem_free(p);
        return q;
    }
    q = ggtok_mem_realloc(p, n);
    if (q) ggtok_mem_on_huge_pages(q, n);
    return q;
}

bool ggtok_idbuf_grow(idbuf *b, size_t extra) {
    size_t cap = grown(b->n, b->cap, extra), size = sizeof *b->data;
    int32_t *data = cap ? regrown(b->data, b->n * size, mem_mul(cap, size)) : NULL;
    if (!data) return false;
    b->data = data;
    b->cap = cap;
    return true;
}

bool ggtok_bytebuf_grow(bytebuf *b, size_t extra) {
    size_t cap = grown(b->n, b->cap, extra);
    uint8_t *data = cap ? regrown(b->data, b->n, cap) : NULL;
    if (!data) return false;
    b->data = data;
    b->cap = cap;
    return true;
}
