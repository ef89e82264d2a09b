/* Converts bodies of Anthropic's Messages API to bodies of OpenAI's chat API, as llama-server
 * does. */
#include "chat/fields.h"

#define BILLING "x-anthropic-billing-header:"
#define STAMP "cch="
enum { STAMP_LENGTH = 5 };

static jinja_builder new_builder(const chat_call *c) {
    jinja_builder b = ggtok_jinja_builder_new(c->mem, 0);
    b.merge = true;
    return b;
}

static void add_text(jinja_builder *b, const jinja_text *t) {
    if (t) ggtok_jinja_builder_text(b, t);
}

/* ---- system prompts ---- */

/* Returns where the stamp begins in the first line of Claude Code's system prompt, or 0. */
static size_t find_stamp(jinja_arena *mem, const jinja_text *t) {
    const size_t n_billing = sizeof BILLING - 1, n_stamp = sizeof STAMP - 1;
    if (t->n < n_billing || memcmp(t->data, BILLING, n_billing)) return 0;
    jinja_text *stamp = ggtok_jinja_text_of(mem, STAMP, n_stamp, 0);
    size_t at = ggtok_jinja_text_find(mem, t, stamp, n_billing);
    if (at == SIZE_MAX || t->n - at <= n_stamp + STAMP_LENGTH) return 0;
    size_t begin = at + n_stamp, end = begin + STAMP_LENGTH;
    for (size_t i = begin; i < end; i++) {
        if (t->data[i] >= 0x80) return 0;
    }
    return t->data[end] == ';' ? begin : 0;
}

/* Adds a system prompt (may be NULL) to `b`. The stamp, which differs from request to request, is
 * replaced with a constant. */
static void add_system(jinja_builder *b, const jinja_text *t) {
    size_t begin = t ? find_stamp(b->arena, t) : 0;
    if (!begin) {
        add_text(b, t);
        return;
    }
    ggtok_jinja_builder_cut(b, t, 0, begin);
    ggtok_jinja_builder_add(b, "fffff", STAMP_LENGTH, 0);
    ggtok_jinja_builder_cut(b, t, begin + STAMP_LENGTH, t->n);
}

static jinja_value convert_system(const chat_call *c, jinja_value system) {
    jinja_builder b = new_builder(c);
    add_system(&b, chat_text(system));
    if (system.type == JINJA_LIST) {
        JINJA_EACH(c->mem, i, system.as.list->n) {
            jinja_value block = system.as.list->data[i];
            if (has_type(c, block, "text")) add_system(&b, get_text(c, block, "text"));
        }
    }
    return jinja_of_text(ggtok_jinja_builder_end(&b));
}

/* ---- blocks ---- */

/* Adds a part {"type": "image_url"...} to `parts`, unless the block's source is unknown. */
static void add_image(const chat_call *c, jinja_list *parts, jinja_value block) {
    jinja_value source = get_field(c, block, "source");
    jinja_text *url;
    if (has_type(c, source, "base64")) {
        jinja_text *type = get_text(c, source, "media_type");
        jinja_builder b = new_builder(c);
        ggtok_jinja_builder_add(&b, "data:", 5, 0);
        add_text(&b, type ? type : ggtok_chat_own(c->mem, "image/jpeg"));
        ggtok_jinja_builder_add(&b, ";base64,", 8, 0);
        add_text(&b, get_text(c, source, "data"));
        url = ggtok_jinja_builder_end(&b);
    } else if (has_type(c, source, "url")) {
        url = get_text(c, source, "url");
    } else {
        return;
    }
    jinja_dict *part = new_object(c), *image = new_object(c);
    set_text(c, image, "url", url);
    set_constant(c, part, "type", "image_url");
    set_field(c, part, "image_url", jinja_of_dict(image));
    ggtok_jinja_list_push(c->mem, parts, jinja_of_dict(part));
}

static jinja_value convert_call(const chat_call *c, jinja_value block) {
    jinja_value arguments = get_field(c, block, "input");
    if (arguments.type == JINJA_ABSENT || arguments.type == JINJA_NONE)
        arguments = jinja_of_dict(new_object(c));
    /* The chat API would parse a string as JSON. */
    if (arguments.type == JINJA_STRING)
        arguments = jinja_of_text(ggtok_jinja_write_json(c->mem, arguments));
    jinja_dict *call = new_object(c), *function = new_object(c);
    set_text(c, function, "name", get_text(c, block, "name"));
    set_field(c, function, "arguments", arguments);
    set_text(c, call, "id", get_text(c, block, "id"));
    set_constant(c, call, "type", "function");
    set_field(c, call, "function", jinja_of_dict(function));
    return jinja_of_dict(call);
}

/* Converts the blocks of a tool's result to one text, or to parts if there are images. */
static jinja_value convert_result_content(const chat_call *c, const jinja_list *blocks) {
    jinja_list *parts = ggtok_jinja_list_new(c->mem, 0);
    jinja_builder b = new_builder(c);
    bool has_images = false;
    JINJA_EACH(c->mem, i, blocks->n) {
        jinja_value block = blocks->data[i];
        if (has_type(c, block, "text")) {
            jinja_dict *part = new_object(c);
            jinja_text *t = get_text(c, block, "text");
            add_text(&b, t);
            set_constant(c, part, "type", "text");
            set_text(c, part, "text", t);
            ggtok_jinja_list_push(c->mem, parts, jinja_of_dict(part));
        } else if (has_type(c, block, "image")) {
            has_images = true;
            add_image(c, parts, block);
        }
    }
    return has_images ? jinja_of_list(parts) : jinja_of_text(ggtok_jinja_builder_end(&b));
}

