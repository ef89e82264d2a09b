/*
 * The policy of llama-server: how it converts messages, sets the template's variables, and finishes
 * the prompt; and what it learns about a template when it starts.
 */
#include <stdio.h>

#include "base/mem.h"
#include "chat/llama_request.h"
#include "jinja/core/env.h"

/* Checks that the server removes from templates, because they refuse messages that the templates
 * could render. In a source that contains `sign`, `check` becomes `never`. */
static const struct {
    const char *sign, *check;
} refusing[] = {
    {"<|channel|>", "{%- if \"<|channel|>analysis<|message|>\" in message.content or "
                    "\"<|channel|>final<|message|>\" in message.content %}"},
    {"[TOOL_CALLS]", "{%- if (message['content'] is none or message['content'] == '' or "
                     "message['content']|length == 0) and (message['tool_calls'] is not defined or "
                     "message['tool_calls'] is none or message['tool_calls']|length == 0) %}"},
};
static const char never[] = "{%- if false %}";

/* Identifies a family whose contents are trimmed, because its models repeat themselves after stray
 * white space. */
static const char trimmed[] = "You have access to the following functions in JSONSchema format";

/* ---- messages for the template ---- */

static void trim(jinja_arena *mem, chat_message *m) {
    if (m->content) m->content = ggtok_chat_strip(mem, m->content);
    if (m->reasoning) m->reasoning = ggtok_chat_strip(mem, m->reasoning);
    if (!m->parts) return;
    jinja_list *parts = ggtok_jinja_list_new(mem, m->parts->n);
    for (uint32_t i = 0; i < m->parts->n; i++) {
        jinja_text *part = m->parts->data[i].as.text;
        bool is_media = part->label & JINJA_MEDIA;
        ggtok_jinja_list_push(mem, parts,
                              jinja_of_text(is_media ? part : ggtok_chat_strip(mem, part)));
    }
    m->parts = parts;
}

/* Merges a system message into the next one if the template doesn't support system messages. */
static void merge_system(chat_run *r, jinja_list *messages) {
    const chat_call *c = &r->call;
    jinja_arena *mem = c->mem;
    if (r->p->caps.system_role || !messages->n) return;
    jinja_value first = messages->data[0];
    if (!chat_is(chat_text(ggtok_chat_get(mem, first, "role")), "system")) return;
    messages->data++;
    messages->n--;
    messages->cap--;
    if (!messages->n) return;
    const jinja_text *a = chat_text(ggtok_chat_get(mem, first, "content")),
                     *b = chat_text(ggtok_chat_get(mem, messages->data[0], "content"));
    if (!a || !b) {
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE, NULL,
                          "the template supports no system message, and contents in parts can't be "
                          "merged");
    }
    jinja_builder joined = ggtok_jinja_builder_new(mem, a->n + b->n + 1);
    joined.merge = true;
    ggtok_jinja_builder_text(&joined, a);
    ggtok_jinja_builder_add(&joined, "\n", 1, JINJA_FROM_TEMPLATE);
    ggtok_jinja_builder_text(&joined, b);
    jinja_text *content = ggtok_jinja_text_fuse(mem, ggtok_jinja_builder_end(&joined));
    ggtok_jinja_dict_set(mem, messages->data[0].as.dict, r->names[CHAT_CONTENT],
                         jinja_of_text(content));
}

/* Returns the messages for the template, without the last one if it is continued. */
static jinja_list *written_messages(chat_run *r, llama_request *q) {
    jinja_arena *mem = r->call.mem;
    uint32_t n = q->n_messages;
    if (n) q->last = q->messages[n - 1];
    if (q->continues && n) n--;
    jinja_list *list = ggtok_jinja_list_new(mem, n);
    for (uint32_t i = 0; i < n; i++) {
        jinja_charge(mem, 1);
        if (r->p->trims) trim(mem, &q->messages[i]);
        jinja_dict *written = ggtok_chat_write_message(r, &q->messages[i], i);
        ggtok_jinja_list_push(mem, list, jinja_of_dict(written));
    }
    merge_system(r, list);
    const chat_family *family = r->p->family;
    if (!family || !family->change_messages) return list;
    if (ggtok_chat_get(mem, jinja_of_dict(q->given), "messages").type != JINJA_ABSENT) return list;
    return family->change_messages(&r->call, list, q->given);
}

