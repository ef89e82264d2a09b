/* Policies and the requests that they read, shared by the files of this folder. */
#ifndef GGTOK_CHAT_POLICY_H
#define GGTOK_CHAT_POLICY_H

#include "chat/chat.h"
#include "ggtok_chat.h"

/* ---- names that requests and templates use often ---- */

#define CHAT_NAMES(X) \
    X(ROLE, "role") \
    X(CONTENT, "content") \
    X(REASONING, "reasoning_content") \
    X(TOOL_CALLS, "tool_calls") \
    X(NAME, "name") \
    X(CALL_ID, "tool_call_id") \
    X(TYPE, "type") \
    X(TEXT, "text") \
    X(FUNCTION, "function") \
    X(ARGUMENTS, "arguments") \
    X(ID, "id") \
    X(DESCRIPTION, "description") \
    X(PARAMETERS, "parameters") \
    X(THINKING, "thinking")
#define CHAT_NAME_ENUM(name, text) CHAT_##name,
enum { CHAT_NAMES(CHAT_NAME_ENUM) CHAT_N_NAMES };

/* The part of a request that a policy reads. A reader may skip all else: the keys of a dict that
 * have no row. */
typedef struct chat_shape {
    const char *key;                /* NULL: the end of the rows */
    uint8_t n;                      /* length of `key` */
    uint8_t name;                   /* its index in CHAT_NAMES */
    const struct chat_shape *value; /* the shape of a dict; NULL: read the whole value */
    const struct chat_shape *items; /* the shape of the dicts in a list; NULL: read them whole */
} chat_shape;
extern const chat_shape ggtok_chat_message_shape[], ggtok_chat_tool_shape[];

/* ---- policies ---- */

enum { CHAT_N_TOKENS = 6 };

/* What the tokenizer's file contributes to prompts. */
typedef struct chat_file {
    jinja_text *tokens[CHAT_N_TOKENS]; /* bos_token, eos_token, ...; NULL: no such token */
    bool adds_bos, adds_eos;           /* encoding adds these tokens, so prompts don't */
    jinja_value names[CHAT_N_NAMES];
} chat_file;
/* The variables' names: "bos_token"... */
extern const char *const ggtok_chat_token_names[CHAT_N_TOKENS];

/* A compiled template, and what is known about it; immutable. */
typedef struct chat_policy {
    jinja_arena mem; /* holds `source` and the texts of `tags` */
    const chat_file *file;
    ggtok_chat_like like;
    jinja_template *t;
    const char *source; /* with the lexer's line breaks */
    size_t n_source;
    bool timed; /* the template may read the time */
    /* For llama-server only: */
    chat_caps caps;
    const chat_family *family; /* NULL: none */
    chat_tags tags;
    bool thinks;             /* the default of enable_thinking */
    bool renames_developers; /* the role `developer` becomes `system` */
    bool trims;              /* contents lose the white space at their ends */
    bool renders_both;       /* a request fails if the prompt with the opposite
                                add_generation_prompt fails */
} chat_policy;

/* Creates a policy from a template's source. `patches`: as the server patches the file's default
 * template; `now`: the time at which it would start. */
ggtok_status ggtok_chat_llama_server_new(const chat_file *file, const char *source, size_t n,
                                         bool patches, const jinja_time *now, chat_policy **out,
                                         jinja_error *err);
ggtok_status ggtok_chat_transformers_new(const chat_file *file, const char *source, size_t n,
                                         chat_policy **out, jinja_error *err);
void ggtok_chat_policy_free(chat_policy *p); /* `p` may be NULL */
/* Returns the name of the i-th variable that affects llama-server's prompts without being read by
 * the template, or NULL. */
const char *ggtok_chat_spread_name(const chat_policy *p, size_t i);
/* Allocates a policy and compiles its template. */
ggtok_status ggtok_chat_policy_new(const chat_file *file, ggtok_chat_like like, const char *source,
                                   size_t n, chat_policy **out, jinja_error *err);

