/*
 * Reads and writes the fields of objects in bodies, as llama-server does: a value that isn't an
 * object has no fields.
 */
#ifndef GGTOK_CHAT_FIELDS_H
#define GGTOK_CHAT_FIELDS_H

#include "chat/chat.h"

/* Returns a field's value, or JINJA_ABSENT. */
static inline jinja_value get_field(const chat_call *c, jinja_value object, const char *name) {
    return ggtok_chat_get(c->mem, object, name);
}

/* Returns a field's text, or NULL if it isn't a string. */
static inline jinja_text *get_text(const chat_call *c, jinja_value object, const char *name) {
    return chat_text(get_field(c, object, name));
}

static inline bool has_type(const chat_call *c, jinja_value object, const char *type) {
    return chat_is(get_text(c, object, "type"), type);
}

static inline jinja_dict *new_object(const chat_call *c) {
    return ggtok_jinja_dict_new(c->mem, 0);
}

/* Set a field to a value, a text (NULL: ""), or a constant. */
static inline void set_field(const chat_call *c, jinja_dict *to, const char *name, jinja_value v) {
    ggtok_jinja_dict_put(c->mem, to, name, v);
}
static inline void set_constant(const chat_call *c, jinja_dict *to, const char *name,
                                const char *text) {
    set_field(c, to, name, chat_own_value(c->mem, text));
}
static inline void set_text(const chat_call *c, jinja_dict *to, const char *name, jinja_text *t) {
    set_field(c, to, name, t ? jinja_of_text(t) : chat_own_value(c->mem, ""));
}

#endif
