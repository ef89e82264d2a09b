/* Writes the events of ggtok_trace as JSON. */
#include "api/tokenizer.h"
#include "models/trace.h"
#include "unicode/utf8.h"

#include <math.h>
#include <stdio.h>

/* The lists in the objects of words and tokens. Each list is written at most once per object, in
 * the order of the events. */
typedef enum list { RULES, SYMBOLS, MERGES, LATTICE, TOKENS, PAIRS, WORDS, N_LISTS } list;

static const char *const list_names[] = {"rules",  "symbols", "merges", "lattice",
                                         "tokens", "pairs",   "words"};
enum {
    OF_WORD = 1 << RULES | 1 << SYMBOLS | 1 << MERGES | 1 << LATTICE | 1 << TOKENS,
    OF_TOKEN = 1 << SYMBOLS | 1 << MERGES | 1 << TOKENS | 1 << PAIRS | 1 << WORDS
};

typedef struct json {
    bytebuf *out;
    bytebuf before, after, notes, normalized;
    const char *text; /* text of the call */
    bool failed;      /* whether memory ran out */
    bool fragment, word, special;
    size_t begin, end; /* bounds of the current fragment */
    unsigned written;  /* set of the lists written for the current word or token */
    list open;         /* the list being written; N_LISTS: none */
} json;

static void put(json *j, bytebuf *b, const void *p, size_t n) {
    j->failed |= !bytebuf_append(b, p, n);
}

static void puts_(json *j, bytebuf *b, const char *text) {
    put(j, b, text, strlen(text));
}

static void put_int(json *j, bytebuf *b, long long i) {
    char text[32];
    put(j, b, text, (size_t)snprintf(text, sizeof text, "%lld", i));
}

/* Writes a comma, unless the last character opened a list or an object. */
static void put_comma(json *j, bytebuf *b) {
    uint8_t last = b->n ? b->data[b->n - 1] : '[';
    if (last != '[' && last != '{' && last != ':') puts_(j, b, ",");
}

/* Writes a double: 17 digits identify it. The decimal point depends on the locale, so any other
 * character between digits counts as one. Readers of JSON keep the sign of -0.0 but not of -0. */
