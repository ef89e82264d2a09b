/*
 * llama.cpp's lexer. It trims white space around tags by looking at the adjacent bytes, which has
 * odd effects: the first character of a template is lost if only white space separates it from a
 * {% tag (docs/design/jinja.md).
 */
#include "jinja/core/number.h"
#include "jinja/core/tree.h"

typedef struct lexer {
    jinja_arena *mem;
    jinja_tokens *tokens;
    const uint8_t *src;
    size_t n, pos;
    size_t braces; /* number of open braces; wraps around like llama.cpp's counter */
    jinja_token_type last;
    bool last_is_closing; /* at the start, or after the end of a tag or comment */
} lexer;

static uint8_t at(const lexer *x, size_t pos) {
    return pos < x->n ? x->src[pos] : 0;
}

static bool next_is(const lexer *x, size_t ahead, const char *set) {
    uint8_t c = at(x, x->pos + ahead);
    return x->pos + ahead < x->n && c && strchr(set, c);
}

static bool is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}
static bool is_digit(uint8_t c) {
    return c >= '0' && c <= '9';
}
static bool is_word(uint8_t c) {
    return is_digit(c) || c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z');
}
static bool is_blank(uint8_t c) { /* white space that a minus in a tag strips */
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static jinja_token *add(lexer *x, jinja_token_type type, size_t pos, const void *text, size_t n) {
    x->last = type;
    x->last_is_closing = type == T_CLOSE_STATEMENT || type == T_CLOSE_EXPRESSION;
    return ggtok_jinja_token_add(x->mem, x->tokens, type, pos, text, n);
}

/* ---- text between tags ---- */

/* Strips the white space between the last newline of the text [start, end) and the tag that
 * follows. Returns the new end of the text. */
static size_t strip_line(const lexer *x, size_t start, size_t end) {
    for (size_t i = end; i > start; i--) {
        uint8_t c = x->src[i - 1];
        if (i == 1) return 0;
        if (c == '\n') return i;
        if (!is_space(c)) break;
    }
    return end;
}

/* Adds the text up to the next tag. Returns false if the trimmed text is empty. */
static bool lex_text(lexer *x) {
    bool after_minus = false, drop_newline = false;
    if (x->pos > 3) {
        uint8_t a = x->src[x->pos - 3], b = x->src[x->pos - 2], c = x->src[x->pos - 1];
        after_minus = a == '-' && (b == '%' || b == '}' || b == '#') && c == '}';
        drop_newline = (b == '#' || b == '%' || b == '-') && c == '}';
    }
    size_t start = x->pos;
    while (x->pos < x->n) {
        const uint8_t *brace = memchr(x->src + x->pos, '{', x->n - x->pos);
        x->pos = brace ? (size_t)(brace - x->src) : x->n;
        if (!brace || next_is(x, 1, "%{#")) break;
        x->pos++;
    }
    jinja_charge_bytes(x->mem, x->pos - start);
    size_t begin = start, end = x->pos;
    if (at(x, x->pos) == '{' && next_is(x, 1, "%#-")) end = strip_line(x, start, end);
    if (end < begin) begin = end;
    if (drop_newline && begin < end && x->src[begin] == '\n') begin++;
    if (after_minus) {
        while (begin < end && is_blank(x->src[begin])) begin++;
    }
    if (at(x, x->pos) == '{' && next_is(x, 1, "{%#") && next_is(x, 2, "-")) {
        while (end > begin && is_blank(x->src[end - 1])) end--;
    }
    if (begin == end) return false;
    add(x, T_TEXT, start, x->src + begin, end - begin);
    return true;
}

static void skip_comment(lexer *x) {
    size_t start = x->pos;
    x->pos += 2;
    while (!(at(x, x->pos) == '#' && next_is(x, 1, "}"))) {
        if (x->pos + 2 >= x->n) ggtok_jinja_fail_at(x->mem, start, "the comment is not closed");
        x->pos++;
    }
    jinja_charge_bytes(x->mem, x->pos - start);
    x->pos += 2;
    x->last = T_END;
    x->last_is_closing = true;
}

/* ---- inside tags ---- */

static const struct {
    char text[4];
    uint8_t type, op;
} marks[] = {
    /* the first match wins */
    {"{%-", T_OPEN_STATEMENT, 0},
    {"-%}", T_CLOSE_STATEMENT, 0},
    {"{{-", T_OPEN_EXPRESSION, 0},
    {"-}}", T_CLOSE_EXPRESSION, 0},
    {"{%", T_OPEN_STATEMENT, 0},
    {"%}", T_CLOSE_STATEMENT, 0},
    {"{{", T_OPEN_EXPRESSION, 0},
    {"}}", T_CLOSE_EXPRESSION, 0},
    {"(", T_LPAREN, 0},
    {")", T_RPAREN, 0},
    {"{", T_LBRACE, 0},
    {"}", T_RBRACE, 0},
    {"[", T_LBRACKET, 0},
    {"]", T_RBRACKET, 0},
    {",", T_COMMA, 0},
    {".", T_DOT, 0},
    {":", T_COLON, 0},
    {"|", T_PIPE, 0},
    {"<=", T_OPERATOR, JINJA_LE},
    {">=", T_OPERATOR, JINJA_GE},
    {"==", T_OPERATOR, JINJA_EQ},
    {"!=", T_OPERATOR, JINJA_NE},
    {"<", T_OPERATOR, JINJA_LT},
    {">", T_OPERATOR, JINJA_GT},
    {"+", T_OPERATOR, JINJA_ADD},
    {"-", T_OPERATOR, JINJA_SUB},
    {"~", T_OPERATOR, JINJA_TILDE},
    {"*", T_OPERATOR, JINJA_MUL},
    {"/", T_OPERATOR, JINJA_DIV},
    {"%", T_OPERATOR, JINJA_MOD},
    {"=", T_ASSIGN, 0},
};

static bool lex_mark(lexer *x) {
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        size_t n = strlen(marks[i].text);
        if (marks[i].text[0] != (char)x->src[x->pos]) continue;
        if (x->braces && !strcmp(marks[i].text, "}}")) continue; /* closes two dicts */
        if (x->n - x->pos < n || memcmp(x->src + x->pos, marks[i].text, n)) continue;
        add(x, marks[i].type, x->pos, x->src + x->pos, n)->op = marks[i].op;
        if (marks[i].type == T_OPEN_EXPRESSION)
            x->braces = 0;
        else if (marks[i].type == T_LBRACE)
            x->braces++;
        else if (marks[i].type == T_RBRACE)
            x->braces--;
        x->pos += n;
        return true;
    }
    return false;
}

