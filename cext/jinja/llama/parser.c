/*
 * llama.cpp's grammar of operands and statements. Commas between arguments and between items are
 * optional. An expression in place of a required name is an error only when the template runs.
 */
#include "jinja/core/parser.h"

#include "jinja/llama/scope.h"

/* ---- expressions ---- */

static const jinja_node *parse_postfix(jinja_parser *p, const jinja_node *object);
static const jinja_node *parse_primary(jinja_parser *p);

/* Parses [a] or [a:b:c]. Like llama.cpp, accepts several expressions without colons between
 * them. */
static const jinja_node *parse_index(jinja_parser *p, const jinja_node *object, uint32_t pos) {
    const jinja_node *bounds[3] = {0};
    size_t n = 0;
    bool slice = false;
    while (!jinja_at(p, T_RBRACKET)) {
        const jinja_node *bound = NULL;
        if (!jinja_at(p, T_COLON)) bound = ggtok_jinja_parse_expression(p);
        if (ggtok_jinja_skip(p, T_COLON)) slice = true;
        if (n < 3) bounds[n] = bound;
        n++;
    }
    ggtok_jinja_take(p);
    if (slice) {
        size_t mark = p->n_kids;
        ggtok_jinja_push(p, object);
        for (int i = 0; i < 3; i++) ggtok_jinja_push(p, bounds[i]);
        return ggtok_jinja_node_new(p, N_SLICE, pos, mark);
    }
    if (!n) bounds[0] = ggtok_jinja_node_new(p, N_BLANK, pos, p->n_kids);
    return ggtok_jinja_node_of(p, N_ITEM, pos, object, bounds[0]);
}

static const jinja_node *parse_members(jinja_parser *p, const jinja_node *object) {
    uint32_t pos = p->next->pos;
    for (;;) {
        if (ggtok_jinja_skip(p, T_LBRACKET)) {
            object = parse_index(p, object, pos);
        } else if (ggtok_jinja_skip(p, T_DOT)) {
            const jinja_node *name = parse_primary(p);
            if (name->kind == N_CONST && name->value.type == JINJA_INT) { /* as in a.0 */
                jinja_node *item = ggtok_jinja_node_of(p, N_ITEM, pos, object, name);
                item->flag = name->value.as.i < 0; /* an error when evaluated */
                object = item;
                continue;
            }
            jinja_node *node = ggtok_jinja_node_of(p, N_ATTRIBUTE, pos, object, NULL);
            node->flag = name->kind != N_NAME;
            if (!node->flag) {
                node->sym = name->sym;
                node->value = jinja_of_text(p->t->symbols[name->sym].name);
            }
            object = node;
        } else {
            return object;
        }
    }
}

static void parse_arguments(jinja_parser *p) {
    ggtok_jinja_expect(p, T_LPAREN, "'('");
    while (!jinja_at(p, T_RPAREN)) {
        uint32_t pos = p->next->pos;
        if (ggtok_jinja_at_operator(p, JINJA_MUL)) {
            ggtok_jinja_take(p);
            ggtok_jinja_push(
                p, ggtok_jinja_node_of(p, N_SPREAD, pos, ggtok_jinja_parse_expression(p), NULL));
        } else {
            const jinja_node *argument = ggtok_jinja_parse_expression(p);
            if (jinja_at(p, T_ASSIGN)) {
                pos = ggtok_jinja_take(p)->pos;
                jinja_node *keyword =
                    ggtok_jinja_node_of(p, N_KEYWORD, pos, ggtok_jinja_parse_expression(p), NULL);
                keyword->flag = argument->kind != N_NAME;
                keyword->sym = argument->sym;
                argument = keyword;
            }
            ggtok_jinja_push(p, argument);
        }
        ggtok_jinja_skip(p, T_COMMA);
    }
    ggtok_jinja_take(p);
}

static const jinja_node *parse_call(jinja_parser *p, const jinja_node *callee) {
    uint32_t pos = p->next->pos;
    size_t mark = p->n_kids;
    ggtok_jinja_push(p, callee);
    parse_arguments(p);
    return ggtok_jinja_node_new(p, N_CALL, pos, mark);
}

static const jinja_node *parse_calls(jinja_parser *p, const jinja_node *callee) {
    do {
        callee = parse_members(p, parse_call(p, callee));
    } while (jinja_at(p, T_LPAREN));
    return callee;
}

static const jinja_node *parse_postfix(jinja_parser *p, const jinja_node *object) {
    object = parse_members(p, object);
    return jinja_at(p, T_LPAREN) ? parse_calls(p, object) : object;
}

