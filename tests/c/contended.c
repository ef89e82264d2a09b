/*
 * Tests state that threads share: forks while other threads hold the library's locks, Arrow structs
 * that several threads take, and templates that several threads render. It is also run under
 * ThreadSanitizer.
 *
 *     contended FILE.gguf TEMPLATES    TEMPLATES: a file with one template per line
 */
#include "arrow/texts.h"
#include "ggtok_train.h"
#include "jinja/core/jinja.h"

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
    ggtok_context *ctx = ggtok_pool_acquire(pool, NULL);
    if (ctx) ggtok_pool_release(pool, ctx);
    return ctx != NULL;
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

/* Creates and frees an object that has a lock: a fork also acquires the locks of objects. */
static bool make_counts(void) {
    const ggtok_counts_options options = {.cut = GGTOK_CUT_SPACES};
    ggtok_counts *made;
    if (ggtok_counts_new(&options, &made, NULL)) return false;
    ggtok_counts_free(made);
    return true;
}

typedef bool (*use)(void);
static const use uses[] = {use_pool, use_counts, make_counts};
enum { N_USES = sizeof uses / sizeof *uses, USERS = 3, FORKS = 40 };

static void *go_on_using(void *arg) {
    const use *u = arg;
    while (!stop) {
        if (!(*u)()) abort();
    }
    return NULL;
}

/* Forks a child process, which must be able to use everything, whatever other threads are doing. */
static bool fork_once(void) {
    enum { SECONDS = 30 };
    pid_t child = fork();
    int status = -1;
    if (!child) {
        alarm(SECONDS); /* kills a child that hangs */
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

/* ---- Arrow structs ---- */

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

/* ---- templates ---- */

enum { RENDERERS = 4 };
static const char variables[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"H\xc3\xa4 <|x|>\"},{\"role\":\"assistant\","
    "\"content\":null}],\"s\":\" a,b \",\"n\":7,\"f\":0.5,\"l\":[3,1,\"x\",null,true],"
    "\"d\":{\"k\":1,\"items\":2}}";
static jinja_template *shared;

/* Renders the shared template, and stores a hash of the resulting text or error. */
static void *render_shared(void *arg) {
    static const jinja_options options = {.now = {.year = 2026, .month = 3, .day = 7}};
    uint64_t *hash = arg;
    jinja_env *env;
    jinja_result out = {.text = ""};
    jinja_error err = {.message = ""};
    if (ggtok_jinja_env_new(&options, &env, &err)) abort();
    ggtok_status s = ggtok_jinja_env_json(env, variables, sizeof variables - 1,
                                          ggtok_jinja_template_dialect(shared), &err);
    if (!s) s = ggtok_jinja_render(env, shared, &out, &err);
    const char *text = s ? err.message : out.text;
    size_t n = s ? strlen(err.message) : out.n;
    *hash = 1469598103934665603u;
    for (size_t i = 0; i < n; i++) *hash = (*hash ^ (uint8_t)text[i]) * 1099511628211u;
    ggtok_jinja_env_free(env);
    return NULL;
}

static bool check_template(const char *source, size_t n, jinja_dialect dialect) {
    jinja_error err;
    if (ggtok_jinja_compile(source, n, dialect, &shared, &err)) return true;
    uint64_t hashes[RENDERERS];
    pthread_t threads[RENDERERS];
    for (int k = 0; k < RENDERERS; k++) {
        if (pthread_create(&threads[k], NULL, render_shared, &hashes[k])) abort();
    }
    for (int k = 0; k < RENDERERS; k++) pthread_join(threads[k], NULL);
    ggtok_jinja_template_free(shared);
    for (int k = 1; k < RENDERERS; k++) {
        if (hashes[k] != hashes[0]) {
            printf("renderings differ: %.*s\n", (int)n, source);
            return false;
        }
    }
    return true;
}

static bool check_templates(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    char line[1 << 14];
    bool fine = true;
    while (fine && fgets(line, sizeof line, file)) {
        size_t n = strcspn(line, "\n");
        fine =
            check_template(line, n, JINJA_LLAMA_CPP) && check_template(line, n, JINJA_TRANSFORMERS);
    }
    fclose(file);
    return fine;
}

int main(int argc, char **argv) {
    bool fine = argc == 3 && check_forks(argv[1]) && check_structs() && check_templates(argv[2]);
    if (fine) printf("ok\n");
    return !fine;
}
