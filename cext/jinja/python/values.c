/* Truth, order, equality, arithmetic, items and slices of values. */
#include <math.h>

#include "jinja/python/dialect.h"
#include "unicode/unicode.h"

/* ---- types ---- */

void ggtok_jinja_fail_undefined(jinja_env *e, jinja_value v) {
    if (v.id) ggtok_jinja_fail(&e->arena, "the sandbox hides methods that change their object");
    if (!v.as.text) ggtok_jinja_fail(&e->arena, "the value is undefined");
    ggtok_jinja_fail(&e->arena, "'%.*s' is undefined", JINJA_SHOWN(v.as.text, 80));
}

bool ggtok_jinja_python_truth(jinja_env *e, jinja_value v) {
    (void)e;
    switch (v.type) {
    case JINJA_UNDEFINED:
    case JINJA_ABSENT:
    case JINJA_NONE: return false;
    case JINJA_BOOL: return v.as.truth;
    case JINJA_INT: return v.as.i != 0;
    case JINJA_FLOAT: return v.as.f != 0;
    case JINJA_STRING: return v.as.text->n != 0;
    case JINJA_LIST:
    case JINJA_TUPLE: return v.as.list->n != 0;
    case JINJA_DICT: return v.as.dict->n != 0;
    case JINJA_RANGE: return v.as.range->n != 0;
    case JINJA_LAZY: return !v.as.list->view || v.as.list->n;
    default: return true;
    }
}

bool ggtok_jinja_python_hashable(jinja_arena *mem, jinja_value v) {
    bool all = true;
    if (v.type == JINJA_LIST || v.type == JINJA_DICT) return false;
    if (v.type == JINJA_LAZY && v.as.list->view) return v.as.list->view == JINJA_VALUES;
    if (v.type != JINJA_TUPLE) return true;
    jinja_enter(mem);
    for (uint32_t i = 0; all && i < v.as.list->n; i++) {
        jinja_charge(mem, 1);
        all = ggtok_jinja_python_hashable(mem, v.as.list->data[i]);
    }
    jinja_leave(mem);
    return all;
}

void ggtok_jinja_python_key(jinja_env *e, jinja_dict *dict, jinja_value key, jinja_value value) {
    if (!ggtok_jinja_python_hashable(&e->arena, key)) {
        ggtok_jinja_fail(&e->arena, "unhashable type: '%s'", ggtok_jinja_python_type(key));
    }
    ggtok_jinja_dict_set(&e->arena, dict, key, value);
}

/* ---- texts in code points ---- */

bool ggtok_jinja_is_space(uint32_t c) {
    if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
    return ggtok_unicode_flags(c) & UNICODE_WHITESPACE;
}

bool ggtok_jinja_is_ascii(jinja_arena *mem, jinja_text *t) {
    return ggtok_jinja_chars(mem, t) == t->n;
}

size_t ggtok_jinja_byte_of(jinja_arena *mem, jinja_text *t, uint64_t at) {
    if (at >= ggtok_jinja_chars(mem, t)) return t->n;
    if (t->n_chars == t->n) return (size_t)at;
    size_t byte = 0;
    jinja_charge(mem, at / 16);
    for (; at; at--) byte += utf8_lead_len(t->data[byte]);
    return byte;
}

uint64_t ggtok_jinja_char_of(jinja_arena *mem, jinja_text *t, size_t byte) {
    if (ggtok_jinja_is_ascii(mem, t)) return byte;
    uint64_t n = 0;
    jinja_charge(mem, byte / 16);
    for (size_t i = 0; i < byte; i++) n += !utf8_continues(t->data[i]);
    return n;
}

/* ---- items ---- */

static jinja_list *chars_of(jinja_arena *mem, jinja_text *t) {
    jinja_list *list = ggtok_jinja_list_new(mem, ggtok_jinja_chars(mem, t));
    jinja_charge(mem, list->cap);
    for (size_t i = 0, n; i < t->n; i += n) {
        n = utf8_lead_len(t->data[i]);
        ggtok_jinja_list_push(mem, list, jinja_of_text(ggtok_jinja_text_cut(mem, t, i, i + n)));
    }
    return list;
}

jinja_value ggtok_jinja_lazy(jinja_list *list) {
    return (jinja_value){.type = JINJA_LAZY, .as.list = list};
}

