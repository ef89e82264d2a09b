/*
 * What core calls in the dialects: llama/ and python/ define it, core includes neither.
 */
#ifndef GGTOK_JINJA_CORE_DIALECTS_H
#define GGTOK_JINJA_CORE_DIALECTS_H

#include "jinja/core/env.h"

struct jinja_parser; /* parser.h */

/* ---- compiling ---- */

void ggtok_jinja_llama_lex(jinja_template *t, jinja_tokens *tokens);
void ggtok_jinja_python_lex(jinja_template *t, jinja_tokens *tokens);

/* Sets which rows of the dialect's tables have the symbol's name. */
void ggtok_jinja_llama_find_builtins(jinja_symbol *symbol);
void ggtok_jinja_python_find_builtins(jinja_symbol *symbol);

/* Parses an operand of the binary operators. The right operand of Python's ** is a `unary`. */
const jinja_node *ggtok_jinja_llama_operand(struct jinja_parser *p);
const jinja_node *ggtok_jinja_python_operand(struct jinja_parser *p);
const jinja_node *ggtok_jinja_python_unary(struct jinja_parser *p, bool with_filter);
/* Parses a tuple, or, without a comma, the expression itself. */
const jinja_node *ggtok_jinja_python_tuple(struct jinja_parser *p, bool conditions,
                                           const char *end_name);
/* Parses a statement, from its {%. */
const jinja_node *ggtok_jinja_llama_statement(struct jinja_parser *p);
const jinja_node *ggtok_jinja_python_statement(struct jinja_parser *p);

/* Resolves each name of the tree to the frame and slot of its value. */
void ggtok_jinja_python_plan_scopes(jinja_template *t);

/* ---- rendering ---- */

extern const jinja_rules ggtok_jinja_llama_rules, ggtok_jinja_python_rules;

/* Sets the template's variables from the env's inputs, and llama.cpp's constants. */
void ggtok_jinja_llama_init_scopes(jinja_env *e);
/* Renders e->t by transformers' rules. */
void ggtok_jinja_python_run(jinja_env *e);
/* Opens a frame for a block's variables. */
struct jinja_frame *ggtok_jinja_python_open_frame(jinja_env *e, const struct jinja_frame_plan *plan,
                                                  struct jinja_frame *parent);

/* Python's ==. */
bool ggtok_jinja_python_equal(jinja_arena *mem, jinja_value a, jinja_value b);
/* Fills the dict of a llama.cpp `loop`, which stays empty until something needs the whole dict. */
void ggtok_jinja_loop_fill(jinja_arena *mem, jinja_dict *loop);

#endif
