/*
 * Messages as llama-server converts them. The server reads a message into a structure and writes it
 * again, so unknown keys are dropped, null contents become "", arguments become JSON text, and
 * values of unexpected types are refused.
 */
#include "chat/policy.h"

#define SHAPE(NAME, text, value, items) {text, sizeof text - 1, CHAT_##NAME, value, items}
#define END {NULL, 0, 0, NULL, NULL}
static const chat_shape function_shape[] = {SHAPE(NAME, "name", NULL, NULL),
                                            SHAPE(ARGUMENTS, "arguments", NULL, NULL), END};
static const chat_shape call_shape[] = {SHAPE(TYPE, "type", NULL, NULL),
                                        SHAPE(ID, "id", NULL, NULL),
                                        SHAPE(FUNCTION, "function", function_shape, NULL), END};
static const chat_shape part_shape[] = {SHAPE(TYPE, "type", NULL, NULL),
                                        SHAPE(TEXT, "text", NULL, NULL), END};
const chat_shape ggtok_chat_message_shape[] = {SHAPE(ROLE, "role", NULL, NULL),
                                               SHAPE(CONTENT, "content", NULL, part_shape),
                                               SHAPE(REASONING, "reasoning_content", NULL, NULL),
                                               SHAPE(TOOL_CALLS, "tool_calls", NULL, call_shape),
                                               SHAPE(NAME, "name", NULL, NULL),
                                               SHAPE(CALL_ID, "tool_call_id", NULL, NULL),
                                               END};
static const chat_shape declared_shape[] = {SHAPE(NAME, "name", NULL, NULL),
                                            SHAPE(DESCRIPTION, "description", NULL, NULL),
                                            SHAPE(PARAMETERS, "parameters", NULL, NULL), END};
const chat_shape ggtok_chat_tool_shape[] = {SHAPE(TYPE, "type", NULL, NULL),
                                            SHAPE(FUNCTION, "function", declared_shape, NULL), END};

/* ---- origins ---- */

bool ggtok_chat_is_own_role(const jinja_text *role) {
    /* Some templates write '<|' + role + '|>'. */
    static const char *const roles[] = {"system",     "tool",          "developer",  "critic",
                                        "human",      "documents",     "model",      "function",
                                        "ipython",    "environment",   "tools",      "tool_call",
                                        "tool_calls", "tool_response", "observation"};
    bool found = chat_is(role, "user") || chat_is(role, "assistant"); /* most are */
    for (size_t i = 0; i < sizeof roles / sizeof *roles && !found; i++)
        found = chat_is(role, roles[i]);
    return found;
}

jinja_label ggtok_chat_origin_label(chat_run *r, uint32_t message, const jinja_text *field) {
    enum { MOST = (1 << 24) - 1 };
    chat_job *j = r->job;
    jinja_arena *mem = r->call.mem;
    if (j->n_origins == MOST) return 0;
    if (j->n_origins == j->cap_origins) {
        uint32_t cap = 2 * j->cap_origins + 64;
        jinja_charge(mem, j->n_origins);
        chat_origin *more = jinja_alloc_n(mem, cap, sizeof *more);
        if (j->n_origins) memcpy(more, j->origins, j->n_origins * sizeof *more);
        j->origins = more;
        j->cap_origins = cap;
    }
    j->origins[j->n_origins++] = (chat_origin){message, field};
    return JINJA_ORIGIN(j->n_origins);
}

void ggtok_chat_label(chat_run *r, jinja_value v, jinja_label label) {
    jinja_arena *mem = r->call.mem;
    if (v.type == JINJA_STRING) {
        v.as.text->label = label;
        r->job->has_text |= !ggtok_chat_is_blank(v.as.text);
        return;
    }
    if (!jinja_is_array(v) && v.type != JINJA_DICT) return;
    jinja_enter(mem);
    if (v.type == JINJA_DICT) {
        jinja_charge(mem, v.as.dict->n);
        for (uint32_t i = 0; i < v.as.dict->n; i++)
            ggtok_chat_label(r, v.as.dict->entries[i].value, label);
    } else {
        jinja_charge(mem, v.as.list->n);
        for (uint32_t i = 0; i < v.as.list->n; i++) ggtok_chat_label(r, v.as.list->data[i], label);
    }
    jinja_leave(mem);
}

