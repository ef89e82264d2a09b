/* Chat conversations to ids in one call; see chat.c. */
#ifndef GGTOK_PYTHON_CHAT_H
#define GGTOK_PYTHON_CHAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ggtok.h"

/* What a call returns for each conversation. ggtok/native/chat.py exports these constants and the
 * bits below to Python. */
typedef enum ggtok_chat_want {
    GGTOK_CHAT_IDS,    /* a list of ids */
    GGTOK_CHAT_COUNT,  /* the number of ids */
    GGTOK_CHAT_TEXT,   /* the text */
    GGTOK_CHAT_PROMPT, /* [text, ranges from the template, generated ranges] */
    GGTOK_CHAT_PROMPTS /* the same, followed by these three with the opposite add_generation_prompt */
} ggtok_chat_want;

/* How to prepare messages, render and encode. */
typedef enum ggtok_chat_bits {
    GGTOK_CHAT_TYPED = 1 << 0,        /* turn string contents into lists of one part */
    GGTOK_CHAT_NO_DEVELOPER = 1 << 1, /* turn the role `developer` into `system` */
    GGTOK_CHAT_NO_SYSTEM = 1 << 2,    /* a system message at the beginning needs Python */
    GGTOK_CHAT_NO_REASONING = 1 << 3, /* a message with reasoning needs Python */
    GGTOK_CHAT_PREFILL = 1 << 4,      /* an assistant's message at the end needs Python */
    GGTOK_CHAT_PREPARE_ALL = 1 << 5,  /* every conversation needs Python */
    GGTOK_CHAT_PREPARED = 1 << 6,     /* Python has prepared the messages that are in a tuple */
    GGTOK_CHAT_OWN_MESSAGES = 1 << 7, /* a variable replaces the messages */
    GGTOK_CHAT_GENERATION = 1 << 8,   /* set add_generation_prompt */
    GGTOK_CHAT_BOTH = 1 << 9,         /* rendering with the opposite must succeed, too */
    GGTOK_CHAT_TRUSTED = 1 << 10,     /* parse control tokens in messages, too */
    /* The collector doesn't track the lists of ids: entry.c's `track` is called when all are made. */
    GGTOK_CHAT_UNTRACKED = 1 << 11
} ggtok_chat_bits;

/* One of the functions that entry.c binds; `self` is the tokenizer's capsule. */
PyObject *ggtok_py_chat(PyObject *self, PyObject *const *args, Py_ssize_t n);

/* From entry.c: the tokenizer's pool, an untracked list of ids, an exception that isn't raised. */
ggtok_pool *ggtok_py_pool(PyObject *self);
PyObject *ggtok_py_list(PyObject *self, const int32_t *ids, size_t n);
PyObject *ggtok_py_error(PyObject *self, const ggtok_error *err);

#endif