/* ---- variables ---- */

static void set(chat_run *r, const char *name, jinja_value v) {
    if (ggtok_jinja_template_reads(r->p->t, name))
        ggtok_jinja_env_set(r->job->env, name, strlen(name), v);
}

/* Sets variables for two of the request's settings, under all names that templates use. */
static void spread(chat_run *r, const llama_request *q) {
    jinja_arena *mem = r->call.mem;
    jinja_value given = jinja_of_dict(q->given);
    jinja_value preserve = ggtok_chat_get(mem, given, "preserve_reasoning"),
                effort = ggtok_chat_get(mem, given, "reasoning_effort");
    for (size_t i = 0; preserve.type == JINJA_BOOL && i < CHAT_N_PRESERVING; i++) {
        set(r, ggtok_chat_preserving[i].name,
            jinja_bool(preserve.as.truth == ggtok_chat_preserving[i].keeps));
    }
    for (size_t i = 0; effort.type == JINJA_STRING && i < CHAT_N_EFFORTS; i++) {
        set(r, ggtok_chat_efforts[i], effort);
    }
}

static void set_dates(chat_run *r) {
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const jinja_time *now = &r->job->options->now;
    const char *month = months[(now->month + 11) % 12];
    char date[48];
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "date_string" : "datetime";
        if (!ggtok_jinja_template_reads(r->p->t, name)) continue;
        int n = i ? snprintf(date, sizeof date, "%02d %s %d", now->day, month, now->year)
                  : snprintf(date, sizeof date, "%s %02d %d", month, now->day, now->year);
        set(r, name, jinja_of_text(ggtok_jinja_text_copy(r->call.mem, date, (size_t)n, 0)));
    }
}

/* Sets the template's variables except add_generation_prompt. A later value replaces an earlier
 * one. */
static void set_variables(chat_run *r, const llama_request *q, jinja_list *messages) {
    const chat_policy *p = r->p;
    for (int i = 0; i < 2; i++) { /* BOS and EOS */
        jinja_text *text = p->file->tokens[i];
        if (!text) text = ggtok_jinja_text_of(r->call.mem, "", 0, 0);
        set(r, ggtok_chat_token_names[i], jinja_of_text(text));
    }
    set(r, "enable_thinking", jinja_bool(q->thinking));
    if (q->tools) set(r, "tools", jinja_of_list(q->tools));
    set_dates(r);
    set(r, "messages", jinja_of_list(messages));
    spread(r, q);
    for (uint32_t i = 0; i < q->given->n; i++) {
        const jinja_entry *entry = &q->given->entries[i];
        const jinja_text *name = entry->key.as.text;
        jinja_charge(r->call.mem, 1);
        /* The template may read a name as a built-in function that the variable replaces. */
        ggtok_jinja_env_set(r->job->env, (const char *)name->data, name->n, entry->value);
    }
    if (q->schema.type != JINJA_ABSENT) set(r, p->family->schema_variable, q->schema);
}

/* ---- continuing the last message ---- */

/* Returns what `other` has after its longest common prefix with the prompt. */
static jinja_text *after_prefix(jinja_arena *mem, jinja_text *other, const jinja_text *prompt) {
    size_t n = 0, most = other->n < prompt->n ? other->n : prompt->n;
    jinja_charge_bytes(mem, most);
    while (n < most && other->data[n] == prompt->data[n]) n++;
    n = (size_t)text_prefix(other->data, other->n, n);
    return ggtok_jinja_text_cut(mem, other, n, other->n);
}

static void add_own(jinja_builder *b, const char *s) {
    ggtok_jinja_builder_add(b, s, strlen(s), JINJA_FROM_TEMPLATE);
}

