/* The parts of the parser that both dialects share. */
#include "jinja/core/parser.h"

#include "jinja/core/env.h"

/* ---- tokens ---- */

jinja_token *ggtok_jinja_token_add(jinja_arena *mem, jinja_tokens *tokens, jinja_token_type type,
                                   size_t pos, const void *text, size_t n) {
    if (tokens->n == tokens->cap) {
        size_t cap = 2 * tokens->cap + 64;
        jinja_token *data = jinja_alloc_n(mem, cap, sizeof *data);
        if (tokens->n) memcpy(data, tokens->data, tokens->n * sizeof *data);
        tokens->data = data;
        tokens->cap = cap;
    }
    jinja_token *token = &tokens->data[tokens->n++];
    *token =
        (jinja_token){.type = (uint8_t)type, .pos = (uint32_t)pos, .n = (uint32_t)n, .text = text};
    return token;
}

void ggtok_jinja_fail_token(jinja_parser *p, const char *expected) {
    p->mem->at = p->next->pos;
    if (p->next->type == T_END) {
        ggtok_jinja_fail(p->mem, "the template ends where %s is expected", expected);
    }
    ggtok_jinja_fail(p->mem, "expected %s, found '%.*s'", expected,
                     text_prefix(p->next->text, p->next->n, 40), (const char *)p->next->text);
}

bool ggtok_jinja_token_is(const jinja_token *token, const char *name) {
    size_t n = strlen(name);
    return token->type == T_NAME && token->n == n && !memcmp(token->text, name, n);
}

bool ggtok_jinja_at_name(const jinja_parser *p, const char *name) {
    return ggtok_jinja_token_is(p->next, name);
}

bool ggtok_jinja_at_operator(const jinja_parser *p, jinja_operator op) {
    return p->next->type == T_OPERATOR && p->next->op == op;
}

const jinja_token *ggtok_jinja_take(jinja_parser *p) {
    if (p->next == p->last) ggtok_jinja_fail_token(p, "more");
    return p->next++;
}

bool ggtok_jinja_skip(jinja_parser *p, jinja_token_type type) {
    if (p->next->type != type || p->next == p->last) return false;
    p->next++;
    return true;
}

bool ggtok_jinja_skip_name(jinja_parser *p, const char *name) {
    if (!ggtok_jinja_at_name(p, name)) return false;
    p->next++;
    return true;
}

void ggtok_jinja_expect(jinja_parser *p, jinja_token_type type, const char *what) {
    if (!ggtok_jinja_skip(p, type)) ggtok_jinja_fail_token(p, what);
}

void ggtok_jinja_nest(jinja_parser *p) {
    p->mem->at = p->next->pos;
    if (++p->depth > JINJA_MAX_NESTING) {
        ggtok_jinja_fail(p->mem, "brackets and blocks nest too deeply (more than %d levels)",
                         JINJA_MAX_NESTING);
    }
}

/* ---- names ---- */

uint32_t ggtok_jinja_symbol_of(jinja_template *t, const void *name, size_t n) {
    jinja_arena *mem = &t->arena;
    jinja_value *known = ggtok_jinja_dict_get(mem, t->names, name, n);
    if (known) return (uint32_t)known->as.i;
    if (t->n_symbols == t->cap_symbols) {
        size_t cap = 2 * (size_t)t->cap_symbols + 32;
        jinja_symbol *symbols = jinja_alloc_n(mem, cap, sizeof *symbols);
        if (t->n_symbols) memcpy(symbols, t->symbols, t->n_symbols * sizeof *symbols);
        t->symbols = symbols;
        t->cap_symbols = (uint32_t)cap;
    }
    jinja_text *text = ggtok_jinja_text_copy(mem, name, n, JINJA_FROM_TEMPLATE);
    jinja_symbol *symbol = &t->symbols[t->n_symbols];
    *symbol = (jinja_symbol){.name = text, .member = -1, .filter = -1, .test = -1, .global = -1};
    t->rules->find_builtins(symbol);
    ggtok_jinja_dict_set(mem, t->names, jinja_of_text(text), jinja_int(t->n_symbols));
    return t->n_symbols++;
}

/* ---- nodes ---- */

void ggtok_jinja_push(jinja_parser *p, const jinja_node *kid) {
    if (p->n_kids == p->cap_kids) {
        size_t cap = 2 * p->cap_kids + 64;
        const jinja_node **kids = jinja_alloc_n(p->mem, cap, sizeof *kids);
        if (p->n_kids) memcpy(kids, p->kids, p->n_kids * sizeof *kids);
        p->kids = kids;
        p->cap_kids = cap;
    }
    p->kids[p->n_kids++] = kid;
}

