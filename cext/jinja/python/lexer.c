/* jinja2's lexer, with transformers' settings. */
#include "jinja/core/number.h"
#include "jinja/python/dialect.h"
#include "unicode/unicode.h"
#include "unicode/utf8_valid.h"

typedef struct lexer {
    jinja_template *t;
    jinja_arena *mem;
    jinja_tokens *tokens;
    const uint8_t *src;
    size_t n, pos;
    uint8_t *open; /* stack of the open brackets in a tag */
    size_t n_open;
} lexer;

static uint8_t at(const lexer *x, size_t pos) {
    return pos < x->n ? x->src[pos] : 0;
}

static bool looking_at(const lexer *x, size_t pos, const char *s) {
    size_t n = strlen(s);
    return x->n - (pos < x->n ? pos : x->n) >= n && !memcmp(x->src + pos, s, n);
}

static jinja_token *add(lexer *x, jinja_token_type type, size_t pos, const void *text, size_t n) {
    return ggtok_jinja_token_add(x->mem, x->tokens, type, pos, text, n);
}

/* Returns the length of the white-space character at pos, or 0 if there is none. */
static size_t space_at(const lexer *x, size_t pos) {
    if (pos >= x->n) return 0;
    const uint8_t *p = x->src + pos;
    uint32_t c = utf8_next(&p);
    return ggtok_jinja_is_space(c) ? (size_t)(p - x->src) - pos : 0;
}

static size_t skip_space(const lexer *x, size_t pos) {
    for (size_t n; (n = space_at(x, pos));) pos += n;
    return pos;
}

/* Returns the beginning of the white space that ends at `end`; at least `begin`. */
static size_t space_before(const lexer *x, size_t begin, size_t end) {
    while (end > begin) {
        size_t at = end - 1;
        while (at > begin && utf8_continues(x->src[at])) at--;
        if (!space_at(x, at)) break;
        end = at;
    }
    return end;
}

/* ---- text between tags ---- */

/* Adds the text [begin, end) before a tag, trimmed as the tag's sign and lstrip_blocks require. */
static void add_text(lexer *x, size_t begin, size_t end, uint8_t sign, bool variable,
                     bool line_start) {
    if (sign == '-') {
        end = space_before(x, begin, end);
    } else if (sign != '+' && !variable) {
        size_t line = end;
        while (line > begin && x->src[line - 1] != '\n') line--;
        if ((line > begin || line_start) && space_before(x, line, end) == line) end = line;
    }
    jinja_charge_bytes(x->mem, end - begin);
    if (end > begin) add(x, T_TEXT, begin, x->src + begin, end - begin);
}

/* Skips the white space that the end of a tag or comment strips. Returns the new position. */
static size_t after_end(const lexer *x, size_t pos, bool minus, bool plus) {
    if (minus) return skip_space(x, pos);
    return !plus && at(x, pos) == '\n' ? pos + 1 : pos;
}

static void skip_comment(lexer *x, size_t start) {
    for (size_t i = x->pos; i + 1 < x->n; i++) {
        if (x->src[i] != '#' || x->src[i + 1] != '}') continue;
        bool sign = i > x->pos; /* the minus in {#-#} belongs to the beginning */
        x->pos = after_end(x, i + 2, sign && x->src[i - 1] == '-', sign && x->src[i - 1] == '+');
        return;
    }
    ggtok_jinja_fail_at(x->mem, start, "the comment is not closed");
}

/* Returns where the text after a {% raw %} tag begins, without white space that `-%}` strips; 0 if
 * it is another tag. `pos` follows `{%` and its sign. */
static size_t raw_begins(const lexer *x, size_t pos) {
    pos = skip_space(x, pos);
    if (!looking_at(x, pos, "raw")) return 0;
    pos = skip_space(x, pos + 3);
    bool minus = at(x, pos) == '-';
    if (!looking_at(x, pos + minus, "%}")) return 0;
    pos += minus + 2u;
    return minus ? skip_space(x, pos) : pos;
}

static void lex_raw(lexer *x, size_t start) {
    for (size_t i = x->pos; i + 1 < x->n; i++) {
        if (x->src[i] != '{' || x->src[i + 1] != '%') continue;
        uint8_t sign = at(x, i + 2);
        bool signed_ = sign == '-' || sign == '+';
        size_t pos = skip_space(x, i + 2 + signed_);
        if (!looking_at(x, pos, "endraw")) continue;
        pos = skip_space(x, pos + 6);
        uint8_t end_sign = at(x, pos);
        bool minus = end_sign == '-', plus = end_sign == '+';
        if (!looking_at(x, pos + (minus || plus), "%}")) continue;
        add_text(x, x->pos, i, signed_ ? sign : 0, false, x->src[x->pos - 1] == '\n');
        x->pos = after_end(x, pos + (minus || plus) + 2, minus, plus);
        return;
    }
    ggtok_jinja_fail_at(x->mem, start, "the raw block is not closed");
}

