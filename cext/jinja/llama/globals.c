/* llama.cpp's global functions and tests. A test can be called as a function named test_is_NAME. */
#include "jinja/llama/builtins.h"

/* ---- functions ---- */

static jinja_value raise_exception(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_type(e, a, 0, ON_STRING);
    const jinja_text *t = a->v[0].as.text;
    ggtok_jinja_fail(&e->arena, "%.*s", JINJA_SHOWN(t, 480));
}

/* Implements dict() and namespace(). */
static jinja_value to_dict(jinja_env *e, jinja_args *a) {
    jinja_arena *mem = &e->arena;
    jinja_dict *out = ggtok_jinja_dict_new(mem, 0);
    jinja_value from = ggtok_jinja_args_or(a, 0, jinja_undefined(NULL));
    bool is_source = true;
    if (jinja_is_array(from)) {
        JINJA_EACH(mem, i, from.as.list->n) {
            jinja_value pair = from.as.list->data[i];
            if (!jinja_is_array(pair) || pair.as.list->n != 2) {
                ggtok_jinja_fail(mem, "'%s' of an Array takes pairs, not %s", a->name,
                                 ggtok_jinja_type_name(pair));
            }
            ggtok_jinja_llama_insert(e, out, pair.as.list->data[0], pair.as.list->data[1]);
        }
    } else if (from.type == JINJA_DICT || from.type == JINJA_LOOP) {
        if (from.type == JINJA_LOOP) ggtok_jinja_loop_fill(mem, from.as.dict);
        JINJA_EACH(mem, i, from.as.dict->n) {
            ggtok_jinja_llama_insert(e, out, from.as.dict->entries[i].key,
                                     from.as.dict->entries[i].value);
        }
    } else {
        is_source = false;
    }
    for (uint32_t i = 0; i < a->n; i++, is_source = false) {
        if (a->v[i].type == JINJA_KEYWORD) {
            const jinja_keyword *k = a->v[i].as.keyword;
            ggtok_jinja_dict_set(mem, out, jinja_of_text(k->name), k->value);
        } else if (!is_source) {
            ggtok_jinja_fail(mem, "'%s' takes keyword arguments, pairs or an Object, not %s",
                             a->name, ggtok_jinja_type_name(a->v[i]));
        }
    }
    return jinja_of_dict(out);
}

static jinja_value strftime_now(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_type(e, a, 0, ON_STRING);
    jinja_text *text =
        ggtok_jinja_strftime(&e->arena, &e->options.now, a->v[0].as.text, JINJA_LLAMA_CPP);
    if (!text)
        ggtok_jinja_fail(&e->arena, "'strftime_now' takes a format that makes 1 to 99 bytes");
    return jinja_new_id(e, jinja_of_text(text));
}

static jinja_value range(jinja_env *e, jinja_args *a) {
    jinja_arena *mem = &e->arena;
    ggtok_jinja_args_count(e, a, 1, 3);
    ggtok_jinja_args_type(e, a, 0, ON_INT);
    int64_t start = a->n == 1 ? 0 : ggtok_jinja_llama_int(e, a->v[0]);
    int64_t stop = ggtok_jinja_llama_int(e, a->v[a->n == 1 ? 0 : 1]);
    int64_t step = a->n == 3 ? ggtok_jinja_llama_int(e, a->v[2]) : 1;
    if (!step) ggtok_jinja_fail(mem, "the step of 'range' can't be 0");
    uint64_t n = 0;
    if (step > 0 && start < stop) n = ((uint64_t)stop - (uint64_t)start - 1) / (uint64_t)step + 1;
    if (step < 0 && start > stop) {
        n = ((uint64_t)start - (uint64_t)stop - 1) / (0 - (uint64_t)step) + 1;
    }
    if (n > UINT32_MAX / 2) ggtok_jinja_fail(mem, "'range' has too many numbers");
    jinja_charge(mem, n);
    jinja_list *list = ggtok_jinja_list_new(mem, n);
    for (uint64_t i = 0; i < n; i++) {
        ggtok_jinja_list_push(mem, list,
                              jinja_int((int64_t)((uint64_t)start + i * (uint64_t)step)));
    }
    return jinja_of_list(list);
}

