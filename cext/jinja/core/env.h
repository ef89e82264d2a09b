/*
 * A rendering: its variables and output, and the parts of the interpreter that the dialects share.
 */
#ifndef GGTOK_JINJA_CORE_ENV_H
#define GGTOK_JINJA_CORE_ENV_H

#include "jinja/core/jinja.h"
#include "jinja/core/objects.h"
#include "jinja/core/tree.h"

/* A variable's value before a scope changed it. */
typedef struct jinja_saved {
    uint32_t sym, level;
    jinja_value value;
} jinja_saved;

/* llama.cpp's scopes are dynamic: a scope sees all variables of the scope that opened it, and a
 * macro sees those of its caller. One table holds the current values; closing a scope restores the
 * values that it changed. */
typedef struct jinja_scopes {
    jinja_value *values; /* current values, indexed by symbol; JINJA_ABSENT if not set */
    uint32_t *levels;    /* indexed by symbol: the level of the innermost scope that changed it */
    jinja_saved *saved;
    size_t n_saved, cap_saved;
    uint32_t level;
} jinja_scopes;

/* A list that a template printed. llama.cpp writes the list's items only when the enclosing block
 * ends. */
typedef struct jinja_printed {
    size_t n, n_parts; /* position in the output */
    jinja_value value;
} jinja_printed;

struct jinja_frame; /* transformers' scopes; see python/dialect.h */

struct jinja_env {
    jinja_arena arena; /* must be first */
    const jinja_template *t;
    const struct jinja_rules *rules;
    jinja_options options;
    jinja_dict *inputs; /* the variables that the caller set */
    jinja_scopes scopes;
    struct jinja_frame *frame;
    jinja_builder out;
    jinja_printed *printed;
    size_t n_printed, cap_printed;
    jmp_buf *loop; /* llama.cpp: jump buffer of the loop that a break in a macro leaves */
    int jump;      /* the jinja_flow of that jump */
    uint32_t generating;
    uint32_t ids; /* the last id assigned */
    uint8_t *notes;
    uint32_t n_notes;
};

typedef enum jinja_flow { JINJA_NEXT, JINJA_BREAK, JINJA_CONTINUE } jinja_flow;

/* A position in the output, to which the output can be reset. */
typedef struct jinja_mark {
    size_t n, n_parts, n_printed;
} jinja_mark;

struct jinja_parser;     /* defined in parser.h */
struct jinja_frame_plan; /* defined in python/dialect.h */

/* What differs between dialects: the functions of llama/ and python/ that core/ calls. */
typedef struct jinja_rules {
    /* ---- compiling ---- */
    void (*lex)(jinja_template *t, jinja_tokens *tokens);
    /* Finds the symbol's name in the dialect's tables, and stores the row numbers in the symbol. */
    void (*find_builtins)(jinja_symbol *symbol);
    const jinja_node *(*operand)(struct jinja_parser *p);   /* of a binary operator */
    const jinja_node *(*exponent)(struct jinja_parser *p);  /* right operand of **; NULL: no ** */
    const jinja_node *(*printed)(struct jinja_parser *p);   /* what is between {{ and }} */
    const jinja_node *(*statement)(struct jinja_parser *p); /* from its {% on */
    /* Resolves each name in the tree to the frame and slot of its value. NULL: scopes are
     * dynamic. */
    void (*plan_scopes)(jinja_template *t);
    /* ---- rendering ---- */
    void (*render)(jinja_env *e); /* renders e->t */
    /* Writes the items of the lists that were printed since `mark`. NULL: they are already
     * written. */
    void (*settle)(jinja_env *e, jinja_mark mark);
    /* Opens a frame for a block's variables. NULL: blocks have no plan. */
    struct jinja_frame *(*open_frame)(jinja_env *e, const struct jinja_frame_plan *plan,
                                      struct jinja_frame *parent);
    /* ---- the operations, each of which takes a node or the values of its kids ---- */
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
    jinja_value (*missing)(jinja_env *e, const jinja_node *node); /* `a if b` where b is false */
    void (*set_key)(jinja_env *e, jinja_dict *dict, jinja_value key, jinja_value value);
    void (*output)(jinja_env *e, jinja_value v);
    void (*set)(jinja_env *e, const jinja_node *target, jinja_value value);
    jinja_flow (*loop)(jinja_env *e, const jinja_node *node);
    void (*macro)(jinja_env *e, const jinja_node *node);
    void (*call_block)(jinja_env *e, const jinja_node *node);
    jinja_flow (*scope)(jinja_env *e, const jinja_node *node); /* a block with its own scope */
} jinja_rules;

/* Compiles like ggtok_jinja_compile, by these rules of the dialect. */
ggtok_status ggtok_jinja_compile_by(const jinja_rules *rules, const char *source, size_t n,
                                    jinja_dialect dialect, jinja_template **out, jinja_error *err);

/* ---- eval.c ---- */
jinja_value ggtok_jinja_eval(jinja_env *e, const jinja_node *node);
bool ggtok_jinja_truth_of(jinja_env *e, const jinja_node *node);
jinja_flow ggtok_jinja_exec(jinja_env *e, const jinja_node *node);
/* Runs a block and returns its output as a text, or NULL if the block ended with a break or
 * continue (see *flow). */
jinja_text *ggtok_jinja_capture(jinja_env *e, const jinja_node *block, jinja_flow *flow);
void ggtok_jinja_write(jinja_env *e, const jinja_text *t);
jinja_mark ggtok_jinja_out_mark(const jinja_env *e);
void ggtok_jinja_out_reset(jinja_env *e, jinja_mark mark);

static inline jinja_value jinja_new_id(jinja_env *e, jinja_value v) {
    v.id = ++e->ids;
    return v;
}
/* Records how a template that is being probed uses a value. */
static inline void jinja_note_value(jinja_env *e, jinja_value v, unsigned notes) {
    if (e->notes && v.id && v.id <= e->n_notes) e->notes[v.id - 1] |= (uint8_t)notes;
}

/* Formats a time. In llama.cpp's dialect, returns NULL if the result is empty or longer than 99
 * bytes, where llama.cpp fails. */
jinja_text *ggtok_jinja_strftime(jinja_arena *mem, const jinja_time *now, const jinja_text *format,
                                 jinja_dialect dialect);

/* Returns llama.cpp's name for a value's type: "Integer", "String"... */
const char *ggtok_jinja_type_name(jinja_value v);

/* ---- calls ---- */

typedef struct jinja_args {
    const char *name; /* name of the function, for error messages */
    jinja_value *v;   /* positional and keyword arguments, in the order of the call */
    uint32_t n;
} jinja_args;

typedef jinja_value jinja_builtin(jinja_env *e, jinja_args *args);

/* Returns the keyword argument named name[0..n), or `other` if there is none. */
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
    const jinja_node *node;      /* node of a macro or call block */
    const jinja_value *snapshot; /* llama.cpp's caller(): all variables at its {% call %} */
    struct jinja_frame *frame;   /* transformers: the frame in which the function was defined */
    const void *row;             /* of a builtin: its row in the dialect's table */
};

#endif
