/*
 * Chat requests: messages, tools and options become a prompt, as llama-server or transformers makes
 * it, and then text or ids.
 *
 *     JSON or Python objects --reader--> values      a request: a dict, as in OpenAI's chat API
 *     request --policy--> variables                  llama_server.c, transformers.c
 *     variables --template--> prompt                 jinja/: a text with labels
 *     prompt --finishing--> prompt --encode.c--> ids prompt.c: continued answers, turns, BOS and EOS
 *
 * A policy is a compiled template with all that is known about it: what it supports (caps.c), how it
 * writes reasoning (reasoning.c), and the family whose rules apply to it (families.c). It is
 * immutable; any number of threads may use it.
 *
 * All values of a request are in the arena of the env that renders it. Functions without a status
 * jump on failure, as those of jinja/core/arena.h do.
 */
#ifndef GGTOK_CHAT_CHAT_H
#define GGTOK_CHAT_CHAT_H

#include "jinja/core/jinja.h"

/* ---- words of error messages ---- */

/* How messages name the types of values and the path to a field, which depends on the language in
 * which the request was written. */
typedef enum chat_language {
    CHAT_JSON,        /* messages[0].content must be a string, not an array */
    CHAT_PYTHON,      /* messages[0]['content'] must be str, not list */
    CHAT_LLAMA_SERVER /* the messages and statuses of llama-server, where it has any */
} chat_language;

/* ---- the template ---- */

/* What a template supports, as in chat_template_caps of llama-server's /props. */
typedef struct chat_caps {
    bool string_content, typed_content, tools, tool_calls, parallel_tool_calls, system_role,
        preserve_reasoning, reasoning_effort, object_arguments;
} chat_caps;

/* Finds out by test renderings, at time `now`, what a template in llama.cpp's dialect supports. */
ggtok_status ggtok_chat_find_caps(const jinja_template *t, const jinja_time *now, chat_caps *out,
                                  jinja_error *err);

/* Variables that decide whether earlier reasoning is kept, each with the value that keeps it. */
typedef struct chat_preserving {
    const char *name;
    bool keeps;
} chat_preserving;
enum { CHAT_N_PRESERVING = 4, CHAT_N_EFFORTS = 2 };
extern const chat_preserving ggtok_chat_preserving[CHAT_N_PRESERVING];
/* Variables for the effort of reasoning. */
extern const char *const ggtok_chat_efforts[CHAT_N_EFFORTS];

/* The texts before and after reasoning, including white space; "" for none. */
typedef struct chat_tags {
    const char *start, *end;
    bool found;
    const char *bad_calls; /* the error in the JSON of the template's tool calls, or NULL */
} chat_tags;

/* Finds the tags by comparing test renderings at time `now`. `source` is the template's (with the
 * lexer's line breaks); the texts of *out are in `mem`. */
ggtok_status ggtok_chat_find_tags(const jinja_template *t, const char *source, size_t n,
                                  const chat_caps *caps, const char *bos, const char *eos,
                                  const jinja_time *now, jinja_arena *mem, chat_tags *out,
                                  jinja_error *err);

/* ---- a request ---- */

typedef struct chat_family chat_family;

/* A request while it is read and rendered. */
typedef struct chat_call {
    jinja_arena *mem; /* the env's arena */
    chat_language language;
} chat_call;

/* Why a request is refused. */
typedef enum chat_fault {
    CHAT_WRONG_VALUE,    /* Python: InvalidValueError; llama-server: status 500 */
    CHAT_WRONG_TYPE,     /* Python: InvalidTypeError; llama-server: status 500 */
    CHAT_BAD_REQUEST = 2 /* a flag: llama-server answers with status 400 */
} chat_fault;

/* Refuses a request: fails with GGTOK_ERR_ARGUMENT and this fault. The message is formatted; in
 * llama-server's language it is `says`, unless that is NULL, followed by the formatted message if
 * `says` ends with a space. */
_Noreturn void ggtok_chat_refuse(const chat_call *c, unsigned fault, const char *says,
                                 const char *format, ...) JINJA_PRINTF(4, 5);
/* Returns the name of a value's type in the request's language: "str", "a string"... */
const char *ggtok_chat_type_name(const chat_call *c, jinja_value v);
/* Words that differ between languages: "a string" or "str". */
typedef enum chat_word {
    CHAT_A_STRING,
    CHAT_AN_OBJECT,
    CHAT_AN_ARRAY,
    CHAT_NULL,
    CHAT_TRUE,
    CHAT_FALSE
} chat_word;
const char *ggtok_chat_word(const chat_call *c, chat_word word);

/* The path to a value in a request, for error messages; a step is a name or an index. */
typedef struct chat_path {
    const struct chat_path *parent; /* NULL: `name` is a field of the request */
    const char *name;               /* NULL: an index */
    size_t index;
} chat_path;
/* Writes a path in the request's language, messages[0].content or messages[0]['content'], and sets
 * the error's key to it. */
const char *ggtok_chat_path(const chat_call *c, const chat_path *path);

/* ---- texts ---- */

/* The origin of a text: a field of a message. The labels of its bytes are JINJA_ORIGIN(number). */
typedef struct chat_origin {
    uint32_t message;
    const jinja_text *field;
} chat_origin;