static void add_content(chat_run *r, jinja_builder *b, const chat_message *m) {
    if (m->parts)
        ggtok_jinja_builder_text(b, ggtok_chat_join_parts(r->call.mem, m->parts, "\n\n", false));
    else if (m->content)
        ggtok_jinja_builder_text(b, m->content);
}

/* Returns the prompt followed by the beginning of an answer. `other` is the prompt with the
 * template's own generation prompt, or NULL. */
static jinja_text *continued(chat_run *r, const llama_request *q, jinja_text *prompt,
                             jinja_text *other) {
    jinja_arena *mem = r->call.mem;
    const chat_family *family = r->p->family;
    const chat_message *m = &q->last;
    bool only_reasoning = m->reasoning && !(m->content && m->content->n) && !m->parts;
    bool in_content = q->continues == IN_CONTENT || (q->continues == CONTINUES && !only_reasoning);
    jinja_text *before = other ? after_prefix(mem, other, prompt) : NULL;
    jinja_builder b = ggtok_jinja_builder_new(mem, prompt->n + 256);
    ggtok_jinja_builder_text(&b, prompt);
    if (family) {
        const chat_answer answer = {m, in_content, r->p->source, q->given, q->thinking};
        const chat_opening opening =
            family->opening_of ? family->opening_of(&r->call, &answer) : family->opening;
        if (before) ggtok_jinja_builder_text(&b, before);
        if (family->turn) {
            const jinja_text *turned =
                ggtok_chat_end_turn(mem, prompt, family->turn, family->answer);
            ggtok_jinja_builder_cut(&b, turned, prompt->n, turned->n);
        }
        add_own(&b, opening.before);
        if (family->reasons && m->reasoning) ggtok_jinja_builder_text(&b, m->reasoning);
        if (in_content || family->always_content) {
            add_own(&b, opening.between);
            add_content(r, &b, m);
        }
        return ggtok_jinja_builder_end(&b);
    }
    const chat_tags *tags = &r->p->tags;
    if (tags->start[0]) {
        const jinja_text start = {.data = (const uint8_t *)tags->start,
                                  .n = (uint32_t)strlen(tags->start)};
        size_t at = before ? ggtok_jinja_text_find(mem, before, &start, 0) : 0;
        if (before) ggtok_jinja_builder_cut(&b, before, 0, at == SIZE_MAX ? before->n : at);
        add_own(&b, tags->start);
        if (m->reasoning) ggtok_jinja_builder_text(&b, m->reasoning);
        if (in_content) add_own(&b, tags->end);
    } else if (before) {
        ggtok_jinja_builder_text(&b, before);
    }
    if (in_content) add_content(r, &b, m);
    return ggtok_jinja_builder_end(&b);
}

/* ---- the prompt ---- */

static jinja_text *finished(chat_run *r, const llama_request *q, jinja_text *t) {
    const chat_file *file = r->p->file;
    const chat_family *family = r->p->family;
    jinja_arena *mem = r->call.mem;
    const chat_options *options = r->job->options;
    bool drops_eos = file->adds_eos && !options->before_more;
    if (!options->keep_ends) {
        t = ggtok_chat_drop_ends(mem, t, file->adds_bos ? file->tokens[0] : NULL,
                                 drops_eos ? file->tokens[1] : NULL, false);
    }
    if (family && family->turn && q->generation)
        t = ggtok_chat_end_turn(mem, t, family->turn, family->answer);
    return t;
}

static void set_generation(jinja_env *env) {
    ggtok_jinja_env_set(env, "add_generation_prompt", 21, jinja_bool(true));
}

