/*
 * The internal interface of jinja2's dialect. Positions in texts are in code points. Arithmetic
 * beyond 64 bits is an error. As in jinja2's sandbox, templates can't change lists and dicts.
 */
#ifndef GGTOK_JINJA_PYTHON_DIALECT_H
#define GGTOK_JINJA_PYTHON_DIALECT_H

#include "jinja/core/env.h"
#include "jinja/core/parser.h"
#include "unicode/utf8.h"

extern const jinja_rules ggtok_jinja_python_rules;

/* ---- functions of the rules ---- */

void ggtok_jinja_python_lex(jinja_template *t, jinja_tokens *tokens);
void ggtok_jinja_python_find_builtins(jinja_symbol *symbol);
const jinja_node *ggtok_jinja_python_operand(jinja_parser *p);
const jinja_node *ggtok_jinja_python_printed(jinja_parser *p);
const jinja_node *ggtok_jinja_python_statement(jinja_parser *p);
void ggtok_jinja_python_plan_scopes(jinja_template *t);
struct jinja_frame *ggtok_jinja_python_open_frame(jinja_env *e, const struct jinja_frame_plan *plan,
                                                  struct jinja_frame *parent);

/* ---- integers beyond 64 bits (number.c) ---- */

jinja_value ggtok_jinja_negated(jinja_arena *mem, jinja_value big);
/* Fails if one of the values is a JINJA_BIG. */
void ggtok_jinja_refuse_big(jinja_env *e, jinja_value a, jinja_value b);

/* Whether Python's str.isspace() is true for the character. */
bool ggtok_jinja_is_space(uint32_t c);

/* ---- scopes (scope.c) ---- */

typedef enum jinja_load { LOAD_PARAMETER, LOAD_RESOLVE, LOAD_ALIAS, LOAD_MISSING } jinja_load;

typedef struct jinja_slot {
    uint32_t sym;
    uint8_t load; /* a jinja_load: the source of the variable's first value */
    uint16_t up;  /* LOAD_ALIAS: the number of frames up to the enclosing variable, and its slot */
    uint32_t slot;
} jinja_slot;

/* The variables of a frame. As in jinja2, the source of a variable's value depends on whether the
 * block sets or reads the name first. */
typedef struct jinja_frame_plan {
    const jinja_slot *slots;
    uint32_t n;
    uint32_t loop;                    /* slot of `loop`; UINT32_MAX: the body doesn't read it */
    uint32_t self;                    /* likewise for the template's `self` */
    uint32_t caller, kwargs, varargs; /* likewise for a macro's implicit variables */
    const struct jinja_frame_plan *test, *other; /* frames of a loop's condition and else block */
} jinja_frame_plan;

typedef struct jinja_frame {
    struct jinja_frame *parent;
    jinja_value *values;
} jinja_frame;

/* Resets the frame's variables to the values they had when it was opened. */
void ggtok_jinja_frame_reset(jinja_env *e, const jinja_frame_plan *plan, jinja_frame *frame);

/* ---- values (values.c, repr.c, case.c) ---- */

bool ggtok_jinja_python_hashable(jinja_arena *mem, jinja_value v);
jinja_value ggtok_jinja_object_call(jinja_env *e, jinja_object *object, jinja_args *args);
/* Converts a code point to lower, upper or title case, or folds its case. Writes the result to
 * `out`, and returns its number of code points. */
typedef enum jinja_case { JINJA_LOWER, JINJA_UPPER, JINJA_TITLE, JINJA_FOLD } jinja_case;
unsigned ggtok_jinja_case_of(uint32_t c, jinja_case how, uint32_t out[3]);
bool ggtok_jinja_is_case(uint32_t c, jinja_case how); /* whether c is a letter of this case */
_Noreturn void ggtok_jinja_fail_undefined(jinja_env *e, jinja_value v);
bool ggtok_jinja_python_truth(jinja_env *e, jinja_value v);
const char *ggtok_jinja_python_type(jinja_value v); /* returns "str", "int", ... */
jinja_text *ggtok_jinja_str(jinja_env *e, jinja_value v);
jinja_text *ggtok_jinja_repr(jinja_env *e, jinja_value v);
jinja_text *ggtok_jinja_ascii(jinja_env *e, jinja_value v); /* repr, escaped to ASCII */
/* Returns the items of an iterable. Consumes the rest of a generator. */
jinja_list *ggtok_jinja_items(jinja_env *e, jinja_value v);
/* Whether reading a value consumes it. ggtok_jinja_next reads the next item of such a value; it
 * returns false at the end. */
bool ggtok_jinja_is_generator(jinja_value v);
bool ggtok_jinja_next(jinja_env *e, jinja_list *generator, jinja_value *out);
const char *ggtok_jinja_shown_generator(const jinja_list *generator);
int64_t ggtok_jinja_len(jinja_env *e, jinja_value v);
bool ggtok_jinja_python_in(jinja_env *e, jinja_value needle, jinja_value haystack);
bool ggtok_jinja_python_less(jinja_env *e, jinja_value a, jinja_value b, jinja_operator op);
jinja_value ggtok_jinja_python_binary(jinja_env *e, jinja_operator op, jinja_value a,
                                      jinja_value b);
