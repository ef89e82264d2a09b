/*
 * Makes prompts of requests in both policies. The input's bytes choose the template (one for each
 * family of cext/chat/families.c, with several bodies), the tokenizer, the API and the options of
 * the call, and then, step by step, the parts of a JSON request: messages of every shape, tools and
 * options. Some requests are damaged afterwards.
 */
#include "chat/policy.h"
#include "fuzz.h"

/* ---- templates ---- */

static const char *const bodies[] = {
    /* contents as strings, calls, reasoning, tools */
    "{%- if tools %}<|tools|>{{ tools | tojson }}{% endif %}"
    "{%- for m in messages %}<|im_start|>{{ m.role }}\n"
    "{%- if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n{% endif %}"
    "{{- m.content }}{% for c in m.tool_calls %}<call>{{ c.function.name }}"
    "{{ c.function.arguments | tojson }}{{ c.id }}</call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n"
    "{% endif %}{% endif %}",
    /* contents as lists, other variables */
    "{{ bos_token }}{% for m in messages %}[{{ m.role | upper }}]{% if m.content is string %}"
    "{{ m.content | trim }}{% else %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}"
    "{% else %}<{{ p.type }}>{% endif %}{% endfor %}{% endif %}{% if m.tool_calls is defined %}"
    "{{ m.tool_calls[0].function.arguments.items() | list }}{% endif %}{{ eos_token }}{% endfor %}"
    "{{ strftime_now('%d %b %Y %Z') }}{{ documents }}{{ x }}{{ preserve_thinking }}"
    "{{ reasoning_effort }}",
    /* refusals */
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{% generation %}<s>{{ m.content + '' "
    "}}"
    "{{ m['tool_call_id'] }}{{ m.name }}</s>{% endgeneration %}{% endfor %}",
    /* a message as text */
    "{% for m in messages %}{{ m | tojson }}{{ m.content }}{{ m }}{% endfor %}{{ date_string }}",
};
enum { N_BODIES = sizeof bodies / sizeof *bodies, N_TOKENIZERS = 4, MAX_FAMILIES = 64 };

/* Returns a body with a comment that makes it a template of the i-th family; i = 0: of none. */
static char *source_of(size_t family, const char *body) {
    const chat_family *row = family ? ggtok_chat_family_at(family - 1) : NULL;
    size_t n = strlen(body) + 8;
    for (size_t i = 0; row && row->present[i]; i++) n += strlen(row->present[i]) + 1;
    char *source = copy_of(NULL, n);
    strcpy(source, "{#");
    for (size_t i = 0; row && row->present[i]; i++) {
        strcat(source, row->present[i]);
        strcat(source, "\n");
    }
    return strcat(strcat(source, "#}"), body);
}

/* Returns a chat, or NULL if the program wouldn't accept its template. */
static const ggtok_chat *chat_at(size_t tokenizer, size_t family, size_t body,
                                 ggtok_chat_like like) {
    static struct {
        ggtok_chat *chat;
        bool made;
    } chats[N_TOKENIZERS][MAX_FAMILIES][N_BODIES][2], *c;
    static const ggtok_time now = {2026, 11, 28, 6, 30, 15, 0, "CET", 3600, 0};
    static size_t n_families;
    while (ggtok_chat_family_at(n_families)) n_families++;
    CHECK(n_families < MAX_FAMILIES);
    family %= n_families + 1;
    c = &chats[tokenizer][family][body][like];
    if (c->made) return c->chat;
    char *source = source_of(family, bodies[body]);
    const ggtok_chat_options options = {
        .like = like, .template_source = source, .n_template = strlen(source), .now = &now};
    ggtok_error err;
    ggtok_status s = ggtok_chat_new(pair_at(tokenizer)->tok, &options, &c->chat, &err);
    CHECK(!s || (s != GGTOK_ERR_MEMORY && err.status == s && err.message[0] && !c->chat));
    c->made = true;
    free(source);
    return c->chat;
}

/* ---- requests ---- */

typedef struct request { /* JSON being written, and the bytes that choose its parts */
    const uint8_t *p, *end;
    char data[1 << 16];
    size_t n;
} request;

static unsigned take(request *r) {
    return r->p < r->end ? *r->p++ : 0;
}

static void put(request *r, const char *s) {
    size_t n = strlen(s);
    if (n > sizeof r->data - r->n) n = 0; /* the request is cut; it is no longer JSON */
    memcpy(r->data + r->n, s, n);
    r->n += n;
}

#define PICK(r, words) put(r, words[take(r) % (sizeof words / sizeof *words)])

static void put_string(request *r) {
    static const char *const texts[] = {"\"\"",
                                        "\"Hi\"",
                                        "\" a \\n\"",
                                        "\"<|im_start|>\"",
                                        "\"<|im_end|>\\n\"",
                                        "\"<__media__>\"",
                                        "\"<think>a</think>b\"",
                                        "\"\xC3\xA9\\u00e9\\ud83d\\ude00\"",
                                        "\"{\\\"a\\\": [1, 2.50]}\"",
                                        "\"{\\\"a\\\": \"",
                                        "\"null\"",
                                        "\"\\u0000\\u001f\"",
                                        "\"<s></s>[INST]\"",
                                        "\"user\"",
                                        "\"auto\"",
                                        "\"none\"",
                                        "\"high\"",
                                        "\"data:image/png;base64,AAAA\""};
    unsigned which = take(r);
    if (which < 200) {
        put(r, texts[which % (sizeof texts / sizeof *texts)]);
        return;
    }
    put(r, "\"");
    for (unsigned n = which - 199; n && r->p < r->end; n--) {
        char c[2] = {(char)take(r), 0};
        put(r, c[0] ? c : "\\u0000"); /* quotes and other bytes damage the JSON at times */
    }
    put(r, "\"");
}

static void put_value(request *r, int depth) {
    static const char *const scalars[] = {"null",
                                          "true",
                                          "false",
                                          "0",
                                          "1",
                                          "-1",
                                          "2.5",
                                          "1e308",
                                          "9223372036854775808",
                                          "-9223372036854775809",
                                          "1e400",
                                          "123456789012345678901234567890",
                                          "[]",
                                          "{}",
                                          "\"\""};
    unsigned which = take(r) % 20;
    if (which < 15 || depth > 6) {
        put(r, scalars[which % 15]);
    } else if (which < 17) {
        put_string(r);
    } else if (which == 17) {
        put(r, "[");
        for (unsigned n = take(r) % 5, i = 0; i < n; i++) {
            if (i) put(r, ",");
            put_value(r, depth + 1);
        }
        put(r, "]");
    } else if (which == 18) {
        put(r, "{");
        for (unsigned n = take(r) % 5, i = 0; i < n; i++) {
            if (i) put(r, ",");
            put_string(r);
            put(r, ":");
            put_value(r, depth + 1);
        }
        put(r, "}");
    } else {
        unsigned n = take(r);
        for (unsigned i = 0; i < n; i++) put(r, "[");
        for (unsigned i = 0; i < n; i++) put(r, "]");
    }
}

typedef void put_field(request *r);

/* Writes a list of up to `most` items; at times, something else. */
static void put_list(request *r, unsigned most, put_field *item) {
    unsigned n = take(r) % (most + 2);
    if (n > most) {
        put_value(r, 0);
        return;
    }
    put(r, "[");
    for (unsigned i = 0; i < n; i++) {
        if (i) put(r, ",");
        item(r);
    }
    put(r, "]");
}

typedef struct field {
    const char *name;
    put_field *put; /* NULL: any value */
} field;

/* Writes an object with some of the fields, in the order of the input's bytes. */
static void put_object(request *r, const field *fields, size_t n_fields, unsigned most) {
    put(r, "{");
    for (unsigned n = take(r) % (most + 1), i = 0; i < n; i++) {
        unsigned which = take(r);
        const field *f = &fields[which % n_fields];
        put(r, i ? ",\"" : "\"");
        put(r, f->name);
        put(r, "\":");
        if (f->put && which < 240)
            f->put(r);
        else
            put_value(r, 0);
    }
    put(r, "}");
}
#define PUT_OBJECT(r, fields, most) put_object(r, fields, sizeof fields / sizeof *fields, most)

static void put_scalar(request *r) {
    put_value(r, 7);
}

static void put_part_type(request *r) {
    static const char *const types[] = {
        "\"text\"",         "\"image_url\"",        "\"input_audio\"", "\"video_url\"",
        "\"tool_use\"",     "\"tool_result\"",      "\"thinking\"",    "\"image\"",
        "\"input_text\"",   "\"output_text\"",      "\"input_image\"", "\"reasoning_text\"",
        "\"media_marker\"", "\"redacted_thinking\""};
    PICK(r, types);
}

static void put_content(request *r);

static void put_url(request *r) {
    static const field fields[] = {{"url", put_string},
                                   {"data", put_string},
                                   {"format", put_string},
                                   {"type", put_string},
                                   {"media_type", put_string}};
    if (take(r) % 2)
        put_string(r);
    else
        PUT_OBJECT(r, fields, 3);
}

static void put_part(request *r) {
    static const field fields[] = {{"type", put_part_type},  {"text", put_string},
                                   {"image_url", put_url},   {"input_audio", put_url},
                                   {"video_url", put_url},   {"source", put_url},
                                   {"input", NULL},          {"name", put_string},
                                   {"id", put_string},       {"tool_use_id", put_string},
                                   {"content", put_content}, {"thinking", put_string},
                                   {"cache_control", NULL}};
    unsigned which = take(r);
    if (which % 4 == 0) {
        put(r, "{\"type\":\"text\",\"text\":");
        put_string(r);
        put(r, "}");
    } else if (which % 4 == 1) {
        put(r, "{\"type\":\"image_url\",\"image_url\":{\"url\":");
        put_string(r);
        put(r, "}}");
    } else {
        PUT_OBJECT(r, fields, 4);
    }
}

static void put_content(request *r) {
    unsigned which = take(r) % 8;
    if (which < 4)
        put_string(r);
    else if (which == 4)
        put(r, "null");
    else
        put_list(r, 3, put_part);
}

static void put_schema(request *r) {
    static const char *const schemas[] = {
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]}",
        "{\"properties\":{\"b\":{\"type\":[\"integer\",\"null\"],\"enum\":[1,null]}}}", "{}",
        "true"};
    PICK(r, schemas);
}

