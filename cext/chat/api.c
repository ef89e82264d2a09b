/* Implements ggtok_chat.h. */
#define _POSIX_C_SOURCE 200809L /* for localtime_r */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "chat/policy.h"
#include "unicode/utf8_valid.h"

/* The template for files that have none. */
static const char chatml[] = "{%- for message in messages -%}\n"
                             "  {{- '<|im_start|>' + message.role + '\n"
                             "' + message.content + '<|im_end|>\n"
                             "' -}}\n"
                             "{%- endfor -%}\n"
                             "{%- if add_generation_prompt -%}\n"
                             "  {{- '<|im_start|>assistant\n"
                             "' -}}\n"
                             "{%- endif -%}";
static const char template_key[] = "tokenizer.chat_template";
enum { TEMPLATE_KEY = sizeof template_key - 1 };

/* ---- time ---- */

static bool is_time(const ggtok_time *t) {
    return t->year > 0 && t->year < 10000 && t->month >= 1 && t->month <= 12 && t->day >= 1 &&
           t->day <= 31 && t->hour >= 0 && t->hour < 24 && t->minute >= 0 && t->minute < 60 &&
           t->second >= 0 && t->second < 61 && t->microsecond >= 0 && t->microsecond < 1000000 &&
           t->utc_offset > -86400 && t->utc_offset < 86400;
}

jinja_time ggtok_chat_present_time(void) {
    time_t now = time(NULL);
    struct tm t = {0};
#ifdef _WIN32
    localtime_s(&t, &now);
#else
    localtime_r(&now, &t);
#endif
    jinja_time out = {.year = t.tm_year + 1900,
                      .month = t.tm_mon + 1,
                      .day = t.tm_mday,
                      .hour = t.tm_hour,
                      .minute = t.tm_min,
                      .second = t.tm_sec,
                      .is_dst = t.tm_isdst};
    char offset[8] = "";
    if (strftime(offset, sizeof offset, "%z", &t) == 5) { /* +hhmm */
        int hhmm = atoi(offset);
        out.has_zone = true;
        out.utc_offset = (hhmm / 100 * 60 + hhmm % 100) * 60;
        if (!strftime(out.zone, sizeof out.zone, "%Z", &t)) out.zone[0] = 0;
    }
    return out;
}

static ggtok_status time_of(const ggtok_time *given, jinja_time *out, ggtok_error *err) {
    if (!given) {
        *out = ggtok_chat_present_time();
        return GGTOK_OK;
    }
    if (!is_time(given))
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "`now` is not a valid date and time");
    *out = (jinja_time){.year = given->year,
                        .month = given->month,
                        .day = given->day,
                        .hour = given->hour,
                        .minute = given->minute,
                        .second = given->second,
                        .microsecond = given->microsecond,
                        .has_zone = given->zone != NULL,
                        .utc_offset = given->utc_offset,
                        .is_dst = given->is_dst};
    if (given->zone) snprintf(out->zone, sizeof out->zone, "%s", given->zone);
    return GGTOK_OK;
}

/* ---- chats ---- */

/* Returns the template with this name; "default" is the unnamed one. */
static bool find_template(const ggtok_tokenizer *tok, const char *name, size_t n,
                          ggtok_bytes *out) {
    bool is_default = n == 7 && !memcmp(name, "default", 7), found = false;
    ggtok_kv kv;
    for (size_t i = 0; i < ggtok_n_kv(tok) && !ggtok_get_kv(tok, i, &kv, NULL); i++) {
        if (kv.type != GGTOK_STRING || kv.key.n < TEMPLATE_KEY ||
            memcmp(kv.key.data, template_key, TEMPLATE_KEY) != 0)
            continue;
        bool unnamed = kv.key.n == TEMPLATE_KEY;
        bool named = kv.key.n == TEMPLATE_KEY + 1 + n && kv.key.data[TEMPLATE_KEY] == '.' &&
                     !memcmp(kv.key.data + TEMPLATE_KEY + 1, name, n);
        if (!named && !(unnamed && is_default)) continue;
        *out = kv.str;
        found = true;
        if (unnamed) break; /* it precedes one that is named `default` */
    }
    return found;
}

