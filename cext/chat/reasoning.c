/*
 * Finds the tags around reasoning in a template's output by comparing renderings.
 *
 * llama-server does this for templates that belong to no family, and uses the tags to continue an
 * answer. It splits two renderings that differ in one thing into markers (<...>, [...]) and text;
 * the segments that they don't share contain the tags. In the same way, the server finds how a
 * template writes tool calls. If these look like JSON but aren't valid, the server doesn't start.
 */
#include "chat/probe.h"
#include "unicode/utf8.h"

/* ---- the test renderings ---- */

#define THOUGHT "REASON_PART I am thinking END_R"
#define FUNCTION "FFF_FIRST_FUN_F"
#define FIRST "AA_ARG_FST_AA"
#define SECOND "BB_ARG_SND_BB"
#define USER "{\"role\":\"user\",\"content\":\"U_USER_MSG Hello END_U\"}"
#define ASSISTANT(content, more) "{\"role\":\"assistant\",\"content\":" content more "}"
#define ANSWER "\"A_ASST_MSG I can help END_A\""
#define REASONING ",\"reasoning_content\":\"" THOUGHT "\""
#define CALLS(first, second) \
    ",\"tool_calls\":[{\"id\":\"call00001\",\"type\":\"function\",\"function\":{\"name\":" \
    "\"" FUNCTION "\",\"arguments\":{\"" FIRST "\":\"" first "\",\"" SECOND "\":\"" second \
    "\"}}}]"

static const char question[] = "[" USER "]";
static const char answered[] = "[" USER "," ASSISTANT(ANSWER, "") "]";
static const char reasoned[] = "[" USER "," ASSISTANT(ANSWER, REASONING) "]";
static const char called[] = "[" USER "," ASSISTANT("\"\"", CALLS("XXXX", "YYYY")) "]";
static const char reasoned_call[] =
    "[" USER "," ASSISTANT("null", REASONING CALLS("VVVV", "XXXX")) "]";

#define TOOL(name, description) \
    "{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"description\":\"" description \
    "\",\"parameters\":{\"type\":\"object\",\"properties\":{\"" FIRST \
    "\":{\"type\":\"string\",\"description\":\"First argument\"},\"" SECOND \
    "\":{\"type\":\"string\",\"description\":\"Second argument\"}},\"required\":[]}}}"
static const char tools[] =
    "[" TOOL(FUNCTION, "Test function foo") "," TOOL("SSS_SECOND_FUN_S", "Test function bar") "]";

/* Bytes of a rendering. */
typedef struct piece {
    const char *p;
    size_t n;
} piece;

typedef struct finder {
    jinja_arena *mem; /* for what is computed from the renderings; no limits */
    const jinja_template *t;
    const char *source;
    size_t n_source;
    const chat_caps *caps;
    const char *bos, *eos;
    const jinja_time *now;
    chat_probe probes[2]; /* the two renderings to compare */
    piece start, end;
    bool found;
    const char *bad_calls;
} finder;

/* The variables of a test rendering. */
typedef struct test {
    const char *messages;
    bool tools, generation, thinking;
} test;

typedef struct setup {
    const finder *f;
    const test *test;
} setup;

/* Turns the contents of messages into lists with one part. */
static void type_contents(jinja_arena *mem, const jinja_list *messages) {
    for (uint32_t i = 0; i < messages->n; i++) {
        jinja_value message = messages->data[i];
        jinja_value content = ggtok_chat_get(mem, message, "content");
        if (content.type != JINJA_STRING) continue;
        jinja_list *parts = ggtok_jinja_list_new(mem, 1);
        jinja_dict *part = ggtok_jinja_dict_new(mem, 2);
        ggtok_jinja_dict_put(mem, part, "type", chat_own_value(mem, "text"));
        ggtok_jinja_dict_put(mem, part, "text", content);
        ggtok_jinja_list_push(mem, parts, jinja_of_dict(part));
        ggtok_jinja_dict_put(mem, message.as.dict, "content", jinja_of_list(parts));
    }
}

