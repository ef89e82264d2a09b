/* Python's % operator on strings, and str.format. */
#include "jinja/core/number.h"
#include "jinja/python/dialect.h"

enum { MOST = 10000 }; /* maximum width or precision */

typedef struct spec {
    uint8_t fill[4];
    size_t n_fill;
    char align; /* '<', '>', '^', '='; 0: none */
    char sign, comma, type;
    bool alternate, zero, no_minus_zero;
    int width, precision; /* in code points; -1: none */
} spec;

static void pad(jinja_builder *b, const spec *s, uint64_t n, jinja_label label) {
    for (; n; n--) ggtok_jinja_builder_add(b, s->fill, s->n_fill, label);
}

/* Writes a text, padded to the width of the spec. Alignment '=' pads after the first `sign`
 * bytes. */
static void put_padded(jinja_builder *b, const spec *s, jinja_text *t, size_t sign, char align,
                       jinja_label label) {
    uint64_t n = ggtok_jinja_chars(b->arena, t),
             room = s->width > (int64_t)n ? (uint64_t)s->width - n : 0;
    if (s->align) align = s->align;
    uint64_t left = align == '>' ? room : align == '^' ? room / 2 : 0;
    if (align == '=') {
        ggtok_jinja_builder_cut(b, t, 0, sign);
        pad(b, s, room, label);
        ggtok_jinja_builder_cut(b, t, sign, t->n);
        return;
    }
    pad(b, s, left, label);
    ggtok_jinja_builder_text(b, t);
    pad(b, s, room - left, label);
}

/* Returns the digits, grouped with the separator s->comma, and the tail. Zeros that fill the width
 * are grouped, too; `n_outside` characters of the width precede the digits or follow the tail. */
static jinja_text *group_digits(jinja_arena *mem, const spec *s, const char *digits, size_t n,
                                size_t n_outside, const char *tail, size_t n_tail) {
    jinja_builder b = ggtok_jinja_builder_new(mem, 2 * n + n_tail);
    b.merge = true;
    size_t every = s->type && strchr("xXob", s->type) ? 4 : 3, all = n;
    bool filled = s->n_fill == 1 && s->fill[0] == '0' && (s->zero || s->align == '=');
    if (s->comma && filled && s->width > 0) {
        size_t width = (size_t)s->width, others = n_outside + n_tail;
        while (others + all + (all ? (all - 1) / every : 0) < width) all++;
    }
    for (size_t i = 0; i < all; i++) {
        if (s->comma && i && (all - i) % every == 0) ggtok_jinja_builder_add(&b, &s->comma, 1, 0);
        ggtok_jinja_builder_add(&b, i < all - n ? "0" : digits + (i - (all - n)), 1, 0);
    }
    ggtok_jinja_builder_add(&b, tail, n_tail, 0);
    return ggtok_jinja_builder_end(&b);
}

/* Writes an integer's digits in the base of a conversion letter; returns their number. */
static size_t int_digits(uint64_t u, char type, char out[80]) {
    unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    const char *digits = type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    char text[80];
    size_t n = 0;
    do text[n++] = digits[u % base];
    while (u /= base);
    for (size_t i = 0; i < n; i++) out[i] = text[n - 1 - i];
    return n;
}

static void put_int(jinja_env *e, jinja_builder *b, const spec *s, int64_t i, jinja_label label) {
    char digits[80], head[4];
    size_t n_head = 0;
    uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    if (i < 0)
        head[n_head++] = '-';
    else if (s->sign == '+' || s->sign == ' ')
        head[n_head++] = s->sign;
    if (s->alternate && s->type && strchr("xXob", s->type)) {
        head[n_head++] = '0';
        head[n_head++] = s->type;
    }
    size_t n = int_digits(u, s->type, digits);
    jinja_builder whole = ggtok_jinja_builder_new(&e->arena, 0);
    whole.merge = true;
    ggtok_jinja_builder_add(&whole, head, n_head, label);
    for (size_t k = n; s->precision >= 0 && k < (size_t)s->precision; k++) {
        ggtok_jinja_builder_add(&whole, "0", 1, label);
    }
    jinja_text *grouped = group_digits(&e->arena, s, digits, n, n_head, "", 0);
    ggtok_jinja_builder_add(&whole, grouped->data, grouped->n, label);
    put_padded(b, s, ggtok_jinja_builder_end(&whole), n_head, s->zero ? '=' : '>', label);
}