jinja_value ggtok_jinja_llama_tojson(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_count(e, a, 1, 5);
    jinja_value ascii = ggtok_jinja_args_named(e, a, "ensure_ascii", 1),
                indent = ggtok_jinja_args_named(e, a, "indent", 2),
                separators = ggtok_jinja_args_named(e, a, "separators", 3),
                sort = ggtok_jinja_args_named(e, a, "sort_keys", 4);
    if (e->notes) ggtok_jinja_note_deep(e, a->v[0]);
    if (ggtok_jinja_llama_truth(e, sort)) {
        ggtok_jinja_fail(&e->arena,
                         "llama.cpp's dialect doesn't support 'tojson' with sorted keys");
    }
    bool escape = ggtok_jinja_llama_truth(e, ascii);
    const jinja_list *own = jinja_is_array(separators) ? separators.as.list : NULL;
    const jinja_text *item = own && own->n > 0 ? ggtok_jinja_llama_text(e, own->data[0]) : NULL;
    const jinja_text *key = own && own->n > 1 ? ggtok_jinja_llama_text(e, own->data[1]) : NULL;
    int64_t width = indent.type == JINJA_INT ? (int32_t)indent.as.i : -1;
    jinja_text *json = ggtok_jinja_llama_json(e, a->v[0], width, item, key);
    if (escape) json = ggtok_jinja_llama_json_ascii(e, json);
    return jinja_new_id(e, jinja_of_text(json));
}

/* ---- tests ---- */

/* Defines a test that depends only on the value's type. */
#define TYPE_TEST(name, types) \
    static jinja_value name(jinja_env *e, jinja_args *a) { \
        return jinja_bool((unsigned)(types) >> ggtok_jinja_args_at(e, a, 0).type & 1); \
    }

enum { ON_LOOP = 1 << JINJA_LOOP, ON_ANY_ITEMS = ON_DICT | ON_LOOP | ON_ARRAY | ON_STRING };

TYPE_TEST(is_boolean, ON_BOOL)
TYPE_TEST(is_callable, 1 << JINJA_FUNCTION)
TYPE_TEST(is_string, ON_STRING)
TYPE_TEST(is_integer, ON_INT)
TYPE_TEST(is_float, ON_FLOAT)
TYPE_TEST(is_number, ON_INT | ON_FLOAT)
TYPE_TEST(is_iterable, ON_ANY_ITEMS | ON_UNDEFINED)
TYPE_TEST(is_mapping, ON_DICT | ON_LOOP)
TYPE_TEST(is_none, ON_NONE)
TYPE_TEST(is_undefined, ON_UNDEFINED)
TYPE_TEST(is_defined, ~(unsigned)ON_UNDEFINED)

static jinja_value is_odd(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_type(e, a, 0, ON_INT);
    return jinja_bool(a->v[0].as.i % 2 != 0);
}

static jinja_value is_even(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_type(e, a, 0, ON_INT);
    return jinja_bool(a->v[0].as.i % 2 == 0);
}

static jinja_value is_false(jinja_env *e, jinja_args *a) {
    jinja_value v = ggtok_jinja_args_at(e, a, 0);
    return jinja_bool(v.type == JINJA_BOOL && !v.as.truth);
}

static jinja_value is_true(jinja_env *e, jinja_args *a) {
    jinja_value v = ggtok_jinja_args_at(e, a, 0);
    return jinja_bool(v.type == JINJA_BOOL && v.as.truth);
}

/* Tests divisibility. llama.cpp crashes if the divisor is 0 (an error here), or if INT64_MIN is
 * divided by -1 (true here). */
static jinja_value is_divisibleby(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_type(e, a, 0, ON_INT);
    ggtok_jinja_args_type(e, a, 1, ON_INT);
    int64_t by = a->v[1].as.i;
    if (!by) ggtok_jinja_fail(&e->arena, "'divisibleby' can't divide by 0");
    return jinja_bool(by == -1 || a->v[0].as.i % by == 0);
}

static jinja_value no_byte_in(jinja_env *e, jinja_args *a, uint8_t from, uint8_t to) {
    ggtok_jinja_args_type(e, a, 0, ON_STRING);
    const jinja_text *t = a->v[0].as.text;
    jinja_charge(&e->arena, 1 + t->n / 8);
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->data[i] >= from && t->data[i] <= to) return jinja_bool(false);
    }
    return jinja_bool(true);
}

static jinja_value is_lower(jinja_env *e, jinja_args *a) {
    return no_byte_in(e, a, 'A', 'Z');
}
static jinja_value is_upper(jinja_env *e, jinja_args *a) {
    return no_byte_in(e, a, 'a', 'z');
}

static jinja_value compare(jinja_env *e, jinja_args *a, jinja_operator op) {
    ggtok_jinja_args_count(e, a, 2, 2);
    return jinja_bool(ggtok_jinja_llama_compare(e, a->v[0], a->v[1], op));
}