/* Writes the names of the file's templates, sorted: 'default', 'tool_use'. */
static void list_templates(const ggtok_tokenizer *tok, char *out, size_t room) {
    enum { MOST = 32 };
    ggtok_bytes names[MOST];
    size_t n = 0, at = 0;
    ggtok_kv kv;
    for (size_t i = 0; i < ggtok_n_kv(tok) && n < MOST && !ggtok_get_kv(tok, i, &kv, NULL); i++) {
        if (kv.type != GGTOK_STRING || kv.key.n < TEMPLATE_KEY ||
            memcmp(kv.key.data, template_key, TEMPLATE_KEY) != 0)
            continue;
        ggtok_bytes name = {"default", 7};
        if (kv.key.n > TEMPLATE_KEY && kv.key.data[TEMPLATE_KEY] != '.') continue;
        if (kv.key.n > TEMPLATE_KEY)
            name = (ggtok_bytes){kv.key.data + TEMPLATE_KEY + 1, kv.key.n - TEMPLATE_KEY - 1};
        size_t k = n++;
        for (; k && strncmp(names[k - 1].data, name.data,
                            names[k - 1].n < name.n ? names[k - 1].n : name.n) > 0;
             k--)
            names[k] = names[k - 1];
        names[k] = name;
    }
    snprintf(out, room, "none");
    for (size_t i = 0; i < n && at < room; i++) {
        at += (size_t)snprintf(out + at, room - at, "%s'%.*s'", i ? ", " : "",
                               text_prefix(names[i].data, names[i].n, 60), names[i].data);
    }
    if (at >= room) text_drop_partial(out, room - 1);
}

typedef struct file_job {
    const ggtok_tokenizer *tok;
    chat_file *file;
} file_job;

/* Copies a token's text, with malformed bytes replaced, and a NUL after it. */
static jinja_text *copy_token(jinja_arena *mem, ggtok_bytes piece) {
    static const char replacement[] = "\xEF\xBF\xBD";
    uint8_t *out = jinja_alloc(mem, 3 * piece.n + 1);
    size_t n = 0;
    for (size_t at = 0; at < piece.n;) {
        const uint8_t *p = (const uint8_t *)piece.data + at;
        size_t valid = ggtok_utf8_valid_prefix(p, piece.n - at);
        memcpy(out + n, p, valid);
        n += valid;
        at += valid;
        if (at == piece.n) break;
        memcpy(out + n, replacement, 3);
        n += 3;
        at++;
    }
    out[n] = 0;
    return ggtok_jinja_text_of(mem, out, n, JINJA_FROM_TEMPLATE);
}

static void read_file(jinja_arena *mem, void *user) {
    static const ggtok_special specials[CHAT_N_TOKENS] = {GGTOK_BOS, GGTOK_EOS, GGTOK_UNK,
                                                          GGTOK_SEP, GGTOK_PAD, GGTOK_MASK};
    static const char *const names[] = {
#define CHAT_NAME_TEXT(name, text) text,
        CHAT_NAMES(CHAT_NAME_TEXT)};
    const file_job *j = user;
    chat_file *file = j->file;
    file->adds_bos = ggtok_flag(j->tok, GGTOK_FLAG_ADD_BOS);
    file->adds_eos = ggtok_flag(j->tok, GGTOK_FLAG_ADD_EOS);
    for (int i = 0; i < CHAT_N_TOKENS; i++) {
        int32_t id = ggtok_special_id(j->tok, specials[i]);
        ggtok_bytes piece;
        if (id == GGTOK_NO_TOKEN || ggtok_token_to_piece(j->tok, id, 0, true, &piece, NULL))
            continue;
        file->tokens[i] = copy_token(mem, piece);
    }
    for (int i = 0; i < CHAT_N_NAMES; i++)
        file->names[i] = jinja_of_text(ggtok_jinja_text_of(mem, names[i], strlen(names[i]), 0));
}

static ggtok_status new_policy(const ggtok_chat *chat, ggtok_bytes source, bool patches,
                               const jinja_time *now, chat_policy **out, jinja_error *err) {
    return chat->like == GGTOK_LIKE_TRANSFORMERS
               ? ggtok_chat_transformers_new(&chat->file, source.data, source.n, out, err)
               : ggtok_chat_llama_server_new(&chat->file, source.data, source.n, patches, now, out,
                                             err);
}

static bool is(ggtok_bytes text, const char *s) {
    return text.n == strlen(s) && !memcmp(text.data, s, text.n);
}