static void set_variables(jinja_env *env, const void *user) {
    const setup *s = user;
    jinja_arena *mem = ggtok_jinja_env_arena(env);
    const char *json = s->test->messages;
    jinja_value messages = ggtok_jinja_read_json(mem, json, strlen(json), 0, JINJA_LLAMA_CPP);
    if (s->f->caps->typed_content && !s->f->caps->string_content)
        type_contents(mem, messages.as.list);
    ggtok_jinja_env_set(env, "messages", strlen("messages"), messages);
    ggtok_chat_set_text(env, "bos_token", s->f->bos);
    ggtok_chat_set_text(env, "eos_token", s->f->eos);
    ggtok_chat_set_json(env, "enable_thinking", s->test->thinking ? "true" : "false");
    if (s->test->tools) ggtok_chat_set_json(env, "tools", tools);
    if (s->test->generation) ggtok_chat_set_json(env, "add_generation_prompt", "true");
}

/* Reports that memory ran out elsewhere. */
static _Noreturn void fail_again(finder *f, const jinja_error *err) {
    f->mem->error->status = err->status;
    ggtok_jinja_fail(f->mem, "%s", err->message);
}

/* Renders a test; returns whether the template succeeds. */
static bool render(finder *f, int which, const test *test, piece *out) {
    chat_probe *probe = &f->probes[which];
    const setup s = {f, test};
    jinja_error err;
    probe->t = f->t;
    probe->now = f->now;
    if (ggtok_chat_probe(probe, set_variables, &s, &err)) fail_again(f, &err);
    if (!probe->text) return false;
    *out = (piece){(const char *)probe->text->data, probe->text->n};
    return true;
}

static bool render_both(finder *f, const test *first, const test *second, piece out[2]) {
    bool fine = render(f, 0, first, &out[0]);
    return render(f, 1, second, &out[1]) && fine;
}

/* ---- pieces ---- */

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Moves a position over white space. */
static size_t skip_space(piece t, size_t at) {
    while (at < t.n && is_space(t.p[at])) at++;
    return at;
}
static size_t skip_space_back(piece t, size_t at) {
    while (at && is_space(t.p[at - 1])) at--;
    return at;
}

static piece cut(piece t, size_t begin, size_t end) {
    return begin < end ? (piece){t.p + begin, end - begin} : (piece){"", 0};
}

static piece strip(piece t) {
    return cut(t, skip_space(t, 0), skip_space_back(t, t.n));
}

/* Returns the position of the first occurrence of a short text from `at` on, or SIZE_MAX. */
static size_t find_piece(piece t, piece needle, size_t at) {
    if (!needle.n) return at;
    for (; at < t.n && needle.n <= t.n - at; at++) {
        const char *p = memchr(t.p + at, needle.p[0], t.n - at - needle.n + 1);
        if (!p) break;
        at = (size_t)(p - t.p);
        if (!memcmp(p, needle.p, needle.n)) return at;
    }
    return SIZE_MAX;
}

/* Returns the position of the last occurrence of a short text that ends at or before `end`, or
 * SIZE_MAX. */
static size_t find_last(piece t, piece needle, size_t end) {
    for (size_t at = end; at >= needle.n; at--) {
        if (!memcmp(t.p + at - needle.n, needle.p, needle.n)) return at - needle.n;
        if (!at) break;
    }
    return SIZE_MAX;
}

static piece constant(const char *s) {
    return (piece){s, strlen(s)};
}

static bool is_equal(piece a, piece b) {
    return a.n == b.n && !memcmp(a.p, b.p, a.n);
}

static bool ends_with(piece t, piece end) {
    return t.n >= end.n && !memcmp(t.p + t.n - end.n, end.p, end.n);
}

/* Copies a piece of a rendering. */
static piece keep(finder *f, piece t) {
    char *p = jinja_alloc(f->mem, t.n + 1);
    if (t.n) memcpy(p, t.p, t.n);
    p[t.n] = 0;
    return (piece){p, t.n};
}

/* ---- differences ---- */

/* A text's segments: markers and the text between them. After an unclosed bracket, all is text.
 * Segment i is bytes [begin[i], begin[i + 1]). */
typedef struct segments {
    piece text;
    uint32_t *begin;
    size_t n;
} segments;

static char closing_of(char opening) {
    return opening == '<' ? '>' : opening == '[' ? ']' : 0;
}

