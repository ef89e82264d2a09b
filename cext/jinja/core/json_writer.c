/* Writes JSON. Text in JSON counts as data, not as the template's own, but keeps its origin. */
#include "jinja/core/jinja.h"
#include "jinja/core/number.h"

static void put(jinja_builder *b, const char *s) {
    ggtok_jinja_builder_add(b, s, strlen(s), 0);
}

void ggtok_jinja_builder_json(jinja_builder *b, const jinja_text *t) {
    static const char names[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    size_t begin = 0;
    jinja_charge(b->arena, t->n / 4);
    put(b, "\"");
    for (size_t i = 0; i < t->n; i++) {
        uint8_t c = t->data[i];
        const char *name = c ? strchr(names, c) : NULL;
        if (c >= 0x20 && !name) continue;
        char escape[8] = {'\\', name ? letters[name - names] : 'u', 0};
        if (!name) {
            memcpy(escape + 2, c < 16 ? "000" : "001", 3);
            escape[5] = "0123456789abcdef"[c & 15];
            escape[6] = 0;
        }
        ggtok_jinja_builder_data(b, t, begin, i);
        put(b, escape);
        begin = i + 1;
    }
    ggtok_jinja_builder_data(b, t, begin, t->n);
    put(b, "\"");
}

/* A separate function, so that its buffer isn't in the stack frame of each level. */
static JINJA_NOINLINE void put_number(jinja_builder *b, jinja_value v) {
    char number[JINJA_NUMBER_ROOM];
    size_t n = v.type == JINJA_FLOAT ? ggtok_jinja_format_json(b->arena, number, v.as.f)
               : v.is_unsigned       ? ggtok_jinja_format_unsigned(number, (uint64_t)v.as.i)
                                     : ggtok_jinja_format_int(number, v.as.i);
    ggtok_jinja_builder_add(b, number, n, 0);
}

static void put_value(jinja_builder *b, jinja_value v);

static void put_items(jinja_builder *b, const jinja_list *list) {
    put(b, "[");
    JINJA_EACH(b->arena, i, list->n) {
        if (i) put(b, ",");
        put_value(b, list->data[i]);
    }
    put(b, "]");
}

static void put_dict(jinja_builder *b, const jinja_dict *dict) {
    put(b, "{");
    JINJA_EACH(b->arena, i, dict->n) {
        jinja_value key = dict->entries[i].key;
        if (i) put(b, ",");
        if (key.type != JINJA_STRING) ggtok_jinja_fail(b->arena, "a key in JSON must be a string");
        ggtok_jinja_builder_json(b, key.as.text);
        put(b, ":");
        put_value(b, dict->entries[i].value);
    }
    put(b, "}");
}

static void put_value(jinja_builder *b, jinja_value v) {
    jinja_enter(b->arena);
    switch (v.type) {
    case JINJA_BOOL: put(b, v.as.truth ? "true" : "false"); break;
    case JINJA_INT:
    case JINJA_FLOAT: put_number(b, v); break;
    case JINJA_BIG: ggtok_jinja_builder_add(b, v.as.text->data, v.as.text->n, 0); break;
    case JINJA_STRING: ggtok_jinja_builder_json(b, v.as.text); break;
    case JINJA_LIST:
    case JINJA_TUPLE: put_items(b, v.as.list); break;
    case JINJA_DICT: put_dict(b, v.as.dict); break;
    default: put(b, "null"); break;
    }
    jinja_leave(b->arena);
}

jinja_text *ggtok_jinja_write_json(jinja_arena *mem, jinja_value v) {
    jinja_builder b = ggtok_jinja_builder_new(mem, 32);
    b.merge = true;
    put_value(&b, v);
    return ggtok_jinja_text_fuse(mem, ggtok_jinja_builder_end(&b));
}