jinja_list *ggtok_jinja_items(jinja_env *e, jinja_value v) {
    jinja_arena *mem = &e->arena;
    jinja_list *list;
    switch (v.type) {
    case JINJA_UNDEFINED: return ggtok_jinja_list_new(mem, 0);
    case JINJA_LIST:
    case JINJA_TUPLE: return v.as.list;
    case JINJA_STRING: return chars_of(mem, v.as.text);
    case JINJA_DICT:
        list = ggtok_jinja_list_new(mem, v.as.dict->n);
        jinja_charge(mem, v.as.dict->n / 4);
        for (uint32_t i = 0; i < v.as.dict->n; i++) {
            ggtok_jinja_list_push(mem, list, v.as.dict->entries[i].key);
        }
        return list;
    case JINJA_RANGE:
        list = ggtok_jinja_list_new(mem, (size_t)v.as.range->n);
        jinja_charge(mem, (uint64_t)v.as.range->n / 4);
        for (int64_t i = 0; i < v.as.range->n; i++) {
            ggtok_jinja_list_push(mem, list, jinja_int(jinja_range_at(v.as.range, i)));
        }
        return list;
    case JINJA_LAZY:
        if (v.as.list->view) return v.as.list;
        list = ggtok_jinja_list_new(mem, 0); /* the remaining items */
        for (jinja_value item; ggtok_jinja_next(e, v.as.list, &item);) {
            ggtok_jinja_list_push(mem, list, item);
        }
        return list;
    default: ggtok_jinja_fail(mem, "'%s' object is not iterable", ggtok_jinja_python_type(v));
    }
}

int64_t ggtok_jinja_len(jinja_env *e, jinja_value v) {
    switch (v.type) {
    case JINJA_UNDEFINED: return 0;
    case JINJA_STRING: return ggtok_jinja_chars(&e->arena, v.as.text);
    case JINJA_LIST:
    case JINJA_TUPLE: return v.as.list->n;
    case JINJA_DICT: return v.as.dict->n;
    case JINJA_RANGE: return v.as.range->n;
    case JINJA_LAZY:
        if (v.as.list->view) return v.as.list->n; /* fall through */
    default:
        ggtok_jinja_fail(&e->arena, "object of type '%s' has no len()", ggtok_jinja_python_type(v));
    }
}

/* ---- numbers and order ---- */

static bool as_number(jinja_value v, double *f) {
    if (v.type == JINJA_INT)
        *f = (double)v.as.i;
    else if (v.type == JINJA_BOOL)
        *f = v.as.truth;
    else if (v.type == JINJA_FLOAT)
        *f = v.as.f;
    else
        return false;
    return true;
}

static int64_t int_of(jinja_value v) {
    return v.type == JINJA_BOOL ? v.as.truth : v.as.i;
}

static _Noreturn void fail_order(jinja_env *e, jinja_value a, jinja_value b, jinja_operator op) {
    static const char *const names[] = {"<", "<=", ">", ">="};
    if (a.type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, a);
    if (b.type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, b);
    ggtok_jinja_refuse_big(e, a, b);
    ggtok_jinja_fail(&e->arena, "'%s' not supported between '%s' and '%s'", names[op - JINJA_LT],
                     ggtok_jinja_python_type(a), ggtok_jinja_python_type(b));
}

static bool holds(int order, jinja_operator op) {
    if (order == 2) return false;
    return op == JINJA_LT   ? order < 0
           : op == JINJA_LE ? order <= 0
           : op == JINJA_GT ? order > 0
                            : order >= 0;
}

bool ggtok_jinja_python_less(jinja_env *e, jinja_value a, jinja_value b, jinja_operator op) {
    jinja_arena *mem = &e->arena;
    double f;
    jinja_charge(mem, 1);
    if (as_number(a, &f) && as_number(b, &f)) return holds(ggtok_jinja_compare_numbers(a, b), op);
    if (a.type == JINJA_STRING && b.type == JINJA_STRING) {
        return holds(ggtok_jinja_text_compare(mem, a.as.text, b.as.text), op);
    }
    if (a.type != b.type || !jinja_is_array(a)) fail_order(e, a, b, op);
    const jinja_list *x = a.as.list, *y = b.as.list;
    bool result;
    jinja_enter(mem);
    uint32_t i = 0;
    while (i < x->n && i < y->n && ggtok_jinja_python_equal(mem, x->data[i], y->data[i])) i++;
    if (i < x->n && i < y->n)
        result = ggtok_jinja_python_less(e, x->data[i], y->data[i], op);
    else
        result = holds((x->n > y->n) - (x->n < y->n), op);
    jinja_leave(mem);
    return result;
}