static piece segment(const segments *s, size_t i) {
    return cut(s->text, s->begin[i], s->begin[i + 1]);
}

/* Whether a segment is a marker. Only unclosed text can also begin with an opening bracket. */
static bool is_marker(piece segment) {
    char closing = segment.n ? closing_of(segment.p[0]) : 0;
    return closing && segment.p[segment.n - 1] == closing;
}

static size_t next_opening(piece t, size_t at) {
    while (at < t.n && !closing_of(t.p[at])) at++;
    return at;
}

/* Splits a text; counts the segments if `out` is NULL. */
static size_t split(piece t, uint32_t *out) {
    size_t n = 0, at = 0;
    while (at < t.n) {
        if (out) out[n] = (uint32_t)at;
        n++;
        if (closing_of(t.p[at])) {
            const char *closed = memchr(t.p + at, closing_of(t.p[at]), t.n - at);
            if (!closed) break;
            at = (size_t)(closed - t.p) + 1;
        } else {
            at = next_opening(t, at);
        }
    }
    if (out) out[n] = (uint32_t)t.n;
    return n;
}

static segments segments_of(finder *f, piece t) {
    segments s = {.text = t, .n = split(t, NULL)};
    s.begin = jinja_alloc_n(f->mem, s.n + 1, sizeof *s.begin);
    split(t, s.begin);
    return s;
}

/* Returns the size of the common prefix or suffix, in whole characters. */
static size_t shared_prefix(piece a, piece b) {
    size_t k = 0;
    while (k < a.n && k < b.n && a.p[k] == b.p[k]) k++;
    while (k && ((k < a.n && utf8_continues((uint8_t)a.p[k])) ||
                 (k < b.n && utf8_continues((uint8_t)b.p[k]))))
        k--;
    return k;
}
static size_t shared_suffix(piece a, piece b) {
    size_t k = 0;
    while (k < a.n && k < b.n && a.p[a.n - 1 - k] == b.p[b.n - 1 - k]) k++;
    while (k && utf8_continues((uint8_t)a.p[a.n - k])) k--;
    return k;
}

/* Removes the common prefix and suffix of two texts: first whole segments from both ends, then
 * characters of text segments. The order of the steps is the server's, although odd in places,
 * because it decides what happens to segments that are equal at both ends. */
static void find_difference(finder *f, const piece in[2], piece out[2]) {
    const segments a = segments_of(f, in[0]), b = segments_of(f, in[1]);
    out[0] = in[0], out[1] = in[1];
    if (!a.n || !b.n) return;
    size_t i = 0, j = 0, m = a.n - 1, n = b.n - 1; /* the first and last remaining segments */
    bool a_used = false, b_used = false;           /* the last segment has been removed, too */
#define SAME(x, y) is_equal(segment(&a, x), segment(&b, y))
    while (i != m && j != n) {
        bool same_head = SAME(i, j);
        if (same_head) i++, j++;
        bool same_tail = SAME(m, n);
        if (same_tail) {
            a_used |= i == m, m -= i != m;
            b_used |= j == n, n -= j != n;
        }
        if (!same_head && !same_tail) break;
    }
    if (i == m && j != n) {
        if (SAME(i, n))
            n--, a_used = true;
        else if (SAME(i, j))
            j++, a_used = true;
    } else if (j == n && i != m) {
        if (SAME(m, j))
            m--, b_used = true;
        else if (SAME(i, j))
            i++, b_used = true;
    } else if (i == m && j == n && SAME(i, j) && is_marker(segment(&a, i))) {
        a_used = b_used = true;
    }
#undef SAME
    bool texts_at_head = !is_marker(segment(&a, i)) && !is_marker(segment(&b, j));
    bool texts_at_tail = !is_marker(segment(&a, m)) && !is_marker(segment(&b, n));
    out[0] = cut(in[0], a.begin[i], a.begin[a_used ? m : m + 1]);
    out[1] = cut(in[1], b.begin[j], b.begin[b_used ? n : n + 1]);
    if (texts_at_tail) {
        size_t k = shared_suffix(out[0], out[1]);
        out[0].n -= k, out[1].n -= k;
    }
    if (texts_at_head) {
        size_t k = shared_prefix(out[0], out[1]);
        out[0] = cut(out[0], k, out[0].n), out[1] = cut(out[1], k, out[1].n);
    }
    bool starts = in[0].n <= in[1].n && !memcmp(in[0].p, in[1].p, in[0].n);
    if (!out[0].n && out[1].n && starts) out[1] = cut(in[1], in[0].n, in[1].n);
}

