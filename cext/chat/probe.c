#include "chat/probe.h"

typedef struct setup {
    jinja_env *env;
    void (*set)(jinja_env *env, const void *user);
    const void *user;
} setup;

static void set_variables(jinja_arena *mem, void *user) {
    const setup *s = user;
    (void)mem;
    s->set(s->env, s->user);
}

ggtok_status ggtok_chat_probe(chat_probe *p, void (*set)(jinja_env *env, const void *user),
                              const void *user, jinja_error *err) {
    const jinja_options options = {.now = *p->now, .probe = true};
    ggtok_chat_end_probe(p);
    ggtok_status status = ggtok_jinja_env_new(&options, &p->env, err);
    setup s = {p->env, set, user};
    if (!status) {
        status = ggtok_jinja_protect(ggtok_jinja_env_arena(p->env), set_variables, &s, err);
    }
    if (!status) status = ggtok_jinja_render_text(p->env, p->t, &p->text, err);
    if (p->text && !ggtok_chat_is_utf8(p->text)) p->text = NULL;
    return status == GGTOK_ERR_MEMORY ? status : GGTOK_OK;
}

void ggtok_chat_end_probe(chat_probe *p) {
    ggtok_jinja_env_free(p->env);
    p->env = NULL;
    p->text = NULL;
}

void ggtok_chat_set_json(jinja_env *env, const char *name, const char *json) {
    jinja_arena *mem = ggtok_jinja_env_arena(env);
    jinja_value v = ggtok_jinja_read_json(mem, json, strlen(json), 0, JINJA_LLAMA_CPP);
    ggtok_jinja_env_set(env, name, strlen(name), v);
}

void ggtok_chat_set_text(jinja_env *env, const char *name, const char *text) {
    jinja_arena *mem = ggtok_jinja_env_arena(env);
    jinja_text *copy = ggtok_jinja_text_copy(mem, text, strlen(text), 0);
    ggtok_jinja_env_set(env, name, strlen(name), jinja_of_text(copy));
}

/* Returns the value of a key or, in a list, at an index of one digit; or JINJA_ABSENT. */
static jinja_value step(jinja_value v, const char *key, size_t n) {
    if (v.type == JINJA_LIST) {
        uint32_t index = (uint32_t)(key[0] - '0');
        return index < v.as.list->n ? v.as.list->data[index] : jinja_absent();
    }
    for (uint32_t i = 0; v.type == JINJA_DICT && i < v.as.dict->n; i++) {
        const jinja_text *name = v.as.dict->entries[i].key.as.text;
        if (v.as.dict->entries[i].key.type != JINJA_STRING || name->n != n) continue;
        if (!memcmp(name->data, key, n)) return v.as.dict->entries[i].value;
    }
    return jinja_absent();
}

unsigned ggtok_chat_notes_at(const chat_probe *p, const char *path) {
    size_t n = strcspn(path, ".");
    if (!p->env) return 0;
    jinja_value v = ggtok_jinja_env_get(p->env, path, n, !path[n]);
    while (path[n]) {
        path += n + 1;
        n = strcspn(path, ".");
        v = step(v, path, n);
    }
    return ggtok_jinja_env_notes(p->env, v);
}
