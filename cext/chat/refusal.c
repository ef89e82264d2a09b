/* Refusals of requests, in the words of the request's language. */
#include <stdarg.h>
#include <stdio.h>

#include "chat/chat.h"

void ggtok_chat_refuse(const chat_call *c, unsigned fault, const char *says, const char *format,
                       ...) {
    char text[sizeof c->mem->error->message + 4]; /* ggtok_jinja_fail cuts between characters */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->mem->error->status = GGTOK_ERR_ARGUMENT;
    c->mem->error->fault = (uint8_t)fault;
    c->mem->source = NULL; /* no line of the template is at fault */
    bool by_server = c->language == CHAT_LLAMA_SERVER && says;
    ggtok_jinja_fail(c->mem, "%s%s", by_server ? says : text,
                     by_server && says[strlen(says) - 1] == ' ' ? text : "");
}

const char *ggtok_chat_type_name(const chat_call *c, jinja_value v) {
    bool python = c->language == CHAT_PYTHON;
    switch (v.type) {
    case JINJA_ABSENT: return "missing";
    case JINJA_NONE: return python ? "None" : "null";
    case JINJA_BOOL: return python ? "bool" : "a boolean";
    case JINJA_INT:
    case JINJA_BIG: return python ? "int" : "a number";
    case JINJA_FLOAT: return python ? "float" : "a number";
    case JINJA_STRING: return python ? "str" : "a string";
    case JINJA_LIST: return python ? "list" : "an array";
    case JINJA_TUPLE: return python ? "tuple" : "an array";
    default: return python ? "dict" : "an object";
    }
}

const char *ggtok_chat_word(const chat_call *c, chat_word word) {
    static const char *const words[][2] = {
        [CHAT_A_STRING] = {"a string", "str"},    [CHAT_AN_OBJECT] = {"an object", "a mapping"},
        [CHAT_AN_ARRAY] = {"an array", "a list"}, [CHAT_NULL] = {"null", "None"},
        [CHAT_TRUE] = {"true", "True"},           [CHAT_FALSE] = {"false", "False"},
    };
    return words[word][c->language == CHAT_PYTHON];
}

/* Bytes of a name, and of a whole path, that a message shows. */
enum { NAME_ROOM = 64, PATH_ROOM = 240 };

static int prefix(const char *text, size_t most) {
    return text_prefix(text, strlen(text), most);
}

static size_t write_path(const chat_call *c, const chat_path *path, char *out, size_t room) {
    size_t n = path->parent ? write_path(c, path->parent, out, room) : 0;
    int size;
    if (!path->name)
        size = snprintf(out + n, room - n, "[%zu]", path->index);
    else if (!path->parent)
        size = snprintf(out + n, room - n, "%.*s", prefix(path->name, NAME_ROOM), path->name);
    else
        size = snprintf(out + n, room - n, c->language == CHAT_PYTHON ? "['%.*s']" : ".%.*s",
                        prefix(path->name, NAME_ROOM), path->name);
    return n + (size_t)size;
}

const char *ggtok_chat_path(const chat_call *c, const chat_path *path) {
    if (!path) return "the request";
    size_t room = 1;
    for (const chat_path *step = path; step; step = step->parent) room += NAME_ROOM + 24;
    char *out = jinja_alloc(c->mem, room), *key = c->mem->error->key;
    if (write_path(c, path, out, room) > PATH_ROOM) strcpy(out + prefix(out, PATH_ROOM), "...");
    snprintf(key, sizeof c->mem->error->key, "%.*s", prefix(out, sizeof c->mem->error->key - 1),
             out);
    return out;
}
