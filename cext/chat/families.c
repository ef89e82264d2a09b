/*
 * llama-server's special rules for families of templates.
 *
 * A row of `families` says how a family's messages are changed before rendering, how the prompt is
 * changed afterwards, and how the beginning of an answer is appended. The first row whose texts fit
 * the template's source is used. reasoning.c handles templates that fit no row.
 */
#include "chat/chat.h"
#include "index/stl_order.h"

/* Sets a field of a message. The names of fields count as data, as those in requests do. */
static void set_field(const chat_call *c, jinja_dict *dict, const char *name, jinja_value value) {
    jinja_text *key = ggtok_jinja_text_of(c->mem, name, strlen(name), 0);
    ggtok_jinja_dict_set(c->mem, dict, jinja_of_text(key), value);
}

static jinja_value get_field(const chat_call *c, jinja_value message, const char *name) {
    return ggtok_chat_get(c->mem, message, name);
}

static bool has_role(const chat_call *c, jinja_value message, const char *role) {
    return chat_is(chat_text(get_field(c, message, "role")), role);
}

/* Returns the message's tool calls, or NULL if it has none. */
static const jinja_list *calls_of(const chat_call *c, jinja_value message) {
    jinja_value calls = get_field(c, message, "tool_calls");
    return calls.type == JINJA_LIST && calls.as.list->n ? calls.as.list : NULL;
}

/* ---- messages ---- */

/* Adds each message's reasoning as `thinking`, which the template reads. */
static jinja_list *add_thinking(const chat_call *c, jinja_list *messages, const jinja_dict *given) {
    (void)given;
    JINJA_EACH(c->mem, i, messages->n) {
        jinja_value reasoning = get_field(c, messages->data[i], "reasoning_content");
        if (reasoning.type == JINJA_ABSENT) continue;
        set_field(c, messages->data[i].as.dict, "thinking", reasoning);
    }
    return messages;
}

/* Adds `thinking`, and drops the content of messages with reasoning and calls. */
static jinja_list *change_for_harmony(const chat_call *c, jinja_list *messages,
                                      const jinja_dict *given) {
    static const char *const content[] = {"content", NULL};
    add_thinking(c, messages, given);
    JINJA_EACH(c->mem, i, messages->n) {
        jinja_value *m = &messages->data[i];
        if (calls_of(c, *m) && get_field(c, *m, "thinking").type != JINJA_ABSENT)
            m->as.dict = ggtok_chat_copy_dict(c->mem, m->as.dict, content);
    }
    return messages;
}

/* Returns a part of a content, {"type": TYPE, TYPE: value}. */
static jinja_dict *new_part(const chat_call *c, const char *type, jinja_value value) {
    jinja_dict *part = ggtok_jinja_dict_new(c->mem, 2);
    set_field(c, part, "type", chat_own_value(c->mem, type));
    set_field(c, part, type, value);
    return part;
}

/* For Ministral: moves the reasoning of system and assistant messages into their contents, which
 * become lists of parts. */
static jinja_list *move_reasoning_to_content(const chat_call *c, jinja_list *messages,
                                             const jinja_dict *given) {
    static const char *const reasoning[] = {"reasoning_content", NULL};
    (void)given;
    JINJA_EACH(c->mem, i, messages->n) {
        jinja_value m = messages->data[i];
        if (!has_role(c, m, "system") && !has_role(c, m, "assistant")) continue;
        jinja_list *parts = ggtok_jinja_list_new(c->mem, 2);
        jinja_value thought = get_field(c, m, "reasoning_content");
        if (thought.type != JINJA_ABSENT) {
            jinja_dict *part = new_part(c, "thinking", thought);
            ggtok_jinja_list_push(c->mem, parts, jinja_of_dict(part));
        }
        jinja_value content = get_field(c, m, "content");
        if (content.type == JINJA_STRING) {
            jinja_dict *part = new_part(c, "text", content);
            ggtok_jinja_list_push(c->mem, parts, jinja_of_dict(part));
        } else if (content.type == JINJA_LIST) {
            JINJA_EACH(c->mem, k, content.as.list->n)
            ggtok_jinja_list_push(c->mem, parts, content.as.list->data[k]);
        }
        jinja_dict *changed = ggtok_chat_copy_dict(c->mem, m.as.dict, reasoning);
        set_field(c, changed, "content", jinja_of_list(parts));
        messages->data[i] = jinja_of_dict(changed);
    }
    return messages;
}