/* Finds the last two segments, or the first three, that aren't blank. Returns their number. */
static size_t last_segments(finder *f, piece t, piece out[2]) {
    const segments s = segments_of(f, t);
    size_t n = 0;
    for (size_t i = s.n; i-- && n < 2;) {
        if (strip(segment(&s, i)).n) out[n++] = segment(&s, i);
    }
    return n;
}
static size_t first_segments(finder *f, piece t, piece out[3]) {
    const segments s = segments_of(f, t);
    size_t n = 0;
    for (size_t i = 0; i < s.n && n < 3; i++) {
        if (strip(segment(&s, i)).n) out[n++] = segment(&s, i);
    }
    return n;
}

/* ---- the tags ---- */

/* Returns the start of the marker that ends at `end`, or SIZE_MAX if there is none. */
static size_t marker_before(piece t, size_t end) {
    char closing = end ? t.p[end - 1] : 0, opening = closing == '>' ? '<' : '[';
    if (closing != '>' && closing != ']') return SIZE_MAX;
    size_t begin = end - 1, found = SIZE_MAX;
    for (; begin && t.p[begin - 1] != closing; begin--) {
        if (t.p[begin - 1] == opening) found = begin - 1;
    }
    return found;
}

/* Returns the end of the marker that starts at `at`, or SIZE_MAX if there is none. */
static size_t marker_after(piece t, size_t at) {
    char closing = at < t.n ? closing_of(t.p[at]) : 0;
    const char *closed = closing ? memchr(t.p + at, closing, t.n - at) : NULL;
    return closed ? (size_t)(closed - t.p) + 1 : SIZE_MAX;
}

/* Sets the tags to the first markers around reasoning from which only white space separates them.
 * With `with_space`, the second includes the white space before it. Returns whether there are such
 * markers. */
static bool find_wrapped(finder *f, piece t, bool with_space) {
    size_t first = t.n,
           last[2] = {find_last(t, constant(">"), t.n), find_last(t, constant("]"), t.n)};
    piece start = {"", 0}, end = {"", 0};
    bool found = false;
    for (size_t at = find_piece(t, constant(THOUGHT), 0); at != SIZE_MAX;
         at = find_piece(t, constant(THOUGHT), at + 1)) {
        size_t stop = at + strlen(THOUGHT);
        size_t begin = marker_before(t, skip_space_back(t, at)), after = skip_space(t, stop);
        char opening = after < t.n ? t.p[after] : 0;
        if (begin >= first || !closing_of(opening)) continue;
        size_t closed = last[opening == '['];
        if (closed == SIZE_MAX || closed < after) continue; /* don't search the rest each time */
        start = cut(t, begin, at);
        end = cut(t, with_space ? stop : after, skip_space(t, marker_after(t, after)));
        first = begin;
        found = true;
    }
    if (found) f->start = keep(f, start), f->end = keep(f, end);
    return found;
}

/* Returns the marker after the reasoning with the white space after it; empty if there is none. */
static piece marker_after_thought(piece t) {
    size_t at = find_piece(t, constant(THOUGHT), 0);
    if (at == SIZE_MAX) return (piece){"", 0};
    size_t begin = skip_space(t, at + strlen(THOUGHT)), end = marker_after(t, begin);
    return end == SIZE_MAX ? (piece){"", 0} : cut(t, begin, skip_space(t, end));
}

/* Compares an answer with and without reasoning. */
static void find_by_presence(finder *f) {
    piece texts[2], rest[2];
    const test without = {.messages = answered, .thinking = true};
    const test with = {.messages = reasoned, .thinking = true};
    if (!render_both(f, &without, &with, texts)) return;
    find_difference(f, texts, rest);
    if (find_piece(rest[1], constant(THOUGHT), 0) == SIZE_MAX) return;
    if (find_wrapped(f, texts[1], true)) {
        f->found = true;
        return;
    }
    piece end = marker_after_thought(texts[1]);
    if (end.n) f->end = keep(f, end), f->found = true;
}