jinja_node *ggtok_jinja_node_new(jinja_parser *p, jinja_kind kind, uint32_t pos, size_t kids_from) {
    jinja_charge(p->mem, 1);
    jinja_node *node = jinja_alloc(p->mem, sizeof *node);
    *node = (jinja_node){.kind = (uint8_t)kind, .pos = pos};
    node->n = (uint32_t)(p->n_kids - kids_from);
    if (node->n) {
        node->kids = jinja_alloc_n(p->mem, node->n, sizeof *node->kids);
        memcpy(node->kids, p->kids + kids_from, node->n * sizeof *node->kids);
    }
    p->n_kids = kids_from;
    return node;
}

jinja_node *ggtok_jinja_node_of(jinja_parser *p, jinja_kind kind, uint32_t pos, const jinja_node *a,
                                const jinja_node *b) {
    size_t mark = p->n_kids;
    if (a) ggtok_jinja_push(p, a);
    if (b) ggtok_jinja_push(p, b);
    return ggtok_jinja_node_new(p, kind, pos, mark);
}

jinja_node *ggtok_jinja_const(jinja_parser *p, uint32_t pos, jinja_value value) {
    jinja_node *node = ggtok_jinja_node_new(p, N_CONST, pos, p->n_kids);
    node->value = value;
    return node;
}

jinja_node *ggtok_jinja_name(jinja_parser *p, const jinja_token *token) {
    jinja_node *node = ggtok_jinja_node_new(p, N_NAME, token->pos, p->n_kids);
    node->sym = ggtok_jinja_symbol_of(p->t, token->text, token->n);
    return node;
}

/* ---- conditions and binary operators ---- */

/* Levels of precedence, lowest first. */
enum { COMPARISONS, SUMS, JOINS, PRODUCTS, POWERS, N_LEVELS };

static const struct {
    uint8_t op;
    uint8_t level[2]; /* by dialect; N_LEVELS: not an operator of that dialect */
} operators[] = {
    {JINJA_EQ, {COMPARISONS, COMPARISONS}},
    {JINJA_NE, {COMPARISONS, COMPARISONS}},
    {JINJA_LT, {COMPARISONS, COMPARISONS}},
    {JINJA_LE, {COMPARISONS, COMPARISONS}},
    {JINJA_GT, {COMPARISONS, COMPARISONS}},
    {JINJA_GE, {COMPARISONS, COMPARISONS}},
    {JINJA_ADD, {SUMS, SUMS}},
    {JINJA_SUB, {SUMS, SUMS}},
    {JINJA_TILDE, {SUMS, JOINS}},
    {JINJA_MUL, {PRODUCTS, PRODUCTS}},
    {JINJA_DIV, {PRODUCTS, PRODUCTS}},
    {JINJA_FLOORDIV, {N_LEVELS, PRODUCTS}},
    {JINJA_MOD, {PRODUCTS, PRODUCTS}},
    {JINJA_POW, {N_LEVELS, POWERS}},
};

/* Consumes an operator of this level if it is the next token. */
static bool take_operator(jinja_parser *p, int level, uint8_t *op) {
    if (level == COMPARISONS && p->next->type == T_NAME) {
        if (ggtok_jinja_skip_name(p, "in")) return *op = JINJA_IN, true;
        if (ggtok_jinja_at_name(p, "not") && ggtok_jinja_token_is(p->next + 1, "in")) {
            p->next += 2;
            return *op = JINJA_NOT_IN, true;
        }
        return false;
    }
    if (p->next->type != T_OPERATOR) return false;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        if (operators[i].op == p->next->op && operators[i].level[p->t->dialect] == level) {
            *op = p->next->op;
            p->next++;
            return true;
        }
    }
    return false;
}

static const jinja_node *parse_operators(jinja_parser *p, int level) {
    const jinja_rules *rules = p->t->rules;
    bool llama = p->t->dialect == JINJA_LLAMA_CPP;
    if (level == N_LEVELS) return rules->operand(p);
    if (llama && (level == JOINS || level == POWERS)) return parse_operators(p, level + 1);
    uint32_t pos = p->next->pos;
    const jinja_node *first = parse_operators(p, level + 1);
    size_t mark = p->n_kids, n_ops = 0, cap = 0;
    uint8_t op, *ops = NULL;
    ggtok_jinja_push(p, first);
    while (take_operator(p, level, &op)) {
        if (n_ops == cap) {
            uint8_t *more = jinja_alloc(p->mem, cap = 2 * cap + 16);
            if (n_ops) memcpy(more, ops, n_ops);
            ops = more;
        }
        ops[n_ops++] = op;
        ggtok_jinja_push(p, level == POWERS ? rules->exponent(p) : parse_operators(p, level + 1));
    }
    if (!n_ops) {
        p->n_kids = mark;
        return first;
    }
    jinja_kind kind = level == JOINS                   ? N_CONCAT
                      : level == COMPARISONS && !llama ? N_COMPARE
                                                       : N_BINARY;
    jinja_node *node = ggtok_jinja_node_new(p, kind, pos, mark);
    node->ops = ops;
    return node;
}

