/* Writes JSON as llama.cpp's tojson does. */
#include "jinja/core/number.h"
#include "jinja/llama/builtins.h"
#include "unicode/utf8.h"

typedef struct writer {
    jinja_env *e;
    jinja_builder b;
    int64_t indent;               /* spaces per level; negative: everything on one line */
    const jinja_text *item, *key; /* separators after items and keys, or NULL */
} writer;

static void put(writer *w, const char *s) {
    ggtok_jinja_builder_add(&w->b, s, strlen(s), 0);
}

static void newline(writer *w) {
    if (w->indent >= 0) put(w, "\n");
}

/* Writes the indentation for a level. */
static void indent(writer *w, uint32_t level) {
    if (w->indent <= 0) return;
    uint64_t n = (uint64_t)w->indent * level;
    if (n > JINJA_MAX_TEXT) ggtok_jinja_fail(&w->e->arena, "JSON indented too deeply");
    jinja_charge_bytes(&w->e->arena, n);
    memset(ggtok_jinja_builder_reserve(&w->b, (size_t)n), ' ', (size_t)n);
    ggtok_jinja_builder_wrote(&w->b, (size_t)n, 0);
}

static void separate(writer *w) {
    if (w->item)
        ggtok_jinja_builder_add(&w->b, w->item->data, w->item->n, 0);
    else
        put(w, w->indent < 0 ? ", " : ",");
}

static void write_value(writer *w, jinja_value v, uint32_t level);

static void write_items(writer *w, const jinja_list *list, uint32_t level) {
    put(w, "[");
    if (list->n) newline(w);
    JINJA_EACH(&w->e->arena, i, list->n) {
        indent(w, level + 1);
        write_value(w, list->data[i], level + 1);
        if (i + 1 < list->n) separate(w);
        newline(w);
    }
    if (list->n) indent(w, level);
    put(w, "]");
}

static void write_dict(writer *w, const jinja_dict *dict, uint32_t level) {
    put(w, "{");
    if (dict->n) newline(w);
    JINJA_EACH(&w->e->arena, i, dict->n) {
        indent(w, level + 1);
        ggtok_jinja_builder_json(&w->b, ggtok_jinja_llama_text(w->e, dict->entries[i].key));
        if (w->key)
            ggtok_jinja_builder_add(&w->b, w->key->data, w->key->n, 0);
        else
            put(w, ": ");
        write_value(w, dict->entries[i].value, level + 1);
        if (i + 1 < dict->n) separate(w);
        newline(w);
    }
    if (dict->n) indent(w, level);
    put(w, "}");
}

/* Writes a number. This is a separate function so that its buffer isn't in the stack frame of
 * each level. */
static JINJA_NOINLINE void put_number(writer *w, jinja_value v) {
    char number[JINJA_NUMBER_ROOM];
    size_t n = v.type == JINJA_INT
                   ? ggtok_jinja_format_int(number, v.as.i)
                   : ggtok_jinja_format(&w->e->arena, number, 'g', 6, false, v.as.f);
    ggtok_jinja_builder_add(&w->b, number, n, 0);
}

static void write_value(writer *w, jinja_value v, uint32_t level) {
    jinja_enter(&w->e->arena);
    switch (v.type) {
    case JINJA_BOOL: put(w, v.as.truth ? "true" : "false"); break;
    case JINJA_INT:
    case JINJA_FLOAT: put_number(w, v); break;
    case JINJA_STRING: ggtok_jinja_builder_json(&w->b, v.as.text); break;
    case JINJA_LIST:
    case JINJA_TUPLE: write_items(w, v.as.list, level); break;
    case JINJA_LOOP: ggtok_jinja_loop_fill(&w->e->arena, v.as.dict); /* fall through */
    case JINJA_DICT: write_dict(w, v.as.dict, level); break;
    default: put(w, "null"); break;
    }
    jinja_leave(&w->e->arena);
}

jinja_text *ggtok_jinja_llama_json(jinja_env *e, jinja_value v, int64_t indent,
                                   const jinja_text *item, const jinja_text *key) {
    writer w = {e, ggtok_jinja_builder_new(&e->arena, 32), indent, item, key};
    w.b.merge = true;
    write_value(&w, v, 0);
    return ggtok_jinja_text_fuse(&e->arena, ggtok_jinja_builder_end(&w.b));
}

/* ---- ASCII only ---- */

static void put_unit(writer *w, uint32_t unit) {
    char text[7] = "\\u";
    for (int i = 0; i < 4; i++) text[2 + i] = "0123456789abcdef"[unit >> (12 - 4 * i) & 15];
    text[6] = 0;
    put(w, text);
}

/* Decodes the UTF-8 character at p; returns its length, or 0 if it is malformed. Like llama.cpp's
 * decoder, accepts overlong forms and surrogates. */
static size_t decode(const uint8_t *p, size_t n, uint32_t *c) {
    size_t length = p[0] >= 0xF0 && p[0] < 0xF8   ? 4
                    : p[0] >= 0xE0 && p[0] < 0xF0 ? 3
                    : p[0] >= 0xC0 && p[0] < 0xE0 ? 2
                                                  : 0;
    if (!length || length > n) return 0;
    *c = p[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
        *c = *c << 6 | (p[i] & 0x3F);
    }
    return length;
}

/* Escapes non-ASCII characters, but only inside strings; separators don't change. */
jinja_text *ggtok_jinja_llama_json_ascii(jinja_env *e, const jinja_text *json) {
    writer w = {e, ggtok_jinja_builder_new(&e->arena, json->n), -1, NULL, NULL};
    w.b.merge = true;
    bool inside = false, escaped = false;
    size_t part = 0;
    jinja_charge(&e->arena, json->n / 2);
    for (size_t i = 0; i < json->n;) {
        uint8_t c = json->data[i];
        uint32_t point = 0;
        if (inside && !escaped && c >= 0x80) {
            size_t n = decode(json->data + i, json->n - i, &point);
            i += n ? n : 1;
            if (!n) point = UTF8_REPLACEMENT;
            if (point >= 0x10000) {
                put_unit(&w, 0xD800 + ((point - 0x10000) >> 10 & 0x3FF));
                put_unit(&w, 0xDC00 + (point & 0x3FF));
            } else {
                put_unit(&w, point);
            }
            continue;
        }
        while (jinja_text_end(json, part) <= i) part++;
        ggtok_jinja_builder_add(&w.b, &json->data[i++], 1, jinja_text_part_label(json, part));
        if (!inside)
            inside = c == '"';
        else if (escaped)
            escaped = false;
        else if (c == '\\')
            escaped = true;
        else if (c == '"')
            inside = false;
    }
    return ggtok_jinja_text_fuse(&e->arena, ggtok_jinja_builder_end(&w.b));
}