/* ---- inside tags ---- */

static const struct {
    char text[3];
    uint8_t type, op;
} marks[] = {
    {"//", T_OPERATOR, JINJA_FLOORDIV},
    {"**", T_OPERATOR, JINJA_POW},
    {"==", T_OPERATOR, JINJA_EQ},
    {"!=", T_OPERATOR, JINJA_NE},
    {">=", T_OPERATOR, JINJA_GE},
    {"<=", T_OPERATOR, JINJA_LE},
    {"+", T_OPERATOR, JINJA_ADD},
    {"-", T_OPERATOR, JINJA_SUB},
    {"/", T_OPERATOR, JINJA_DIV},
    {"*", T_OPERATOR, JINJA_MUL},
    {"%", T_OPERATOR, JINJA_MOD},
    {"~", T_OPERATOR, JINJA_TILDE},
    {">", T_OPERATOR, JINJA_GT},
    {"<", T_OPERATOR, JINJA_LT},
    {"[", T_LBRACKET, 0},
    {"]", T_RBRACKET, 0},
    {"(", T_LPAREN, 0},
    {")", T_RPAREN, 0},
    {"{", T_LBRACE, 0},
    {"}", T_RBRACE, 0},
    {"=", T_ASSIGN, 0},
    {".", T_DOT, 0},
    {":", T_COLON, 0},
    {"|", T_PIPE, 0},
    {",", T_COMMA, 0},
    {";", T_SEMICOLON, 0},
};

static void balance(lexer *x, uint8_t c) {
    static const char opening[] = "([{", closing[] = ")]}";
    const char *close = strchr(closing, c);
    if (strchr(opening, c)) {
        x->open[x->n_open++] = c;
    } else if (close) {
        if (!x->n_open || x->open[x->n_open - 1] != (uint8_t)opening[close - closing]) {
            ggtok_jinja_fail_at(x->mem, x->pos, "unmatched closing bracket");
        }
        x->n_open--;
    }
}

static bool lex_mark(lexer *x) {
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        size_t n = strlen(marks[i].text);
        if (!looking_at(x, x->pos, marks[i].text)) continue;
        balance(x, (uint8_t)marks[i].text[0]);
        add(x, marks[i].type, x->pos, x->src + x->pos, n)->op = marks[i].op;
        x->pos += n;
        return true;
    }
    return false;
}

static bool is_digit(uint8_t c) {
    return c >= '0' && c <= '9';
}

/* Returns the end of the digits at pos, in this base, with single underscores between them. */
static size_t digits_end(const lexer *x, size_t pos, unsigned base) {
    for (;; pos++) {
        uint8_t c = at(x, pos);
        if (c == '_') c = at(x, ++pos);
        unsigned d = is_digit(c) ? c - 48u : (c | 32) >= 'a' ? (unsigned)(c | 32) - 'a' + 10 : 99;
        if (d >= base) return at(x, pos - 1) == '_' ? pos - 1 : pos;
    }
}

/* Copies the digits without underscores; returns how many there are. */
static size_t plain_digits(lexer *x, size_t begin, size_t end, uint8_t **out) {
    size_t n = 0;
    *out = jinja_alloc(x->mem, end - begin + 1);
    for (size_t i = begin; i < end; i++) {
        if (x->src[i] != '_') (*out)[n++] = x->src[i];
    }
    jinja_charge_bytes(x->mem, end - begin);
    return n;
}

/* Returns the end of the float at pos, or 0 if there is none. */
static size_t float_end(const lexer *x, size_t pos) {
    if (pos && x->src[pos - 1] == '.') return 0;
    size_t whole = digits_end(x, pos, 10), end = whole;
    bool fraction = at(x, whole) == '.' && is_digit(at(x, whole + 1));
    if (fraction) end = digits_end(x, whole + 1, 10);
    if ((at(x, end) | 32) == 'e') {
        size_t e = end + 1;
        if (at(x, e) == '+' || at(x, e) == '-') e++;
        if (is_digit(at(x, e))) return digits_end(x, e, 10);
    }
    return fraction ? end : 0;
}