jinja_text *ggtok_chat_llama_server_prompt(chat_run *r) {
    const chat_policy *p = r->p;
    llama_request q;
    ggtok_chat_read_llama_request(r, &q);
    set_variables(r, &q, written_messages(r, &q));
    if (r->job->options->only_variables) {
        if (q.generation) set_generation(r->job->env);
        return NULL;
    }
    bool appends = q.continues && q.n_messages && ggtok_chat_has_content(&q.last);
    bool needs_other = appends && (!p->family || p->family->after_prompt);
    jinja_env *other =
        p->renders_both || needs_other ? ggtok_chat_copy_env(r, !q.generation) : NULL;
    if (q.generation) set_generation(r->job->env);
    jinja_text *prompt = finished(r, &q, ggtok_chat_rendered(r, r->job->env));
    jinja_text *other_prompt = NULL;
    if (other) other_prompt = finished(r, &q, ggtok_chat_rendered(r, other));
    if (p->family && p->family->last && !q.generation)
        prompt =
            ggtok_chat_replace_last(r->call.mem, prompt, p->family->last, p->family->replacement);
    ggtok_chat_check_logprobs(r, &q);
    return appends ? continued(r, &q, prompt, needs_other ? other_prompt : NULL) : prompt;
}

/* ---- the policy ---- */

/* Returns the source as llama-server patches it: a copy in `mem`, or `source` if no patch applies.
 * Updates *n. */
