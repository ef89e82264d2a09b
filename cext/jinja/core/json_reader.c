/* Reads JSON into values. */
#include "base/bits.h"
#include "jinja/core/jinja.h"
#include "jinja/core/number.h"
#include "unicode/utf8.h"
#include "unicode/utf8_valid.h"

typedef struct reader {
    jinja_arena *mem;
    const uint8_t *begin, *p, *end;
    jinja_label label;
    jinja_dialect dialect;
    bool invalid; /* whether reading failed because the text isn't JSON */
    jinja_value value;
} reader;

static _Noreturn void fail(reader *r, const char *what) {
    r->invalid = true;
    ggtok_jinja_fail(r->mem, "not valid JSON: %s at byte %zu", what, (size_t)(r->p - r->begin));
}

static uint8_t peek(const reader *r) {
    return r->p < r->end ? *r->p : 0;
}

static void skip_space(reader *r) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r')) {
        r->p++;
    }
}

static bool skip_word(reader *r, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n)) return false;
    r->p += n;
    return true;
}

/* ---- strings ---- */

static uint32_t read_hex(reader *r) {
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++, r->p++) {
        uint8_t c = peek(r);
        if (c >= '0' && c <= '9')
            unit = unit << 4 | (uint32_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            unit = unit << 4 | (uint32_t)((c | 32) - 'a' + 10);
        else
            fail(r, "expected four hexadecimal digits");
    }
    return unit;
}

static size_t read_escape(reader *r, uint8_t *out) {
    uint8_t c = peek(r);
    r->p++;
    switch (c) {
    case '"':
    case '\\':
    case '/': return *out = c, 1;
    case 'b': return *out = '\b', 1;
    case 'f': return *out = '\f', 1;
    case 'n': return *out = '\n', 1;
    case 'r': return *out = '\r', 1;
    case 't': return *out = '\t', 1;
    case 'u': break;
    default: fail(r, "unknown escape");
    }
    uint32_t point = read_hex(r);
    if (point >= 0xDC00 && point < 0xE000) fail(r, "unpaired surrogate");
    if (point >= 0xD800 && point < 0xDC00) {
        if (!skip_word(r, "\\u")) fail(r, "unpaired surrogate");
        uint32_t low = read_hex(r);
        if (low < 0xDC00 || low >= 0xE000) fail(r, "unpaired surrogate");
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    }
    return ggtok_utf8_encode(point, out);
}

/* Whether p[0..n) contains a surrogate; apart from surrogates, it must be valid UTF-8. */
static bool has_surrogate(const uint8_t *p, size_t n) {
    const uint8_t *end = p + n;
    while (p < end && (p = memchr(p, 0xED, (size_t)(end - p)))) {
        if (p[1] >= 0xA0) return true;
        p += 3;
    }
    return false;
}

/* Returns the first quote, backslash or control character from p on, or `end`. */
static const uint8_t *plain_end(const uint8_t *p, const uint8_t *end) {
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    for (; end - p >= 8; p += 8) {
        uint64_t x, quote, slash;
        memcpy(&x, p, 8);
        quote = x ^ '"' * ones;
        slash = x ^ '\\' * ones;
        /* The lowest bit set is correct; a borrow may set wrong bits above it. */
        uint64_t found =
            (((x - ' ' * ones) & ~x) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) &
            high;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (found) return p + bits_lowest(found) / 8;
#else
        if (found) break;
#endif
    }
    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20) p++;
    return p;
}

static jinja_text *read_string(reader *r) {
    const uint8_t *start = ++r->p, *p = plain_end(start, r->end);
    size_t n = (size_t)(p - start);
    uint8_t *data = NULL;
    if (p < r->end && *p == '"') {
        r->p = p + 1;
    } else { /* with escapes; the decoded string is never longer than the source */
        const uint8_t *end = p;
        while (end < r->end && *end != '"') {
            size_t step = *end == '\\' ? 2 : 1; /* 1: a control character, refused below */
            if ((size_t)(r->end - end) <= step) break;
            end = plain_end(end + step, r->end);
        }
        if (end >= r->end || *end != '"') r->p = r->end, fail(r, "unclosed string");
        data = jinja_alloc(r->mem, (size_t)(end - start));
        memcpy(data, start, n);
        for (r->p = p; r->p != end;) {
            if (*r->p != '\\') fail(r, "unescaped control character");
            r->p++;
            n += read_escape(r, data + n);
            p = plain_end(r->p, end);
            memcpy(data + n, r->p, (size_t)(p - r->p));
            n += (size_t)(p - r->p);
            r->p = p;
        }
        r->p++;
    }
    jinja_charge(r->mem, 1 + n / 8);
    const uint8_t *text = data ? data : start;
    if (ggtok_utf8_valid_prefix(text, n) != n || has_surrogate(text, n)) {
        fail(r, "the string before this is not UTF-8,");
    }
    return data ? ggtok_jinja_text_of(r->mem, data, n, r->label)
                : ggtok_jinja_text_copy(r->mem, start, n, r->label);
}

/* ---- numbers ---- */

static bool is_digit(uint8_t c) {
    return c >= '0' && c <= '9';
}