bool ggtok_jinja_python_in(jinja_env *e, jinja_value needle, jinja_value haystack) {
    jinja_arena *mem = &e->arena;
    if (haystack.type == JINJA_STRING) {
        if (needle.type != JINJA_STRING) {
            ggtok_jinja_fail(mem, "'in <string>' requires string as left operand, not %s",
                             ggtok_jinja_python_type(needle));
        }
        return ggtok_jinja_text_find(mem, haystack.as.text, needle.as.text, 0) != SIZE_MAX;
    }
    bool keys = haystack.type == JINJA_LAZY && haystack.as.list->view == JINJA_KEYS;
    if ((keys || haystack.type == JINJA_DICT) && !ggtok_jinja_python_hashable(mem, needle))
        ggtok_jinja_fail(mem, "unhashable type: '%s'", ggtok_jinja_python_type(needle));
    if (haystack.type == JINJA_DICT) {
        return ggtok_jinja_dict_find(mem, haystack.as.dict, needle) != NULL;
    }
    if (ggtok_jinja_is_generator(haystack)) {
        for (jinja_value item; ggtok_jinja_next(e, haystack.as.list, &item);) {
            if (ggtok_jinja_python_equal(mem, needle, item)) return true;
        }
        return false;
    }
    jinja_list *items = ggtok_jinja_items(e, haystack);
    for (uint32_t i = 0; i < items->n; i++) {
        if (ggtok_jinja_python_equal(mem, needle, items->data[i])) return true;
    }
    return false;
}

/* ---- arithmetic ---- */

static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return a % b && (a % b < 0) != (b < 0) ? q - 1 : q;
}

static int64_t floor_mod(int64_t a, int64_t b) {
    int64_t r = a % b;
    return r && (r < 0) != (b < 0) ? r + b : r;
}

static double float_mod(double x, double y) {
    double r = fmod(x, y);
    if (r != 0) return (r < 0) != (y < 0) ? r + y : r;
    return copysign(0.0, y);
}

static double float_floor_div(double x, double y) {
    double mod = fmod(x, y), div = (x - mod) / y;
    if (mod != 0 && (y < 0) != (mod < 0)) div -= 1.0;
    if (div == 0) return copysign(0.0, x / y);
    double whole = floor(div);
    return div - whole > 0.5 ? whole + 1.0 : whole;
}

static bool multiply(int64_t a, int64_t b, int64_t *out) {
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    uint64_t most = (a < 0) != (b < 0) ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    if (x && y > most / x) return false;
    uint64_t product = x * y;
    *out = (a < 0) != (b < 0) ? (int64_t)(0 - product) : (int64_t)product;
    return true;
}

/* Returns the double nearest to a / b. If a or b has more than 53 bits, dividing them as doubles
 * may round twice. */
static double quotient(int64_t a, int64_t b) {
    const uint64_t exact = (uint64_t)1 << 53, enough = (uint64_t)1 << 55;
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    if (!x || (x <= exact && y <= exact)) return (double)a / (double)b;
    uint64_t q = x / y, rest = x % y;
    int exponent = 0;
    for (; q < enough; exponent--) { /* adds one bit to the quotient */
        bool one = rest >= y - rest;
        rest = one ? rest - (y - rest) : 2 * rest;
        q = q << 1 | one;
    }
    bool sticky = rest != 0;
    for (; q >= 2 * enough; exponent++) {
        sticky |= q & 1;
        q >>= 1;
    }
    double size = ldexp((double)(q | sticky), exponent);
    return (a < 0) != (b < 0) ? -size : size;
}