/* Labels a text of a message with its field; returns the text. */
static jinja_text *from_message(chat_run *r, jinja_text *t, uint32_t index, int name) {
    if (!t->n) return t;
    t->label = ggtok_chat_origin_label(r, index, r->names[name].as.text);
    r->job->has_text |= !ggtok_chat_is_blank(t);
    return t;
}

/* ---- reading ---- */

/* The values of a message's fields, or JINJA_ABSENT. */
typedef struct fields {
    jinja_value role, content, calls, reasoning, name, call_id;
} fields;

static fields fields_of(const jinja_dict *message) {
    const jinja_value absent = {.type = JINJA_ABSENT};
    fields f = {absent, absent, absent, absent, absent, absent};
    for (uint32_t i = 0; i < message->n; i++) {
        const jinja_entry *entry = &message->entries[i];
        const jinja_text *key = entry->key.as.text;
        jinja_value *to = NULL;
        switch (key->n) {
        case 4: to = chat_is(key, "role") ? &f.role : chat_is(key, "name") ? &f.name : NULL; break;
        case 7: to = chat_is(key, "content") ? &f.content : NULL; break;
        case 10: to = chat_is(key, "tool_calls") ? &f.calls : NULL; break;
        case 12: to = chat_is(key, "tool_call_id") ? &f.call_id : NULL; break;
        case 17: to = chat_is(key, "reasoning_content") ? &f.reasoning : NULL; break;
        default: break;
        }
        if (to) *to = entry->value;
    }
    return f;
}

static void check_dict(const chat_call *c, jinja_value v, const chat_path *at) {
    if (v.type == JINJA_DICT) return;
    ggtok_chat_refuse(c, CHAT_WRONG_TYPE, "Failed to parse messages: ", "%s must be %s, not %s",
                      ggtok_chat_path(c, at), ggtok_chat_word(c, CHAT_AN_OBJECT),
                      ggtok_chat_type_name(c, v));
}

/* Returns a field's text; refuses a value that isn't a string. */
static jinja_text *string_of(const chat_call *c, jinja_value v, const chat_path *parent,
                             const char *name) {
    if (v.type == JINJA_STRING) return v.as.text;
    const chat_path at = {parent, name, 0};
    ggtok_chat_refuse(c, CHAT_WRONG_TYPE, "Failed to parse messages: ", "%s must be %s, not %s",
                      ggtok_chat_path(c, &at), ggtok_chat_word(c, CHAT_A_STRING),
                      ggtok_chat_type_name(c, v));
}

/* Returns the text of an optional field, or NULL if it is absent or empty. */
static jinja_text *read_text(chat_run *r, jinja_value v, const chat_path *message, uint32_t index,
                             int name) {
    if (v.type == JINJA_ABSENT) return NULL;
    const char *key = (const char *)r->names[name].as.text->data;
    jinja_text *text = string_of(&r->call, v, message, key);
    return text->n ? from_message(r, text, index, name) : NULL;
}

/* Returns how a message shows a value that should be one of several strings. */
static const char *shown(const chat_call *c, jinja_value v) {
    enum { ROOM = 80 };
    if (v.type != JINJA_STRING) return ggtok_chat_type_name(c, v);
    char *out = jinja_alloc(c->mem, ROOM + 3);
    size_t n = (size_t)text_prefix(v.as.text->data, v.as.text->n, ROOM);
    out[0] = '\'';
    memcpy(out + 1, v.as.text->data, n);
    memcpy(out + 1 + n, "'", 2);
    return out;
}