static void put_float(jinja_env *e, jinja_builder *b, const spec *s, double f, jinja_label label) {
    char text[JINJA_NUMBER_ROOM], *p = text;
    char type = s->type == 'F' ? 'f' : s->type == '%' ? 'f' : s->type;
    int precision = s->precision < 0 ? 6 : s->precision;
    if (precision > 100)
        ggtok_jinja_fail(&e->arena, "more than 100 decimals of a float are not supported");
    size_t n;
    double size = s->type == '%' ? 100 * f : f;
    if (!type && s->precision < 0) {
        n = ggtok_jinja_format_repr(&e->arena, text, f);
        char *exponent = memchr(text, 'e', n);
        if (s->alternate && exponent && !memchr(text, '.', n)) { /* as in 5.e-324 */
            memmove(exponent + 1, exponent, n - (size_t)(exponent - text));
            *exponent = '.';
            n++;
        }
    } else if (f - f != 0)
        n = ggtok_jinja_format_repr(&e->arena, text, f);
    else {
        if (!type || type == 'n') type = 'g';
        if (type == 'g' && precision == 0) precision = 1;
        bool is_zero = !s->type && size == 0 && precision == 1; /* Python writes 0e+00 */
        n = ggtok_jinja_format(&e->arena, text, is_zero ? 'e' : type, is_zero ? 0 : precision,
                               s->alternate, size);
        if (!s->type && !memchr(text, '.', n) && !memchr(text, 'e', n))
            memcpy(text + n, ".0", 2), n += 2;
    }
    bool negative = *p == '-';
    if (negative) p++, n--;
    if (s->no_minus_zero) {
        size_t zeros = 0;
        while (zeros < n && (p[zeros] == '0' || p[zeros] == '.')) zeros++;
        if (zeros && (zeros == n || p[zeros] == 'e' || p[zeros] == 'E')) negative = false;
    }
    if (f - f != 0 && s->type && strchr("EFG", s->type)) {
        for (size_t i = 0; i < n; i++) p[i] = (char)(p[i] & ~32); /* to INF or NAN */
    }
    size_t whole = 0;
    while (whole < n && p[whole] >= '0' && p[whole] <= '9') whole++;
    jinja_builder out = ggtok_jinja_builder_new(&e->arena, 0);
    out.merge = true;
    char sign = negative ? '-' : s->sign == '+' || s->sign == ' ' ? s->sign : 0;
    if (sign) ggtok_jinja_builder_add(&out, &sign, 1, label);
    jinja_text *digits =
        group_digits(&e->arena, s, p, whole, (sign != 0) + (s->type == '%'), p + whole, n - whole);
    ggtok_jinja_builder_add(&out, digits->data, digits->n, label);
    if (s->type == '%') ggtok_jinja_builder_add(&out, "%", 1, label);
    put_padded(b, s, ggtok_jinja_builder_end(&out), sign != 0, s->zero ? '=' : '>', label);
}

static bool is_number(jinja_value v) {
    return v.type == JINJA_INT || v.type == JINJA_FLOAT || v.type == JINJA_BOOL;
}
static double number(jinja_value v) {
    return v.type == JINJA_FLOAT ? v.as.f : v.type == JINJA_BOOL ? v.as.truth : (double)v.as.i;
}

