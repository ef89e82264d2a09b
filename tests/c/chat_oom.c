/*
 * Fails each allocation in turn, alone or with all later ones, while a chat is compiled and requests
 * of each kind become prompts and ids. Each call must either succeed or report that memory ran out,
 * nothing may leak, and the chat must remain usable. Compiled with GGTOK_TEST_ALLOC.
 *
 *     chat_oom FILE.gguf
 */
#include <stdio.h>
#include <string.h>

#include "chat/policy.h"
#include "failing_alloc.h"

enum { MAX_SPARES = 4 }; /* chunks that cext/jinja/core/arena.c keeps */

static size_t at;
static bool on;

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("allocation %zu%s: %s does not hold (line %d)\n", at, \
                   on ? " and all after it" : "", #what, __LINE__); \
            return false; \
        } \
    } while (0)

static const char source[] =
    "{% if tools %}{{ tools | tojson }}{% endif %}{{ documents }}{% for m in messages %}"
    "<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
    "{{ p.text }}{% endfor %}{% endif %}{% for c in m.tool_calls %}<call>{{ c.function.name }}"
    "{{ c.function.arguments }}</call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking %}<think>"
    "{% endif %}{% endif %}{{ strftime_now('%Y') }}";

#define USER "{\"role\":\"user\",\"content\":\"Hi there\"}"
#define TOOL \
    "{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":" \
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\"}}}}}"
#define CALL \
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"1\",\"type\":" \
    "\"function\"," \
    "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": [1.5, null]}\"}}]}," \
    "{\"role\":\"tool\",\"content\":\"2\",\"tool_call_id\":\"1\"}"

static const struct {
    chat_api api;
    const char *json;
} requests[] = {
    {CHAT_COMPLETIONS, "{\"messages\":[" USER "]}"},
    {CHAT_COMPLETIONS, "{\"messages\":[{\"role\":\"developer\",\"content\":\"x\"}," USER "],"
                       "\"add_generation_prompt\":false}"},
    {CHAT_COMPLETIONS, "{\"messages\":[" USER "," CALL "],\"tools\":[" TOOL "]}"},
    {CHAT_COMPLETIONS, "{\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":\"The\","
                       "\"reasoning_content\":\"so\"}],\"continue_final_message\":true}"},
    {CHAT_COMPLETIONS, "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                       "\"text\":\"What is <__media__>\"},{\"type\":\"image_url\",\"image_url\":"
                       "{\"url\":\"data:image/png;base64,AAAA\"}}]}]}"},
    {CHAT_COMPLETIONS,
     "{\"messages\":[" USER "],\"chat_template_kwargs\":{\"enable_thinking\":true,"
     "\"documents\":[{\"title\":\"t\",\"text\":\"x\"}]}}"},
    {CHAT_COMPLETIONS, "{\"messages\":[{\"role\":7}]}"},
    {CHAT_COMPLETIONS, "{\"messages\":[" USER},
    {CHAT_ANTHROPIC,
     "{\"system\":\"s\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
     "\"text\",\"text\":\"Hi\"}]}],\"tools\":[{\"name\":\"f\",\"input_schema\":{}}],"
     "\"max_tokens\":9}"},
    {CHAT_RESPONSES,
     "{\"instructions\":\"s\",\"input\":[{\"role\":\"user\",\"content\":\"Hi\"},"
     "{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":"
     "\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":\"2\"}]}"},
};
enum { N_REQUESTS = sizeof requests / sizeof *requests };

static const ggtok_time now = {2026, 3, 7, 15, 4, 5, 0, "UTC", 0, 0};

/* What a request gives. */
typedef struct answer {
    ggtok_status rendered, encoded;
    char text[4096];
    int32_t ids[2048];
    size_t n, n_ids;
} answer;

static bool is_error(ggtok_status s, const ggtok_error *err) {
    return err->status == s && err->message[0];
}

static bool ask_public(const ggtok_chat *chat, ggtok_context *ctx, const char *json, answer *a) {
    const ggtok_chat_call call = {.now = &now};
    ggtok_prompt *prompt;
    ggtok_ids ids;
    ggtok_error err;
    a->n = a->n_ids = 0;
    a->rendered = ggtok_chat_render(chat, json, strlen(json), &call, &prompt, &err);
    CHECK(a->rendered ? is_error(a->rendered, &err) && !prompt : prompt != NULL);
    if (prompt) {
        ggtok_bytes text = ggtok_prompt_text(prompt);
        CHECK(text.n <= sizeof a->text);
        memcpy(a->text, text.data, a->n = text.n);
    }
    ggtok_prompt_free(prompt);
    a->encoded = ggtok_chat_encode(ctx, chat, json, strlen(json), &call, &ids, &err);
    CHECK(!a->encoded || is_error(a->encoded, &err));
    if (!a->encoded) {
        CHECK(ids.n <= sizeof a->ids / sizeof *a->ids);
        memcpy(a->ids, ids.data, (a->n_ids = ids.n) * sizeof *ids.data);
    }
    return true;
}

