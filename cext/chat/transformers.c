/* The policy of transformers' apply_chat_template, which changes messages very little. */
#include "chat/policy.h"
#include "jinja/python/dialect.h"
#include "unicode/utf8.h"

/* The tag that transformers appends to a message to be continued. The prompt is cut at its last
 * occurrence, since a template may write the message twice. */
static const char tag[] = "CONTINUE_FINAL_MESSAGE_TAG ";
enum { TAG = sizeof tag - 1, TAG_WITHOUT_SPACE = TAG - 1 };

/* The keys that a message's reasoning may have. Templates read the first two. */
static const char *const reasonings[] = {"reasoning_content", "thinking", "reasoning"};
enum { N_REASONINGS = 3 };

static bool is_missing(jinja_value v) {
    return v.type == JINJA_ABSENT || v.type == JINJA_NONE;
}

/* ---- messages ---- */

/* Returns a message as the template gets it: without fields that are null, and with its reasoning
 * under two names. */
static jinja_value message_of(chat_run *r, jinja_value v, uint32_t index) {
    const chat_call *c = &r->call;
    jinja_arena *mem = c->mem;
    if (v.type != JINJA_DICT) {
        const chat_path messages = {NULL, "messages", 0}, at = {&messages, NULL, index};
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE, NULL, "%s must be %s, not %s",
                          ggtok_chat_path(c, &at), ggtok_chat_word(c, CHAT_AN_OBJECT),
                          ggtok_chat_type_name(c, v));
    }
    jinja_dict *given = v.as.dict;
    jinja_value reasoning = jinja_absent();
    bool has_null = false;
    int rank = N_REASONINGS; /* of the key whose value is `reasoning` */
    for (uint32_t i = 0; i < given->n; i++) {
        jinja_entry *entry = &given->entries[i];
        jinja_charge(mem, 1);
        if (entry->value.type == JINJA_NONE) {
            has_null = true;
            continue;
        }
        jinja_text *key = chat_text(entry->key);
        if (chat_is(key, "role") && entry->value.type == JINJA_STRING &&
            ggtok_chat_is_own_role(entry->value.as.text)) {
            entry->value.as.text->label = JINJA_FROM_TEMPLATE;
            continue;
        }
        ggtok_chat_label(r, entry->value, ggtok_chat_origin_label(r, index, key));
        for (int k = 0; k < rank; k++) {
            if (!chat_is(key, reasonings[k])) continue;
            rank = k;
            reasoning = entry->value;
        }
    }
    if (!has_null && rank == N_REASONINGS) return v;
    jinja_dict *message = ggtok_jinja_dict_new(mem, given->n + 2);
    if (rank < N_REASONINGS) ggtok_jinja_dict_add(mem, message, r->names[CHAT_THINKING], reasoning);
    for (uint32_t i = 0; i < given->n; i++) {
        if (given->entries[i].value.type == JINJA_NONE) continue;
        ggtok_jinja_dict_set(mem, message, given->entries[i].key, given->entries[i].value);
    }
    if (rank < N_REASONINGS)
        ggtok_jinja_dict_set(mem, message, r->names[CHAT_REASONING], reasoning);
    return jinja_of_dict(message);
}

static void count_media(chat_run *r, jinja_value message) {
    jinja_value content = ggtok_chat_get(r->call.mem, message, "content");
    for (uint32_t i = 0; jinja_is_array(content) && i < content.as.list->n; i++) {
        r->job->n_media +=
            ggtok_chat_is_media(content.as.list->data[i], GGTOK_LIKE_TRANSFORMERS, r->call.mem);
    }
}

/* ---- variables ---- */

/* Sets a caller's variable. A caller who passes a token's own text means the token. */
static void set_given(chat_run *r, const jinja_text *name, jinja_value v) {
    for (int i = 0; v.type == JINJA_STRING && i < CHAT_N_TOKENS; i++) {
        jinja_text *token = r->p->file->tokens[i];
        if (token && chat_is(name, ggtok_chat_token_names[i]) && token->n == v.as.text->n &&
            !memcmp(token->data, v.as.text->data, token->n))
            v = jinja_of_text(token);
    }
    ggtok_jinja_env_set(r->job->env, (const char *)name->data, name->n, v);
}

