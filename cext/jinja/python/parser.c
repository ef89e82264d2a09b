/* jinja2's grammar of operands and statements. */
#include "jinja/python/dialect.h"

/* ---- expressions ---- */

static bool ends_tuple(const jinja_parser *p, const char *end_name) {
    return jinja_at(p, T_CLOSE_EXPRESSION) || jinja_at(p, T_CLOSE_STATEMENT) ||
           jinja_at(p, T_RPAREN) || (end_name && ggtok_jinja_at_name(p, end_name));
}

static const jinja_node *parse_primary(jinja_parser *p);
static const jinja_node *parse_target(jinja_parser *p);

typedef enum items { TARGETS, PRIMARIES, WITHOUT_CONDITIONS, EXPRESSIONS } items;

static const jinja_node *parse_item(jinja_parser *p, items kind) {
    switch (kind) {
    case TARGETS: return parse_target(p);
    case PRIMARIES: return parse_primary(p);
    case WITHOUT_CONDITIONS: return ggtok_jinja_parse_or(p);
    default: return ggtok_jinja_parse_expression(p);
    }
}

static const jinja_node *parse_tuple(jinja_parser *p, items kind, const char *end_name,
                                     bool may_be_empty) {
    size_t mark = p->n_kids;
    uint32_t pos = p->next->pos;
    bool tuple = false;
    while (!ends_tuple(p, end_name)) {
        ggtok_jinja_push(p, parse_item(p, kind));
        if (!ggtok_jinja_skip(p, T_COMMA)) break;
        tuple = true;
    }
    if (!tuple && p->n_kids > mark) return p->kids[--p->n_kids];
    if (!tuple && !may_be_empty) ggtok_jinja_fail_token(p, "an expression");
    return ggtok_jinja_node_new(p, N_TUPLE, pos, mark);
}

static const jinja_node *parse_name(jinja_parser *p) {
    const jinja_token *token = ggtok_jinja_take(p);
    bool yes = ggtok_jinja_token_is(token, "true") || ggtok_jinja_token_is(token, "True");
    if (yes || ggtok_jinja_token_is(token, "false") || ggtok_jinja_token_is(token, "False")) {
        return ggtok_jinja_const(p, token->pos, jinja_bool(yes));
    }
    if (ggtok_jinja_token_is(token, "none") || ggtok_jinja_token_is(token, "None")) {
        return ggtok_jinja_const(p, token->pos, jinja_none());
    }
    return ggtok_jinja_name(p, token);
}

static const jinja_node *parse_string(jinja_parser *p) {
    uint32_t pos = p->next->pos;
    jinja_builder b = ggtok_jinja_builder_new(p->mem, 0);
    b.merge = true;
    while (jinja_at(p, T_STRING)) {
        const jinja_token *token = ggtok_jinja_take(p);
        ggtok_jinja_builder_add(&b, token->text, token->n, JINJA_FROM_TEMPLATE);
    }
    return ggtok_jinja_const(p, pos, jinja_of_text(ggtok_jinja_builder_end(&b)));
}

static const jinja_node *parse_list(jinja_parser *p) {
    size_t mark = p->n_kids;
    uint32_t pos = ggtok_jinja_take(p)->pos;
    while (!jinja_at(p, T_RBRACKET)) {
        if (p->n_kids > mark) {
            ggtok_jinja_expect(p, T_COMMA, "','");
            if (jinja_at(p, T_RBRACKET)) break;
        }
        ggtok_jinja_push(p, ggtok_jinja_parse_expression(p));
    }
    ggtok_jinja_take(p);
    return ggtok_jinja_node_new(p, N_LIST, pos, mark);
}

static const jinja_node *parse_dict(jinja_parser *p) {
    size_t mark = p->n_kids;
    uint32_t pos = ggtok_jinja_take(p)->pos;
    while (!jinja_at(p, T_RBRACE)) {
        if (p->n_kids > mark) {
            ggtok_jinja_expect(p, T_COMMA, "','");
            if (jinja_at(p, T_RBRACE)) break;
        }
        ggtok_jinja_push(p, ggtok_jinja_parse_expression(p));
        ggtok_jinja_expect(p, T_COLON, "':'");
        ggtok_jinja_push(p, ggtok_jinja_parse_expression(p));
    }
    ggtok_jinja_take(p);
    return ggtok_jinja_node_new(p, N_DICT, pos, mark);
}

