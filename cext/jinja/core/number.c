#include "jinja/core/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"

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

size_t ggtok_jinja_format_unsigned(char out[32], uint64_t i) {
    return (size_t)snprintf(out, 32, "%llu", (unsigned long long)i);
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

/* ---- digits in JSON ---- */

/*
 * Grisu2 (Loitsch, 2010), as in llama.cpp's JSON library. The digits always read back as the same
 * double, but in about one of a thousand cases they aren't the shortest: 5.972269109151214e+16
 * becomes 5.9722691091512144e+16. Templates see this in the arguments of tool calls.
 *
 * A double and the bounds of the numbers that read back as it, in 64 bits each, are multiplied by a
 * power of ten so that the integer part of the products has at most 32 bits. The digits are those
 * of the upper bound, until the rest is smaller than the distance of the bounds.
 */
enum {
    GRISU_ALPHA = -60,  /* the least binary exponent of a product */
    GRISU_FIRST = -300, /* the least power; the library has every eighth from this one on */
    GRISU_STEP = 8
};

/* The number f * 2^e. */
typedef struct scaled {
    uint64_t f;
    int e;
} scaled;

static scaled normalized(uint64_t f, int e) {
    int shift = 63 - (int)bits_highest(f);
    return (scaled){f << shift, e - shift};
}

/* Returns the upper 64 bits of the product, rounded. */
static uint64_t upper_product(uint64_t x, uint64_t y) {
    uint64_t xh = x >> 32, xl = (uint32_t)x, yh = y >> 32, yl = (uint32_t)y;
    uint64_t low = xl * yl, m1 = xh * yl, m2 = xl * yh;
    uint64_t mid = (low >> 32) + (uint32_t)m1 + (uint32_t)m2 + (UINT32_C(1) << 31);
    return xh * yh + (m1 >> 32) + (m2 >> 32) + (mid >> 32);
}

/* Returns the 64 leading bits of 10^k, rounded, for a multiple of four k from -308 to 340. */
static scaled power_of_ten(int k) {
    enum { WORDS = 32, GROUP = 625 }; /* 5^4; 5^340 has 790 bits, and 2^1023 / 5^308 has 308 */
    uint32_t words[WORDS + 1] = {0};  /* little-endian; the exponent of the first is `e` */
    int e = k;
    words[0] = 1;
    if (k < 0) {
        words[0] = 0, words[WORDS - 1] = UINT32_C(1) << 31;
        e -= 32 * WORDS - 1;
    }
    for (; k > 0; k -= 4) {
        uint64_t carry = 0;
        for (int i = 0; i < WORDS; i++) {
            carry += (uint64_t)words[i] * GROUP;
            words[i] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    for (; k < 0; k += 4) {
        uint64_t rest = 0;
        for (int i = WORDS - 1; i >= 0; i--) {
            rest = rest << 32 | words[i];
            words[i] = (uint32_t)(rest / GROUP);
            rest %= GROUP;
        }
    }
    int top = WORDS - 1;
    while (!words[top]) top--;
    uint64_t f = (uint64_t)words[top] << 32 | (top ? words[top - 1] : 0);
    int shift = 63 - (int)bits_highest(f);
    uint64_t next = (uint64_t)(top > 1 ? words[top - 2] : 0) << 32 | (top > 2 ? words[top - 3] : 0);
    if (shift) f = f << shift | next >> (64 - shift);
    e += 32 * (top - 1) - shift;
    bool up = next << shift >> 63;
    if (up && !++f) return (scaled){UINT64_C(1) << 63, e + 1};
    return (scaled){f, e};
}

/* Returns the exponent of the power of ten that scales numbers with the binary exponent e. */
static int power_for(int e) {
    int f = GRISU_ALPHA - e - 1;
    int k = f * 78913 / (1 << 18) + (f > 0); /* f * log10(2), rounded up */
    return GRISU_FIRST + (k - GRISU_FIRST + GRISU_STEP - 1) / GRISU_STEP * GRISU_STEP;
}

/* Writes the shortest digits between low and high, adjusted towards w, which all have the binary
 * exponent e. Returns their number; *power is the power of ten of the last one. */
static int generate(uint64_t low, uint64_t w, uint64_t high, int e, char digits[24], int *power) {
    uint64_t delta = high - low, distance = high - w, rest = high, unit = UINT64_C(1) << -e;
    int n = 0;
    *power = 0;
    for (uint64_t whole = high >> -e; whole >= 10; whole /= 10) unit *= 10, ++*power;
    for (;;) {
        digits[n++] = (char)('0' + rest / unit);
        rest %= unit;
        if (rest <= delta) break;
        if (--*power >= 0)
            unit /= 10;
        else
            rest *= 10, delta *= 10, distance *= 10;
    }
    while (rest < distance && delta - rest >= unit &&
           (rest + unit < distance || distance - rest > rest + unit - distance)) {
        digits[n - 1]--;
        rest += unit;
    }
    return n;
}

/* Computes the decimal digits of a positive double, which is digits * 10^*power. */
static int grisu_digits(double value, char digits[24], int *power) {
    int exponent;
    double fraction = frexp(value, &exponent);
    int e = exponent - DBL_MANT_DIG < -1074 ? -1074 : exponent - DBL_MANT_DIG;
    uint64_t f = (uint64_t)ldexp(fraction, exponent - e);
    /* The next smaller double is closer than the next larger one. */
    bool lower_is_closer = f == UINT64_C(1) << (DBL_MANT_DIG - 1) && e > -1074;
    scaled plus = normalized(2 * f + 1, e - 1);
    scaled minus = lower_is_closer ? (scaled){4 * f - 1, e - 2} : (scaled){2 * f - 1, e - 1};
    int k = power_for(plus.e);
    scaled ten = power_of_ten(k);
    uint64_t low = upper_product(minus.f << (minus.e - plus.e), ten.f);
    uint64_t w = upper_product(normalized(f, e).f, ten.f), high = upper_product(plus.f, ten.f);
    /* The products may be wrong by one unit: shrink the interval at both ends. */
    int n = generate(low + 1, w, high - 1, plus.e + ten.e + 64, digits, power);
    *power -= k;
    return n;
}

size_t ggtok_jinja_format_json(jinja_arena *mem, char out[JINJA_NUMBER_ROOM], double f) {
    enum { LEAST_POINT = -4, MOST_POINT = 15 }; /* without exponent from 1e-4 to below 1e15 */
    char digits[24], *p = out;
    int power;
    jinja_charge(mem, SHORTEST);
    if (f - f != 0) return memcpy(out, "null", 5), 4;
    if (signbit(f)) *p++ = '-';
    if (f == 0) return memcpy(p, "0.0", 4), (size_t)(p - out) + 3;
    int n = grisu_digits(fabs(f), digits, &power);
    digits[n] = 0;
    int point = n + power; /* the value is 0.DIGITS * 10^point */
    if (n <= point && point <= MOST_POINT)
        p += snprintf(p, 64, "%s%.*s.0", digits, power, "000000000000000");
    else if (0 < point && point <= MOST_POINT)
        p += snprintf(p, 64, "%.*s.%s", point, digits, digits + point);
    else if (LEAST_POINT < point && point <= 0)
        p += snprintf(p, 64, "0.%.*s%s", -point, "000", digits);
    else
        p += snprintf(p, 64, "%c%s%se%+03d", digits[0], n > 1 ? "." : "", digits + 1, point - 1);
    return (size_t)(p - out);
}
