/* Converts bodies of OpenAI's Responses API to bodies of its chat API, as llama-server does. */
#include "chat/fields.h"

static _Noreturn void refuse(const chat_call *c, const char *says) {
    ggtok_chat_refuse(c, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST, NULL, "%s", says);
}

/* ---- parts of contents ---- */

/* Returns the value of a part's image_url for the chat API. */
static jinja_value convert_image(const chat_call *c, jinja_value part) {
    jinja_value url = get_field(c, part, "image_url");
    if (url.type == JINJA_ABSENT) refuse(c, "'image_url' is required");
    jinja_dict *image = new_object(c);
    set_field(c, image, "url", url);
    return jinja_of_dict(image);
}

/* Converts a part of an input message. */
static jinja_value convert_input(const chat_call *c, jinja_value part) {
    jinja_dict *new = new_object(c);
    if (has_type(c, part, "input_text")) {
        jinja_value text = get_field(c, part, "text");
        if (text.type == JINJA_ABSENT) refuse(c, "'Input text' requires 'text'");
        set_field(c, new, "text", text);
        set_constant(c, new, "type", "text");
    } else if (has_type(c, part, "input_image")) {
        set_field(c, new, "image_url", convert_image(c, part));
        set_constant(c, new, "type", "image_url");
    } else if (has_type(c, part, "input_file")) {
        refuse(c, "'input_file' is not supported by llamacpp at this moment");
    } else {
        refuse(c, "'type' must be one of 'input_text', 'input_image', or 'input_file'");
    }
    return jinja_of_dict(new);
}

/* Converts a part of an answer. */
static jinja_value convert_output(const chat_call *c, jinja_value part) {
    jinja_dict *new = new_object(c);
    if (has_type(c, part, "output_text") || has_type(c, part, "input_text")) {
        jinja_value text = get_field(c, part, "text");
        if (text.type != JINJA_STRING) refuse(c, "'Output text' requires 'text'");
        set_field(c, new, "text", text);
        set_constant(c, new, "type", "text");
    } else if (has_type(c, part, "refusal")) {
        jinja_value refusal = get_field(c, part, "refusal");
        if (refusal.type != JINJA_STRING) refuse(c, "'Refusal' requires 'refusal'");
        set_field(c, new, "refusal", refusal);
        set_constant(c, new, "type", "refusal");
    } else {
        refuse(c, "'type' must be one of 'output_text' or 'refusal'");
    }
    return jinja_of_dict(new);
}

/* Converts a part of a tool's output. */
static jinja_value convert_tool_output(const chat_call *c, jinja_value part) {
    if (get_field(c, part, "type").type == JINJA_ABSENT)
        refuse(c, "Output of tool call missing 'type' field");
    bool is_text = has_type(c, part, "input_text");
    if (!is_text && !has_type(c, part, "input_image"))
        refuse(c, "Output of tool call should be 'Input text' or 'Input image'");
    jinja_dict *new = ggtok_chat_copy_dict(c->mem, part.as.dict, NULL);
    set_constant(c, new, "type", is_text ? "text" : "image_url");
    if (!is_text) set_field(c, new, "image_url", convert_image(c, part));
    return jinja_of_dict(new);
}

/* Adds the converted parts of a content to `to`; a content that isn't a list has none. */
static void add_parts(const chat_call *c, jinja_value content,
                      jinja_value (*convert)(const chat_call *, jinja_value), jinja_list *to) {
    if (content.type != JINJA_LIST) return;
    JINJA_EACH(c->mem, i, content.as.list->n) {
        ggtok_jinja_list_push(c->mem, to, convert(c, content.as.list->data[i]));
    }
}

/* ---- items ---- */

/* Returns the last message if it is the assistant's, else NULL. */
static jinja_dict *last_answer(const chat_call *c, const jinja_list *messages) {
    if (!messages->n) return NULL;
    jinja_value last = messages->data[messages->n - 1];
    return chat_is(get_text(c, last, "role"), "assistant") ? last.as.dict : NULL;
}