static void lex_string(lexer *x) {
    static const char names[] = "ntrbfv\\'\"", means[] = "\n\t\r\b\f\v\\'\"";
    size_t start = x->pos, begin = start + 1, end = begin;
    uint8_t quote = x->src[start];
    bool escapes = false;
    while (end < x->n && x->src[end] != quote) {
        if (x->src[end] == '\\') {
            escapes = true;
            if (++end >= x->n) break;
            if (!x->src[end] || !strchr(names, x->src[end])) {
                ggtok_jinja_fail_at(x->mem, end, "unknown escape in a string");
            }
        }
        end++;
    }
    if (end >= x->n) ggtok_jinja_fail_at(x->mem, start, "the string is not closed");
    jinja_charge_bytes(x->mem, end - begin);
    x->pos = end + 1;
    if (!escapes) {
        add(x, T_STRING, start, x->src + begin, end - begin);
        return;
    }
    uint8_t *own = jinja_alloc(x->mem, end - begin);
    size_t n = 0;
    for (size_t i = begin; i < end; i++) {
        if (x->src[i] == '\\')
            own[n++] = (uint8_t)means[strchr(names, x->src[++i]) - names];
        else
            own[n++] = x->src[i];
    }
    add(x, T_STRING, start, own, n);
}

/* Reads digits with an optional fraction. `start` is the offset of the number, including its
 * sign. */