static const jinja_node *parse_sequence(jinja_parser *p, bool primary) {
    uint32_t pos = p->next->pos;
    const jinja_node *first = primary ? parse_primary(p) : ggtok_jinja_parse_expression(p);
    if (!jinja_at(p, T_COMMA)) return first;
    size_t mark = p->n_kids;
    ggtok_jinja_push(p, first);
    while (ggtok_jinja_skip(p, T_COMMA)) {
        ggtok_jinja_push(p, primary ? parse_primary(p) : ggtok_jinja_parse_expression(p));
    }
    return ggtok_jinja_node_new(p, N_TUPLE, pos, mark);
}

static const jinja_node *parse_list(jinja_parser *p, uint32_t pos) {
    size_t mark = p->n_kids;
    while (!ggtok_jinja_skip(p, T_RBRACKET)) {
        ggtok_jinja_push(p, ggtok_jinja_parse_expression(p));
        ggtok_jinja_skip(p, T_COMMA);
    }
    return ggtok_jinja_node_new(p, N_LIST, pos, mark);
}

static const jinja_node *parse_dict(jinja_parser *p, uint32_t pos) {
    size_t mark = p->n_kids;
    while (!ggtok_jinja_skip(p, T_RBRACE)) {
        ggtok_jinja_push(p, ggtok_jinja_parse_expression(p));
        ggtok_jinja_expect(p, T_COLON, "':'");
        ggtok_jinja_push(p, ggtok_jinja_parse_expression(p));
        ggtok_jinja_skip(p, T_COMMA);
    }
    return ggtok_jinja_node_new(p, N_DICT, pos, mark);
}

/* Parses a string. Adjacent strings are concatenated. */
static const jinja_node *parse_string(jinja_parser *p, const jinja_token *token) {
    jinja_text *text = ggtok_jinja_text_of(p->mem, token->text, token->n, JINJA_FROM_TEMPLATE);
    if (jinja_at(p, T_STRING)) {
        jinja_builder b = ggtok_jinja_builder_new(p->mem, 0);
        b.merge = true;
        ggtok_jinja_builder_text(&b, text);
        while (jinja_at(p, T_STRING)) {
            token = ggtok_jinja_take(p);
            ggtok_jinja_builder_add(&b, token->text, token->n, JINJA_FROM_TEMPLATE);
        }
        text = ggtok_jinja_builder_end(&b);
    }
    return ggtok_jinja_const(p, token->pos, jinja_of_text(text));
}

static const jinja_node *parse_primary(jinja_parser *p) {
    const jinja_token *token = p->next;
    switch (token->type) {
    case T_INT:
    case T_FLOAT:
        p->mem->at = token->pos;
        if (token->op) ggtok_jinja_fail(p->mem, "the number is too large");
        ggtok_jinja_take(p);
        return ggtok_jinja_const(p, token->pos, token->value);
    case T_STRING: return parse_string(p, ggtok_jinja_take(p));
    case T_NAME: return ggtok_jinja_name(p, ggtok_jinja_take(p));
    case T_LPAREN: {
        ggtok_jinja_take(p);
        const jinja_node *inner = parse_sequence(p, false);
        ggtok_jinja_expect(p, T_RPAREN, "')'");
        return inner;
    }
    case T_LBRACKET: return parse_list(p, ggtok_jinja_take(p)->pos);
    case T_LBRACE: return parse_dict(p, ggtok_jinja_take(p)->pos);
    default: ggtok_jinja_fail_token(p, "an expression");
    }
}

static const jinja_node *parse_unary(jinja_parser *p) {
    if (!jinja_at(p, T_SIGN)) return parse_postfix(p, parse_primary(p));
    const jinja_token *sign = ggtok_jinja_take(p);
    ggtok_jinja_nest(p);
    jinja_kind kind = sign->op == JINJA_SUB ? N_NEGATIVE : N_POSITIVE;
    const jinja_node *node = ggtok_jinja_node_of(p, kind, sign->pos, parse_unary(p), NULL);
    p->depth--;
    return node;
}