static jinja_value read_number(reader *r) {
    const uint8_t *start = r->p;
    bool negative = peek(r) == '-', fraction = false;
    if (negative) r->p++;
    const uint8_t *digits = r->p;
    if (!is_digit(peek(r))) fail(r, "expected a value");
    if (*r->p++ != '0') {
        while (is_digit(peek(r))) r->p++;
    }
    size_t n_digits = (size_t)(r->p - digits);
    if (peek(r) == '.') {
        fraction = true;
        r->p++;
        if (!is_digit(peek(r))) fail(r, "expected a digit");
        while (is_digit(peek(r))) r->p++;
    }
    if ((peek(r) | 32) == 'e') {
        fraction = true;
        r->p++;
        if (peek(r) == '+' || peek(r) == '-') r->p++;
        if (!is_digit(peek(r))) fail(r, "expected a digit");
        while (is_digit(peek(r))) r->p++;
    }
    jinja_charge_bytes(r->mem, (uint64_t)(r->p - start));
    int64_t i;
    if (!fraction && ggtok_jinja_parse_int(r->mem, digits, n_digits, negative, &i))
        return jinja_int(i);
    if (!fraction && r->dialect == JINJA_TRANSFORMERS) {
        return ggtok_jinja_big(r->mem, start, (size_t)(r->p - start));
    }
    if (!fraction && !negative && n_digits <= 20) { /* llama.cpp's unsigned integers wrap around */
        uint64_t u = 0, digit = 0;
        size_t k = 0;
        for (; k < n_digits; k++) {
            digit = digits[k] - '0';
            if (u > (UINT64_MAX - digit) / 10) break;
            u = 10 * u + digit;
        }
        if (k == n_digits) {
            return (jinja_value){.type = JINJA_INT, .is_unsigned = true, .as.i = (int64_t)u};
        }
    }
    double f;
    if (!ggtok_jinja_parse_float(r->mem, start, (size_t)(r->p - start), &f))
        fail(r, "invalid number");
    if (f - f != 0 && r->dialect == JINJA_LLAMA_CPP) fail(r, "number out of range");
    return jinja_float(f);
}

/* ---- values ---- */

static jinja_value read_value(reader *r);

static jinja_value read_array(reader *r) {
    jinja_list *list = ggtok_jinja_list_new(r->mem, 0);
    r->p++;
    skip_space(r);
    if (peek(r) == ']') return r->p++, jinja_of_list(list);
    for (;;) {
        ggtok_jinja_list_push(r->mem, list, read_value(r));
        skip_space(r);
        uint8_t c = peek(r);
        r->p++;
        if (c == ']') return jinja_of_list(list);
        if (c != ',') r->p--, fail(r, "expected ',' or ']'");
    }
}

static jinja_value read_object(reader *r) {
    jinja_dict *dict = ggtok_jinja_dict_new(r->mem, 0);
    r->p++;
    skip_space(r);
    if (peek(r) == '}') return r->p++, jinja_of_dict(dict);
    for (;;) {
        skip_space(r);
        if (peek(r) != '"') fail(r, "expected a key");
        jinja_text *key = read_string(r);
        skip_space(r);
        if (peek(r) != ':') fail(r, "expected ':'");
        r->p++;
        ggtok_jinja_dict_set(r->mem, dict, jinja_of_text(key), read_value(r));
        skip_space(r);
        uint8_t c = peek(r);
        r->p++;
        if (c == '}') return jinja_of_dict(dict);
        if (c != ',') r->p--, fail(r, "expected ',' or '}'");
    }
}

static jinja_value read_python_number(reader *r) {
    if (r->dialect == JINJA_TRANSFORMERS) {
        if (skip_word(r, "NaN")) return jinja_float(0.0 / 0.0 * -1);
        if (skip_word(r, "Infinity")) return jinja_float(1.0 / 0.0);
        if (skip_word(r, "-Infinity")) return jinja_float(-1.0 / 0.0);
    }
    return read_number(r);
}

static jinja_value read_value(reader *r) {
    jinja_value v;
    jinja_charge(r->mem, 1);
    if (r->mem->depth == JINJA_MAX_DEPTH) fail(r, "nested too deeply");
    jinja_enter(r->mem);
    skip_space(r);
    switch (peek(r)) {
    case '"': v = jinja_of_text(read_string(r)); break;
    case '[': v = read_array(r); break;
    case '{': v = read_object(r); break;
    case 't':
        if (!skip_word(r, "true")) fail(r, "expected a value");
        v = jinja_bool(true);
        break;
    case 'f':
        if (!skip_word(r, "false")) fail(r, "expected a value");
        v = jinja_bool(false);
        break;
    case 'n':
        if (!skip_word(r, "null")) fail(r, "expected a value");
        v = jinja_none();
        break;
    default: v = read_python_number(r); break;
    }
    jinja_leave(r->mem);
    return v;
}

static jinja_value read_all(reader *r) {
    if (r->dialect == JINJA_LLAMA_CPP) skip_word(r, "\xEF\xBB\xBF"); /* a byte order mark */
    jinja_value v = read_value(r);
    skip_space(r);
    if (r->p != r->end) fail(r, "unexpected text after the value");
    return v;
}

jinja_value ggtok_jinja_read_json(jinja_arena *mem, const char *json, size_t n, jinja_label label,
                                  jinja_dialect dialect) {
    const uint8_t *p = (const uint8_t *)json;
    reader r = {mem, p, p, p + n, label, dialect, false, jinja_none()};
    return read_all(&r);
}

static void read_protected(jinja_arena *mem, void *user) {
    reader *r = user;
    (void)mem;
    r->value = read_all(r);
}

bool ggtok_jinja_read_if_json(jinja_arena *mem, const char *json, size_t n, jinja_label label,
                              jinja_dialect dialect, jinja_value *out, jinja_error *err) {
    const uint8_t *p = (const uint8_t *)json;
    reader r = {mem, p, p, p + n, label, dialect, false, jinja_none()};
    if (!ggtok_jinja_protect(mem, read_protected, &r, err)) return *out = r.value, true;
    if (r.invalid) return false;
    *mem->error = *err;
    longjmp(*mem->caller, 1);
}
