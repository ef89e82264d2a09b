/* jinja2's tables: filters, tests, globals and methods, with their signatures. */
#include <math.h>

#include "jinja/python/dialect.h"
#include "jinja/python/functions.h"

static bool missing(jinja_value v) {
    return v.type == JINJA_ABSENT || v.type == JINJA_NONE;
}
/* ---- filters of values ---- */

static jinja_value filter_default(jinja_env *e, jinja_value *v) {
    bool empty_too = v[2].type != JINJA_ABSENT && ggtok_jinja_python_truth(e, v[2]);
    bool use = v[0].type == JINJA_UNDEFINED || (empty_too && !ggtok_jinja_python_truth(e, v[0]));
    if (!use) return v[0];
    return v[1].type == JINJA_ABSENT ? jinja_of_text(ggtok_jinja_text_of(&e->arena, "", 0, 0))
                                     : v[1];
}

static jinja_value filter_string(jinja_env *e, jinja_value *v) {
    return jinja_of_text(ggtok_jinja_str(e, v[0]));
}
static jinja_value filter_safe(jinja_env *e, jinja_value *v) {
    jinja_text *t = ggtok_jinja_str(e, v[0]), *own = jinja_alloc(&e->arena, sizeof *own);
    *own = *t;
    own->room = NULL;
    own->safe = true;
    return jinja_of_text(own);
}
static jinja_value filter_escape(jinja_env *e, jinja_value *v) {
    return jinja_of_text(ggtok_jinja_escape(e, v[0]));
}
static jinja_value filter_forceescape(jinja_env *e, jinja_value *v) {
    jinja_text *own = jinja_alloc(&e->arena, sizeof *own);
    *own = *ggtok_jinja_str(e, v[0]);
    own->safe = false;
    return jinja_of_text(ggtok_jinja_escape(e, jinja_of_text(own)));
}

/* Arguments: value, ensure_ascii, indent, separators, sort_keys. */
static jinja_value filter_tojson(jinja_env *e, jinja_value *v) {
    bool ascii = v[1].type != JINJA_ABSENT && ggtok_jinja_python_truth(e, v[1]);
    bool sort = v[4].type != JINJA_ABSENT && ggtok_jinja_python_truth(e, v[4]);
    return jinja_of_text(ggtok_jinja_python_json(e, v[0], ascii, v[2], v[3], sort));
}

/* Arguments: value, old, new, count. */
static jinja_value filter_replace(jinja_env *e, jinja_value *v) {
    int64_t times = missing(v[3]) ? -1 : ggtok_jinja_index(e, v[3]);
    return jinja_of_text(ggtok_jinja_py_replaced(
        e, ggtok_jinja_str(e, v[0]), ggtok_jinja_str(e, v[1]), ggtok_jinja_str(e, v[2]), times));
}

/* Arguments: value, width, first, blank. */
static jinja_value filter_indent(jinja_env *e, jinja_value *v) {
    jinja_arena *mem = &e->arena;
    if (v[0].type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, v[0]);
    if (v[0].type != JINJA_STRING)
        ggtok_jinja_fail(mem, "'indent' takes a string, not %s", ggtok_jinja_python_type(v[0]));
    jinja_text *t = v[0].as.text, *space;
    bool first = v[2].type != JINJA_ABSENT && ggtok_jinja_python_truth(e, v[2]);
    bool blank = v[3].type != JINJA_ABSENT && ggtok_jinja_python_truth(e, v[3]);
    if (v[1].type == JINJA_STRING) {
        space = v[1].as.text;
    } else {
        int64_t n = v[1].type == JINJA_ABSENT ? 4 : ggtok_jinja_index(e, v[1]);
        if (n > 10000) ggtok_jinja_fail(mem, "'indent' by more than 10000 is not supported");
        uint8_t *data = jinja_alloc(mem, n > 0 ? (size_t)n : 1);
        memset(data, ' ', n > 0 ? (size_t)n : 1);
        space = ggtok_jinja_text_of(mem, data, n > 0 ? (size_t)n : 0, JINJA_FROM_TEMPLATE);
    }
    jinja_value lines_of[2] = {jinja_of_text(ggtok_jinja_text_concat(
                                   mem, t, ggtok_jinja_text_of(mem, "\n", 1, JINJA_FROM_TEMPLATE))),
                               jinja_absent()};
    jinja_list *lines = ggtok_jinja_py_splitlines(e, lines_of).as.list;
    jinja_builder b = ggtok_jinja_builder_new(mem, t->n);
    b.merge = true;
    for (uint32_t i = 0; i < lines->n; i++) {
        jinja_text *line = lines->data[i].as.text;
        jinja_charge(mem, 1);
        if (i) ggtok_jinja_builder_add(&b, "\n", 1, JINJA_FROM_TEMPLATE);
        if (i ? blank || line->n : first) ggtok_jinja_builder_text(&b, space);
        ggtok_jinja_builder_text(&b, line);
    }
    jinja_text *indented = ggtok_jinja_builder_end(&b);
    indented->safe = t->safe;
    return jinja_of_text(indented);
}

