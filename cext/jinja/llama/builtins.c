/* llama.cpp's table of builtins, their arguments, and conversions of values. */
#include <stdlib.h>

#include "jinja/llama/builtins.h"
#include "jinja/llama/scope.h"

enum {
    ON_NUMBER = ON_INT | ON_FLOAT,
    ON_SCALAR = ON_NUMBER | ON_BOOL,
    ON_NOTHING = ON_NONE | ON_UNDEFINED
};

/* Sorted by name. Rows with the same name are for different types. */
const jinja_llama_row ggtok_jinja_llama_builtins[] = {
    {"abs", ON_NUMBER, ggtok_jinja_number_abs, NULL},
    {"append", ON_ARRAY, ggtok_jinja_list_append, NULL},
    {"capitalize", ON_STRING, ggtok_jinja_text_capitalize, NULL},
    {"capitalize", ON_UNDEFINED, ggtok_jinja_llama_empty_text, NULL},
    {"default", ON_SCALAR | ON_STRING | ON_ARRAY | ON_NOTHING, ggtok_jinja_llama_default, NULL},
    {"dictsort", ON_DICT, ggtok_jinja_dict_dictsort, NULL},
    {"endswith", ON_STRING, ggtok_jinja_text_endswith, NULL},
    {"first", ON_ARRAY, ggtok_jinja_list_first, NULL},
    {"first", ON_UNDEFINED, ggtok_jinja_llama_undefined_value, NULL},
    {"float", ON_SCALAR, ggtok_jinja_number_float, NULL},
    {"float", ON_STRING, ggtok_jinja_text_float, NULL},
    {"format", ON_STRING, ggtok_jinja_text_format, NULL},
    {"get", ON_DICT, ggtok_jinja_dict_get_method, NULL},
    {"indent", ON_STRING, ggtok_jinja_text_indent, NULL},
    {"int", ON_SCALAR, ggtok_jinja_number_int, NULL},
    {"int", ON_STRING, ggtok_jinja_text_int, NULL},
    {"items", ON_DICT, ggtok_jinja_dict_items, NULL},
    {"items", ON_NOTHING, ggtok_jinja_llama_empty_list, NULL},
    {"join", ON_ARRAY, ggtok_jinja_list_join, NULL},
    {"join", ON_STRING, ggtok_jinja_unsupported, "joining the characters of a String"},
    {"join", ON_DICT, ggtok_jinja_unsupported, "joining the keys of an Object"},
    {"join", ON_UNDEFINED, ggtok_jinja_llama_empty_text, NULL},
    {"keys", ON_DICT, ggtok_jinja_dict_keys, NULL},
    {"last", ON_ARRAY, ggtok_jinja_list_last, NULL},
    {"last", ON_UNDEFINED, ggtok_jinja_llama_undefined_value, NULL},
    {"length", ON_STRING, ggtok_jinja_text_length, NULL},
    {"length", ON_ARRAY, ggtok_jinja_list_length, NULL},
    {"length", ON_DICT, ggtok_jinja_dict_length, NULL},
    {"length", ON_UNDEFINED, ggtok_jinja_llama_zero, NULL},
    {"list", ON_ARRAY, ggtok_jinja_list_list, NULL},
    {"list", ON_UNDEFINED, ggtok_jinja_llama_empty_list, NULL},
    {"lower", ON_STRING, ggtok_jinja_text_lower, NULL},
    {"lower", ON_UNDEFINED, ggtok_jinja_llama_empty_text, NULL},
    {"lstrip", ON_STRING, ggtok_jinja_text_lstrip, NULL},
    {"map", ON_ARRAY, ggtok_jinja_list_map, NULL},
    {"map", ON_NOTHING, ggtok_jinja_llama_empty_list, NULL},
    {"max", ON_ARRAY, ggtok_jinja_list_max, NULL},
    {"max", ON_UNDEFINED, ggtok_jinja_llama_undefined_value, NULL},
    {"min", ON_ARRAY, ggtok_jinja_list_min, NULL},
    {"min", ON_UNDEFINED, ggtok_jinja_llama_undefined_value, NULL},
    {"pop", ON_ARRAY, ggtok_jinja_list_pop, NULL},
    {"reject", ON_ARRAY, ggtok_jinja_list_reject, NULL},
    {"reject", ON_NOTHING, ggtok_jinja_llama_empty_list, NULL},
    {"rejectattr", ON_ARRAY, ggtok_jinja_list_reject, NULL},
    {"rejectattr", ON_NOTHING, ggtok_jinja_llama_empty_list, NULL},
    {"replace", ON_STRING, ggtok_jinja_text_replace, NULL},
    {"replace", ON_UNDEFINED, ggtok_jinja_llama_empty_text, NULL},
    {"reverse", ON_ARRAY, ggtok_jinja_list_reverse, NULL},
    {"reverse", ON_UNDEFINED, ggtok_jinja_llama_empty_list, NULL},
    {"rsplit", ON_STRING, ggtok_jinja_text_rsplit, NULL},
    {"rstrip", ON_STRING, ggtok_jinja_text_rstrip, NULL},
    {"safe", ON_NUMBER, ggtok_jinja_llama_tojson, NULL},
    {"safe", ON_STRING, ggtok_jinja_text_safe, NULL},
    {"safe", ON_BOOL, ggtok_jinja_bool_string, NULL},
    {"safe", ON_NONE, ggtok_jinja_none_string, NULL},
    {"safe", ON_UNDEFINED, ggtok_jinja_llama_empty_text, NULL},
    {"select", ON_ARRAY, ggtok_jinja_list_select, NULL},
    {"select", ON_NOTHING, ggtok_jinja_llama_empty_list, NULL},
    {"selectattr", ON_ARRAY, ggtok_jinja_list_select, NULL},
    {"selectattr", ON_NOTHING, ggtok_jinja_llama_empty_list, NULL},
    {"slice", ON_STRING, ggtok_jinja_text_slice, NULL},
    {"slice", ON_ARRAY, ggtok_jinja_list_slice, NULL},
    {"sort", ON_ARRAY, ggtok_jinja_list_sort, NULL},
    {"sort", ON_UNDEFINED, ggtok_jinja_llama_empty_list, NULL},
    {"split", ON_STRING, ggtok_jinja_text_split, NULL},
    {"startswith", ON_STRING, ggtok_jinja_text_startswith, NULL},
    {"string", ON_NUMBER, ggtok_jinja_llama_tojson, NULL},
    {"string", ON_STRING, ggtok_jinja_text_string, NULL},
    {"string", ON_BOOL, ggtok_jinja_bool_string, NULL},
    {"string", ON_ARRAY | ON_DICT, ggtok_jinja_container_string, NULL},
    {"string", ON_NONE, ggtok_jinja_none_string, NULL},
    {"string", ON_UNDEFINED, ggtok_jinja_llama_empty_text, NULL},
    {"strip", ON_STRING, ggtok_jinja_text_strip, NULL},
    {"strip", ON_UNDEFINED, ggtok_jinja_llama_empty_text, NULL},
    {"sum", ON_UNDEFINED, ggtok_jinja_llama_zero, NULL},
    {"title", ON_STRING, ggtok_jinja_text_title, NULL},
    {"title", ON_UNDEFINED, ggtok_jinja_llama_empty_text, NULL},
    {"tojson", ON_SCALAR | ON_STRING | ON_ARRAY | ON_DICT | ON_NONE, ggtok_jinja_llama_tojson,
     NULL},
    {"truncate", ON_UNDEFINED, ggtok_jinja_llama_empty_text, NULL},
    {"unique", ON_ARRAY, ggtok_jinja_unsupported, "the filter 'unique'"},
    {"unique", ON_NOTHING, ggtok_jinja_llama_empty_list, NULL},
    {"upper", ON_STRING, ggtok_jinja_text_upper, NULL},
    {"upper", ON_UNDEFINED, ggtok_jinja_llama_empty_text, NULL},
    {"values", ON_DICT, ggtok_jinja_dict_values, NULL},
    {"wordcount", ON_UNDEFINED, ggtok_jinja_llama_zero, NULL},
};
const size_t ggtok_jinja_llama_n_builtins =
    sizeof ggtok_jinja_llama_builtins / sizeof ggtok_jinja_llama_builtins[0];