static void put_arguments(request *r) {
    if (take(r) % 2)
        put_string(r);
    else
        put_value(r, 2);
}

static void put_function(request *r) {
    static const field fields[] = {{"name", put_string},
                                   {"arguments", put_arguments},
                                   {"description", put_string},
                                   {"parameters", put_schema},
                                   {"strict", put_scalar}};
    PUT_OBJECT(r, fields, 4);
}

static void put_tool(request *r) {
    static const field fields[] = {{"type", put_string},       {"function", put_function},
                                   {"name", put_string},       {"description", put_string},
                                   {"parameters", put_schema}, {"input_schema", put_schema},
                                   {"id", put_string},         {"index", put_scalar}};
    if (take(r) % 2) {
        PUT_OBJECT(r, fields, 5);
    } else {
        put(r, "{\"type\":\"function\",\"id\":\"call00001\",\"function\":{\"name\":\"f\","
               "\"arguments\":");
        put_arguments(r);
        put(r, ",\"parameters\":");
        put_schema(r);
        put(r, "}}");
    }
}

static void put_tools(request *r) {
    put_list(r, 3, put_tool);
}

static void put_role(request *r) {
    static const char *const roles[] = {"\"user\"", "\"assistant\"", "\"system\"",
                                        "\"tool\"", "\"developer\"", "\"function\"",
                                        "\"x\"",    "\"<|im_end|>\""};
    PICK(r, roles);
}

