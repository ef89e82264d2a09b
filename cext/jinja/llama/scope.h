/* llama.cpp's dynamic scopes, and the statements that open them. */
#ifndef GGTOK_JINJA_LLAMA_SCOPE_H
#define GGTOK_JINJA_LLAMA_SCOPE_H

#include "jinja/core/env.h"

extern const jinja_rules ggtok_jinja_llama_rules;

static inline jinja_value jinja_scope_get(const jinja_env *e, uint32_t sym) {
    return e->scopes.values[sym];
}

void ggtok_jinja_scope_set(jinja_env *e, uint32_t sym, jinja_value v);
/* Opens a scope. Pass the result to ggtok_jinja_scope_close. */
size_t ggtok_jinja_scope_open(jinja_env *e);
void ggtok_jinja_scope_close(jinja_env *e, size_t opened);

/* Functions of the rules. */
void ggtok_jinja_llama_lex(jinja_template *t, jinja_tokens *tokens);
const jinja_node *ggtok_jinja_llama_operand(struct jinja_parser *p);
const jinja_node *ggtok_jinja_llama_statement(struct jinja_parser *p);
void ggtok_jinja_llama_render(jinja_env *e);
void ggtok_jinja_llama_settle(jinja_env *e, jinja_mark mark);
void ggtok_jinja_llama_set(jinja_env *e, const jinja_node *target, jinja_value value);
jinja_flow ggtok_jinja_llama_loop(jinja_env *e, const jinja_node *node);
void ggtok_jinja_llama_macro(jinja_env *e, const jinja_node *node);
void ggtok_jinja_llama_call_block(jinja_env *e, const jinja_node *node);

#endif