static jinja_dict *add_message(const chat_call *c, jinja_list *messages, const char *role) {
    jinja_dict *message = new_object(c);
    set_constant(c, message, "role", role);
    ggtok_jinja_list_push(c->mem, messages, jinja_of_dict(message));
    return message;
}

/* Adds a message with an item's fields but no content. */
static jinja_dict *add_fields(const chat_call *c, jinja_list *messages, jinja_value item) {
    static const char *const dropped[] = {"type", "status", "content", NULL};
    jinja_dict *message = ggtok_chat_copy_dict(c->mem, item.as.dict, dropped);
    ggtok_jinja_list_push(c->mem, messages, jinja_of_dict(message));
    return message;
}

/* Returns a message's list with this name; a new list replaces any other value. */
static jinja_list *list_of(const chat_call *c, jinja_dict *message, const char *name) {
    const jinja_value *field = ggtok_jinja_dict_get(c->mem, message, name, strlen(name));
    if (field && field->type == JINJA_LIST) return field->as.list;
    jinja_list *list = ggtok_jinja_list_new(c->mem, 0);
    set_field(c, message, name, jinja_of_list(list));
    return list;
}

static void add_call(const chat_call *c, jinja_list *messages, jinja_value item) {
    jinja_dict *call = new_object(c), *function = new_object(c), *last = last_answer(c, messages);
    set_field(c, function, "arguments", get_field(c, item, "arguments"));
    set_field(c, function, "name", get_field(c, item, "name"));
    set_field(c, call, "function", jinja_of_dict(function));
    set_field(c, call, "id", get_field(c, item, "call_id"));
    set_constant(c, call, "type", "function");
    if (!last) last = add_message(c, messages, "assistant");
    ggtok_jinja_list_push(c->mem, list_of(c, last, "tool_calls"), jinja_of_dict(call));
}

static void add_result(const chat_call *c, jinja_list *messages, jinja_value item) {
    jinja_value output = get_field(c, item, "output");
    jinja_dict *message = add_message(c, messages, "tool");
    set_field(c, message, "tool_call_id", get_field(c, item, "call_id"));
    if (output.type == JINJA_STRING)
        set_field(c, message, "content", output);
    else
        add_parts(c, output, convert_tool_output, list_of(c, message, "content"));
}

static void add_reasoning(const chat_call *c, jinja_list *messages, jinja_value content) {
    jinja_dict *last = last_answer(c, messages);
    if (content.type != JINJA_LIST) refuse(c, "item['content'] is not an array");
    if (!content.as.list->n) refuse(c, "item['content'] is empty");
    jinja_value thought = get_field(c, content.as.list->data[0], "text");
    if (thought.type != JINJA_STRING) refuse(c, "item['content']['text'] is not a string");
    if (!last) {
        last = add_message(c, messages, "assistant");
        list_of(c, last, "content");
    }
    set_field(c, last, "reasoning_content", thought);
}

/* Returns an item's content; a string becomes a list of one part. */
static jinja_value content_of(const chat_call *c, jinja_value item) {
    jinja_value content = get_field(c, item, "content");
    if (content.type != JINJA_STRING) return content;
    jinja_dict *part = new_object(c);
    set_field(c, part, "text", content);
    set_constant(c, part, "type", "input_text");
    jinja_list *parts = ggtok_jinja_list_new(c->mem, 1);
    ggtok_jinja_list_push(c->mem, parts, jinja_of_dict(part));
    return jinja_of_list(parts);
}

