/* Chat requests for Python; see chat.c. */
#ifndef GGTOK_PYTHON_CHAT_H
#define GGTOK_PYTHON_CHAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ggtok.h"

/* What a call returns for each conversation. ggtok/native/chat_calls.py exports these constants and the
 * bits below to Python. */
typedef enum ggtok_chat_want {
    GGTOK_CHAT_IDS,   /* a list of ids */
    GGTOK_CHAT_COUNT, /* the number of ids */
    GGTOK_CHAT_TEXT,  /* the text */
    /* (text, ranges of the template's own text, generated ranges, ranges of media markers, origins:
     * a list of (end, message index or None, field or None)) */
    GGTOK_CHAT_PROMPT,
    GGTOK_CHAT_VARIABLES /* a dict of the variables that the template gets */
} ggtok_chat_want;

typedef enum ggtok_chat_bits {
    GGTOK_CHAT_TRUSTED = 1 << 0,      /* parse control tokens in messages, too */
    GGTOK_CHAT_NO_PREFILL = 1 << 1,   /* don't continue an assistant's last message */
    GGTOK_CHAT_ALLOW_EMPTY = 1 << 2,  /* render even an empty list of messages */
    GGTOK_CHAT_BEFORE_MORE = 1 << 3,  /* a prompt to compare with a longer one */
    GGTOK_CHAT_SERVER = 1 << 4,       /* refuse requests in llama-server's words */
    GGTOK_CHAT_ANTHROPIC = 1 << 5,    /* the request is Anthropic's, for its Messages API */
    GGTOK_CHAT_RESPONSES = 1 << 6,    /* the request is for OpenAI's Responses API */
    GGTOK_CHAT_KEEP_ENDS = 1 << 7,    /* keep BOS and EOS in the prompt */
    GGTOK_CHAT_SKIP_UNKNOWN = 1 << 9, /* drop parts of unknown types in messages */
    GGTOK_CHAT_SKIP_MEDIA = 1 << 10,  /* drop all parts that aren't text */
    /* Leave the lists of ids untracked by the garbage collector; call entry.c's `track` once all
     * are made. */
    GGTOK_CHAT_UNTRACKED = 1 << 11
} ggtok_chat_bits;

/* Functions that entry.c binds; `self` is the tokenizer's capsule. */
PyObject *ggtok_python_chat_compile(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *ggtok_python_chat(PyObject *self, PyObject *const *args, Py_ssize_t n);

/* Appends a function that converts bodies to the list, and sets the function that converts objects
 * of other types to plain ones. */
bool ggtok_chat_bind(uintptr_t list, uintptr_t to_plain);

#endif