static jinja_value power(jinja_env *e, int64_t base, int64_t exponent) {
    if (exponent < 0) {
        if (!base) ggtok_jinja_fail(&e->arena, "0.0 cannot be raised to a negative power");
        return jinja_float(pow((double)base, (double)exponent));
    }
    int64_t result = 1;
    for (; exponent; exponent >>= 1) {
        if ((exponent & 1) && !multiply(result, base, &result))
            ggtok_jinja_fail(&e->arena, JINJA_TOO_LARGE);
        if (exponent > 1 && !multiply(base, base, &base))
            ggtok_jinja_fail(&e->arena, JINJA_TOO_LARGE);
    }
    return jinja_int(result);
}

enum { LONG_ARITHMETIC = 8 }; /* steps charged for a remainder, quotient or power */

static jinja_value of_ints(jinja_env *e, jinja_operator op, int64_t a, int64_t b) {
    jinja_arena *mem = &e->arena;
    if (op == JINJA_POW || op == JINJA_DIV) jinja_charge(mem, LONG_ARITHMETIC);
    int64_t result = 0;
    bool fits = true;
    switch (op) {
    case JINJA_ADD:
        fits = b >= 0 ? a <= INT64_MAX - b : a >= INT64_MIN - b;
        result = (int64_t)((uint64_t)a + (uint64_t)b);
        break;
    case JINJA_SUB:
        fits = b >= 0 ? a >= INT64_MIN + b : a <= INT64_MAX + b;
        result = (int64_t)((uint64_t)a - (uint64_t)b);
        break;
    case JINJA_MUL: fits = multiply(a, b, &result); break;
    case JINJA_POW: return power(e, a, b);
    default:
        if (!b) ggtok_jinja_fail(mem, "division by zero");
        if (op == JINJA_DIV) return jinja_float(quotient(a, b));
        fits = a != INT64_MIN || b != -1;
        if (fits)
            result = op == JINJA_MOD ? floor_mod(a, b) : floor_div(a, b);
        else if (op == JINJA_MOD)
            fits = true;
        break;
    }
    if (!fits) ggtok_jinja_fail(mem, JINJA_TOO_LARGE);
    return jinja_int(result);
}

static jinja_value of_floats(jinja_env *e, jinja_operator op, double a, double b) {
    jinja_arena *mem = &e->arena;
    if (op > JINJA_DIV) jinja_charge(mem, LONG_ARITHMETIC);
    switch (op) {
    case JINJA_ADD: return jinja_float(a + b);
    case JINJA_SUB: return jinja_float(a - b);
    case JINJA_MUL: return jinja_float(a * b);
    case JINJA_POW: {
        if (a == 0 && b < 0) ggtok_jinja_fail(mem, "0.0 cannot be raised to a negative power");
        if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b)) {
            ggtok_jinja_fail(mem, "complex numbers are not supported");
        }
        double p = pow(a, b);
        if (isinf(p) && isfinite(a) && isfinite(b))
            ggtok_jinja_fail(mem, "the result is too large for a float");
        return jinja_float(p);
    }
    default:
        if (b == 0) ggtok_jinja_fail(mem, "division by zero");
        return jinja_float(op == JINJA_DIV   ? a / b
                           : op == JINJA_MOD ? float_mod(a, b)
                                             : float_floor_div(a, b));
    }
}

static jinja_value repeat(jinja_env *e, jinja_value v, int64_t times) {
    jinja_arena *mem = &e->arena;
    if (times < 0) times = 0;
    uint64_t n = v.type == JINJA_STRING ? v.as.text->n : 16 * (uint64_t)v.as.list->n;
    if (n && (uint64_t)times > mem->bytes_left / n) {
        ggtok_jinja_fail(mem, "repeating the value exceeds the template's memory limit");
    }
    if (v.type == JINJA_STRING) {
        jinja_builder b = ggtok_jinja_builder_new(mem, (size_t)(n * (uint64_t)times));
        b.merge = true;
        for (int64_t i = 0; n && i < times; i++) ggtok_jinja_builder_text(&b, v.as.text);
        return jinja_of_text(ggtok_jinja_builder_end(&b));
    }
    jinja_list *list = ggtok_jinja_list_new(mem, (size_t)(n / 16 * (uint64_t)times));
    jinja_charge(mem, n / 16 * (uint64_t)times / 4);
    for (int64_t i = 0; n && i < times; i++) {
        for (uint32_t k = 0; k < v.as.list->n; k++)
            ggtok_jinja_list_push(mem, list, v.as.list->data[k]);
    }
    return v.type == JINJA_TUPLE ? jinja_of_tuple(list) : jinja_of_list(list);
}