static const jinja_node *parse_primary(jinja_parser *p) {
    const jinja_token *token = p->next;
    switch (token->type) {
    case T_NAME: return parse_name(p);
    case T_STRING: return parse_string(p);
    case T_INT:
    case T_FLOAT: return ggtok_jinja_take(p), ggtok_jinja_const(p, token->pos, token->value);
    case T_LBRACKET: return parse_list(p);
    case T_LBRACE: return parse_dict(p);
    case T_LPAREN: {
        ggtok_jinja_take(p);
        const jinja_node *inner = parse_tuple(p, EXPRESSIONS, NULL, true);
        ggtok_jinja_expect(p, T_RPAREN, "')'");
        return inner;
    }
    default: ggtok_jinja_fail_token(p, "an expression");
    }
}

/* Parses an index or slice in brackets. The caller sets the object of a slice. */
static const jinja_node *parse_subscript(jinja_parser *p) {
    const jinja_node *bounds[3] = {0};
    uint32_t pos = p->next->pos;
    if (!jinja_at(p, T_COLON)) {
        bounds[0] = ggtok_jinja_parse_expression(p);
        if (!jinja_at(p, T_COLON)) return bounds[0];
    }
    ggtok_jinja_take(p);
    for (int i = 1; i < 3; i++) {
        if (i == 2 && !ggtok_jinja_skip(p, T_COLON)) break;
        bool none = jinja_at(p, T_COLON) || jinja_at(p, T_RBRACKET) || jinja_at(p, T_COMMA);
        if (!none) bounds[i] = ggtok_jinja_parse_expression(p);
        if (i == 2 && jinja_at(p, T_COLON)) ggtok_jinja_fail_token(p, "']'");
    }
    size_t mark = p->n_kids;
    ggtok_jinja_push(p, NULL);
    for (int i = 0; i < 3; i++) ggtok_jinja_push(p, bounds[i]);
    return ggtok_jinja_node_new(p, N_SLICE, pos, mark);
}

static const jinja_node *parse_brackets(jinja_parser *p, const jinja_node *object) {
    size_t mark = p->n_kids;
    uint32_t pos = ggtok_jinja_take(p)->pos;
    while (!jinja_at(p, T_RBRACKET)) {
        if (p->n_kids > mark) ggtok_jinja_expect(p, T_COMMA, "','");
        ggtok_jinja_push(p, parse_subscript(p));
    }
    ggtok_jinja_take(p);
    if (p->n_kids == mark + 1) {
        const jinja_node *subscript = p->kids[--p->n_kids];
        if (subscript->kind != N_SLICE || subscript->kids[0]) {
            return ggtok_jinja_node_of(p, N_ITEM, pos, object, subscript);
        }
        subscript->kids[0] = object;
        return subscript;
    }
    for (size_t i = mark; i < p->n_kids; i++) {
        const jinja_node *subscript = p->kids[i];
        if (subscript->kind != N_SLICE || subscript->kids[0]) continue;
        p->mem->at = subscript->pos;
        ggtok_jinja_fail(p->mem, "a slice can't be one of several indices");
    }
    return ggtok_jinja_node_of(p, N_ITEM, pos, object, ggtok_jinja_node_new(p, N_TUPLE, pos, mark));
}

static const jinja_node *parse_dot(jinja_parser *p, const jinja_node *object) {
    uint32_t pos = ggtok_jinja_take(p)->pos;
    const jinja_token *name = p->next;
    if (name->type == T_INT) {
        ggtok_jinja_take(p);
        const jinja_node *index = ggtok_jinja_const(p, name->pos, name->value);
        return ggtok_jinja_node_of(p, N_ITEM, pos, object, index);
    }
    if (name->type != T_NAME) ggtok_jinja_fail_token(p, "a name or a number");
    ggtok_jinja_take(p);
    jinja_node *node = ggtok_jinja_node_of(p, N_ATTRIBUTE, pos, object, NULL);
    node->sym = ggtok_jinja_symbol_of(p->t, name->text, name->n);
    node->value = jinja_of_text(p->t->symbols[node->sym].name);
    return node;
}

