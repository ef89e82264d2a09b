/* Policies and requests: their memory, reading of JSON, and rendering. */
#include <stdio.h>

#include "base/mem.h"
#include "chat/policy.h"
#include "jinja/core/env.h"

const char *const ggtok_chat_token_names[CHAT_N_TOKENS] = {"bos_token", "eos_token", "unk_token",
                                                           "sep_token", "pad_token", "mask_token"};

static ggtok_status out_of_memory(jinja_error *err) {
    *err = (jinja_error){.status = GGTOK_ERR_MEMORY, .message = "out of memory"};
    return err->status;
}

/* ---- policies ---- */

typedef struct source_job {
    chat_policy *p;
    const char *source;
    size_t n;
} source_job;

/* Normalizes line breaks as the lexer does, because families are recognized in the result. */
static void copy_source(jinja_arena *mem, void *user) {
    source_job *job = user;
    char *out = jinja_alloc(mem, job->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < job->n; i++) {
        if (job->source[i] == '\r') {
            out[n++] = '\n';
            i += i + 1 < job->n && job->source[i + 1] == '\n';
        } else {
            out[n++] = job->source[i];
        }
    }
    if (n && out[n - 1] == '\n' && job->source[job->n - 1] == '\n') n--;
    out[n] = 0;
    job->p->source = out;
    job->p->n_source = n;
}

ggtok_status ggtok_chat_policy_new(const chat_file *file, ggtok_chat_like like, const char *source,
                                   size_t n, chat_policy **out, jinja_error *err) {
    enum { ROOM = 1 << 20 }; /* for what reasoning.c keeps */
    jinja_dialect dialect = like == GGTOK_LIKE_TRANSFORMERS ? JINJA_TRANSFORMERS : JINJA_LLAMA_CPP;
    *out = NULL;
    chat_policy *p = ggtok_mem_zalloc(sizeof *p);
    if (!p) return out_of_memory(err);
    p->file = file;
    p->like = like;
    ggtok_jinja_arena_init(&p->mem, 2 * (uint64_t)n + ROOM, UINT64_MAX);
    source_job job = {p, source, n};
    ggtok_status status = ggtok_jinja_protect(&p->mem, copy_source, &job, err);
    if (!status) status = ggtok_jinja_compile(source, n, dialect, &p->t, err);
    if (status) {
        ggtok_chat_policy_free(p);
        return status;
    }
    p->timed = ggtok_chat_contains(source, n, "strftime_now");
    if (like == GGTOK_LIKE_LLAMA_SERVER) {
        p->timed = p->timed || ggtok_jinja_template_reads(p->t, "datetime") ||
                   ggtok_jinja_template_reads(p->t, "date_string");
    }
    *out = p;
    return GGTOK_OK;
}

void ggtok_chat_policy_free(chat_policy *p) {
    if (!p) return;
    ggtok_jinja_template_free(p->t);
    ggtok_jinja_arena_free(&p->mem);
    ggtok_mem_free(p);
}

/* ---- jobs ---- */

ggtok_status ggtok_chat_begin(chat_job *job, const chat_options *options, size_t n_input) {
    *job = (chat_job){.body = jinja_absent(), .named = jinja_absent(), .options = options};
    const jinja_options env = {.now = options->now, .n_input = n_input};
    return ggtok_jinja_env_new(&env, &job->env, &job->error);
}

void ggtok_chat_end(chat_job *job) {
    ggtok_jinja_env_free(job->other); /* its texts are in `env` */
    ggtok_jinja_env_free(job->env);
    job->env = job->other = NULL;
}

typedef struct json_job {
    chat_job *job;
    ggtok_chat_like like;
    const char *json;
    size_t n;
} json_job;

jinja_value ggtok_chat_parsed(const chat_call *c, ggtok_chat_like like, const char *json,
                              size_t n) {
    const chat_path at = {NULL, "the request", 0};
    jinja_dialect dialect = like == GGTOK_LIKE_TRANSFORMERS ? JINJA_TRANSFORMERS : JINJA_LLAMA_CPP;
    jinja_value v;
    jinja_error error;
    if (!ggtok_jinja_read_if_json(c->mem, json, n, 0, dialect, &v, &error)) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST, NULL, "the request is %s",
                          error.message);
    }
    ggtok_chat_check_depth(c, v, &at, jinja_is_array(v) ? 1 : 0); /* a list: the messages */
    return v;
}

static void read_json(jinja_arena *mem, void *user) {
    json_job *j = user;
    const chat_call call = {.mem = mem, .language = j->job->options->language};
    j->job->body = ggtok_chat_parsed(&call, j->like, j->json, j->n);
    if (j->job->body.type != JINJA_DICT && call.language != CHAT_LLAMA_SERVER) {
        ggtok_chat_refuse(&call, CHAT_WRONG_TYPE, NULL, "a request must be %s, not %s",
                          ggtok_chat_word(&call, CHAT_AN_OBJECT),
                          ggtok_chat_type_name(&call, j->job->body));
    }
}

