/*
 * A template engine for chat templates: llama.cpp's dialect of Jinja as build b11549 runs
 * it, and jinja2's as transformers sets it up.
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
 *     ggtok_jinja_env_free(env);                               `out` goes with it
 *     ggtok_jinja_template_release(t);
 *
 * Templates are immutable and counted: any number of threads may render one. An env belongs
 * to one thread at a time; it holds the values and one rendering's result, under one budget
 * of bytes and of steps. No function needs Python; none keeps the locale's rules.
 *
 * Values are made by the functions of value.h, text.h and below, on the env's arena
 * (ggtok_jinja_env_arena). They fail by jumping, so call them inside ggtok_jinja_protect (arena.h).
 */
#ifndef GGTOK_JINJA_CORE_JINJA_H
#define GGTOK_JINJA_CORE_JINJA_H

#include "jinja/core/value.h"

typedef struct jinja_template jinja_template;
typedef struct jinja_env jinja_env;

/* ---- templates ---- */

ggtok_status ggtok_jinja_compile(const char *source, size_t n, jinja_dialect dialect,
                                 jinja_template **out, jinja_error *err);
/* The same from a cache of the process, bounded in bytes; the caller releases it as well. */
ggtok_status ggtok_jinja_compile_cached(const char *source, size_t n, jinja_dialect dialect,
                                        jinja_template **out, jinja_error *err);
void ggtok_jinja_template_retain(jinja_template *t);
void ggtok_jinja_template_release(jinja_template *t); /* NULL is fine */
jinja_dialect ggtok_jinja_template_dialect(const jinja_template *t);
/* Names that the template reads without giving them a value in every case; i-th, NULL at the end. */
const jinja_text *ggtok_jinja_template_variable(const jinja_template *t, size_t i);
/* Whether it reads a variable of this name. */
bool ggtok_jinja_template_reads(const jinja_template *t, const char *name, size_t n);

/* ---- one rendering ---- */

/* What strftime_now shows. */
typedef struct jinja_time {
    int year, month, day, hour, minute, second, microsecond; /* month from 1 */
    int utc_offset;                                          /* seconds east of Greenwich */
    bool has_zone; /* the offset and zone are known: Python's naive times have none */
    char zone[16]; /* abbreviation, "" if none */
    int is_dst;
} jinja_time;

typedef struct jinja_options {
    size_t n_input; /* bytes of input that the budget is for; up to 1 MB it is one size */
    jinja_time now;
    bool probe; /* keep notes of what is used: jinja_env_note */
} jinja_options;

ggtok_status ggtok_jinja_env_new(const jinja_options *options, jinja_env **out, jinja_error *err);
void ggtok_jinja_env_free(jinja_env *env);
/* The input is n bytes larger than the budget knows: it grows with each megabyte. */
void ggtok_jinja_env_grow(jinja_env *env, size_t n);
jinja_arena *ggtok_jinja_env_arena(jinja_env *env);

/* Gives a variable its value; the name is copied. May jump. */
void ggtok_jinja_env_set(jinja_env *env, const char *name, size_t n, jinja_value value);

/* Reads JSON text as llama.cpp does (JINJA_LLAMA_CPP: integers wrap to 64 bits, larger ones are
 * floats) or Python's json (integers of any size, NaN and Infinity). All strings get `label`. May
 * jump. */
jinja_value ggtok_jinja_read_json(jinja_arena *mem, const char *json, size_t n, uint8_t label,
                                  jinja_dialect dialect);

/* The fields of a JSON object as variables, all strings data. */
ggtok_status ggtok_jinja_env_json(jinja_env *env, const char *json, size_t n, jinja_dialect dialect,
                                  jinja_error *err);

typedef struct jinja_result {
    const char *text; /* llama.cpp's dialect can cut characters in two */
    size_t n;
    ggtok_range *from_template; /* what the template wrote, as ggtok_encode_trusted takes it */
    size_t n_from_template;
    ggtok_range *generated; /* what stands inside {% generation %} */
    size_t n_generated;
} jinja_result;

ggtok_status ggtok_jinja_render(jinja_env *env, const jinja_template *t, jinja_result *out,
                                jinja_error *err);

/* What becomes of a prompt's ends; "" for nothing. */
typedef struct jinja_finish_options {
    const char *bos, *eos;   /* dropped: those that the vocabulary adds by itself */
    bool only_from_template; /* only if the template wrote them */
    const char *turn;        /* a prompt that ends so ... */
    const char *answer;      /* ... gets this: the template's text if `turn` is */
} jinja_finish_options;

/* Changes the result of the env's rendering. */
ggtok_status ggtok_jinja_finish(jinja_env *env, const jinja_finish_options *options,
                                jinja_result *out, jinja_error *err);

/* ---- probes: what a template did with a value (llama.cpp's capability checks) ---- */

typedef enum jinja_note {                               /* bits */
                          JINJA_NOTE_USED = 1,          /* stats.used */
                          JINJA_NOTE_ARRAY_ACCESS = 2,  /* "array_access" */
                          JINJA_NOTE_OBJECT_ACCESS = 4, /* "object_access" */
                          JINJA_NOTE_IS_STRING = 8,     /* "test_is_string" */
                          JINJA_NOTE_SELECTATTR = 16    /* "selectattr" */
} jinja_note;

/* The notes about a value that was set in the env, after rendering with options.probe, also
 * if that failed: 0 if it was never looked at. Walk to the value with ggtok_jinja_env_get and
 * ggtok_jinja_dict_get, or keep it from when it was made: the notes go with its id. Values that
 * are made in a probing env get their ids when they are set. */
unsigned ggtok_jinja_env_notes(const jinja_env *env, jinja_value value);
/* A variable as it was set, or (after == true) as the rendering left it at the top level; a
 * JINJA_ABSENT if it has none. */
jinja_value ggtok_jinja_env_get(jinja_env *env, const char *name, size_t n, bool after);

#endif
