/* jinja2's filters for numbers. */
#include <math.h>

#include "jinja/core/number.h"
#include "jinja/python/dialect.h"
#include "jinja/python/functions.h"

static bool is_int(jinja_value v) {
    return v.type == JINJA_INT || v.type == JINJA_BOOL;
}

jinja_value ggtok_jinja_pn_abs(jinja_env *e, jinja_value *v) {
    if (v[0].type == JINJA_FLOAT) return jinja_float(fabs(v[0].as.f));
    if (!is_int(v[0]))
        ggtok_jinja_fail(&e->arena, "bad operand type for abs(): '%s'",
                         ggtok_jinja_python_type(v[0]));
    int64_t i = ggtok_jinja_index(e, v[0]);
    if (i == INT64_MIN) ggtok_jinja_fail(&e->arena, JINJA_TOO_LARGE);
    return jinja_int(i < 0 ? -i : i);
}

/* Reads a string like Python's int(): white space, a sign, and digits with underscores. Returns
 * false if it isn't an integer. */
static bool read_int(jinja_env *e, jinja_text *t, int64_t base, int64_t *out) {
    jinja_value v[2] = {jinja_of_text(t), jinja_absent()};
    t = ggtok_jinja_py_strip(e, v).as.text;
    const uint8_t *p = t->data, *end = p + t->n;
    bool negative = p < end && *p == '-', digit = false;
    uint64_t value = 0, most = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    jinja_charge(&e->arena, 1 + t->n / 4);
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (end - p > 1 && *p == '0') {
        int own = (p[1] | 32) == 'x' ? 16 : (p[1] | 32) == 'o' ? 8 : (p[1] | 32) == 'b' ? 2 : 0;
        if (own && (base == own || base == 0))
            p += 2, base = own, digit = p < end && *p == '_';
        else if (base == 0)
            for (const uint8_t *q = p; q < end; q++)
                if (*q != '0' && *q != '_') return false;
        if (digit) p++, digit = false;
    }
    if (base == 0) base = 10;
    for (; p < end; p++) {
        if (*p == '_' && digit && p + 1 < end) {
            digit = false;
            continue;
        }
        int d = *p >= '0' && *p <= '9'                 ? *p - '0'
                : (*p | 32) >= 'a' && (*p | 32) <= 'z' ? (*p | 32) - 'a' + 10
                                                       : 99;
        if (d >= base) return false;
        if (value > (most - (uint64_t)d) / (uint64_t)base)
            ggtok_jinja_fail(&e->arena, JINJA_TOO_LARGE);
        value = value * (uint64_t)base + (uint64_t)d;
        digit = true;
    }
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return digit;
}

static bool read_float(jinja_env *e, jinja_text *t, double *f) {
    jinja_value v[2] = {jinja_of_text(t), jinja_absent()};
    t = ggtok_jinja_py_strip(e, v).as.text;
    uint8_t *plain = jinja_alloc(&e->arena, t->n + 1u);
    jinja_charge(&e->arena, t->n / 4);
    size_t n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        uint8_t c = t->data[i];
        bool between = i && i + 1 < t->n && t->data[i - 1] >= '0' && t->data[i - 1] <= '9' &&
                       t->data[i + 1] >= '0' && t->data[i + 1] <= '9';
        if (c == '_' && between) continue;
        if (c == 'x' || c == 'X' || c == '(' || c == '_') return false; /* only C accepts these */
        plain[n++] = c;
    }
    return n && ggtok_jinja_parse_float(&e->arena, plain, n, f);
}

static bool to_int(jinja_env *e, double f, int64_t *i) {
    if (f - f != 0) return false;
    if (!(f > -9223372036854775808.0 && f < 9223372036854775808.0))
        ggtok_jinja_fail(&e->arena, JINJA_TOO_LARGE);
    *i = (int64_t)f;
    return true;
}

/* ---- beyond 64 bits ---- */

jinja_value ggtok_jinja_negated(jinja_arena *mem, jinja_value big) {
    const jinja_text *t = big.as.text;
    if (ggtok_jinja_text_is(t, "9223372036854775808")) return jinja_int(INT64_MIN);
    if (t->data[0] == '-') return ggtok_jinja_big(mem, t->data + 1, t->n - 1u);
    uint8_t *digits = jinja_alloc(mem, t->n + 1u);
    digits[0] = '-';
    memcpy(digits + 1, t->data, t->n);
    return ggtok_jinja_big(mem, digits, t->n + 1u);
}