enum { LONGEST_NAME = 64 }; /* bytes; at least the length of the longest name of a builtin */

/* Returns the index of the first row with this name, or -1. */
static int32_t first_row(const jinja_llama_row *rows, size_t n, const char *name, size_t n_name) {
    size_t lo = 0, hi = n;
    if (n_name > LONGEST_NAME || memchr(name, 0, n_name)) return -1;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = strncmp(rows[mid].name, name, n_name);
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    bool same = lo < n && strlen(rows[lo].name) == n_name && !memcmp(rows[lo].name, name, n_name);
    return same ? (int32_t)lo : -1;
}

static const char *alias(const char *name, size_t *n) {
    static const struct {
        char from[8], to[8];
    } aliases[] = {{"count", "length"}, {"d", "default"}, {"e", "escape"}, {"trim", "strip"}};
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (strlen(aliases[i].from) == *n && !memcmp(aliases[i].from, name, *n)) {
            *n = strlen(aliases[i].to);
            return aliases[i].to;
        }
    }
    return name;
}

static int32_t builtin_row(const char *name, size_t n) {
    return first_row(ggtok_jinja_llama_builtins, ggtok_jinja_llama_n_builtins, name, n);
}

int32_t ggtok_jinja_llama_global(const char *prefix, const jinja_text *name) {
    char text[LONGEST_NAME];
    size_t n = strlen(prefix);
    if (n + name->n > sizeof text) return -1;
    memcpy(text, prefix, n);
    memcpy(text + n, name->data, name->n);
    return first_row(ggtok_jinja_llama_globals, ggtok_jinja_llama_n_globals, text, n + name->n);
}

