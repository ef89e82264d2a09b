#include "jinja/core/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool ggtok_jinja_parse_int(jinja_arena *mem, const uint8_t *p, size_t n, bool negative,
                           int64_t *out) {
    uint64_t value = 0, most = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    jinja_charge_bytes(mem, n);
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t digit = p[i] - '0';
        if (value > (most - digit) / 10) return false;
        value = 10 * value + digit;
    }
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* Writes the locale's decimal point; returns its length. */
static size_t decimal_point(char out[16]) {
    char text[24];
    int n = snprintf(text, sizeof text, "%.1f", 1.5);
    if (n < 3 || n > 16) return out[0] = '.', 1;
    memcpy(out, text + 1, (size_t)n - 2);
    return (size_t)n - 2;
}

size_t ggtok_jinja_strtod(jinja_arena *mem, const uint8_t *p, size_t n, double *out) {
    char small[128], point[16];
    size_t n_point = decimal_point(point);
    size_t room = n + n_point + 1;
    jinja_charge(mem, 4 + n / 4);
    char *text = room <= sizeof small ? small : jinja_alloc(mem, room), *end;
    size_t at = 0, replaced = SIZE_MAX;
    for (size_t i = 0; i < n && p[i]; i++) {
        if (p[i] == '.' && replaced == SIZE_MAX) {
            replaced = at;
            memcpy(text + at, point, n_point);
            at += n_point;
        } else {
            text[at++] = (char)p[i];
        }
    }
    text[at] = 0;
    *out = strtod(text, &end);
    size_t used = (size_t)(end - text);
    return replaced != SIZE_MAX && used > replaced ? used - n_point + 1 : used;
}

bool ggtok_jinja_parse_float(jinja_arena *mem, const uint8_t *p, size_t n, double *out) {
    return n && ggtok_jinja_strtod(mem, p, n, out) == n;
}

bool ggtok_jinja_float_is_normal(double f) {
    double size = fabs(f);
    return f == 0 || (size >= DBL_MIN && size <= DBL_MAX);
}

/* ---- to text ---- */

/* Replaces the locale's decimal point with a dot. Returns the new length. */
static size_t with_dot(char *text, size_t n) {
    size_t out = 0;
    bool dotted = false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        bool plain = (c >= '0' && c <= '9') || c == '-' || c == '+' || (c >= 'a' && c <= 'z') ||
                     (c >= 'A' && c <= 'Z');
        if (plain) {
            text[out++] = c;
        } else if (!dotted) {
            dotted = true;
            text[out++] = '.';
        }
    }
    text[out] = 0;
    return out;
}

/* Steps charged for printing a double. */
enum { PRINTED = 16, PRINTED_LONG = 64, SHORTEST = 64 };

size_t ggtok_jinja_format(jinja_arena *mem, char out[JINJA_NUMBER_ROOM], char type, int precision,
                          bool alternate, double f) {
    jinja_charge(mem, precision <= 20 && fabs(f) < 1e25 ? PRINTED : PRINTED_LONG);
    char format[8] = "%#.*", *p = format + 4;
    *p++ = type, *p = 0;
    if (!alternate) memmove(format + 1, format + 2, strlen(format + 2) + 1);
    int n = snprintf(out, JINJA_NUMBER_ROOM, format, precision, f);
    if (n < 0) n = 0;
    if (n >= JINJA_NUMBER_ROOM) n = JINJA_NUMBER_ROOM - 1;
    return with_dot(out, (size_t)n);
}

size_t ggtok_jinja_format_int(char out[32], int64_t i) {
    return (size_t)snprintf(out, 32, "%lld", (long long)i);
}

/* Computes the digits and exponent of the shortest decimal that reads back as f (finite,
 * positive). */
static int shortest(double f, char digits[24], int *exponent) {
    char text[JINJA_NUMBER_ROOM];
    bool normal = f >= DBL_MIN; /* 2 to 14 digits are skipped: trailing zeros are dropped below */
    for (int precision = 0; precision <= 16; precision++) {
        if (normal && precision > 0 && precision < 14) continue;
        snprintf(text, sizeof text, "%.*e", precision ? precision : 0, f);
        if (strtod(text, NULL) == f || precision == 16) break;
    }
    int n = 0;
    char *e = strchr(text, 'e');
    for (char *p = text; p < e; p++) {
        if (*p >= '0' && *p <= '9') digits[n++] = *p;
    }
    while (n > 1 && digits[n - 1] == '0') n--;
    *exponent = (int)strtol(e + 1, NULL, 10);
    return n;
}

size_t ggtok_jinja_format_repr(jinja_arena *mem, char out[JINJA_NUMBER_ROOM], double f) {
    double size = fabs(f);
    bool easy = size == 0 || (size > 1e-20 && size < 1e20);
    jinja_charge(mem, easy ? SHORTEST : size < DBL_MIN ? 8 * SHORTEST : 2 * SHORTEST);
    char digits[24], *p = out;
    int exponent;
    if (f != f) return memcpy(out, "nan", 4), 3;
    if (signbit(f)) *p++ = '-';
    if (isinf(f)) return memcpy(p, "inf", 4), (size_t)(p - out) + 3;
    if (f == 0) return memcpy(p, "0.0", 4), (size_t)(p - out) + 3;
    int n = shortest(fabs(f), digits, &exponent);
    if (exponent < -4 || exponent >= 16) {
        *p++ = digits[0];
        if (n > 1) *p++ = '.', memcpy(p, digits + 1, (size_t)n - 1), p += n - 1;
        p += snprintf(p, 8, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        memcpy(p, "0.", 2), p += 2;
        for (int i = -1; i > exponent; i--) *p++ = '0';
        memcpy(p, digits, (size_t)n), p += n;
    } else {
        for (int i = 0; i <= exponent || i < n; i++) {
            if (i == exponent + 1) *p++ = '.';
            *p++ = i < n ? digits[i] : '0';
        }
        if (n <= exponent + 1) *p++ = '.', *p++ = '0';
    }
    *p = 0;
    return (size_t)(p - out);
}