/* Writes a text, cut to the precision and padded to the width. */
static void put_text(jinja_env *e, jinja_builder *b, const spec *s, jinja_text *t, char align,
                     jinja_label label) {
    if (s->precision >= 0) {
        t = ggtok_jinja_text_cut(&e->arena, t, 0,
                                 ggtok_jinja_byte_of(&e->arena, t, (uint64_t)s->precision));
    }
    put_padded(b, s, t, 0, align, label);
}

/* Applies the conversion `how`: 's', 'r' or 'a'. */
static jinja_text *converted(jinja_env *e, jinja_value v, char how) {
    return how == 's'   ? ggtok_jinja_str(e, v)
           : how == 'r' ? ggtok_jinja_repr(e, v)
                        : ggtok_jinja_ascii(e, v);
}

static int take_number(jinja_env *e, const uint8_t **p, const uint8_t *end) {
    int n = -1;
    for (; *p < end && **p >= '0' && **p <= '9'; ++*p) {
        n = 10 * (n < 0 ? 0 : n) + (**p - '0');
        if (n > MOST)
            ggtok_jinja_fail(&e->arena, "a width or precision above %d is not supported", MOST);
    }
    return n;
}

/* ---- the % operator ---- */

typedef struct percent_args {
    jinja_value all;
    uint32_t next;
} percent_args;

static jinja_value next_argument(jinja_env *e, percent_args *a) {
    bool tuple = a->all.type == JINJA_TUPLE;
    uint32_t n = tuple ? a->all.as.list->n : 1, i = a->next++;
    if (i >= n) ggtok_jinja_fail(&e->arena, "not enough arguments for format string");
    return tuple ? a->all.as.list->data[i] : a->all;
}

/* Returns the width or precision that replaces a star: the next argument. */
static int star(jinja_env *e, percent_args *a, const uint8_t **p) {
    jinja_value v = next_argument(e, a);
    ++*p;
    if (v.type != JINJA_INT && v.type != JINJA_BOOL) ggtok_jinja_fail(&e->arena, "* wants int");
    int64_t n = ggtok_jinja_index(e, v);
    if (n > MOST || n < -MOST)
        ggtok_jinja_fail(&e->arena, "a width or precision above %d is not supported", MOST);
    return (int)n;
}

static void percent_one(jinja_env *e, jinja_builder *b, spec *s, jinja_value v, jinja_label label) {
    jinja_arena *mem = &e->arena;
    char type = s->type;
    char align = s->align == '<' ? '<' : '>';
    if (type == 's' || type == 'r' || type == 'a') {
        s->align = align;
        s->fill[0] = ' ';
        jinja_text *t = converted(e, v, type);
        put_text(e, b, s, t, align, 0);
    } else if (type == 'c') {
        uint8_t bytes[4];
        jinja_text *t;
        if (v.type == JINJA_STRING && ggtok_jinja_chars(mem, v.as.text) == 1)
            t = v.as.text;
        else if ((v.type == JINJA_INT && v.as.i >= 0 && v.as.i < 0x110000) ||
                 v.type == JINJA_BOOL) {
            uint32_t c = v.type == JINJA_BOOL ? v.as.truth : (uint32_t)v.as.i;
            t = ggtok_jinja_text_copy(mem, bytes, ggtok_utf8_encode(c, bytes), 0);
        } else
            ggtok_jinja_fail(mem, "%%c requires int or char");
        s->fill[0] = ' ';
        put_padded(b, s, t, 0, align, 0);
    } else if (!is_number(v)) {
        ggtok_jinja_fail(mem, "%%%c format: a real number is required, not %s", type,
                         ggtok_jinja_python_type(v));
    } else if (strchr("diuxXo", type)) {
        if (v.type == JINJA_FLOAT && strchr("xXo", type)) {
            ggtok_jinja_fail(mem, "%%%c format: an integer is required, not float", type);
        }
        if (v.type == JINJA_FLOAT && !(v.as.f > -9.2e18 && v.as.f < 9.2e18)) {
            ggtok_jinja_fail(mem, JINJA_TOO_LARGE);
        }
        int64_t i = v.type == JINJA_FLOAT  ? (int64_t)v.as.f
                    : v.type == JINJA_BOOL ? v.as.truth
                                           : v.as.i;
        if (strchr("diu", type)) s->type = 'd';
        if (s->align == '<') s->fill[0] = ' ', s->zero = false;
        put_int(e, b, s, i, label);
    } else {
        if (s->align == '<') s->fill[0] = ' ', s->zero = false;
        if (s->precision < 0) s->precision = 6;
        put_float(e, b, s, number(v), label);
    }
}