static void set(chat_run *r, const char *name, jinja_value v) {
    ggtok_jinja_env_set(r->job->env, name, strlen(name), v);
}

/* Returns the caller's variables: chat_template_kwargs, then fields of the request, then named
 * variables. */
static jinja_dict *given_variables(chat_run *r) {
    static const char *const fields[] = {
        "tool_choice",      "parallel_tool_calls", "response_format", "reasoning_format",
        "reasoning_effort", "enable_thinking",     "documents"};
    jinja_arena *mem = r->call.mem;
    jinja_value named = r->job->named;
    r->job->named = jinja_absent();
    jinja_dict *given = ggtok_chat_variables(r);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        jinja_value v = ggtok_chat_get(mem, r->job->body, fields[i]);
        if (!is_missing(v)) ggtok_jinja_dict_put(mem, given, fields[i], v);
    }
    for (uint32_t i = 0; named.type == JINJA_DICT && i < named.as.dict->n; i++) {
        ggtok_jinja_dict_set(mem, given, named.as.dict->entries[i].key,
                             named.as.dict->entries[i].value);
    }
    return given;
}

static void check_tools(chat_run *r, jinja_value tools) {
    const chat_call *c = &r->call;
    const chat_path at = {NULL, "tools", 0};
    if (!jinja_is_array(tools)) {
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE, NULL, "%s must be %s of JSON schemas, not %s",
                          ggtok_chat_path(c, &at), ggtok_chat_word(c, CHAT_AN_ARRAY),
                          ggtok_chat_type_name(c, tools));
    }
    for (uint32_t i = 0; i < tools.as.list->n; i++) {
        const chat_path tool = {&at, NULL, i};
        jinja_charge(c->mem, 1);
        if (tools.as.list->data[i].type == JINJA_DICT) continue;
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE, NULL, "%s must be %s, a JSON schema, not %s",
                          ggtok_chat_path(c, &tool), ggtok_chat_word(c, CHAT_AN_OBJECT),
                          ggtok_chat_type_name(c, tools.as.list->data[i]));
    }
}

static void set_variables(chat_run *r, jinja_list *messages, bool generation) {
    const chat_file *file = r->p->file;
    for (int i = 0; i < CHAT_N_TOKENS; i++) {
        /* As in llama.cpp, BOS and EOS are "" if there is no such token. */
        jinja_text *text = file->tokens[i];
        if (!text && i < 2) text = ggtok_jinja_text_of(r->call.mem, "", 0, 0);
        if (text && ggtok_jinja_template_reads(r->p->t, ggtok_chat_token_names[i]))
            set(r, ggtok_chat_token_names[i], jinja_of_text(text));
    }
    jinja_value tools = ggtok_chat_get(r->call.mem, r->job->body, "tools");
    if (!is_missing(tools)) check_tools(r, tools);
    set(r, "tools", is_missing(tools) ? jinja_none() : tools);
    set(r, "add_generation_prompt", jinja_bool(generation));
    set(r, "documents", jinja_none());
    const jinja_dict *given = given_variables(r);
    for (uint32_t i = 0; i < given->n; i++) {
        jinja_charge(r->call.mem, 1);
        set_given(r, given->entries[i].key.as.text, given->entries[i].value);
    }
    set(r, "messages", jinja_of_list(messages));
}

/* ---- continuing the last message ---- */

static _Noreturn void refuse_continuing(const chat_call *c, const char *why, const char *field) {
    ggtok_chat_refuse(c, CHAT_WRONG_VALUE, NULL, "continue_final_message: %s%s%s%s", why,
                      *field ? "'" : "", field, *field ? "'" : "");
}

static jinja_value tagged(jinja_arena *mem, jinja_text *text) {
    jinja_text *more = ggtok_jinja_text_of(mem, tag, TAG, 0);
    return jinja_of_text(ggtok_jinja_text_concat(mem, text, more));
}