/* Arguments: value, length, killwords, end, leeway. */
static jinja_value filter_truncate(jinja_env *e, jinja_value *v) {
    jinja_arena *mem = &e->arena;
    if (v[3].type == JINJA_ABSENT)
        v[3] = jinja_of_text(ggtok_jinja_text_of(mem, "...", 3, JINJA_FROM_TEMPLATE));
    int64_t length = v[1].type == JINJA_ABSENT ? 255 : ggtok_jinja_index(e, v[1]);
    int64_t leeway = missing(v[4]) ? 5 : ggtok_jinja_index(e, v[4]),
            n_end = ggtok_jinja_len(e, v[3]);
    if (length < n_end)
        ggtok_jinja_fail(mem, "expected length >= %lld, got %lld", (long long)n_end,
                         (long long)length);
    if (leeway < 0) ggtok_jinja_fail(mem, "expected leeway >= 0, got %lld", (long long)leeway);
    if (ggtok_jinja_len(e, v[0]) - length <= leeway) return v[0];
    if (v[0].type != JINJA_STRING || v[3].type != JINJA_STRING)
        ggtok_jinja_fail(mem, "'truncate' takes a string, not %s", ggtok_jinja_python_type(v[0]));
    jinja_text *t = v[0].as.text, *end = v[3].as.text;
    jinja_text *cut =
        ggtok_jinja_text_cut(mem, t, 0, ggtok_jinja_byte_of(mem, t, (uint64_t)(length - n_end)));
    if (v[2].type == JINJA_ABSENT || !ggtok_jinja_python_truth(e, v[2])) {
        size_t at = ggtok_jinja_text_rfind(mem, cut, ggtok_jinja_text_of(mem, " ", 1, 0), cut->n);
        if (at != SIZE_MAX) cut = ggtok_jinja_text_cut(mem, cut, 0, at);
    }
    return jinja_of_text(ggtok_jinja_text_concat(mem, cut, end));
}

