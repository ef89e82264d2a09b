/*
 * Encodes an Arrow column while each allocation fails in turn, alone or with all later ones. The
 * result is either an out-of-memory error or the right ids; the input is released once, and nothing
 * leaks. Compiled with GGTOK_TEST_ALLOC (cext/base/mem.c).
 *
 *     arrow FILE.gguf
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/ids.h"
#include "arrow/texts.h"
#include "failing_alloc.h"

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("allocation %zu%s: %s does not hold (line %d)\n", at, \
                   on ? " and all after it" : "", #what, __LINE__); \
            return false; \
        } \
    } while (0)

/* ---- a column ---- */

enum { ROWS = 4, CHUNKS = 3 };
static const int32_t offsets[] = {0, 12, 12, 17, 40};
static const uint8_t validity[] = {0x0D}; /* the second value is null */
static const char data[] = "Hello, worldthere a text for the last row";
static const void *buffers[] = {validity, offsets, data};
static unsigned n_released;

static void release_array(struct ArrowArray *array) {
    n_released++;
    array->release = NULL;
}

static void release_schema(struct ArrowSchema *schema) {
    n_released++;
    schema->release = NULL;
}

static void release_stream(struct ArrowArrayStream *stream) {
    n_released++;
    stream->release = NULL;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    (void)stream;
    *out = (struct ArrowSchema){.format = "u", .name = "", .release = release_schema};
    return 0;
}

static unsigned n_arrays;

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    (void)stream;
    *out = (struct ArrowArray){0};
    if (n_arrays == CHUNKS) return 0;
    n_arrays++;
    out->length = ROWS;
    out->null_count = -1;
    out->n_buffers = 3;
    out->buffers = buffers;
    out->release = release_array;
    return 0;
}

/* ---- the test ---- */

static ggtok_status encode(const ggtok_tokenizer *tok, struct ArrowArray *out,
                           struct ArrowSchema *schema) {
    ggtok_error err;
    arrow_texts texts = {.first_null = SIZE_MAX};
    ggtok_pool *pool = NULL;
    ggtok_batch *batch = NULL;
    size_t failed_text;
    struct ArrowArrayStream stream = {
        .get_schema = get_schema, .get_next = get_next, .release = release_stream};
    ggtok_status s = ggtok_arrow_texts_read(&texts, &stream, &err);
    if (!s) s = ggtok_pool_new(tok, &pool, &err);
    if (!s) {
        s = ggtok_encode_batch(pool, texts.data, texts.n, GGTOK_COPY_TEXTS, 2, NULL, NULL, &batch,
                               &failed_text, &err);
    }
    if (!s) {
        arrow_ids *ids = ggtok_arrow_ids_new(&batch, texts.data, texts.n);
        bool made = ids && ggtok_arrow_ids_export(ids, out);
        if (made && !ggtok_arrow_ids_schema(schema)) {
            out->release(out);
            made = false;
        }
        if (!made) s = GGTOK_ERR_MEMORY;
        ggtok_arrow_ids_drop(ids);
    }
    ggtok_batch_free(batch);
    ggtok_pool_free(pool);
    ggtok_arrow_texts_free(&texts);
    return s;
}

static bool encode_to_arrow(const ggtok_tokenizer *tok, size_t at, bool on, size_t *n_ids,
                            bool *done) {
    struct ArrowArray out = {0};
    struct ArrowSchema schema = {0};
    size_t before = blocks_held();
    n_arrays = n_released = 0;
    start_failing(at, on);
    ggtok_status s = encode(tok, &out, &schema);
    *done = !failed;
    start_failing(0, false);
    CHECK(n_released == n_arrays + 2);
    CHECK(s ? s == GGTOK_ERR_MEMORY && at : n_arrays == CHUNKS);
    if (!s) {
        const uint8_t *bits = out.buffers[0];
        const int64_t *ends = out.buffers[1];
        size_t n = (size_t)ends[ROWS * CHUNKS];
        if (!at) *n_ids = n;
        CHECK(n == *n_ids && n > 10);
        CHECK(out.length == ROWS * CHUNKS && out.null_count == CHUNKS);
        CHECK(bits[0] == 0xDD && bits[1] == 0x0D);
        CHECK(out.children[0]->length == (int64_t)n);
        schema.release(&schema);
        struct ArrowArray child = *out.children[0]; /* moved out of its parent, and released last */
        out.children[0]->release = NULL;
        out.release(&out);
        CHECK(((const int32_t *)child.buffers[1])[0] >= 0);
        child.release(&child);
    }
    CHECK(blocks_held() == before);
    return true;
}

int main(int argc, char **argv) {
    ggtok_tokenizer *tok;
    ggtok_error err;
    size_t n_ids = 0, tried = 0;
    bool done;
    if (argc != 2 || ggtok_load_file(argv[1], NULL, &tok, &err)) return 1;
    bool good = encode_to_arrow(tok, 0, false, &n_ids, &done);
    for (int on = 0; good && on < 2; on++) {
        done = false;
        for (size_t at = 1; good && !done; at++, tried++)
            good = encode_to_arrow(tok, at, on, &n_ids, &done);
    }
    ggtok_free(tok);
    printf("%zu failures\n", tried - 2);
    return !good || tried < 20 || blocks_held();
}