/* Returns an attribute, never an item; JINJA_ABSENT if there is none. */
jinja_value ggtok_jinja_own_attribute(jinja_env *e, jinja_value object, jinja_text *name);
jinja_value ggtok_jinja_getattr(jinja_env *e, jinja_value object, jinja_text *name);
jinja_value ggtok_jinja_getitem(jinja_env *e, jinja_value object, jinja_value key);
jinja_value ggtok_jinja_slice_of(jinja_env *e, jinja_value v, const jinja_value bounds[3]);
jinja_value ggtok_jinja_python_invoke(jinja_env *e, jinja_value f, jinja_args *args);
void ggtok_jinja_python_key(jinja_env *e, jinja_dict *dict, jinja_value key, jinja_value value);
/* Returns an integer argument. Accepts a bool. */
int64_t ggtok_jinja_index(jinja_env *e, jinja_value v);
jinja_value ggtok_jinja_lazy(jinja_list *list);
jinja_text *ggtok_jinja_escape(jinja_env *e, jinja_value v); /* escapes HTML; returns Markup */
jinja_text *ggtok_jinja_concat(jinja_env *e, jinja_value *v, size_t n);
jinja_text *ggtok_jinja_python_json(jinja_env *e, jinja_value v, bool ascii, jinja_value indent,
                                    jinja_value separators, bool sort);

bool ggtok_jinja_is_ascii(jinja_arena *mem, jinja_text *t);
/* Convert a character's index to its byte offset (t->n past the end), and a byte offset to the
 * character's index. */
size_t ggtok_jinja_byte_of(jinja_arena *mem, jinja_text *t, uint64_t at);
uint64_t ggtok_jinja_char_of(jinja_arena *mem, jinja_text *t, size_t byte);

/* ---- evaluation (exec.c, eval.c) ---- */

jinja_value ggtok_jinja_python_name(jinja_env *e, const jinja_node *node);
jinja_value ggtok_jinja_python_sign(jinja_env *e, bool negative, jinja_value v);
jinja_value ggtok_jinja_python_eval_attribute(jinja_env *e, const jinja_node *node);
jinja_value ggtok_jinja_python_eval_item(jinja_env *e, const jinja_node *node);
jinja_value ggtok_jinja_python_eval_slice(jinja_env *e, const jinja_node *node);
jinja_value ggtok_jinja_python_eval_call(jinja_env *e, const jinja_node *node);
jinja_value ggtok_jinja_python_eval_filter(jinja_env *e, const jinja_node *node,
                                           jinja_value operand);
jinja_value ggtok_jinja_python_eval_test(jinja_env *e, const jinja_node *node);
jinja_value ggtok_jinja_python_eval_concat(jinja_env *e, const jinja_node *node);
jinja_value ggtok_jinja_python_missing(jinja_env *e, const jinja_node *node);
void ggtok_jinja_python_set(jinja_env *e, const jinja_node *target, jinja_value value);
/* Fails for a name that the sandbox doesn't allow in a namespace. */
void ggtok_jinja_check_field(jinja_arena *mem, const jinja_text *name);
/* Evaluates the arguments kids[from..) of a call, with * and ** expanded, and reserves room for
 * `room` more. */
jinja_args ggtok_jinja_python_arguments_of(jinja_env *e, const jinja_node *node, uint32_t from,
                                           uint32_t room);
jinja_value ggtok_jinja_macro_run(jinja_env *e, const jinja_function *f, const jinja_args *args);
jinja_value ggtok_jinja_loop_attribute(jinja_env *e, jinja_object *loop, const jinja_text *name);
jinja_value ggtok_jinja_loop_recurse(jinja_env *e, jinja_object *loop, jinja_value v);

/* ---- functions ---- */

/* A builtin. v[] contains the arguments in the order of the signature; JINJA_ABSENT marks missing
 * ones. */
typedef jinja_value jinja_python_fn(jinja_env *e, jinja_value *v);

/* In a signature, = marks an optional parameter, * takes the remaining positional arguments, **
 * also takes keyword arguments, and parameters before / are positional only. */
typedef struct jinja_python_row {
    const char *name;
    const char *signature; /* such as "value, d=, attribute=" */
    jinja_python_fn *run;
    unsigned types; /* the types that have this method */
} jinja_python_row;

extern const jinja_python_row ggtok_jinja_python_filters[], ggtok_jinja_python_tests[],
    ggtok_jinja_python_methods[], ggtok_jinja_python_globals[];
extern const size_t ggtok_jinja_python_n_filters, ggtok_jinja_python_n_tests,
    ggtok_jinja_python_n_methods, ggtok_jinja_python_n_globals;

jinja_value ggtok_jinja_python_function(jinja_env *e, const jinja_python_row *row,
                                        const jinja_value *self);
jinja_value ggtok_jinja_python_apply(jinja_env *e, const jinja_python_row *row, jinja_args *args);
int32_t ggtok_jinja_python_row_of(const jinja_python_row *rows, size_t n, const jinja_text *name);
/* Return the filter or test with this name; fail if there is none. */
const jinja_python_row *ggtok_jinja_python_filter_named(jinja_env *e, const jinja_text *name);
const jinja_python_row *ggtok_jinja_python_test_named(jinja_env *e, const jinja_text *name);
/* Sorts stably by an attribute (if it is absent, by the items), ignoring case unless `cased`. */
jinja_list *ggtok_jinja_sorted(jinja_env *e, const jinja_list *list, jinja_value attribute,
                               bool cased, bool reverse);
/* Parses the `attribute` argument of a filter: "a.b.0" or an integer; NULL if it is missing.
 * ggtok_jinja_attribute then returns that attribute of an item; for NULL, the item itself. */
jinja_list *ggtok_jinja_path(jinja_env *e, jinja_value attribute);
jinja_value ggtok_jinja_attribute(jinja_env *e, jinja_value v, const jinja_list *path,
                                  jinja_value other);
/* Implement %-formatting and str.format. */
jinja_value ggtok_jinja_percent(jinja_env *e, jinja_text *format, jinja_value args);
jinja_value ggtok_jinja_format_call(jinja_env *e, jinja_text *format, jinja_args *args);

#endif
