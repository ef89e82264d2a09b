/*
 * The functions that the WebAssembly module exports to web/js/, based on ggtok.h, ggtok_chat.h and
 * ggtok_trace.h.
 *
 * Arguments and results are numbers: addresses, lengths, bits. Fallible functions return whether
 * they succeeded. `report` then holds the result, or the error, until the next call. A file's
 * metadata stays in memory as long as its tokenizer, so that JavaScript can read its arrays.
 */
#include <stdlib.h>
#include <string.h>

#include "ggtok_chat.h"
#include "ggtok_trace.h"
#include "gguf/gguf.h"

#define EXPORT(name) __attribute__((export_name(#name))) name

typedef struct handle {
    ggtok_tokenizer *tok;
    ggtok_context *ctx;
    uint8_t *data; /* the beginning of the file */
    gguf file;     /* its parsed keys */
} handle;

/* JavaScript reads these fields by their position: see `Report` in web/js/engine.js. */
static struct report {
    const void *data;
    size_t n;
    const void *more;
    size_t n_more;
    double number;
    uint32_t kind, elem; /* types of a key's value and elements: ggtok_value_type */
    /* for errors: */
    uint32_t status, line;
    const char *key, *name, *message;
    double offset; /* position in the file, in bytes; -1: none */
} report;
static ggtok_error error;

struct report *EXPORT(get_report)(void) {
    return &report;
}