static jinja_value add_lists(jinja_env *e, jinja_value a, jinja_value b) {
    jinja_arena *mem = &e->arena;
    jinja_list *sum = ggtok_jinja_list_new(mem, (size_t)a.as.list->n + b.as.list->n);
    jinja_charge(mem, ((uint64_t)a.as.list->n + b.as.list->n) / 4);
    for (uint32_t i = 0; i < a.as.list->n; i++) ggtok_jinja_list_push(mem, sum, a.as.list->data[i]);
    for (uint32_t i = 0; i < b.as.list->n; i++) ggtok_jinja_list_push(mem, sum, b.as.list->data[i]);
    return a.type == JINJA_TUPLE ? jinja_of_tuple(sum) : jinja_of_list(sum);
}

static bool is_int(jinja_value v) {
    return v.type == JINJA_INT || v.type == JINJA_BOOL;
}
static bool repeats(jinja_value v) {
    return v.type == JINJA_STRING || jinja_is_array(v);
}

jinja_value ggtok_jinja_python_binary(jinja_env *e, jinja_operator op, jinja_value a,
                                      jinja_value b) {
    static const char *const names[] = {"+", "-", "~", "*", "/", "//", "%", "**"};
    double x, y;
    switch (op) {
    case JINJA_EQ: return jinja_bool(ggtok_jinja_python_equal(&e->arena, a, b));
    case JINJA_NE: return jinja_bool(!ggtok_jinja_python_equal(&e->arena, a, b));
    case JINJA_IN: return jinja_bool(ggtok_jinja_python_in(e, a, b));
    case JINJA_NOT_IN: return jinja_bool(!ggtok_jinja_python_in(e, a, b));
    case JINJA_LT:
    case JINJA_LE:
    case JINJA_GT:
    case JINJA_GE: return jinja_bool(ggtok_jinja_python_less(e, a, b, op));
    default: break;
    }
    if (op == JINJA_MOD && a.type == JINJA_STRING) return ggtok_jinja_percent(e, a.as.text, b);
    if (a.type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, a);
    if (b.type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, b);
    if (is_int(a) && is_int(b)) return of_ints(e, op, int_of(a), int_of(b));
    if (as_number(a, &x) && as_number(b, &y)) return of_floats(e, op, x, y);
    if (op == JINJA_MUL && repeats(a) && is_int(b)) return repeat(e, a, int_of(b));
    if (op == JINJA_MUL && repeats(b) && is_int(a)) return repeat(e, b, int_of(a));
    if (op == JINJA_ADD && a.type == b.type && a.type == JINJA_STRING) {
        if (a.as.text->safe || b.as.text->safe) {
            jinja_text *text = ggtok_jinja_text_concat(&e->arena, ggtok_jinja_escape(e, a),
                                                       ggtok_jinja_escape(e, b));
            text->safe = true;
            return jinja_of_text(text);
        }
        return jinja_of_text(ggtok_jinja_text_concat(&e->arena, a.as.text, b.as.text));
    }
    if (op == JINJA_ADD && a.type == b.type && jinja_is_array(a)) return add_lists(e, a, b);
    ggtok_jinja_refuse_big(e, a, b);
    ggtok_jinja_fail(&e->arena, "unsupported operand type(s) for %s: '%s' and '%s'", names[op],
                     ggtok_jinja_python_type(a), ggtok_jinja_python_type(b));
}

jinja_value ggtok_jinja_python_sign(jinja_env *e, bool negative, jinja_value v) {
    if (v.type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, v);
    if (v.type == JINJA_FLOAT) return jinja_float(negative ? -v.as.f : v.as.f);
    if (v.type == JINJA_BIG) return negative ? ggtok_jinja_negated(&e->arena, v) : v;
    if (!is_int(v)) {
        ggtok_jinja_fail(&e->arena, "bad operand type for unary %c: '%s'", negative ? '-' : '+',
                         ggtok_jinja_python_type(v));
    }
    if (negative && int_of(v) == INT64_MIN)
        return ggtok_jinja_big(&e->arena, "9223372036854775808", 19);
    return jinja_int(negative ? -int_of(v) : int_of(v));
}

/* ---- slices ---- */