static jinja_value keyed(jinja_env *e, percent_args *a, const uint8_t **p, const uint8_t *end) {
    const uint8_t *begin = ++*p;
    int open = 1;
    for (; *p < end; ++*p) {
        open += (**p == '(') - (**p == ')');
        if (!open) break;
    }
    if (*p == end) ggtok_jinja_fail(&e->arena, "incomplete format key");
    if (a->all.type != JINJA_DICT) ggtok_jinja_fail(&e->arena, "format requires a mapping");
    jinja_value *found =
        ggtok_jinja_dict_get(&e->arena, a->all.as.dict, (const char *)begin, (size_t)(*p - begin));
    ++*p;
    a->next = UINT32_MAX; /* conversions without a key then fail */
    if (!found) ggtok_jinja_fail(&e->arena, "the key of a format is not in the dict");
    return *found;
}

jinja_value ggtok_jinja_percent(jinja_env *e, jinja_text *format, jinja_value all) {
    jinja_arena *mem = &e->arena;
    const uint8_t *p = format->data, *end = p + format->n;
    percent_args args = {all, 0};
    bool by_key = false;
    jinja_builder b = ggtok_jinja_builder_new(mem, format->n);
    b.merge = true;
    if (format->safe) ggtok_jinja_fail(mem, "%% of safe text is not supported");
    jinja_charge(mem, format->n / 4);
    while (p < end) {
        const uint8_t *begin = p;
        while (p < end && *p != '%') p++;
        ggtok_jinja_builder_cut(&b, format, (size_t)(begin - format->data),
                                (size_t)(p - format->data));
        if (p == end) break;
        size_t at = (size_t)(p++ - format->data);
        const jinja_text *sign = ggtok_jinja_text_cut(mem, format, at, at + 1);
        jinja_label label = jinja_label_of(ggtok_jinja_text_label(mem, sign));
        jinja_value v = jinja_absent();
        spec s = {.fill = {' '}, .n_fill = 1, .width = -1, .precision = -1};
        if (p < end && *p == '(') v = keyed(e, &args, &p, end), by_key = true;
        for (; p < end && *p && strchr("#0- +", *p); p++) {
            if (*p == '#')
                s.alternate = true;
            else if (*p == '0')
                s.zero = true, s.fill[0] = '0';
            else if (*p == '-')
                s.align = '<';
            else if (*p == '+' || s.sign != '+')
                s.sign = (char)*p;
        }
        if (p < end && *p == '*') {
            s.width = star(e, &args, &p);
            if (s.width < 0) s.align = '<', s.width = -s.width;
        } else {
            s.width = take_number(e, &p, end);
        }
        if (p < end && *p == '.') {
            p++;
            s.precision = p < end && *p == '*' ? star(e, &args, &p) : take_number(e, &p, end);
            if (s.precision < 0) s.precision = 0;
        }
        if (p < end && (*p == 'h' || *p == 'l' || *p == 'L')) p++;
        if (p == end) ggtok_jinja_fail(mem, "incomplete format");
        s.type = (char)*p++;
        if (s.type == '%' && p[-2] == '%') {
            ggtok_jinja_builder_add(&b, "%", 1, label);
            continue;
        }
        if (!s.type || !strchr("diouxXeEfFgGcrsa", s.type)) {
            ggtok_jinja_fail(mem, "unsupported format character");
        }
        if (v.type == JINJA_ABSENT) v = next_argument(e, &args);
        percent_one(e, &b, &s, v, label);
    }
    uint32_t n_args = all.type == JINJA_TUPLE ? all.as.list->n : 1;
    /* Python treats any value with items as a mapping, and allows unused items in a mapping. */
    bool mapping = by_key || all.type == JINJA_DICT || all.type == JINJA_LIST ||
                   all.type == JINJA_RANGE || all.type == JINJA_UNDEFINED;
    if (args.next < n_args && !(mapping && all.type != JINJA_TUPLE)) {
        ggtok_jinja_fail(mem, "not all arguments converted during string formatting");
    }
    return jinja_of_text(ggtok_jinja_builder_end(&b));
}