static bool report_status(ggtok_status status) {
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

static bool report_bytes(ggtok_status status, ggtok_bytes bytes) {
    report.data = bytes.data;
    report.n = bytes.n;
    return report_status(status);
}

static bool out_of_memory(void) {
    memset(&error, 0, sizeof error);
    error.offset = GGTOK_NO_OFFSET;
    strcpy(error.message, "out of memory");
    return report_status(GGTOK_ERR_MEMORY);
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

/* Returns memory for the first n bytes of the file. It still has the bytes already written. */
uint8_t *EXPORT(file_room)(handle *h, size_t n) {
    uint8_t *data = realloc(h->data, n ? n : 1);
    if (!data) out_of_memory();
    if (data) h->data = data;
    return data;
}

/* Parses keys in the first n bytes of a file of file_size bytes (infinity if unknown). Sets
 * report.number to the number of bytes that parsing needs, or to 0 if the metadata is complete. */
bool EXPORT(file_parse)(handle *h, size_t n, double file_size) {
    uint64_t size = file_size < 9007199254740992.0 ? (uint64_t)file_size : UINT64_MAX;
    size_t need = 0;
    bool ok = report_status(ggtok_gguf_parse(&h->file, h->data, n, size, &need, &error));
    report.number = (double)need;
    return ok;
}

/* Loads the vocabulary from the metadata; `pre` may be NULL. */
bool EXPORT(file_load)(handle *h, const char *pre) {
    ggtok_load_options options = {.pre = pre};
    ggtok_status s = ggtok_load_buffer(h->data, h->file.pos, &options, &h->tok, &error);
    if (!s) s = ggtok_context_new(h->tok, &h->ctx, &error);
    report.number = (double)h->file.pos;
    return report_status(s);
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

/* Reports the i-th key (data, n), the bytes of its value (more, n_more), its types, and its number
 * of elements. */
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

/* Reports three ids for each merge in tokenizer.ggml.merges: of the left part, of the right part
 * and of the whole; -1 if there is no such token. The caller releases report.data. */
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
    return report_status(GGTOK_OK);
}

/* ---- text and ids ---- */

bool EXPORT(encode)(handle *h, const char *text, size_t n, uint32_t flags) {
    ggtok_ids ids = {0};
    ggtok_status s = ggtok_encode(h->ctx, text, n, flags, &ids, &error);
    report.data = ids.data;
    report.n = ids.n;
    return report_status(s);
}

/* Like `encode`, for a block of a text that grows; report.number is the number of bytes that the ids
 * cover. */
bool EXPORT(encode_block)(handle *h, const char *text, size_t n, uint32_t flags) {
    ggtok_ids ids = {0};
    size_t used = 0;
    ggtok_status s = ggtok_encode_block(h->ctx, text, n, flags, &ids, &used, &error);
    report.data = ids.data;
    report.n = ids.n;
    report.number = (double)used;
    return report_status(s);
}

/* Reports n_ids begins and then n_ids ends: the spans of the ids of the last call, which must have
 * encoded this text with GGTOK_SPANS. The caller releases report.data. */
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
    return allocated ? report_status(s) : out_of_memory();
}

/* Reports the steps from a text to its ids as JSON. */
bool EXPORT(trace)(handle *h, const char *text, size_t n, uint32_t flags) {
    ggtok_bytes json = {0};
    return report_bytes(ggtok_trace_json(h->ctx, text, n, flags, SIZE_MAX, &json, &error), json);
}

bool EXPORT(trace_token)(handle *h, int32_t id) {
    ggtok_bytes json = {0};
    return report_bytes(ggtok_trace_token_json(h->ctx, id, SIZE_MAX, &json, &error), json);
}

bool EXPORT(decode)(handle *h, const int32_t *ids, size_t n, uint32_t flags) {
    ggtok_bytes text = {0};
    return report_bytes(ggtok_decode(h->ctx, ids, n, flags, &text, &error), text);
}

/* ---- the vocabulary ---- */

bool EXPORT(piece)(const handle *h, int32_t id, bool special) {
    ggtok_bytes bytes = {0};
    return report_bytes(ggtok_token_to_piece(h->tok, id, 0, special, &bytes, &error), bytes);
}

bool EXPORT(token_text)(const handle *h, int32_t id) {
    ggtok_bytes bytes = {0};
    return report_bytes(ggtok_token_text(h->tok, id, &bytes, &error), bytes);
}

bool EXPORT(token_attr)(const handle *h, int32_t id) {
    uint32_t attr = 0;
    ggtok_status s = ggtok_token_attr(h->tok, id, &attr, &error);
    report.number = attr;
    return report_status(s);
}

bool EXPORT(token_score)(const handle *h, int32_t id) {
    float score = 0;
    ggtok_status s = ggtok_token_score(h->tok, id, &score, &error);
    report.number = score;
    return report_status(s);
}

/* Reports the bytes (data, n) of all tokens and where each begins (more). */
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

const char *EXPORT(warning)(const handle *h, uint32_t i) {
    return ggtok_warning(h->tok, i);
}

/* ---- chats ---- */

/* How to read a chat request. web/js/chat.js writes it. */
typedef struct chat_setup {
    int32_t year, month, day, hour, minute, second, utc_offset; /* the local time */
    uint32_t flags;
    const char *zone, *marker, *template_source; /* may be NULL, as in ggtok_chat.h */
    size_t n_template;
} chat_setup;
enum { TRUSTED = 1, PLAIN_USER_DEFINED = 2, LIKE_TRANSFORMERS = 4 }; /* chat_setup.flags */

static ggtok_time time_of(const chat_setup *setup) {
    return (ggtok_time){
        .year = setup->year,
        .month = setup->month,
        .day = setup->day,
        .hour = setup->hour,
        .minute = setup->minute,
        .second = setup->second,
        .zone = setup->zone,
        .utc_offset = setup->utc_offset,
    };
}

static ggtok_chat_call call_of(const chat_setup *setup, const ggtok_time *now) {
    return (ggtok_chat_call){
        .now = now,
        .trusted = (setup->flags & TRUSTED) != 0,
        .plain_user_defined = (setup->flags & PLAIN_USER_DEFINED) != 0,
        .media_marker = setup->marker,
    };
}

/* Returns a chat, or NULL after an error. */
ggtok_chat *EXPORT(chat_new)(const handle *h, const chat_setup *setup) {
    const ggtok_time now = time_of(setup);
    const ggtok_chat_options options = {
        .like =
            setup->flags & LIKE_TRANSFORMERS ? GGTOK_LIKE_TRANSFORMERS : GGTOK_LIKE_LLAMA_SERVER,
        .template_source = setup->template_source,
        .n_template = setup->n_template,
        .now = &now,
    };
    ggtok_chat *chat = NULL;
    report_status(ggtok_chat_new(h->tok, &options, &chat, &error));
    return chat;
}

void EXPORT(chat_free)(ggtok_chat *chat) {
    ggtok_chat_free(chat);
}

/* Returns a prompt, or NULL after an error. Reports its text (data, n) and its number of images,
 * audio and video. */
ggtok_prompt *EXPORT(chat_render)(const ggtok_chat *chat, const char *json, size_t n,
                                  const chat_setup *setup) {
    const ggtok_time now = time_of(setup);
    const ggtok_chat_call call = call_of(setup, &now);
    ggtok_prompt *prompt = NULL;
    ggtok_status s = ggtok_chat_render(chat, json, n, &call, &prompt, &error);
    if (!report_status(s)) return NULL;
    report.number = (double)ggtok_prompt_n_media(prompt);
    report_bytes(s, ggtok_prompt_text(prompt));
    return prompt;
}

/* Reports n origins, six numbers each: begin and end in UTF-16 units, a ggtok_origin_kind, the index
 * of a message, and the address and length of its field's name. The caller releases report.data. */
bool EXPORT(prompt_origins)(const ggtok_prompt *prompt) {
    size_t n;
    const ggtok_origin *origins = ggtok_prompt_origins(prompt, &n);
    ggtok_bytes text = ggtok_prompt_text(prompt);
    ggtok_span *spans = malloc(n * sizeof *spans + 1);
    uint32_t *out = malloc(n * 6 * sizeof *out + 1);
    if (!spans || !out) {
        free(spans);
        free(out);
        return out_of_memory();
    }
    for (size_t i = 0; i < n; i++) spans[i] = (ggtok_span){origins[i].begin, origins[i].end};
    ggtok_convert_spans(text.data, text.n, spans, n, GGTOK_UNIT_UTF16);
    for (size_t i = 0; i < n; i++) {
        uint32_t *to = out + 6 * i;
        to[0] = (uint32_t)spans[i].begin;
        to[1] = (uint32_t)spans[i].end;
        to[2] = origins[i].kind;
        to[3] = (uint32_t)origins[i].message;
        to[4] = (uint32_t)(uintptr_t)origins[i].field.data;
        to[5] = (uint32_t)origins[i].field.n;
    }
    free(spans);
    report.data = out;
    report.n = n;
    return report_status(GGTOK_OK);
}

void EXPORT(prompt_free)(ggtok_prompt *prompt) {
    ggtok_prompt_free(prompt);
}

/* Reports a request's ids. */
bool EXPORT(chat_encode)(handle *h, const ggtok_chat *chat, const char *json, size_t n,
                         const chat_setup *setup) {
    const ggtok_time now = time_of(setup);
    const ggtok_chat_call call = call_of(setup, &now);
    ggtok_ids ids = {0};
    ggtok_status s = ggtok_chat_encode(h->ctx, chat, json, n, &call, &ids, &error);
    report.data = ids.data;
    report.n = ids.n;
    return report_status(s);
}

/* Reports the number of a request's ids (n), and of its images, audio and video. */
bool EXPORT(chat_count)(handle *h, const ggtok_chat *chat, const char *json, size_t n,
                        const chat_setup *setup) {
    const ggtok_time now = time_of(setup);
    const ggtok_chat_call call = call_of(setup, &now);
    size_t n_media = 0;
    ggtok_status s = ggtok_chat_count(h->ctx, chat, json, n, &call, &report.n, &n_media, &error);
    report.number = (double)n_media;
    return report_status(s);
}