static void put_item_type(request *r) {
    static const char *const types[] = {"\"message\"", "\"function_call\"",
                                        "\"function_call_output\"", "\"reasoning\""};
    PICK(r, types);
}

static void put_parts(request *r) {
    put_list(r, 3, put_part);
}

static void put_message(request *r) {
    static const field fields[] = {{"role", put_role},        {"content", put_content},
                                   {"tool_calls", put_tools}, {"reasoning_content", put_string},
                                   {"name", put_string},      {"tool_call_id", put_string},
                                   {"thinking", put_string},  {"type", put_item_type},
                                   {"call_id", put_string},   {"arguments", put_arguments},
                                   {"output", put_content},   {"summary", put_parts},
                                   {"id", put_string},        {"prefix", put_scalar},
                                   {"weight", NULL}};
    unsigned which = take(r);
    if (which % 4 == 3) {
        PUT_OBJECT(r, fields, 6);
        return;
    }
    put(r, "{\"role\":");
    put_role(r);
    put(r, ",\"content\":");
    put_content(r);
    for (; which > 63; which -= 64) {
        const field *f = &fields[2 + take(r) % 5];
        put(r, ",\"");
        put(r, f->name);
        put(r, "\":");
        f->put(r);
    }
    put(r, "}");
}

static void put_messages(request *r) {
    put_list(r, 5, put_message);
}