/* A chat: the policy for requests without tools, and the one for requests with tools if the file
 * has a separate template for them. */
struct ggtok_chat {
    jinja_arena mem; /* holds `file`'s texts */
    const ggtok_tokenizer *tok;
    chat_file file;
    ggtok_chat_like like;
    chat_policy *policies[2]; /* NULL: see `errors` */
    jinja_error errors[2];
    bool has_tool_template;
};

/* ggtok_chat_new with the engine's error. */
ggtok_status ggtok_chat_compile(const ggtok_tokenizer *tok, const ggtok_chat_options *options,
                                const jinja_time *now, ggtok_chat **out, jinja_error *err);
/* Returns the present local time, with its zone. */
jinja_time ggtok_chat_present_time(void);
/* Returns the policy for requests with or without tools; NULL if its template failed. */
const chat_policy *ggtok_chat_policy_for(const ggtok_chat *chat, bool tools);

/* ---- requests ---- */

/* The API for which a request is. */
typedef enum chat_api { CHAT_COMPLETIONS, CHAT_ANTHROPIC, CHAT_RESPONSES } chat_api;

typedef struct chat_options {
    chat_language language;
    chat_api api;
    const char *marker; /* represents images, audio and video in prompts */
    size_t n_marker;
    jinja_time now;
    bool keeps_last;  /* llama-server's --no-prefill-assistant: doesn't continue an assistant's last
                         message */
    bool allow_empty; /* renders even a conversation without messages */
    bool skips_unknown;  /* parts of unknown types in messages are dropped... */
    bool skips_media;    /* ... and so are images, audio and video */
    bool keep_ends;      /* keeps BOS and EOS */
    bool only_variables; /* doesn't render */
    bool as_text;        /* for text: transformers' prompts keep BOS and EOS */
    bool before_more;    /* for a prompt to compare with a longer one: keeps EOS (transformers: and
                         BOS) */
} chat_options;

/* A request while it is read and rendered. */
typedef struct chat_job {
    jinja_env *env, *other; /* other: the rendering with the opposite add_generation_prompt */
    jinja_value body;       /* the request: a dict. A reader sets it */
    jinja_value named;      /* variables that the caller named; absent or a dict */
    const ggtok_chat *chat;
    const chat_options *options;
    const chat_policy *policy;
    const jinja_template *template; /* rendered instead of the policy's; NULL: the policy's */
    jinja_text *prompt;
    chat_origin *origins; /* number k is origins[k - 1] */
    uint32_t n_origins, cap_origins;
    uint32_t n_media; /* parts that are images, audio or video */
    bool is_empty;    /* llama-server: the request has no messages */
    bool has_text;    /* a message has text that isn't only white space */
    jinja_error error;
} chat_job;

/* The request's context for the functions that jump. */
typedef struct chat_run {
    chat_call call; /* must be first */
    chat_job *job;
    const chat_policy *p;
    const jinja_value *names;
} chat_run;

/* Creates the env. The caller then sets `body` and `named` to values in the env's arena, and either
 * `policy` or `chat`, and calls ggtok_chat_render_job. Call ggtok_chat_end also after a failure. */
ggtok_status ggtok_chat_begin(chat_job *job, const chat_options *options, size_t n_input);
/* Parses a request's JSON; refuses text that isn't JSON, and values nested too deep. */
jinja_value ggtok_chat_parsed(const chat_call *c, ggtok_chat_like like, const char *json, size_t n);
/* Reads a request's JSON into the job. */
ggtok_status ggtok_chat_read_json(chat_job *job, ggtok_chat_like like, const char *json, size_t n);
/* Makes the prompt. After a failure, job->error describes it. */
ggtok_status ggtok_chat_render_job(chat_job *job);
void ggtok_chat_end(chat_job *job);

/* Sets up the env for rendering, renders, and finishes the prompt. */
jinja_text *ggtok_chat_llama_server_prompt(chat_run *r);
jinja_text *ggtok_chat_transformers_prompt(chat_run *r);