void ggtok_jinja_llama_find_builtins(jinja_symbol *symbol) {
    const char *name = (const char *)symbol->name->data;
    size_t n = symbol->name->n;
    symbol->member = builtin_row(name, n);
    name = alias(name, &n);
    symbol->filter = builtin_row(name, n);
    symbol->global = ggtok_jinja_llama_global("", symbol->name);
    symbol->test = ggtok_jinja_llama_global("test_is_", symbol->name);
}

/* Returns the row for the value's type, or NULL if there is none. `row` is the index of the first
 * row with the same name. */
static const jinja_llama_row *row_for(int32_t row, jinja_value v) {
    if (row < 0) return NULL;
    const jinja_llama_row *first = &ggtok_jinja_llama_builtins[row], *r = first;
    const jinja_llama_row *end = ggtok_jinja_llama_builtins + ggtok_jinja_llama_n_builtins;
    for (; r < end && (r == first || !strcmp(r->name, first->name)); r++) {
        if (r->types >> v.type & 1) return r;
    }
    return NULL;
}

const jinja_llama_row *ggtok_jinja_llama_member(const jinja_template *t, uint32_t sym,
                                                jinja_value v) {
    return row_for(t->symbols[sym].member, v);
}

const jinja_llama_row *ggtok_jinja_llama_filter_row(const jinja_template *t, uint32_t sym,
                                                    jinja_value v) {
    return row_for(t->symbols[sym].filter, v);
}

const jinja_llama_row *ggtok_jinja_llama_find_text(const jinja_text *name, jinja_value v) {
    return row_for(builtin_row((const char *)name->data, name->n), v);
}

/* ---- arguments ---- */

void ggtok_jinja_args_count(jinja_env *e, const jinja_args *a, uint32_t least, uint32_t most) {
    if (a->n < least || a->n > most) {
        ggtok_jinja_fail(&e->arena, "'%s' takes %u to %u arguments, not %u", a->name, least, most,
                         a->n);
    }
}

jinja_value ggtok_jinja_args_at(jinja_env *e, const jinja_args *a, uint32_t i) {
    if (i >= a->n) {
        ggtok_jinja_fail(&e->arena, "'%s' takes at least %u arguments, not %u", a->name, i + 1,
                         a->n);
    }
    return a->v[i];
}