static bool is_media_type(const jinja_text *type, ggtok_chat_like like) {
    static const char *const types[] = {"image_url", "input_audio", "input_video", "video_url",
                                        "image",     "audio",       "audio_url",   "video"};
    size_t n = like == GGTOK_LIKE_TRANSFORMERS ? 8 : 4;
    for (size_t i = 0; i < n; i++) {
        if (chat_is(type, types[i])) return true;
    }
    return false;
}

bool ggtok_chat_is_media(jinja_value part, ggtok_chat_like like, jinja_arena *mem) {
    return is_media_type(chat_text(ggtok_chat_get(mem, part, "type")), like);
}

/* Whether the caller wants a part of a content to be dropped. */
static bool is_skipped(const chat_run *r, jinja_value part) {
    const chat_options *options = r->job->options;
    if (!options->skips_unknown && !options->skips_media) return false;
    const jinja_text *type = chat_text(ggtok_chat_get(r->call.mem, part, "type"));
    return is_media_type(type, GGTOK_LIKE_LLAMA_SERVER) ? options->skips_media
                                                        : !chat_is(type, "text");
}

/* Returns the text of a part of a content, or the marker that represents it. */
static jinja_text *read_part(chat_run *r, jinja_value v, const chat_path *at, uint32_t message,
                             chat_message *out) {
    const chat_call *c = &r->call;
    check_dict(c, v, at);
    jinja_value type = ggtok_chat_get(c->mem, v, "type");
    if (is_media_type(chat_text(type), GGTOK_LIKE_LLAMA_SERVER)) {
        out->n_media++;
        return ggtok_jinja_text_of(c->mem, r->job->options->marker, r->job->options->n_marker,
                                   JINJA_FROM_TEMPLATE | JINJA_MEDIA);
    }
    if (!chat_is(chat_text(type), "text")) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST, "unsupported content[].type",
                          "%s: the type of a part must be 'text' or one of 'image_url', "
                          "'input_audio', 'input_video', 'video_url', not %s",
                          ggtok_chat_path(c, at), shown(c, type));
    }
    jinja_text *text = string_of(c, ggtok_chat_get(c->mem, v, "text"), at, "text");
    return from_message(r, text, message, CHAT_CONTENT);
}

static void read_content(chat_run *r, jinja_value v, const chat_path *parent, uint32_t message,
                         chat_message *out) {
    const chat_call *c = &r->call;
    const chat_path at = {parent, "content", 0};
    if (v.type == JINJA_STRING) {
        out->content = from_message(r, v.as.text, message, CHAT_CONTENT);
    } else if (jinja_is_array(v)) {
        if (!v.as.list->n) return;
        out->parts = ggtok_jinja_list_new(c->mem, v.as.list->n);
        for (uint32_t i = 0; i < v.as.list->n; i++) {
            const chat_path part = {&at, NULL, i};
            jinja_charge(c->mem, 1);
            if (is_skipped(r, v.as.list->data[i])) continue;
            jinja_text *text = read_part(r, v.as.list->data[i], &part, message, out);
            ggtok_jinja_list_push(c->mem, out->parts, jinja_of_text(text));
        }
    } else if (v.type != JINJA_NONE) {
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE, "Failed to parse messages: ",
                          "%s must be %s, a list of parts or %s, not %s", ggtok_chat_path(c, &at),
                          ggtok_chat_word(c, CHAT_A_STRING), ggtok_chat_word(c, CHAT_NULL),
                          ggtok_chat_type_name(c, v));
    }
}