/* Makes a node that applies a filter or test. `function` is its name, or a call of it. */
static jinja_node *apply(jinja_parser *p, jinja_kind kind, uint32_t pos, const jinja_node *operand,
                         const jinja_node *function, const jinja_node *argument) {
    size_t mark = p->n_kids;
    const jinja_node *name = function->kind == N_CALL ? function->kids[0] : function;
    ggtok_jinja_push(p, operand);
    if (function->kind == N_CALL) {
        for (uint32_t i = 1; i < function->n; i++) ggtok_jinja_push(p, function->kids[i]);
    } else if (argument) {
        ggtok_jinja_push(p, argument);
    }
    jinja_node *node = ggtok_jinja_node_new(p, kind, pos, mark);
    node->flag =
        (uint8_t)((function->kind == N_CALL || argument ? 4 : 0) | (name->kind != N_NAME ? 2 : 0));
    node->sym = name->sym;
    return node;
}

static const jinja_node *parse_filter(jinja_parser *p, const jinja_node *operand) {
    uint32_t pos = p->next->pos;
    const jinja_node *filter = parse_primary(p);
    if (jinja_at(p, T_LPAREN) && (operand || filter->kind == N_NAME)) {
        filter = parse_calls(p, filter);
    }
    return apply(p, N_FILTER, pos, operand, filter, NULL);
}

/* Whether the next token is an argument of a test without parentheses. */
static bool at_argument(const jinja_parser *p) {
    switch (p->next->type) {
    case T_INT:
    case T_FLOAT:
    case T_STRING:
    case T_LBRACE:
    case T_LBRACKET: return true;
    case T_NAME:
        return !ggtok_jinja_at_name(p, "and") && !ggtok_jinja_at_name(p, "or") &&
               !ggtok_jinja_at_name(p, "else");
    default: return false;
    }
}

const jinja_node *ggtok_jinja_llama_operand(jinja_parser *p) {
    const jinja_node *operand = parse_unary(p);
    while (ggtok_jinja_skip(p, T_PIPE)) operand = parse_filter(p, operand);
    while (ggtok_jinja_at_name(p, "is")) {
        uint32_t pos = ggtok_jinja_take(p)->pos;
        bool negated = ggtok_jinja_skip_name(p, "not");
        const jinja_node *test = parse_primary(p), *argument = NULL;
        if (jinja_at(p, T_LPAREN))
            test = parse_calls(p, test);
        else if (at_argument(p))
            argument = parse_unary(p);
        jinja_node *node = apply(p, N_TEST, pos, operand, test, argument);
        node->flag |= negated;
        operand = node;
    }
    return operand;
}

/* ---- statements ---- */

static void expect_close(jinja_parser *p) {
    ggtok_jinja_expect(p, T_CLOSE_STATEMENT, "'%}'");
}

/* Consumes the next tag, which must be {% name %}. */
static void take_tag(jinja_parser *p) {
    p->next += 2;
    expect_close(p);
}

static const jinja_node *parse_set(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endset", NULL};
    size_t mark = p->n_kids;
    ggtok_jinja_push(p, parse_sequence(p, false));
    if (ggtok_jinja_skip(p, T_ASSIGN)) {
        ggtok_jinja_push(p, parse_sequence(p, false));
        expect_close(p);
        return ggtok_jinja_node_new(p, N_SET, pos, mark);
    }
    expect_close(p);
    ggtok_jinja_push(p, NULL);
    ggtok_jinja_push(p, ggtok_jinja_parse_block(p, end_names));
    take_tag(p);
    return ggtok_jinja_node_new(p, N_SET_BLOCK, pos, mark);
}

static const jinja_node *parse_if(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endif", "elif", "else", NULL};
    static const char *const last_name[] = {"endif", NULL};
    size_t mark = p->n_kids;
    do {
        ggtok_jinja_push(p, ggtok_jinja_parse_expression(p));
        expect_close(p);
        ggtok_jinja_push(p, ggtok_jinja_parse_block(p, end_names));
    } while (ggtok_jinja_at_statement(p, "elif") && (p->next += 2));
    if (ggtok_jinja_at_statement(p, "else")) {
        take_tag(p);
        ggtok_jinja_push(p, ggtok_jinja_parse_block(p, last_name));
    }
    take_tag(p);
    return ggtok_jinja_node_new(p, N_IF, pos, mark);
}