/* ---- str.format ---- */

typedef struct fields {
    jinja_env *e;
    jinja_args *args;
    uint32_t next; /* number of the next automatically numbered field */
    bool automatic, manual;
} fields;

static jinja_value argument(fields *f, const uint8_t *p, size_t n) {
    jinja_arena *mem = &f->e->arena;
    uint64_t at = 0;
    bool digits = n > 0;
    jinja_charge_bytes(mem, n);
    for (size_t i = 0; i < n; i++) digits &= p[i] >= '0' && p[i] <= '9';
    if (n && !digits) {
        JINJA_EACH(mem, i, f->args->n) {
            if (f->args->v[i].type != JINJA_KEYWORD) continue;
            const jinja_keyword *k = f->args->v[i].as.keyword;
            if (k->name->n == n && !memcmp(k->name->data, p, n)) return k->value;
        }
        ggtok_jinja_fail(mem, "'format' is missing the argument of a field");
    }
    *(n ? &f->manual : &f->automatic) = true;
    if (f->manual && f->automatic) {
        ggtok_jinja_fail(
            mem, "cannot switch between manual field specification and automatic numbering");
    }
    if (!n) at = f->next++;
    for (size_t i = 0; i < n && at < 1000000; i++) at = 10 * at + (p[i] - '0');
    JINJA_EACH(mem, i, f->args->n) {
        if (f->args->v[i].type == JINJA_KEYWORD) continue;
        if (!at--) return f->args->v[i];
    }
    ggtok_jinja_fail(mem, "replacement index out of range");
}

/* Returns the value of a field: name.attribute[item]... */
static jinja_value field_value(fields *f, const uint8_t *p, size_t n) {
    size_t i = 0;
    jinja_env *e = f->e;
    jinja_charge(&e->arena, n / 4);
    while (i < n && p[i] != '.' && p[i] != '[') i++;
    jinja_value v = argument(f, p, i);
    while (i < n) {
        bool item = p[i++] == '[';
        size_t begin = i;
        while (i < n && (item ? p[i] != ']' : p[i] != '.' && p[i] != '[')) i++;
        if (item && i == n) ggtok_jinja_fail(&e->arena, "missing ']' in format string");
        jinja_text *name = ggtok_jinja_text_copy(&e->arena, p + begin, i - begin, 0);
        if (!name->n) ggtok_jinja_fail(&e->arena, "Empty attribute in format string");
        if (item && ++i < n && p[i] != '.' && p[i] != '[')
            ggtok_jinja_fail(&e->arena, "Only '.' or '[' may follow ']' in format field specifier");
        bool digits = name->n && name->n < 10;
        int64_t number = 0;
        for (size_t k = 0; k < name->n; k++) {
            digits &= name->data[k] >= '0' && name->data[k] <= '9';
            if (digits) number = 10 * number + (name->data[k] - '0');
        }
        v = item ? ggtok_jinja_getitem(e, v, digits ? jinja_int(number) : jinja_of_text(name))
                 : ggtok_jinja_getattr(e, v, name);
    }
    return v;
}