static jinja_value read_call(chat_run *r, jinja_value v, const chat_path *at) {
    const chat_call *c = &r->call;
    jinja_arena *mem = c->mem;
    check_dict(c, v, at);
    jinja_value type = ggtok_chat_get(mem, v, "type");
    if (!chat_is(chat_text(type), "function")) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE, "Failed to parse messages: ",
                          "%s: the type of a call must be 'function', not %s",
                          ggtok_chat_path(c, at), shown(c, type));
    }
    const chat_path in_function = {at, "function", 0};
    jinja_value function = ggtok_chat_get(mem, v, "function");
    check_dict(c, function, &in_function);
    jinja_text *name = string_of(c, ggtok_chat_get(mem, function, "name"), &in_function, "name");
    jinja_value arguments = ggtok_chat_get(mem, function, "arguments");
    if (arguments.type == JINJA_ABSENT) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE,
                          "Failed to parse messages: ", "%s has no 'arguments'",
                          ggtok_chat_path(c, &in_function));
    }
    jinja_value id = ggtok_chat_get(mem, v, "id");
    if (id.type != JINJA_ABSENT) string_of(c, id, at, "id");
    jinja_dict *inner = ggtok_jinja_dict_new(mem, 2), *call = ggtok_jinja_dict_new(mem, 3);
    ggtok_jinja_dict_add(mem, inner, r->names[CHAT_NAME], jinja_of_text(name));
    ggtok_jinja_dict_add(mem, inner, r->names[CHAT_ARGUMENTS], arguments);
    ggtok_jinja_dict_add(mem, call, r->names[CHAT_TYPE], chat_own_value(mem, "function"));
    ggtok_jinja_dict_add(mem, call, r->names[CHAT_FUNCTION], jinja_of_dict(inner));
    if (id.type == JINJA_STRING && id.as.text->n)
        ggtok_jinja_dict_add(mem, call, r->names[CHAT_ID], id);
    return jinja_of_dict(call);
}

/* llama-server uses the values of an object, and treats anything else as a single call. */
static jinja_value as_array(chat_run *r, jinja_value calls) {
    jinja_arena *mem = r->call.mem;
    if (r->call.language != CHAT_LLAMA_SERVER || jinja_is_array(calls)) return calls;
    jinja_list *list = ggtok_jinja_list_new(mem, 1);
    if (calls.type == JINJA_DICT) {
        for (uint32_t i = 0; i < calls.as.dict->n; i++)
            ggtok_jinja_list_push(mem, list, calls.as.dict->entries[i].value);
    } else {
        ggtok_jinja_list_push(mem, list, calls);
    }
    return jinja_of_list(list);
}

static jinja_list *read_calls(chat_run *r, jinja_value v, const chat_path *parent,
                              uint32_t message) {
    const chat_call *c = &r->call;
    const chat_path at = {parent, "tool_calls", 0};
    if (v.type == JINJA_ABSENT || v.type == JINJA_NONE) return NULL;
    v = as_array(r, v);
    if (v.type == JINJA_DICT && !v.as.dict->n) return NULL;
    if (!jinja_is_array(v)) {
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE, NULL, "%s must be %s, not %s",
                          ggtok_chat_path(c, &at), ggtok_chat_word(c, CHAT_AN_ARRAY),
                          ggtok_chat_type_name(c, v));
    }
    if (!v.as.list->n) return NULL;
    ggtok_chat_label(r, v, ggtok_chat_origin_label(r, message, r->names[CHAT_TOOL_CALLS].as.text));
    jinja_list *calls = ggtok_jinja_list_new(c->mem, v.as.list->n);
    for (uint32_t i = 0; i < v.as.list->n; i++) {
        const chat_path call = {&at, NULL, i};
        jinja_charge(c->mem, 1);
        ggtok_jinja_list_push(c->mem, calls, read_call(r, v.as.list->data[i], &call));
    }
    return calls;
}