/* Finds the template that `options` selects. Returns false if there is none. */
static bool select_template(const ggtok_chat *chat, const ggtok_chat_options *options,
                            ggtok_bytes *out, jinja_error *err) {
    const char *wanted = options->template_source;
    size_t n = options->n_template;
    bool is_llama = chat->like == GGTOK_LIKE_LLAMA_SERVER;
    char names[256];
    *out = (ggtok_bytes){"", 0};
    if (!wanted) {
        bool found = find_template(chat->tok, "default", 7, out);
        if (is_llama && (!out->n || is(*out, "chatml"))) {
            ggtok_bytes tool_use = {"", 0};
            find_template(chat->tok, "tool_use", 8, &tool_use);
            *out = tool_use.n ? tool_use : (ggtok_bytes){chatml, sizeof chatml - 1};
        }
        if (is_llama || found) return true;
        list_templates(chat->tok, names, sizeof names);
        *err = (jinja_error){.status = GGTOK_ERR_ARGUMENT, .key = "template"};
        snprintf(err->message, sizeof err->message,
                 "the file has no default chat template (it has: %s); pass one with template",
                 names);
        return false;
    }
    if (is_llama && n == 6 && !memcmp(wanted, "chatml", 6)) {
        *out = (ggtok_bytes){chatml, sizeof chatml - 1};
        return true;
    }
    if (find_template(chat->tok, wanted, n, out)) {
        if (is_llama && (!out->n || is(*out, "chatml")))
            *out = (ggtok_bytes){chatml, sizeof chatml - 1};
        return true;
    }
    if (memchr(wanted, '{', n) || memchr(wanted, '\n', n)) {
        *out = (ggtok_bytes){wanted, n};
        return true;
    }
    list_templates(chat->tok, names, sizeof names);
    *err = (jinja_error){.status = GGTOK_ERR_ARGUMENT, .key = "template"};
    snprintf(err->message, sizeof err->message,
             "template: '%.*s' is neither a template nor the name of one of the file's (%s)",
             text_prefix(wanted, n, 80), wanted, names);
    return false;
}

/* Compiles the policies. Returns the status of the one for requests without tools, unless only the
 * other one exists. */
static ggtok_status compile(ggtok_chat *chat, const ggtok_chat_options *options,
                            const jinja_time *now, jinja_error *err) {
    ggtok_bytes source, tool_use = {"", 0};
    bool is_llama = chat->like == GGTOK_LIKE_LLAMA_SERVER;
    bool found = !options->template_source && find_template(chat->tok, "tool_use", 8, &tool_use) &&
                 (tool_use.n || !is_llama);
    chat->has_tool_template = found;
    ggtok_status status = GGTOK_ERR_ARGUMENT;
    if (select_template(chat, options, &source, err))
        status = new_policy(chat, source, true, now, &chat->policies[0], err);
    if (status) chat->errors[0] = *err;
    if (status == GGTOK_ERR_MEMORY || (status && (is_llama || !found))) return status;
    if (!found) return GGTOK_OK;
    ggtok_status other =
        new_policy(chat, tool_use, false, now, &chat->policies[1], &chat->errors[1]);
    if (other == GGTOK_ERR_MEMORY) {
        *err = chat->errors[1];
        return other;
    }
    if (is_llama && other) /* the server falls back to the default template */
        chat->has_tool_template = false;
    else if (is_llama)
        chat->policies[1]->thinks = chat->policies[0]->thinks;
    return status && other ? status : GGTOK_OK;
}

ggtok_status ggtok_chat_compile(const ggtok_tokenizer *tok, const ggtok_chat_options *options,
                                const jinja_time *now, ggtok_chat **out, jinja_error *err) {
    *out = NULL;
    ggtok_chat *chat = ggtok_mem_zalloc(sizeof *chat);
    if (!chat) {
        *err = (jinja_error){.status = GGTOK_ERR_MEMORY, .message = "out of memory"};
        return err->status;
    }
    chat->tok = tok;
    chat->like = options->like;
    ggtok_jinja_arena_init(&chat->mem, UINT64_MAX / 2, UINT64_MAX);
    chat->mem.shared = true;
    file_job j = {tok, &chat->file};
    ggtok_status status = ggtok_jinja_protect(&chat->mem, read_file, &j, err);
    if (!status) status = compile(chat, options, now, err);
    if (status) {
        ggtok_chat_free(chat);
        return status;
    }
    *out = chat;
    return GGTOK_OK;
}