static bool ask_body(const ggtok_chat *chat, chat_api api, const char *json, answer *a) {
    const chat_options options = {.language = CHAT_LLAMA_SERVER,
                                  .api = api,
                                  .marker = GGTOK_MEDIA_MARKER,
                                  .n_marker = strlen(GGTOK_MEDIA_MARKER),
                                  .now = {.year = 2026, .month = 3, .day = 7}};
    chat_job job;
    a->n = a->n_ids = 0;
    a->encoded = GGTOK_OK;
    a->rendered = ggtok_chat_begin(&job, &options, strlen(json));
    job.chat = chat;
    if (!a->rendered)
        a->rendered = ggtok_chat_read_json(&job, GGTOK_LIKE_LLAMA_SERVER, json, strlen(json));
    if (!a->rendered) a->rendered = ggtok_chat_render_job(&job);
    bool fine = !a->rendered || (job.error.status == a->rendered && job.error.message[0]);
    if (!a->rendered) memcpy(a->text, job.prompt->data, a->n = job.prompt->n);
    ggtok_chat_end(&job);
    CHECK(fine);
    return true;
}

static bool ask(const ggtok_chat *chat, ggtok_context *ctx, size_t i, answer *a) {
    if (requests[i].api == CHAT_COMPLETIONS) return ask_public(chat, ctx, requests[i].json, a);
    return ask_body(chat, requests[i].api, requests[i].json, a);
}

static bool is_same(const answer *a, const answer *b) {
    bool text = a->rendered == b->rendered && a->n == b->n && !memcmp(a->text, b->text, a->n);
    bool ids = a->encoded == b->encoded && a->n_ids == b->n_ids &&
               !memcmp(a->ids, b->ids, a->n_ids * sizeof *a->ids);
    return text && ids;
}

/* Fails the at-th allocation of a request. Sets *done if it has fewer. */
static bool fail_request(const ggtok_tokenizer *tok, const ggtok_chat *chat, size_t i,
                         const answer *want, bool *done) {
    static answer got;
    ggtok_context *ctx;
    CHECK(!ggtok_context_new(tok, &ctx, NULL));
    start_failing(at, on);
    CHECK(ask(chat, ctx, i, &got));
    *done = !failed;
    start_failing(0, false);
    CHECK(got.rendered == want->rendered || (!*done && got.rendered == GGTOK_ERR_MEMORY));
    CHECK(got.encoded == want->encoded || (!*done && got.encoded == GGTOK_ERR_MEMORY));
    CHECK(!*done || is_same(&got, want));
    CHECK(ask(chat, ctx, i, &got) && is_same(&got, want));
    ggtok_context_free(ctx);
    return true;
}

/* Fails the at-th allocation of ggtok_chat_new. Sets *done if it has fewer. */
static bool fail_compiling(const ggtok_tokenizer *tok, const ggtok_chat_options *options,
                           bool *done) {
    ggtok_chat *chat;
    ggtok_error err;
    start_failing(at, on);
    ggtok_status s = ggtok_chat_new(tok, options, &chat, &err);
    *done = !failed;
    start_failing(0, false);
    CHECK(s ? s == GGTOK_ERR_MEMORY && !*done && is_error(s, &err) && !chat : chat != NULL);
    ggtok_chat_free(chat);
    return true;
}

static bool test_policy(const ggtok_tokenizer *tok, ggtok_chat_like like) {
    static answer want[N_REQUESTS];
    const ggtok_chat_options options = {
        .like = like, .template_source = source, .n_template = strlen(source), .now = &now};
    ggtok_chat *chat;
    ggtok_context *ctx;
    ggtok_error err;
    bool done = false;
    for (at = 1; !done; at++) CHECK(fail_compiling(tok, &options, &done));
    size_t n = at, n_right = 0;
    CHECK(!ggtok_chat_new(tok, &options, &chat, &err));
    for (size_t i = 0; i < N_REQUESTS; i++) {
        if (like == GGTOK_LIKE_TRANSFORMERS && requests[i].api != CHAT_COMPLETIONS) continue;
        CHECK(!ggtok_context_new(tok, &ctx, NULL));
        CHECK(ask(chat, ctx, i, &want[i]));
        ggtok_context_free(ctx);
        n_right += !want[i].rendered;
        done = false;
        for (at = 1; !done; at++) CHECK(fail_request(tok, chat, i, &want[i], &done));
        n += at;
    }
    ggtok_chat_free(chat);
    CHECK(n_right + 4 >= N_REQUESTS); /* most requests are accepted */
    printf("%s%s: %zu failures\n", like ? "transformers" : "llama-server", on ? ", all later" : "",
           n);
    return true;
}

static bool test_all(const char *file) {
    ggtok_tokenizer *tok;

    CHECK(!ggtok_load_file(file, NULL, &tok, NULL));
    for (int i = 0; i < 4; i++) {
        on = i & 1;
        CHECK(test_policy(tok, (ggtok_chat_like)(i / 2)));
    }
    ggtok_free(tok);
    CHECK(blocks_held() <= MAX_SPARES);
    return true;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    return !test_all(argv[1]);
}