jinja_value ggtok_jinja_args_or(const jinja_args *a, uint32_t i, jinja_value other) {
    return i < a->n ? a->v[i] : other;
}

static jinja_value named(jinja_env *e, const jinja_args *a, const char *name, size_t n,
                         uint32_t i) {
    jinja_value v = ggtok_jinja_keyword_of(e, a, name, n, jinja_undefined(NULL));
    bool positional = v.type == JINJA_UNDEFINED && i < a->n && a->v[i].type != JINJA_KEYWORD;
    return positional ? a->v[i] : v;
}

jinja_value ggtok_jinja_args_named(jinja_env *e, const jinja_args *a, const char *name,
                                   uint32_t i) {
    return named(e, a, name, strlen(name), i);
}

jinja_value ggtok_jinja_args_named_text(jinja_env *e, const jinja_args *a, const jinja_text *name,
                                        uint32_t i) {
    return named(e, a, (const char *)name->data, name->n, i);
}

void ggtok_jinja_args_type(jinja_env *e, const jinja_args *a, uint32_t i, unsigned types) {
    jinja_value v = ggtok_jinja_args_at(e, a, i);
    if (!(types >> v.type & 1)) {
        ggtok_jinja_fail(&e->arena, "'%s' doesn't take %s as argument %u", a->name,
                         ggtok_jinja_type_name(v), i + 1);
    }
}

jinja_value ggtok_jinja_unsupported(jinja_env *e, jinja_args *a) {
    ggtok_jinja_fail(&e->arena, "llama.cpp's dialect doesn't support '%s'", a->name);
}

/* ---- values ---- */

const char *ggtok_jinja_type_name(jinja_value v) {
    static const char *const names[] = {"Undefined", "None",     "Boolean", "Integer", "Float",
                                        "String",    "Array",    "Tuple",   "Object",  "Object",
                                        "Function",  "KwArg",    "Object",  "Array",   "Generator",
                                        "Object",    "Undefined"};
    return names[v.type];
}

bool ggtok_jinja_llama_truth(jinja_env *e, jinja_value v) {
    switch (v.type) {
    case JINJA_UNDEFINED:
    case JINJA_NONE: return false;
    case JINJA_BOOL: return v.as.truth;
    case JINJA_INT: return v.as.i != 0;
    case JINJA_FLOAT: return v.as.f != 0;
    case JINJA_STRING: return v.as.text->n != 0;
    case JINJA_LIST:
    case JINJA_TUPLE: return v.as.list->n != 0;
    case JINJA_DICT: return v.as.dict->n != 0;
    case JINJA_LOOP: return true;
    default: ggtok_jinja_fail(&e->arena, "%s is neither true nor false", ggtok_jinja_type_name(v));
    }
}

int64_t ggtok_jinja_llama_int(jinja_env *e, jinja_value v) {
    switch (v.type) {
    case JINJA_INT: return v.as.i;
    case JINJA_BOOL: return v.as.truth;
    case JINJA_FLOAT: return v.as.f - v.as.f == 0 ? ggtok_jinja_float_as_int(v.as.f) : 0;
    default: ggtok_jinja_fail(&e->arena, "%s is not an integer", ggtok_jinja_type_name(v));
    }
}

double ggtok_jinja_llama_float(jinja_env *e, jinja_value v) {
    if (v.type == JINJA_INT) return ggtok_jinja_int_as_float(v.as.i);
    if (v.type == JINJA_FLOAT) return v.as.f;
    ggtok_jinja_fail(&e->arena, "%s is not a float", ggtok_jinja_type_name(v));
}

static void check_key(jinja_env *e, jinja_value key) {
    if (!ggtok_jinja_immutable(key) || !ggtok_jinja_hashable(&e->arena, key)) {
        ggtok_jinja_fail(&e->arena, "%s can't be the key of an Object", ggtok_jinja_type_name(key));
    }
}

