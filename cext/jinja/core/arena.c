#include "jinja/core/arena.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/mem.h"

enum { FIRST_CHUNK = 32 << 10, LARGEST_CHUNK = 4 << 20 };

/*
 * Chunks that wait for the next heap. A prompt of 100 kB takes some 500 kB, and to touch new
 * pages for each would cost more than rendering it. Few and not large: what one large rendering
 * took isn't kept.
 */
enum { SPARES = 4, SPARE_MIN = 128 << 10, SPARE_MAX = 1 << 20 };
static _Atomic(jinja_chunk *) spares[SPARES];

static jinja_chunk *take_spare(void) {
    for (size_t i = 0; i < SPARES; i++) {
        if (!atomic_load_explicit(&spares[i], memory_order_relaxed)) continue;
        jinja_chunk *chunk = atomic_exchange(&spares[i], NULL);
        if (chunk) return chunk;
    }
    return NULL;
}

static void give_chunk(jinja_chunk *chunk) {
    bool keep = chunk->whole >= SPARE_MIN && chunk->whole <= SPARE_MAX;
    for (size_t i = 0; keep && i < SPARES; i++) {
        jinja_chunk *none = NULL;
        if (atomic_compare_exchange_strong(&spares[i], &none, chunk)) return;
    }
    ggtok_mem_free(chunk);
}

void ggtok_jinja_heap_init(jinja_heap *h, uint64_t bytes, uint64_t steps) {
    memset(h, 0, sizeof *h);
    h->bytes_left = bytes;
    h->steps_left = steps;
}

void ggtok_jinja_heap_free(jinja_heap *h) {
    while (h->chunks) {
        jinja_chunk *older = h->chunks->older;
        give_chunk(h->chunks);
        h->chunks = older;
    }
    h->top = h->end = NULL;
}

void *ggtok_jinja_alloc_slow(jinja_heap *h, size_t n) {
    size_t rounded = (n + 15) & ~(size_t)15;
    if (rounded < n || rounded > h->bytes_left) {
        ggtok_jinja_fail(h, "the template takes more memory than it may");
    }
    size_t header = (sizeof(jinja_chunk) + 15) & ~(size_t)15;
    size_t size = h->chunks ? 2 * h->chunks->size : FIRST_CHUNK;
    if (size > LARGEST_CHUNK) size = LARGEST_CHUNK;
    bool alone = rounded > size / 4; /* large ones leave the free rest to what follows */
    if (alone && rounded > (size_t)-1 - header)
        size = (size_t)-1;
    else if (alone)
        size = rounded + header;
    jinja_chunk *chunk = h->chunks ? NULL : take_spare();
    if (chunk && chunk->whole < size) {
        give_chunk(chunk);
        chunk = NULL;
    } else if (chunk) {
        size = chunk->whole;
        alone = false;
    }
    if (!chunk && !(chunk = ggtok_mem_alloc(size))) {
        h->error->status = GGTOK_ERR_MEMORY;
        ggtok_jinja_fail(h, "out of memory");
    }
    uint8_t *p = (uint8_t *)chunk + header;
    chunk->whole = size;
    chunk->size = alone && h->chunks ? h->chunks->size : size;
    if (alone && chunk->size > LARGEST_CHUNK) chunk->size = LARGEST_CHUNK;
    chunk->older = h->chunks;
    h->chunks = chunk;
    h->bytes_left -= rounded;
    if (!alone) {
        h->top = p + rounded;
        h->end = (uint8_t *)chunk + size;
    }
    return p;
}

/* ---- failing ---- */

/* The line of the template that runs, and its number. */
static void show_line(const jinja_heap *h, jinja_error *error) {
    error->line = 0;
    error->source[0] = 0;
    if (!h->source) return;
    size_t at = h->at < h->n_source ? h->at : h->n_source, begin = at, end = at;
    uint32_t line = 1;
    for (size_t i = 0; i < at; i++) line += h->source[i] == '\n';
    while (begin && h->source[begin - 1] != '\n') begin--;
    while (end < h->n_source && h->source[end] != '\n') end++;
    while (begin < at && (h->source[begin] == ' ' || h->source[begin] == '\t')) begin++;
    size_t n = end - begin, room = sizeof error->source - 1;
    if (n > room) {
        if (at - begin > room / 2) begin = at - room / 2;
        while (begin < at && (h->source[begin] & 0xC0) == 0x80) begin++;
        n = end - begin < room ? end - begin : room;
        while (n && begin + n < end && (h->source[begin + n] & 0xC0) == 0x80) n--;
    }
    memcpy(error->source, h->source + begin, n);
    error->source[n] = 0;
    error->line = line;
}

void ggtok_jinja_fail(jinja_heap *h, const char *format, ...) {
    jinja_error *error = h->error;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    if (n >= (int)sizeof error->message) { /* not within a character */
        size_t end = sizeof error->message - 1;
        while (end && (error->message[end - 1] & 0xC0) == 0x80) end--;
        if (end && (error->message[end - 1] & 0x80)) end--;
        error->message[end] = 0;
    }
    show_line(h, error);
    longjmp(*h->caller, 1);
}

void ggtok_jinja_fail_at(jinja_heap *h, size_t pos, const char *what) {
    h->at = (uint32_t)pos;
    ggtok_jinja_fail(h, "%s", what);
}

void ggtok_jinja_fail_steps(jinja_heap *h) {
    ggtok_jinja_fail(h, "the template takes more steps than it may: it does too much work");
}

void ggtok_jinja_fail_depth(jinja_heap *h) {
    ggtok_jinja_fail(h, "the template nests or recurses too deeply (more than %d levels)",
                     JINJA_MAX_DEPTH);
}

ggtok_status ggtok_jinja_protect(jinja_heap *h, void (*body)(jinja_heap *h, void *user), void *user,
                                 jinja_error *error) {
    jinja_error unread;
    jmp_buf here;
    jmp_buf *const outer = h->caller;
    jinja_error *const outer_error = h->error;
    const uint32_t depth = h->depth;
    h->caller = &here;
    h->error = error ? error : &unread;
    h->error->status = GGTOK_ERR_TEMPLATE; /* unless who fails says other */
    ggtok_status status = GGTOK_OK;
    if (setjmp(here) == 0) {
        body(h, user);
        h->error->status = GGTOK_OK;
        h->error->line = 0;
        h->error->message[0] = h->error->source[0] = 0;
    } else {
        status = h->error->status;
    }
    h->caller = outer;
    h->error = outer_error;
    h->depth = depth;
    return status;
}