/* Parses arguments in this order: positional, keyword, *, **. */
static void parse_arguments(jinja_parser *p) {
    bool comma = false, named = false, star = false, stars = false;
    ggtok_jinja_expect(p, T_LPAREN, "'('");
    while (!jinja_at(p, T_RPAREN)) {
        if (comma) {
            ggtok_jinja_expect(p, T_COMMA, "','");
            if (jinja_at(p, T_RPAREN)) break;
        }
        uint32_t pos = p->next->pos;
        bool one = ggtok_jinja_at_operator(p, JINJA_MUL),
             two = ggtok_jinja_at_operator(p, JINJA_POW);
        bool by_name = jinja_at(p, T_NAME) && p->next[1].type == T_ASSIGN;
        if (stars || (one && star) || (!one && !two && !by_name && (star || named))) {
            ggtok_jinja_fail_token(p, "')': arguments are in the wrong order");
        }
        if (one || two) {
            ggtok_jinja_take(p);
            jinja_node *spread =
                ggtok_jinja_node_of(p, N_SPREAD, pos, ggtok_jinja_parse_expression(p), NULL);
            spread->flag = two;
            *(one ? &star : &stars) = true;
            ggtok_jinja_push(p, spread);
        } else if (by_name) {
            const jinja_token *name = ggtok_jinja_take(p);
            ggtok_jinja_take(p);
            jinja_node *keyword =
                ggtok_jinja_node_of(p, N_KEYWORD, pos, ggtok_jinja_parse_expression(p), NULL);
            keyword->sym = ggtok_jinja_symbol_of(p->t, name->text, name->n);
            named = true;
            ggtok_jinja_push(p, keyword);
        } else {
            ggtok_jinja_push(p, ggtok_jinja_parse_expression(p));
        }
        comma = true;
    }
    ggtok_jinja_take(p);
}

static const jinja_node *parse_call(jinja_parser *p, const jinja_node *callee) {
    size_t mark = p->n_kids;
    uint32_t pos = p->next->pos;
    ggtok_jinja_push(p, callee);
    parse_arguments(p);
    return ggtok_jinja_node_new(p, N_CALL, pos, mark);
}

static const jinja_node *parse_postfix(jinja_parser *p, const jinja_node *node) {
    for (;;) {
        if (jinja_at(p, T_DOT))
            node = parse_dot(p, node);
        else if (jinja_at(p, T_LBRACKET))
            node = parse_brackets(p, node);
        else if (jinja_at(p, T_LPAREN))
            node = parse_call(p, node);
        else
            return node;
    }
}

/* Parses a dotted name; returns its symbol. */
static uint32_t parse_dotted(jinja_parser *p) {
    const jinja_token *name = p->next;
    ggtok_jinja_expect(p, T_NAME, "a name");
    size_t n = name->n;
    while (jinja_at(p, T_DOT)) {
        ggtok_jinja_take(p);
        if (!jinja_at(p, T_NAME)) ggtok_jinja_fail_token(p, "a name");
        const jinja_token *next = ggtok_jinja_take(p);
        n = (size_t)(next->text - name->text) + next->n;
    }
    return ggtok_jinja_symbol_of(p->t, name->text, n);
}

static const jinja_node *parse_filter(jinja_parser *p, const jinja_node *operand) {
    size_t mark = p->n_kids;
    uint32_t pos = p->next->pos, sym = parse_dotted(p);
    ggtok_jinja_push(p, operand);
    if (jinja_at(p, T_LPAREN)) parse_arguments(p);
    jinja_node *node = ggtok_jinja_node_new(p, N_FILTER, pos, mark);
    node->sym = sym;
    return node;
}

