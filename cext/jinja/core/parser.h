/* The interface between the shared parser and the dialects' parsers. */
#ifndef GGTOK_JINJA_CORE_PARSER_H
#define GGTOK_JINJA_CORE_PARSER_H

#include "jinja/core/tree.h"

/* The state of a parse. `kids` is a stack of nodes: the kids parsed so far of all unfinished
 * nodes. */
typedef struct jinja_parser {
    jinja_arena *mem;
    jinja_template *t;
    const jinja_token *next;
    const jinja_token *last; /* the T_END at the end */
    const jinja_node **kids;
    size_t n_kids, cap_kids;
    uint32_t depth;
    uint32_t loops; /* number of open {% for %} blocks in this macro or call block */
} jinja_parser;

/* The maximum nesting of brackets, blocks and conditions. */
enum { JINJA_MAX_NESTING = 100 };

_Noreturn void ggtok_jinja_fail_token(jinja_parser *p, const char *expected);

/* Test the next token. */
static inline bool jinja_at(const jinja_parser *p, jinja_token_type type) {
    return p->next->type == type;
}
bool ggtok_jinja_at_name(const jinja_parser *p, const char *name);
bool ggtok_jinja_token_is(const jinja_token *token, const char *name);
bool ggtok_jinja_at_operator(const jinja_parser *p, jinja_operator op);
const jinja_token *ggtok_jinja_take(jinja_parser *p); /* consumes it; fails at T_END */
bool ggtok_jinja_skip(jinja_parser *p, jinja_token_type type);
bool ggtok_jinja_skip_name(jinja_parser *p, const char *name);
void ggtok_jinja_expect(jinja_parser *p, jinja_token_type type, const char *what);
void ggtok_jinja_nest(jinja_parser *p);

uint32_t ggtok_jinja_symbol_of(jinja_template *t, const void *name, size_t n);

/* Create nodes. To create a node with any number of kids, push them on the stack `kids`;
 * ggtok_jinja_node_new then takes all kids from index kids_from on. */
void ggtok_jinja_push(jinja_parser *p, const jinja_node *kid);
jinja_node *ggtok_jinja_node_new(jinja_parser *p, jinja_kind kind, uint32_t pos, size_t kids_from);
jinja_node *ggtok_jinja_node_of(jinja_parser *p, jinja_kind kind, uint32_t pos, const jinja_node *a,
                                const jinja_node *b);
jinja_node *ggtok_jinja_const(jinja_parser *p, uint32_t pos, jinja_value value);
jinja_node *ggtok_jinja_name(jinja_parser *p, const jinja_token *token);

/* Parse expressions. */
const jinja_node *ggtok_jinja_parse_expression(jinja_parser *p);
const jinja_node *ggtok_jinja_parse_or(jinja_parser *p); /* without `a if b else c` */

/* ---- statements ---- */
/* Parses statements up to a tag with one of the names in a NULL-terminated array. The next token is
 * then that tag's {%. */
const jinja_node *ggtok_jinja_parse_block(jinja_parser *p, const char *const *end_names);
bool ggtok_jinja_at_statement(const jinja_parser *p, const char *name);

#endif
