/* Texts and dicts of a request. */
#include "chat/chat.h"

#include "unicode/utf8_valid.h"

jinja_text *ggtok_chat_own(jinja_arena *mem, const char *s) {
    return ggtok_jinja_text_of(mem, s, strlen(s), JINJA_FROM_TEMPLATE);
}

jinja_value ggtok_chat_get(jinja_arena *mem, jinja_value dict, const char *name) {
    if (dict.type != JINJA_DICT) return jinja_absent();
    const jinja_value *found = ggtok_jinja_dict_get(mem, dict.as.dict, name, strlen(name));
    return found ? *found : jinja_absent();
}

jinja_text *ggtok_chat_join_parts(jinja_arena *mem, const jinja_list *parts, const char *separator,
                                  bool with_media) {
    jinja_builder b = ggtok_jinja_builder_new(mem, 0);
    b.merge = true;
    bool begun = false, after_media = false;
    for (uint32_t i = 0; i < parts->n; i++) {
        const jinja_text *part = parts->data[i].as.text;
        bool is_media = part->label & JINJA_MEDIA;
        jinja_charge(mem, 1);
        if (is_media && !with_media) continue;
        if (begun && !is_media && !after_media)
            ggtok_jinja_builder_add(&b, separator, strlen(separator), JINJA_FROM_TEMPLATE);
        ggtok_jinja_builder_text(&b, part);
        begun = begun || part->n;
        after_media = is_media;
    }
    return ggtok_jinja_text_fuse(mem, ggtok_jinja_builder_end(&b));
}

jinja_dict *ggtok_chat_copy_dict(jinja_arena *mem, const jinja_dict *dict,
                                 const char *const *without) {
    jinja_dict *copy = ggtok_jinja_dict_new(mem, dict->n + 1);
    jinja_charge(mem, dict->n);
    for (uint32_t i = 0; i < dict->n; i++) {
        const jinja_entry *entry = &dict->entries[i];
        bool dropped = false;
        for (size_t k = 0; without && without[k] && !dropped; k++) {
            dropped = entry->key.type == JINJA_STRING && chat_is(entry->key.as.text, without[k]);
        }
        if (!dropped) ggtok_jinja_dict_add(mem, copy, entry->key, entry->value);
    }
    return copy;
}

static bool is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool ggtok_chat_is_blank(const jinja_text *t) {
    for (uint32_t i = 0; i < t->n; i++)
        if (!is_space(t->data[i])) return false;
    return true;
}

jinja_text *ggtok_chat_strip(jinja_arena *mem, jinja_text *t) {
    size_t begin = 0, end = t->n;
    jinja_charge_bytes(mem, t->n);
    while (begin < end && is_space(t->data[begin])) begin++;
    while (end > begin && is_space(t->data[end - 1])) end--;
    return begin || end < t->n ? ggtok_jinja_text_cut(mem, t, begin, end) : t;
}

bool ggtok_chat_contains(const char *text, size_t n, const char *s) {
    size_t length = strlen(s);
    const char *p = text, *end = text + n;
    while ((size_t)(end - p) >= length && (p = memchr(p, s[0], (size_t)(end - p) - length + 1))) {
        if (!memcmp(p, s, length)) return true;
        p++;
    }
    return false;
}

/* Text that is well-formed in the wide sense may contain surrogates, which begin with 0xED and a byte
 * from 0xA0 on. */
bool ggtok_chat_is_utf8(const jinja_text *t) {
    enum { FIRST = 0xED, SURROGATES = 0xA0 };
    const uint8_t *p = t->data, *end = p + t->n;
    if (ggtok_utf8_valid_prefix(p, t->n) < t->n) return false;
    while (p < end && (p = memchr(p, FIRST, (size_t)(end - p)))) {
        if (p[1] >= SURROGATES) return false;
        p += 3;
    }
    return true;
}
