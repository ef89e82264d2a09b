/*
 * What the WebAssembly module exports to web/js/index.js, over ggtok.h.
 *
 * Arguments and results are numbers: addresses, lengths, bits. Fallible functions return whether
 * they succeeded. `report` then holds the result, or the error; the next call overwrites it.
 * A file's metadata stays in memory with its tokenizer, so that its arrays can be read.
 */
#include <stdlib.h>
#include <string.h>

#include "gguf/gguf.h"

#define EXPORT(name) __attribute__((export_name(#name))) name

typedef struct handle {
    ggtok_tokenizer *tok;
    ggtok_context *ctx;
    uint8_t *data; /* the beginning of the file */
    gguf file;     /* its keys */
} handle;

/* JavaScript reads these fields by their position: see `Report` in web/js/engine.js. */
static struct report {
    const void *data;
    size_t n;
    const void *more;
    size_t n_more;
    double number;
    uint32_t kind, elem; /* of metadata: ggtok_value_type */
    /* Of an error. */
    uint32_t status, line;
    const char *key, *name, *message;
    double offset; /* -1: none */
} report;
static ggtok_error error;

struct report *EXPORT(get_report)(void) {
    return &report;
}

static bool done(ggtok_status status) {
    report.status = status;
    if (status) {
        report.line = error.line;
        report.key = error.key;
        report.name = error.name;
        report.message = error.message;
        report.offset = error.offset == GGTOK_NO_OFFSET ? -1 : (double)error.offset;
    }
    return !status;
}

static bool give(ggtok_status status, ggtok_bytes bytes) {
    report.data = bytes.data;
    report.n = bytes.n;
    return done(status);
}

static bool out_of_memory(void) {
    memset(&error, 0, sizeof error);
    error.offset = GGTOK_NO_OFFSET;
    strcpy(error.message, "out of memory");
    return done(GGTOK_ERR_MEMORY);
}

void *EXPORT(allocate)(size_t n) {
    void *memory = malloc(n ? n : 1);
    if (!memory) out_of_memory();
    return memory;
}

void EXPORT(release)(void *memory) {
    free(memory);
}

/* ---- files ---- */

handle *EXPORT(file_new)(void) {
    handle *h = calloc(1, sizeof *h);
    if (!h) out_of_memory();
    return h;
}

/* Memory for the first n bytes of the file, which keeps those that were written. */
uint8_t *EXPORT(file_room)(handle *h, size_t n) {
    uint8_t *data = realloc(h->data, n ? n : 1);
    if (!data) out_of_memory();
    if (data) h->data = data;
    return data;
}

/* Reads keys from the first n bytes of a file of file_size bytes (infinite: unknown). Then
 * report.number is how many bytes it needs, or 0 if it has all of the metadata. */
bool EXPORT(file_parse)(handle *h, size_t n, double file_size) {
    uint64_t size = file_size < 9007199254740992.0 ? (uint64_t)file_size : UINT64_MAX;
    size_t need = 0;
    bool ok = done(ggtok_gguf_parse(&h->file, h->data, n, size, &need, &error));
    report.number = (double)need;
    return ok;
}

/* Loads the vocabulary from the metadata; `pre` may be NULL. */
bool EXPORT(file_load)(handle *h, const char *pre) {
    ggtok_load_options options = {.pre = pre};
    ggtok_status s = ggtok_load_buffer(h->data, h->file.pos, &options, &h->tok, &error);
    if (!s) s = ggtok_context_new(h->tok, &h->ctx, &error);
    report.number = (double)h->file.pos;
    return done(s);
}

void EXPORT(file_free)(handle *h) {
    if (h->ctx) ggtok_context_free(h->ctx);
    ggtok_free(h->tok);
    ggtok_gguf_close(&h->file);
    free(h->data);
    free(h);
}

uint32_t EXPORT(file_n_keys)(const handle *h) {
    return (uint32_t)h->file.n_parsed;
}

bool EXPORT(file_is_big_endian)(const handle *h) {
    return h->file.swap;
}

/* The i-th key (data, n), the bytes of its value (more, n_more), its types, and the number of its
 * elements. */
void EXPORT(file_key)(const handle *h, uint32_t i) {
    const gguf_kv *kv = &h->file.kv[i];
    gguf_view key = ggtok_gguf_key(&h->file, kv);
    report.data = key.p;
    report.n = key.n;
    report.more = h->data + kv->value;
    report.n_more = kv->end - kv->value;
    report.kind = kv->type;
    report.elem = kv->elem;
    report.number = (double)kv->count;
}