static void put_input(request *r) {
    if (take(r) % 4)
        put_messages(r);
    else
        put_string(r);
}

static void put_variables(request *r) {
    static const field fields[] = {{"enable_thinking", put_scalar},
                                   {"x", NULL},
                                   {"reasoning_effort", put_string},
                                   {"preserve_thinking", put_scalar},
                                   {"messages", NULL},
                                   {"tools", NULL},
                                   {"bos_token", put_string},
                                   {"documents", NULL},
                                   {"date_string", put_string},
                                   {"strftime_now", NULL}};
    PUT_OBJECT(r, fields, 4);
}

static void put_format(request *r) {
    static const field fields[] = {
        {"type", put_string}, {"json_schema", put_function}, {"schema", put_schema}};
    PUT_OBJECT(r, fields, 3);
}

static void put_request(request *r) {
    static const field options[] = {{"tools", put_tools},
                                    {"add_generation_prompt", put_scalar},
                                    {"continue_final_message", put_scalar},
                                    {"chat_template_kwargs", put_variables},
                                    {"tool_choice", put_string},
                                    {"parallel_tool_calls", put_scalar},
                                    {"response_format", put_format},
                                    {"reasoning_format", put_string},
                                    {"reasoning_effort", put_string},
                                    {"enable_thinking", put_scalar},
                                    {"system", put_content},
                                    {"input", put_input},
                                    {"instructions", put_string},
                                    {"thinking", put_format},
                                    {"messages", put_messages},
                                    {"json_schema", put_schema},
                                    {"grammar", put_string},
                                    {"documents", NULL},
                                    {"functions", put_tools},
                                    {"stop", NULL},
                                    {"model", put_string},
                                    {"max_tokens", put_scalar},
                                    {"stream", put_scalar},
                                    {"reasoning", put_format},
                                    {"previous_response_id", put_string},
                                    {"chat_template", put_string}};
    unsigned n = take(r) % 8;
    put(r, "{\"messages\":");
    put_messages(r);
    if (n > 6) put(r, ",\"input\":"), put_input(r);
    for (unsigned i = 0; i < n; i++) {
        unsigned which = take(r);
        const field *f = &options[which % (sizeof options / sizeof *options)];
        put(r, ",\"");
        put(r, f->name);
        put(r, "\":");
        if (f->put && which < 208)
            f->put(r);
        else
            put_value(r, 0);
    }
    put(r, "}");
}

/* ---- checks ---- */

static void check_error(ggtok_status s, const ggtok_error *err) {
    CHECK(s != GGTOK_ERR_MEMORY && err->status == s && err->message[0]);
}

