/* Reads requests as llama-server does. null counts as missing, and values of an unexpected type are
 * ignored, except for a few that are refused. Checks are in the server's order. */
#include "chat/llama_request.h"

static jinja_value field(chat_run *r, const char *name) {
    return ggtok_chat_get(r->call.mem, r->job->body, name);
}

static bool is_missing(jinja_value v) {
    return v.type == JINJA_ABSENT || v.type == JINJA_NONE;
}

static jinja_value typed(chat_run *r, jinja_value dict, const char *name, jinja_type type) {
    jinja_value v = ggtok_chat_get(r->call.mem, dict, name);
    return v.type == type ? v : jinja_absent();
}

static void check_grammar(chat_run *r) {
    const jinja_text *grammar = chat_text(field(r, "grammar"));
    if (grammar && grammar->n && !is_missing(field(r, "json_schema")))
        ggtok_chat_refuse(&r->call, CHAT_WRONG_VALUE, "Cannot use both json_schema and grammar",
                          "json_schema and grammar can't be combined");
}

/* Returns response_format.type after a check. */
static const jinja_text *check_format(chat_run *r) {
    const jinja_text *type = chat_text(typed(r, field(r, "response_format"), "type", JINJA_STRING));
    if (!type || !type->n || chat_is(type, "text") || chat_is(type, "json_object") ||
        chat_is(type, "json_schema"))
        return type;
    if (r->call.language == CHAT_LLAMA_SERVER)
        ggtok_chat_refuse(
            &r->call, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST, NULL,
            "response_format type must be one of \"text\" or \"json_object\", but got: %.*s",
            JINJA_SHOWN(type, 200));
    ggtok_chat_refuse(&r->call, CHAT_WRONG_VALUE, NULL,
                      "response_format: the type must be 'text', 'json_object' or 'json_schema', "
                      "not '%.*s'",
                      JINJA_SHOWN(type, 80));
}

static bool is_empty(jinja_value v) {
    switch (v.type) {
    case JINJA_BOOL: return !v.as.truth;
    case JINJA_INT: return !v.as.i;
    case JINJA_FLOAT: return v.as.f == 0;
    case JINJA_STRING: return !v.as.text->n;
    case JINJA_LIST:
    case JINJA_TUPLE: return !v.as.list->n;
    case JINJA_DICT: return !v.as.dict->n;
    default: return is_missing(v);
    }
}

/* Returns the JSON schema that the request sets for the answer. */
static jinja_value schema_of(chat_run *r, const jinja_text *type) {
    jinja_arena *mem = r->call.mem;
    jinja_value format = field(r, "response_format"), schema = field(r, "json_schema");
    jinja_value empty = jinja_of_dict(ggtok_jinja_dict_new(mem, 1));
    if (chat_is(type, "json_object")) {
        bool has = ggtok_chat_get(mem, format, "schema").type != JINJA_ABSENT;
        if (has || is_empty(schema)) {
            schema = typed(r, format, "schema", JINJA_DICT);
            if (schema.type == JINJA_ABSENT) schema = empty;
        }
    } else if (chat_is(type, "json_schema")) {
        schema = typed(r, typed(r, format, "json_schema", JINJA_DICT), "schema", JINJA_DICT);
        if (schema.type == JINJA_ABSENT) schema = empty;
    }
    if (schema.type != JINJA_DICT) return jinja_absent();
    if (!schema.as.dict->n) {
        schema = empty;
        ggtok_jinja_dict_put(mem, schema.as.dict, "type",
                             jinja_of_text(ggtok_jinja_text_of(mem, "object", 6, 0)));
    }
    return schema;
}

/* Reads tool_choice; returns whether it is `none`. */
static bool choice_is_none(chat_run *r) {
    const jinja_text *choice = chat_text(field(r, "tool_choice"));
    if (!choice || chat_is(choice, "auto") || chat_is(choice, "required")) return false;
    if (chat_is(choice, "none")) return true;
    ggtok_chat_refuse(&r->call, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST, "Invalid tool_choice: ",
                      r->call.language == CHAT_LLAMA_SERVER
                          ? "%.*s"
                          : "tool_choice must be one of 'auto', 'none', 'required', not '%.*s'",
                      JINJA_SHOWN(choice, 200));
}