/* Gives all assistant messages a reasoning. */
static jinja_list *add_empty_reasoning(const chat_call *c, jinja_list *messages,
                                       const jinja_dict *given) {
    (void)given;
    JINJA_EACH(c->mem, i, messages->n) {
        jinja_value m = messages->data[i];
        if (has_role(c, m, "assistant") &&
            get_field(c, m, "reasoning_content").type == JINJA_ABSENT)
            set_field(c, m.as.dict, "reasoning_content", chat_own_value(c->mem, ""));
    }
    return messages;
}

/* For TranslateGemma: converts a user's content to one part that names the languages. */
static jinja_list *add_languages(const chat_call *c, jinja_list *messages,
                                 const jinja_dict *given) {
    static const char *const codes[] = {"source_lang_code", "target_lang_code"};
    JINJA_EACH(c->mem, i, messages->n) {
        jinja_value m = messages->data[i];
        if (!has_role(c, m, "user")) continue;
        jinja_value content = get_field(c, m, "content");
        if (content.type == JINJA_LIST) {
            const jinja_list *parts = content.as.list;
            jinja_list *texts = ggtok_jinja_list_new(c->mem, parts->n);
            JINJA_EACH(c->mem, k, parts->n)
            ggtok_jinja_list_push(c->mem, texts, get_field(c, parts->data[k], "text"));
            content = jinja_of_text(ggtok_chat_join_parts(c->mem, texts, "\n", true));
        }
        jinja_dict *part = new_part(c, "text", content);
        for (size_t k = 0; k < 2; k++) {
            const jinja_value *code =
                ggtok_jinja_dict_get(c->mem, given, codes[k], strlen(codes[k]));
            jinja_text *usual = ggtok_jinja_text_of(c->mem, "en-GB", 5, 0);
            set_field(c, part, codes[k], code ? *code : jinja_of_text(usual));
        }
        jinja_list *parts = ggtok_jinja_list_new(c->mem, 1);
        ggtok_jinja_list_push(c->mem, parts, jinja_of_dict(part));
        set_field(c, m.as.dict, "content", jinja_of_list(parts));
    }
    return messages;
}

/* ---- the order of tool results ---- */

typedef struct result {
    jinja_value message;
    int64_t call; /* index of the call */
} result;

typedef struct results {
    jinja_arena *mem;
    const result *data;
} results;

/* Orders results by their calls, and results of the same call as they are in the messages. */
static bool is_before(void *user, int32_t x, int32_t y) {
    const results *r = user;
    jinja_charge(r->mem, 1);
    int64_t a = r->data[x].call, b = r->data[y].call;
    return a != b ? a < b : x < y;
}

/* Returns a dict from the ids of calls to their indices. */
static jinja_dict *index_calls(const chat_call *c, const jinja_list *calls) {
    jinja_dict *indices = ggtok_jinja_dict_new(c->mem, 0);
    JINJA_EACH(c->mem, i, calls->n) {
        jinja_value id = get_field(c, calls->data[i], "id");
        if (id.type == JINJA_STRING && id.as.text->n)
            ggtok_jinja_dict_set(c->mem, indices, id, jinja_int(i));
    }
    return indices;
}

/* Sorts the tool messages in messages[0..n) by the indices of their calls. */
static void sort_results(const chat_call *c, jinja_value *messages, uint32_t n,
                         const jinja_dict *indices) {
    result *found = jinja_alloc_n(c->mem, n, sizeof *found);
    int32_t *order = jinja_alloc_n(c->mem, n, sizeof *order);
    uint32_t n_found = 0;
    JINJA_EACH(c->mem, i, n) {
        if (!has_role(c, messages[i], "tool")) continue;
        jinja_value id = get_field(c, messages[i], "tool_call_id");
        const jinja_value *call =
            id.type == JINJA_STRING ? ggtok_jinja_dict_find(c->mem, indices, id) : NULL;
        found[n_found] = (result){messages[i], call ? call->as.i : 0};
        order[n_found] = (int32_t)n_found;
        n_found++;
    }
    results r = {c->mem, found};
    ggtok_stl_sort(order, n_found, is_before, &r);
    for (uint32_t i = 0, k = 0; k < n_found; i++) {
        if (has_role(c, messages[i], "tool")) messages[i] = found[order[k++]].message;
    }
}

