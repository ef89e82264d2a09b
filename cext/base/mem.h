/* Memory: the functions that make all allocations (tests inject failures here), and the two
 * growable buffers that hold all output. */
#ifndef GGTOK_MEM_H
#define GGTOK_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Equals realloc(p, n): p may be NULL. On failure, returns NULL and p stays valid. */
void *ggtok_mem_realloc(void *p, size_t n);
void *ggtok_mem_alloc(size_t n);
void *ggtok_mem_zalloc(size_t n); /* zeroed by the system if possible */
void ggtok_mem_free(void *p);
/* Frees a large block of n bytes, and gives its whole pages back to the system, which free might keep
 * for later. */
void ggtok_mem_free_large(void *p, size_t n);

/* Announces to the system that the new memory p[0..n) will be written. Linux then backs a large
 * block with huge pages, if any are free: a page fault for each small page costs more than writing
 * to the page. */
void ggtok_mem_on_huge_pages(void *p, size_t n);

/* Announces that all of the new memory p[0..n) will be written now, so that the system maps it in
 * one call. */
void ggtok_mem_will_fill(void *p, size_t n);

/* Returns n zeroed bytes, aligned to a cache line. Free *block, not the result. */
void *ggtok_mem_lines(size_t n, void **block);

/* The memory of a growing table: zeroed bytes, aligned to a cache line. Where the system supports
 * it, a large table is mapped once at its maximum size: the table needs no clearing, grows in
 * place, and its untouched parts use no memory. */
typedef struct mem_table {
    void *data, *block;
    size_t room; /* bytes mapped at data; 0: data is an ordinary block */
} mem_table;

/* Allocates n bytes for a table that never exceeds `most` bytes. On failure, returns NULL and
 * leaves the table unchanged. */
void *ggtok_mem_table_new(mem_table *t, size_t n, size_t most);
void ggtok_mem_table_free(mem_table *t);

/* The plain build, used only by tests, has no caches or other fast paths. Tests compare the ids
 * from other builds with the ids from the plain build. */
#ifdef GGTOK_TEST_PLAIN
#define PLAIN 1
#else
#define PLAIN 0
#endif

/* With small caches (test builds), a short text is enough to fill them and make them grow and
 * discard entries. */
#ifdef GGTOK_TEST_SMALL
#define SMALL 1
#else
#define SMALL 0
#endif

/* Returns n * size, or SIZE_MAX on overflow; no allocation of that size succeeds. */
static inline size_t mem_mul(size_t n, size_t size) {
    return size && n > SIZE_MAX / size ? SIZE_MAX : n * size;
}

/* Returns memcmp(a, b, n) == 0; for up to 16 bytes, without a function call. */
static inline bool mem_equal(const uint8_t *a, const uint8_t *b, size_t n) {
    uint64_t a0, a1, b0, b1;
    uint32_t c0, c1, d0, d1;
    if (n > 16) return !memcmp(a, b, n);
    if (n >= 8) { /* two overlapping loads */
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

/* A growable array of ids. Call idbuf_reserve first; then data[n++] needs no check. */
typedef struct idbuf {
    int32_t *data;
    size_t n, cap;
} idbuf;

/* A growable array of bytes, used like idbuf. */
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