ggtok_status ggtok_chat_new(const ggtok_tokenizer *tok, const ggtok_chat_options *options,
                            ggtok_chat **out, ggtok_error *err) {
    static const ggtok_chat_options defaults = {.like = GGTOK_LIKE_LLAMA_SERVER};
    jinja_error error;
    jinja_time now;
    *out = NULL;
    if (!options) options = &defaults;
    ggtok_status status = time_of(options->now, &now, err);
    if (status) return status;
    if (ggtok_chat_compile(tok, options, &now, out, &error))
        return ggtok_chat_public_error(&error, err);
    return GGTOK_OK;
}

void ggtok_chat_free(ggtok_chat *chat) {
    if (!chat) return;
    ggtok_chat_policy_free(chat->policies[0]);
    ggtok_chat_policy_free(chat->policies[1]);
    ggtok_jinja_arena_free(&chat->mem);
    ggtok_mem_free(chat);
}

static size_t arena_size(const jinja_arena *mem) {
    size_t n = 0;
    for (const jinja_chunk *chunk = mem->chunks; chunk; chunk = chunk->older) n += chunk->whole;
    return n;
}

size_t ggtok_chat_memory(const ggtok_chat *chat) {
    size_t n = sizeof *chat + arena_size(&chat->mem);
    for (int i = 0; i < 2; i++) {
        const chat_policy *p = chat->policies[i];
        if (p) n += sizeof *p + arena_size(&p->mem) + ggtok_jinja_template_memory(p->t);
    }
    return n;
}

const chat_policy *ggtok_chat_policy_for(const ggtok_chat *chat, bool tools) {
    return chat->policies[tools && chat->has_tool_template];
}

ggtok_bytes ggtok_chat_variable(const ggtok_chat *chat, bool tools, size_t i) {
    const chat_policy *p = ggtok_chat_policy_for(chat, tools);
    if (!p) return (ggtok_bytes){"", 0};
    for (size_t k = 0; k <= i; k++) {
        const jinja_text *name = ggtok_jinja_template_variable(p->t, k);
        if (name && k == i) return (ggtok_bytes){(const char *)name->data, name->n};
        if (name) continue;
        const char *more =
            p->like == GGTOK_LIKE_LLAMA_SERVER ? ggtok_chat_spread_name(p, i - k) : NULL;
        return more ? (ggtok_bytes){more, strlen(more)} : (ggtok_bytes){"", 0};
    }
    return (ggtok_bytes){"", 0};
}

bool ggtok_chat_reads_time(const ggtok_chat *chat) {
    return (chat->policies[0] && chat->policies[0]->timed) ||
           (chat->policies[1] && chat->policies[1]->timed);
}

/* ---- prompts ---- */

struct ggtok_prompt {
    chat_job job;
    chat_options options;
    ggtok_origin *origins;
    size_t n_origins;
};

static ggtok_status options_of(const ggtok_chat_call *call, bool as_text, chat_options *out,
                               ggtok_error *err) {
    static const ggtok_chat_call defaults = {0};
    if (!call) call = &defaults;
    const char *marker = call->media_marker ? call->media_marker : GGTOK_MEDIA_MARKER;
    *out = (chat_options){.language = CHAT_JSON,
                          .marker = marker,
                          .n_marker = strlen(marker),
                          .keeps_last = call->no_prefill,
                          .as_text = as_text};
    if (!out->n_marker)
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "media_marker must not be empty");
    if (ggtok_utf8_valid_prefix((const uint8_t *)marker, out->n_marker) < out->n_marker)
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "media_marker isn't UTF-8");
    return time_of(call->now, &out->now, err);
}

static ggtok_status render_request(const ggtok_chat *chat, const char *json, size_t n,
                                   chat_job *job, const chat_options *options, ggtok_error *err) {
    ggtok_status status = ggtok_chat_begin(job, options, n);
    job->chat = chat;
    if (!status) status = ggtok_chat_read_json(job, chat->like, json, n);
    if (!status) status = ggtok_chat_render_job(job);
    return status ? ggtok_chat_public_error(&job->error, err) : GGTOK_OK;
}

bool ggtok_chat_is_silent(const chat_job *job) {
    bool silent = job->has_text;
    for (size_t i = 0; silent && i < jinja_text_count(job->prompt); i++)
        silent = ggtok_chat_origin_of(job, i).kind == GGTOK_FROM_TEMPLATE;
    return silent;
}