ggtok_status ggtok_chat_read_json(chat_job *job, ggtok_chat_like like, const char *json, size_t n) {
    json_job j = {.job = job, .like = like, .json = json, .n = n};
    return ggtok_jinja_protect(ggtok_jinja_env_arena(job->env), read_json, &j, &job->error);
}

/* Passes a failure on to the surrounding ggtok_jinja_protect. */
static _Noreturn void fail_again(chat_run *r, const jinja_error *error) {
    *r->call.mem->error = *error;
    longjmp(*r->call.mem->caller, 1);
}

jinja_text *ggtok_chat_rendered(chat_run *r, jinja_env *env) {
    jinja_text *text;
    jinja_error error;
    const jinja_template *t = r->job->template ? r->job->template : r->p->t;
    if (ggtok_jinja_render_text(env, t, &text, &error)) fail_again(r, &error);
    if (!ggtok_chat_is_utf8(text)) {
        r->call.mem->source = NULL;
        ggtok_jinja_fail(r->call.mem, "the template splits a character");
    }
    return text;
}

typedef struct copy_job {
    const jinja_env *from;
    jinja_env *to;
    bool generation;
} copy_job;

static void copy_variables(jinja_arena *mem, void *user) {
    const copy_job *j = user;
    for (uint32_t i = 0; j->from->inputs && i < j->from->inputs->n; i++) {
        const jinja_entry *entry = &j->from->inputs->entries[i];
        const jinja_text *name = entry->key.as.text;
        ggtok_jinja_env_set(j->to, (const char *)name->data, name->n,
                            ggtok_jinja_copy(mem, entry->value));
    }
    if (j->generation) ggtok_jinja_env_set(j->to, "add_generation_prompt", 21, jinja_bool(true));
}

jinja_env *ggtok_chat_copy_env(chat_run *r, bool generation) {
    chat_job *job = r->job;
    jinja_error error;
    const jinja_options options = job->env->options;
    if (ggtok_jinja_env_new(&options, &job->other, &error)) fail_again(r, &error);
    copy_job j = {job->env, job->other, generation};
    if (ggtok_jinja_protect(&job->other->arena, copy_variables, &j, &error)) fail_again(r, &error);
    return job->other;
}

static void make_prompt(jinja_arena *mem, void *user) {
    chat_job *job = user;
    chat_run r = {.call = {.mem = mem, .language = job->options->language}, .job = job};
    mem->source = NULL;
    if (job->options->api == CHAT_ANTHROPIC)
        job->body = ggtok_chat_from_anthropic(&r.call, job->body);
    else if (job->options->api == CHAT_RESPONSES)
        job->body = ggtok_chat_from_responses(&r.call, job->body);
    if (job->body.type != JINJA_DICT) job->body = jinja_of_dict(ggtok_jinja_dict_new(mem, 0));
    if (!job->policy) {
        jinja_value tools = ggtok_chat_get(mem, job->body, "tools");
        bool has = job->chat->like == GGTOK_LIKE_TRANSFORMERS
                       ? tools.type != JINJA_ABSENT && tools.type != JINJA_NONE
                       : jinja_is_array(tools) && tools.as.list->n;
        int which = has && job->chat->has_tool_template;
        job->policy = job->chat->policies[which];
        if (!job->policy) fail_again(&r, &job->chat->errors[which]);
    }
    r.p = job->policy;
    r.names = job->policy->file->names;
    job->prompt = r.p->like == GGTOK_LIKE_TRANSFORMERS ? ggtok_chat_transformers_prompt(&r)
                                                       : ggtok_chat_llama_server_prompt(&r);
}

/* Says that a template failed because there are no messages. */
static void explain_empty(chat_job *job) {
    char message[sizeof job->error.message];
    memcpy(message, job->error.message, sizeof message);
    snprintf(job->error.message, sizeof message,
             "there are no messages, but this chat template needs some: %.*s",
             text_prefix(message, strlen(message), 400), message);
}

ggtok_status ggtok_chat_render_job(chat_job *job) {
    jinja_arena *mem = ggtok_jinja_env_arena(job->env);
    ggtok_status status = ggtok_jinja_protect(mem, make_prompt, job, &job->error);
    if (status == GGTOK_ERR_TEMPLATE && job->is_empty) explain_empty(job);
    if (status == GGTOK_ERR_TEMPLATE && job->policy && !job->policy->family)
        job->error.fault |= CHAT_BAD_REQUEST;
    return status;
}
