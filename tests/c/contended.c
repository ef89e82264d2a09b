/*
 * What threads have in common: forks while other threads hold each of the library's locks, and
 * Arrow structs that several threads take. To be run under ThreadSanitizer, too.
 *
 *     contended FILE.gguf
 */
#include "arrow/texts.h"
#include "ggtok.h"
#include "jinja/jinja.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- forks ---- */

static ggtok_pool *pool;
static ggtok_counts *counts;
static atomic_bool stop;

static bool use_pool(void) {
    ggtok_context *ctx = ggtok_pool_take(pool, NULL);
    if (ctx) ggtok_pool_give(pool, ctx);
    return ctx != NULL;
}

static bool use_templates(void) {
    static const char source[] = "{{ messages }}";
    jinja_template *t;
    jinja_error err;
    if (ggtok_jinja_compile_cached(source, strlen(source), JINJA_LLAMA_CPP, &t, &err)) return false;
    ggtok_jinja_template_release(t);
    return true;
}

static bool use_counts(void) {
    static const char text[] = "a few words to count ";
    ggtok_counter *counter;
    if (ggtok_counter_new(counts, &counter, NULL)) return false;
    bool ok = !ggtok_counter_add(counter, text, strlen(text), false, NULL) &&
              !ggtok_counter_flush(counter, NULL);
    ggtok_counter_free(counter);
    return ok;
}

/* The locks of objects are among those that a fork takes. */
static bool make_counts(void) {
    const ggtok_counts_options options = {.cut = GGTOK_CUT_SPACES};
    ggtok_counts *made;
    if (ggtok_counts_new(&options, &made, NULL)) return false;
    ggtok_counts_free(made);
    return true;
}

typedef bool (*use)(void);
static const use uses[] = {use_pool, use_templates, use_counts, make_counts};
enum { N_USES = sizeof uses / sizeof *uses, USERS = 3, FORKS = 40 };

static void *go_on_using(void *arg) {
    const use *u = arg;
    while (!stop) {
        if (!(*u)()) abort();
    }
    return NULL;
}

/* A child can use everything, whatever the other threads did when it was forked. */
static bool fork_once(void) {
    enum { SECONDS = 30 };
    pid_t child = fork();
    int status = -1;
    if (!child) {
        alarm(SECONDS); /* ends one that waits for ever */
        bool fine = true;
        for (int i = 0; i < N_USES; i++) fine &= uses[i]();
        _exit(!fine);
    }
    return child > 0 && waitpid(child, &status, 0) == child && !status;
}

static bool check_forks(const char *path) {
    const ggtok_counts_options options = {.cut = GGTOK_CUT_SPACES};
    ggtok_tokenizer *tok;
    if (ggtok_load_file(path, NULL, &tok, NULL) || ggtok_pool_new(tok, &pool, NULL) ||
        ggtok_counts_new(&options, &counts, NULL)) {
        return false;
    }
    bool fine = true;
    for (int i = 0; i < N_USES && fine; i++) {
        pthread_t threads[USERS];
        stop = false;
        for (int k = 0; k < USERS; k++) {
            if (pthread_create(&threads[k], NULL, go_on_using, (void *)&uses[i])) abort();
        }
        int forks = 0;
        while (forks < FORKS && fork_once()) forks++;
        stop = true;
        for (int k = 0; k < USERS; k++) pthread_join(threads[k], NULL);
        fine = forks == FORKS;
        if (!fine) printf("lock %d: forked child %d hangs or fails\n", i, forks);
    }
    ggtok_counts_free(counts);
    ggtok_pool_free(pool);
    ggtok_free(tok);
    return fine;
}

/* ---- structs ---- */

enum { TAKERS = 3, ROUNDS = 20000 };
static struct ArrowArray arrays[ROUNDS];
static struct ArrowArrayStream streams[ROUNDS];
static atomic_int arrays_taken[ROUNDS], streams_taken[ROUNDS];

static void release_array(struct ArrowArray *array) {
    array->release = NULL;
}
static void release_stream(struct ArrowArrayStream *stream) {
    stream->release = NULL;
}

static void *take(void *arg) {
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct ArrowArray array;
        struct ArrowArrayStream stream;
        ggtok_error err;
        if (!ggtok_arrow_take_array(&arrays[i], &array, &err)) {
            arrays_taken[i] += array.length == i && array.private_data == &arrays[i] &&
                                       array.release == release_array
                                   ? 1
                                   : TAKERS;
        }
        if (!ggtok_arrow_take_stream(&streams[i], &stream, &err)) {
            streams_taken[i] +=
                stream.private_data == &streams[i] && stream.release == release_stream ? 1 : TAKERS;
        }
    }
    return NULL;
}

static bool check_structs(void) {
    pthread_t threads[TAKERS];
    for (int i = 0; i < ROUNDS; i++) {
        arrays[i].length = i;
        arrays[i].private_data = &arrays[i];
        arrays[i].release = release_array;
        streams[i].private_data = &streams[i];
        streams[i].release = release_stream;
    }
    for (int k = 0; k < TAKERS; k++) {
        if (pthread_create(&threads[k], NULL, take, NULL)) abort();
    }
    for (int k = 0; k < TAKERS; k++) pthread_join(threads[k], NULL);
    for (int i = 0; i < ROUNDS; i++) {
        if (arrays_taken[i] != 1 || streams_taken[i] != 1 || arrays[i].release ||
            streams[i].release) {
            printf("struct %d was not taken once\n", i);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    bool fine = argc == 2 && check_forks(argv[1]) && check_structs();
    if (fine) printf("ok\n");
    return !fine;
}