/* Renders the policy's template. */
jinja_text *ggtok_chat_rendered(chat_run *r, jinja_env *env);
/* Creates job->other with the variables of the job's env and, with `generation`,
 * add_generation_prompt. */
jinja_env *ggtok_chat_copy_env(chat_run *r, bool generation);

/* Returns the label of texts in a field of a message. */
jinja_label ggtok_chat_origin_label(chat_run *r, uint32_t message, const jinja_text *field);
/* Sets the label of all texts in a value; keys stay unlabelled. */
void ggtok_chat_label(chat_run *r, jinja_value v, jinja_label label);
/* Whether a role counts as the template's own text. */
bool ggtok_chat_is_own_role(const jinja_text *role);

/* Maximum nesting of lists and dicts in a request, including the request, its list of messages and
 * the message: 90 levels are left for a field of a message. */
enum { CHAT_MAX_DEPTH = 93 };
/* Refuses a value, which is in `level` lists and dicts, if it nests deeper than CHAT_MAX_DEPTH. */
void ggtok_chat_check_depth(const chat_call *c, jinja_value v, const chat_path *at, int level);

/* Returns a request's list of messages; refuses anything else. */
jinja_list *ggtok_chat_messages(chat_run *r);
/* Returns chat_template_kwargs with the named variables; empty if there are none. */
jinja_dict *ggtok_chat_variables(chat_run *r);

/* ---- messages for llama-server (messages.c) ---- */

void ggtok_chat_read_message(chat_run *r, jinja_value v, uint32_t index, chat_message *out);
/* Converts a message to the form that the template supports. `index` is for error messages. */
jinja_dict *ggtok_chat_write_message(chat_run *r, const chat_message *m, uint32_t index);
/* Returns the tools with the fields that the server uses; NULL if there are none. */
jinja_list *ggtok_chat_read_tools(chat_run *r, jinja_value tools);
/* Checks a message in llama-server's language, before any message is read. */
void ggtok_chat_check_message(chat_run *r, jinja_value v);
/* Whether a part of a message is an image, audio or video in llama-server / in transformers. */
bool ggtok_chat_is_media(jinja_value part, ggtok_chat_like like, jinja_arena *mem);

/* ---- prompts (prompt.c) ---- */

/* Whether all of bytes [begin, end) have the label. */
bool ggtok_chat_covers(const jinja_text *t, size_t begin, size_t end, jinja_label label);
/* Removes BOS from the start and EOS from the end; with `only_own`, only if the template wrote
 * them. */
jinja_text *ggtok_chat_drop_ends(jinja_arena *mem, jinja_text *t, const jinja_text *bos,
                                 const jinja_text *eos, bool only_own);
/* Appends `answer` if the prompt ends with `turn`. */
jinja_text *ggtok_chat_end_turn(jinja_arena *mem, jinja_text *t, const char *turn,
                                const char *answer);
/* Replaces the last occurrence of `last`. */
jinja_text *ggtok_chat_replace_last(jinja_arena *mem, jinja_text *t, const char *last,
                                    const char *replacement);

/* Whether messages have text, but the job's prompt has none of it. */
bool ggtok_chat_is_silent(const chat_job *job);
/* Returns the origin of a part of the job's prompt, without `begin`. */
ggtok_origin ggtok_chat_origin_of(const chat_job *job, size_t part);

/* ---- ids (encode.c) ---- */

/* Converts a request's error to the public one; returns its status. */
ggtok_status ggtok_chat_public_error(const jinja_error *from, ggtok_error *err);

/* Finds the media markers in the prompt: ranges of bytes. */
ggtok_status ggtok_chat_find_media(chat_job *job, ggtok_range **out, size_t *n);
/* Encodes the prompt as llama-server does: texts between media markers separately. The ids are in
 * the context. */
ggtok_status ggtok_chat_encode_job(chat_job *job, ggtok_context *ctx, unsigned flags, bool trusted,
                                   ggtok_ids *out, ggtok_error *err);

#endif