void ggtok_jinja_refuse_big(jinja_env *e, jinja_value a, jinja_value b) {
    if (a.type == JINJA_BIG || b.type == JINJA_BIG) ggtok_jinja_fail(&e->arena, JINJA_TOO_LARGE);
}

/* Arguments: value, default, base. */
jinja_value ggtok_jinja_pn_int(jinja_env *e, jinja_value *v) {
    jinja_value other = v[1].type == JINJA_ABSENT ? jinja_int(0) : v[1];
    int64_t i;
    double f;
    if (v[0].type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, v[0]);
    if (v[0].type == JINJA_STRING) {
        /* With an invalid base, jinja2 falls back to float(). */
        bool whole = v[2].type == JINJA_INT || v[2].type == JINJA_BOOL;
        int64_t base = v[2].type == JINJA_ABSENT ? 10 : whole ? ggtok_jinja_index(e, v[2]) : 1;
        bool valid_base = base == 0 || (base >= 2 && base <= 36);
        if (valid_base && read_int(e, v[0].as.text, base, &i)) return jinja_int(i);
        if (read_float(e, v[0].as.text, &f) && to_int(e, f, &i)) return jinja_int(i);
        return other;
    }
    if (v[0].type == JINJA_BIG) return v[0];
    if (is_int(v[0])) return jinja_int(ggtok_jinja_index(e, v[0]));
    if (v[0].type == JINJA_FLOAT && isinf(v[0].as.f))
        ggtok_jinja_fail(&e->arena, "cannot convert float infinity to integer");
    if (v[0].type == JINJA_FLOAT && to_int(e, v[0].as.f, &i)) return jinja_int(i);
    return other;
}

jinja_value ggtok_jinja_pn_float(jinja_env *e, jinja_value *v) {
    double f;
    if (v[0].type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, v[0]);
    if (v[0].type == JINJA_FLOAT) return v[0];
    ggtok_jinja_refuse_big(e, v[0], v[0]);
    if (is_int(v[0])) return jinja_float((double)ggtok_jinja_index(e, v[0]));
    if (v[0].type == JINJA_STRING && read_float(e, v[0].as.text, &f)) return jinja_float(f);
    return v[1].type == JINJA_ABSENT ? jinja_float(0) : v[1];
}

/* Rounds like Python's round(): correctly rounded decimals, half to even. */
static double round_to(jinja_arena *mem, double f, int64_t digits) {
    char text[JINJA_NUMBER_ROOM];
    if (f - f != 0 || digits > 22 + 300) return f;
    if (digits < 0) {
        double unit = pow(10, (double)-digits), whole = f / unit, r = nearbyint(whole);
        return r * unit;
    }
    if (fabs(f) > 1e22 || digits > 100) return f;
    size_t n = ggtok_jinja_format(mem, text, 'f', (int)digits, false, f);
    double out = 0;
    ggtok_jinja_strtod(mem, (const uint8_t *)text, n < 100 ? n : 100, &out);
    return out;
}