static continuation continuation_of(chat_run *r) {
    jinja_value final = field(r, "continue_final_message");
    if (is_missing(final)) return NOT_CONTINUED;
    if (final.type == JINJA_BOOL) return final.as.truth ? CONTINUES : NOT_CONTINUED;
    if (chat_is(chat_text(final), "content")) return IN_CONTENT;
    if (chat_is(chat_text(final), "reasoning_content")) return IN_REASONING;
    ggtok_chat_refuse(
        &r->call, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST,
        "Invalid continue_final_message: expected a boolean, \"content\" or \"reasoning_content\"",
        "continue_final_message must be %s, %s, 'content' or 'reasoning_content', not %s",
        ggtok_chat_word(&r->call, CHAT_TRUE), ggtok_chat_word(&r->call, CHAT_FALSE),
        ggtok_chat_type_name(&r->call, final));
}

/* Decides whether the last message is continued. */
static void read_end(chat_run *r, llama_request *q) {
    const chat_call *c = &r->call;
    jinja_value generation = field(r, "add_generation_prompt");
    q->generation = generation.type != JINJA_BOOL || generation.as.truth;
    q->continues = continuation_of(r);
    const chat_message *last = q->n_messages ? &q->messages[q->n_messages - 1] : NULL;
    bool by_assistant = last && chat_is(last->role, "assistant");
    if (q->continues && q->generation) {
        ggtok_chat_refuse(
            c, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST,
            "Cannot set both add_generation_prompt and continue_final_message to true.",
            "continue_final_message can't be combined with a generation prompt: %s",
            c->language == CHAT_PYTHON ? "pass add_generation_prompt=False"
                                       : "set add_generation_prompt to false");
    }
    if (!q->continues && by_assistant && !r->job->options->keeps_last) {
        if (q->n_messages > 1 && chat_is(last[-1].role, "assistant")) {
            ggtok_chat_refuse(c, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST,
                              "Cannot have 2 or more assistant messages at the end of the list.",
                              "messages: the last two are both from the assistant");
        }
        q->continues = CONTINUES;
    }
    if (q->continues) q->generation = false;
    if (q->continues && by_assistant && last->calls) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST,
                          "Cannot continue an assistant message that contains tool calls.",
                          "messages: the last one calls tools, so it can't be continued");
    }
}

static void check_reasoning_format(chat_run *r) {
    static const char *const formats[] = {"none", "auto", "deepseek", "deepseek-legacy"};
    const chat_call *c = &r->call;
    const chat_path at = {NULL, "reasoning_format", 0};
    jinja_value format = field(r, "reasoning_format");
    if (format.type == JINJA_ABSENT) return;
    if (format.type != JINJA_STRING) {
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE | CHAT_BAD_REQUEST, NULL, "%s must be %s, not %s",
                          ggtok_chat_path(c, &at), ggtok_chat_word(c, CHAT_A_STRING),
                          ggtok_chat_type_name(c, format));
    }
    for (size_t i = 0; i < 4; i++) {
        if (chat_is(format.as.text, formats[i])) return;
    }
    ggtok_chat_refuse(c, CHAT_WRONG_VALUE, "Unknown reasoning format: ",
                      c->language == CHAT_LLAMA_SERVER
                          ? "%.*s"
                          : "reasoning_format must be one of 'none', 'auto', 'deepseek', "
                            "'deepseek-legacy', not '%.*s'",
                      JINJA_SHOWN(format.as.text, 200));
}

