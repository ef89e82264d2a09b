/*
 * The functions that the WebAssembly module exports to web/js/, based on ggtok.h.
 *
 * Arguments and results are numbers: addresses, lengths, bits. Fallible functions return whether
 * they succeeded. `report` then holds the result, or the error, until the next call. A file's
 * metadata stays in memory as long as its tokenizer, so that JavaScript can read its arrays.
 */
#include <stdlib.h>
#include <string.h>

#include "gguf/gguf.h"
#include "jinja/core/jinja.h"

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

/* Encodes a text. Control tokens are parsed only inside the trusted ranges. */
bool EXPORT(encode_trusted)(handle *h, const char *text, size_t n, uint32_t flags,
                            const ggtok_range *trusted, size_t n_trusted) {
    ggtok_ids ids = {0};
    ggtok_parts parts;
    ggtok_status s =
        ggtok_encode_trusted(h->ctx, text, n, flags, trusted, n_trusted, &ids, &parts, &error);
    report.data = ids.data;
    report.n = ids.n;
    return report_status(s);
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

/* ---- chat templates ---- */

static bool report_jinja(ggtok_status status, const jinja_error *err) {
    if (!status) return report_status(GGTOK_OK);
    static jinja_error last;
    last = *err;
    memset(&error, 0, sizeof error);
    error.offset = GGTOK_NO_OFFSET;
    report_status(status);
    report.line = last.line;
    report.name = last.source;
    report.message = last.message;
    return false;
}

/* Returns NULL after an error. */
jinja_template *EXPORT(template_new)(const char *source, size_t n, uint32_t dialect) {
    jinja_template *t = NULL;
    jinja_error err;
    report_jinja(ggtok_jinja_compile(source, n, (jinja_dialect)dialect, &t, &err), &err);
    return t;
}

void EXPORT(template_free)(jinja_template *t) {
    ggtok_jinja_template_free(t);
}

/* Reports the i-th variable that the template reads; returns false if there are no more. */
bool EXPORT(template_variable)(const jinja_template *t, uint32_t i) {
    const jinja_text *name = ggtok_jinja_template_variable(t, i);
    if (!name) return false;
    return report_bytes(GGTOK_OK, (ggtok_bytes){(const char *)name->data, name->n});
}

/* A reader of values that web/js/chat/values.js wrote: a letter for the type, then the value. */
typedef struct reader {
    jinja_env *env;
    jinja_arena *mem;
    jinja_dialect dialect;
    const uint8_t *p;
} reader;

static uint32_t next_size(reader *r) {
    uint32_t n;
    memcpy(&n, r->p, sizeof n);
    r->p += sizeof n;
    return n;
}

/* Reads a text with the ranges that count as the template's own. */
static jinja_text *next_text(reader *r) {
    uint32_t n = next_size(r), n_ranges = next_size(r), at = 0;
    const uint8_t *ranges = r->p, *data = ranges + 8 * (size_t)n_ranges;
    ggtok_jinja_env_grow(r->env, n);
    jinja_text *text = ggtok_jinja_text_copy(r->mem, data, n, 0);
    if (n_ranges) {
        jinja_builder b = ggtok_jinja_builder_new(r->mem, 0);
        b.merge = true;
        for (uint32_t i = 0; i < n_ranges; i++) {
            uint32_t begin = next_size(r), end = next_size(r);
            ggtok_jinja_builder_cut(&b, text, at, begin);
            ggtok_jinja_builder_add(&b, text->data + begin, end - begin, JINJA_FROM_TEMPLATE);
            at = end;
        }
        ggtok_jinja_builder_cut(&b, text, at, n);
        text = ggtok_jinja_text_fuse(r->mem, ggtok_jinja_builder_end(&b));
    }
    r->p = data + n;
    return text;
}

static jinja_value next_value(reader *r) {
    jinja_value v = jinja_none();
    jinja_charge(r->mem, 1);
    jinja_enter(r->mem);
    ggtok_jinja_env_grow(r->env, 8);
    switch (*r->p++) {
    case 't': v = jinja_bool(true); break;
    case 'f': v = jinja_bool(false); break;
    case 'i': {
        int64_t i;
        memcpy(&i, r->p, sizeof i);
        r->p += sizeof i;
        v = jinja_int(i);
        break;
    }
    case 'd': {
        double d;
        memcpy(&d, r->p, sizeof d);
        r->p += sizeof d;
        v = jinja_float(d);
        break;
    }
    case 's': v = jinja_of_text(next_text(r)); break;
    case 'j': { /* JSON text */
        uint32_t n = next_size(r);
        ggtok_jinja_env_grow(r->env, n);
        v = ggtok_jinja_read_json(r->mem, (const char *)r->p, n, 0, r->dialect);
        r->p += n;
        break;
    }
    case 'l': {
        uint32_t n = next_size(r);
        jinja_list *list = ggtok_jinja_list_new(r->mem, n);
        for (uint32_t i = 0; i < n; i++) ggtok_jinja_list_push(r->mem, list, next_value(r));
        v = jinja_of_list(list);
        break;
    }
    case 'm': {
        uint32_t n = next_size(r);
        jinja_dict *dict = ggtok_jinja_dict_new(r->mem, n);
        for (uint32_t i = 0; i < n; i++) {
            jinja_value key = next_value(r);
            ggtok_jinja_dict_set(r->mem, dict, key, next_value(r));
        }
        v = jinja_of_dict(dict);
        break;
    }
    default: break;
    }
    jinja_leave(r->mem);
    return v;
}

static void read_variables(jinja_arena *mem, void *user) {
    reader *r = user;
    (void)mem;
    for (uint32_t n = next_size(r); n; n--) {
        jinja_text *name = next_text(r);
        ggtok_jinja_env_set(r->env, (const char *)name->data, name->n, next_value(r));
    }
}

/* Renders with these variables and this local time: year, month from 1, day, hour, minute, second.
 * `ends` has four NUL-terminated texts: BOS and EOS to remove, and the fields `turn` and `answer`
 * of jinja_finish_options; it is NULL for a probe. Reports the text (data, n) and the
 * ranges that the template wrote (more, n_more), which live until rendering_free. *env is NULL if
 * memory runs out; otherwise the caller frees it, also after an error. */
bool EXPORT(render)(const jinja_template *t, const uint8_t *variables, const int32_t *time,
                    const char *ends, jinja_env **env) {
    jinja_error err;
    jinja_result out = {0};
    jinja_dialect dialect = ggtok_jinja_template_dialect(t);
    const jinja_options options = {
        .now = {.year = time[0],
                .month = time[1],
                .day = time[2],
                .hour = time[3],
                .minute = time[4],
                .second = time[5]},
        .probe = !ends,
    };
    *env = NULL;
    ggtok_status s = ggtok_jinja_env_new(&options, env, &err);
    if (s) return report_jinja(s, &err);
    reader r = {*env, ggtok_jinja_env_arena(*env), dialect, variables};
    s = ggtok_jinja_protect(r.mem, read_variables, &r, &err);
    if (!s) s = ggtok_jinja_render(*env, t, &out, &err);
    if (!s && ends) {
        const char *texts[4];
        for (int i = 0; i < 4; i++) {
            texts[i] = ends;
            ends += strlen(ends) + 1;
        }
        const jinja_finish_options finish = {
            .bos = texts[0],
            .eos = texts[1],
            .only_from_template = dialect == JINJA_TRANSFORMERS,
            .turn = texts[2],
            .answer = texts[3],
        };
        s = ggtok_jinja_finish(*env, &finish, &out, &err);
    }
    report.data = out.text;
    report.n = out.n;
    report.more = out.from_template;
    report.n_more = out.n_from_template;
    return report_jinja(s, &err);
}

void EXPORT(rendering_free)(jinja_env *env) {
    ggtok_jinja_env_free(env);
}

/* Returns how a probe used the value at a path, as jinja_note bits. The path has n steps: texts for
 * names and keys, numbers for items. */
uint32_t EXPORT(notes)(const jinja_env *env, const uint8_t *path, uint32_t n) {
    jinja_value v = jinja_absent();
    for (uint32_t i = 0; i < n; i++) {
        bool named = *path++ == 's';
        uint32_t size, at;
        memcpy(&size, path, sizeof size);
        path += sizeof size;
        if (!named) {
            at = size;
            v = v.type == JINJA_LIST && at < v.as.list->n ? v.as.list->data[at] : jinja_absent();
            continue;
        }
        const char *name = (const char *)path;
        path += size;
        if (i == 0) {
            v = ggtok_jinja_env_get((jinja_env *)env, name, size, n == 1);
            continue;
        }
        jinja_value found = jinja_absent();
        for (uint32_t k = 0; v.type == JINJA_DICT && k < v.as.dict->n; k++) {
            jinja_value key = v.as.dict->entries[k].key;
            if (key.type == JINJA_STRING && key.as.text->n == size &&
                !memcmp(key.as.text->data, name, size))
                found = v.as.dict->entries[k].value;
        }
        v = found;
    }
    return ggtok_jinja_env_notes(env, v);
}