static jinja_value convert_result(const chat_call *c, jinja_value block) {
    jinja_value content = get_field(c, block, "content");
    jinja_dict *result = new_object(c);
    if (content.type == JINJA_LIST)
        content = convert_result_content(c, content.as.list);
    else if (content.type != JINJA_STRING)
        content = chat_own_value(c->mem, "");
    set_constant(c, result, "role", "tool");
    set_text(c, result, "tool_call_id", get_text(c, block, "tool_use_id"));
    set_field(c, result, "content", content);
    return jinja_of_dict(result);
}

/* ---- messages ---- */

/* Adds a message to `out`, and then the tool results in it as separate messages. */
static void convert_message(const chat_call *c, jinja_list *out, jinja_value message) {
    jinja_value given = get_field(c, message, "content");
    bool is_assistant = chat_is(get_text(c, message, "role"), "assistant");
    if (given.type != JINJA_LIST) {
        if (given.type != JINJA_ABSENT || !is_assistant)
            ggtok_jinja_list_push(c->mem, out, message);
        return;
    }
    jinja_list *content = ggtok_jinja_list_new(c->mem, 0), *calls = ggtok_jinja_list_new(c->mem, 0),
               *results = ggtok_jinja_list_new(c->mem, 0);
    jinja_builder reasoning = new_builder(c);
    JINJA_EACH(c->mem, i, given.as.list->n) {
        jinja_value block = given.as.list->data[i];
        if (has_type(c, block, "text"))
            ggtok_jinja_list_push(c->mem, content, block);
        else if (has_type(c, block, "thinking"))
            add_text(&reasoning, get_text(c, block, "thinking"));
        else if (has_type(c, block, "image"))
            add_image(c, content, block);
        else if (has_type(c, block, "tool_use"))
            ggtok_jinja_list_push(c->mem, calls, convert_call(c, block));
        else if (has_type(c, block, "tool_result"))
            ggtok_jinja_list_push(c->mem, results, convert_result(c, block));
    }
    if (content->n || calls->n || reasoning.n) {
        jinja_dict *new = new_object(c);
        set_text(c, new, "role", get_text(c, message, "role"));
        if (content->n)
            set_field(c, new, "content", jinja_of_list(content));
        else
            set_constant(c, new, "content", "");
        if (calls->n) set_field(c, new, "tool_calls", jinja_of_list(calls));
        if (reasoning.n)
            set_field(c, new, "reasoning_content",
                      jinja_of_text(ggtok_jinja_builder_end(&reasoning)));
        ggtok_jinja_list_push(c->mem, out, jinja_of_dict(new));
    }
    JINJA_EACH(c->mem, i, results->n) {
        ggtok_jinja_list_push(c->mem, out, results->data[i]);
    }
}

/* ---- tools ---- */

static jinja_value convert_tool(const chat_call *c, jinja_value given) {
    jinja_value schema = get_field(c, given, "input_schema");
    jinja_dict *tool = new_object(c), *function = new_object(c);
    if (schema.type == JINJA_ABSENT) schema = jinja_of_dict(new_object(c));
    set_text(c, function, "name", get_text(c, given, "name"));
    set_text(c, function, "description", get_text(c, given, "description"));
    set_field(c, function, "parameters", schema);
    set_constant(c, tool, "type", "function");
    set_field(c, tool, "function", jinja_of_dict(function));
    return jinja_of_dict(tool);
}

static void convert_tools(const chat_call *c, jinja_dict *chat, jinja_value body) {
    jinja_value given = get_field(c, body, "tools"), choice = get_field(c, body, "tool_choice");
    if (given.type == JINJA_LIST) {
        jinja_list *tools = ggtok_jinja_list_new(c->mem, given.as.list->n);
        JINJA_EACH(c->mem, i, given.as.list->n) {
            ggtok_jinja_list_push(c->mem, tools, convert_tool(c, given.as.list->data[i]));
        }
        set_field(c, chat, "tools", jinja_of_list(tools));
    }
    if (has_type(c, choice, "auto"))
        set_constant(c, chat, "tool_choice", "auto");
    else if (has_type(c, choice, "any") || has_type(c, choice, "tool"))
        set_constant(c, chat, "tool_choice", "required");
}

jinja_value ggtok_chat_from_anthropic(const chat_call *c, jinja_value body) {
    static const char *const kept[] = {"temperature", "top_p", "top_k", "stream",
                                       "chat_template_kwargs"};
    jinja_list *messages = ggtok_jinja_list_new(c->mem, 0);
    jinja_dict *chat = new_object(c);
    jinja_value system = get_field(c, body, "system"), given = get_field(c, body, "messages");
    if (system.type != JINJA_ABSENT && system.type != JINJA_NONE) {
        jinja_dict *message = new_object(c);
        set_constant(c, message, "role", "system");
        set_field(c, message, "content", convert_system(c, system));
        ggtok_jinja_list_push(c->mem, messages, jinja_of_dict(message));
    }
    if (given.type == JINJA_ABSENT)
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE, NULL, "'messages' is required");
    if (given.type == JINJA_LIST) {
        JINJA_EACH(c->mem, i, given.as.list->n) {
            convert_message(c, messages, given.as.list->data[i]);
        }
    }
    set_field(c, chat, "messages", jinja_of_list(messages));
    convert_tools(c, chat, body);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        jinja_value value = get_field(c, body, kept[i]);
        if (value.type != JINJA_ABSENT) set_field(c, chat, kept[i], value);
    }
    return jinja_of_dict(chat);
}