/* The ids of the tokens that each merge joins and makes, three for each merge of
 * tokenizer.ggml.merges, at `data`, which the caller releases; -1 if there is no such token. */
bool EXPORT(merges)(const handle *h) {
    const gguf_kv *kv = ggtok_gguf_find(&h->file, "tokenizer.ggml.merges");
    bool is_list = kv && kv->type == GGTOK_ARRAY && kv->elem == GGTOK_STRING;
    size_t n = is_list ? (size_t)kv->count : 0, longest = 0;
    int32_t *ids = malloc(n * 3 * sizeof *ids + 1);
    size_t pos = n ? kv->value : 0;
    for (size_t i = 0; i < n; i++) {
        gguf_view text = ggtok_gguf_next_string(&h->file, &pos);
        if (text.n > longest) longest = text.n;
    }
    char *joined = malloc(longest + 1);
    if (!ids || !joined) {
        free(ids);
        free(joined);
        return out_of_memory();
    }
    pos = n ? kv->value : 0;
    for (size_t i = 0; i < n; i++) {
        gguf_view text = ggtok_gguf_next_string(&h->file, &pos);
        const char *p = (const char *)text.p,
                   *space = text.n > 1 ? memchr(p + 1, ' ', text.n - 1) : NULL;
        ids[3 * i] = ids[3 * i + 1] = ids[3 * i + 2] = GGTOK_NO_TOKEN;
        if (!space) continue;
        size_t left = (size_t)(space - p), right = text.n - left - 1;
        memcpy(joined, p, left);
        memcpy(joined + left, space + 1, right);
        ids[3 * i] = ggtok_text_to_token(h->tok, p, left);
        ids[3 * i + 1] = ggtok_text_to_token(h->tok, space + 1, right);
        ids[3 * i + 2] = ggtok_text_to_token(h->tok, joined, left + right);
    }
    free(joined);
    report.data = ids;
    report.n = 3 * n;
    return done(GGTOK_OK);
}

/* ---- text and ids ---- */

bool EXPORT(encode)(handle *h, const char *text, size_t n, uint32_t flags) {
    ggtok_ids ids = {0};
    ggtok_status s = ggtok_encode(h->ctx, text, n, flags, &ids, &error);
    report.data = ids.data;
    report.n = ids.n;
    return done(s);
}

/* The spans of the ids of the last call, which had GGTOK_SPANS and this text: n_ids begins and
 * n_ids ends, at `data`, which the caller releases. */
bool EXPORT(spans)(handle *h, const char *text, size_t n, size_t n_ids, uint32_t unit) {
    ggtok_span *spans = malloc(n_ids * sizeof *spans + 1);
    int32_t *out = malloc(n_ids * 2 * sizeof *out + 1);
    ggtok_status s = spans && out ? ggtok_spans(h->ctx, spans, &error) : GGTOK_ERR_MEMORY;
    if (!s) {
        ggtok_convert_spans(text, n, spans, n_ids, (ggtok_unit)unit);
        for (size_t i = 0; i < n_ids; i++) {
            out[i] = (int32_t)spans[i].begin;
            out[n_ids + i] = (int32_t)spans[i].end;
        }
    }
    bool allocated = spans && out;
    free(spans);
    if (s) free(out);
    report.data = s ? NULL : out;
    return allocated ? done(s) : out_of_memory();
}

/* Encodes a text in which only some ranges may contain control tokens. */
bool EXPORT(encode_trusted)(handle *h, const char *text, size_t n, uint32_t flags,
                            const ggtok_range *trusted, size_t n_trusted) {
    ggtok_ids ids = {0};
    ggtok_parts parts;
    ggtok_status s =
        ggtok_encode_trusted(h->ctx, text, n, flags, trusted, n_trusted, &ids, &parts, &error);
    report.data = ids.data;
    report.n = ids.n;
    return done(s);
}

bool EXPORT(decode)(handle *h, const int32_t *ids, size_t n, uint32_t flags) {
    ggtok_bytes text = {0};
    return give(ggtok_decode(h->ctx, ids, n, flags, &text, &error), text);
}

/* ---- the vocabulary ---- */

bool EXPORT(piece)(const handle *h, int32_t id, bool special) {
    ggtok_bytes bytes = {0};
    return give(ggtok_token_to_piece(h->tok, id, 0, special, &bytes, &error), bytes);
}

bool EXPORT(token_text)(const handle *h, int32_t id) {
    ggtok_bytes bytes = {0};
    return give(ggtok_token_text(h->tok, id, &bytes, &error), bytes);
}