/* For DeepSeek V4: sorts the tool results between two answers in the order of the calls. */
static jinja_list *sort_results_by_calls(const chat_call *c, jinja_list *messages,
                                         const jinja_dict *given) {
    const jinja_dict *indices = NULL;
    jinja_value *m = messages->data;
    (void)given;
    for (uint32_t i = 0; i < messages->n;) {
        jinja_charge(c->mem, 1);
        const jinja_list *calls = has_role(c, m[i], "assistant") ? calls_of(c, m[i]) : NULL;
        if (calls) indices = index_calls(c, calls);
        uint32_t begin = i;
        while (i < messages->n && (has_role(c, m[i], "user") || has_role(c, m[i], "tool"))) i++;
        if (indices && indices->n) sort_results(c, m + begin, i - begin, indices);
        if (i == begin) i++;
    }
    return messages;
}

/* ---- tool responses ---- */

/* Returns the label of the data in a text: of the first part that the template didn't write. */
static uint32_t label_of_data(const jinja_text *t) {
    for (size_t i = 0; i < jinja_text_count(t); i++) {
        uint32_t label = jinja_text_part_label(t, i) & ~(uint32_t)JINJA_JOINED;
        if (!(label & JINJA_FROM_TEMPLATE)) return label;
    }
    return 0;
}

/* Returns the response of a tool: the content of its message, parsed if it is JSON. */
static jinja_value new_response(const chat_call *c, jinja_value message, const jinja_list *calls,
                                uint32_t index) {
    jinja_value content = get_field(c, message, "content");
    if (content.type == JINJA_STRING) {
        const jinja_text *t = content.as.text;
        jinja_error not_json;
        ggtok_jinja_read_if_json(c->mem, (const char *)t->data, t->n, label_of_data(t),
                                 JINJA_LLAMA_CPP, &content, &not_json);
    }
    jinja_value name = jinja_absent();
    if (index < calls->n) name = get_field(c, get_field(c, calls->data[index], "function"), "name");
    if (name.type != JINJA_STRING || !name.as.text->n) name = get_field(c, message, "tool_call_id");
    if (name.type != JINJA_STRING) name = chat_own_value(c->mem, "");
    jinja_dict *response = ggtok_jinja_dict_new(c->mem, 2);
    set_field(c, response, "name", name);
    set_field(c, response, "response", content.type == JINJA_ABSENT ? jinja_none() : content);
    return jinja_of_dict(response);
}

static bool is_empty(jinja_value content) {
    return content.type == JINJA_STRING ? !content.as.text->n
                                        : content.type != JINJA_LIST || !content.as.list->n;
}

/* For older Gemma 4 templates: merges a message with tool calls, their results, and the next
 * answer into one message. */
static jinja_list *merge_results(const chat_call *c, jinja_list *messages,
                                 const jinja_dict *given) {
    jinja_list *changed = ggtok_jinja_list_new(c->mem, messages->n);
    (void)given;
    for (uint32_t i = 0; i < messages->n;) {
        jinja_value m = messages->data[i++];
        const jinja_list *calls = has_role(c, m, "assistant") ? calls_of(c, m) : NULL;
        jinja_charge(c->mem, 1);
        if (!calls) {
            ggtok_jinja_list_push(c->mem, changed, m);
            continue;
        }
        jinja_dict *merged = ggtok_jinja_dict_new(c->mem, 5);
        set_field(c, merged, "role", get_field(c, m, "role"));
        set_field(c, merged, "tool_calls", get_field(c, m, "tool_calls"));
        jinja_list *responses = ggtok_jinja_list_new(c->mem, 0);
        for (; i < messages->n && has_role(c, messages->data[i], "tool"); i++) {
            jinja_value response = new_response(c, messages->data[i], calls, responses->n);
            ggtok_jinja_list_push(c->mem, responses, response);
        }
        if (responses->n) set_field(c, merged, "tool_responses", jinja_of_list(responses));
        jinja_value answer = i < messages->n ? messages->data[i] : jinja_none();
        if (has_role(c, answer, "assistant") && !calls_of(c, answer)) {
            jinja_value content = get_field(c, answer, "content");
            if (!is_empty(content)) {
                set_field(c, merged, "content", content);
                i++;
            }
        }
        jinja_value reasoning = get_field(c, m, "reasoning_content");
        if (reasoning.type != JINJA_ABSENT) set_field(c, merged, "reasoning_content", reasoning);
        ggtok_jinja_list_push(c->mem, changed, jinja_of_dict(merged));
    }
    return changed;
}

