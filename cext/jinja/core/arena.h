/*
 * Memory and budget of one compilation or rendering.
 *
 * All allocations come from one arena, which is freed as a whole. A failure therefore frees
 * nothing: it records a message and jumps to the innermost ggtok_jinja_protect. Bytes and steps are
 * charged before memory is allocated or work is done, so whether a rendering stays within its
 * budget depends only on the template and its values, not on the machine.
 */
#ifndef GGTOK_JINJA_CORE_ARENA_H
#define GGTOK_JINJA_CORE_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/prefix.h"
#include "ggtok.h"

typedef struct jinja_chunk {
    struct jinja_chunk *older;
    size_t size;  /* base for growth, in bytes: the next chunk is twice as large, up to a limit */
    size_t whole; /* size of this chunk in bytes, including its header */
} jinja_chunk;

/* The message of a failure, and the line of the template or the field of a request that caused
 * it. */
typedef struct jinja_error {
    ggtok_status status;
    uint32_t line;     /* line number, counted from 1; 0 if no line caused the failure */
    uint8_t fault;     /* why chat/ refuses a request (a chat_fault); 0 for other failures */
    char message[512]; /* UTF-8, NUL-terminated */
    char source[160];  /* text of that line, shortened to fit */
    char key[96];      /* path of the field at fault, NUL-terminated; "" if none */
} jinja_error;

typedef struct jinja_arena {
    uint8_t *top, *end; /* bounds of the free bytes in the newest chunk */
    jinja_chunk *chunks;
    uint64_t bytes_left, steps_left;
    uint32_t at;        /* byte offset in the template of the node being processed */
    const char *source; /* the template's text, or NULL */
    size_t n_source;
    uint32_t depth;  /* current depth of the recursion that a template or value causes */
    bool shared;     /* several threads will read the texts: compute lazy fields at creation */
    jmp_buf *caller; /* jump buffer of the surrounding ggtok_jinja_protect */
    jinja_error *error;
} jinja_arena;

/* Maximum depth of nested calls. Each takes at most 480 bytes of the C stack, 384 kB in all;
 * tests/chat/stack.py finds the recursion that takes the most. */
enum { JINJA_MAX_DEPTH = 800 };

void ggtok_jinja_arena_init(jinja_arena *mem, uint64_t bytes, uint64_t steps);
void ggtok_jinja_arena_free(jinja_arena *mem);

/* Runs body(mem, user), which may call functions that can fail. Returns GGTOK_OK or the failure's
 * status; fills *error (may be NULL) with the failure. */
ggtok_status ggtok_jinja_protect(jinja_arena *mem, void (*body)(jinja_arena *mem, void *user),
                                 void *user, jinja_error *error);

#if defined(__GNUC__)
#define JINJA_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define JINJA_PRINTF(fmt, args)
#endif

/* Keeps the large stack frame of a function out of the frames of its recursive callers. */
#if defined(__GNUC__)
#define JINJA_NOINLINE __attribute__((noinline))
#else
#define JINJA_NOINLINE
#endif

/* Report a failure: record it, then jump to the innermost ggtok_jinja_protect. */
_Noreturn void ggtok_jinja_fail(jinja_arena *mem, const char *format, ...) JINJA_PRINTF(2, 3);
_Noreturn void ggtok_jinja_fail_at(jinja_arena *mem, size_t pos, const char *what);
_Noreturn void ggtok_jinja_fail_steps(jinja_arena *mem);
_Noreturn void ggtok_jinja_fail_depth(jinja_arena *mem);

void *ggtok_jinja_alloc_slow(jinja_arena *mem, size_t n);

/* Returns n bytes, aligned to 16, valid until the arena is freed. */
static inline void *jinja_alloc(jinja_arena *mem, size_t n) {
    size_t rounded = (n + 15) & ~(size_t)15;
    bool fits = mem->top && rounded <= (size_t)(mem->end - mem->top) && rounded <= mem->bytes_left;
    if (!fits || rounded < n) {
        return ggtok_jinja_alloc_slow(mem, n);
    }
    void *p = mem->top;
    mem->top += rounded;
    mem->bytes_left -= rounded;
    return p;
}

/* Returns memory for n objects of `size` bytes. */
static inline void *jinja_alloc_n(jinja_arena *mem, size_t n, size_t size) {
    return jinja_alloc(mem, size && n > SIZE_MAX / 2 / size ? SIZE_MAX / 2 : n * size);
}

/* Charge steps to the budget. One step pays for an operator, or for reading 16 bytes. */
static inline void jinja_charge(jinja_arena *mem, uint64_t steps) {
    if (steps > mem->steps_left) ggtok_jinja_fail_steps(mem);
    mem->steps_left -= steps;
}
static inline void jinja_charge_bytes(jinja_arena *mem, uint64_t n) {
    jinja_charge(mem, 1 + n / 16);
}
static inline bool jinja_step(jinja_arena *mem) {
    return jinja_charge(mem, 1), true;
}

/* Loops over i in [0, n), charging one step per iteration; each iteration evaluates n again. For
 * loops whose length is determined by a template or a value. */
#define JINJA_EACH(mem, i, n) for (uint32_t i = 0; i < (n) && jinja_step(mem); i++)

static inline void jinja_enter(jinja_arena *mem) {
    if (++mem->depth > JINJA_MAX_DEPTH) ggtok_jinja_fail_depth(mem);
}
static inline void jinja_leave(jinja_arena *mem) {
    mem->depth--;
}

#endif
