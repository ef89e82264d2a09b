/*
 * Renders templates and prints what each costs: steps, bytes of stack and, under callgrind,
 * instructions.
 *
 *     jinja STACK [STEPS] < cases     STACK: kilobytes of stack for the rendering thread
 *                                     STEPS: a smaller step budget than usual
 *
 * A case is a line "DIALECT N_JSON N_TEMPLATE\n" (dialect 0: llama.cpp, 1: transformers), followed
 * by the variables as JSON and the template. For each case, the output is a letter (C: doesn't
 * compile, J: malformed JSON, E: failed, O: rendered), the number of steps, the bytes of stack, and
 * the first bytes (at most 200) of the text or the error, preceded by their number. Callgrind's
 * counters are dumped after each case. The exit status is 2 if a rendering modified its template.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "jinja/core/env.h"

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif
#endif
/* AddressSanitizer doesn't allow reading another thread's stack. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__
#endif
#endif
#ifndef CALLGRIND_ZERO_STATS
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#endif

enum { PAINT = 0xA5 };

typedef struct work {
    char *json, *source;
    size_t n_json, n_source, number;
    jinja_dialect dialect;
    char kind;
    uint64_t steps, most; /* most: the step budget; 0: the usual budget */
    bool modified;
    jinja_env *env;
    jinja_error err;
    jinja_result out;
} work;

static uint64_t add_bytes(uint64_t sum, const void *data, size_t n) {
    for (const uint8_t *p = data, *end = p + n; p < end; p++) sum = (sum ^ *p) * 1099511628211u;
    return sum;
}

/* Computes a hash of a compiled template's whole memory. */
static uint64_t sum_of(const jinja_template *t) {
    uint64_t sum = add_bytes(1469598103934665603u, t, sizeof *t);
    for (const jinja_chunk *c = t->arena.chunks; c; c = c->older) {
        const uint8_t *p = (const uint8_t *)c, *end = p + c->whole;
        if (t->arena.top > p && t->arena.top <= end) end = t->arena.top;
        sum = add_bytes(sum, p, (size_t)(end - p));
    }
    return sum;
}

static void *render_work(void *user) {
    static const jinja_options options = {.now = {.year = 2026, .month = 3, .day = 7}};
    work *w = user;
    jinja_template *t;
    w->kind = 'C';
    w->out = (jinja_result){.text = ""};
    if (ggtok_jinja_compile(w->source, w->n_source, w->dialect, &t, &w->err)) return NULL;
    uint64_t sum = sum_of(t);
    if (ggtok_jinja_env_new(&options, &w->env, &w->err)) exit(1);
    w->kind = 'J';
    if (ggtok_jinja_env_json(w->env, w->json, w->n_json, w->dialect, &w->err)) {
        ggtok_jinja_template_free(t);
        return NULL;
    }
    w->kind = 'E';
    if (w->most) ggtok_jinja_env_arena(w->env)->steps_left = w->most;
    uint64_t before = ggtok_jinja_env_arena(w->env)->steps_left;
    char name[32];
    snprintf(name, sizeof name, "case %zu", w->number);
    CALLGRIND_ZERO_STATS;
    ggtok_status status = ggtok_jinja_render(w->env, t, &w->out, &w->err);
    CALLGRIND_DUMP_STATS_AT(name);
    w->steps = before - ggtok_jinja_env_arena(w->env)->steps_left;
    if (!status) w->kind = 'O';
    w->modified = sum != sum_of(t);
    ggtok_jinja_template_free(t);
    return NULL;
}

/* Runs the work on this stack and returns how many bytes of the stack were used. */
static size_t run_on(uint8_t *stack, size_t size, work *w) {
    size_t unused = 0;
#ifdef __SANITIZE_ADDRESS__
    (void)stack;
    render_work(w);
    unused = size;
#else
    pthread_t thread;
    pthread_attr_t attributes;
    memset(stack, PAINT, size);
    if (pthread_attr_init(&attributes) || pthread_attr_setstack(&attributes, stack, size)) exit(1);
    if (pthread_create(&thread, &attributes, render_work, w) || pthread_join(thread, NULL)) exit(1);
    pthread_attr_destroy(&attributes);
    while (unused < size && stack[unused] == PAINT) unused++;
#endif
    return size - unused;
}

static char *take(size_t n) {
    char *p = malloc(n + 1);
    if (!p || fread(p, 1, n, stdin) != n) exit(1);
    p[n] = 0;
    return p;
}

int main(int argc, char **argv) {
    size_t size = (size_t)atoi(argc > 1 ? argv[1] : "512") << 10;
    uint8_t *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) return 1;
    int dialect, status = 0;
    work w = {.most = argc > 2 ? strtoull(argv[2], NULL, 10) : 0};
    for (; scanf("%d %zu %zu", &dialect, &w.n_json, &w.n_source) == 3 && getchar() == '\n';
         w.number++) {
        w.dialect = (jinja_dialect)dialect;
        w.json = take(w.n_json);
        w.source = take(w.n_source);
        w.env = NULL;
        w.steps = w.modified = 0;
        size_t used = run_on(stack, size, &w);
        const char *text = w.kind == 'O' ? w.out.text : w.err.message;
        size_t n = w.kind == 'O' ? w.out.n : strlen(text);
        if (n > 200) n = 200;
        printf("%c %" PRIu64 " %zu %zu ", w.kind, w.steps, used, n);
        fwrite(text, 1, n, stdout);
        printf("\n");
        fflush(stdout);
        if (w.modified) status = 2, fprintf(stderr, "case %zu modified its template\n", w.number);
        ggtok_jinja_env_free(w.env);
        free(w.json);
        free(w.source);
    }
    return status;
}