static const jinja_node *parse_test(jinja_parser *p, const jinja_node *operand) {
    size_t mark = p->n_kids;
    uint32_t pos = ggtok_jinja_take(p)->pos;
    bool negated = ggtok_jinja_skip_name(p, "not");
    uint32_t sym = parse_dotted(p);
    ggtok_jinja_push(p, operand);
    switch (p->next->type) {
    case T_LPAREN: parse_arguments(p); break;
    case T_NAME:
        if (ggtok_jinja_at_name(p, "else") || ggtok_jinja_at_name(p, "or") ||
            ggtok_jinja_at_name(p, "and"))
            break;
        if (ggtok_jinja_at_name(p, "is")) ggtok_jinja_fail_token(p, "only one test");
        ggtok_jinja_push(p, parse_postfix(p, parse_primary(p)));
        break;
    case T_STRING:
    case T_INT:
    case T_FLOAT:
    case T_LBRACKET:
    case T_LBRACE: ggtok_jinja_push(p, parse_postfix(p, parse_primary(p))); break;
    default: break;
    }
    jinja_node *node = ggtok_jinja_node_new(p, N_TEST, pos, mark);
    node->sym = sym;
    node->flag = negated;
    return node;
}

/* Parses the filters after an operand. If `first`, there is no | before the first filter. */
static const jinja_node *parse_filter_chain(jinja_parser *p, const jinja_node *operand,
                                            bool first) {
    if (first) operand = parse_filter(p, operand);
    while (ggtok_jinja_skip(p, T_PIPE)) operand = parse_filter(p, operand);
    return operand;
}