/* Handles two renderings that each have text that the other lacks: searches each for the end of the
 * other, and uses the two markers that follow the match. */
static void find_by_tail(finder *f, const piece texts[2]) {
    enum { ANCHOR = 64 }; /* bytes from the end of one rendering to search for in the other */
    for (int i = 0; i < 2; i++) {
        piece base = texts[1 - i], longer = texts[i], markers[3];
        piece anchor = cut(base, base.n > ANCHOR ? base.n - ANCHOR : 0, base.n);
        size_t at = find_last(longer, anchor, longer.n);
        if (at == SIZE_MAX) continue;
        piece extra = strip(cut(longer, at + anchor.n, longer.n));
        if (first_segments(f, extra, markers) != 2) continue;
        if (!is_marker(markers[0]) || !is_marker(markers[1])) continue;
        if (!f->start.n) f->start = keep(f, markers[0]);
        if (!f->end.n) f->end = keep(f, markers[1]);
        f->found = true;
        return;
    }
}

/* Compares the generation prompts with thinking off and on. */
static void find_by_thinking(finder *f) {
    piece texts[2], rest[2], last[2];
    const test off = {.messages = question, .generation = true};
    const test on = {.messages = question, .generation = true, .thinking = true};
    if (!render_both(f, &off, &on, texts)) return;
    find_difference(f, texts, rest);
    piece left = strip(rest[0]), right = strip(rest[1]);
    if (!left.n && rest[1].n) {
        if (!right.n || !ends_with(texts[1], right) || f->start.n) return;
        f->start = keep(f, rest[1]);
        f->found = true;
    } else if (!right.n && rest[0].n) {
        if (!left.n || !ends_with(texts[0], left) || f->end.n) return;
        if (last_segments(f, texts[0], last) == 2 && is_equal(last[0], left) && is_marker(last[1]))
            f->start = keep(f, last[1]);
        f->end = keep(f, rest[0]);
        f->found = true;
    } else if (left.n && right.n) {
        find_by_tail(f, texts);
    }
}

/* Finds the tags in templates that write reasoning only together with calls. */
static void find_by_calls(finder *f) {
    piece texts[2] = {{0}};
    const test said = {.messages = reasoned, .tools = true, .thinking = true};
    const test calls = {.messages = reasoned_call, .tools = true, .thinking = true};
    if (!render_both(f, &said, &calls, texts)) return;
    if (find_piece(texts[0], constant(THOUGHT), 0) != SIZE_MAX) return;
    if (find_piece(texts[1], constant(THOUGHT), 0) == SIZE_MAX) return;
    f->found = true;
    if (!find_wrapped(f, texts[1], false)) f->end = keep(f, marker_after_thought(texts[1]));
}

/* ---- tool calls ---- */

/* Whether the test function's name is a value or a key in JSON. */
static bool names_function(piece t) {
    const piece name = constant("\"" FUNCTION "\"");
    for (size_t at = find_piece(t, name, 0); at != SIZE_MAX; at = find_piece(t, name, at + 1)) {
        size_t before = skip_space_back(t, at);
        if (before && (t.p[before - 1] == '{' || t.p[before - 1] == ':')) return true;
    }
    return false;
}

/* Removes the first occurrence of a tag. */
static piece remove_tag(finder *f, piece t, piece tag) {
    const jinja_text text = {.data = (const uint8_t *)t.p, .n = (uint32_t)t.n};
    const jinja_text needle = {.data = (const uint8_t *)tag.p, .n = (uint32_t)tag.n};
    size_t at = ggtok_jinja_text_find(f->mem, &text, &needle, 0);
    if (at == SIZE_MAX) return t;
    char *p = jinja_alloc(f->mem, t.n);
    memcpy(p, t.p, at);
    memcpy(p + at, t.p + at + tag.n, t.n - at - tag.n);
    return (piece){p, t.n - tag.n};
}

static void parse(jinja_arena *mem, void *user) {
    const piece *json = user;
    ggtok_jinja_read_json(mem, json->p, json->n, 0, JINJA_LLAMA_CPP);
}