static void lex_number(lexer *x) {
    size_t start = x->pos, end = float_end(x, start);
    uint8_t *digits;
    if (end) {
        double f;
        size_t n = plain_digits(x, start, end, &digits);
        if (!ggtok_jinja_parse_float(x->mem, digits, n, &f))
            ggtok_jinja_fail_at(x->mem, start, "invalid number");
        x->pos = end;
        add(x, T_FLOAT, start, x->src + start, end - start)->value = jinja_float(f);
        return;
    }
    unsigned base = 10;
    size_t begin = start;
    uint8_t kind = at(x, start + 1) | 32;
    if (x->src[start] == '0') {
        unsigned other = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
        size_t after = start + 2 + (at(x, start + 2) == '_');
        if (other && digits_end(x, after, other) > after) base = other, begin = after;
    }
    end = digits_end(x, begin, base);
    if (base == 10 && x->src[start] == '0') { /* 0, 00, 0_0 are numbers; 01 is two numbers */
        end = start + 1;
        while (at(x, end) == '0' || (at(x, end) == '_' && at(x, end + 1) == '0')) end++;
    }
    size_t n = plain_digits(x, begin, end, &digits);
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned d = is_digit(digits[i]) ? digits[i] - 48u : (unsigned)(digits[i] | 32) - 'a' + 10;
        if (value > ((uint64_t)INT64_MAX - d) / base) {
            if (base != 10) ggtok_jinja_fail_at(x->mem, start, JINJA_TOO_LARGE);
            x->pos = end;
            add(x, T_INT, start, x->src + start, end - start)->value =
                ggtok_jinja_big(x->mem, digits, n);
            return;
        }
        value = value * base + d;
    }
    x->pos = end;
    add(x, T_INT, start, x->src + start, end - start)->value = jinja_int((int64_t)value);
}

/* Decodes the escape after a backslash as Python does. Writes at most 12 bytes to `out` and returns
 * their number. */
static size_t read_escape(lexer *x, size_t *pos, uint8_t *out) {
    static const char names[] = "\\'\"abfnrtv", means[] = "\\'\"\a\b\f\n\r\t\v";
    uint8_t c = at(x, *pos);
    const char *name = c ? strchr(names, c) : NULL;
    unsigned hex = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (name) return ++*pos, *out = (uint8_t)means[name - names], 1;
    if (c == '\n') return ++*pos, 0;
    uint32_t point = 0;
    if (c >= '0' && c <= '7') {
        for (int i = 0; i < 3 && at(x, *pos) >= '0' && at(x, *pos) <= '7'; i++) {
            point = 8 * point + (x->src[(*pos)++] - '0');
        }
        return ggtok_utf8_encode(point, out);
    }
    if (c == 'N') ggtok_jinja_fail_at(x->mem, *pos, "character names (\\N) are not supported");
    if (!hex) return *out = '\\', 1; /* not an escape: the backslash stays */
    ++*pos;
    for (unsigned i = 0; i < hex; i++, ++*pos) {
        uint8_t d = at(x, *pos);
        if (is_digit(d))
            point = point << 4 | (uint32_t)(d - '0');
        else if ((d | 32) >= 'a' && (d | 32) <= 'f')
            point = point << 4 | (uint32_t)((d | 32) - 'a' + 10);
        else
            ggtok_jinja_fail_at(x->mem, *pos, "invalid escape in a string");
    }
    if (point > 0x10FFFF) ggtok_jinja_fail_at(x->mem, *pos, "invalid escape in a string");
    if (point >= 0xD800 && point < 0xE000)
        ggtok_jinja_fail_at(x->mem, *pos, "unpaired surrogate in a string");
    return ggtok_utf8_encode(point, out);
}

static void lex_string(lexer *x) {
    size_t start = x->pos, end = start + 1, n = 0;
    uint8_t quote = x->src[start];
    bool escapes = false;
    while (end < x->n && x->src[end] != quote) {
        if (x->src[end] == '\\') escapes = true, end++;
        end++;
    }
    if (end >= x->n) ggtok_jinja_fail_at(x->mem, start, "the string is not closed");
    jinja_charge_bytes(x->mem, end - start);
    x->pos = end + 1;
    if (!escapes) {
        add(x, T_STRING, start, x->src + start + 1, end - start - 1);
        return;
    }
    uint8_t *own = jinja_alloc(x->mem, 2 * (end - start) + 16);
    for (size_t i = start + 1; i < end;) {
        if (x->src[i] != '\\')
            own[n++] = x->src[i++];
        else
            i++, n += read_escape(x, &i, own + n);
    }
    add(x, T_STRING, start, own, n);
}

/* Returns the length of the character at pos if a name may contain it, otherwise 0. Names contain
 * letters, underscores and, after the first character, numbers and combining marks. */