int64_t ggtok_jinja_index(jinja_env *e, jinja_value v) {
    if (v.type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, v);
    ggtok_jinja_refuse_big(e, v, v);
    if (!is_int(v)) {
        ggtok_jinja_fail(&e->arena, "'%s' object cannot be interpreted as an integer",
                         ggtok_jinja_python_type(v));
    }
    return int_of(v);
}

static int64_t bound(jinja_env *e, jinja_value v, int64_t n, int64_t least, int64_t most,
                     int64_t otherwise) {
    if (v.type == JINJA_NONE) return otherwise;
    int64_t i = ggtok_jinja_index(e, v);
    if (i < 0) i = i < -n ? least : i + n;
    return i < least ? least : i > most ? most : i;
}

/* Returns a bound of a sliced range, which may be outside the range. */
static int64_t bound_of_range(jinja_env *e, const jinja_range *r, int64_t i) {
    int64_t offset = of_ints(e, JINJA_MUL, i, r->step).as.i;
    return of_ints(e, JINJA_ADD, r->start, offset).as.i;
}

jinja_value ggtok_jinja_slice_of(jinja_env *e, jinja_value v, const jinja_value bounds[3]) {
    jinja_arena *mem = &e->arena;
    if (v.type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, v);
    if (!repeats(v) && v.type != JINJA_RANGE)
        ggtok_jinja_fail(mem, "'%s' object can't be sliced", ggtok_jinja_python_type(v));
    for (int i = 0; i < 3; i++) {
        if (bounds[i].type != JINJA_NONE && !is_int(bounds[i])) {
            ggtok_jinja_fail(mem, "slice indices must be integers or None");
        }
    }
    int64_t n = ggtok_jinja_len(e, v), step = bounds[2].type == JINJA_NONE ? 1 : int_of(bounds[2]);
    if (!step) ggtok_jinja_fail(mem, "slice step cannot be zero");
    bool up = step > 0;
    int64_t start = bound(e, bounds[0], n, up ? 0 : -1, up ? n : n - 1, up ? 0 : n - 1);
    int64_t stop = bound(e, bounds[1], n, up ? 0 : -1, up ? n : n - 1, up ? n : -1);
    uint64_t count = 0;
    if (up && start < stop) count = (uint64_t)(stop - start - 1) / (uint64_t)step + 1;
    if (!up && start > stop) count = (uint64_t)(start - stop - 1) / (0 - (uint64_t)step) + 1;
    jinja_charge(mem, count / 4);
    if (v.type == JINJA_RANGE) {
        jinja_range *own = jinja_alloc(mem, sizeof *own);
        own->start = bound_of_range(e, v.as.range, start);
        own->stop = bound_of_range(e, v.as.range, stop);
        own->step = of_ints(e, JINJA_MUL, v.as.range->step, step).as.i;
        own->n = (int64_t)count;
        return (jinja_value){.type = JINJA_RANGE, .as.range = own};
    }
    if (v.type == JINJA_STRING && step == 1) {
        size_t begin = ggtok_jinja_byte_of(mem, v.as.text, (uint64_t)start);
        size_t end = count ? ggtok_jinja_byte_of(mem, v.as.text, (uint64_t)stop) : begin;
        jinja_text *cut = ggtok_jinja_text_cut(mem, v.as.text, begin, end);
        cut->safe = v.as.text->safe;
        return jinja_of_text(cut);
    }
    if (v.type == JINJA_STRING) {
        jinja_list *chars = ggtok_jinja_items(e, v);
        jinja_label label = jinja_label_of(ggtok_jinja_text_label(mem, v.as.text));
        jinja_builder b = ggtok_jinja_builder_new(mem, count);
        b.merge = true;
        for (uint64_t i = 0; i < count; i++) {
            const jinja_text *c = chars->data[start + (int64_t)i * step].as.text;
            ggtok_jinja_builder_add(&b, c->data, c->n, label);
        }
        return jinja_of_text(ggtok_jinja_builder_end(&b));
    }
    jinja_list *list = ggtok_jinja_list_new(mem, count);
    for (uint64_t i = 0; i < count; i++) {
        ggtok_jinja_list_push(mem, list, v.as.list->data[start + (int64_t)i * step]);
    }
    return v.type == JINJA_TUPLE ? jinja_of_tuple(list) : jinja_of_list(list);
}