static spec read_spec(jinja_env *e, const uint8_t *p, const uint8_t *end) {
    spec s = {.fill = {' '}, .n_fill = 1, .width = -1, .precision = -1};
    bool filled = false;
    if (p < end) {
        size_t n = utf8_lead_len(*p);
        if (p + n < end && p[n] && strchr("<>^=", p[n])) {
            memcpy(s.fill, p, s.n_fill = n);
            s.align = (char)p[n];
            filled = true;
            p += n + 1;
        } else if (*p && strchr("<>^=", *p)) {
            s.align = (char)*p++;
        }
    }
    if (p < end && (*p == '+' || *p == '-' || *p == ' ')) s.sign = (char)*p++;
    if (p < end && *p == 'z') s.no_minus_zero = true, p++;
    if (p < end && *p == '#') s.alternate = true, p++;
    if (p < end && *p == '0') {
        p++;
        if (!filled) s.fill[0] = '0', s.n_fill = 1;
        s.zero = !s.align;
    }
    s.width = take_number(e, &p, end);
    if (p < end && (*p == ',' || *p == '_')) s.comma = (char)*p++;
    if (p < end && *p == '.') {
        p++;
        s.precision = take_number(e, &p, end);
        if (s.precision < 0) ggtok_jinja_fail(&e->arena, "Format specifier missing precision");
    }
    if (p < end && *p) s.type = (char)*p++;
    if (p != end) ggtok_jinja_fail(&e->arena, "Invalid format specifier");
    if (s.comma && s.type && !strchr(s.comma == ',' ? "deEfFgG%" : "deEfFgG%xXob", s.type))
        ggtok_jinja_fail(&e->arena, "Cannot specify '%c' with '%c'.", s.comma, s.type);
    return s;
}

static void format_value(fields *f, jinja_builder *b, jinja_value v, const spec *s,
                         jinja_label label) {
    jinja_env *e = f->e;
    jinja_arena *mem = &e->arena;
    bool plain = s->width < 0 && s->precision < 0 && !s->type && !s->align && !s->sign &&
                 !s->comma && !s->alternate && !s->zero && !s->no_minus_zero;
    if (v.type == JINJA_STRING) {
        if ((s->type && s->type != 's') || s->sign || s->comma || s->align == '=' || s->alternate ||
            s->no_minus_zero) {
            ggtok_jinja_fail(mem, "Invalid format specifier for object of type 'str'");
        }
        put_text(e, b, s, v.as.text, '<', label);
    } else if (plain) {
        jinja_text *t = ggtok_jinja_str(e, v);
        if (v.type == JINJA_INT || v.type == JINJA_FLOAT)
            ggtok_jinja_builder_add(b, t->data, t->n, label);
        else
            ggtok_jinja_builder_text(b, t);
    } else if ((v.type == JINJA_INT || v.type == JINJA_BOOL) &&
               (!s->type || strchr("dxXobnc", s->type))) {
        if (s->precision >= 0 || s->no_minus_zero)
            ggtok_jinja_fail(mem, "Precision and z not allowed in integer format specifier");
        if (s->type == 'c') {
            int64_t c = ggtok_jinja_index(e, v);
            uint8_t bytes[4];
            if (s->sign || s->alternate) ggtok_jinja_fail(mem, "sign and # not allowed with 'c'");
            if (c < 0 || c > 0x10FFFF) ggtok_jinja_fail(mem, "%%c arg not in range(0x110000)");
            size_t n = ggtok_utf8_encode((uint32_t)c, bytes);
            put_padded(b, s, ggtok_jinja_text_copy(mem, bytes, n, 0), 0, s->zero ? '=' : '>',
                       label);
            return;
        }
        put_int(e, b, s, v.type == JINJA_BOOL ? v.as.truth : v.as.i, label);
    } else if (is_number(v) && (v.type == JINJA_FLOAT || s->type) &&
               (!s->type || strchr("eEfFgGn%", s->type))) {
        put_float(e, b, s, number(v), label);
    } else {
        ggtok_jinja_fail(mem, "unsupported format string for '%s'", ggtok_jinja_python_type(v));
    }
}