bool EXPORT(token_attr)(const handle *h, int32_t id) {
    uint32_t attr = 0;
    ggtok_status s = ggtok_token_attr(h->tok, id, &attr, &error);
    report.number = attr;
    return done(s);
}

bool EXPORT(token_score)(const handle *h, int32_t id) {
    float score = 0;
    ggtok_status s = ggtok_token_score(h->tok, id, &score, &error);
    report.number = score;
    return done(s);
}

/* All tokens: their bytes (data, n) and where each begins (more). */
void EXPORT(pieces)(const handle *h) {
    const uint32_t *offsets;
    ggtok_bytes bytes = ggtok_pieces(h->tok, &offsets);
    report.data = bytes.data;
    report.n = bytes.n;
    report.more = offsets;
}

/* Writes the attributes and scores of all tokens. */
void EXPORT(attributes)(const handle *h, uint32_t *attrs, float *scores) {
    uint32_t n = ggtok_n_tokens(h->tok);
    for (uint32_t id = 0; id < n; id++) {
        ggtok_token_attr(h->tok, (int32_t)id, &attrs[id], NULL);
        ggtok_token_score(h->tok, (int32_t)id, &scores[id], NULL);
    }
}

int32_t EXPORT(find)(const handle *h, const char *text, size_t n) {
    return ggtok_text_to_token(h->tok, text, n);
}

uint32_t EXPORT(n_tokens)(const handle *h) {
    return ggtok_n_tokens(h->tok);
}

uint32_t EXPORT(type)(const handle *h) {
    return ggtok_type(h->tok);
}

const char *EXPORT(model)(const handle *h) {
    return ggtok_model(h->tok);
}

const char *EXPORT(pre)(const handle *h) {
    return ggtok_pre(h->tok);
}

bool EXPORT(flag)(const handle *h, uint32_t which) {
    return ggtok_flag(h->tok, (ggtok_vocab_flag)which);
}

int32_t EXPORT(special_id)(const handle *h, uint32_t which) {
    return ggtok_special_id(h->tok, (ggtok_special)which);
}

void EXPORT(eog_ids)(const handle *h) {
    ggtok_ids ids = ggtok_eog_ids(h->tok);
    report.data = ids.data;
    report.n = ids.n;
}

void EXPORT(suppress_tokens)(const handle *h) {
    ggtok_ids ids = ggtok_suppress_tokens(h->tok);
    report.data = ids.data;
    report.n = ids.n;
}

/* Writes the first `max` ids that structure a text, and returns the number of all. */
uint32_t EXPORT(special_ids)(const handle *h, int32_t *out, size_t max) {
    return (uint32_t)ggtok_special_ids(h->tok, out, max);
}

const char *EXPORT(warning)(const handle *h, uint32_t i) {
    return ggtok_warning(h->tok, i);
}

const char *EXPORT(version)(void) {
    return ggtok_version();
}

/* ---- chat templates ---- */

/* NULL: an error. */
ggtok_template *EXPORT(template_new)(const char *source, size_t n, uint32_t dialect) {
    ggtok_template *t = NULL;
    done(ggtok_template_compile(source, n, (ggtok_dialect)dialect, &t, &error));
    return t;
}

void EXPORT(template_free)(ggtok_template *t) {
    ggtok_template_free(t);
}

/* Renders with a JSON object and a local time: seconds, minutes, hours, day, month (from 0), year,
 * day of the week (from Sunday) and of the year (from 0). The text (data, n) and the ranges that
 * the template wrote (more, n_more) live until rendering_free. NULL: an error. */
ggtok_rendering *EXPORT(render)(const ggtok_template *t, const char *json, size_t n,
                                const int32_t *time) {
    struct tm now = {
        .tm_sec = time[0],
        .tm_min = time[1],
        .tm_hour = time[2],
        .tm_mday = time[3],
        .tm_mon = time[4],
        .tm_year = time[5] - 1900,
        .tm_wday = time[6],
        .tm_yday = time[7],
    };
    ggtok_rendering *r = NULL;
    if (!done(ggtok_template_render(t, json, n, &now, &r, &error))) return NULL;
    ggtok_bytes text = ggtok_rendering_text(r);
    report.data = text.data;
    report.n = text.n;
    report.more = ggtok_rendering_trusted(r, &report.n_more);
    return r;
}

void EXPORT(rendering_free)(ggtok_rendering *r) {
    ggtok_rendering_free(r);
}
