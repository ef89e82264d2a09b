/*
 * Finds out what a template supports, by rendering llama-server's test conversations: each shows
 * how the template uses the values that it gets. The capabilities decide how messages are written
 * for the template (messages.c).
 */
#include "chat/probe.h"

const chat_preserving ggtok_chat_preserving[CHAT_N_PRESERVING] = {
    {"preserve_thinking", true},
    {"clear_thinking", false},
    {"truncate_history_thinking", false},
    {"drop_thinking", false},
};
const char *const ggtok_chat_efforts[CHAT_N_EFFORTS] = {"reasoning_effort", "reasoning_strength"};

#define MARKER "STRING_MARKER"
#define REASONING "<REASONING_CONTENT_PLACEHOLDER>"
#define MESSAGE(role, content, more) "{\"role\":\"" role "\",\"content\":\"" content "\"" more "}"
#define USER MESSAGE("user", "User message", "")
#define REASONED(text) \
    MESSAGE("assistant", "Assistant message", ",\"reasoning_content\":\"" text "\"")

/* A conversation with the calls of one function. */
#define CALL(arguments, id) \
    "{\"id\":\"" id \
    "\",\"type\":\"function\",\"function\":{\"name\":\"tool1\",\"arguments\":" arguments "}}"
#define CALLING(calls) \
    "[" USER "," MESSAGE("assistant", "", ",\"tool_calls\":[" calls "]") "," MESSAGE( \
        "tool", "Tool response", \
        ",\"tool_call_id\":\"call00001\"") "," MESSAGE("assistant", \
                                                       "The tool response was 'tool response'", \
                                                       "") "," USER "]"
#define ONE_CALL(arguments) CALLING(CALL(arguments, "call00001"))
#define TWO_CALLS(arguments) CALLING(CALL(arguments, "call00001") "," CALL(arguments, "call00002"))
#define AS_OBJECT "{\"arg\":\"value\"}"
#define AS_TEXT "\"{\\\"arg\\\": \\\"value\\\"}\""

static const char tools[] =
    "[{\"name\":\"tool\",\"type\":\"function\",\"function\":{\"name\":\"tool1\","
    "\"description\":\"Tool description\",\"parameters\":{\"type\":\"object\",\"properties\":"
    "{\"arg\":{\"type\":\"string\",\"description\":\"Arg description\"}},"
    "\"required\":[\"arg\"]}}}]";

/* The variables of a test rendering. */
typedef struct test {
    const char *messages;
    bool tools, preserves, low_effort;
} test;

static void set_variables(jinja_env *env, const void *user) {
    const test *c = user;
    ggtok_chat_set_json(env, "messages", c->messages);
    ggtok_chat_set_json(env, "tools", c->tools ? tools : "[]");
    ggtok_chat_set_text(env, "bos_token", "");
    ggtok_chat_set_text(env, "eos_token", "");
    ggtok_chat_set_json(env, "add_generation_prompt", "true");
    if (c->preserves || c->low_effort) ggtok_chat_set_json(env, "enable_thinking", "true");
    for (size_t i = 0; c->preserves && i < CHAT_N_PRESERVING; i++) {
        const chat_preserving *v = &ggtok_chat_preserving[i];
        ggtok_chat_set_json(env, v->name, v->keeps ? "true" : "false");
    }
    for (size_t i = 0; c->low_effort && i < CHAT_N_EFFORTS; i++) {
        ggtok_chat_set_text(env, ggtok_chat_efforts[i], "low");
    }
}

typedef struct finder {
    chat_probe probe;
    chat_caps *caps;
    ggtok_status status; /* not GGTOK_OK: memory ran out, and the capabilities don't matter */
    jinja_error *err;
} finder;

/* Renders; returns whether the template succeeds. */
static bool renders(finder *f, const test *c) {
    if (!f->status) f->status = ggtok_chat_probe(&f->probe, set_variables, c, f->err);
    return f->probe.text;
}

static bool is_used(const finder *f, const char *path) {
    return ggtok_chat_notes_at(&f->probe, path);
}

static bool contains(const jinja_text *t, const char *s) {
    return ggtok_chat_contains((const char *)t->data, t->n, s);
}

static void find_content(finder *f) {
    const unsigned list = JINJA_NOTE_SELECTATTR | JINJA_NOTE_ARRAY_ACCESS;
    bool fine = renders(f, &(test){.messages = "[" MESSAGE("user", MARKER, "") "]"});
    unsigned notes = ggtok_chat_notes_at(&f->probe, "messages.0.content");
    f->caps->typed_content = notes & list;
    f->caps->string_content = fine && (!(notes & list) || contains(f->probe.text, MARKER));
    if (!(notes & JINJA_NOTE_IS_STRING)) return;
    fine = renders(f, &(test){.messages = "[{\"role\":\"user\",\"content\":[]}]"});
    notes = ggtok_chat_notes_at(&f->probe, "messages.0.content");
    if (fine && notes & list) f->caps->typed_content = true;
}

static void find_system(finder *f) {
    renders(f, &(test){.messages = "[" MESSAGE("system", "System message", "") "," USER "]"});
    f->caps->system_role = is_used(f, "messages.0.content");
}

/* Tests tools and calls, first with arguments as an object, then as text. */
static void find_tools(finder *f) {
    static const char name[] = "tools.0.function.name", calls[] = "messages.1.tool_calls";
    chat_caps *caps = f->caps;
    if (renders(f, &(test){.messages = ONE_CALL(AS_OBJECT), .tools = true})) {
        caps->tools = is_used(f, name);
        caps->tool_calls = is_used(f, calls);
        caps->object_arguments =
            caps->tool_calls && is_used(f, "messages.1.tool_calls.0.function.arguments.arg");
    }
    if (caps->object_arguments) return;
    bool fine = renders(f, &(test){.messages = ONE_CALL(AS_TEXT), .tools = true});
    /* A capability that the template lacks for arguments as an object stays false. */
    caps->tools = caps->tools && fine && is_used(f, name);
    caps->tool_calls = caps->tool_calls && fine && is_used(f, calls);
}

static void find_parallel(finder *f) {
    const char *calls = f->caps->object_arguments ? TWO_CALLS(AS_OBJECT) : TWO_CALLS(AS_TEXT);
    bool fine = renders(f, &(test){.messages = calls, .tools = true});
    f->caps->parallel_tool_calls = fine && is_used(f, "messages.1.tool_calls.1.function");
}

static void find_reasoning(finder *f) {
    static const char earlier[] =
        "[" USER "," REASONED(REASONING) "," USER "," REASONED("Reasoning content") "," USER "]";
    bool fine = renders(f, &(test){.messages = earlier, .preserves = true});
    f->caps->preserve_reasoning = fine && contains(f->probe.text, REASONING);
    renders(f, &(test){.messages = "[" USER "]", .low_effort = true});
    for (size_t i = 0; i < CHAT_N_EFFORTS; i++) {
        f->caps->reasoning_effort |= is_used(f, ggtok_chat_efforts[i]);
    }
}

ggtok_status ggtok_chat_find_caps(const jinja_template *t, const jinja_time *now, chat_caps *out,
                                  jinja_error *err) {
    finder f = {.probe = {.t = t, .now = now}, .caps = out, .err = err};
    *out = (chat_caps){.string_content = true, .tools = true, .tool_calls = true};
    find_content(&f);
    find_system(&f);
    find_tools(&f);
    find_parallel(&f);
    find_reasoning(&f);
    ggtok_chat_end_probe(&f.probe);
    return f.status;
}