static const jinja_node *parse_unary(jinja_parser *p, bool with_filter) {
    uint32_t pos = p->next->pos;
    const jinja_node *node;
    bool minus = ggtok_jinja_at_operator(p, JINJA_SUB);
    if (minus || ggtok_jinja_at_operator(p, JINJA_ADD)) {
        ggtok_jinja_take(p);
        ggtok_jinja_nest(p);
        node = ggtok_jinja_node_of(p, minus ? N_NEGATIVE : N_POSITIVE, pos, parse_unary(p, false),
                                   NULL);
        p->depth--;
    } else {
        node = parse_primary(p);
    }
    node = parse_postfix(p, node);
    while (with_filter) {
        if (ggtok_jinja_skip(p, T_PIPE))
            node = parse_filter(p, node);
        else if (ggtok_jinja_at_name(p, "is"))
            node = parse_test(p, node);
        else if (jinja_at(p, T_LPAREN))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

const jinja_node *ggtok_jinja_python_printed(jinja_parser *p) {
    return parse_tuple(p, EXPRESSIONS, NULL, false);
}

const jinja_node *ggtok_jinja_python_operand(jinja_parser *p) {
    return parse_unary(p, true);
}

/* ---- targets ---- */

/* Parses a name or a namespace's field: `ns.a`. */
static const jinja_node *parse_target(jinja_parser *p) {
    bool field = jinja_at(p, T_NAME) && p->next[1].type == T_DOT && p->next[2].type == T_NAME;
    const jinja_node *node = parse_primary(p);
    if (!field || node->kind != N_NAME) return node;
    jinja_node *target = (jinja_node *)parse_dot(p, node);
    target->flag = 1;
    return target;
}

static void check_target(jinja_parser *p, const jinja_node *target) {
    bool good = target->kind == N_NAME || target->kind == N_TUPLE ||
                (target->kind == N_ATTRIBUTE && target->flag);
    for (uint32_t i = 0; target->kind == N_TUPLE && i < target->n; i++) {
        check_target(p, target->kids[i]);
    }
    p->mem->at = target->pos;
    if (!good) ggtok_jinja_fail(p->mem, "can only assign to names");
}

static const jinja_node *parse_name_only(jinja_parser *p) {
    if (!jinja_at(p, T_NAME)) ggtok_jinja_fail_token(p, "a name");
    const jinja_node *name = parse_name(p);
    check_target(p, name);
    return name;
}

static const jinja_node *parse_targets(jinja_parser *p, items kind, const char *end_name) {
    const jinja_node *target = parse_tuple(p, kind, end_name, false);
    check_target(p, target);
    return target;
}

/* ---- statements ---- */

static void expect_close(jinja_parser *p) {
    ggtok_jinja_expect(p, T_CLOSE_STATEMENT, "'%}'");
}

/* Parses a block up to one of the end tags. Consumes that tag up to and including its name. */
static const jinja_node *parse_body(jinja_parser *p, const char *const *end_names,
                                    const jinja_token **end) {
    ggtok_jinja_skip(p, T_COLON);
    expect_close(p);
    const jinja_node *body = ggtok_jinja_parse_block(p, end_names);
    if (end) *end = p->next + 1;
    p->next += 2;
    return body;
}

static const jinja_node *parse_for(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endfor", "else", NULL};
    static const char *const last_name[] = {"endfor", NULL};
    size_t mark = p->n_kids;
    const jinja_token *end;
    ggtok_jinja_push(p, parse_targets(p, PRIMARIES, "in"));
    if (!ggtok_jinja_skip_name(p, "in")) ggtok_jinja_fail_token(p, "'in'");
    ggtok_jinja_push(p, parse_tuple(p, WITHOUT_CONDITIONS, "recursive", false));
    ggtok_jinja_push(p, ggtok_jinja_skip_name(p, "if") ? ggtok_jinja_parse_expression(p) : NULL);
    bool recursive = ggtok_jinja_skip_name(p, "recursive");
    p->loops++;
    ggtok_jinja_push(p, parse_body(p, end_names, &end));
    p->loops--;
    ggtok_jinja_push(p, ggtok_jinja_token_is(end, "else") ? parse_body(p, last_name, NULL) : NULL);
    jinja_node *node = ggtok_jinja_node_new(p, N_FOR, pos, mark);
    node->flag = recursive;
    return node;
}

static const jinja_node *parse_if(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"elif", "else", "endif", NULL};
    static const char *const last_name[] = {"endif", NULL};
    size_t mark = p->n_kids;
    const jinja_token *end;
    do {
        ggtok_jinja_push(p, parse_tuple(p, WITHOUT_CONDITIONS, NULL, false));
        ggtok_jinja_push(p, parse_body(p, end_names, &end));
    } while (ggtok_jinja_token_is(end, "elif"));
    if (ggtok_jinja_token_is(end, "else")) ggtok_jinja_push(p, parse_body(p, last_name, NULL));
    return ggtok_jinja_node_new(p, N_IF, pos, mark);
}

static const jinja_node *parse_set(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endset", NULL};
    size_t mark = p->n_kids;
    ggtok_jinja_push(p, parse_targets(p, TARGETS, NULL));
    if (ggtok_jinja_skip(p, T_ASSIGN)) {
        ggtok_jinja_push(p, parse_tuple(p, EXPRESSIONS, NULL, false));
        return ggtok_jinja_node_new(p, N_SET, pos, mark);
    }
    ggtok_jinja_push(p, ggtok_jinja_skip(p, T_PIPE) ? parse_filter_chain(p, NULL, true) : NULL);
    ggtok_jinja_push(p, parse_body(p, end_names, NULL));
    return ggtok_jinja_node_new(p, N_SET_BLOCK, pos, mark);
}

static void parse_signature(jinja_parser *p) {
    bool defaults = false;
    size_t mark = p->n_kids;
    ggtok_jinja_expect(p, T_LPAREN, "'('");
    while (!jinja_at(p, T_RPAREN)) {
        if (p->n_kids > mark) ggtok_jinja_expect(p, T_COMMA, "','");
        const jinja_node *name = parse_name_only(p);
        if (ggtok_jinja_skip(p, T_ASSIGN)) {
            jinja_node *keyword =
                ggtok_jinja_node_of(p, N_KEYWORD, name->pos, ggtok_jinja_parse_expression(p), NULL);
            keyword->sym = name->sym;
            name = keyword;
            defaults = true;
        } else if (defaults) {
            ggtok_jinja_fail_token(p, "a default, as the parameter before it has one");
        }
        ggtok_jinja_push(p, name);
    }
    ggtok_jinja_take(p);
}

/* Parses the body of a block. A break in the body doesn't refer to the loops around the block, so
 * p->loops doesn't count them. */
static const jinja_node *parse_own_body(jinja_parser *p, const char *const *end_names) {
    uint32_t loops = p->loops;
    p->loops = 0;
    const jinja_node *body = parse_body(p, end_names, NULL);
    p->loops = loops;
    return body;
}

static const jinja_node *parse_macro(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endmacro", NULL};
    size_t mark = p->n_kids;
    uint32_t sym = parse_name_only(p)->sym;
    parse_signature(p);
    ggtok_jinja_push(p, parse_own_body(p, end_names));
    jinja_node *node = ggtok_jinja_node_new(p, N_MACRO, pos, mark);
    node->sym = sym;
    return node;
}

static const jinja_node *parse_call_block(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endcall", NULL};
    size_t mark = p->n_kids;
    ggtok_jinja_push(p, NULL);
    if (jinja_at(p, T_LPAREN)) parse_signature(p);
    const jinja_node *call = ggtok_jinja_parse_expression(p);
    if (call->kind != N_CALL) ggtok_jinja_fail_token(p, "a call before this");
    p->kids[mark] = call;
    ggtok_jinja_push(p, parse_own_body(p, end_names));
    return ggtok_jinja_node_new(p, N_CALL_BLOCK, pos, mark);
}

static const jinja_node *parse_filter_block(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endfilter", NULL};
    size_t mark = p->n_kids;
    ggtok_jinja_push(p, parse_filter_chain(p, NULL, true));
    ggtok_jinja_push(p, parse_body(p, end_names, NULL));
    return ggtok_jinja_node_new(p, N_FILTER_BLOCK, pos, mark);
}

static const jinja_node *parse_with(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endwith", NULL};
    size_t mark = p->n_kids;
    while (!jinja_at(p, T_CLOSE_STATEMENT) && !jinja_at(p, T_COLON)) {
        if (p->n_kids > mark) ggtok_jinja_expect(p, T_COMMA, "','");
        ggtok_jinja_push(p, parse_targets(p, PRIMARIES, NULL));
        ggtok_jinja_expect(p, T_ASSIGN, "'='");
        ggtok_jinja_push(p, ggtok_jinja_parse_expression(p));
    }
    ggtok_jinja_push(p, parse_body(p, end_names, NULL));
    return ggtok_jinja_node_new(p, N_WITH, pos, mark);
}

static const jinja_node *parse_generation(jinja_parser *p, uint32_t pos) {
    static const char *const end_names[] = {"endgeneration", NULL};
    const jinja_node *body = parse_own_body(p, end_names);
    return ggtok_jinja_node_of(p, N_GENERATION, pos, body, NULL);
}

static const jinja_node *parse_print(jinja_parser *p, uint32_t pos) {
    size_t mark = p->n_kids;
    while (!jinja_at(p, T_CLOSE_STATEMENT)) {
        if (p->n_kids > mark) ggtok_jinja_expect(p, T_COMMA, "','");
        ggtok_jinja_push(
            p, ggtok_jinja_node_of(p, N_OUTPUT, pos, ggtok_jinja_parse_expression(p), NULL));
    }
    return ggtok_jinja_node_new(p, N_BLOCK, pos, mark);
}

static const jinja_node *parse_jump(jinja_parser *p, uint32_t pos, jinja_kind kind) {
    p->mem->at = pos;
    if (!p->loops) ggtok_jinja_fail(p->mem, "break or continue outside a loop");
    return ggtok_jinja_node_new(p, kind, pos, p->n_kids);
}

const jinja_node *ggtok_jinja_python_statement(jinja_parser *p) {
    static const struct {
        const char *name;
        const jinja_node *(*parse)(jinja_parser *p, uint32_t pos);
    } statements[] = {
        {"for", parse_for},         {"if", parse_if},
        {"set", parse_set},         {"macro", parse_macro},
        {"call", parse_call_block}, {"filter", parse_filter_block},
        {"with", parse_with},       {"generation", parse_generation},
        {"print", parse_print},
    };
    ggtok_jinja_take(p);
    const jinja_token *name = p->next;
    if (name->type != T_NAME) ggtok_jinja_fail_token(p, "a statement");
    uint32_t pos = ggtok_jinja_take(p)->pos;
    const jinja_node *node = NULL;
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        if (ggtok_jinja_token_is(name, statements[i].name)) node = statements[i].parse(p, pos);
    }
    if (ggtok_jinja_token_is(name, "break")) node = parse_jump(p, pos, N_BREAK);
    if (ggtok_jinja_token_is(name, "continue")) node = parse_jump(p, pos, N_CONTINUE);
    if (!node) {
        p->mem->at = pos;
        ggtok_jinja_fail(p->mem, "unknown statement '%.*s'", text_prefix(name->text, name->n, 60),
                         (const char *)name->text);
    }
    expect_close(p);
    return node;
}
