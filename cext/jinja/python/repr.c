/* Converts values to text: str, repr, JSON, HTML. */
#include "jinja/core/number.h"
#include "jinja/python/dialect.h"
#include "jinja/python/functions.h"
#include "unicode/unicode.h"

static void put(jinja_builder *b, const char *s) {
    ggtok_jinja_builder_add(b, s, strlen(s), 0);
}

/* ---- repr ---- */

static bool is_printable(uint32_t c) {
    enum { NOT = UNICODE_UNDEFINED | UNICODE_CONTROL | UNICODE_SEPARATOR };
    return c < 0x7F ? c >= 0x20 : c >= 0xA1 && !(ggtok_unicode_flags(c) & NOT);
}

static void put_escape(jinja_builder *b, uint32_t c) {
    static const char digits[] = "0123456789abcdef";
    unsigned n = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
    char text[12] = {'\\', n == 2 ? 'x' : n == 4 ? 'u' : 'U'};
    for (unsigned i = 0; i < n; i++) text[2 + i] = digits[c >> 4 * (n - 1 - i) & 15];
    ggtok_jinja_builder_add(b, text, 2 + n, 0);
}

static void repr_text(jinja_builder *b, const jinja_text *t) {
    bool single = t->n && memchr(t->data, '\'', t->n), twice = t->n && memchr(t->data, '"', t->n);
    char quote = single && !twice ? '"' : '\'';
    const uint8_t *p = t->data, *end = p + t->n;
    jinja_charge(b->arena, t->n / 4);
    ggtok_jinja_builder_add(b, &quote, 1, 0);
    while (p < end) {
        const uint8_t *start = p;
        uint32_t c = utf8_next(&p);
        if (c == '\\' || c == (uint32_t)quote) {
            char escape[2] = {'\\', (char)c};
            ggtok_jinja_builder_add(b, escape, 2, 0);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            put(b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else if (is_printable(c)) {
            size_t at = (size_t)(start - t->data);
            ggtok_jinja_builder_data(b, t, at, at + (size_t)(p - start));
        } else {
            put_escape(b, c);
        }
    }
    ggtok_jinja_builder_add(b, &quote, 1, 0);
}

const char *ggtok_jinja_python_type(jinja_value v) {
    static const char *const names[] = {"Undefined", "NoneType", "bool",      "int",   "float",
                                        "str",       "list",     "tuple",     "dict",  "dict",
                                        "function",  "argument", "Namespace", "range", "generator",
                                        "object",    "int",      "Undefined"};
    static const char *const views[] = {"generator", "dict_keys", "dict_values", "dict_items"};
    if (v.type == JINJA_LAZY) return views[v.as.list->view];
    return names[v.type];
}

static void repr(jinja_env *e, jinja_builder *b, jinja_value v);

static void repr_items(jinja_env *e, jinja_builder *b, jinja_value v) {
    bool tuple = v.type == JINJA_TUPLE;
    put(b, tuple ? "(" : "[");
    for (uint32_t i = 0; i < v.as.list->n; i++) {
        if (i) put(b, ", ");
        repr(e, b, v.as.list->data[i]);
    }
    put(b, tuple ? (v.as.list->n == 1 ? ",)" : ")") : "]");
}

static void repr_dict(jinja_env *e, jinja_builder *b, const jinja_dict *dict) {
    put(b, "{");
    for (uint32_t i = 0; i < dict->n; i++) {
        if (i) put(b, ", ");
        repr(e, b, dict->entries[i].key);
        put(b, ": ");
        repr(e, b, dict->entries[i].value);
    }
    put(b, "}");
}

static void repr_range(jinja_builder *b, const jinja_range *r) {
    char number[32];
    put(b, "range(");
    ggtok_jinja_builder_add(b, number, ggtok_jinja_format_int(number, r->start), 0);
    put(b, ", ");
    ggtok_jinja_builder_add(b, number, ggtok_jinja_format_int(number, r->stop), 0);
    if (r->step != 1) {
        put(b, ", ");
        ggtok_jinja_builder_add(b, number, ggtok_jinja_format_int(number, r->step), 0);
    }
    put(b, ")");
}

static void repr_object(jinja_env *e, jinja_builder *b, jinja_object *object) {
    static const char *const names[] = {"index", "length"};
    char number[32];
    switch (object->kind) {
    case JINJA_CYCLER: put(b, "<Cycler>"); return;
    case JINJA_JOINER: put(b, "<Joiner>"); return;
    case JINJA_SELF: put(b, "<TemplateReference None>"); return;
    case JINJA_LOOP_CONTEXT: break;
    }
    for (int i = 0; i < 2; i++) {
        jinja_text name = {.data = (const uint8_t *)names[i], .n = (uint32_t)strlen(names[i])};
        put(b, i ? "/" : "<LoopContext ");
        int64_t shown = ggtok_jinja_loop_attribute(e, object, &name).as.i;
        ggtok_jinja_builder_add(b, number, ggtok_jinja_format_int(number, shown), 0);
    }
    put(b, ">");
}

/* Separate functions, so that their buffers aren't in the stack frames for nested values. */
static JINJA_NOINLINE void put_int(jinja_builder *b, int64_t i) {
    char number[32];
    ggtok_jinja_builder_add(b, number, ggtok_jinja_format_int(number, i), 0);
}

static JINJA_NOINLINE void put_float(jinja_builder *b, double f) {
    char number[JINJA_NUMBER_ROOM];
    ggtok_jinja_builder_add(b, number, ggtok_jinja_format_repr(b->arena, number, f), 0);
}

static void repr(jinja_env *e, jinja_builder *b, jinja_value v) {
    jinja_charge(&e->arena, 1);
    jinja_enter(&e->arena);
    switch (v.type) {
    case JINJA_UNDEFINED: put(b, "Undefined"); break;
    case JINJA_NONE: put(b, "None"); break;
    case JINJA_BOOL: put(b, v.as.truth ? "True" : "False"); break;
    case JINJA_INT: put_int(b, v.as.i); break;
    case JINJA_BIG: ggtok_jinja_builder_text(b, v.as.text); break;
    case JINJA_FLOAT: put_float(b, v.as.f); break;
    case JINJA_STRING:
        if (v.as.text->safe) put(b, "Markup(");
        repr_text(b, v.as.text);
        if (v.as.text->safe) put(b, ")");
        break;
    case JINJA_LIST:
    case JINJA_TUPLE: repr_items(e, b, v); break;
    case JINJA_DICT: repr_dict(e, b, v.as.dict); break;
    case JINJA_NAMESPACE:
        put(b, "<Namespace ");
        repr_dict(e, b, v.as.dict);
        put(b, ">");
        break;
    case JINJA_RANGE: repr_range(b, v.as.range); break;
    case JINJA_LAZY:
        put(b,
            v.as.list->view ? ggtok_jinja_python_type(v) : ggtok_jinja_shown_generator(v.as.list));
        if (v.as.list->view) {
            put(b, "(");
            repr_items(e, b, jinja_of_list(v.as.list));
        }
        put(b, v.as.list->view ? ")" : "");
        break;
    case JINJA_FUNCTION:
        put(b, v.as.function->kind == JINJA_BUILTIN ? "<built-in method " : "<Macro '");
        put(b, v.as.function->name);
        put(b, v.as.function->kind == JINJA_BUILTIN ? ">" : "'>");
        break;
    default: repr_object(e, b, v.as.object); break;
    }
    jinja_leave(&e->arena);
}

jinja_text *ggtok_jinja_repr(jinja_env *e, jinja_value v) {
    jinja_builder b = ggtok_jinja_builder_new(&e->arena, 32);
    b.merge = true;
    repr(e, &b, v);
    return ggtok_jinja_builder_end(&b);
}

jinja_text *ggtok_jinja_ascii(jinja_env *e, jinja_value v) {
    jinja_text *t = ggtok_jinja_repr(e, v);
    jinja_builder b = ggtok_jinja_builder_new(&e->arena, t->n);
    b.merge = true;
    jinja_charge(&e->arena, t->n / 4);
    for (const uint8_t *p = t->data, *end = p + t->n; p < end;) {
        size_t at = (size_t)(p - t->data);
        uint32_t c = utf8_next(&p);
        if (c < 0x80)
            ggtok_jinja_builder_cut(&b, t, at, at + 1);
        else
            put_escape(&b, c);
    }
    return ggtok_jinja_builder_end(&b);
}

jinja_text *ggtok_jinja_str(jinja_env *e, jinja_value v) {
    if (v.type == JINJA_STRING) return v.as.text;
    if (v.type == JINJA_UNDEFINED || v.type == JINJA_ABSENT) {
        return ggtok_jinja_text_of(&e->arena, "", 0, 0);
    }
    return ggtok_jinja_repr(e, v);
}

/* ---- HTML ---- */

jinja_text *ggtok_jinja_escape(jinja_env *e, jinja_value v) {
    jinja_text *t = ggtok_jinja_str(e, v);
    if (v.type == JINJA_STRING && t->safe) return t;
    jinja_builder b = ggtok_jinja_builder_new(&e->arena, t->n);
    b.merge = true;
    size_t begin = 0;
    jinja_charge(&e->arena, t->n / 4);
    for (size_t i = 0; i < t->n; i++) {
        const char *escape = NULL;
        switch (t->data[i]) {
        case '&': escape = "&amp;"; break;
        case '<': escape = "&lt;"; break;
        case '>': escape = "&gt;"; break;
        case '\'': escape = "&#39;"; break;
        case '"': escape = "&#34;"; break;
        default: continue;
        }
        jinja_text *one = ggtok_jinja_text_cut(&e->arena, t, i, i + 1);
        ggtok_jinja_builder_cut(&b, t, begin, i);
        ggtok_jinja_builder_add(&b, escape, strlen(escape),
                                (jinja_label)ggtok_jinja_text_label(&e->arena, one));
        begin = i + 1;
    }
    ggtok_jinja_builder_cut(&b, t, begin, t->n);
    jinja_text *escaped = ggtok_jinja_builder_end(&b);
    escaped->safe = true;
    return escaped;
}

/* Implements jinja2's ~. Transformers doesn't enable autoescaping, so this escapes nothing. */
jinja_text *ggtok_jinja_concat(jinja_env *e, jinja_value *v, size_t n) {
    jinja_text *text = ggtok_jinja_str(e, v[0]);
    for (size_t i = 1; i < n; i++) {
        text = ggtok_jinja_text_concat(&e->arena, text, ggtok_jinja_str(e, v[i]));
    }
    return text;
}

/* ---- JSON ---- */

typedef struct writer {
    jinja_env *e;
    jinja_builder b;
    const jinja_text *item, *key, *indent; /* indent is NULL for one-line JSON */
    bool ascii, sort;
} writer;

static void json_text(writer *w, const jinja_text *t) {
    static const char names[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const uint8_t *p = t->data, *end = p + t->n, *begin = p;
    jinja_charge(&w->e->arena, t->n / 4);
    put(&w->b, "\"");
    while (p < end) {
        const uint8_t *start = p;
        uint32_t c = utf8_next(&p);
        const char *name = c && c < 0x80 ? strchr(names, (int)c) : NULL;
        if (c >= 0x20 && !name && (c < 0x7F + 1u || !w->ascii)) continue;
        ggtok_jinja_builder_data(&w->b, t, (size_t)(begin - t->data), (size_t)(start - t->data));
        begin = p;
        char text[16] = {'\\', name ? letters[name - names] : 'u', 0};
        if (name) {
            put(&w->b, text);
            continue;
        }
        uint32_t units[2] = {c, 0};
        if (c >= 0x10000) {
            units[0] = 0xD800 + ((c - 0x10000) >> 10);
            units[1] = 0xDC00 + ((c - 0x10000) & 0x3FF);
        }
        for (int u = 0; u < 2 && (!u || units[u]); u++) {
            for (int i = 0; i < 4; i++) {
                text[2 + i] = "0123456789abcdef"[units[u] >> (12 - 4 * i) & 15];
            }
            ggtok_jinja_builder_add(&w->b, text, 6, 0);
        }
    }
    ggtok_jinja_builder_data(&w->b, t, (size_t)(begin - t->data), t->n);
    put(&w->b, "\"");
}

static void json_newline(writer *w, uint32_t level) {
    if (!w->indent) return;
    put(&w->b, "\n");
    for (uint32_t i = 0; i < level; i++) {
        ggtok_jinja_builder_add(&w->b, w->indent->data, w->indent->n, 0);
    }
}

static jinja_text *text_of_float(jinja_arena *mem, double f) {
    char number[JINJA_NUMBER_ROOM];
    if (f != f) return ggtok_jinja_text_of(mem, "NaN", 3, 0);
    if (f - f != 0 && f > 0) return ggtok_jinja_text_of(mem, "Infinity", 8, 0);
    if (f - f != 0) return ggtok_jinja_text_of(mem, "-Infinity", 9, 0);
    return ggtok_jinja_text_copy(mem, number, ggtok_jinja_format_repr(mem, number, f), 0);
}

static JINJA_NOINLINE void json_float(writer *w, double f) {
    ggtok_jinja_builder_text(&w->b, text_of_float(w->b.arena, f));
}

static JINJA_NOINLINE void json_key(writer *w, jinja_value key) {
    char number[JINJA_NUMBER_ROOM];
    jinja_text *text;
    switch (key.type) {
    case JINJA_BIG:
    case JINJA_STRING: text = key.as.text; break;
    case JINJA_BOOL:
        text = ggtok_jinja_text_of(&w->e->arena, key.as.truth ? "true" : "false", 5u - key.as.truth,
                                   0);
        break;
    case JINJA_NONE: text = ggtok_jinja_text_of(&w->e->arena, "null", 4, 0); break;
    case JINJA_INT:
        text =
            ggtok_jinja_text_of(&w->e->arena, number, ggtok_jinja_format_int(number, key.as.i), 0);
        break;
    case JINJA_FLOAT: text = text_of_float(w->b.arena, key.as.f); break;
    default:
        ggtok_jinja_fail(&w->e->arena, "keys must be str, int, float, bool or None, not %s",
                         ggtok_jinja_python_type(key));
    }
    json_text(w, text);
}

static void json_value(writer *w, jinja_value v, uint32_t level);

/* Writes a dict. Sorts pairs, not keys, since looking up a NaN key would fail. */
static void json_dict(writer *w, const jinja_dict *dict, uint32_t level) {
    jinja_list *sorted = NULL;
    if (w->sort) {
        sorted = ggtok_jinja_dict_pairs(w->e, dict);
        sorted = ggtok_jinja_sorted_by(w->e, sorted, 0, true, false);
    }
    put(&w->b, "{");
    for (uint32_t i = 0; i < dict->n; i++) {
        const jinja_value *pair = sorted ? sorted->data[i].as.list->data : NULL;
        if (i) ggtok_jinja_builder_add(&w->b, w->item->data, w->item->n, 0);
        json_newline(w, level + 1);
        json_key(w, pair ? pair[0] : dict->entries[i].key);
        ggtok_jinja_builder_add(&w->b, w->key->data, w->key->n, 0);
        json_value(w, pair ? pair[1] : dict->entries[i].value, level + 1);
    }
    if (dict->n) json_newline(w, level);
    put(&w->b, "}");
}

static void json_value(writer *w, jinja_value v, uint32_t level) {
    char number[32];
    jinja_charge(&w->e->arena, 1);
    jinja_enter(&w->e->arena);
    switch (v.type) {
    case JINJA_NONE: put(&w->b, "null"); break;
    case JINJA_BOOL: put(&w->b, v.as.truth ? "true" : "false"); break;
    case JINJA_INT:
        ggtok_jinja_builder_add(&w->b, number, ggtok_jinja_format_int(number, v.as.i), 0);
        break;
    case JINJA_FLOAT: json_float(w, v.as.f); break;
    case JINJA_BIG: ggtok_jinja_builder_text(&w->b, v.as.text); break;
    case JINJA_STRING: json_text(w, v.as.text); break;
    case JINJA_LIST:
    case JINJA_TUPLE:
        put(&w->b, "[");
        for (uint32_t i = 0; i < v.as.list->n; i++) {
            if (i) ggtok_jinja_builder_add(&w->b, w->item->data, w->item->n, 0);
            json_newline(w, level + 1);
            json_value(w, v.as.list->data[i], level + 1);
        }
        if (v.as.list->n) json_newline(w, level);
        put(&w->b, "]");
        break;
    case JINJA_DICT: json_dict(w, v.as.dict, level); break;
    default:
        ggtok_jinja_fail(&w->e->arena, "Object of type %s is not JSON serializable",
                         ggtok_jinja_python_type(v));
    }
    jinja_leave(&w->e->arena);
}

jinja_text *ggtok_jinja_python_json(jinja_env *e, jinja_value v, bool ascii, jinja_value indent,
                                    jinja_value separators, bool sort) {
    jinja_arena *mem = &e->arena;
    writer w = {.e = e, .b = ggtok_jinja_builder_new(mem, 32), .ascii = ascii, .sort = sort};
    w.b.merge = true;
    if (indent.type == JINJA_STRING) {
        w.indent = indent.as.text;
    } else if (indent.type != JINJA_NONE && indent.type != JINJA_ABSENT) {
        int64_t n = ggtok_jinja_index(e, indent);
        if (n < 0) n = 0;
        if (n > 10000) ggtok_jinja_fail(mem, "JSON indented by more than 10000");
        uint8_t *spaces = jinja_alloc(mem, (size_t)n);
        memset(spaces, ' ', (size_t)n);
        w.indent = ggtok_jinja_text_of(mem, spaces, (size_t)n, 0);
    }
    w.item = w.indent ? ggtok_jinja_text_of(mem, ",", 1, 0) : ggtok_jinja_text_of(mem, ", ", 2, 0);
    w.key = ggtok_jinja_text_of(mem, ": ", 2, 0);
    if (separators.type != JINJA_NONE && separators.type != JINJA_ABSENT) {
        jinja_list *two = ggtok_jinja_items(e, separators);
        if (two->n != 2 || two->data[0].type != JINJA_STRING || two->data[1].type != JINJA_STRING) {
            ggtok_jinja_fail(mem, "separators must be two strings");
        }
        w.item = two->data[0].as.text;
        w.key = two->data[1].as.text;
    }
    json_value(&w, v, 0);
    return ggtok_jinja_builder_end(&w.b);
}
