/*
 * The dialects' functions that core/ calls. They are defined in llama/ and python/, whose headers
 * core/ doesn't include.
 */
#ifndef GGTOK_JINJA_CORE_DIALECTS_H
#define GGTOK_JINJA_CORE_DIALECTS_H

#include "jinja/core/env.h"

struct jinja_parser; /* defined in parser.h */

/* ---- compiling ---- */

void ggtok_jinja_llama_lex(jinja_template *t, jinja_tokens *tokens);
void ggtok_jinja_python_lex(jinja_template *t, jinja_tokens *tokens);

/* Finds the symbol's name in the dialect's tables, and stores the row numbers in the symbol. */
void ggtok_jinja_llama_find_builtins(jinja_symbol *symbol);
void ggtok_jinja_python_find_builtins(jinja_symbol *symbol);

/* Parse an operand of a binary operator; ggtok_jinja_python_unary, the right operand of **. */
const jinja_node *ggtok_jinja_llama_operand(struct jinja_parser *p);
const jinja_node *ggtok_jinja_python_operand(struct jinja_parser *p);
const jinja_node *ggtok_jinja_python_unary(struct jinja_parser *p, bool with_filter);
/* Parses a tuple or, if there is no comma, the expression itself. */
const jinja_node *ggtok_jinja_python_tuple(struct jinja_parser *p, bool conditions,
                                           const char *end_name);
/* Parse a statement, starting at its {%. */
const jinja_node *ggtok_jinja_llama_statement(struct jinja_parser *p);
const jinja_node *ggtok_jinja_python_statement(struct jinja_parser *p);

/* Resolves each name in the tree to the frame and slot of its value. */
void ggtok_jinja_python_plan_scopes(jinja_template *t);

/* ---- rendering ---- */

extern const jinja_rules ggtok_jinja_llama_rules, ggtok_jinja_python_rules;

/* Initializes the variables: llama.cpp's constants (true, false, none) and the env's inputs. */
void ggtok_jinja_llama_init_scopes(jinja_env *e);
/* Renders e->t by transformers' rules. */
void ggtok_jinja_python_run(jinja_env *e);
/* Opens a frame for a block's variables. */
struct jinja_frame *ggtok_jinja_python_open_frame(jinja_env *e, const struct jinja_frame_plan *plan,
                                                  struct jinja_frame *parent);

/* Whether Python's == is true for a and b. */
bool ggtok_jinja_python_equal(jinja_arena *mem, jinja_value a, jinja_value b);
/* Fills the dict of llama.cpp's `loop`. The dict stays empty until the template needs all of it. */
void ggtok_jinja_loop_fill(jinja_arena *mem, jinja_dict *loop);

#endif