void ggtok_chat_read_message(chat_run *r, jinja_value v, uint32_t index, chat_message *out) {
    const chat_call *c = &r->call;
    const chat_path messages = {NULL, "messages", 0}, at = {&messages, NULL, index};
    *out = (chat_message){0};
    check_dict(c, v, &at);
    const fields f = fields_of(v.as.dict);
    if (f.role.type == JINJA_ABSENT) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE, "Failed to parse messages: ", "%s has no 'role'",
                          ggtok_chat_path(c, &at));
    }
    out->role = string_of(c, f.role, &at, "role");
    bool is_own = ggtok_chat_is_own_role(out->role);
    if (is_own)
        out->role->label = JINJA_FROM_TEMPLATE;
    else
        from_message(r, out->role, index, CHAT_ROLE);
    bool by_assistant = chat_is(out->role, "assistant");
    if (f.content.type == JINJA_ABSENT && (!by_assistant || f.calls.type == JINJA_ABSENT)) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST,
                          by_assistant
                              ? "Assistant message must contain either 'content' or 'tool_calls'!"
                              : "All non-assistant messages must contain 'content'",
                          "%s has no %s", ggtok_chat_path(c, &at),
                          by_assistant ? "'content' or 'tool_calls'" : "'content'");
    }
    if (f.content.type != JINJA_ABSENT) read_content(r, f.content, &at, index, out);
    out->calls = read_calls(r, f.calls, &at, index);
    out->reasoning = read_text(r, f.reasoning, &at, index, CHAT_REASONING);
    out->name = read_text(r, f.name, &at, index, CHAT_NAME);
    out->call_id = read_text(r, f.call_id, &at, index, CHAT_CALL_ID);
    bool plain = v.as.dict->n == 2 && f.content.type == JINJA_STRING && is_own &&
                 v.as.dict->entries[0].value.as.text == out->role;
    out->plain = plain ? v.as.dict : NULL;
}

void ggtok_chat_check_message(chat_run *r, jinja_value v) {
    const chat_call *c = &r->call;
    jinja_value content = ggtok_chat_get(c->mem, v, "content");
    if (content.type == JINJA_ABSENT) {
        bool by_assistant = chat_is(chat_text(ggtok_chat_get(c->mem, v, "role")), "assistant");
        if (!by_assistant)
            ggtok_chat_refuse(c, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST, NULL,
                              "All non-assistant messages must contain 'content'");
        if (ggtok_chat_get(c->mem, v, "tool_calls").type == JINJA_ABSENT)
            ggtok_chat_refuse(c, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST, NULL,
                              "Assistant message must contain either 'content' or 'tool_calls'!");
        return;
    }
    if (content.type == JINJA_NONE || content.type == JINJA_STRING) return;
    if (!jinja_is_array(content))
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST, NULL,
                          "Expected 'content' to be a string or an array");
    jinja_charge(c->mem, content.as.list->n);
    for (uint32_t i = 0; i < content.as.list->n; i++) {
        const jinja_text *type =
            chat_text(ggtok_chat_get(c->mem, content.as.list->data[i], "type"));
        if (!chat_is(type, "text") && !is_media_type(type, GGTOK_LIKE_LLAMA_SERVER) &&
            !is_skipped(r, content.as.list->data[i]))
            ggtok_chat_refuse(c, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST, NULL,
                              "unsupported content[].type");
    }
}

/* ---- writing ---- */

/* Returns a list of one part of type `text`. */
static jinja_list *text_part(chat_run *r, jinja_list *list, jinja_value text) {
    jinja_arena *mem = r->call.mem;
    jinja_dict *part = ggtok_jinja_dict_new(mem, 2);
    ggtok_jinja_dict_add(mem, part, r->names[CHAT_TYPE], chat_own_value(mem, "text"));
    ggtok_jinja_dict_add(mem, part, r->names[CHAT_TEXT], text);
    if (!list) list = ggtok_jinja_list_new(mem, 1);
    ggtok_jinja_list_push(mem, list, jinja_of_dict(part));
    return list;
}