ggtok_origin ggtok_chat_origin_of(const chat_job *job, size_t part) {
    jinja_label label = jinja_text_part_label(job->prompt, part);
    uint32_t number = label >> 8;
    ggtok_origin o = {.end = jinja_text_end(job->prompt, part), .kind = GGTOK_FROM_UNKNOWN};
    if (label & JINJA_FROM_TEMPLATE) {
        o.kind = GGTOK_FROM_TEMPLATE;
    } else if (number) {
        const chat_origin *from = &job->origins[number - 1];
        o.kind = GGTOK_FROM_MESSAGE;
        o.message = from->message;
        o.field = (ggtok_bytes){(const char *)from->field->data, from->field->n};
    }
    return o;
}

static void list_origins(jinja_arena *mem, void *user) {
    ggtok_prompt *p = user;
    size_t n = jinja_text_count(p->job.prompt), begin = 0;
    p->origins = jinja_alloc_n(mem, n + 1, sizeof *p->origins);
    for (size_t i = 0; i < n; i++) {
        ggtok_origin o = ggtok_chat_origin_of(&p->job, i);
        o.begin = begin;
        begin = o.end;
        ggtok_origin *last = p->n_origins ? &p->origins[p->n_origins - 1] : NULL;
        bool same = last && last->kind == o.kind && last->message == o.message &&
                    last->field.n == o.field.n &&
                    (!o.field.n || !memcmp(last->field.data, o.field.data, o.field.n));
        if (same)
            last->end = o.end;
        else if (o.end > o.begin)
            p->origins[p->n_origins++] = o;
    }
}

ggtok_status ggtok_chat_render(const ggtok_chat *chat, const char *json, size_t n,
                               const ggtok_chat_call *call, ggtok_prompt **out, ggtok_error *err) {
    *out = NULL;
    ggtok_prompt *p = ggtok_mem_zalloc(sizeof *p);
    if (!p) return ggtok_error_memory(err);
    ggtok_status status = options_of(call, true, &p->options, err);
    if (!status) status = render_request(chat, json, n, &p->job, &p->options, err);
    if (!status) {
        jinja_arena *mem = ggtok_jinja_env_arena(p->job.env);
        status = ggtok_jinja_protect(mem, list_origins, p, &p->job.error);
        if (status) ggtok_chat_public_error(&p->job.error, err);
    }
    if (status) {
        ggtok_prompt_free(p);
        return status;
    }
    *out = p;
    return GGTOK_OK;
}

void ggtok_prompt_free(ggtok_prompt *prompt) {
    if (!prompt) return;
    ggtok_chat_end(&prompt->job);
    ggtok_mem_free(prompt);
}

ggtok_bytes ggtok_prompt_text(const ggtok_prompt *prompt) {
    return (ggtok_bytes){(const char *)prompt->job.prompt->data, prompt->job.prompt->n};
}

size_t ggtok_prompt_n_media(const ggtok_prompt *prompt) {
    return prompt->job.n_media;
}

const ggtok_origin *ggtok_prompt_origins(const ggtok_prompt *prompt, size_t *n) {
    *n = prompt->n_origins;
    return prompt->origins;
}

static ggtok_status encode(ggtok_context *ctx, const ggtok_chat *chat, const char *json, size_t n,
                           const ggtok_chat_call *call, ggtok_ids *out, size_t *n_media,
                           ggtok_error *err) {
    chat_options options;
    chat_job job = {0};
    unsigned flags = GGTOK_ADD_SPECIAL | GGTOK_PARSE_SPECIAL;
    if (call && call->plain_user_defined) flags |= GGTOK_PLAIN_USER_DEFINED;
    *out = (ggtok_ids){NULL, 0};
    ggtok_status status = options_of(call, false, &options, err);
    if (!status) status = render_request(chat, json, n, &job, &options, err);
    if (!status) status = ggtok_chat_encode_job(&job, ctx, flags, call && call->trusted, out, err);
    if (n_media) *n_media = job.n_media;
    ggtok_chat_end(&job);
    return status;
}

ggtok_status ggtok_chat_encode(ggtok_context *ctx, const ggtok_chat *chat, const char *json,
                               size_t n, const ggtok_chat_call *call, ggtok_ids *out,
                               ggtok_error *err) {
    return encode(ctx, chat, json, n, call, out, NULL, err);
}

ggtok_status ggtok_chat_count(ggtok_context *ctx, const ggtok_chat *chat, const char *json,
                              size_t n, const ggtok_chat_call *call, size_t *count, size_t *n_media,
                              ggtok_error *err) {
    ggtok_ids ids;
    ggtok_status status = encode(ctx, chat, json, n, call, &ids, n_media, err);
    *count = ids.n;
    return status;
}