static const jinja_node *parse_not(jinja_parser *p) {
    if (!ggtok_jinja_at_name(p, "not")) return parse_operators(p, COMPARISONS);
    uint32_t pos = ggtok_jinja_take(p)->pos;
    ggtok_jinja_nest(p);
    const jinja_node *node = ggtok_jinja_node_of(p, N_NOT, pos, parse_not(p), NULL);
    p->depth--;
    return node;
}

static const jinja_node *parse_logical(jinja_parser *p, jinja_kind kind) {
    uint32_t pos = p->next->pos;
    const char *name = kind == N_OR ? "or" : "and";
    const jinja_node *first = kind == N_OR ? parse_logical(p, N_AND) : parse_not(p);
    if (!ggtok_jinja_at_name(p, name)) return first;
    size_t mark = p->n_kids;
    ggtok_jinja_push(p, first);
    while (ggtok_jinja_skip_name(p, name)) {
        ggtok_jinja_push(p, kind == N_OR ? parse_logical(p, N_AND) : parse_not(p));
    }
    return ggtok_jinja_node_new(p, kind, pos, mark);
}

const jinja_node *ggtok_jinja_parse_or(jinja_parser *p) {
    return parse_logical(p, N_OR);
}

const jinja_node *ggtok_jinja_parse_expression(jinja_parser *p) {
    uint32_t pos = p->next->pos;
    ggtok_jinja_nest(p);
    const jinja_node *value = ggtok_jinja_parse_or(p);
    while (ggtok_jinja_skip_name(p, "if")) {
        const jinja_node *test = ggtok_jinja_parse_or(p), *other = NULL;
        bool has_else = ggtok_jinja_skip_name(p, "else");
        if (has_else) other = ggtok_jinja_parse_expression(p);
        size_t mark = p->n_kids;
        ggtok_jinja_push(p, test);
        ggtok_jinja_push(p, value);
        ggtok_jinja_push(p, other);
        value = ggtok_jinja_node_new(p, N_CONDITION, pos, mark);
        if (p->t->dialect == JINJA_LLAMA_CPP || has_else) break;
    }
    p->depth--;
    return value;
}

/* ---- templates ---- */

bool ggtok_jinja_at_statement(const jinja_parser *p, const char *name) {
    return jinja_at(p, T_OPEN_STATEMENT) && ggtok_jinja_token_is(p->next + 1, name);
}

static const jinja_node *parse_output(jinja_parser *p) {
    uint32_t pos = ggtok_jinja_take(p)->pos;
    const jinja_node *node = p->t->rules->printed(p);
    ggtok_jinja_expect(p, T_CLOSE_EXPRESSION, "'}}'");
    return ggtok_jinja_node_of(p, N_OUTPUT, pos, node, NULL);
}

static const jinja_node *parse_any(jinja_parser *p) {
    const jinja_token *token = p->next;
    switch (token->type) {
    case T_TEXT: {
        ggtok_jinja_take(p);
        jinja_node *node = ggtok_jinja_node_new(p, N_TEXT, token->pos, p->n_kids);
        node->value =
            jinja_of_text(ggtok_jinja_text_of(p->mem, token->text, token->n, JINJA_FROM_TEMPLATE));
        return node;
    }
    case T_OPEN_EXPRESSION: return parse_output(p);
    case T_OPEN_STATEMENT: return p->t->rules->statement(p);
    default: ggtok_jinja_fail_token(p, "text or a tag");
    }
}

const jinja_node *ggtok_jinja_parse_block(jinja_parser *p, const char *const *end_names) {
    size_t mark = p->n_kids;
    uint32_t pos = p->next->pos;
    ggtok_jinja_nest(p);
    for (;;) {
        for (const char *const *end = end_names; *end; end++) {
            if (!ggtok_jinja_at_statement(p, *end)) continue;
            p->depth--;
            return ggtok_jinja_node_new(p, N_BLOCK, pos, mark);
        }
        if (p->next == p->last) ggtok_jinja_fail_token(p, end_names[0]);
        ggtok_jinja_push(p, parse_any(p));
    }
}

void ggtok_jinja_parse(jinja_template *t, const jinja_tokens *tokens) {
    jinja_parser p = {.mem = &t->arena, .t = t, .next = tokens->data};
    p.last = tokens->data + tokens->n - 1;
    while (p.next < p.last) ggtok_jinja_push(&p, parse_any(&p));
    t->root = ggtok_jinja_node_new(&p, N_BLOCK, 0, 0);
}
