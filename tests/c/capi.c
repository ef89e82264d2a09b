/*
 * Tests the C API without Python, on a byte-level BPE fixture. tests/c/build.py builds it from
 * ggtok.h and the C sources. Prints the checks that fail; the exit status is 1 if there are any.
 */
#include "ggtok.h"
#include "ggtok_chat.h"
#include "ggtok_sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            failures++; \
        } \
    } while (0)

static unsigned char *read_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    size_t cap = 1 << 16;
    unsigned char *data = malloc(cap);
    *n = 0;
    for (size_t got; data && (got = fread(data + *n, 1, cap - *n, f)) > 0;) {
        *n += got;
        if (*n == cap) {
            unsigned char *more = realloc(data, cap *= 2);
            if (!more) free(data);
            data = more;
        }
    }
    fclose(f);
    return data;
}

/* Encodes and decodes a text. With byte-level BPE, the result must be the same bytes. */
static void check_round_trip(ggtok_context *ctx, const char *text, size_t n) {
    ggtok_error err;
    ggtok_ids ids;
    CHECK(!ggtok_encode(ctx, text, n, 0, &ids, &err));
    CHECK(!n == !ids.n);

    /* The ids are valid only until the context's next use, so copy them. */
    int32_t *kept = malloc(ids.n * sizeof *kept + 1);
    if (ids.n) memcpy(kept, ids.data, ids.n * sizeof *kept);
    size_t n_kept = ids.n;

    ggtok_bytes bytes;
    unsigned flags = GGTOK_UNPARSE_SPECIAL | GGTOK_KEEP_SPACES;
    CHECK(!ggtok_decode(ctx, kept, n_kept, flags, &bytes, &err));
    CHECK(bytes.n == n && (!n || !memcmp(bytes.data, text, n)));
    free(kept);
}