/* Adds an item as a message, or to the preceding message of the assistant. */
static void add_item(const chat_call *c, jinja_list *messages, jinja_value item) {
    const jinja_text *role = get_text(c, item, "role");
    jinja_value content = content_of(c, item), output = get_field(c, item, "output");
    bool is_input = chat_is(role, "user") || chat_is(role, "system") || chat_is(role, "developer");
    if (is_input && content.type == JINJA_LIST) {
        jinja_dict *message = add_fields(c, messages, item);
        add_parts(c, content, convert_input, list_of(c, message, "content"));
    } else if (chat_is(role, "assistant") && has_type(c, item, "message")) {
        jinja_dict *last = last_answer(c, messages);
        if (!last) last = add_fields(c, messages, item);
        add_parts(c, content, convert_output, list_of(c, last, "content"));
    } else if (has_type(c, item, "function_call") && get_text(c, item, "arguments") &&
               get_text(c, item, "call_id") && get_text(c, item, "name")) {
        add_call(c, messages, item);
    } else if (has_type(c, item, "function_call_output") && get_text(c, item, "call_id") &&
               (output.type == JINJA_STRING || output.type == JINJA_LIST)) {
        add_result(c, messages, item);
    } else if (has_type(c, item, "reasoning") && get_field(c, item, "summary").type == JINJA_LIST) {
        add_reasoning(c, messages, content);
    } else {
        refuse(c, "Cannot determine type of 'item'");
    }
}

/* ---- bodies ---- */

/* Sets the chat's tools to those of the request that are functions. */
static void convert_tools(const chat_call *c, jinja_dict *chat, jinja_value given) {
    static const char *const type[] = {"type", NULL};
    if (given.type != JINJA_LIST) refuse(c, "'tools' must be an array of objects");
    jinja_list *tools = ggtok_jinja_list_new(c->mem, 0);
    JINJA_EACH(c->mem, i, given.as.list->n) {
        jinja_value item = given.as.list->data[i];
        if (!has_type(c, item, "function")) continue;
        jinja_dict *function = ggtok_chat_copy_dict(c->mem, item.as.dict, type);
        if (get_field(c, item, "strict").type == JINJA_ABSENT)
            set_field(c, function, "strict", jinja_bool(true));
        jinja_dict *tool = new_object(c);
        set_constant(c, tool, "type", "function");
        set_field(c, tool, "function", jinja_of_dict(function));
        ggtok_jinja_list_push(c->mem, tools, jinja_of_dict(tool));
    }
    if (tools->n) set_field(c, chat, "tools", jinja_of_list(tools));
}

jinja_value ggtok_chat_from_responses(const chat_call *c, jinja_value body) {
    static const char *const replaced[] = {"input",     "instructions",      "messages", "tools",
                                           "reasoning", "max_output_tokens", NULL};
    jinja_value given = get_field(c, body, "input");
    if (given.type == JINJA_ABSENT) refuse(c, "'input' is required");
    const jinja_text *previous = get_text(c, body, "previous_response_id");
    if (previous && previous->n) refuse(c, "llama.cpp does not support 'previous_response_id'.");
    jinja_dict *chat = ggtok_chat_copy_dict(c->mem, body.as.dict, replaced);
    jinja_list *messages = ggtok_jinja_list_new(c->mem, 0);
    jinja_value instructions = get_field(c, body, "instructions");
    if (instructions.type != JINJA_ABSENT) {
        jinja_dict *system = add_message(c, messages, "system");
        set_text(c, system, "content", chat_text(instructions));
    }
    if (given.type == JINJA_STRING) {
        set_field(c, add_message(c, messages, "user"), "content", given);
    } else if (given.type == JINJA_LIST) {
        JINJA_EACH(c->mem, i, given.as.list->n) {
            add_item(c, messages, given.as.list->data[i]);
        }
    } else {
        refuse(c, "'input' must be a string or array of objects");
    }
    set_field(c, chat, "messages", jinja_of_list(messages));
    jinja_value tools = get_field(c, body, "tools"), reasoning = get_field(c, body, "reasoning"),
                effort = get_field(c, reasoning, "effort"),
                limit = get_field(c, body, "max_output_tokens");
    if (tools.type != JINJA_ABSENT) convert_tools(c, chat, tools);
    if (limit.type != JINJA_ABSENT) set_field(c, chat, "max_tokens", limit);
    if (effort.type != JINJA_ABSENT) set_field(c, chat, "reasoning_effort", effort);
    return jinja_of_dict(chat);
}