/* ---- openings ---- */

#define BAR "\xEF\xBD\x9C" /* U+FF5C, a fullwidth vertical line */
#define DEEPSEEK "<" BAR "Assistant" BAR ">"
#define IM_ASSISTANT "<|im_start|>assistant\n"
#define GPT_OSS \
    {"<|start|>assistant<|channel|>analysis<|message|>", \
     "<|end|><|start|>assistant<|channel|>final<|message|>"}
#define GEMMA {"<|channel>thought\n", "<channel|>"}

static chat_opening open_k2_horizon(const chat_call *c, const chat_answer *answer) {
#define OPENING(tag) {"<|ifm|im_start|>assistant\n<" tag ">\n", "</" tag ">"}
    static const chat_opening high = OPENING("ifm|think"), medium = OPENING("ifm|think_fast"),
                              low = OPENING("ifm|think_faster");
#undef OPENING
    if (!answer->thinking &&
        ggtok_chat_contains(answer->source, strlen(answer->source), "enable_thinking"))
        return high;
    const jinja_value *effort = ggtok_jinja_dict_get(c->mem, answer->given, "reasoning_effort", 16);
    const jinja_text *text = effort ? chat_text(*effort) : NULL;
    return chat_is(text, "medium") ? medium : chat_is(text, "low") ? low : high;
}

static chat_opening open_deepseek_v4(const chat_call *c, const chat_answer *answer) {
    const jinja_text *reasoning = answer->message->reasoning;
    (void)c;
    if (reasoning && reasoning->n) return (chat_opening){DEEPSEEK "<think>", "</think>"};
    return (chat_opening){DEEPSEEK "</think>", ""};
}

/* ---- the table ---- */