/* Appends the tag to the last text block of a content in parts; returns the text without it. */
static jinja_text *tag_blocks(const chat_call *c, jinja_value *value) {
    jinja_arena *mem = c->mem;
    *value = ggtok_jinja_copy(mem, *value);
    for (uint32_t i = value->as.list->n; i--;) {
        jinja_value *block = &value->as.list->data[i];
        jinja_value text = ggtok_chat_get(mem, *block, "text");
        if (text.type == JINJA_ABSENT) continue;
        if (text.type != JINJA_STRING) break;
        ggtok_jinja_dict_put(mem, block->as.dict, "text", tagged(mem, text.as.text));
        return text.as.text;
    }
    refuse_continuing(c, "the last message has no text", "");
}

/* Appends the tag to a field's text in the last message; returns the text without it. */
static jinja_text *tag_message(chat_run *r, jinja_list *messages, const char *field) {
    const chat_call *c = &r->call;
    jinja_arena *mem = c->mem;
    jinja_value *last = &messages->data[messages->n - 1];
    jinja_value value = ggtok_chat_get(mem, *last, field);
    const char *names[N_REASONINGS] = {field};
    size_t n = 1;
    for (size_t i = 0; i < N_REASONINGS; i++) {
        if (strcmp(field, reasonings[i]) != 0) continue;
        n = 0;
        for (size_t k = 0; k < N_REASONINGS; k++) {
            jinja_value other = ggtok_chat_get(mem, *last, reasonings[k]);
            if (other.type != JINJA_ABSENT && value.type != JINJA_ABSENT &&
                ggtok_jinja_equal(mem, other, value, JINJA_TRANSFORMERS))
                names[n++] = reasonings[k];
        }
    }
    if (value.type == JINJA_ABSENT) refuse_continuing(c, "the last message has no ", field);
    bool used = false;
    for (size_t i = 0; i < n; i++)
        used = used || ggtok_chat_contains(r->p->source, r->p->n_source, names[i]);
    if (!used) refuse_continuing(c, "the template doesn't use ", field);
    jinja_text *text = NULL;
    if (value.type == JINJA_STRING) {
        text = value.as.text;
        value = tagged(mem, text);
    } else if (value.type == JINJA_LIST) {
        text = tag_blocks(c, &value);
    } else {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE, NULL, "continue_final_message: '%s' is %s, not text",
                          field, ggtok_chat_type_name(c, value));
    }
    *last = jinja_of_dict(ggtok_chat_copy_dict(mem, last->as.dict, NULL));
    for (size_t i = 0; i < n; i++) ggtok_jinja_dict_put(mem, last->as.dict, names[i], value);
    return text;
}

/* Return the ends of t[0 .. end) without white space as in Python's str.strip(). */
static size_t end_without_space(jinja_arena *mem, const jinja_text *t, size_t end) {
    jinja_charge_bytes(mem, end);
    while (end) {
        size_t begin = end - 1;
        while (begin && utf8_continues(t->data[begin])) begin--;
        const uint8_t *p = t->data + begin;
        if (!ggtok_jinja_is_space(utf8_next(&p))) break;
        end = begin;
    }
    return end;
}

static size_t begin_without_space(jinja_arena *mem, const jinja_text *t) {
    const uint8_t *p = t->data, *end = t->data + t->n;
    jinja_charge_bytes(mem, t->n);
    for (const uint8_t *next = p; p < end && ggtok_jinja_is_space(utf8_next(&next)); p = next)
        continue;
    return (size_t)(p - t->data);
}