/* Arguments: value, precision, method. */
jinja_value ggtok_jinja_pn_round(jinja_env *e, jinja_value *v) {
    jinja_arena *mem = &e->arena;
    bool to_whole = v[1].type == JINJA_NONE; /* round(x, None) is an integer */
    int64_t digits = v[1].type == JINJA_ABSENT || to_whole ? 0 : ggtok_jinja_index(e, v[1]);
    jinja_text *method = v[2].type == JINJA_STRING ? v[2].as.text : NULL;
    bool up = method && ggtok_jinja_text_is(method, "ceil"),
         down = method && ggtok_jinja_text_is(method, "floor");
    if (v[2].type != JINJA_ABSENT && !up && !down &&
        !(method && ggtok_jinja_text_is(method, "common"))) {
        ggtok_jinja_fail(mem, "method must be common, ceil or floor");
    }
    if (v[0].type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, v[0]);
    if (v[0].type != JINJA_FLOAT && !is_int(v[0])) {
        ggtok_jinja_fail(mem, "type %s doesn't define __round__ method",
                         ggtok_jinja_python_type(v[0]));
    }
    if (digits > 300 || digits < -300)
        ggtok_jinja_fail(mem, "a precision of %lld is not supported", (long long)digits);
    if (to_whole && (up || down))
        ggtok_jinja_fail(mem, "a precision of None is not supported with ceil or floor");
    if (!up && !down) {
        if (v[0].type == JINJA_FLOAT && to_whole) {
            int64_t i;
            if (!to_int(e, round_to(mem, v[0].as.f, 0), &i))
                ggtok_jinja_fail(mem, "cannot convert float infinity or NaN to integer");
            return jinja_int(i);
        }
        if (v[0].type == JINJA_FLOAT) return jinja_float(round_to(mem, v[0].as.f, digits));
        if (digits >= 0) return jinja_int(ggtok_jinja_index(e, v[0]));
        int64_t i = ggtok_jinja_index(e, v[0]), unit = 1;
        for (int64_t k = digits; k < 0 && unit < INT64_MAX / 10; k++) unit *= 10;
        int64_t q = i / unit, r = i % unit;
        int64_t half = r < 0 ? -r : r, sign = i < 0 ? -1 : 1;
        if (2 * half > unit || (2 * half == unit && q % 2)) q += sign;
        if (q > INT64_MAX / unit || q < INT64_MIN / unit) ggtok_jinja_fail(mem, JINJA_TOO_LARGE);
        return jinja_int(q * unit);
    }
    double f = v[0].type == JINJA_FLOAT ? v[0].as.f : (double)ggtok_jinja_index(e, v[0]);
    double unit = pow(10, (double)digits);
    f *= unit;
    if (f - f != 0) ggtok_jinja_fail(mem, "cannot convert float infinity or NaN to integer");
    f = up ? ceil(f) : floor(f);
    return jinja_float((f == 0 ? 0 : f) / unit);
}

/* Returns the size that filesizeformat formats. */
static double size_of(jinja_env *e, jinja_value *v) {
    jinja_value number = ggtok_jinja_pn_float(e, v);
    double f = number.as.f;
    if (number.type != JINJA_FLOAT) ggtok_jinja_fail(&e->arena, "'filesizeformat' takes a number");
    if (v[0].type == JINJA_STRING && !read_float(e, v[0].as.text, &f)) {
        ggtok_jinja_fail(&e->arena, "could not convert string to float");
    }
    if (!is_int(v[0]) && v[0].type != JINJA_FLOAT && v[0].type != JINJA_STRING) {
        ggtok_jinja_fail(&e->arena, "'filesizeformat' takes a number, not %s",
                         ggtok_jinja_python_type(v[0]));
    }
    return f;
}

static JINJA_NOINLINE jinja_value show_size(jinja_env *e, double f, bool binary) {
    static const char *const units[2][8] = {
        {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"},
        {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}};
    char text[JINJA_NUMBER_ROOM + 16];
    double base = binary ? 1024 : 1000, unit = base;
    size_t n;
    if (f == 1) return jinja_of_text(ggtok_jinja_text_of(&e->arena, "1 Byte", 6, 0));
    if (f < base) {
        int64_t i;
        if (!to_int(e, f, &i)) ggtok_jinja_fail(&e->arena, "cannot convert float NaN to integer");
        n = ggtok_jinja_format_int(text, i);
        memcpy(text + n, " Bytes", 6);
        return jinja_of_text(ggtok_jinja_text_copy(&e->arena, text, n + 6, 0));
    }
    int i = 0;
    for (;; i++) {
        unit = pow(base, i + 2);
        /* Python compares with the integer 10^24, which is larger than the nearest double. */
        if (f < unit || (f == unit && !binary && i == 6) || i == 7) break;
    }
    n = ggtok_jinja_format(&e->arena, text, 'f', 1, false, base * f / unit);
    text[n++] = ' ';
    size_t n_unit = strlen(units[binary][i]);
    memcpy(text + n, units[binary][i], n_unit);
    return jinja_of_text(ggtok_jinja_text_copy(&e->arena, text, n + n_unit, 0));
}

jinja_value ggtok_jinja_pn_filesizeformat(jinja_env *e, jinja_value *v) {
    bool binary = v[1].type != JINJA_ABSENT && ggtok_jinja_python_truth(e, v[1]);
    return show_size(e, size_of(e, v), binary);
}