/* Returns a text that counts as the template's own. `s` must outlive the arena. */
jinja_text *ggtok_chat_own(jinja_arena *mem, const char *s);
static inline jinja_value chat_own_value(jinja_arena *mem, const char *s) {
    return jinja_of_text(ggtok_chat_own(mem, s));
}
/* Returns a dict's value for a constant name, or JINJA_ABSENT; the value of anything but a dict is
 * absent. */
jinja_value ggtok_chat_get(jinja_arena *mem, jinja_value dict, const char *name);
/* Whether a text equals / contains a constant. */
static inline bool chat_is(const jinja_text *t, const char *s) {
    return t && ggtok_jinja_text_is(t, s);
}
/* Returns a value's text if it is a string, else NULL. */
static inline jinja_text *chat_text(jinja_value v) {
    return v.type == JINJA_STRING ? v.as.text : NULL;
}
/* Whether a UTF-8 decoder accepts the text. */
bool ggtok_chat_is_utf8(const jinja_text *t);
/* Whether a text has only white space of C's isspace. */
bool ggtok_chat_is_blank(const jinja_text *t);
/* Removes the white space of C's isspace from both ends. */
jinja_text *ggtok_chat_strip(jinja_arena *mem, jinja_text *t);
/* Whether a text of n bytes contains a constant. */
bool ggtok_chat_contains(const char *text, size_t n, const char *s);
/* Joins parts of content: `separator` (the template's own) comes before each part but the first
 * non-empty one, and not next to a media marker (label JINJA_MEDIA). */
jinja_text *ggtok_chat_join_parts(jinja_arena *mem, const jinja_list *parts, const char *separator,
                                  bool with_media);

/* Copies a dict's entries except those of the NULL-terminated names. */
jinja_dict *ggtok_chat_copy_dict(jinja_arena *mem, const jinja_dict *dict,
                                 const char *const *without);

/* ---- families (families.c) ---- */

/* A message as llama-server reads it. Texts are NULL if the message lacks them. */
typedef struct chat_message {
    jinja_text *role;
    jinja_text *content; /* NULL: none, or `parts` has it */
    jinja_list *parts;   /* texts; media markers have the label JINJA_MEDIA */
    jinja_list *calls;   /* dicts {type, function: {name, arguments}, id} */
    jinja_text *reasoning, *name, *call_id;
    uint32_t n_media;
    jinja_dict *plain; /* the message itself if it already has the written form, else NULL */
} chat_message;

/* The beginning of an answer to be continued, and its context. */
typedef struct chat_answer {
    const chat_message *message;
    bool in_content;         /* whether the content is continued, not the reasoning */
    const char *source;      /* the template's */
    const jinja_dict *given; /* the request's variables */
    bool thinking;
} chat_answer;

/* The text before the reasoning, and the text between the reasoning and the content. */
typedef struct chat_opening {
    const char *before, *between;
} chat_opening;

/* A row of llama-server's special rules for a family of templates. */
struct chat_family {
    const char *name;           /* for people: "gpt-oss" */
    const char *const *present; /* texts in the source; NULL-terminated */
    const char *const *absent;  /* texts that are not in it; NULL-terminated, or NULL */
    chat_opening opening;
    chat_opening (*opening_of)(const chat_call *c, const chat_answer *answer); /* or NULL */
    bool reasons;        /* enable_thinking defaults to true; a continued answer is written with its
                            reasoning */
    bool always_content; /* write the content even if the reasoning is continued */
    bool after_prompt;   /* write the opening after the template's own generation prompt */
    /* Changes the list of written messages in place or returns a new one; NULL: no change. */
    jinja_list *(*change_messages)(const chat_call *c, jinja_list *messages,
                                   const jinja_dict *given);
    /* If a prompt without generation prompt has `last` as its last occurrence, it becomes
     * `replacement`. NULL: no change. */
    const char *last, *replacement;
    /* If a prompt with a generation prompt, or before a continued answer, ends with `turn`,
     * `answer` is appended. NULL: no change. */
    const char *turn, *answer;
    const char *schema_variable; /* the variable that gets the schema of response_format, or NULL */
    const char *const *reads;    /* variables that the family reads and that must be strings */
};

/* Returns the first family whose texts fit the source, or NULL. */
const chat_family *ggtok_chat_find_family(const char *source, size_t n);
/* Whether all of `present` and none of `absent` (may be NULL) are in the source. */
bool ggtok_chat_fits(const char *source, size_t n, const char *const *present,
                     const char *const *absent);
/* Returns the i-th family, or NULL: for tests. */
const chat_family *ggtok_chat_family_at(size_t i);

/* ---- bodies of other APIs (anthropic.c, responses.c) ---- */

/* Convert a body to one of OpenAI's chat API, as llama-server does. */
jinja_value ggtok_chat_from_anthropic(const chat_call *c, jinja_value body);
jinja_value ggtok_chat_from_responses(const chat_call *c, jinja_value body);

/* ---- JSON (jinja/core/json_writer.c) ---- */

/* Writes compact JSON as llama-server's library does: ggtok_jinja_write_json in
 * jinja/core/jinja.h. */

#endif