static jinja_value written_content(chat_run *r, const chat_message *m) {
    jinja_arena *mem = r->call.mem;
    const chat_caps *caps = &r->p->caps;
    jinja_text *text = m->content;
    if (m->parts && !m->n_media && caps->typed_content) {
        jinja_list *list = ggtok_jinja_list_new(mem, m->parts->n);
        for (uint32_t i = 0; i < m->parts->n; i++) text_part(r, list, m->parts->data[i]);
        return jinja_of_list(list);
    }
    /* The server joins all parts if any isn't text. */
    if (m->parts) text = ggtok_chat_join_parts(mem, m->parts, "\n", true);
    if (!text) text = ggtok_jinja_text_of(mem, "", 0, 0);
    if (caps->typed_content && !caps->string_content)
        return jinja_of_list(text_part(r, NULL, jinja_of_text(text)));
    return jinja_of_text(text);
}

/* Returns the value of a call's arguments, which are JSON text. */
static jinja_value parse_arguments(chat_run *r, const jinja_text *text, const chat_path *at) {
    const chat_call *c = &r->call;
    jinja_value v;
    jinja_error error;
    if (!ggtok_jinja_read_if_json(c->mem, (const char *)text->data, text->n, text->label,
                                  JINJA_LLAMA_CPP, &v, &error)) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE, NULL, "%s: %s", ggtok_chat_path(c, at),
                          error.message);
    }
    enum { LEVELS_ABOVE = 6 }; /* request, messages, message, calls, call, function */
    ggtok_chat_check_depth(c, v, at, LEVELS_ABOVE);
    return v;
}

static jinja_list *written_calls(chat_run *r, const chat_message *m, uint32_t index) {
    jinja_arena *mem = r->call.mem;
    const chat_path messages = {NULL, "messages", 0}, message = {&messages, NULL, index},
                    calls = {&message, "tool_calls", 0};
    for (uint32_t i = 0; i < m->calls->n; i++) {
        const chat_path call = {&calls, NULL, i}, function = {&call, "function", 0},
                        at = {&function, "arguments", 0};
        jinja_dict *inner = m->calls->data[i].as.dict->entries[1].value.as.dict;
        jinja_value *arguments = &inner->entries[1].value;
        if (r->p->caps.object_arguments) {
            if (arguments->type == JINJA_STRING)
                *arguments = parse_arguments(r, arguments->as.text, &at);
        } else if (arguments->type != JINJA_STRING) {
            *arguments = jinja_of_text(ggtok_jinja_write_json(mem, *arguments));
        }
    }
    return m->calls;
}

jinja_dict *ggtok_chat_write_message(chat_run *r, const chat_message *m, uint32_t index) {
    jinja_arena *mem = r->call.mem;
    const chat_policy *p = r->p;
    bool renamed = p->renames_developers && chat_is(m->role, "developer");
    bool only_typed = p->caps.typed_content && !p->caps.string_content;
    if (m->plain && !renamed && !only_typed && !p->trims) return m->plain;
    jinja_dict *new = ggtok_jinja_dict_new(mem, 4);
    ggtok_jinja_dict_add(mem, new, r->names[CHAT_ROLE],
                         renamed ? chat_own_value(mem, "system") : jinja_of_text(m->role));
    ggtok_jinja_dict_add(mem, new, r->names[CHAT_CONTENT], written_content(r, m));
    const struct {
        jinja_text *text;
        int name;
    } texts[] = {{m->reasoning, CHAT_REASONING}, {m->name, CHAT_NAME}, {m->call_id, CHAT_CALL_ID}};
    for (size_t i = 0; i < 3; i++) {
        if (texts[i].text && texts[i].text->n)
            ggtok_jinja_dict_add(mem, new, r->names[texts[i].name], jinja_of_text(texts[i].text));
    }
    if (m->calls)
        ggtok_jinja_dict_add(mem, new, r->names[CHAT_TOOL_CALLS],
                             jinja_of_list(written_calls(r, m, index)));
    return new;
}

/* ---- tools ---- */