static jinja_value is_eq(jinja_env *e, jinja_args *a) {
    return compare(e, a, JINJA_EQ);
}
static jinja_value is_ne(jinja_env *e, jinja_args *a) {
    return compare(e, a, JINJA_NE);
}
static jinja_value is_lt(jinja_env *e, jinja_args *a) {
    return compare(e, a, JINJA_LT);
}
static jinja_value is_gt(jinja_env *e, jinja_args *a) {
    return compare(e, a, JINJA_GT);
}
static jinja_value is_ge(jinja_env *e, jinja_args *a) {
    return compare(e, a, JINJA_GE);
}

static jinja_value is_in(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_count(e, a, 2, 999);
    return jinja_bool(ggtok_jinja_llama_in(e, a->v[0], a->v[1]));
}

static jinja_value is_test(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_type(e, a, 0, ON_STRING);
    return jinja_bool(ggtok_jinja_llama_global("test_is_", a->v[0].as.text) >= 0);
}

/* Whether llama.cpp considers both values to be the same object. */
static jinja_value is_sameas(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_count(e, a, 2, 999);
    jinja_value x = a->v[0], y = a->v[1];
    if (x.type != y.type || x.type == JINJA_UNDEFINED) return jinja_bool(false);
    switch (x.type) {
    case JINJA_NONE: return jinja_bool(true);
    case JINJA_BOOL: return jinja_bool(x.as.truth == y.as.truth);
    case JINJA_INT: return jinja_bool(x.as.i == y.as.i && x.as.i >= -5 && x.as.i <= 256);
    case JINJA_LIST:
    case JINJA_TUPLE: return jinja_bool(x.as.list == y.as.list);
    case JINJA_DICT:
    case JINJA_LOOP: return jinja_bool(x.as.dict == y.as.dict);
    case JINJA_KEYWORD: return jinja_bool(x.as.keyword == y.as.keyword);
    case JINJA_FLOAT: return jinja_bool(x.id == y.id && x.id);
    default: return jinja_bool(x.as.text == y.as.text && x.id == y.id);
    }
}

/* Sorted by name. */
const jinja_llama_row ggtok_jinja_llama_globals[] = {
    {"dict", 0, to_dict, NULL},
    {"namespace", 0, to_dict, NULL},
    {"raise_exception", 0, raise_exception, NULL},
    {"range", 0, range, NULL},
    {"strftime_now", 0, strftime_now, NULL},
    {"test_is_boolean", 0, is_boolean, NULL},
    {"test_is_callable", 0, is_callable, NULL},
    {"test_is_defined", 0, is_defined, NULL},
    {"test_is_divisibleby", 0, is_divisibleby, NULL},
    {"test_is_eq", 0, is_eq, NULL},
    {"test_is_equalto", 0, is_eq, NULL},
    {"test_is_escaped", 0, ggtok_jinja_unsupported, "the test 'escaped'"},
    {"test_is_even", 0, is_even, NULL},
    {"test_is_false", 0, is_false, NULL},
    {"test_is_filter", 0, ggtok_jinja_unsupported, "the test 'filter'"},
    {"test_is_float", 0, is_float, NULL},
    {"test_is_ge", 0, is_ge, NULL},
    {"test_is_greaterthan", 0, is_gt, NULL},
    {"test_is_gt", 0, is_gt, NULL},
    {"test_is_in", 0, is_in, NULL},
    {"test_is_integer", 0, is_integer, NULL},
    {"test_is_iterable", 0, is_iterable, NULL},
    {"test_is_lessthan", 0, is_lt, NULL},
    {"test_is_lower", 0, is_lower, NULL},
    {"test_is_lt", 0, is_lt, NULL},
    {"test_is_mapping", 0, is_mapping, NULL},
    {"test_is_ne", 0, is_ne, NULL},
    {"test_is_none", 0, is_none, NULL},
    {"test_is_number", 0, is_number, NULL},
    {"test_is_odd", 0, is_odd, NULL},
    {"test_is_sameas", 0, is_sameas, NULL},
    {"test_is_sequence", 0, is_iterable, NULL},
    {"test_is_string", 0, is_string, NULL},
    {"test_is_test", 0, is_test, NULL},
    {"test_is_true", 0, is_true, NULL},
    {"test_is_undefined", 0, is_undefined, NULL},
    {"test_is_upper", 0, is_upper, NULL},
    {"tojson", 0, ggtok_jinja_llama_tojson, NULL},
};
const size_t ggtok_jinja_llama_n_globals =
    sizeof ggtok_jinja_llama_globals / sizeof ggtok_jinja_llama_globals[0];
