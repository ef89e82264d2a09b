/* llama.cpp's filters and methods of strings, which work on bytes and treat only ASCII letters as
 * letters. */
#include "jinja/core/number.h"
#include "jinja/llama/builtins.h"

static jinja_value new_string(jinja_env *e, jinja_text *t) {
    return jinja_new_id(e, jinja_of_text(t));
}

static jinja_text *text_at(jinja_env *e, const jinja_args *a, uint32_t i) {
    ggtok_jinja_args_type(e, a, i, ON_STRING);
    return a->v[i].as.text;
}

/* ---- letters ---- */

static bool is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}
static uint8_t upper(uint8_t c) {
    return c >= 'a' && c <= 'z' ? c - 32 : c;
}
static uint8_t lower(uint8_t c) {
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

typedef enum cases { UPPER, LOWER, CAPITALIZE, TITLE } cases;

/* Changes the case. capitalize and title affect the first letter of each part of the string. */
static jinja_value change_case(jinja_env *e, jinja_args *a, cases how) {
    jinja_text *t = text_at(e, a, 0);
    jinja_charge(&e->arena, 1 + t->n / 4);
    uint8_t *data = jinja_alloc(&e->arena, t->n);
    size_t count = jinja_text_count(t), begin = 0;
    bool first = true;
    for (size_t i = 0; i < count; i++) {
        size_t end = jinja_text_end(t, i);
        if (!(jinja_text_part_label(t, i) & JINJA_JOINED)) first = true;
        for (; begin < end; begin++) {
            uint8_t c = t->data[begin];
            bool high = how == UPPER || (how == CAPITALIZE && first) ||
                        (how == TITLE && first && !is_space(c));
            if (how == TITLE && is_space(c))
                first = true;
            else
                first = false;
            data[begin] = high ? upper(c) : lower(c);
        }
    }
    jinja_text *changed = jinja_alloc(&e->arena, sizeof *changed);
    *changed = *t;
    changed->data = data;
    changed->room = NULL;
    changed->hash = 0;
    return new_string(e, changed);
}

jinja_value ggtok_jinja_text_upper(jinja_env *e, jinja_args *a) {
    return change_case(e, a, UPPER);
}
jinja_value ggtok_jinja_text_lower(jinja_env *e, jinja_args *a) {
    return change_case(e, a, LOWER);
}
jinja_value ggtok_jinja_text_capitalize(jinja_env *e, jinja_args *a) {
    return change_case(e, a, CAPITALIZE);
}
jinja_value ggtok_jinja_text_title(jinja_env *e, jinja_args *a) {
    return change_case(e, a, TITLE);
}

/* ---- strip ---- */

static jinja_value strip(jinja_env *e, jinja_args *a, bool left, bool right) {
    jinja_arena *mem = &e->arena;
    jinja_text *t = text_at(e, a, 0);
    jinja_value chars = ggtok_jinja_args_named(e, a, "chars", 1);
    uint8_t set[256] = {0};
    if (chars.type == JINJA_UNDEFINED) {
        for (int c = 0; c < 256; c++) set[c] = is_space((uint8_t)c);
    } else {
        const jinja_text *own = ggtok_jinja_llama_text(e, chars);
        jinja_charge(mem, own->n / 4);
        for (uint32_t i = 0; i < own->n; i++) set[own->data[i]] = 1;
    }
    size_t begin = 0, end = t->n;
    if (left) {
        while (begin < end && set[t->data[begin]]) begin++;
    }
    if (right) {
        while (end > begin && set[t->data[end - 1]]) end--;
    }
    jinja_charge(mem, (t->n - (end - begin)) / 4);
    return new_string(e, ggtok_jinja_text_cut(mem, t, begin, end));
}

jinja_value ggtok_jinja_text_strip(jinja_env *e, jinja_args *a) {
    return strip(e, a, true, true);
}
jinja_value ggtok_jinja_text_lstrip(jinja_env *e, jinja_args *a) {
    return strip(e, a, true, false);
}
jinja_value ggtok_jinja_text_rstrip(jinja_env *e, jinja_args *a) {
    return strip(e, a, false, true);
}

/* ---- length and affixes ---- */

jinja_value ggtok_jinja_text_length(jinja_env *e, jinja_args *a) {
    return jinja_int(text_at(e, a, 0)->n);
}

jinja_value ggtok_jinja_text_startswith(jinja_env *e, jinja_args *a) {
    jinja_text *t = text_at(e, a, 0), *with = text_at(e, a, 1);
    jinja_charge_bytes(&e->arena, with->n);
    return jinja_bool(with->n <= t->n && !memcmp(t->data, with->data, with->n));
}

jinja_value ggtok_jinja_text_endswith(jinja_env *e, jinja_args *a) {
    jinja_text *t = text_at(e, a, 0), *with = text_at(e, a, 1);
    jinja_charge_bytes(&e->arena, with->n);
    return jinja_bool(with->n <= t->n && !memcmp(t->data + t->n - with->n, with->data, with->n));
}

/* ---- split, replace ---- */

/* Sets *t to the text and *times to the maximum number of splits (-1: no limit); returns the
 * separator. */
static const jinja_text *split_arguments(jinja_env *e, jinja_args *a, jinja_text **t,
                                         int64_t *times) {
    ggtok_jinja_args_count(e, a, 1, 3);
    *t = text_at(e, a, 0);
    jinja_text *by = a->n > 1 ? ggtok_jinja_llama_text(e, a->v[1])
                              : ggtok_jinja_text_of(&e->arena, " ", 1, JINJA_FROM_TEMPLATE);
    if (!by->n) ggtok_jinja_fail(&e->arena, "'%s' takes a separator that isn't empty", a->name);
    *times = a->n > 2 ? ggtok_jinja_llama_int(e, a->v[2]) : -1;
    return by;
}

static jinja_value piece(jinja_env *e, const jinja_text *t, size_t begin, size_t end) {
    return new_string(
        e, ggtok_jinja_text_fuse(&e->arena, ggtok_jinja_text_cut(&e->arena, t, begin, end)));
}

jinja_value ggtok_jinja_text_split(jinja_env *e, jinja_args *a) {
    jinja_text *t;
    int64_t times;
    const jinja_text *by = split_arguments(e, a, &t, &times);
    jinja_list *list = ggtok_jinja_list_new(&e->arena, 0);
    size_t at = 0, found;
    while (times && (found = ggtok_jinja_text_find(&e->arena, t, by, at)) != SIZE_MAX) {
        ggtok_jinja_list_push(&e->arena, list, piece(e, t, at, found));
        at = found + by->n;
        times--;
    }
    ggtok_jinja_list_push(&e->arena, list, piece(e, t, at, t->n));
    return jinja_of_list(list);
}

jinja_value ggtok_jinja_text_rsplit(jinja_env *e, jinja_args *a) {
    jinja_text *t;
    int64_t times;
    const jinja_text *by = split_arguments(e, a, &t, &times);
    jinja_list *list = ggtok_jinja_list_new(&e->arena, 0);
    size_t end = t->n, found;
    while (times && (found = ggtok_jinja_text_rfind(&e->arena, t, by, end)) != SIZE_MAX) {
        ggtok_jinja_list_push(&e->arena, list, piece(e, t, found + by->n, end));
        end = found;
        times--;
    }
    ggtok_jinja_list_push(&e->arena, list, piece(e, t, 0, end));
    for (uint32_t i = 0, j = list->n - 1; i < j; i++, j--) {
        jinja_value v = list->data[i];
        list->data[i] = list->data[j];
        list->data[j] = v;
    }
    return jinja_of_list(list);
}

/* Replaces the empty text: inserts `with` before, after and between all bytes. */
static void replace_nothing(jinja_builder *b, const jinja_text *t, const jinja_text *with) {
    uint64_t size = (uint64_t)t->n + ((uint64_t)t->n + 1) * with->n;
    if (size > JINJA_MAX_TEXT) {
        ggtok_jinja_fail(b->arena, "a text is longer than %u bytes", JINJA_MAX_TEXT);
    }
    ggtok_jinja_builder_text(b, with);
    for (size_t i = 0; i < t->n; i++) {
        ggtok_jinja_builder_cut(b, t, i, i + 1);
        ggtok_jinja_builder_text(b, with);
    }
}

jinja_value ggtok_jinja_text_replace(jinja_env *e, jinja_args *a) {
    jinja_text *t = text_at(e, a, 0), *old = text_at(e, a, 1), *with = text_at(e, a, 2);
    if (a->n > 3 && ggtok_jinja_llama_int(e, a->v[3]) > 0) {
        ggtok_jinja_fail(&e->arena, "llama.cpp's dialect doesn't support 'replace' with a count");
    }
    size_t at = 0, found = SIZE_MAX;
    if (old->n && !ggtok_jinja_text_equal(&e->arena, old, with))
        found = ggtok_jinja_text_find(&e->arena, t, old, 0);
    if (found == SIZE_MAX && (old->n || !with->n)) {
        jinja_text *same = ggtok_jinja_text_cut(&e->arena, t, 0, t->n);
        return new_string(e, ggtok_jinja_text_fuse(&e->arena, same));
    }
    jinja_builder b = ggtok_jinja_builder_new(&e->arena, t->n);
    b.merge = true;
    if (!old->n) replace_nothing(&b, t, with);
    for (; old->n && found != SIZE_MAX; found = ggtok_jinja_text_find(&e->arena, t, old, at)) {
        ggtok_jinja_builder_cut(&b, t, at, found);
        ggtok_jinja_builder_text(&b, with);
        at = found + old->n;
    }
    if (old->n) ggtok_jinja_builder_cut(&b, t, at, t->n);
    return new_string(e, ggtok_jinja_text_fuse(&e->arena, ggtok_jinja_builder_end(&b)));
}

/* ---- format, indent ---- */

jinja_value ggtok_jinja_text_format(jinja_env *e, jinja_args *a) {
    jinja_text *t = text_at(e, a, 0);
    jinja_builder b = ggtok_jinja_builder_new(&e->arena, t->n);
    uint32_t next = 1;
    size_t begin = 0;
    jinja_charge(&e->arena, t->n / 4);
    for (size_t i = 0; i < t->n; i++) {
        if (t->data[i] != '{') continue;
        if (i + 1 >= t->n || t->data[i + 1] != '}') {
            ggtok_jinja_fail(&e->arena, "llama.cpp's dialect only supports '{}' in 'format'");
        }
        if (begin < i) {
            ggtok_jinja_builder_text(
                &b, ggtok_jinja_text_fuse(&e->arena, ggtok_jinja_text_cut(&e->arena, t, begin, i)));
        }
        ggtok_jinja_builder_text(&b, ggtok_jinja_llama_text(e, ggtok_jinja_args_at(e, a, next++)));
        begin = ++i + 1;
    }
    if (begin < t->n) {
        ggtok_jinja_builder_text(
            &b, ggtok_jinja_text_fuse(&e->arena, ggtok_jinja_text_cut(&e->arena, t, begin, t->n)));
    }
    return new_string(e, ggtok_jinja_builder_end(&b));
}

static jinja_text *indentation(jinja_env *e, jinja_value width) {
    jinja_arena *mem = &e->arena;
    if (width.type == JINJA_STRING) return width.as.text;
    int64_t n = width.type == JINJA_INT ? width.as.i : 4;
    if (n < 0 || n > (int64_t)JINJA_MAX_TEXT)
        ggtok_jinja_fail(mem, "'indent' can't indent by %lld", (long long)n);
    jinja_charge_bytes(mem, (uint64_t)n);
    uint8_t *spaces = jinja_alloc(mem, (size_t)n);
    memset(spaces, ' ', (size_t)n);
    return ggtok_jinja_text_of(mem, spaces, (size_t)n, JINJA_FROM_TEMPLATE);
}

/* Indents line by line. Like llama.cpp, drops empty lines at the beginning: the newline before a
 * line is written only once there is output. */
jinja_value ggtok_jinja_text_indent(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_count(e, a, 1, 4);
    jinja_value width = ggtok_jinja_args_named(e, a, "width", 1);
    bool first = ggtok_jinja_llama_truth(e, ggtok_jinja_args_named(e, a, "first", 2));
    bool blank = ggtok_jinja_llama_truth(e, ggtok_jinja_args_named(e, a, "blank", 3));
    jinja_text *t = text_at(e, a, 0), *space = indentation(e, width);
    jinja_builder b = ggtok_jinja_builder_new(&e->arena, t->n);
    b.merge = true;
    for (size_t at = 0; at < t->n;) {
        const uint8_t *newline = memchr(t->data + at, '\n', t->n - at);
        size_t end = newline ? (size_t)(newline - t->data) : t->n;
        jinja_charge(&e->arena, 1);
        if (b.n) ggtok_jinja_builder_cut(&b, t, at - 1, at);
        if (b.n ? end > at || blank : first) ggtok_jinja_builder_text(&b, space);
        ggtok_jinja_builder_cut(&b, t, at, end);
        at = end + 1;
    }
    if (t->n && t->data[t->n - 1] == '\n') {
        ggtok_jinja_builder_cut(&b, t, t->n - 1, t->n);
        if (blank) ggtok_jinja_builder_text(&b, space);
    }
    return new_string(e, ggtok_jinja_text_fuse(&e->arena, ggtok_jinja_builder_end(&b)));
}

/* ---- numbers, string, slice ---- */

static int digit_of(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
}

/* Reads an integer like C's strtol. Returns false if there is none or if it doesn't fit in an
 * int. */
static bool read_int(const jinja_text *t, int base, int64_t *out) {
    const uint8_t *p = t->data, *end = t->data + t->n;
    while (p < end && is_space(*p)) p++;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    bool hex = end - p > 2 && p[0] == '0' && (p[1] | 32) == 'x' && digit_of(p[2]) < 16;
    if (hex && (base == 0 || base == 16))
        p += 2, base = 16;
    else if (base == 0)
        base = p < end && *p == '0' ? 8 : 10;
    int64_t value = 0;
    bool any = false;
    for (; p < end && digit_of(*p) < base; p++) {
        any = true;
        value = base * value + digit_of(*p);
        if (value > (int64_t)INT32_MAX + negative) return false;
    }
    *out = negative ? -value : value;
    return any;
}

jinja_value ggtok_jinja_text_int(jinja_env *e, jinja_args *a) {
    jinja_value v = ggtok_jinja_args_at(e, a, 0),
                other = ggtok_jinja_args_named(e, a, "default", 1),
                own = ggtok_jinja_args_named(e, a, "base", 2);
    int64_t i, base = own.type == JINJA_UNDEFINED ? 10 : (int32_t)ggtok_jinja_llama_int(e, own);
    if (base != 0 && (base < 2 || base > 36)) {
        ggtok_jinja_fail(&e->arena, "the base of 'int' must be 0 or between 2 and 36");
    }
    jinja_charge_bytes(&e->arena, 4 * (uint64_t)text_at(e, a, 0)->n);
    if (read_int(v.as.text, (int)base, &i)) return jinja_int(i);
    return jinja_int(other.type == JINJA_UNDEFINED ? 0 : ggtok_jinja_llama_int(e, other));
}

jinja_value ggtok_jinja_text_float(jinja_env *e, jinja_args *a) {
    jinja_text *t = text_at(e, a, 0);
    jinja_value other = ggtok_jinja_args_named(e, a, "default", 1);
    double f;
    size_t used = ggtok_jinja_strtod(&e->arena, t->data, t->n, &f), digits = 0;
    bool fits = used && (f - f != 0 || ggtok_jinja_float_is_normal(f));
    for (size_t i = 0; i < used; i++) digits += t->data[i] >= '0' && t->data[i] <= '9';
    if (f - f != 0 && digits) { /* not the word "inf" or "nan": out of range */
        const uint8_t *p = memchr(t->data, '(', used); /* but nan(1) is valid */
        fits = fits && p;
    }
    if (fits && f == 0) { /* a number that was rounded to 0 is also out of range */
        for (size_t i = 0; i < used && (t->data[i] | 32) != 'e' && (t->data[i] | 32) != 'p'; i++) {
            int d = digit_of(t->data[i]);
            if (d > 0 && d < 16) fits = false;
        }
    }
    if (fits) return jinja_new_id(e, jinja_float(f));
    double fallback = other.type == JINJA_UNDEFINED ? 0 : ggtok_jinja_llama_float(e, other);
    return jinja_new_id(e, jinja_float(fallback));
}

jinja_value ggtok_jinja_text_string(jinja_env *e, jinja_args *a) {
    return new_string(e, text_at(e, a, 0));
}

jinja_value ggtok_jinja_text_safe(jinja_env *e, jinja_args *a) {
    text_at(e, a, 0);
    return a->v[0];
}

jinja_value ggtok_jinja_text_slice(jinja_env *e, jinja_args *a) {
    jinja_text *t = text_at(e, a, 0);
    jinja_slice s = ggtok_jinja_llama_slice(e, a, t->n);
    jinja_charge_bytes(&e->arena, s.n);
    if (s.step == 1) {
        size_t begin = (size_t)s.first;
        jinja_text *cut = ggtok_jinja_text_cut(&e->arena, t, begin, begin + s.n);
        return new_string(e, ggtok_jinja_text_fuse(&e->arena, cut));
    }
    jinja_label label = jinja_label_of(ggtok_jinja_text_label(&e->arena, t));
    uint8_t *data = jinja_alloc(&e->arena, s.n);
    for (size_t i = 0; i < s.n; i++) data[i] = t->data[s.first + (int64_t)i * s.step];
    return new_string(e, ggtok_jinja_text_of(&e->arena, data, s.n, label));
}
