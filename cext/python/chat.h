/* Encodes chat conversations in one call; see chat.c. */
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
    GGTOK_CHAT_PROMPTS /* the same three items, then three for the opposite add_generation_prompt */
} ggtok_chat_want;

/* How to prepare messages, render and encode. */
typedef enum ggtok_chat_bits {
    GGTOK_CHAT_TYPED = 1 << 0,        /* turn contents that are strings into lists of one part */
    GGTOK_CHAT_NO_DEVELOPER = 1 << 1, /* turn the role `developer` into `system` */
    GGTOK_CHAT_NO_SYSTEM = 1 << 2,    /* leave a system message at the beginning to Python */
    GGTOK_CHAT_NO_REASONING = 1 << 3, /* leave a message with reasoning to Python */
    GGTOK_CHAT_PREFILL = 1 << 4,      /* leave an assistant's message at the end to Python */
    GGTOK_CHAT_PREPARE_ALL = 1 << 5,  /* leave every conversation to Python */
    GGTOK_CHAT_PREPARED = 1 << 6,     /* messages in a tuple have been prepared by Python */
    GGTOK_CHAT_OWN_MESSAGES = 1 << 7, /* a variable replaces the messages */
    GGTOK_CHAT_GENERATION = 1 << 8,   /* set add_generation_prompt to true */
    GGTOK_CHAT_BOTH = 1 << 9,         /* fail if rendering with the opposite add_generation_prompt
                                         fails */
    GGTOK_CHAT_TRUSTED = 1 << 10,     /* parse control tokens in messages, too */
    /* Leave the lists of ids untracked by the garbage collector; call entry.c's `track` once all
     * are made. */
    GGTOK_CHAT_UNTRACKED = 1 << 11
} ggtok_chat_bits;

/* A function that entry.c binds; `self` is the tokenizer's capsule. */
PyObject *ggtok_py_chat(PyObject *self, PyObject *const *args, Py_ssize_t n);

/* From entry.c: return the tokenizer's pool, an untracked list of ids, and an exception that isn't
 * raised. */
ggtok_pool *ggtok_py_pool(PyObject *self);
PyObject *ggtok_py_list(PyObject *self, const int32_t *ids, size_t n);
PyObject *ggtok_py_error(PyObject *self, const ggtok_error *err);

#endif