static void put_double(json *j, bytebuf *b, double f) {
    char text[64];
    if (!isfinite(f)) {
        puts_(j, b, isnan(f) ? "\"NaN\"" : f > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    size_t n = (size_t)snprintf(text, sizeof text, "%.17g", f);
    bool integer = true, after_digit = false;
    for (size_t i = 0; i < n; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        if (digit || strchr("+-e", text[i]))
            put(j, b, text + i, 1);
        else if (after_digit) /* the point may consist of several bytes */
            puts_(j, b, ".");
        integer &= digit || !i;
        after_digit = digit;
    }
    if (integer) puts_(j, b, ".0");
}

/* Returns the length of the character at p, or 0 if it isn't strict UTF-8. */
static size_t strict_char(const uint8_t *p, size_t n) {
    size_t len = utf8_lead_len(*p);
    if (*p < 0x80) return 1;
    if (len < 2 || *p < 0xC2 || *p > 0xF4 || len > n) return 0;
    for (size_t i = 1; i < len; i++) {
        if (!utf8_continues(p[i])) return 0;
    }
    if ((*p == 0xE0 && p[1] < 0xA0) || (*p == 0xED && p[1] > 0x9F) || (*p == 0xF0 && p[1] < 0x90) ||
        (*p == 0xF4 && p[1] > 0x8F)) {
        return 0;
    }
    return len;
}

static void put_string(json *j, bytebuf *b, ggtok_bytes s) {
    const uint8_t *p = (const uint8_t *)s.data;
    puts_(j, b, "\"");
    for (size_t i = 0, len; i < s.n; i += len) {
        char escape[8];
        len = strict_char(p + i, s.n - i);
        if (!len) {
            snprintf(escape, sizeof escape, "\\udc%02x", p[i]);
            len = 1;
        } else if (p[i] < 0x20 || p[i] == '"' || p[i] == '\\') {
            snprintf(escape, sizeof escape, "\\u%04x", p[i]);
        } else {
            put(j, b, p + i, len);
            continue;
        }
        puts_(j, b, escape);
    }
    puts_(j, b, "\"");
}

/* ---- fields: each begins with a comma, except the first in an object ---- */

static void key(json *j, bytebuf *b, const char *name) {
    put_comma(j, b);
    puts_(j, b, "\"");
    puts_(j, b, name);
    puts_(j, b, "\":");
}

static void string_field(json *j, bytebuf *b, const char *name, ggtok_bytes s) {
    key(j, b, name);
    if (s.data)
        put_string(j, b, s);
    else
        puts_(j, b, "null");
}

static void int_field(json *j, bytebuf *b, const char *name, long long i) {
    key(j, b, name);
    put_int(j, b, i);
}

static void double_field(json *j, bytebuf *b, const char *name, bool has, double f) {
    key(j, b, name);
    if (has)
        put_double(j, b, f);
    else
        puts_(j, b, "null");
}

static ggtok_bytes text_or_empty(ggtok_bytes s) {
    return s.data ? s : (ggtok_bytes){"", 0};
}

static void put_token(json *j, bytebuf *b, const ggtok_trace_event *e) {
    puts_(j, b, "{");
    int_field(j, b, "id", e->id);
    string_field(j, b, "text", text_or_empty(e->text));
    string_field(j, b, "how", trace_note(ggtok_how_name(e->how)));
    double_field(j, b, "score", e->has_score, e->score);
    double_field(j, b, "total", e->has_total, e->total);
    string_field(j, b, "why", text_or_empty(e->note));
    int_field(j, b, "begin", (long long)e->begin);
    int_field(j, b, "end", (long long)e->end);
    puts_(j, b, "}");
}

/* Writes a merge or a pair. */
static void put_merge(json *j, bytebuf *b, const ggtok_trace_event *e) {
    puts_(j, b, "{");
    string_field(j, b, "left", e->text);
    string_field(j, b, "right", e->right);
    key(j, b, "rank");
    if (e->has_rank)
        put_int(j, b, e->rank);
    else
        puts_(j, b, "null");
    double_field(j, b, "score", e->has_score, e->score);
    int_field(j, b, "at", (long long)e->at);
    puts_(j, b, "}");
}

static void put_place(json *j, bytebuf *b, const ggtok_trace_event *e) {
    puts_(j, b, "{");
    int_field(j, b, "at", (long long)e->at);
    int_field(j, b, "id", e->id);
    string_field(j, b, "text", e->text);
    double_field(j, b, "score", true, e->score);
    double_field(j, b, "total", true, e->total);
    puts_(j, b, "}");
}

static void put_rule(json *j, bytebuf *b, const ggtok_trace_event *e) {
    puts_(j, b, "{");
    string_field(j, b, "scanner", e->text);
    string_field(j, b, "expression", e->right);
    puts_(j, b, "}");
}

/* ---- lists ---- */

static void close_list(json *j) {
    if (j->open != N_LISTS) puts_(j, j->out, "]");
    j->open = N_LISTS;
}

/* Begins an item of a list: the first opens the list, others continue it. */
static void item(json *j, list which) {
    if (j->open != which) {
        close_list(j);
        key(j, j->out, list_names[which]);
        puts_(j, j->out, "[");
        j->open = which;
        j->written |= 1u << which;
    } else {
        puts_(j, j->out, ",");
    }
}

/* Ends the open list. Writes the lists in the set `all` that have no items as empty lists. */
static void close_lists(json *j, unsigned all) {
    close_list(j);
    for (unsigned i = 0; i < N_LISTS; i++) {
        if (!(all >> i & 1) || j->written >> i & 1) continue;
        key(j, j->out, list_names[i]);
        puts_(j, j->out, "[]");
    }
    j->written = 0;
}

/* Writes an event that is an item of a list. Returns false if it isn't one. */
static bool put_item(json *j, const ggtok_trace_event *e) {
    switch (e->kind) {
    case GGTOK_TRACE_RULE: item(j, RULES), put_rule(j, j->out, e); return true;
    case GGTOK_TRACE_SYMBOL: item(j, SYMBOLS), put_string(j, j->out, e->text); return true;
    case GGTOK_TRACE_MERGE: item(j, MERGES), put_merge(j, j->out, e); return true;
    case GGTOK_TRACE_PLACE: item(j, LATTICE), put_place(j, j->out, e); return true;
    case GGTOK_TRACE_TOKEN: item(j, TOKENS), put_token(j, j->out, e); return true;
    case GGTOK_TRACE_PAIR: item(j, PAIRS), put_merge(j, j->out, e); return true;
    default: return false;
    }
}

static void put_note(json *j, ggtok_bytes note) {
    if (j->notes.n) puts_(j, &j->notes, ",");
    put_string(j, &j->notes, note);
}

static void free_parts(json *j) {
    ggtok_mem_free(j->before.data);
    ggtok_mem_free(j->after.data);
    ggtok_mem_free(j->notes.data);
    ggtok_mem_free(j->normalized.data);
}

/* ---- a text ---- */

static void close_word(json *j) {
    if (!j->word) return;
    close_lists(j, OF_WORD);
    puts_(j, j->out, "}");
    j->word = false;
}

static void close_fragment(json *j) {
    close_word(j);
    if (!j->fragment) return;
    puts_(j, j->out, "]");
    ggtok_bytes made = {(const char *)j->normalized.data, j->normalized.n};
    bool same =
        made.n == j->end - j->begin && (!made.n || !memcmp(made.data, j->text + j->begin, made.n));
    bool shown = !j->special && !same;
    string_field(j, j->out, "normalized", shown ? text_or_empty(made) : (ggtok_bytes){NULL, 0});
    puts_(j, j->out, ",\"notes\":[");
    if (j->notes.n) put(j, j->out, j->notes.data, j->notes.n);
    puts_(j, j->out, "]}");
    j->notes.n = j->normalized.n = 0;
    j->fragment = false;
}

static void open_fragment(json *j, const ggtok_trace_event *e) {
    close_fragment(j);
    put_comma(j, j->out);
    puts_(j, j->out, "{");
    string_field(j, j->out, "text", e->text);
    int_field(j, j->out, "begin", (long long)e->begin);
    int_field(j, j->out, "end", (long long)e->end);
    puts_(j, j->out, ",\"special\":");
    j->fragment = true;
    j->special = e->kind == GGTOK_TRACE_SPECIAL;
    j->begin = e->begin, j->end = e->end;
    if (!j->special) puts_(j, j->out, "null,\"words\":[");
}

static bool on_text(void *user, const ggtok_trace_event *e) {
    json *j = user;
    if (e->kind == GGTOK_TRACE_RAW || e->kind == GGTOK_TRACE_SPECIAL) {
        open_fragment(j, e);
    } else if (e->kind == GGTOK_TRACE_NOTE) {
        put_note(j, e->note);
    } else if (e->kind == GGTOK_TRACE_WORD) {
        close_word(j);
        put_comma(j, j->out);
        puts_(j, j->out, "{");
        string_field(j, j->out, "text", e->text);
        int_field(j, j->out, "begin", (long long)e->begin);
        int_field(j, j->out, "end", (long long)e->end);
        put(j, &j->normalized, e->text.data, e->text.n);
        j->word = true;
    } else if (e->kind == GGTOK_TRACE_TOKEN && e->how == GGTOK_HOW_BEFORE) {
        put_token(j, &j->before, e);
    } else if (e->kind == GGTOK_TRACE_TOKEN && e->how == GGTOK_HOW_AFTER) {
        put_token(j, &j->after, e);
    } else if (e->kind == GGTOK_TRACE_TOKEN && e->how == GGTOK_HOW_SPECIAL) {
        put_token(j, j->out, e);
        puts_(j, j->out, ",\"words\":[");
    } else {
        put_item(j, e);
    }
    return !j->failed;
}

static ggtok_status end_json(json *j, ggtok_status s, ggtok_bytes *out, ggtok_error *err) {
    free_parts(j);
    if (j->failed) s = ggtok_error_memory(err);
    if (!s) *out = (ggtok_bytes){(const char *)j->out->data, j->out->n};
    return s;
}

ggtok_status ggtok_trace_json(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                              size_t max_events, ggtok_bytes *out, ggtok_error *err) {
    json j = {.out = &ctx->bytes, .text = text, .open = N_LISTS};
    ggtok_ids ids;
    *out = (ggtok_bytes){NULL, 0};
    j.out->n = 0;
    puts_(&j, j.out, "{\"fragments\":[");
    ggtok_status s = ggtok_trace(ctx, text, n, flags, max_events, on_text, &j, &ids, err);
    if (!s) {
        close_fragment(&j);
        puts_(&j, j.out, "],\"before\":[");
        if (j.before.n) put(&j, j.out, j.before.data, j.before.n);
        puts_(&j, j.out, "],\"after\":[");
        if (j.after.n) put(&j, j.out, j.after.data, j.after.n);
        puts_(&j, j.out, "],\"ids\":[");
        for (size_t i = 0; i < ids.n; i++) {
            put_comma(&j, j.out);
            put_int(&j, j.out, ids.data[i]);
        }
        puts_(&j, j.out, "]}");
    }
    return end_json(&j, s, out, err);
}

/* ---- a token ---- */

static bool on_token(void *user, const ggtok_trace_event *e) {
    json *j = user;
    if (e->kind == GGTOK_TRACE_NOTE) {
        put_note(j, e->note);
    } else if (e->kind == GGTOK_TRACE_WORD) {
        item(j, WORDS);
        put_string(j, j->out, e->text);
    } else {
        put_item(j, e);
    }
    return !j->failed;
}

ggtok_status ggtok_trace_token_json(ggtok_context *ctx, int32_t id, size_t max_events,
                                    ggtok_bytes *out, ggtok_error *err) {
    json j = {.out = &ctx->bytes, .open = N_LISTS};
    ggtok_token_trace found;
    *out = (ggtok_bytes){NULL, 0};
    j.out->n = 0;
    puts_(&j, j.out, "{");
    ggtok_status s = ggtok_trace_token(ctx, id, max_events, on_token, &j, &found, err);
    if (!s) {
        close_lists(&j, OF_TOKEN);
        string_field(&j, j.out, "text", text_or_empty(found.text));
        key(&j, j.out, "reached");
        puts_(&j, j.out, found.reached ? "true" : "false");
        key(&j, j.out, "whole_word");
        puts_(&j, j.out, found.whole_word ? "true" : "false");
        puts_(&j, j.out, ",\"notes\":[");
        if (j.notes.n) put(&j, j.out, j.notes.data, j.notes.n);
        puts_(&j, j.out, "]}");
    }
    return end_json(&j, s, out, err);
}