/* Returns the prompt up to the last tag. */
static jinja_text *cut_at_tag(chat_run *r, jinja_text *t, jinja_text *ending) {
    jinja_arena *mem = r->call.mem;
    const jinja_text needle = {.data = (const uint8_t *)tag, .n = TAG_WITHOUT_SPACE};
    size_t at = ggtok_jinja_text_rfind(mem, t, &needle, t->n);
    size_t begin = begin_without_space(mem, ending),
           end = end_without_space(mem, ending, ending->n);
    const jinja_text *stripped = begin < end ? ggtok_jinja_text_cut(mem, ending, begin, end) : NULL;
    if (at == SIZE_MAX || (stripped && ggtok_jinja_text_find(mem, t, stripped, 0) == SIZE_MAX)) {
        mem->source = NULL;
        ggtok_jinja_fail(mem,
                         "continue_final_message: the template drops the end of the last message");
    }
    /* If the tag's trailing space is missing, the template trims the message, so trim it here,
     * too. */
    if (t->n - at < TAG || t->data[at + TAG_WITHOUT_SPACE] != ' ')
        at = end_without_space(mem, t, at);
    return ggtok_jinja_text_cut(mem, t, 0, at);
}

/* ---- the prompt ---- */

/* Returns the field of the last message that is continued, or NULL. */
static const char *continued_field(chat_run *r) {
    jinja_arena *mem = r->call.mem;
    jinja_value final = ggtok_chat_get(mem, r->job->body, "continue_final_message");
    if (final.type == JINJA_BOOL) return final.as.truth ? "content" : NULL;
    if (final.type != JINJA_STRING) {
        if (is_missing(final)) return NULL;
        refuse_continuing(&r->call, "it must be a boolean or a field's name", "");
    }
    if (!final.as.text->n) return NULL;
    char *field = jinja_alloc(mem, final.as.text->n + 1);
    memcpy(field, final.as.text->data, final.as.text->n);
    field[final.as.text->n] = 0;
    return field;
}

/* Reads a field that must be a boolean; false if it is missing. */
static bool read_flag(chat_run *r, const char *name) {
    const chat_call *c = &r->call;
    jinja_value v = ggtok_chat_get(c->mem, r->job->body, name);
    if (v.type == JINJA_BOOL) return v.as.truth;
    if (is_missing(v)) return false;
    ggtok_chat_refuse(c, CHAT_WRONG_TYPE, NULL, "%s must be %s or %s, not %s", name,
                      ggtok_chat_word(c, CHAT_TRUE), ggtok_chat_word(c, CHAT_FALSE),
                      ggtok_chat_type_name(c, v));
}

jinja_text *ggtok_chat_transformers_prompt(chat_run *r) {
    const chat_call *c = &r->call;
    const chat_options *options = r->job->options;
    const chat_file *file = r->p->file;
    bool generation = read_flag(r, "add_generation_prompt");
    read_flag(r, "parallel_tool_calls");
    read_flag(r, "enable_thinking");
    const char *field = continued_field(r);
    if (field && generation) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE, NULL,
                          "continue_final_message can't be combined with a generation prompt: %s",
                          c->language == CHAT_PYTHON ? "pass add_generation_prompt=False"
                                                     : "set add_generation_prompt to false");
    }
    const jinja_list *given = ggtok_chat_messages(r);
    if (!given->n && (field || !options->allow_empty)) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE, NULL,
                          "%sthere are no messages, but transformers' apply_chat_template needs at "
                          "least one",
                          field ? "continue_final_message: " : "");
    }
    jinja_list *messages = ggtok_jinja_list_new(c->mem, given->n);
    for (uint32_t i = 0; i < given->n; i++) {
        jinja_value message = message_of(r, given->data[i], i);
        count_media(r, message);
        ggtok_jinja_list_push(c->mem, messages, message);
    }
    jinja_text *ending = field ? tag_message(r, messages, field) : NULL;
    set_variables(r, messages, generation);
    if (options->only_variables) return NULL;
    jinja_text *t = ggtok_chat_rendered(r, r->job->env);
    if (field) t = cut_at_tag(r, t, ending);
    if (options->as_text || options->before_more || options->keep_ends) return t;
    return ggtok_chat_drop_ends(c->mem, t, file->adds_bos ? file->tokens[0] : NULL,
                                file->adds_eos ? file->tokens[1] : NULL, true);
}

ggtok_status ggtok_chat_transformers_new(const chat_file *file, const char *source, size_t n,
                                         chat_policy **out, jinja_error *err) {
    return ggtok_chat_policy_new(file, GGTOK_LIKE_TRANSFORMERS, source, n, out, err);
}
