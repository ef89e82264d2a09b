/* Memory: one seam for all allocations (tests inject failures here) and the two
 * growable buffers that everything writes into. */
#ifndef GGTOK_MEM_H
#define GGTOK_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* realloc(p, n): p may be NULL; NULL on failure, p then still valid. */
void *ggtok_mem_realloc(void *p, size_t n);
void *ggtok_mem_alloc(size_t n);
void *ggtok_mem_zalloc(size_t n); /* zeroed, by the system where it can */
void ggtok_mem_free(void *p);

/* Tells the system that the new memory p[0..n) is going to be written. Linux then backs it by huge
 * pages, if it is large and there are any: a fault for each small page costs more than writing
 * to it. */
void ggtok_mem_on_huge_pages(void *p, size_t n);

/* The same for what is going to be written at once, all of it: it is given now, in one go. */
void ggtok_mem_will_fill(void *p, size_t n);

/* n zeroed bytes that begin a cache line; *block is what is to be freed. */
void *ggtok_mem_lines(size_t n, void **block);

/* The memory of a table that grows: zeroed bytes that begin a cache line. Where the system gives
 * such, a large table has pages of its own, mapped at its greatest size: nothing is cleared, it
 * grows where it is, and what was never written takes no memory. */
typedef struct mem_table {
    void *data, *block;
    size_t room; /* bytes mapped at data; 0: an ordinary block */
} mem_table;

/* n bytes of a table that has `most` at most. NULL: out of memory; the table is then as before. */
void *ggtok_mem_table_new(mem_table *t, size_t n, size_t most);
void ggtok_mem_table_free(mem_table *t);

/* The plain build, for tests, takes no short cuts: no caches, no cuts, no fused automata, no
 * guesses. Tests compare the other builds' ids with its. */
#ifdef GGTOK_TEST_PLAIN
#define PLAIN 1
#else
#define PLAIN 0
#endif

/* And their caches can be small, so that a short text fills them, all of whose growing and
 * forgetting is then seen. */
#ifdef GGTOK_TEST_SMALL
#define SMALL 1
#else
#define SMALL 0
#endif

/* n * size, or SIZE_MAX (which no allocation grants) on overflow. */
static inline size_t mem_mul(size_t n, size_t size) {
    return size && n > SIZE_MAX / size ? SIZE_MAX : n * size;
}

/* memcmp(a, b, n) == 0 for what is mostly short: no call up to 16 bytes. */
static inline bool mem_equal(const uint8_t *a, const uint8_t *b, size_t n) {
    uint64_t a0, a1, b0, b1;
    uint32_t c0, c1, d0, d1;
    if (n > 16) return !memcmp(a, b, n);
    if (n >= 8) { /* two loads that overlap */
        memcpy(&a0, a, 8), memcpy(&a1, a + n - 8, 8);
        memcpy(&b0, b, 8), memcpy(&b1, b + n - 8, 8);
        return !((a0 ^ b0) | (a1 ^ b1));
    }
    if (n >= 4) {
        memcpy(&c0, a, 4), memcpy(&c1, a + n - 4, 4);
        memcpy(&d0, b, 4), memcpy(&d1, b + n - 4, 4);
        return !((c0 ^ d0) | (c1 ^ d1));
    }
    for (size_t i = 0; i < n; i++) {
        if (a[i] != b[i]) return false;
    }
    return true;
}

/* Growable array of ids. Reserve first, then write data[n++] unchecked. */
typedef struct idbuf {
    int32_t *data;
    size_t n, cap;
} idbuf;

/* Growable array of bytes, likewise. */
typedef struct bytebuf {
    uint8_t *data;
    size_t n, cap;
} bytebuf;

bool ggtok_idbuf_grow(idbuf *b, size_t extra);     /* false: out of memory */
bool ggtok_bytebuf_grow(bytebuf *b, size_t extra); /* false: out of memory */

static inline bool idbuf_reserve(idbuf *b, size_t extra) {
    return b->cap - b->n >= extra || ggtok_idbuf_grow(b, extra);
}
static inline bool idbuf_push(idbuf *b, int32_t id) {
    if (!idbuf_reserve(b, 1)) return false;
    b->data[b->n++] = id;
    return true;
}
static inline bool bytebuf_reserve(bytebuf *b, size_t extra) {
    return b->cap - b->n >= extra || ggtok_bytebuf_grow(b, extra);
}
static inline bool bytebuf_append(bytebuf *b, const void *p, size_t n) {
    if (!bytebuf_reserve(b, n)) return false;
    if (n) memcpy(b->data + b->n, p, n);
    b->n += n;
    return true;
}

#endif
