/* What both policies read from a request, and the test of its nesting. */
#include "chat/policy.h"

jinja_list *ggtok_chat_messages(chat_run *r) {
    const chat_call *c = &r->call;
    const chat_path at = {NULL, "messages", 0};
    jinja_value messages = ggtok_chat_get(c->mem, r->job->body, "messages");
    if (messages.type == JINJA_ABSENT) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE | CHAT_BAD_REQUEST, "'messages' is required",
                          "%s are missing", ggtok_chat_path(c, &at));
    }
    if (!jinja_is_array(messages)) {
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE | CHAT_BAD_REQUEST,
                          "Expected 'messages' to be an array", "%s must be %s of mappings, not %s",
                          ggtok_chat_path(c, &at), ggtok_chat_word(c, CHAT_AN_ARRAY),
                          ggtok_chat_type_name(c, messages));
    }
    return messages.as.list;
}

jinja_dict *ggtok_chat_variables(chat_run *r) {
    const chat_call *c = &r->call;
    const chat_path at = {NULL, "chat_template_kwargs", 0};
    jinja_value given = ggtok_chat_get(c->mem, r->job->body, "chat_template_kwargs");
    const jinja_dict *named = r->job->named.type == JINJA_DICT ? r->job->named.as.dict : NULL;
    if (c->language == CHAT_LLAMA_SERVER && given.type != JINJA_DICT) given = jinja_absent();
    if (given.type == JINJA_ABSENT || given.type == JINJA_NONE) {
        given = jinja_of_dict(ggtok_jinja_dict_new(c->mem, named ? named->n : 0));
    } else if (given.type != JINJA_DICT) {
        ggtok_chat_refuse(c, CHAT_WRONG_TYPE, NULL, "%s must be %s, not %s",
                          ggtok_chat_path(c, &at), ggtok_chat_word(c, CHAT_AN_OBJECT),
                          ggtok_chat_type_name(c, given));
    }
    for (uint32_t i = 0; named && i < named->n; i++) {
        ggtok_jinja_dict_set(c->mem, given.as.dict, named->entries[i].key, named->entries[i].value);
    }
    return given.as.dict;
}

void ggtok_chat_check_depth(const chat_call *c, jinja_value v, const chat_path *at, int level) {
    if (v.type != JINJA_DICT && !jinja_is_array(v)) return;
    if (level == CHAT_MAX_DEPTH) {
        ggtok_chat_refuse(c, CHAT_WRONG_VALUE, NULL, "%s: nested more than %d deep",
                          ggtok_chat_path(c, at), CHAT_MAX_DEPTH);
    }
    jinja_enter(c->mem);
    bool is_dict = v.type == JINJA_DICT;
    uint32_t n = is_dict ? v.as.dict->n : v.as.list->n;
    jinja_charge(c->mem, n);
    for (uint32_t i = 0; i < n; i++) {
        ggtok_chat_check_depth(c, is_dict ? v.as.dict->entries[i].value : v.as.list->data[i], at,
                               level + 1);
    }
    jinja_leave(c->mem);
}