/* Reads the variables, and whether the model thinks. */
static void read_variables(chat_run *r, llama_request *q) {
    jinja_arena *mem = r->call.mem;
    q->given = ggtok_chat_variables(r);
    jinja_value given = jinja_of_dict(q->given);
    jinja_value thinking = ggtok_chat_get(mem, given, "enable_thinking");
    if (thinking.type == JINJA_STRING) {
        const chat_path at = {NULL, "enable_thinking", 0};
        ggtok_chat_refuse(&r->call, CHAT_WRONG_TYPE | CHAT_BAD_REQUEST,
                          "invalid type for \"enable_thinking\" (expected boolean, got string)",
                          "%s must be %s, not %s", ggtok_chat_path(&r->call, &at),
                          r->call.language == CHAT_PYTHON ? "bool" : "a boolean",
                          ggtok_chat_type_name(&r->call, thinking));
    }
    q->thinking = thinking.type == JINJA_BOOL ? thinking.as.truth : r->p->thinks;
    jinja_value effort = field(r, "reasoning_effort");
    if (chat_is(chat_text(effort), "none")) {
        static const char *const dropped[] = {"reasoning_effort", NULL};
        q->thinking = false;
        q->given = ggtok_chat_copy_dict(mem, q->given, dropped);
    } else if (effort.type == JINJA_STRING && effort.as.text->n) {
        ggtok_jinja_dict_put(mem, q->given, "reasoning_effort", effort);
    }
}

static void check_family_variables(chat_run *r, const llama_request *q) {
    const chat_call *c = &r->call;
    const chat_family *family = r->p->family;
    for (size_t i = 0; family && family->reads && family->reads[i]; i++) {
        jinja_value v = ggtok_chat_get(c->mem, jinja_of_dict(q->given), family->reads[i]);
        if (v.type == JINJA_ABSENT || v.type == JINJA_STRING) continue;
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE, NULL, "%s must be %s for this template, not %s",
                          family->reads[i], ggtok_chat_word(c, CHAT_A_STRING),
                          ggtok_chat_type_name(c, v));
    }
}

static void read_messages(chat_run *r, llama_request *q) {
    const jinja_list *given = ggtok_chat_messages(r);
    q->n_messages = given->n;
    r->job->is_empty = !given->n;
    q->messages = jinja_alloc_n(r->call.mem, given->n + 1, sizeof *q->messages);
    jinja_charge(r->call.mem, given->n);
    for (uint32_t i = 0; i < given->n && r->call.language == CHAT_LLAMA_SERVER; i++) {
        ggtok_chat_check_message(r, given->data[i]);
    }
    for (uint32_t i = 0; i < given->n; i++) {
        ggtok_chat_read_message(r, given->data[i], i, &q->messages[i]);
        r->job->n_media += q->messages[i].n_media;
    }
}

void ggtok_chat_read_llama_request(chat_run *r, llama_request *q) {
    *q = (llama_request){.schema = jinja_absent()};
    check_grammar(r);
    const jinja_text *format = check_format(r);
    read_messages(r, q);
    q->tools = ggtok_chat_read_tools(r, field(r, "tools"));
    bool no_tools = choice_is_none(r);
    read_end(r, q);
    check_reasoning_format(r);
    if (q->tools && !no_tools && field(r, "grammar").type != JINJA_ABSENT) {
        ggtok_chat_refuse(&r->call, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST,
                          "Cannot use custom grammar constraints with tools.",
                          "tools and grammar can't be combined");
    }
    read_variables(r, q);
    check_family_variables(r, q);
    if (r->p->family && r->p->family->schema_variable) q->schema = schema_of(r, format);
}

bool ggtok_chat_has_content(const chat_message *m) {
    return (m->content && m->content->n) || m->parts || m->calls || m->reasoning || m->name ||
           m->call_id;
}

void ggtok_chat_check_logprobs(chat_run *r, const llama_request *q) {
    jinja_value wanted = field(r, "logprobs"), stream = field(r, "stream");
    if (r->call.language != CHAT_LLAMA_SERVER) return;
    if (wanted.type == JINJA_BOOL && wanted.as.truth) {
        if (q->tools && stream.type == JINJA_BOOL && stream.as.truth)
            ggtok_chat_refuse(&r->call, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST, NULL,
                              "logprobs is not supported with tools + stream");
    } else if (!is_missing(field(r, "top_logprobs"))) {
        ggtok_chat_refuse(&r->call, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST, NULL,
                          "top_logprobs requires logprobs to be set to true");
    }
}