enum { MOST_NESTED = 2 }; /* the spec of a field may contain fields, but their specs can't */

static jinja_text *format_text(fields *f, jinja_text *format, int levels) {
    jinja_env *e = f->e;
    jinja_arena *mem = &e->arena;
    jinja_builder b = ggtok_jinja_builder_new(mem, format->n);
    b.merge = true;
    int64_t whole = ggtok_jinja_text_label(mem, format);
    const uint8_t *begin = format->data, *p = begin, *end = p + format->n;
    if (!levels) ggtok_jinja_fail(mem, "Max string recursion exceeded");
    jinja_enter(mem);
    jinja_charge(mem, format->n / 4);
    while (p < end) {
        const uint8_t *start = p;
        while (p < end && *p != '{' && *p != '}') p++;
        ggtok_jinja_builder_cut(&b, format, (size_t)(start - begin), (size_t)(p - begin));
        if (p == end) break;
        if (p + 1 < end && p[1] == *p) { /* a literal brace: {{ or }} */
            ggtok_jinja_builder_cut(&b, format, (size_t)(p - begin), (size_t)(p - begin) + 1);
            p += 2;
            continue;
        }
        if (*p == '}') ggtok_jinja_fail(mem, "Single '}' encountered in format string");
        const uint8_t *name = ++p;
        int brackets = 0;
        while (p < end && *p != '}' && (brackets || (*p != ':' && *p != '!')) && *p != '{') {
            brackets += (*p == '[') - (*p == ']');
            p++;
        }
        size_t n_name = (size_t)(p - name);
        char conversion = 0;
        if (p + 1 < end && *p == '!') {
            conversion = (char)p[1], p += 2;
            if (!conversion) ggtok_jinja_fail(mem, "invalid conversion in a format string");
        }
        const uint8_t *rest = p;
        if (p < end && *p == ':') rest = ++p;
        int open = 0;
        bool nested = false;
        for (; p < end && (open || *p != '}'); p++) {
            nested |= *p == '{';
            open += (*p == '{') - (*p == '}');
        }
        if (p == end) ggtok_jinja_fail(mem, "expected '}' before end of string");
        if (rest == name + n_name && nested) ggtok_jinja_fail(mem, "unexpected '{' in field name");
        if (conversion &&
            (!strchr("sra", conversion) ||
             (rest == p ? rest[-1] != conversion && rest[-1] != ':' : rest[-1] != ':'))) {
            ggtok_jinja_fail(mem, "invalid conversion in a format string");
        }
        jinja_value v = field_value(f, name, n_name);
        if (conversion) {
            v = jinja_of_text(converted(e, v, conversion));
        }
        const uint8_t *from = rest, *to = p++;
        int64_t label = whole;
        if (nested) { /* padding has no label if part of the spec comes from another text */
            size_t at = (size_t)(rest - begin), stop = (size_t)(to - begin);
            const jinja_text *own =
                format_text(f, ggtok_jinja_text_cut(mem, format, at, stop), levels - 1);
            from = own->data;
            to = from + own->n;
            label = ggtok_jinja_common_label(whole, ggtok_jinja_text_label(mem, own));
        }
        spec s = read_spec(e, from, to);
        format_value(f, &b, v, &s, jinja_label_of(label));
    }
    jinja_leave(mem);
    return ggtok_jinja_builder_end(&b);
}

jinja_value ggtok_jinja_format_call(jinja_env *e, jinja_text *format, jinja_args *args) {
    fields f = {.e = e, .args = args};
    if (format->safe) ggtok_jinja_fail(&e->arena, "'format' of safe text is not supported");
    return jinja_of_text(format_text(&f, format, MOST_NESTED));
}
