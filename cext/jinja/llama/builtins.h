/*
 * llama.cpp's builtins. They belong to types of values and are both filters and methods. Global
 * functions and tests are in one table, and a test can be called as a function.
 */
#ifndef GGTOK_JINJA_LLAMA_BUILTINS_H
#define GGTOK_JINJA_LLAMA_BUILTINS_H

#include "jinja/core/env.h"

typedef struct jinja_llama_row {
    const char *name;
    unsigned types;
    jinja_builtin *run;
    const char *unsupported; /* for the error message: what llama.cpp doesn't implement; or NULL */
} jinja_llama_row;

extern const jinja_llama_row ggtok_jinja_llama_builtins[];
extern const jinja_llama_row ggtok_jinja_llama_globals[]; /* tests are named test_is_... */
extern const size_t ggtok_jinja_llama_n_builtins, ggtok_jinja_llama_n_globals;

/* Return the builtin with this name for the value, or NULL. */
const jinja_llama_row *ggtok_jinja_llama_member(const jinja_template *t, uint32_t sym,
                                                jinja_value v);
const jinja_llama_row *ggtok_jinja_llama_filter_row(const jinja_template *t, uint32_t sym,
                                                    jinja_value v);
const jinja_llama_row *ggtok_jinja_llama_find_text(const jinja_text *name, jinja_value v);
void ggtok_jinja_llama_find_builtins(jinja_symbol *symbol);
int32_t ggtok_jinja_llama_global(const char *prefix, const jinja_text *name);

/* Check the arguments of a builtin, or return one. */
void ggtok_jinja_args_count(jinja_env *e, const jinja_args *a, uint32_t least, uint32_t most);
jinja_value ggtok_jinja_args_at(jinja_env *e, const jinja_args *a, uint32_t i);
jinja_value ggtok_jinja_args_or(const jinja_args *a, uint32_t i, jinja_value other);
/* Return the keyword argument with this name; otherwise, the i-th argument if it is positional;
 * otherwise, undefined. */
jinja_value ggtok_jinja_args_named(jinja_env *e, const jinja_args *a, const char *name, uint32_t i);
jinja_value ggtok_jinja_args_named_text(jinja_env *e, const jinja_args *a, const jinja_text *name,
                                        uint32_t i);
/* Fails unless the i-th argument has one of the types. */
void ggtok_jinja_args_type(jinja_env *e, const jinja_args *a, uint32_t i, unsigned types);

/* llama.cpp's conversions and comparisons. */
bool ggtok_jinja_llama_truth(jinja_env *e, jinja_value v);
int64_t ggtok_jinja_llama_int(jinja_env *e, jinja_value v);
double ggtok_jinja_llama_float(jinja_env *e, jinja_value v);
jinja_text *ggtok_jinja_llama_text(jinja_env *e, jinja_value v); /* llama.cpp's as_string() */
void ggtok_jinja_show_debug(jinja_env *e, jinja_builder *b, jinja_value v);
bool ggtok_jinja_llama_compare(jinja_env *e, jinja_value a, jinja_value b, jinja_operator op);
bool ggtok_jinja_llama_in(jinja_env *e, jinja_value needle, jinja_value haystack);
/* Returns a key's value, or NULL. Fails if `key` can't be a key. */
jinja_value *ggtok_jinja_llama_at(jinja_env *e, jinja_value dict, jinja_value key);
void ggtok_jinja_llama_insert(jinja_env *e, jinja_dict *dict, jinja_value key, jinja_value value);
void ggtok_jinja_llama_sort(jinja_env *e, jinja_value *items, size_t n,
                            bool (*less)(jinja_env *, jinja_value, jinja_value, const void *),
                            const void *user);
/* A resolved slice: n items from `first` on, `step` apart. */
typedef struct jinja_slice {
    int64_t first, step;
    uint64_t n;
} jinja_slice;
jinja_slice ggtok_jinja_llama_slice(jinja_env *e, const jinja_args *a, int64_t n);
void ggtok_jinja_note_deep(jinja_env *e, jinja_value v);
jinja_value ggtok_jinja_llama_invoke(jinja_env *e, jinja_value function, jinja_args *args);

/* Return JSON as llama.cpp writes it (json.c), and JSON with the non-ASCII characters in strings
 * escaped. */
jinja_text *ggtok_jinja_llama_json(jinja_env *e, jinja_value v, int64_t indent,
                                   const jinja_text *item, const jinja_text *key);

jinja_text *ggtok_jinja_llama_json_ascii(jinja_env *e, const jinja_text *json);

/* The builtins, grouped by file. */
jinja_builtin ggtok_jinja_llama_default, ggtok_jinja_llama_tojson, ggtok_jinja_llama_empty_text,
    ggtok_jinja_llama_empty_list, ggtok_jinja_llama_zero, ggtok_jinja_llama_undefined_value;
jinja_builtin ggtok_jinja_text_upper, ggtok_jinja_text_lower, ggtok_jinja_text_strip,
    ggtok_jinja_text_rstrip, ggtok_jinja_text_lstrip, ggtok_jinja_text_title,
    ggtok_jinja_text_capitalize, ggtok_jinja_text_length, ggtok_jinja_text_startswith,
    ggtok_jinja_text_endswith, ggtok_jinja_text_split, ggtok_jinja_text_rsplit,
    ggtok_jinja_text_replace, ggtok_jinja_text_format, ggtok_jinja_text_int, ggtok_jinja_text_float,
    ggtok_jinja_text_string, ggtok_jinja_text_slice, ggtok_jinja_text_safe, ggtok_jinja_text_indent;
jinja_builtin ggtok_jinja_list_list, ggtok_jinja_list_first, ggtok_jinja_list_last,
    ggtok_jinja_list_length, ggtok_jinja_list_slice, ggtok_jinja_list_select,
    ggtok_jinja_list_reject, ggtok_jinja_list_join, ggtok_jinja_list_map, ggtok_jinja_list_append,
    ggtok_jinja_list_pop, ggtok_jinja_list_sort, ggtok_jinja_list_reverse, ggtok_jinja_list_min,
    ggtok_jinja_list_max;
jinja_builtin ggtok_jinja_dict_get_method, ggtok_jinja_dict_keys, ggtok_jinja_dict_values,
    ggtok_jinja_dict_items, ggtok_jinja_dict_length, ggtok_jinja_dict_dictsort;
jinja_builtin ggtok_jinja_number_abs, ggtok_jinja_number_int, ggtok_jinja_number_float,
    ggtok_jinja_container_string, ggtok_jinja_bool_string, ggtok_jinja_none_string,
    ggtok_jinja_unsupported;

#endif
