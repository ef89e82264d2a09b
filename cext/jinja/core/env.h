/*
 * A rendering: its variables, its output, and the parts of the interpreter that the
 * dialects have in common or tell each other.
 */
#ifndef GGTOK_JINJA_CORE_ENV_H
#define GGTOK_JINJA_CORE_ENV_H

#include "jinja/core/jinja.h"
#include "jinja/core/objects.h"
#include "jinja/core/tree.h"

/* A variable's value before it was changed in a scope. */
typedef struct jinja_saved {
    uint32_t sym, level;
    jinja_value value;
} jinja_saved;

/* llama.cpp's scopes are dynamic: each sees all variables of the one that opened it, macros
 * those of their callers. One table has all values; a scope remembers what it changed. */
typedef struct jinja_scopes {
    jinja_value *values; /* by symbol; JINJA_ABSENT: none */
    uint32_t *levels;    /* by symbol: the scope that saved it last */
    jinja_saved *saved;
    size_t n_saved, cap_saved;
    uint32_t level;
} jinja_scopes;

/* A list that was printed: llama.cpp looks at its items when the block around it ends. */
typedef struct jinja_printed {
    size_t n, n_parts; /* where in the output */
    jinja_value value;
} jinja_printed;

struct jinja_frame; /* transformers' scopes: scope.h */

struct jinja_env {
    jinja_arena arena; /* first */
    const jinja_template *t;
    const struct jinja_rules *rules;
    jinja_options options;
    jinja_dict *inputs; /* variables that were set */
    jinja_scopes scopes;
    struct jinja_frame *frame;
    jinja_builder out;
    jinja_printed *printed;
    size_t n_printed, cap_printed;
    bool lists_change; /* the template can change lists: it names append or pop */
    jmp_buf *loop;     /* llama.cpp: where a break outside of any loop goes */
    int jump;          /* and what it was */
    uint32_t generating;
    uint32_t ids; /* given out */
    uint8_t *notes;
    uint32_t n_notes;
};

typedef enum jinja_flow { JINJA_NEXT, JINJA_BREAK, JINJA_CONTINUE } jinja_flow;

/* What the dialects do differently, with a node and, where it has some, its evaluated kids. */
typedef struct jinja_rules {
    jinja_value (*name)(jinja_env *e, const jinja_node *node);
    jinja_value (*binary)(jinja_env *e, jinja_operator op, jinja_value a, jinja_value b);
    jinja_value (*sign)(jinja_env *e, bool negative, jinja_value v);
    bool (*truth)(jinja_env *e, jinja_value v);
    jinja_value (*attribute)(jinja_env *e, const jinja_node *node);
    jinja_value (*item)(jinja_env *e, const jinja_node *node);
    jinja_value (*slice)(jinja_env *e, const jinja_node *node);
    jinja_value (*call)(jinja_env *e, const jinja_node *node);
    jinja_value (*filter)(jinja_env *e, const jinja_node *node, jinja_value operand);
    jinja_value (*test)(jinja_env *e, const jinja_node *node);
    jinja_value (*concat)(jinja_env *e, const jinja_node *node);
    jinja_value (*missing)(jinja_env *e, const jinja_node *node); /* else of a condition */
    void (*set_key)(jinja_env *e, jinja_dict *dict, jinja_value key, jinja_value value);
    void (*output)(jinja_env *e, jinja_value v);
    void (*set)(jinja_env *e, const jinja_node *target, jinja_value value);
    jinja_flow (*loop)(jinja_env *e, const jinja_node *node);
    void (*macro)(jinja_env *e, const jinja_node *node);
    void (*call_block)(jinja_env *e, const jinja_node *node);
    jinja_flow (*scope)(jinja_env *e, const jinja_node *node); /* with, generation with a body */
} jinja_rules;

/* eval.c */
jinja_value ggtok_jinja_eval(jinja_env *e, const jinja_node *node);
bool ggtok_jinja_truth_of(jinja_env *e, const jinja_node *node);
jinja_flow ggtok_jinja_exec(jinja_env *e, const jinja_node *node);
/* A block's output as a text; *flow says how it ended, and if by a jump, the result is NULL. */
jinja_text *ggtok_jinja_capture(jinja_env *e, const jinja_node *block, jinja_flow *flow);
void ggtok_jinja_write(jinja_env *e, const jinja_text *t);
/* A place in the output, and back to it. */
typedef struct jinja_mark {
    size_t n, n_parts, n_printed;
} jinja_mark;
jinja_mark ggtok_jinja_out_mark(const jinja_env *e);
void ggtok_jinja_out_reset(jinja_env *e, jinja_mark mark);
/* Prints the lists that were printed since. */
void ggtok_jinja_out_settle(jinja_env *e, jinja_mark mark);

static inline jinja_value jinja_new_id(jinja_env *e, jinja_value v) {
    v.id = ++e->ids;
    return v;
}
/* Notes about a value in a probe. */
static inline void jinja_note_value(jinja_env *e, jinja_value v, unsigned notes) {
    if (e->notes && v.id && v.id <= e->n_notes) e->notes[v.id - 1] |= (uint8_t)notes;
}

/* Local time in strftime's format; NULL where C's function would return an empty text. */
jinja_text *ggtok_jinja_strftime(jinja_arena *mem, const jinja_time *now, const jinja_text *format,
                                 jinja_dialect dialect);

/* "Integer", "String"...: llama.cpp's name of a value's type. */
const char *ggtok_jinja_type_name(jinja_value v);

/* ---- calls ---- */

typedef struct jinja_args {
    const char *name; /* of the function, for messages */
    jinja_value *v;   /* keyword arguments in their places, too */
    uint32_t n;
} jinja_args;

typedef jinja_value jinja_builtin(jinja_env *e, jinja_args *args);

/* The keyword argument of this name, n bytes, or `other`. */
jinja_value ggtok_jinja_keyword_of(jinja_env *e, const jinja_args *a, const char *name, size_t n,
                                   jinja_value other);
static inline jinja_value jinja_keyword_named(jinja_env *e, const jinja_args *a, const char *name,
                                              jinja_value other) {
    return ggtok_jinja_keyword_of(e, a, name, strlen(name), other);
}

typedef enum jinja_function_kind { JINJA_BUILTIN, JINJA_MACRO, JINJA_CALLER } jinja_function_kind;

struct jinja_function {
    jinja_function_kind kind;
    const char *name;
    jinja_builtin *builtin;
    bool bound;
    jinja_value self;
    const jinja_node *node;      /* of a macro or call block */
    const jinja_value *snapshot; /* llama.cpp's caller: the variables there */
    struct jinja_frame *frame;   /* transformers': where it was defined */
    jinja_text *own_name;
    const void *extra;
};

#endif