static size_t name_at(const lexer *x, size_t pos, bool first) {
    const unsigned letters = UNICODE_LETTER, others = UNICODE_NUMBER | UNICODE_MARK;
    uint8_t c = at(x, pos);
    if (c < 0x80)
        return c == '_' || (!first && is_digit(c)) || ((c | 32) >= 'a' && (c | 32) <= 'z');
    const uint8_t *p = x->src + pos;
    unsigned flags = ggtok_unicode_flags(utf8_next(&p));
    return flags & (first ? letters : letters | others) ? (size_t)(p - x->src) - pos : 0;
}

/* Adds the tokens of a tag, including its end. */
static void lex_tag(lexer *x, bool variable) {
    const char *close = variable ? "}}" : "%}";
    x->n_open = 0;
    for (;;) {
        x->pos = skip_space(x, x->pos);
        jinja_charge(x->mem, 1);
        if (x->pos >= x->n) return; /* the parser reports the missing end */
        uint8_t c = x->src[x->pos];
        bool minus = c == '-', plus = c == '+' && !variable;
        if (!x->n_open && looking_at(x, x->pos + (minus || plus), close)) {
            add(x, variable ? T_CLOSE_EXPRESSION : T_CLOSE_STATEMENT, x->pos, close, 2);
            x->pos += 2u + (minus || plus);
            if (variable)
                x->pos = minus ? skip_space(x, x->pos) : x->pos;
            else
                x->pos = after_end(x, x->pos, minus, plus);
            return;
        }
        if (is_digit(c)) {
            lex_number(x);
        } else if (c == '\'' || c == '"') {
            lex_string(x);
        } else if (name_at(x, x->pos, true)) {
            size_t start = x->pos;
            for (size_t n; (n = name_at(x, x->pos, x->pos == start));) x->pos += n;
            add(x, T_NAME, start, x->src + start, x->pos - start);
        } else if (!lex_mark(x)) {
            ggtok_jinja_fail_at(x->mem, x->pos, "unexpected character");
        }
    }
}

/* ---- the whole template ---- */

static void normalize(lexer *x) {
    jinja_template *t = x->t;
    char *src = jinja_alloc(x->mem, t->n_source + 1);
    size_t n = 0;
    jinja_charge_bytes(x->mem, t->n_source);
    for (size_t i = 0; i < t->n_source; i++) {
        char c = t->source[i];
        if (c == '\r' && i + 1 < t->n_source && t->source[i + 1] == '\n') continue;
        src[n++] = c == '\r' ? '\n' : c;
    }
    if (n && src[n - 1] == '\n') n--;
    src[n] = 0;
    x->mem->source = t->source = src;
    x->mem->n_source = t->n_source = n;
    x->src = (const uint8_t *)src;
    x->n = n;
}

void ggtok_jinja_python_lex(jinja_template *t, jinja_tokens *tokens) {
    lexer x = {.t = t, .mem = &t->arena, .tokens = tokens};
    normalize(&x);
    if (ggtok_utf8_valid_prefix(x.src, x.n) != x.n)
        ggtok_jinja_fail(x.mem, "the template is not UTF-8");
    x.open = jinja_alloc(x.mem, x.n + 1);
    bool line_start = true;
    while (x.pos < x.n) {
        size_t begin = x.pos, tag = begin;
        for (;; tag++) {
            const uint8_t *brace = memchr(x.src + tag, '{', x.n - tag);
            tag = brace ? (size_t)(brace - x.src) : x.n;
            uint8_t c = at(&x, tag + 1);
            if (!brace || c == '{' || c == '%' || c == '#') break;
        }
        if (tag == x.n) {
            add(&x, T_TEXT, begin, x.src + begin, x.n - begin);
            break;
        }
        uint8_t kind = x.src[tag + 1], sign = at(&x, tag + 2);
        bool has_sign = sign == '-' || sign == '+';
        add_text(&x, begin, tag, has_sign ? sign : 0, kind == '{', line_start);
        x.pos = tag + 2 + has_sign;
        size_t raw = kind == '%' ? raw_begins(&x, x.pos) : 0;
        if (kind == '#') {
            skip_comment(&x, tag);
        } else if (raw) {
            x.pos = raw;
            lex_raw(&x, tag);
        } else {
            add(&x, kind == '{' ? T_OPEN_EXPRESSION : T_OPEN_STATEMENT, tag, x.src + tag, 2);
            lex_tag(&x, kind == '{');
        }
        line_start = x.pos && x.src[x.pos - 1] == '\n';
    }
    ggtok_jinja_token_add(x.mem, tokens, T_END, x.n, "", 0);
}