static jinja_value read_tool(chat_run *r, jinja_value v, const chat_path *at) {
    const chat_call *c = &r->call;
    jinja_arena *mem = c->mem;
    if (v.type != JINJA_DICT) {
        ggtok_chat_refuse(
            c, CHAT_WRONG_TYPE, "Failed to parse tools: ", "%s must be %s, a JSON schema, not %s",
            ggtok_chat_path(c, at), ggtok_chat_word(c, CHAT_AN_OBJECT), ggtok_chat_type_name(c, v));
    }
    jinja_value type = ggtok_chat_get(mem, v, "type");
    if (!chat_is(chat_text(type), "function")) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE, "Failed to parse tools: ",
                          "%s: the type of a tool must be 'function', not %s",
                          ggtok_chat_path(c, at), shown(c, type));
    }
    const chat_path in_function = {at, "function", 0};
    jinja_value function = ggtok_chat_get(mem, v, "function");
    if (function.type != JINJA_DICT) {
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE, "Failed to parse tools: ", "%s must be %s, not %s",
                          ggtok_chat_path(c, &in_function), ggtok_chat_word(c, CHAT_AN_OBJECT),
                          ggtok_chat_type_name(c, function));
    }
    jinja_value texts[2] = {ggtok_chat_get(mem, function, "name"),
                            ggtok_chat_get(mem, function, "description")};
    if (texts[1].type == JINJA_ABSENT) texts[1] = jinja_of_text(ggtok_chat_own(mem, ""));
    for (size_t i = 0; i < 2; i++) {
        if (texts[i].type == JINJA_STRING) continue;
        const chat_path field = {&in_function, i ? "description" : "name", 0};
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE, "Failed to parse tools: ", "%s must be %s, not %s",
                          ggtok_chat_path(c, &field), ggtok_chat_word(c, CHAT_A_STRING),
                          ggtok_chat_type_name(c, texts[i]));
    }
    jinja_value parameters = ggtok_chat_get(mem, function, "parameters");
    if (parameters.type == JINJA_ABSENT) parameters = jinja_of_dict(ggtok_jinja_dict_new(mem, 0));
    jinja_dict *inner = ggtok_jinja_dict_new(mem, 3), *tool = ggtok_jinja_dict_new(mem, 2);
    ggtok_jinja_dict_add(mem, inner, r->names[CHAT_NAME], texts[0]);
    ggtok_jinja_dict_add(mem, inner, r->names[CHAT_DESCRIPTION], texts[1]);
    ggtok_jinja_dict_add(mem, inner, r->names[CHAT_PARAMETERS], parameters);
    ggtok_jinja_dict_add(mem, tool, r->names[CHAT_TYPE], chat_own_value(mem, "function"));
    ggtok_jinja_dict_add(mem, tool, r->names[CHAT_FUNCTION], jinja_of_dict(inner));
    return jinja_of_dict(tool);
}

jinja_list *ggtok_chat_read_tools(chat_run *r, jinja_value tools) {
    const chat_call *c = &r->call;
    const chat_path at = {NULL, "tools", 0};
    if (tools.type == JINJA_ABSENT || tools.type == JINJA_NONE) return NULL;
    if (!jinja_is_array(tools)) {
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE,
                          "Failed to parse tools: ", "%s must be %s of mappings, not %s",
                          ggtok_chat_path(c, &at), ggtok_chat_word(c, CHAT_AN_ARRAY),
                          ggtok_chat_type_name(c, tools));
    }
    if (!tools.as.list->n) return NULL;
    jinja_list *list = ggtok_jinja_list_new(c->mem, tools.as.list->n);
    for (uint32_t i = 0; i < tools.as.list->n; i++) {
        const chat_path tool = {&at, NULL, i};
        jinja_charge(c->mem, 1);
        ggtok_jinja_list_push(c->mem, list, read_tool(r, tools.as.list->data[i], &tool));
    }
    return list;
}