static const jinja_node *parse_for(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endfor", "else", NULL};
    static const char *const last_name[] = {"endfor", NULL};
    size_t mark = p->n_kids;
    ggtok_jinja_push(p, parse_sequence(p, true));
    if (!ggtok_jinja_skip_name(p, "in")) ggtok_jinja_fail_token(p, "'in'");
    const jinja_node *iterable = ggtok_jinja_parse_expression(p);
    expect_close(p);
    if (iterable->kind == N_CONDITION && !iterable->kids[2]) { /* `for x in a if b` */
        ggtok_jinja_push(p, iterable->kids[1]);
        ggtok_jinja_push(p, iterable->kids[0]);
    } else {
        ggtok_jinja_push(p, iterable);
        ggtok_jinja_push(p, NULL);
    }
    p->loops++;
    ggtok_jinja_push(p, ggtok_jinja_parse_block(p, end_names));
    p->loops--;
    if (ggtok_jinja_at_statement(p, "else")) {
        take_tag(p);
        ggtok_jinja_push(p, ggtok_jinja_parse_block(p, last_name));
    } else {
        ggtok_jinja_push(p, NULL);
    }
    take_tag(p);
    return ggtok_jinja_node_new(p, N_FOR, pos, mark);
}

/* Parses the body of a macro or call block. A break in the body doesn't refer to the loops around
 * the block, so p->loops doesn't count them. */
static const jinja_node *parse_body(jinja_parser *p, const char *const *end_names) {
    uint32_t loops = p->loops;
    p->loops = 0;
    const jinja_node *body = ggtok_jinja_parse_block(p, end_names);
    p->loops = loops;
    take_tag(p);
    return body;
}

static const jinja_node *parse_macro(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endmacro", NULL};
    size_t mark = p->n_kids;
    const jinja_node *name = parse_primary(p);
    parse_arguments(p);
    expect_close(p);
    ggtok_jinja_push(p, parse_body(p, end_names));
    jinja_node *node = ggtok_jinja_node_new(p, N_MACRO, pos, mark);
    node->flag = name->kind != N_NAME; /* an error when executed */
    node->sym = name->sym;
    return node;
}

static const jinja_node *parse_call_block(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endcall", NULL};
    size_t mark = p->n_kids;
    ggtok_jinja_push(p, NULL);
    if (jinja_at(p, T_LPAREN)) parse_arguments(p);
    const jinja_node *callee = parse_primary(p);
    if (callee->kind != N_NAME) ggtok_jinja_fail_token(p, "the name of a macro");
    p->kids[mark] = parse_call(p, callee);
    expect_close(p);
    ggtok_jinja_push(p, parse_body(p, end_names));
    return ggtok_jinja_node_new(p, N_CALL_BLOCK, pos, mark);
}

static const jinja_node *parse_filter_block(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endfilter", NULL};
    size_t mark = p->n_kids;
    ggtok_jinja_push(p, parse_filter(p, NULL));
    expect_close(p);
    ggtok_jinja_push(p, ggtok_jinja_parse_block(p, end_names));
    take_tag(p);
    return ggtok_jinja_node_new(p, N_FILTER_BLOCK, pos, mark);
}

static const jinja_node *parse_jump(jinja_parser *p, uint32_t pos, jinja_kind kind) {
    expect_close(p);
    if (!p->loops) p->t->wild_jumps = true;
    return ggtok_jinja_node_new(p, kind, pos, p->n_kids);
}

const jinja_node *ggtok_jinja_llama_statement(jinja_parser *p) {
    ggtok_jinja_take(p);
    const jinja_token *name = p->next;
    if (name->type != T_NAME) ggtok_jinja_fail_token(p, "a statement");
    uint32_t pos = ggtok_jinja_take(p)->pos;
    if (ggtok_jinja_token_is(name, "set")) return parse_set(p, pos);
    if (ggtok_jinja_token_is(name, "if")) return parse_if(p, pos);
    if (ggtok_jinja_token_is(name, "for")) return parse_for(p, pos);
    if (ggtok_jinja_token_is(name, "macro")) return parse_macro(p, pos);
    if (ggtok_jinja_token_is(name, "call")) return parse_call_block(p, pos);
    if (ggtok_jinja_token_is(name, "filter")) return parse_filter_block(p, pos);
    if (ggtok_jinja_token_is(name, "break")) return parse_jump(p, pos, N_BREAK);
    if (ggtok_jinja_token_is(name, "continue")) return parse_jump(p, pos, N_CONTINUE);
    bool begins = ggtok_jinja_token_is(name, "generation");
    if (begins || ggtok_jinja_token_is(name, "endgeneration")) {
        if (p->next != p->last) p->next++; /* normally a %}, but llama.cpp doesn't check */
        jinja_node *node = ggtok_jinja_node_new(p, N_GENERATION, pos, p->n_kids);
        node->flag = begins;
        return node;
    }
    p->mem->at = pos;
    ggtok_jinja_fail(p->mem, "llama.cpp's dialect has no statement '%.*s'",
                     text_prefix(name->text, name->n, 60), (const char *)name->text);
}
