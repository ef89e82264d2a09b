/*
 * Chat: messages, tools and options to prompts and ids, as llama-server (build b11549) or
 * transformers makes them from the chat template in the model's file.
 *
 *     const char request[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}";
 *     ggtok_chat *chat;
 *     ggtok_ids ids;
 *     if (ggtok_chat_new(tok, NULL, &chat, &err)) { puts(err.message); return 1; }
 *     if (ggtok_chat_encode(ctx, chat, request, strlen(request), NULL, &ids, &err)) ...
 *     ggtok_chat_free(chat);
 *
 * A request is JSON: an object with `messages` and the other fields of OpenAI's chat API that
 * llama-server reads (tools, tool_choice, response_format, add_generation_prompt,
 * continue_final_message, chat_template_kwargs, reasoning_effort, ...).
 *
 * No message, tool or variable can produce a control token: control tokens are parsed only in text
 * that the template itself wrote, unless ggtok_chat_call.trusted is set.
 *
 * Contents
 *   - options and templates: ggtok_chat_new, ggtok_chat_variable, ggtok_chat_reads_time
 *   - prompts: ggtok_chat_render, ggtok_prompt_text, ggtok_prompt_origins
 *   - ids: ggtok_chat_encode, ggtok_chat_count
 *
 * Conventions are those of ggtok.h. Errors of requests have status GGTOK_ERR_ARGUMENT, and
 * err->key is the path of the field at fault (messages[1].content). Errors of templates have status
 * GGTOK_ERR_TEMPLATE and, in err->line, the template's line.
 */
#ifndef GGTOK_CHAT_H
#define GGTOK_CHAT_H

#include "ggtok.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A local time. */
typedef struct ggtok_time {
    int year, month, day, hour, minute, second, microsecond; /* month and day: from 1 */
    const char *zone; /* abbreviation of the time zone, or NULL if it is unknown */
    int utc_offset;   /* with `zone`: seconds east of Greenwich */
    int is_dst;       /* nonzero: daylight saving time */
} ggtok_time;

/* The program whose prompts are made. */
typedef enum ggtok_chat_like {
    GGTOK_LIKE_LLAMA_SERVER = 0,
    GGTOK_LIKE_TRANSFORMERS = 1 /* apply_chat_template */
} ggtok_chat_like;

typedef struct ggtok_chat_options {
    ggtok_chat_like like;
    const char *template_source; /* a template, or the name of one of the file's; NULL: the file's
                                    default (llama-server: ChatML if it has none) */
    size_t n_template;           /* length of template_source in bytes */
    const ggtok_time *now;       /* the time at which llama-server starts, since some templates
                                    refuse times; NULL: the present */
} ggtok_chat_options;

/* A compiled template of a tokenizer. It is immutable: any number of threads may use it. Free it
 * before the tokenizer. */
typedef struct ggtok_chat ggtok_chat;

/* Compiles a chat. `options` may be NULL. Fails if llama-server wouldn't start with the
 * template. */
GGTOK_API ggtok_status ggtok_chat_new(const ggtok_tokenizer *tok, const ggtok_chat_options *options,
                                      ggtok_chat **out, ggtok_error *err);
GGTOK_API void ggtok_chat_free(ggtok_chat *chat); /* `chat` may be NULL */

/* Returns the memory that a chat uses, in bytes. */
GGTOK_API size_t ggtok_chat_memory(const ggtok_chat *chat);
/* Returns the name of the i-th variable that requests can set in chat_template_kwargs with effect,
 * or an empty text past the end. `tools`: for requests with tools. */
GGTOK_API ggtok_bytes ggtok_chat_variable(const ggtok_chat *chat, bool tools, size_t i);
/* Whether a prompt may depend on the time. */
GGTOK_API bool ggtok_chat_reads_time(const ggtok_chat *chat);

#define GGTOK_MEDIA_MARKER "<__media__>" /* the default of media_marker, as in llama.cpp's mtmd */

/* How to read one request. Zero it for the defaults. */
typedef struct ggtok_chat_call {
    const ggtok_time *now;    /* the local time that templates see; NULL: the present */
    bool trusted;             /* parse control tokens in messages, too, as llama-server does */
    bool plain_user_defined;  /* GGTOK_PLAIN_USER_DEFINED of ggtok_encode_trusted */
    bool no_prefill;          /* llama-server's --no-prefill-assistant */
    const char *media_marker; /* the text that represents an image, audio or video, NUL-terminated;
                                 NULL: GGTOK_MEDIA_MARKER */
} ggtok_chat_call;

/* A prompt. */
typedef struct ggtok_prompt ggtok_prompt;

/* Makes the prompt of a request. `call` may be NULL. */
GGTOK_API ggtok_status ggtok_chat_render(const ggtok_chat *chat, const char *json, size_t n,
                                         const ggtok_chat_call *call, ggtok_prompt **out,
                                         ggtok_error *err);
GGTOK_API void ggtok_prompt_free(ggtok_prompt *prompt); /* `prompt` may be NULL */
GGTOK_API ggtok_bytes ggtok_prompt_text(const ggtok_prompt *prompt);
/* Returns the number of images, audio and video in the request's messages. */
GGTOK_API size_t ggtok_prompt_n_media(const ggtok_prompt *prompt);

/* Where a part of a prompt comes from. */
typedef enum ggtok_origin_kind {
    GGTOK_FROM_TEMPLATE, /* the template, and roles such as `user` */
    GGTOK_FROM_MESSAGE,  /* a field of a message */
    GGTOK_FROM_UNKNOWN   /* tools, variables, and text that the template computed */
} ggtok_origin_kind;

typedef struct ggtok_origin {
    size_t begin, end; /* half-open, in bytes of the text */
    ggtok_origin_kind kind;
    size_t message;    /* GGTOK_FROM_MESSAGE: its index */
    ggtok_bytes field; /* GGTOK_FROM_MESSAGE: the name of its field */
} ggtok_origin;

/* Returns the parts of the text in order, without gaps. Valid as long as the prompt. */
GGTOK_API const ggtok_origin *ggtok_prompt_origins(const ggtok_prompt *prompt, size_t *n);

/* Encodes the prompt of a request as llama-server does: with BOS and EOS as the vocabulary's flags
 * specify, and the texts between media markers separately. Images, audio and video have no ids. */
GGTOK_API ggtok_status ggtok_chat_encode(ggtok_context *ctx, const ggtok_chat *chat,
                                         const char *json, size_t n, const ggtok_chat_call *call,
                                         ggtok_ids *out, ggtok_error *err);

/* Counts the ids that ggtok_chat_encode returns. *n_media (may be NULL) is the number of images,
 * audio and video. */
GGTOK_API ggtok_status ggtok_chat_count(ggtok_context *ctx, const ggtok_chat *chat,
                                        const char *json, size_t n, const ggtok_chat_call *call,
                                        size_t *count, size_t *n_media, ggtok_error *err);

#ifdef __cplusplus
}
#endif
#endif
