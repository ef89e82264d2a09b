/*
 * A template engine for chat templates in two dialects: llama.cpp's (build b11549), and jinja2's as
 * transformers configures it.
 *
 *     compile:  source --lexer--> tokens --parser--> tree          (jinja_template)
 *     render:   tree + values --eval, exec--> text with origins    (jinja_env)
 *
 *     jinja_template *t;
 *     jinja_env *env;
 *     jinja_error err;
 *     jinja_result out;
 *     if (ggtok_jinja_compile(source, n, JINJA_LLAMA_CPP, &t, &err)) ...err.message, err.line...
 *     if (ggtok_jinja_env_new(&options, &env, &err)) ...
 *     if (ggtok_jinja_env_json(env, json, n_json, &err)) ...   an object: its fields are variables
 *     if (ggtok_jinja_render(env, t, &out, &err)) ...
 *     ...out.text, out.n, out.from_template[0 .. out.n_from_template)...
 *     ggtok_jinja_env_free(env);                               also frees `out`
 *     ggtok_jinja_template_free(t);
 *
 * Templates are immutable; any number of threads may render the same one. An env belongs to one
 * thread at a time and holds the values and the result of one rendering, which share one budget of
 * bytes and steps. No function needs Python or depends on the locale.
 *
 * The functions below and those of value.h and text.h create values in the env's arena
 * (ggtok_jinja_env_arena). On failure they jump (longjmp), so call them inside ggtok_jinja_protect
 * (arena.h).
 */
#ifndef GGTOK_JINJA_CORE_JINJA_H
#define GGTOK_JINJA_CORE_JINJA_H

#include "jinja/core/value.h"

typedef struct jinja_template jinja_template;
typedef struct jinja_env jinja_env;

/* ---- templates ---- */

ggtok_status ggtok_jinja_compile(const char *source, size_t n, jinja_dialect dialect,
                                 jinja_template **out, jinja_error *err);
void ggtok_jinja_template_free(jinja_template *t); /* t may be NULL */
jinja_dialect ggtok_jinja_template_dialect(const jinja_template *t);
/* Returns the memory that a template uses, in bytes. */
size_t ggtok_jinja_template_memory(const jinja_template *t);
/* Returns the name of the i-th variable that the template reads, or NULL past the end. The names
 * are sorted; global functions and constants are not among them. */
const jinja_text *ggtok_jinja_template_variable(const jinja_template *t, size_t i);
/* Whether the template reads a variable of this name. */
bool ggtok_jinja_template_reads(const jinja_template *t, const char *name);

/* ---- one rendering ---- */

/* The time that strftime_now formats. */
typedef struct jinja_time {
    int year, month, day, hour, minute, second, microsecond; /* month: 1 to 12 */
    int utc_offset;                                          /* seconds east of Greenwich */
    bool has_zone; /* whether utc_offset and zone are known; false for Python's naive times */
    char zone[40]; /* abbreviation of the time zone; "" if none */
    int is_dst;
} jinja_time;

typedef struct jinja_options {
    size_t n_input; /* bytes of input: each started megabyte adds to the budget */
    jinja_time now;
    bool probe; /* record how values are used; see ggtok_jinja_env_notes */
} jinja_options;

ggtok_status ggtok_jinja_env_new(const jinja_options *options, jinja_env **out, jinja_error *err);
void ggtok_jinja_env_free(jinja_env *env);
/* Adds n bytes to the input size that determines the budget. */
void ggtok_jinja_env_grow(jinja_env *env, size_t n);
jinja_arena *ggtok_jinja_env_arena(jinja_env *env);

/* Sets a variable; copies the name. Jumps on failure. */
void ggtok_jinja_env_set(jinja_env *env, const char *name, size_t n, jinja_value value);

/* Reads JSON as llama.cpp does (JINJA_LLAMA_CPP: unsigned integers beyond int64 wrap around, larger
 * ones become floats; a byte order mark is skipped) or as Python's json module does (integers of any size, NaN and Infinity). All
 * strings get `label` (text.h). Jumps on failure. */
jinja_value ggtok_jinja_read_json(jinja_arena *mem, const char *json, size_t n, jinja_label label,
                                  jinja_dialect dialect);

/* Reads a text that may be JSON. If it isn't, returns false and says why in *err; jumps on other
 * failures. */
bool ggtok_jinja_read_if_json(jinja_arena *mem, const char *json, size_t n, jinja_label label,
                              jinja_dialect dialect, jinja_value *out, jinja_error *err);

/* Writes compact JSON as llama.cpp's JSON library. The text counts as data. */
jinja_text *ggtok_jinja_write_json(jinja_arena *mem, jinja_value v);

/* Sets the fields of a JSON object as variables. Their strings count as data, not as text from the
 * template. */
ggtok_status ggtok_jinja_env_json(jinja_env *env, const char *json, size_t n, jinja_dialect dialect,
                                  jinja_error *err);

typedef struct jinja_result {
    const char *text; /* UTF-8, unless a template in llama.cpp's dialect split a character */
    size_t n;
    ggtok_range *from_template; /* ranges that the template wrote, for ggtok_encode_trusted */
    size_t n_from_template;
    ggtok_range *generated; /* ranges inside {% generation %} */
    size_t n_generated;
} jinja_result;

ggtok_status ggtok_jinja_render(jinja_env *env, const jinja_template *t, jinja_result *out,
                                jinja_error *err);
/* Like ggtok_jinja_render, but the result is a text, in which each part has its label. */
ggtok_status ggtok_jinja_render_text(jinja_env *env, const jinja_template *t, jinja_text **out,
                                     jinja_error *err);
/* Returns the ranges of the text whose labels have a bit of `mask`. Adjacent ranges are merged. */
ggtok_range *ggtok_jinja_ranges(jinja_arena *mem, const jinja_text *t, jinja_label mask, size_t *n);

/* ---- probes: how a template used a value (llama.cpp's capability checks) ---- */

typedef enum jinja_note {                               /* bits, with llama.cpp's names */
                          JINJA_NOTE_USED = 1,          /* stats.used */
                          JINJA_NOTE_ARRAY_ACCESS = 2,  /* "array_access" */
                          JINJA_NOTE_OBJECT_ACCESS = 4, /* "object_access" */
                          JINJA_NOTE_IS_STRING = 8,     /* "test_is_string" */
                          JINJA_NOTE_SELECTATTR = 16    /* "selectattr" */
} jinja_note;

/* Returns what a rendering with options.probe, even a failed one, noted about a variable's value or
 * a value inside it; 0 if the template never used it. Notes are stored by id, and
 * ggtok_jinja_env_set assigns the ids, so get the value with ggtok_jinja_env_get and
 * ggtok_jinja_dict_get. */
unsigned ggtok_jinja_env_notes(const jinja_env *env, jinja_value value);
/* Returns a variable as it was set or, with `after`, as the rendering left it at the top level;
 * JINJA_ABSENT if it has no value. */
jinja_value ggtok_jinja_env_get(jinja_env *env, const char *name, size_t n, bool after);

#endif
