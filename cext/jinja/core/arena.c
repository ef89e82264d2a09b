#include "jinja/core/arena.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/mem.h"

enum { FIRST_CHUNK = 32 << 10, LARGEST_CHUNK = 4 << 20 };

/*
 * Free chunks for later arenas. A prompt of 100 kB takes about 500 kB, and touching new pages for
 * each prompt would cost more than rendering it. Only a few chunks of moderate size are kept, so
 * the memory of one large rendering is freed.
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

static void release_chunk(jinja_chunk *chunk) {
    bool keep = chunk->whole >= SPARE_MIN && chunk->whole <= SPARE_MAX;
    for (size_t i = 0; keep && i < SPARES; i++) {
        jinja_chunk *none = NULL;
        if (atomic_compare_exchange_strong(&spares[i], &none, chunk)) return;
    }
    ggtok_mem_free(chunk);
}

void ggtok_jinja_arena_init(jinja_arena *mem, uint64_t bytes, uint64_t steps) {
    memset(mem, 0, sizeof *mem);
    mem->bytes_left = bytes;
    mem->steps_left = steps;
}

void ggtok_jinja_arena_free(jinja_arena *mem) {
    while (mem->chunks) {
        jinja_chunk *older = mem->chunks->older;
        release_chunk(mem->chunks);
        mem->chunks = older;
    }
    mem->top = mem->end = NULL;
}

void *ggtok_jinja_alloc_slow(jinja_arena *mem, size_t n) {
    size_t rounded = (n + 15) & ~(size_t)15;
    if (rounded < n || rounded > mem->bytes_left) {
        ggtok_jinja_fail(mem, "the template exceeds its memory limit");
    }
    size_t header = (sizeof(jinja_chunk) + 15) & ~(size_t)15;
    size_t size = mem->chunks ? 2 * mem->chunks->size : FIRST_CHUNK;
    if (size > LARGEST_CHUNK) size = LARGEST_CHUNK;
    bool alone =
        rounded > size / 4; /* a large block gets a separate chunk; the current one stays in use */
    if (alone && rounded > (size_t)-1 - header)
        size = (size_t)-1;
    else if (alone)
        size = rounded + header;
    jinja_chunk *chunk = mem->chunks ? NULL : take_spare();
    if (chunk && chunk->whole < size) {
        release_chunk(chunk);
        chunk = NULL;
    } else if (chunk) {
        size = chunk->whole;
        alone = false;
    }
    if (!chunk && !(chunk = ggtok_mem_alloc(size))) {
        mem->error->status = GGTOK_ERR_MEMORY;
        ggtok_jinja_fail(mem, "out of memory");
    }
    uint8_t *p = (uint8_t *)chunk + header;
    chunk->whole = size;
    chunk->size = alone && mem->chunks ? mem->chunks->size : size;
    if (alone && chunk->size > LARGEST_CHUNK) chunk->size = LARGEST_CHUNK;
    chunk->older = mem->chunks;
    mem->chunks = chunk;
    mem->bytes_left -= rounded;
    if (!alone) {
        mem->top = p + rounded;
        mem->end = (uint8_t *)chunk + size;
    }
    return p;
}

/* ---- failing ---- */

/* Sets the error's line number and source line. */
static void show_line(const jinja_arena *mem, jinja_error *error) {
    error->line = 0;
    error->source[0] = 0;
    if (!mem->source) return;
    size_t at = mem->at < mem->n_source ? mem->at : mem->n_source, begin = at, end = at;
    uint32_t line = 1;
    for (size_t i = 0; i < at; i++) line += mem->source[i] == '\n';
    while (begin && mem->source[begin - 1] != '\n') begin--;
    while (end < mem->n_source && mem->source[end] != '\n') end++;
    while (begin < at && (mem->source[begin] == ' ' || mem->source[begin] == '\t')) begin++;
    size_t n = end - begin, room = sizeof error->source - 1;
    if (n > room) {
        if (at - begin > room / 2) begin = at - room / 2;
        while (begin < at && (mem->source[begin] & 0xC0) == 0x80) begin++;
        n = (size_t)text_prefix(mem->source + begin, end - begin, room);
    }
    memcpy(error->source, mem->source + begin, n);
    error->source[n] = 0;
    error->line = line;
}

void ggtok_jinja_fail(jinja_arena *mem, const char *format, ...) {
    jinja_error *error = mem->error;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    if (n >= (int)sizeof error->message)
        text_drop_partial(error->message, sizeof error->message - 1);
    show_line(mem, error);
    longjmp(*mem->caller, 1);
}

void ggtok_jinja_fail_at(jinja_arena *mem, size_t pos, const char *what) {
    mem->at = (uint32_t)pos;
    ggtok_jinja_fail(mem, "%s", what);
}

void ggtok_jinja_fail_steps(jinja_arena *mem) {
    ggtok_jinja_fail(mem, "the template does too much work: it exceeds its limit of steps");
}

void ggtok_jinja_fail_depth(jinja_arena *mem) {
    ggtok_jinja_fail(mem, "the template nests or recurses too deeply (more than %d levels)",
                     JINJA_MAX_DEPTH);
}

ggtok_status ggtok_jinja_protect(jinja_arena *mem, void (*body)(jinja_arena *mem, void *user),
                                 void *user, jinja_error *error) {
    jinja_error unread;
    jmp_buf here;
    jmp_buf *const outer = mem->caller;
    jinja_error *const outer_error = mem->error;
    const uint32_t depth = mem->depth;
    mem->caller = &here;
    mem->error = error ? error : &unread;
    /* A failing function may set another status, a fault and a key. */
    mem->error->status = GGTOK_ERR_TEMPLATE;
    mem->error->fault = 0;
    mem->error->key[0] = 0;
    ggtok_status status = GGTOK_OK;
    if (setjmp(here) == 0) {
        body(mem, user);
        mem->error->status = GGTOK_OK;
        mem->error->line = 0;
        mem->error->message[0] = mem->error->source[0] = 0;
    } else {
        status = mem->error->status;
    }
    mem->caller = outer;
    mem->error = outer_error;
    mem->depth = depth;
    return status;
}