static void lex_number(lexer *x, size_t start) {
    size_t begin = x->pos;
    bool fraction = false;
    while (is_digit(at(x, x->pos))) x->pos++;
    if (at(x, x->pos) == '.' && is_digit(at(x, x->pos + 1))) {
        fraction = true;
        x->pos++;
        while (is_digit(at(x, x->pos))) x->pos++;
    }
    size_t n = x->pos - begin;
    bool negative = start < begin && x->src[start] == '-', fits;
    jinja_value value;
    jinja_charge_bytes(x->mem, n);
    if (fraction) {
        double f;
        fits = ggtok_jinja_parse_float(x->mem, x->src + begin, n, &f) &&
               ggtok_jinja_float_is_normal(f);
        value = jinja_float(negative ? -f : f);
    } else {
        int64_t i;
        fits = ggtok_jinja_parse_int(x->mem, x->src + begin, n, negative, &i);
        value = jinja_int(i);
    }
    jinja_token *token = add(x, fraction ? T_FLOAT : T_INT, start, x->src + start, x->pos - start);
    token->value = value;
    token->op = !fits; /* out of range; the parser fails if it uses the value */
}

/* Reads a sign: a + or - that doesn't follow an operand. */
static bool lex_sign(lexer *x) {
    uint8_t c = x->src[x->pos];
    bool closing = c == '-' && next_is(x, 1, "%}");
    if ((c != '-' && c != '+') || closing) return false;
    switch (x->tokens->n ? x->last : T_TEXT) {
    case T_TEXT: ggtok_jinja_fail_at(x->mem, x->pos, "unexpected character");
    case T_NAME:
    case T_INT:
    case T_FLOAT:
    case T_STRING:
    case T_RPAREN:
    case T_RBRACKET: return false;
    default: break;
    }
    size_t start = x->pos++;
    bool dot = at(x, x->pos) == '.' && is_digit(at(x, x->pos + 1)); /* as in -.5 */
    if (dot || is_digit(at(x, x->pos)))
        lex_number(x, start);
    else
        add(x, T_SIGN, start, x->src + start, 1)->op = c == '-' ? JINJA_SUB : JINJA_ADD;
    return true;
}

static void lex_in_tag(lexer *x) {
    if (at(x, x->pos) == '-' && (x->last == T_OPEN_EXPRESSION || x->last == T_OPEN_STATEMENT)) {
        if (++x->pos >= x->n) return;
    }
    while (is_space(at(x, x->pos))) x->pos++;
    if (x->pos >= x->n) return;
    jinja_charge(x->mem, 1);
    if (lex_sign(x) || lex_mark(x)) return;
    uint8_t c = x->src[x->pos];
    if (c == '\'' || c == '"') {
        lex_string(x);
    } else if (is_digit(c)) {
        lex_number(x, x->pos);
    } else if (is_word(c)) {
        size_t start = x->pos;
        while (is_word(at(x, x->pos))) x->pos++;
        add(x, T_NAME, start, x->src + start, x->pos - start);
    } else {
        ggtok_jinja_fail_at(x->mem, x->pos, "unexpected character");
    }
}

/* ---- the whole template ---- */

void ggtok_jinja_llama_lex(jinja_template *t, jinja_tokens *tokens) {
    jinja_arena *mem = &t->arena;
    jinja_charge_bytes(mem, t->n_source);
    char *src = jinja_alloc(mem, t->n_source + 1);
    size_t n = 0;
    bool ends_in_newline = t->n_source && t->source[t->n_source - 1] == '\n';
    for (size_t i = 0; i < t->n_source; i++) {
        char c = t->source[i];
        if (c == '\r') {
            if (i + 1 < t->n_source && t->source[i + 1] == '\n') continue;
            c = '\n';
        }
        src[n++] = c;
    }
    if (ends_in_newline) n--;
    src[n] = 0;
    mem->source = t->source = src;
    mem->n_source = t->n_source = n;
    lexer x = {.mem = mem, .tokens = tokens, .src = (const uint8_t *)src, .n = n};
    x.last = T_END;
    x.last_is_closing = true;
    while (x.pos < x.n) {
        if (x.last_is_closing && lex_text(&x)) continue;
        if (at(&x, x.pos) == '{' && next_is(&x, 1, "#"))
            skip_comment(&x);
        else
            lex_in_tag(&x);
    }
    ggtok_jinja_token_add(mem, tokens, T_END, n, "", 0);
}