jinja_value *ggtok_jinja_llama_at(jinja_env *e, jinja_value dict, jinja_value key) {
    if (dict.type == JINJA_LOOP) ggtok_jinja_loop_fill(&e->arena, dict.as.dict);
    if (key.type != JINJA_STRING) check_key(e, key);
    return ggtok_jinja_dict_find(&e->arena, dict.as.dict, key);
}

void ggtok_jinja_llama_insert(jinja_env *e, jinja_dict *dict, jinja_value key, jinja_value value) {
    check_key(e, key);
    ggtok_jinja_dict_set(&e->arena, dict, key, value);
}

bool ggtok_jinja_llama_in(jinja_env *e, jinja_value needle, jinja_value haystack) {
    jinja_arena *mem = &e->arena;
    switch (haystack.type) {
    case JINJA_UNDEFINED: return false;
    case JINJA_LIST:
    case JINJA_TUPLE:
        for (uint32_t i = 0; i < haystack.as.list->n; i++) {
            if (ggtok_jinja_equal(mem, needle, haystack.as.list->data[i], JINJA_LLAMA_CPP))
                return true;
        }
        return false;
    case JINJA_STRING:
        if (needle.type != JINJA_STRING) {
            ggtok_jinja_fail(mem, "'in' with a String takes a String, not %s",
                             ggtok_jinja_type_name(needle));
        }
        return ggtok_jinja_text_find(mem, haystack.as.text, needle.as.text, 0) != SIZE_MAX;
    case JINJA_DICT:
    case JINJA_LOOP: return ggtok_jinja_llama_at(e, haystack, needle) != NULL;
    default: ggtok_jinja_fail(mem, "'in' can't search %s", ggtok_jinja_type_name(haystack));
    }
}

bool ggtok_jinja_llama_compare(jinja_env *e, jinja_value a, jinja_value b, jinja_operator op) {
    bool numbers = (a.type == JINJA_INT || a.type == JINJA_FLOAT) &&
                   (b.type == JINJA_INT || b.type == JINJA_FLOAT);
    unsigned texts = ON_NUMBER | ON_STRING;
    jinja_charge(&e->arena, 1);
    if (numbers) {
        double x = ggtok_jinja_llama_float(e, a), y = ggtok_jinja_llama_float(e, b);
        switch (op) {
        case JINJA_EQ: return x == y;
        case JINJA_NE: return x != y;
        case JINJA_LT: return x < y;
        case JINJA_GT: return x > y;
        default: return x >= y;
        }
    }
    if ((texts >> a.type & 1) && (texts >> b.type & 1)) {
        jinja_text *x = ggtok_jinja_llama_text(e, a), *y = ggtok_jinja_llama_text(e, b);
        int order = ggtok_jinja_text_compare(&e->arena, x, y);
        switch (op) {
        case JINJA_EQ: return order == 0;
        case JINJA_NE: return order != 0;
        case JINJA_LT: return order < 0;
        case JINJA_GT: return order > 0;
        default: return order >= 0;
        }
    }
    if (a.type == JINJA_BOOL && b.type == JINJA_BOOL) {
        if (op == JINJA_EQ) return a.as.truth == b.as.truth;
        if (op == JINJA_NE) return a.as.truth != b.as.truth;
        ggtok_jinja_fail(&e->arena, "booleans have no order");
    }
    return false;
}

void ggtok_jinja_note_deep(jinja_env *e, jinja_value v) {
    jinja_charge(&e->arena, 1);
    jinja_note_value(e, v, JINJA_NOTE_USED);
    jinja_enter(&e->arena);
    if (jinja_is_array(v)) {
        for (uint32_t i = 0; i < v.as.list->n; i++) ggtok_jinja_note_deep(e, v.as.list->data[i]);
    } else if (v.type == JINJA_DICT) {
        for (uint32_t i = 0; i < v.as.dict->n; i++) {
            ggtok_jinja_note_deep(e, v.as.dict->entries[i].key);
            ggtok_jinja_note_deep(e, v.as.dict->entries[i].value);
        }
    }
    jinja_leave(&e->arena);
}