/* Parses the JSON of a tool call as the server does when it starts. */
static void check_calls(finder *f) {
    piece texts[2], rest[2];
    const test said = {.messages = answered, .tools = true, .thinking = true};
    const test calls = {.messages = called, .tools = true, .thinking = true};
    if (!render_both(f, &said, &calls, texts)) return;
    find_difference(f, texts, rest);
    if (!names_function(rest[1])) return;
    piece t = remove_tag(f, remove_tag(f, rest[1], f->start), f->end);
    size_t begin = find_piece(t, constant("{"), 0), end = find_last(t, constant("}"), t.n);
    piece json = begin == SIZE_MAX || end == SIZE_MAX ? (piece){"", 0} : cut(t, begin, end + 1);
    jinja_error err;
    ggtok_status status = ggtok_jinja_protect(f->mem, parse, &json, &err);
    if (status == GGTOK_ERR_MEMORY) fail_again(f, &err);
    if (status) f->bad_calls = keep(f, constant(err.message)).p;
}

/* ---- templates whose tags can't be detected ---- */

typedef struct known_tags {
    const char *const *present, *const *absent; /* texts in the source; see ggtok_chat_fits */
    bool only_unfound;                          /* the row applies only if no tags were found */
    const char *start, *end;
} known_tags;

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})
static const known_tags known[] = {
    {TEXTS("content.split('</think>')"), TEXTS("reasoning_content", "<SPECIAL_12>"), true,
     "<think>", "</think>"},
    {TEXTS("Write your thoughts between <think></think> and write your response between "
           "<response></response>"),
     NULL, false, "<think>", "</think>"},
    {TEXTS("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>"), NULL, false,
     "<think>\n", "</think>"},
};

static void find_tags(jinja_arena *mem, void *user) {
    finder *f = user;
    f->mem = mem;
    find_by_presence(f);
    find_by_thinking(f);
    if (f->caps->tool_calls) {
        find_by_calls(f);
        check_calls(f);
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const known_tags *row = &known[i];
        if (row->only_unfound && f->found) continue;
        if (!ggtok_chat_fits(f->source, f->n_source, row->present, row->absent)) continue;
        f->start = constant(row->start);
        f->end = constant(row->end);
        f->found = true;
    }
    if (ggtok_chat_contains(f->source, f->n_source, "laguna_glm_thinking")) {
        f->start = keep(f, strip(f->start));
        f->end = keep(f, strip(f->end));
    }
}

typedef struct copying {
    const finder *f;
    chat_tags *out;
} copying;

static const char *copy_text(jinja_arena *mem, const char *s) {
    size_t n = strlen(s) + 1;
    return memcpy(jinja_alloc(mem, n), s, n);
}

static void copy_tags(jinja_arena *mem, void *user) {
    const copying *c = user;
    c->out->found = c->f->found;
    c->out->start = copy_text(mem, c->f->start.p);
    c->out->end = copy_text(mem, c->f->end.p);
    if (c->f->bad_calls) c->out->bad_calls = copy_text(mem, c->f->bad_calls);
}

ggtok_status ggtok_chat_find_tags(const jinja_template *t, const char *source, size_t n,
                                  const chat_caps *caps, const char *bos, const char *eos,
                                  const jinja_time *now, jinja_arena *mem, chat_tags *out,
                                  jinja_error *err) {
    finder f = {.t = t,
                .source = source,
                .n_source = n,
                .caps = caps,
                .bos = bos,
                .eos = eos,
                .now = now,
                .start = {"", 0},
                .end = {"", 0}};
    copying c = {&f, out};
    jinja_arena scratch;
    *out = (chat_tags){.start = "", .end = ""};
    ggtok_jinja_arena_init(&scratch, UINT64_MAX, UINT64_MAX);
    ggtok_status status = ggtok_jinja_protect(&scratch, find_tags, &f, err);
    if (!status) status = ggtok_jinja_protect(mem, copy_tags, &c, err);
    ggtok_jinja_arena_free(&scratch);
    ggtok_chat_end_probe(&f.probes[0]);
    ggtok_chat_end_probe(&f.probes[1]);
    return status;
}