/* A NULL-terminated list of texts. */
#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const chat_family families[] = {
    {"Ministral, Magistral", TEXTS("[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"),
     .absent = TEXTS("[CALL_ID]"), .opening = {"[THINK]", "[/THINK]"}, .reasons = true,
     .change_messages = move_reasoning_to_content},
    {"LLM-jp in harmony format", TEXTS("chat_format=llm-jp-harmony-v1"), .opening = GPT_OSS,
     .reasons = true, .change_messages = change_for_harmony, .last = "<|return|>",
     .replacement = "<|end|>"},
    {"gpt-oss", TEXTS("<|channel|>"), .opening = GPT_OSS, .reasons = true,
     .change_messages = change_for_harmony, .last = "<|return|>", .replacement = "<|end|>"},
    {"Muse Glimmer", TEXTS("<atem:function_calls>", "<|eom|>"),
     .opening = {"<|start|>assistant to=self<|message|>",
                 "<|eom|><|start|>assistant to=user<|message|>"},
     .reasons = true},
    {"Functionary 3.2", TEXTS(">>>all", ">>>${recipient}"),
     .opening = {"<|start_header_id|>assistant<|end_header_id|>\n\n>>>all\n", ""},
     .always_content = true},
    {"Kimi K2 Thinking", TEXTS("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
     .opening = {"<|im_assistant|>assistant<|im_middle|><think>", "</think>"}, .reasons = true},
    {"Kimi K3", TEXTS("<|open|>", "<|close|>", "<|end_of_msg|>"),
     .opening = {"<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>",
                 "<|close|>think<|sep|><|open|>response<|sep|>"},
     .reasons = true},
    {"K2 Horizon", TEXTS("<|ifm|im_start|>", "<ifm|tool_calls>"), .opening_of = open_k2_horizon,
     .reasons = true, .change_messages = add_empty_reasoning,
     .reads = TEXTS("reasoning_effort", "tool_call_format")},
    {"Ling 3.0", TEXTS("<role>ASSISTANT</role>", "<arg_key>"),
     .opening = {"<role>ASSISTANT</role>\n<think>", "</think>"}, .reasons = true},
    {"Cohere2 MoE", TEXTS("<|START_TEXT|>", "<|START_ACTION|>"),
     .opening = {"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>",
                 "<|END_THINKING|><|START_TEXT|>"},
     .reasons = true},
    {"LFM2", TEXTS("<|tool_list_start|>", "<|tool_list_end|>"),
     .opening = {IM_ASSISTANT "<think>", "</think>"}, .reasons = true,
     .change_messages = add_thinking},
    {"LFM2.5", TEXTS("List of tools: ["), .absent = TEXTS("<|tool_list_start|>"),
     .opening = {IM_ASSISTANT "<think>", "</think>"}, .reasons = true,
     .change_messages = add_thinking},
    {"GigaChat 3", TEXTS("<|role_sep|>", "<|message_sep|>"), .absent = TEXTS("<|function_call|>"),
     .opening = {"assistant<|role_sep|>\n", ""}, .always_content = true},
    {"MiniMax M3", TEXTS("]<]minimax[>[", "<tool_call>", "<invoke name="),
     .opening = {"<mm:think>", "</mm:think>"}, .reasons = true, .after_prompt = true},
    /* The block of tool calls has a different name in V3.2 and in V4. */
    {"DeepSeek V3.2", TEXTS("dsml_token", "DSML", "function_calls"),
     .opening = {DEEPSEEK "<think>", "</think>"}, .reasons = true},
    {"DeepSeek V4", TEXTS("dsml_token", "DSML", "tool_calls"), .opening_of = open_deepseek_v4,
     .reasons = true, .change_messages = sort_results_by_calls,
     .schema_variable = "response_format"},
    {"Gemma 4", TEXTS("'<|tool_call>call:'", "{#- OpenAI Chat Completions:"), .opening = GEMMA,
     .reasons = true, .turn = "<turn|>\n", .answer = "<|turn>model\n"},
    {"Gemma 4, older templates", TEXTS("'<|tool_call>call:'"), .opening = GEMMA, .reasons = true,
     .change_messages = merge_results, .turn = "<turn|>\n", .answer = "<|turn>model\n"},
    {"MiniCPM5", TEXTS("Tool usage guidelines:", "<function name=\"", "<param name=\""),
     .opening = {IM_ASSISTANT "<think>\n", "\n</think>\n\n"}, .reasons = true},
    {"TranslateGemma", TEXTS("[source_lang_code]", "[target_lang_code]"),
     .opening = {"<start_of_turn>model\n", ""}, .always_content = true,
     .change_messages = add_languages, .reads = TEXTS("source_lang_code", "target_lang_code")},
    {"Qwen3-Coder, Qwen3.5, Nemotron Nano 3, StepFun 3.5; thinking",
     TEXTS("<tool_call>", "<function=", "<parameter=", "<think>"),
     .absent = TEXTS("'<tool_call><function=' ~ tool_call.name ~ '>'"),
     .opening = {IM_ASSISTANT "<think>\n", "\n</think>\n\n"}, .reasons = true},
    {"Qwen3-Coder, Qwen3.5, Nemotron Nano 3, StepFun 3.5; not thinking",
     TEXTS("<tool_call>", "<function=", "<parameter="),
     .absent = TEXTS("'<tool_call><function=' ~ tool_call.name ~ '>'", "<think>"),
     .opening = {IM_ASSISTANT, ""}},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

bool ggtok_chat_fits(const char *source, size_t n, const char *const *present,
                     const char *const *absent) {
    for (; *present; present++) {
        if (!ggtok_chat_contains(source, n, *present)) return false;
    }
    for (; absent && *absent; absent++) {
        if (ggtok_chat_contains(source, n, *absent)) return false;
    }
    return true;
}

const chat_family *ggtok_chat_family_at(size_t i) {
    return i < N_FAMILIES ? &families[i] : NULL;
}

const chat_family *ggtok_chat_find_family(const char *source, size_t n) {
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const chat_family *family = &families[i];
        if (ggtok_chat_fits(source, n, family->present, family->absent)) return family;
    }
    return NULL;
}