static const char *patched(jinja_arena *mem, const char *source, size_t *n) {
    for (size_t i = 0; i < sizeof refusing / sizeof *refusing; i++) {
        const size_t check = strlen(refusing[i].check);
        if (!ggtok_chat_contains(source, *n, refusing[i].sign)) continue;
        char *out = jinja_alloc(mem, *n);
        size_t to = 0;
        for (size_t at = 0; at < *n;) {
            if (*n - at >= check && source[at] == '{' &&
                !memcmp(source + at, refusing[i].check, check)) {
                memcpy(out + to, never, sizeof never - 1);
                to += sizeof never - 1;
                at += check;
            } else {
                out[to++] = source[at++];
            }
        }
        source = out;
        *n = to;
    }
    return source;
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Whether text s ends at source[at]. */
static bool precedes(const char *source, size_t at, const char *s) {
    size_t n = strlen(s);
    return at >= n && !memcmp(source + at - n, s, n);
}

static bool follows(const char *source, size_t n, size_t at, const char *s) {
    size_t length = strlen(s);
    return n - at >= length && !memcmp(source + at, s, length);
}

/* Whether the template uses add_generation_prompt so that a rendering could fail because of its
 * value: other than in a test, or to set its default. */
static bool may_fail_by_generation(const char *source, size_t n) {
    static const char name[] = "add_generation_prompt";
    enum { LENGTH = sizeof name - 1 };
    for (size_t at = 0; n - at >= LENGTH; at++) {
        const char *found = memchr(source + at, 'a', n - at);
        if (!found) return false;
        at = (size_t)(found - source);
        if (!follows(source, n, at, name)) continue;
        size_t end = at + LENGTH, next = end;
        while (next < n && is_space(source[next])) next++;
        if (precedes(source, at, "if not ") && follows(source, n, end, " is defined")) {
            at = end;
        } else if (precedes(source, at, "set ") && follows(source, n, end, " = ")) {
            while (end < n && source[end] != '%') end++;
            at = end;
        } else if (precedes(source, at, "if ") || precedes(source, at, "and ")) {
            bool tests = follows(source, n, next, "%") || follows(source, n, next, "-%") ||
                         (next > end && follows(source, n, next, "and"));
            if (!tests) return true;
            at = end;
        } else {
            return true;
        }
        if (at >= n) return false;
        at--;
    }
    return false;
}

/* Fails unless llama-server would start with the template: it renders one question with and without
 * a generation prompt. */
static ggtok_status check_start(const chat_policy *p, const jinja_time *now, jinja_error *err) {
    static const char *const bodies[] = {
        "{\"messages\": [{\"role\": \"user\", \"content\": \"test\"}], \"chat_template_kwargs\": "
        "{\"enable_thinking\": true}}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"test\"}], \"chat_template_kwargs\": "
        "{\"enable_thinking\": true}, \"add_generation_prompt\": false}"};
    const chat_options options = {.marker = "", .now = *now};
    ggtok_status status = GGTOK_OK;
    for (int i = 0; i < 2 && !status; i++) {
        chat_job job;
        status = ggtok_chat_begin(&job, &options, strlen(bodies[i]));
        job.policy = p;
        if (!status) status = ggtok_chat_read_json(&job, p->like, bodies[i], strlen(bodies[i]));
        if (!status) status = ggtok_chat_render_job(&job);
        if (status) *err = job.error;
        ggtok_chat_end(&job);
    }
    if (status == GGTOK_ERR_TEMPLATE) {
        char message[sizeof err->message];
        memcpy(message, err->message, sizeof message);
        snprintf(
            err->message, sizeof err->message,
            "llama-server doesn't start with this chat template, which fails for a single user "
            "message: %.*s",
            text_prefix(message, strlen(message), 360), message);
    }
    return status;
}

static ggtok_status learn(chat_policy *p, const jinja_time *now, jinja_error *err) {
    const char *source = p->source;
    size_t n = p->n_source;
    ggtok_status status = ggtok_chat_find_caps(p->t, now, &p->caps, err);
    if (status) return status;
    p->tags = (chat_tags){.start = "", .end = ""};
    p->family = ggtok_chat_find_family(source, n);
    if (p->family) {
        p->thinks = p->family->reasons;
    } else {
        const jinja_text *bos = p->file->tokens[0], *eos = p->file->tokens[1];
        status =
            ggtok_chat_find_tags(p->t, source, n, &p->caps, bos ? (const char *)bos->data : "",
                                 eos ? (const char *)eos->data : "", now, &p->mem, &p->tags, err);
        if (status) return status;
        p->thinks = p->tags.found;
    }
    /* Only gpt-oss's template supports the role `developer`; others get `system` instead. */
    p->renames_developers = !ggtok_chat_contains(source, n, "<|channel|>");
    p->trims = ggtok_chat_contains(source, n, trimmed);
    p->renders_both = may_fail_by_generation(source, n);
    if (p->tags.bad_calls) {
        *err = (jinja_error){.status = GGTOK_ERR_TEMPLATE};
        snprintf(err->message, sizeof err->message,
                 "llama-server doesn't start with this chat template, because it parses the tool "
                 "calls as JSON: %.*s",
                 text_prefix(p->tags.bad_calls, strlen(p->tags.bad_calls), 380), p->tags.bad_calls);
        return err->status;
    }
    return check_start(p, now, err);
}

typedef struct patching {
    const char *source;
    size_t n;
} patching;

static void patch(jinja_arena *mem, void *user) {
    patching *job = user;
    job->source = patched(mem, job->source, &job->n);
}

ggtok_status ggtok_chat_llama_server_new(const chat_file *file, const char *source, size_t n,
                                         bool patches, const jinja_time *now, chat_policy **out,
                                         jinja_error *err) {
    patching job = {source, n};
    jinja_arena scratch;
    *out = NULL;
    ggtok_jinja_arena_init(&scratch, 4 * (uint64_t)n + (1 << 16), UINT64_MAX);
    ggtok_status status = patches ? ggtok_jinja_protect(&scratch, patch, &job, err) : GGTOK_OK;
    chat_policy *p = NULL;
    if (!status) {
        status = ggtok_chat_policy_new(file, GGTOK_LIKE_LLAMA_SERVER, job.source, job.n, &p, err);
    }
    if (!status) status = learn(p, now, err);
    ggtok_jinja_arena_free(&scratch);
    if (status) {
        ggtok_chat_policy_free(p);
        return status;
    }
    *out = p;
    return GGTOK_OK;
}

const char *ggtok_chat_spread_name(const chat_policy *p, size_t i) {
    bool reads[2] = {false, false};
    for (size_t k = 0; k < CHAT_N_PRESERVING; k++)
        reads[0] |= ggtok_jinja_template_reads(p->t, ggtok_chat_preserving[k].name);
    for (size_t k = 0; k < CHAT_N_EFFORTS; k++)
        reads[1] |= ggtok_jinja_template_reads(p->t, ggtok_chat_efforts[k]);
    if (reads[0] && !i--) return "preserve_reasoning";
    if (reads[1] && !i--) return "reasoning_effort";
    const char *const *more = p->family ? p->family->reads : NULL;
    for (size_t k = 0; more && more[k]; k++) {
        if (!i--) return more[k];
    }
    return NULL;
}