static void check_encode(const ggtok_tokenizer *tok) {
    ggtok_error err;
    ggtok_context *ctx, *other;
    CHECK(!ggtok_context_new(tok, &ctx, &err));
    CHECK(!ggtok_context_new(tok, &other, NULL));

    check_round_trip(ctx, "", 0);
    check_round_trip(ctx, "Hello, world! \xE4\xBD\xA0\xE5\xA5\xBD 123\n\n", 25);
    check_round_trip(other, "nul \0 inside", 12);
    check_round_trip(other, " ls ./x ? it 's !", 17);

    /* This text makes all buffers grow. */
    size_t n = 300000;
    char *text = malloc(n);
    for (size_t i = 0; i < n; i++) text[i] = "lorem ipsum\n"[i % 12];
    check_round_trip(ctx, text, n);
    free(text);

    /* The context is still usable after an error. */
    ggtok_bytes bytes;
    int32_t bad[] = {0, (int32_t)ggtok_n_tokens(tok)};
    CHECK(ggtok_decode(ctx, bad, 2, 0, &bytes, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(err.status == GGTOK_ERR_ARGUMENT && err.message[0]);
    bad[1] = -1;
    CHECK(ggtok_decode(ctx, bad, 2, 0, &bytes, NULL) == GGTOK_ERR_ARGUMENT);
    check_round_trip(ctx, "again", 5);

    ggtok_context_free(other);
    ggtok_context_free(ctx);
    ggtok_context_free(NULL);
}

/* Checks spans, continuations and selected special tokens, in single calls and in a batch. */
static void check_spans(const ggtok_tokenizer *tok) {
    ggtok_error err;
    ggtok_context *ctx;
    ggtok_ids ids;
    ggtok_span spans[64];
    const char text[] = "Hello, \xE4\xBD\xA0 world";
    const size_t n = sizeof text - 1;
    CHECK(!ggtok_context_new(tok, &ctx, &err));
    CHECK(!ggtok_encode(ctx, text, n, GGTOK_ADD_SPECIAL | GGTOK_SPANS, &ids, &err));
    CHECK(!ggtok_spans(ctx, spans, &err));
    int64_t at = 0;
    for (size_t i = 0; i < ids.n; i++) { /* BPE doesn't normalize, so spans tile the text */
        CHECK(spans[i].begin == at && spans[i].end >= at);
        at = spans[i].end;
    }
    CHECK(ids.n > 4 && at == (int64_t)n);
    ggtok_span whole[2] = {{0, 8}, {8, (int64_t)n}}; /* each contains part of a character */
    ggtok_convert_spans(text, n, whole, 2, GGTOK_UNIT_BYTE);
    CHECK(whole[0].end == 8 && whole[1].begin == 8);
    ggtok_convert_spans(text, n, whole, 2, GGTOK_UNIT_CHAR);
    CHECK(whole[0].end == 8 && whole[1].begin == 7 && whole[1].end == 14);
    const char rest[] = "\xBD\xA0"; /* the end of a character; nothing before it may be read */
    ggtok_span inside = {1, 2};
    ggtok_convert_spans(rest, 2, &inside, 1, GGTOK_UNIT_UTF16);
    CHECK(inside.begin == 0 && inside.end == 0);

    int32_t bos = ggtok_special_id(tok, GGTOK_BOS), letter = ggtok_text_to_token(tok, "H", 1);
    size_t n_added = ids.n;
    CHECK(!ggtok_encode(ctx, text, n, GGTOK_ADD_SPECIAL | GGTOK_CONTINUATION, &ids, &err));
    CHECK(ids.n == n_added - (bos >= 0 && ggtok_flag(tok, GGTOK_FLAG_ADD_BOS)));

    ggtok_special_choice *choice;
    CHECK(ggtok_special_choice_new(tok, &letter, 1, &choice, &err) == GGTOK_ERR_ARGUMENT &&
          !choice);
    CHECK(ggtok_special_choice_new(tok, &(int32_t){-1}, 1, &choice, NULL) == GGTOK_ERR_ARGUMENT);
    CHECK(!ggtok_special_choice_new(tok, &bos, bos >= 0, &choice, &err));
    ggtok_context_set_special_choice(ctx, choice);
    int32_t eot = ggtok_special_id(tok, GGTOK_EOT);
    ggtok_bytes name;
    if (bos >= 0 && eot >= 0 && bos != eot) {
        CHECK(!ggtok_token_text(tok, eot, &name, &err));
        CHECK(!ggtok_encode(ctx, name.data, name.n, GGTOK_PARSE_SPECIAL, &ids, &err) && ids.n > 1);
        CHECK(!ggtok_token_text(tok, bos, &name, &err));
        CHECK(!ggtok_encode(ctx, name.data, name.n, GGTOK_PARSE_SPECIAL, &ids, &err));
        CHECK(ids.n == 1 && ids.data[0] == bos);
    }
    ggtok_context_free(ctx);

    ggtok_pool *pool;
    ggtok_batch *batch;
    size_t failed;
    const ggtok_bytes texts[] = {{text, n}, {"", 0}, {text, 5}};
    const ggtok_batch_options options = {.flags = GGTOK_SPANS, .threads = 2, .choice = choice};
    CHECK(!ggtok_pool_new(tok, &pool, &err));
    CHECK(!ggtok_encode_batch_with(pool, texts, 3, &options, &batch, &failed, &err));
    CHECK(ggtok_batch_n_ids(batch) <= 64);
    CHECK(ggtok_batch_spans(batch)[ggtok_batch_n_ids(batch) - 1].end == 5);
    ggtok_batch_free(batch);
    ggtok_pool_free(pool);
    ggtok_special_choice_free(choice);
    ggtok_special_choice_free(NULL);
}

static bool never(void *user) {
    ++*(int *)user;
    return false;
}

typedef struct receiver {
    size_t n, n_ids; /* counted so far */
    size_t stop_at;  /* the text at which to stop; SIZE_MAX: none */
    const ggtok_batch *want;
    bool right;
} receiver;

/* Compares the received part with the ids and the offsets of `want`. */
static bool receive_part(receiver *r, const ggtok_batch_part *p) {
    const int64_t *offsets = ggtok_batch_offsets(r->want);
    size_t n_ids = 0;
    r->right = r->right && p->first == r->n;
    for (size_t i = 0; i < p->n; i++, r->n++) {
        r->right = r->right && p->n_ids[i] == offsets[r->n + 1] - offsets[r->n];
        n_ids += (size_t)p->n_ids[i];
        if (r->n == r->stop_at) return false;
    }
    r->right = r->right && (!n_ids || !memcmp(p->ids, ggtok_batch_ids(r->want) + r->n_ids,
                                              n_ids * sizeof *p->ids));
    r->n_ids += n_ids;
    return true;
}

static bool receive_parts(void *user, const ggtok_batch_part *parts, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!receive_part(user, &parts[i])) return false;
    return true;
}

/* Runs on several threads, but changes only the spans that it is passed. */
static void add_one(void *user, ggtok_bytes text, ggtok_span *spans, size_t n) {
    (void)user, (void)text;
    for (size_t i = 0; i < n; i++) spans[i].begin++, spans[i].end++;
}

static bool count_texts(void *user, const ggtok_batch_part *parts, size_t n) {
    for (size_t i = 0; i < n; i++) *(size_t *)user += parts[i].n;
    return true;
}

/* Checks that a batch whose ids are received equals one that keeps them. */
static void check_receive(ggtok_pool *pool, const ggtok_bytes *texts, size_t n) {
    ggtok_error err;
    ggtok_batch *want, *batch;
    size_t failed;
    ggtok_batch_options options = {.flags = GGTOK_SPANS, .threads = 1};
    CHECK(!ggtok_encode_batch_with(pool, texts, n, &options, &want, &failed, &err));
    const int64_t *offsets = ggtok_batch_offsets(want);
    const ggtok_span *spans = ggtok_batch_spans(want);
    for (unsigned threads = 1; threads <= 4; threads++) {
        for (int converts = 0; converts < 2; converts++) {
            receiver r = {.want = want, .stop_at = SIZE_MAX, .right = true};
            options = (ggtok_batch_options){.flags = GGTOK_SPANS,
                                            .threads = threads,
                                            .user = &r,
                                            .receive = receive_parts,
                                            .convert = converts ? add_one : NULL};
            CHECK(!ggtok_encode_batch_with(pool, texts, n, &options, &batch, &failed, &err));
            CHECK(r.right && r.n == n && r.n_ids == ggtok_batch_n_ids(want));
            CHECK(ggtok_batch_n_ids(batch) == r.n_ids);
            CHECK(!memcmp(ggtok_batch_offsets(batch), offsets, (n + 1) * sizeof *offsets));
            const ggtok_span *found = ggtok_batch_spans(batch);
            for (size_t i = 0; i < r.n_ids; i++) {
                CHECK(found[i].begin == spans[i].begin + converts);
                CHECK(found[i].end == spans[i].end + converts);
            }
            ggtok_batch_free(batch);
        }
        for (size_t at = 0; at < n; at += 1 + n / 3) {
            receiver r = {.want = want, .stop_at = at, .right = true};
            options =
                (ggtok_batch_options){.threads = threads, .user = &r, .receive = receive_parts};
            CHECK(ggtok_encode_batch_with(pool, texts, n, &options, &batch, &failed, &err) ==
                  GGTOK_ERR_STOPPED);
            CHECK(r.right && !batch && failed == n);
        }
    }
    ggtok_batch_free(want);
}

/* Checks that batches on several threads give the same ids as one context, in the order of the
 * texts. */
static void check_batch(const ggtok_tokenizer *tok) {
    enum { N = 3000, LETTERS = 200 };
    ggtok_error err;
    ggtok_pool *pool;
    CHECK(!ggtok_pool_new(tok, &pool, &err));
    ggtok_bytes texts[N];
    char letters[LETTERS];
    for (size_t i = 0; i < LETTERS; i++) letters[i] = "lorem ipsum dolor"[i % 17];
    for (size_t i = 0; i < N; i++) texts[i] = (ggtok_bytes){letters, i * 7919 % LETTERS};

    for (unsigned threads = 0; threads <= 4; threads++) {
        ggtok_batch *batch;
        size_t failed;
        CHECK(!ggtok_encode_batch(pool, texts, N, GGTOK_ADD_SPECIAL, threads, NULL, NULL, &batch,
                                  &failed, &err));
        size_t n_ids = ggtok_batch_n_ids(batch);
        const int32_t *ids = ggtok_batch_ids(batch);
        const int64_t *offsets = ggtok_batch_offsets(batch);
        CHECK(offsets[0] == 0 && (size_t)offsets[N] == n_ids);
        ggtok_context *ctx = ggtok_pool_acquire(pool, &err);
        for (size_t i = 0; i < N; i++) {
            ggtok_ids own;
            CHECK(!ggtok_encode(ctx, texts[i].data, texts[i].n, GGTOK_ADD_SPECIAL, &own, &err));
            CHECK(offsets[i + 1] - offsets[i] == (int64_t)own.n);
            CHECK(!own.n || !memcmp(ids + offsets[i], own.data, own.n * sizeof *ids));
        }
        if (threads == 2) ggtok_pool_clear(pool); /* clear the pool while a context is in use */
        ggtok_pool_release(pool, ctx);
        ggtok_batch_free(batch);
    }

    check_receive(pool, texts, N);
    ggtok_batch *batch;
    size_t failed;
    int asked = 0;
    CHECK(ggtok_encode_batch(pool, texts, N, 0, 1, never, &asked, &batch, &failed, &err) ==
          GGTOK_ERR_STOPPED); /* on one thread, because with several, another might finish first */
    CHECK(asked == 1 && !batch && failed == N);
    CHECK(!ggtok_encode_batch(pool, texts, 0, 0, 2, NULL, NULL, &batch, &failed, &err));
    CHECK(ggtok_batch_n_ids(batch) == 0);
    ggtok_batch_free(batch);
    ggtok_pool_free(pool);
    ggtok_pool_free(NULL);
}

/* Encodes a text in blocks whose size grows by one byte; the ids must be those of the whole
 * text. */
static void check_blocks(const ggtok_tokenizer *tok) {
    static const char text[] = "The kettle's 1234 lids\n\n<|im_end|>  and caf\xC3\xA9s, \xFF.\n";
    const unsigned all = GGTOK_ADD_SPECIAL | GGTOK_PARSE_SPECIAL;
    size_t n = sizeof text - 1, n_parts = 0;
    ggtok_error err;
    ggtok_context *ctx;
    ggtok_ids ids;
    int32_t whole[sizeof text + 2], parts[sizeof text + 2];
    CHECK(!ggtok_context_new(tok, &ctx, &err));
    CHECK(!ggtok_encode(ctx, text, n, all, &ids, &err));
    size_t n_whole = ids.n, n_ids = 0;
    memcpy(whole, ids.data, n_whole * sizeof *whole);
    unsigned flags = all;
    for (size_t from = 0, end = 1; from < n; end++) {
        size_t cut = end < n ? ggtok_safe_cut(ctx, text + from, end - from, flags) : n - from;
        CHECK(cut < end - from || end == n);
        if (end < n) {
            size_t used = n;
            CHECK(!ggtok_encode_block(ctx, text + from, end - from, flags, &ids, &used, &err));
            CHECK(used == cut && (used || !ids.n));
        } else {
            CHECK(!ggtok_encode(ctx, text + from, cut, flags, &ids, &err));
        }
        if (!cut) continue;
        CHECK(n_ids + ids.n <= n_whole);
        if (n_ids + ids.n > n_whole) break;
        if (ids.n) memcpy(parts + n_ids, ids.data, ids.n * sizeof *parts);
        n_ids += ids.n;
        n_parts++;
        from += cut;
        flags |= GGTOK_NOT_FIRST_BLOCK;
    }
    CHECK(n_ids == n_whole && !memcmp(parts, whole, n_ids * sizeof *parts));
    CHECK(n_parts > 5);
    CHECK(!ggtok_safe_cut(ctx, text, 0, 0));
    CHECK(!ggtok_safe_cut(ctx, "aaaaaaaaaaaaaaaa", 16, 0));
    ggtok_context_free(ctx);
}

/* Samples a text; a batch of it gives the ids of its indices. */
static void check_sample(const ggtok_tokenizer *tok) {
    enum { N = 50 };
    static const char text[] = "The quick brown kettle is there";
    ggtok_error err;
    ggtok_context *ctx;
    ggtok_pool *pool;
    ggtok_batch *batch;
    ggtok_ids ids;
    ggtok_segmentations found;
    size_t failed, differ = 0;
    ggtok_bytes texts[N];
    ggtok_sampling sampling = {.rule = GGTOK_SAMPLING_DROPOUT, .value = 0.5, .seed = 3, .index = 7};
    const ggtok_batch_options options = {.threads = 2, .sampling = &sampling};
    for (int i = 0; i < N; i++) texts[i] = (ggtok_bytes){text, sizeof text - 1};
    CHECK(!ggtok_context_new(tok, &ctx, &err));
    CHECK(!ggtok_pool_new(tok, &pool, &err));
    CHECK(!ggtok_encode_batch_with(pool, texts, N, &options, &batch, &failed, &err));
    const ggtok_batch_options spans = {.flags = GGTOK_SPANS, .threads = 2, .sampling = &sampling};
    ggtok_batch *none;
    CHECK(ggtok_encode_batch_with(pool, texts, N, &spans, &none, &failed, &err) ==
          GGTOK_ERR_ARGUMENT);
    CHECK(!none && failed == N);
    const int64_t *ends = ggtok_batch_offsets(batch);
    ggtok_sampling one = sampling;
    for (int i = 0; i < N; i++, one.index++) {
        size_t n = (size_t)(ends[i + 1] - ends[i]);
        CHECK(!ggtok_sample(ctx, text, sizeof text - 1, 0, &one, &ids, &err));
        CHECK(ids.n == n &&
              !memcmp(ids.data, ggtok_batch_ids(batch) + ends[i], n * sizeof *ids.data));
        differ += i && (n != (size_t)ends[1] || memcmp(ids.data, ggtok_batch_ids(batch), n * 4));
    }
    CHECK(differ > N / 2);
    ggtok_batch_free(batch);
    sampling.value = 0;
    CHECK(!ggtok_sample(ctx, text, sizeof text - 1, 0, &sampling, &ids, &err));
    size_t n = ids.n;
    CHECK(!ggtok_encode(ctx, text, sizeof text - 1, 0, &ids, &err) && ids.n == n);
    sampling.value = 2;
    CHECK(ggtok_sample(ctx, text, 5, 0, &sampling, &ids, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(!strcmp(err.key, "dropout") && !ids.data && !ids.n);
    sampling.rule = (ggtok_sampling_rule)7;
    CHECK(ggtok_sample(ctx, text, 5, 0, &sampling, &ids, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(ggtok_nbest(ctx, text, 5, 0, 3, &found, &err) == GGTOK_ERR_ARGUMENT && !found.n);
    CHECK(ggtok_nbest(ctx, text, 5, 0, 0, &found, &err) == GGTOK_ERR_ARGUMENT);
    ggtok_context_free(ctx);
    ggtok_pool_free(pool);
}

static void check_vocabulary(const ggtok_tokenizer *tok) {
    ggtok_error err;
    uint32_t n = ggtok_n_tokens(tok);
    CHECK(n > 0);
    CHECK(ggtok_type(tok) == GGTOK_VOCAB_BPE);
    CHECK(ggtok_model(tok) && ggtok_pre(tok));

    for (uint32_t i = 0; i < n; i++) {
        int32_t id = (int32_t)i;
        ggtok_bytes text, piece;
        float score;
        uint32_t attr;
        CHECK(!ggtok_token_text(tok, id, &text, &err));
        CHECK(ggtok_text_to_token(tok, text.data, text.n) == id);
        CHECK(!ggtok_token_to_piece(tok, id, 0, true, &piece, &err));
        CHECK(!ggtok_token_score(tok, id, &score, &err));
        CHECK(!ggtok_token_attr(tok, id, &attr, &err));
    }
    ggtok_bytes out;
    float score;
    uint32_t attr;
    CHECK(ggtok_token_text(tok, -1, &out, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(ggtok_token_text(tok, (int32_t)n, &out, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(ggtok_token_to_piece(tok, -1, 0, true, &out, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(ggtok_token_score(tok, INT32_MAX, &score, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(ggtok_token_attr(tok, INT32_MIN, &attr, NULL) == GGTOK_ERR_ARGUMENT);
    CHECK(ggtok_text_to_token(tok, "no token has this text", 22) == GGTOK_NO_TOKEN);
    CHECK(!ggtok_is_eog(tok, -1) && !ggtok_is_eog(tok, (int32_t)n));

    ggtok_ids eog = ggtok_eog_ids(tok);
    for (size_t i = 0; i < eog.n; i++) CHECK(ggtok_is_eog(tok, eog.data[i]));
    for (int s = 0; s < GGTOK_N_SPECIAL; s++) {
        int32_t id = ggtok_special_id(tok, (ggtok_special)s);
        CHECK(id >= GGTOK_NO_TOKEN && id < (int32_t)n);
    }

    CHECK(ggtok_metadata_bytes(tok) > 24);
    size_t n_kv = ggtok_n_kv(tok);
    bool found = false;
    ggtok_kv kv;
    for (size_t i = 0; i < n_kv; i++) {
        CHECK(!ggtok_get_kv(tok, i, &kv, &err));
        if (kv.key.n == 21 && !memcmp(kv.key.data, "tokenizer.ggml.tokens", 21)) {
            found = true;
            CHECK(kv.type == GGTOK_ARRAY && kv.elem_type == GGTOK_STRING && kv.n == n);
        }
    }
    CHECK(found);
    CHECK(ggtok_get_kv(tok, n_kv, &kv, &err) == GGTOK_ERR_ARGUMENT);
}

static void check_errors(const char *path, const unsigned char *data, size_t n) {
    ggtok_error err;
    ggtok_tokenizer *tok;
    CHECK(ggtok_load_file("no/such/file.gguf", NULL, &tok, &err) == GGTOK_ERR_IO);
    CHECK(err.os_error == ENOENT && err.message[0] && err.offset == GGTOK_NO_OFFSET);
    CHECK(ggtok_load_file("no/such/file.gguf", NULL, &tok, NULL) == GGTOK_ERR_IO);

    CHECK(ggtok_load_buffer("", 0, NULL, &tok, &err) == GGTOK_ERR_GGUF);
    CHECK(ggtok_load_buffer("GGUX\3\0\0\0", 8, NULL, &tok, &err) == GGTOK_ERR_GGUF);
    CHECK(err.offset == 0 && err.message[0]);

    /* A truncated file is an error, unless only data after the metadata is missing. */
    for (size_t cut = 0; cut < n; cut += 1 + cut / 16) {
        unsigned char *copy = malloc(cut + 1); /* reads past the end are errors to sanitizers */
        memcpy(copy, data, cut);
        ggtok_status s = ggtok_load_buffer(copy, cut, NULL, &tok, &err);
        CHECK(s == GGTOK_OK || s == GGTOK_ERR_GGUF);
        if (s == GGTOK_OK) ggtok_free(tok);
        free(copy);
    }

    ggtok_load_options options = {.pre = "no-such-name"};
    CHECK(ggtok_load_file(path, &options, &tok, &err) == GGTOK_ERR_PRETOKENIZER);
    CHECK(strstr(err.message, "no-such-name"));
    for (size_t i = 0; ggtok_pre_name(i); i++) CHECK(ggtok_pre_name(i)[0]);
}

/* Reads tensor descriptions until one isn't complete; returns the least number of bytes needed. */
static uint64_t read_tensors(const ggtok_header *header) {
    ggtok_header_info info = ggtok_header_get_info(header);
    ggtok_tensor tensor = {.end = info.size};
    for (uint64_t i = 0; i < info.n_tensors; i++) {
        uint64_t offset = tensor.end;
        CHECK(!ggtok_header_tensor(header, offset, &tensor, NULL));
        CHECK(tensor.end > offset);
        if (!tensor.name.n) break;
    }
    return tensor.end;
}

/* Two pairs, an array of two strings and an integer, and two tensors, in either byte order. */
static size_t make_header(unsigned char *out, bool big_endian) {
    static const char parts[] = "4:3,8:2,8:2,8:1,s:a,4:9,4:8,8:2,8:2,s:xy,8:0,8:1,s:b,4:4,4:7,"
                                "8:1,s:t,4:2,8:5,8:6,4:1,8:32,8:1,s:u,4:0,4:0,8:64,";
    size_t n = 4;
    memcpy(out, "GGUF", 4);
    for (const char *p = parts; *p; p = strchr(p, ',') + 1) {
        if (*p == 's') {
            for (const char *c = p + 2; *c != ','; c++) out[n++] = (unsigned char)*c;
            continue;
        }
        unsigned size = (unsigned)(*p - '0');
        unsigned long value = strtoul(p + 2, NULL, 10);
        memset(out + n, 0, size);
        out[big_endian ? n + size - 1 : n] = (unsigned char)value;
        n += size;
    }
    return n;
}

static void check_header(bool big_endian) {
    unsigned char data[256];
    size_t n = make_header(data, big_endian);
    ggtok_error err;
    ggtok_header *header;
    ggtok_pair pair;
    ggtok_tensor tensor;
    uint64_t ends[2], size;
    CHECK(!ggtok_header_open(data, n, &header, &err));
    ggtok_header_info info = ggtok_header_get_info(header);
    CHECK(info.version == 3 && info.big_endian == big_endian);
    CHECK(info.n_pairs == 2 && info.n_tensors == 2 && info.size < n);
    CHECK(!ggtok_metadata_size(data, n, n, &size, &err) && size == info.size);
    CHECK(ggtok_header_pair(header, 0, &pair) && pair.key.n == 1 && *pair.key.data == 'a');
    CHECK(pair.type == GGTOK_ARRAY && pair.elem_type == GGTOK_STRING && pair.n == 2);
    CHECK(pair.first == pair.begin + 12 && pair.end == pair.first + 18);
    CHECK(!ggtok_header_string_ends(header, 0, ends, &err));
    CHECK(ends[0] == pair.first + 10 && ends[1] == pair.end && data[ends[0] - 1] == 'y');
    CHECK(ggtok_header_pair(header, 1, &pair) && *pair.key.data == 'b' && pair.n == 1);
    CHECK(pair.type == GGTOK_U32 && pair.begin == pair.first && pair.end == pair.begin + 4);
    CHECK(pair.end == info.size && !ggtok_header_pair(header, 2, &pair));
    CHECK(ggtok_header_string_ends(header, 1, ends, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(ggtok_header_string_ends(header, 2, ends, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(!ggtok_header_tensor(header, info.size, &tensor, &err));
    CHECK(tensor.name.n == 1 && *tensor.name.data == 't' && tensor.n_dims == 2);
    CHECK(tensor.dims[0] == 5 && tensor.dims[1] == 6 && tensor.type == 1 && tensor.offset == 32);
    CHECK(!ggtok_header_tensor(header, tensor.end, &tensor, &err));
    CHECK(*tensor.name.data == 'u' && tensor.n_dims == 0 && tensor.offset == 64 && tensor.end == n);
    CHECK(!ggtok_header_tensor(header, n, &tensor, &err) && tensor.end > n && !tensor.name.n);
    CHECK(ggtok_header_tensor(header, n + 1, &tensor, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(ggtok_header_tensor(header, UINT64_MAX, &tensor, &err) == GGTOK_ERR_ARGUMENT);
    CHECK(ggtok_header_tensor(header, info.size - 1, &tensor, &err) == GGTOK_ERR_ARGUMENT);
    ggtok_header_free(header);
    ggtok_header_free(NULL);

    for (size_t cut = 0; cut < n; cut++) { /* truncated: the exact copy lets sanitizers see reads */
        unsigned char *copy = malloc(cut + 1);
        memcpy(copy, data, cut);
        ggtok_status s = ggtok_header_open(copy, cut, &header, &err);
        CHECK(s == (cut < info.size ? GGTOK_ERR_GGUF : GGTOK_OK));
        if (!s) CHECK(read_tensors(header) > cut && read_tensors(header) <= n);
        ggtok_header_free(header);
        free(copy);
    }
    size_t dims = (size_t)info.size + 9 + (big_endian ? 3 : 0); /* the last byte of n_dims */
    data[dims] = 5;
    CHECK(!ggtok_header_open(data, n, &header, &err));
    CHECK(ggtok_header_tensor(header, info.size, &tensor, &err) == GGTOK_ERR_GGUF);
    CHECK(strstr(err.message, "has 5 dimensions") && err.offset == info.size);
    ggtok_header_free(header);
    memset(data + info.size, 0xFF, 8); /* the length of the first tensor's name */
    CHECK(!ggtok_header_open(data, n, &header, &err));
    CHECK(ggtok_header_tensor(header, info.size, &tensor, &err) == GGTOK_ERR_GGUF);
    CHECK(strstr(err.message, "bytes in its name"));
    ggtok_header_free(header);
}

/* A splitter that cuts at every byte, or makes a mistake, depending on `user`. */
enum { CUT, FAIL, REPEAT, STOP_EARLY, N_FAULTS };
static size_t split_bytes(void *user, const char *text, size_t n, size_t *ends, size_t max) {
    int how = *(const int *)user;
    (void)text;
    if (how == FAIL) return SIZE_MAX;
    if (n <= max)
        for (size_t i = 0; i < n; i++) ends[i] = how == REPEAT && i == n / 2 ? i : i + 1;
    return how == STOP_EARLY && n <= max ? n - 1 : n;
}

static void check_splitter(const char *path) {
    ggtok_error err;
    ggtok_tokenizer *tok;
    ggtok_context *ctx;
    ggtok_ids ids;
    int how = CUT;
    ggtok_load_options options = {.split = split_bytes, .split_user = &how};
    CHECK(!ggtok_load_file(path, &options, &tok, &err));
    CHECK(!ggtok_context_new(tok, &ctx, &err));
    char text[1000];
    memset(text, 'a', sizeof text);
    CHECK(!ggtok_encode(ctx, text, sizeof text, 0, &ids, &err));
    CHECK(ids.n == sizeof text);
    for (how = FAIL; how < N_FAULTS; how++) {
        CHECK(ggtok_encode(ctx, text, sizeof text, 0, &ids, &err) == GGTOK_ERR_ARGUMENT);
        CHECK(ids.n == 0 && err.message[0]);
    }
    how = CUT; /* an error if the cut is inside a character */
    CHECK(ggtok_encode(ctx, "a\xC3\xA9", 3, 0, &ids, &err) == GGTOK_ERR_ARGUMENT && ids.n == 0);
    CHECK(strstr(err.message, "offset 1 is inside a character"));
    ggtok_context_free(ctx);

    /* A batch reports the index of the first text that failed. */
    how = FAIL;
    ggtok_pool *pool;
    ggtok_batch *batch;
    size_t failed;
    ggtok_bytes texts[] = {{"", 0}, {"", 0}, {text, 5}, {text, 6}};
    CHECK(!ggtok_pool_new(tok, &pool, &err));
    CHECK(ggtok_encode_batch(pool, texts, 4, 0, 1, NULL, NULL, &batch, &failed, &err) ==
          GGTOK_ERR_ARGUMENT);
    CHECK(failed == 2 && !batch);
    for (unsigned threads = 1; threads <= 3; threads++) {
        size_t received = 0;
        const ggtok_batch_options options = {
            .threads = threads, .user = &received, .receive = count_texts};
        CHECK(ggtok_encode_batch_with(pool, texts, 4, &options, &batch, &failed, &err) ==
              GGTOK_ERR_ARGUMENT);
        CHECK(failed == 2 && !batch && received <= 2);
    }
    ggtok_pool_free(pool);
    ggtok_free(tok);
}

/* Checks that control tokens are parsed only in trusted ranges of the text. */
static void check_trusted(const ggtok_tokenizer *tok) {
    ggtok_error err;
    ggtok_context *ctx;
    ggtok_ids ids;
    ggtok_parts parts;
    ggtok_bytes end;
    char text[128];
    int32_t eos = ggtok_special_id(tok, GGTOK_EOS);
    CHECK(!ggtok_token_text(tok, eos, &end, &err) && 2 * end.n + 4 < sizeof text);
    memcpy(text, end.data, end.n);
    memcpy(text + end.n, " hi ", 4);
    memcpy(text + end.n + 4, end.data, end.n);
    size_t n = 2 * end.n + 4;

    CHECK(!ggtok_context_new(tok, &ctx, &err));
    ggtok_range last = {n - end.n, n};
    CHECK(!ggtok_encode_trusted(ctx, text, n, GGTOK_PARSE_SPECIAL, &last, 1, &ids, &parts, &err));
    CHECK(parts.n == 2 && !parts.data[0].special && parts.data[1].special);
    CHECK(parts.data[1].pos == last.begin && parts.data[1].first == ids.n - 1);
    CHECK(ids.data[ids.n - 1] == eos && ids.data[0] != eos);
    CHECK(!ggtok_encode_trusted(ctx, text, n, GGTOK_PLAIN_USER_DEFINED, &last, 1, &ids, &parts,
                                &err));
    const uint32_t *offsets;
    ggtok_bytes pieces = ggtok_pieces(tok, &offsets), piece;
    CHECK(!ggtok_token_to_piece(tok, eos, 0, true, &piece, &err));
    CHECK(offsets[ggtok_n_tokens(tok)] == pieces.n && pieces.data + offsets[eos] == piece.data);
    CHECK(offsets[eos + 1] - offsets[eos] == piece.n);
    ggtok_bytes texts = ggtok_texts(tok, &offsets);
    CHECK(!ggtok_token_text(tok, eos, &piece, &err));
    CHECK(offsets[ggtok_n_tokens(tok)] == texts.n && texts.data + offsets[eos] == piece.data);
    float score;
    CHECK(!ggtok_token_score(tok, eos, &score, &err) && ggtok_scores(tok)[eos] == score);
    uint32_t attr, attrs[2];
    CHECK(!ggtok_token_attr(tok, 1, &attr, &err));
    CHECK(ggtok_attrs(tok, attrs, 2) == ggtok_n_tokens(tok) && attrs[1] == attr);
    CHECK(ggtok_same_vocabulary(tok, tok));
    CHECK(ggtok_special_ids(tok, NULL, 0) > 0 && ggtok_special_ids(tok, &eos, 1) > 0);
    last.end++; /* the range now ends outside the text */
    CHECK(ggtok_encode_trusted(ctx, text, n, 0, &last, 1, &ids, &parts, &err) ==
          GGTOK_ERR_ARGUMENT);
    CHECK(!ids.n && !parts.n);
    ggtok_context_free(ctx);
}

/* Reads a prefix of a file, which grows to the size that the last call returned. */
static void check_prefixes(const unsigned char *data, size_t n) {
    ggtok_error err;
    uint64_t size = 0;
    size_t have = 0, rounds = 0;
    ggtok_tokenizer *tok;
    ggtok_summary sum;
    do {
        unsigned char *copy = malloc(have + 1); /* exact size for sanitizers, as above */
        memcpy(copy, data, have);
        CHECK(!ggtok_metadata_size(copy, have, rounds % 2 ? n : UINT64_MAX, &size, &err));
        CHECK(size <= n);
        CHECK(!ggtok_peek(copy, have, n, &sum, &err) && sum.size == size);
        if (sum.known) {
            CHECK(sum.type == GGTOK_VOCAB_BPE && !strcmp(sum.model, "gpt2"));
            CHECK(!strcmp(sum.pre, "gpt-2") && sum.n_tokens > 256);
        }
        free(copy);
        if (size <= have) break;
        have = (size_t)size;
    } while (++rounds < 100000);
    CHECK(size == have && sum.known);
    CHECK(!ggtok_load_buffer(data, have, NULL, &tok, &err));
    CHECK(sum.n_tokens == ggtok_n_tokens(tok));
    ggtok_free(tok);

    /* If the metadata doesn't fit in the file, the error occurs as soon as this is known, and no
     * returned size exceeds the file's. */
    for (size_t cut = 0; cut < have; cut += 1 + cut / 16) {
        ggtok_status s = GGTOK_OK;
        size_t at = 0;
        while (!(s = ggtok_metadata_size(data, at, cut, &size, &err)) && size > at && size <= cut) {
            at = (size_t)size;
        }
        CHECK(s == GGTOK_ERR_GGUF);
        ggtok_peek(data, cut, cut, &sum, NULL);
    }
    CHECK(ggtok_metadata_size("GGUX", 4, UINT64_MAX, &size, &err) == GGTOK_ERR_GGUF);
    CHECK(ggtok_metadata_size(NULL, 0, UINT64_MAX, &size, &err) == GGTOK_OK && size == 24);
    static const char empty[24] = "GGUF\3"; /* no key/value pairs, so no vocabulary */
    CHECK(ggtok_metadata_size(empty, 24, 24, &size, &err) == GGTOK_OK && size == 24);
    CHECK(ggtok_peek(empty, 24, 24, &sum, &err) == GGTOK_ERR_VOCAB && !sum.known);
}

static void check_overrides(const char *path) {
    ggtok_error err;
    ggtok_tokenizer *tok;
    ggtok_override o[] = {
        {.key = "tokenizer.ggml.bos_token_id", .type = GGTOK_OVERRIDE_INT, .i64 = 5},
        {.key = "tokenizer.ggml.bos_token_id", .type = GGTOK_OVERRIDE_INT, .i64 = 6},
        {.key = "tokenizer.ggml.add_bos_token", .type = GGTOK_OVERRIDE_BOOL, .boolean = true},
        {.key = "tokenizer.ggml.pre", .type = GGTOK_OVERRIDE_STR, .str = "qwen2"},
        {.key = "tokenizer.ggml.eos_token_id", .type = GGTOK_OVERRIDE_FLOAT, .f64 = 1.5},
    };
    ggtok_load_options options = {.overrides = o, .n_overrides = sizeof o / sizeof *o};
    CHECK(!ggtok_load_file(path, &options, &tok, &err));
    CHECK(ggtok_special_id(tok, GGTOK_BOS) == 5 && ggtok_flag(tok, GGTOK_FLAG_ADD_BOS));
    CHECK(!strcmp(ggtok_pre(tok), "qwen2"));
    bool misfit = false, unread = false;
    for (size_t i = 0; ggtok_warning(tok, i); i++) {
        misfit = misfit || strstr(ggtok_warning(tok, i), "eos_token_id' must be of type int");
        unread = unread || strstr(ggtok_warning(tok, i), "bos_token_id' has no effect");
    }
    CHECK(misfit && unread);
    ggtok_free(tok);

    char name[GGTOK_OVERRIDE_MAX + 2];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    const ggtok_override bad[] = {
        {.key = NULL, .type = GGTOK_OVERRIDE_INT},
        {.key = "", .type = GGTOK_OVERRIDE_INT},
        {.key = name, .type = GGTOK_OVERRIDE_INT},
        {.key = "x", .type = (ggtok_override_type)4},
        {.key = "x", .type = GGTOK_OVERRIDE_STR},
        {.key = "x", .type = GGTOK_OVERRIDE_STR, .str = name},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options = (ggtok_load_options){.overrides = &bad[i], .n_overrides = 1};
        CHECK(ggtok_load_file(path, &options, &tok, &err) == GGTOK_ERR_ARGUMENT && !tok);
    }
}

/* Renders and encodes a chat request. Messages never become control tokens. */
static void check_chat(const ggtok_tokenizer *tok) {
    static const char source[] =
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}";
    static const char json[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a <|user|> b\"}]}";
    static const char want[] = "<|user|>a <|user|> b";
    const ggtok_time noon = {.year = 2026, .month = 3, .day = 7, .hour = 12};
    ggtok_error err;
    ggtok_chat *chat;
    ggtok_prompt *prompt;
    ggtok_context *ctx;
    CHECK(!ggtok_context_new(tok, &ctx, &err));
    for (int i = 0; i < 2; i++) {
        ggtok_chat_options options = {
            .like = (ggtok_chat_like)i, .template_source = source, .n_template = strlen(source)};
        CHECK(!ggtok_chat_new(tok, &options, &chat, &err));
        CHECK(ggtok_chat_memory(chat) > sizeof source && !ggtok_chat_reads_time(chat));
        CHECK(ggtok_chat_variable(chat, false, 0).n && !ggtok_chat_variable(chat, false, 99).n);
        CHECK(!ggtok_chat_render(chat, json, strlen(json), NULL, &prompt, &err));
        ggtok_bytes text = ggtok_prompt_text(prompt);
        CHECK(text.n == strlen(want) && !memcmp(text.data, want, text.n));
        CHECK(!ggtok_prompt_n_media(prompt));
        size_t n, count, n_media;
        const ggtok_origin *origins = ggtok_prompt_origins(prompt, &n);
        CHECK(n == 2 && origins[0].end == 8 && origins[0].kind == GGTOK_FROM_TEMPLATE);
        CHECK(n == 2 && origins[1].begin == 8 && origins[1].end == text.n &&
              origins[1].kind == GGTOK_FROM_MESSAGE && origins[1].message == 0 &&
              origins[1].field.n == 7 && !memcmp(origins[1].field.data, "content", 7));
        ggtok_prompt_free(prompt);
        ggtok_ids ids;
        const ggtok_chat_call trusted = {.trusted = true};
        CHECK(!ggtok_chat_encode(ctx, chat, json, strlen(json), NULL, &ids, &err) && ids.n);
        CHECK(!ggtok_chat_count(ctx, chat, json, strlen(json), NULL, &count, &n_media, &err));
        CHECK(count == ids.n && n_media == 0);
        CHECK(!ggtok_chat_encode(ctx, chat, json, strlen(json), &trusted, &ids, &err) && ids.n);
        /* Errors in requests have the path of a field. */
        static const char role[] = "{\"messages\": [{\"content\": \"a\", \"role\": 1}]}";
        if (!i) {
            CHECK(ggtok_chat_render(chat, role, strlen(role), NULL, &prompt, &err) ==
                      GGTOK_ERR_ARGUMENT &&
                  !prompt && !strcmp(err.key, "messages[0].role"));
        }
        CHECK(ggtok_chat_render(chat, "[1]", 3, NULL, &prompt, &err) == GGTOK_ERR_ARGUMENT);
        CHECK(!prompt && !err.line && strstr(err.message, "object"));
        CHECK(ggtok_chat_render(chat, "{", 1, NULL, &prompt, NULL) == GGTOK_ERR_ARGUMENT);
        ggtok_chat_free(chat);
        /* Errors in templates have a line number. */
        options.template_source = "\n\n{{ 1 +";
        options.n_template = 8;
        CHECK(ggtok_chat_new(tok, &options, &chat, &err) == GGTOK_ERR_TEMPLATE);
        CHECK(!chat && err.line == 3 && err.message[0]);
        options.template_source = "\n{% if messages[1] %}{{ raise_exception('no') }}{% endif %}";
        options.n_template = strlen(options.template_source);
        CHECK(!ggtok_chat_new(tok, &options, &chat, &err));
        static const char two[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"\"}, "
                                  "{\"role\": \"user\", \"content\": \"\"}]}";
        CHECK(ggtok_chat_render(chat, two, strlen(two), NULL, &prompt, &err) ==
                  GGTOK_ERR_TEMPLATE &&
              !prompt);
        CHECK(err.line == 2 && strstr(err.message, "no"));
        ggtok_chat_free(chat);
        options.template_source = "{{ strftime_now('%Y-%m-%d %H') }}";
        options.n_template = strlen(options.template_source);
        CHECK(!ggtok_chat_new(tok, &options, &chat, &err) && ggtok_chat_reads_time(chat));
        ggtok_chat_call call = {.now = &noon};
        CHECK(!ggtok_chat_render(chat, json, strlen(json), &call, &prompt, &err));
        text = ggtok_prompt_text(prompt);
        CHECK(text.n == 13 && !memcmp(text.data, "2026-03-07 12", text.n));
        ggtok_prompt_free(prompt);
        ggtok_time odd = noon;
        odd.month = 13;
        call.now = &odd;
        CHECK(ggtok_chat_render(chat, json, strlen(json), &call, &prompt, &err) ==
                  GGTOK_ERR_ARGUMENT &&
              !prompt);
        ggtok_chat_free(chat);
        options.template_source = "missing";
        options.n_template = 7;
        CHECK(ggtok_chat_new(tok, &options, &chat, &err) == GGTOK_ERR_ARGUMENT && !chat);
    }
    ggtok_context_free(ctx);
    ggtok_chat_free(NULL);
    ggtok_prompt_free(NULL);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s BPE.gguf\n", argv[0]);
        return 2;
    }
    size_t n;
    unsigned char *data = read_file(argv[1], &n);
    ggtok_error err;
    ggtok_tokenizer *tok;
    if (!data || ggtok_load_file(argv[1], NULL, &tok, &err)) {
        printf("cannot load %s: %s\n", argv[1], data ? err.message : "unreadable");
        return 1;
    }
    check_encode(tok);
    check_spans(tok);
    check_batch(tok);
    check_blocks(tok);
    check_sample(tok);
    check_trusted(tok);
    check_chat(tok);
    check_vocabulary(tok);
    ggtok_free(tok);
    ggtok_free(NULL);

    /* Load from memory that is freed before the tokenizer is used. */
    CHECK(!ggtok_load_buffer(data, n, NULL, &tok, &err));
    check_errors(argv[1], data, n);
    check_header(false);
    check_header(true);
    check_prefixes(data, n);
    free(data);
    check_encode(tok);
    ggtok_free(tok);

    check_splitter(argv[1]);
    check_overrides(argv[1]);
    printf("%s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}
