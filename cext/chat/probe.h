/* Test renderings, which show how a template uses its variables. */
#ifndef GGTOK_CHAT_PROBE_H
#define GGTOK_CHAT_PROBE_H

#include "chat/chat.h"

typedef struct chat_probe {
    const jinja_template *t;
    const jinja_time *now;
    jinja_env *env;
    jinja_text *text; /* what the template wrote; NULL: it failed */
} chat_probe;

/* Renders with the variables that `set` sets, and keeps the env until the next call and
 * ggtok_chat_end_probe. Returns GGTOK_OK even if the template fails; an error means that memory ran
 * out. */
ggtok_status ggtok_chat_probe(chat_probe *p, void (*set)(jinja_env *env, const void *user),
                              const void *user, jinja_error *err);
void ggtok_chat_end_probe(chat_probe *p);

/* Set a variable to the value of a JSON text, or to a text. */
void ggtok_chat_set_json(jinja_env *env, const char *name, const char *json);
void ggtok_chat_set_text(jinja_env *env, const char *name, const char *text);

/* Returns how the template used the value at a path, "messages.1.tool_calls"; 0 if there is none.
 * For a path that is only a name, the variable's last value counts. */
unsigned ggtok_chat_notes_at(const chat_probe *p, const char *path);

#endif