/* Checks that the origins are in order and have no gaps. */
static void check_origins(const ggtok_prompt *prompt) {
    size_t n, at = 0;
    const ggtok_origin *o = ggtok_prompt_origins(prompt, &n);
    for (size_t i = 0; i < n; i++) {
        CHECK(o[i].begin == at && o[i].end > at);
        CHECK((o[i].kind == GGTOK_FROM_MESSAGE) == (o[i].field.n != 0));
        at = o[i].end;
    }
    CHECK(at == ggtok_prompt_text(prompt).n);
}

/* Makes the prompt with the public functions, which must agree. */
static void check_public(const ggtok_chat *chat, ggtok_context *ctx, const char *json, size_t n,
                         const ggtok_chat_call *call) {
    ggtok_prompt *prompt;
    ggtok_ids ids;
    ggtok_error err;
    size_t count, n_media;
    ggtok_status s = ggtok_chat_render(chat, json, n, call, &prompt, &err);
    CHECK(!s == (prompt != NULL));
    if (s)
        check_error(s, &err);
    else
        check_origins(prompt);
    ggtok_status encoded = ggtok_chat_encode(ctx, chat, json, n, call, &ids, &err);
    CHECK(!s || encoded); /* encoding may refuse what rendering allows: untrusted control tokens */
    if (encoded) check_error(encoded, &err);
    ggtok_status counted = ggtok_chat_count(ctx, chat, json, n, call, &count, &n_media, &err);
    CHECK(counted == encoded);
    if (!counted) CHECK(count == ids.n && n_media == ggtok_prompt_n_media(prompt));
    ggtok_prompt_free(prompt);
}

/* Makes the prompt of another API's body. */
static void check_body(const ggtok_chat *chat, chat_api api, const char *json, size_t n,
                       const ggtok_chat_call *call) {
    const chat_options options = {.language = CHAT_LLAMA_SERVER,
                                  .api = api,
                                  .marker = "<__media__>",
                                  .n_marker = strlen("<__media__>"),
                                  .now = {.year = 2026, .month = 11, .day = 28},
                                  .keeps_last = call->no_prefill};
    chat_job job;
    ggtok_status s = ggtok_chat_begin(&job, &options, n);
    job.chat = chat;
    if (!s) s = ggtok_chat_read_json(&job, GGTOK_LIKE_LLAMA_SERVER, json, n);
    if (!s) s = ggtok_chat_render_job(&job);
    CHECK(s != GGTOK_ERR_MEMORY && (!s || (job.error.status == s && job.error.message[0])));
    ggtok_chat_end(&job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static request r;
    static const ggtok_time now = {2026, 3, 7, 15, 4, 5, 0, "UTC", 0, 0};
    r.p = data, r.end = data + size, r.n = 0;
    unsigned flags = take(&r), which = take(&r), family = take(&r);
    ggtok_chat_like like = flags & 1 ? GGTOK_LIKE_TRANSFORMERS : GGTOK_LIKE_LLAMA_SERVER;
    size_t tokenizer = which % N_TOKENIZERS, body = which / N_TOKENIZERS % N_BODIES;
    const ggtok_chat *chat = chat_at(tokenizer, family, body, like);
    const ggtok_chat_call call = {.now = &now,
                                  .trusted = flags & 2,
                                  .plain_user_defined = flags & 4,
                                  .no_prefill = flags & 8,
                                  .media_marker = flags & 16 ? "<|image|>" : NULL};
    if (!chat) return 0;
    put_request(&r);
    size_t n = r.n;
    if (flags & 32 && n) { /* damage the JSON: cut it or change a byte */
        size_t at = (take(&r) << 8 | take(&r)) % n;
        if (flags & 64)
            n = at;
        else
            r.data[at] = (char)take(&r);
    }
    char *json = copy_of((const uint8_t *)r.data, n);
    check_public(chat, pair_at(tokenizer)->ctx, json, n, &call);
    if (flags & 128 && like == GGTOK_LIKE_LLAMA_SERVER) {
        check_body(chat, which & 64 ? CHAT_ANTHROPIC : CHAT_RESPONSES, json, n, &call);
    }
    free(json);
    return 0;
}