static jinja_value filter_wordcount(jinja_env *e, jinja_value *v) {
    jinja_text *t = ggtok_jinja_str(e, v[0]);
    const uint8_t *p = t->data, *end = p + t->n;
    int64_t n = 0;
    bool inside = false;
    jinja_charge(&e->arena, 1 + t->n / 2);
    while (p < end) {
        uint32_t c = utf8_next(&p);
        bool word =
            c == '_' || (c < 0x80 ? (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z')
                                  : ggtok_jinja_is_word(c));
        n += word && !inside;
        inside = word;
    }
    return jinja_int(n);
}

static jinja_value filter_center(jinja_env *e, jinja_value *v) {
    jinja_value own[3] = {jinja_of_text(ggtok_jinja_str(e, v[0])),
                          v[1].type == JINJA_ABSENT ? jinja_int(80) : v[1], jinja_absent()};
    return ggtok_jinja_py_center(e, own);
}

/* Implements format: the % operator, with the positional arguments as a tuple or the keyword
 * arguments as a dict. */
static jinja_value filter_format(jinja_env *e, jinja_value *v) {
    jinja_arena *mem = &e->arena;
    const jinja_list *args = v[1].as.list;
    jinja_list *by_position = ggtok_jinja_list_new(mem, args->n);
    jinja_dict *by_name = ggtok_jinja_dict_new(mem, 0);
    JINJA_EACH(mem, i, args->n) {
        jinja_value arg = args->data[i];
        if (arg.type != JINJA_KEYWORD)
            ggtok_jinja_list_push(mem, by_position, arg);
        else
            ggtok_jinja_dict_set(mem, by_name, jinja_of_text(arg.as.keyword->name),
                                 arg.as.keyword->value);
    }
    if (by_position->n && by_name->n)
        ggtok_jinja_fail(mem, "can't handle positional and keyword arguments at the same time");
    return ggtok_jinja_percent(e, ggtok_jinja_str(e, v[0]),
                               by_name->n ? jinja_of_dict(by_name) : jinja_of_tuple(by_position));
}

/* Implements attr: returns an attribute, never an item. */
static jinja_value filter_attr(jinja_env *e, jinja_value *v) {
    if (v[1].type != JINJA_STRING) {
        ggtok_jinja_fail(&e->arena, "attribute name must be string, not '%s'",
                         ggtok_jinja_python_type(v[1]));
    }
    jinja_value found = ggtok_jinja_own_attribute(e, v[0], v[1].as.text);
    return found.type == JINJA_ABSENT ? jinja_undefined(v[1].as.text) : found;
}

static jinja_value filter_urlencode(jinja_env *e, jinja_value *v) {
    if (v[0].type == JINJA_DICT || jinja_is_array(v[0])) {
        ggtok_jinja_fail(&e->arena, "'urlencode' of %s is not supported",
                         ggtok_jinja_python_type(v[0]));
    }
    jinja_text *t = ggtok_jinja_str(e, v[0]);
    jinja_builder b = ggtok_jinja_builder_new(&e->arena, t->n);
    b.merge = true;
    jinja_charge(&e->arena, t->n);
    for (size_t i = 0; i < t->n; i++) {
        uint8_t c = t->data[i];
        char text[3] = {'%', "0123456789ABCDEF"[c >> 4], "0123456789ABCDEF"[c & 15]};
        bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
                     (c && strchr("_.-~/", c));
        ggtok_jinja_builder_add(&b, plain ? (char *)&c : text, plain ? 1 : 3, 0);
    }
    return jinja_of_text(ggtok_jinja_builder_end(&b));
}

const jinja_python_row ggtok_jinja_python_filters[] = {
    {"abs", "x", ggtok_jinja_pn_abs, 0},
    {"attr", "obj, name", filter_attr, 0},
    {"batch", "value, linecount, fill_with=", ggtok_jinja_pf_batch, 0},
    {"capitalize", "s", ggtok_jinja_py_capitalize, 0},
    {"center", "value, width=", filter_center, 0},
    {"count", "obj", ggtok_jinja_pf_length, 0},
    {"d", "value, default_value=, boolean=", filter_default, 0},
    {"default", "value, default_value=, boolean=", filter_default, 0},
    {"dictsort", "value, case_sensitive=, by=, reverse=", ggtok_jinja_pf_dictsort, 0},
    {"e", "s", filter_escape, 0},
    {"escape", "s", filter_escape, 0},
    {"filesizeformat", "value, binary=", ggtok_jinja_pn_filesizeformat, 0},
    {"first", "seq", ggtok_jinja_pf_first, 0},
    {"float", "value, default=", ggtok_jinja_pn_float, 0},
    {"forceescape", "value", filter_forceescape, 0},
    {"format", "value, **", filter_format, 0},
    {"groupby", "value, attribute, default=, case_sensitive=", ggtok_jinja_pf_groupby, 0},
    {"indent", "s, width=, first=, blank=", filter_indent, 0},
    {"int", "value, default=, base=", ggtok_jinja_pn_int, 0},
    {"items", "value", ggtok_jinja_pf_items, 0},
    {"join", "value, d=, attribute=", ggtok_jinja_pf_join, 0},
    {"last", "seq", ggtok_jinja_pf_last, 0},
    {"length", "obj", ggtok_jinja_pf_length, 0},
    {"list", "value", ggtok_jinja_pf_list, 0},
    {"lower", "s", ggtok_jinja_py_lower, 0},
    {"map", "value, **", ggtok_jinja_pf_map, 0},
    {"max", "value, case_sensitive=, attribute=", ggtok_jinja_pf_max, 0},
    {"min", "value, case_sensitive=, attribute=", ggtok_jinja_pf_min, 0},
    {"reject", "value, **", ggtok_jinja_pf_reject, 0},
    {"rejectattr", "value, **", ggtok_jinja_pf_rejectattr, 0},
    {"replace", "s, old, new, count=", filter_replace, 0},
    {"reverse", "value", ggtok_jinja_pf_reverse, 0},
    {"round", "value, precision=, method=", ggtok_jinja_pn_round, 0},
    {"safe", "value", filter_safe, 0},
    {"select", "value, **", ggtok_jinja_pf_select, 0},
    {"selectattr", "value, **", ggtok_jinja_pf_selectattr, 0},
    {"slice", "value, slices, fill_with=", ggtok_jinja_pf_slice, 0},
    {"sort", "value, reverse=, case_sensitive=, attribute=", ggtok_jinja_pf_sort, 0},
    {"string", "s", filter_string, 0},
    {"sum", "iterable, attribute=, start=", ggtok_jinja_pf_sum, 0},
    {"title", "s", ggtok_jinja_py_title_filter, 0},
    {"tojson", "x, ensure_ascii=, indent=, separators=, sort_keys=", filter_tojson, 0},
    {"trim", "value, chars=", ggtok_jinja_py_strip, 0},
    {"truncate", "s, length=, killwords=, end=, leeway=", filter_truncate, 0},
    {"unique", "value, case_sensitive=, attribute=", ggtok_jinja_pf_unique, 0},
    {"upper", "s", ggtok_jinja_py_upper, 0},
    {"urlencode", "value", filter_urlencode, 0},
    {"wordcount", "s", filter_wordcount, 0},
};
const size_t ggtok_jinja_python_n_filters =
    sizeof ggtok_jinja_python_filters / sizeof ggtok_jinja_python_filters[0];

/* ---- tests ---- */

#define TYPE_TEST(name, condition) \
    static jinja_value name(jinja_env *e, jinja_value *v) { \
        return (void)e, jinja_bool(condition); \
    }
enum {
    ITERABLE = ON_STRING | ON_ARRAY | ON_DICT | ON_UNDEFINED | 1 << JINJA_RANGE | 1 << JINJA_LAZY,
    SEQUENCE = ON_STRING | ON_ARRAY | ON_DICT | ON_UNDEFINED | 1 << JINJA_RANGE
};

static bool is_object(jinja_value v, jinja_object_kind kind) {
    return v.type == JINJA_OBJECT && v.as.object->kind == kind;
}
TYPE_TEST(is_boolean, v[0].type == JINJA_BOOL)
TYPE_TEST(is_callable, v[0].type == JINJA_FUNCTION || v[0].type == JINJA_UNDEFINED ||
                           is_object(v[0], JINJA_LOOP_CONTEXT) || is_object(v[0], JINJA_JOINER))
TYPE_TEST(is_defined, v[0].type != JINJA_UNDEFINED)
TYPE_TEST(is_undefined, v[0].type == JINJA_UNDEFINED)
TYPE_TEST(is_escaped, v[0].type == JINJA_STRING && v[0].as.text->safe)
TYPE_TEST(is_false, v[0].type == JINJA_BOOL && !v[0].as.truth)
TYPE_TEST(is_true, v[0].type == JINJA_BOOL && v[0].as.truth)
TYPE_TEST(is_float, v[0].type == JINJA_FLOAT)
TYPE_TEST(is_integer, v[0].type == JINJA_INT || v[0].type == JINJA_BIG)
TYPE_TEST(is_number, v[0].type == JINJA_INT || v[0].type == JINJA_BIG || v[0].type == JINJA_FLOAT ||
                         v[0].type == JINJA_BOOL)
TYPE_TEST(is_iterable, ((unsigned)ITERABLE >> v[0].type & 1) || is_object(v[0], JINJA_SELF))
TYPE_TEST(is_sequence, (unsigned)SEQUENCE >> v[0].type & 1)
TYPE_TEST(is_mapping, v[0].type == JINJA_DICT)
TYPE_TEST(is_none, v[0].type == JINJA_NONE)
TYPE_TEST(is_string, v[0].type == JINJA_STRING)
TYPE_TEST(is_in, ggtok_jinja_python_in(e, v[0], v[1]))
TYPE_TEST(is_eq, ggtok_jinja_python_equal(&e->arena, v[0], v[1]))
TYPE_TEST(is_ne, !ggtok_jinja_python_equal(&e->arena, v[0], v[1]))
TYPE_TEST(is_lt, ggtok_jinja_python_less(e, v[0], v[1], JINJA_LT))
TYPE_TEST(is_le, ggtok_jinja_python_less(e, v[0], v[1], JINJA_LE))
TYPE_TEST(is_gt, ggtok_jinja_python_less(e, v[0], v[1], JINJA_GT))
TYPE_TEST(is_ge, ggtok_jinja_python_less(e, v[0], v[1], JINJA_GE))

static bool names_row(jinja_env *e, jinja_value v, const jinja_python_row *rows, size_t n) {
    if (!ggtok_jinja_python_hashable(&e->arena, v)) {
        ggtok_jinja_fail(&e->arena, "unhashable type: '%s'", ggtok_jinja_python_type(v));
    }
    return v.type == JINJA_STRING && ggtok_jinja_python_row_of(rows, n, v.as.text) >= 0;
}
TYPE_TEST(is_filter, names_row(e, v[0], ggtok_jinja_python_filters, ggtok_jinja_python_n_filters))
TYPE_TEST(is_test, names_row(e, v[0], ggtok_jinja_python_tests, ggtok_jinja_python_n_tests))

static jinja_value remainder_is(jinja_env *e, jinja_value a, jinja_value b, int64_t wanted) {
    jinja_value rest = ggtok_jinja_python_binary(e, JINJA_MOD, a, b);
    return jinja_bool(ggtok_jinja_python_equal(&e->arena, rest, jinja_int(wanted)));
}
static jinja_value is_odd(jinja_env *e, jinja_value *v) {
    return remainder_is(e, v[0], jinja_int(2), 1);
}
static jinja_value is_even(jinja_env *e, jinja_value *v) {
    return remainder_is(e, v[0], jinja_int(2), 0);
}
static jinja_value is_divisibleby(jinja_env *e, jinja_value *v) {
    return remainder_is(e, v[0], v[1], 0);
}

static jinja_value is_sameas(jinja_env *e, jinja_value *v) {
    (void)e;
    if (v[0].type != v[1].type) return jinja_bool(false);
    switch (v[0].type) {
    case JINJA_NONE: return jinja_bool(true);
    case JINJA_BOOL: return jinja_bool(v[0].as.truth == v[1].as.truth);
    case JINJA_INT:
        return jinja_bool(v[0].as.i == v[1].as.i && v[0].as.i >= -5 && v[0].as.i <= 256);
    case JINJA_FLOAT: return jinja_bool(v[0].id == v[1].id && v[0].id);
    case JINJA_STRING: { /* CPython has a single object per one-character Latin-1 string */
        const jinja_text *a = v[0].as.text, *b = v[1].as.text;
        bool one = !a->safe && (a->n < 2 || (a->n == 2 && a->data[0] >= 0xC2 && a->data[0] < 0xC4));
        return jinja_bool(a == b ||
                          (one && !b->safe && a->n == b->n && !memcmp(a->data, b->data, a->n)));
    }
    default: return jinja_bool(v[0].as.list == v[1].as.list);
    }
}

const jinja_python_row ggtok_jinja_python_tests[] = {
    {"odd", "value", is_odd, 0},
    {"even", "value", is_even, 0},
    {"divisibleby", "value, num", is_divisibleby, 0},
    {"defined", "value", is_defined, 0},
    {"undefined", "value", is_undefined, 0},
    {"filter", "value", is_filter, 0},
    {"test", "value", is_test, 0},
    {"none", "value", is_none, 0},
    {"boolean", "value", is_boolean, 0},
    {"false", "value", is_false, 0},
    {"true", "value", is_true, 0},
    {"integer", "value", is_integer, 0},
    {"float", "value", is_float, 0},
    {"lower", "value", ggtok_jinja_py_islower, 0},
    {"upper", "value", ggtok_jinja_py_isupper, 0},
    {"string", "value", is_string, 0},
    {"mapping", "value", is_mapping, 0},
    {"number", "value", is_number, 0},
    {"sequence", "value", is_sequence, 0},
    {"iterable", "value", is_iterable, 0},
    {"callable", "value", is_callable, 0},
    {"sameas", "value, other", is_sameas, 0},
    {"escaped", "value", is_escaped, 0},
    {"in", "value, seq", is_in, 0},
    {"==", "a, b, /", is_eq, 0},
    {"eq", "a, b, /", is_eq, 0},
    {"equalto", "a, b, /", is_eq, 0},
    {"!=", "a, b, /", is_ne, 0},
    {"ne", "a, b, /", is_ne, 0},
    {">", "a, b, /", is_gt, 0},
    {"gt", "a, b, /", is_gt, 0},
    {"greaterthan", "a, b, /", is_gt, 0},
    {"ge", "a, b, /", is_ge, 0},
    {">=", "a, b, /", is_ge, 0},
    {"<", "a, b, /", is_lt, 0},
    {"lt", "a, b, /", is_lt, 0},
    {"lessthan", "a, b, /", is_lt, 0},
    {"<=", "a, b, /", is_le, 0},
    {"le", "a, b, /", is_le, 0},
};
const size_t ggtok_jinja_python_n_tests =
    sizeof ggtok_jinja_python_tests / sizeof ggtok_jinja_python_tests[0];

/* ---- globals ---- */

static jinja_value global_range(jinja_env *e, jinja_value *v) {
    jinja_arena *mem = &e->arena;
    bool one = v[1].type == JINJA_ABSENT;
    jinja_range *r = jinja_alloc(mem, sizeof *r);
    *r = (jinja_range){.start = one ? 0 : ggtok_jinja_index(e, v[0]),
                       .stop = ggtok_jinja_index(e, v[one ? 0 : 1])};
    r->step = v[2].type == JINJA_ABSENT ? 1 : ggtok_jinja_index(e, v[2]);
    if (!r->step) ggtok_jinja_fail(mem, "range() arg 3 must not be zero");
    uint64_t n = 0, step = r->step > 0 ? (uint64_t)r->step : 0 - (uint64_t)r->step;
    if (r->step > 0 && r->start < r->stop)
        n = ((uint64_t)r->stop - (uint64_t)r->start - 1) / step + 1;
    if (r->step < 0 && r->start > r->stop)
        n = ((uint64_t)r->start - (uint64_t)r->stop - 1) / step + 1;
    if (n > 100000)
        ggtok_jinja_fail(
            mem, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
    r->n = (int64_t)n;
    return (jinja_value){.type = JINJA_RANGE, .as.range = r};
}

/* Implements dict(mapping or pairs, **kwargs). */
static jinja_value global_dict(jinja_env *e, jinja_value *v) {
    jinja_arena *mem = &e->arena;
    jinja_dict *dict = ggtok_jinja_dict_new(mem, 0);
    const jinja_list *args = v[0].as.list;
    JINJA_EACH(mem, i, args->n) {
        jinja_value arg = args->data[i];
        if (arg.type == JINJA_KEYWORD) {
            ggtok_jinja_dict_set(mem, dict, jinja_of_text(arg.as.keyword->name),
                                 arg.as.keyword->value);
            continue;
        }
        if (i) ggtok_jinja_fail(mem, "dict expected at most 1 argument");
        if (arg.type == JINJA_DICT) {
            JINJA_EACH(mem, k, arg.as.dict->n) {
                ggtok_jinja_dict_set(mem, dict, arg.as.dict->entries[k].key,
                                     arg.as.dict->entries[k].value);
            }
            continue;
        }
        if (arg.type == JINJA_UNDEFINED)
            ggtok_jinja_fail_undefined(e, arg); /* dict() calls the keys() of its argument */
        jinja_list *pairs = ggtok_jinja_items(e, arg);
        JINJA_EACH(mem, k, pairs->n) {
            jinja_list *pair = ggtok_jinja_items(e, pairs->data[k]);
            if (pair->n != 2) ggtok_jinja_fail(mem, "dict() takes pairs, not %u items", pair->n);
            ggtok_jinja_python_key(e, dict, pair->data[0], pair->data[1]);
        }
    }
    return jinja_of_dict(dict);
}

static jinja_value global_namespace(jinja_env *e, jinja_value *v) {
    jinja_value dict = global_dict(e, v);
    JINJA_EACH(&e->arena, i, dict.as.dict->n) {
        jinja_value name = dict.as.dict->entries[i].key;
        if (name.type == JINJA_STRING) ggtok_jinja_check_field(&e->arena, name.as.text);
    }
    dict.type = JINJA_NAMESPACE;
    return dict;
}

static jinja_value new_object(jinja_env *e, jinja_object_kind kind, jinja_list *items,
                              jinja_text *text) {
    jinja_object *object = jinja_alloc(&e->arena, sizeof *object);
    *object = (jinja_object){.kind = kind, .items = items, .text = text};
    return (jinja_value){.type = JINJA_OBJECT, .as.object = object};
}

static jinja_value global_cycler(jinja_env *e, jinja_value *v) {
    if (!v[0].as.list->n) ggtok_jinja_fail(&e->arena, "at least one item has to be provided");
    return new_object(e, JINJA_CYCLER, v[0].as.list, NULL);
}

static jinja_value global_joiner(jinja_env *e, jinja_value *v) {
    jinja_text *by = v[0].type == JINJA_ABSENT
                         ? ggtok_jinja_text_of(&e->arena, ", ", 2, JINJA_FROM_TEMPLATE)
                         : ggtok_jinja_str(e, v[0]);
    return new_object(e, JINJA_JOINER, NULL, by);
}

jinja_value ggtok_jinja_object_call(jinja_env *e, jinja_object *object, jinja_args *args) {
    jinja_arena *mem = &e->arena;
    switch (object->kind) {
    case JINJA_LOOP_CONTEXT:
        if (args->n != 1) ggtok_jinja_fail(mem, "a recursive loop takes one argument");
        return ggtok_jinja_loop_recurse(e, object, args->v[0]);
    case JINJA_JOINER:
        if (object->next++) return jinja_of_text(object->text);
        return jinja_of_text(ggtok_jinja_text_of(mem, "", 0, 0));
    default: ggtok_jinja_fail(mem, "this object is not callable");
    }
}

/* Returns the object on which a method was called. Checks the object's kind, because the table of
 * methods doesn't distinguish kinds. */
static jinja_object *self_of(jinja_env *e, const jinja_value *v, jinja_object_kind kind) {
    if (v[0].as.object->kind != kind) ggtok_jinja_fail(&e->arena, "the value is undefined");
    return v[0].as.object;
}

/* Methods of `loop` and of cycler(): cycle, changed, next, reset. */
static jinja_value loop_cycle(jinja_env *e, jinja_value *v) {
    const jinja_object *loop = self_of(e, v, JINJA_LOOP_CONTEXT);
    const jinja_list *items = v[1].as.list;
    if (!items->n) ggtok_jinja_fail(&e->arena, "no items for cycling given");
    return items->data[loop->index0 % items->n];
}
static jinja_value loop_changed(jinja_env *e, jinja_value *v) {
    jinja_object *loop = self_of(e, v, JINJA_LOOP_CONTEXT);
    jinja_value now = jinja_of_tuple(v[1].as.list);
    bool same =
        loop->last.type != JINJA_ABSENT && ggtok_jinja_python_equal(&e->arena, loop->last, now);
    loop->last = now;
    return jinja_bool(!same);
}
static jinja_value cycler_next(jinja_env *e, jinja_value *v) {
    jinja_object *c = self_of(e, v, JINJA_CYCLER);
    jinja_value now = c->items->data[c->next];
    c->next = (c->next + 1) % c->items->n;
    return now;
}
static jinja_value cycler_reset(jinja_env *e, jinja_value *v) {
    self_of(e, v, JINJA_CYCLER)->next = 0;
    return jinja_none();
}

static jinja_value global_raise(jinja_env *e, jinja_value *v) {
    const jinja_text *t = ggtok_jinja_str(e, v[0]);
    ggtok_jinja_fail(&e->arena, "%.*s", JINJA_SHOWN(t, 480));
}

static jinja_value global_strftime(jinja_env *e, jinja_value *v) {
    if (v[0].type != JINJA_STRING) ggtok_jinja_fail(&e->arena, "strftime_now takes a format");
    return jinja_of_text(
        ggtok_jinja_strftime(&e->arena, &e->options.now, v[0].as.text, JINJA_TRANSFORMERS));
}

const jinja_python_row ggtok_jinja_python_globals[] = {
    {"range", "start, stop=, step=", global_range, 0},
    {"dict", "**", global_dict, 0},
    {"namespace", "**", global_namespace, 0},
    {"cycler", "*", global_cycler, 0},
    {"joiner", "sep=", global_joiner, 0},
    {"raise_exception", "message", global_raise, 0},
    {"strftime_now", "format", global_strftime, 0},
};
const size_t ggtok_jinja_python_n_globals =
    sizeof ggtok_jinja_python_globals / sizeof ggtok_jinja_python_globals[0];

/* ---- methods ---- */

static jinja_value float_is_integer(jinja_env *e, jinja_value *v) {
    (void)e;
    return jinja_bool(v[0].type != JINJA_FLOAT ||
                      (v[0].as.f == floor(v[0].as.f) && v[0].as.f - v[0].as.f == 0));
}

enum { ON_LIST = 1 << JINJA_LIST, ON_OBJECT = 1 << JINJA_OBJECT };

/* Rows without a function are methods that would change the object; the sandbox hides them. */
const jinja_python_row ggtok_jinja_python_methods[] = {
    {"upper", "self", ggtok_jinja_py_upper, ON_STRING},
    {"lower", "self", ggtok_jinja_py_lower, ON_STRING},
    {"casefold", "self", ggtok_jinja_py_casefold, ON_STRING},
    {"capitalize", "self", ggtok_jinja_py_capitalize, ON_STRING},
    {"title", "self", ggtok_jinja_py_title, ON_STRING},
    {"swapcase", "self", ggtok_jinja_py_swapcase, ON_STRING},
    {"strip", "self, chars=, /", ggtok_jinja_py_strip, ON_STRING},
    {"lstrip", "self, chars=, /", ggtok_jinja_py_lstrip, ON_STRING},
    {"rstrip", "self, chars=, /", ggtok_jinja_py_rstrip, ON_STRING},
    {"split", "self, sep=, maxsplit=", ggtok_jinja_py_split, ON_STRING},
    {"rsplit", "self, sep=, maxsplit=", ggtok_jinja_py_rsplit, ON_STRING},
    {"splitlines", "self, keepends=", ggtok_jinja_py_splitlines, ON_STRING},
    {"partition", "self, sep, /", ggtok_jinja_py_partition, ON_STRING},
    {"rpartition", "self, sep, /", ggtok_jinja_py_rpartition, ON_STRING},
    {"replace", "self, old, new, /, count=", ggtok_jinja_py_replace, ON_STRING},
    {"join", "self, iterable, /", ggtok_jinja_py_join, ON_STRING},
    {"find", "self, sub, start=, end=, /", ggtok_jinja_py_find, ON_STRING},
    {"rfind", "self, sub, start=, end=, /", ggtok_jinja_py_rfind, ON_STRING},
    {"index", "self, sub, start=, end=, /", ggtok_jinja_py_index, ON_STRING},
    {"rindex", "self, sub, start=, end=, /", ggtok_jinja_py_rindex, ON_STRING},
    {"count", "self, sub, start=, end=, /", ggtok_jinja_py_count, ON_STRING},
    {"startswith", "self, prefix, start=, end=, /", ggtok_jinja_py_startswith, ON_STRING},
    {"endswith", "self, suffix, start=, end=, /", ggtok_jinja_py_endswith, ON_STRING},
    {"removeprefix", "self, prefix, /", ggtok_jinja_py_removeprefix, ON_STRING},
    {"removesuffix", "self, suffix, /", ggtok_jinja_py_removesuffix, ON_STRING},
    {"center", "self, width, fillchar=, /", ggtok_jinja_py_center, ON_STRING},
    {"ljust", "self, width, fillchar=, /", ggtok_jinja_py_ljust, ON_STRING},
    {"rjust", "self, width, fillchar=, /", ggtok_jinja_py_rjust, ON_STRING},
    {"zfill", "self, width, /", ggtok_jinja_py_zfill, ON_STRING},
    {"isalpha", "self", ggtok_jinja_py_isalpha, ON_STRING},
    {"isdigit", "self", ggtok_jinja_py_isdigit, ON_STRING},
    {"isnumeric", "self", ggtok_jinja_py_isdigit, ON_STRING},
    {"isdecimal", "self", ggtok_jinja_py_isdigit, ON_STRING},
    {"isalnum", "self", ggtok_jinja_py_isalnum, ON_STRING},
    {"isspace", "self", ggtok_jinja_py_isspace, ON_STRING},
    {"islower", "self", ggtok_jinja_py_islower, ON_STRING},
    {"isupper", "self", ggtok_jinja_py_isupper, ON_STRING},
    {"istitle", "self", ggtok_jinja_py_istitle, ON_STRING},
    {"isascii", "self", ggtok_jinja_py_isascii, ON_STRING},
    {"format", "self, **", ggtok_jinja_py_format, ON_STRING},
    {"items", "self", ggtok_jinja_pm_items, ON_DICT},
    {"keys", "self", ggtok_jinja_pm_keys, ON_DICT},
    {"values", "self", ggtok_jinja_pm_values, ON_DICT},
    {"get", "self, key, default=, /", ggtok_jinja_pm_get, ON_DICT},
    {"copy", "self", ggtok_jinja_pm_copy, ON_DICT | ON_LIST},
    {"index", "self, value, start=, stop=, /", ggtok_jinja_pm_list_index, ON_ARRAY},
    {"count", "self, value, /", ggtok_jinja_pm_list_count, ON_ARRAY},
    {"append", "", NULL, ON_LIST},
    {"extend", "", NULL, ON_LIST},
    {"insert", "", NULL, ON_LIST},
    {"pop", "", NULL, ON_LIST | ON_DICT},
    {"remove", "", NULL, ON_LIST},
    {"clear", "", NULL, ON_LIST | ON_DICT},
    {"sort", "", NULL, ON_LIST},
    {"reverse", "", NULL, ON_LIST},
    {"update", "", NULL, ON_DICT},
    {"setdefault", "", NULL, ON_DICT},
    {"popitem", "", NULL, ON_DICT},
    {"is_integer", "self", float_is_integer, ON_FLOAT},
    {"cycle", "self, *", loop_cycle, ON_OBJECT},
    {"changed", "self, *", loop_changed, ON_OBJECT},
    {"next", "self", cycler_next, ON_OBJECT},
    {"reset", "self", cycler_reset, ON_OBJECT},
};
const size_t ggtok_jinja_python_n_methods =
    sizeof ggtok_jinja_python_methods / sizeof ggtok_jinja_python_methods[0];
