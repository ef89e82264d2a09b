/* llama.cpp's filters and methods of arrays and objects. */
#include "jinja/core/number.h"
#include "jinja/llama/builtins.h"

static jinja_list *list_at(jinja_env *e, const jinja_args *a, uint32_t i) {
    ggtok_jinja_args_type(e, a, i, ON_ARRAY);
    return a->v[i].as.list;
}

static jinja_dict *dict_at(jinja_env *e, const jinja_args *a, uint32_t i) {
    ggtok_jinja_args_type(e, a, i, ON_DICT);
    return a->v[i].as.dict;
}

/* Returns the list as a value of the same type as v. */
static jinja_value as_type_of(jinja_value v, jinja_list *list) {
    return v.type == JINJA_TUPLE ? jinja_of_tuple(list) : jinja_of_list(list);
}

static jinja_list *copy(jinja_env *e, const jinja_list *list) {
    jinja_charge(&e->arena, 1 + list->n / 4);
    jinja_list *own = ggtok_jinja_list_new(&e->arena, list->n);
    if (list->n) memcpy(own->data, list->data, list->n * sizeof *own->data);
    own->n = list->n;
    return own;
}

/* ---- slices ---- */

jinja_slice ggtok_jinja_llama_slice(jinja_env *e, const jinja_args *a, int64_t n) {
    ggtok_jinja_args_count(e, a, 1, 4);
    ggtok_jinja_args_type(e, a, 1, ON_INT);
    jinja_value first = a->v[1], end = ggtok_jinja_args_or(a, 2, jinja_undefined(NULL));
    int64_t start, stop, step = 1;
    if (a->n == 2) {
        start = ggtok_jinja_llama_int(e, first);
        stop = ggtok_jinja_llama_int(e, end);
    } else {
        start = ggtok_jinja_llama_int(e, first);
        stop = ggtok_jinja_llama_int(e, end);
        step = ggtok_jinja_llama_int(e, ggtok_jinja_args_or(a, 3, jinja_undefined(NULL)));
    }
    if (!step) ggtok_jinja_fail(&e->arena, "a slice can't have a step of 0");
    int64_t top = step > 0 ? n : n - 1, least = step > 0 ? 0 : -1;
    if (start < 0)
        start = start < -n ? 0 : n + start;
    else if (start > top)
        start = top;
    if (stop < least)
        stop = stop < -n ? least : n + stop;
    else if (stop > top)
        stop = top;
    if (step < 0 && stop < least) stop = least;
    jinja_slice s = {.first = start, .step = step};
    if (step > 0 && start < stop) {
        s.n = (uint64_t)((stop - start - 1) / step) + 1;
    } else if (step < 0 && start > stop) {
        uint64_t stride = 0 - (uint64_t)step;
        s.n = (uint64_t)(start - stop - 1) / stride + 1;
    }
    if (start < 0 || start >= n) s.n = 0;
    return s;
}

jinja_value ggtok_jinja_list_slice(jinja_env *e, jinja_args *a) {
    jinja_list *list = list_at(e, a, 0);
    jinja_slice s = ggtok_jinja_llama_slice(e, a, list->n);
    jinja_charge(&e->arena, s.n);
    jinja_list *cut = ggtok_jinja_list_new(&e->arena, s.n);
    for (size_t i = 0; i < s.n; i++) {
        ggtok_jinja_list_push(&e->arena, cut, list->data[s.first + (int64_t)i * s.step]);
    }
    return as_type_of(a->v[0], cut);
}

/* ---- single items ---- */

jinja_value ggtok_jinja_list_list(jinja_env *e, jinja_args *a) {
    return jinja_of_list(copy(e, list_at(e, a, 0)));
}

jinja_value ggtok_jinja_list_first(jinja_env *e, jinja_args *a) {
    jinja_list *list = list_at(e, a, 0);
    return list->n ? list->data[0] : jinja_undefined(NULL);
}

jinja_value ggtok_jinja_list_last(jinja_env *e, jinja_args *a) {
    jinja_list *list = list_at(e, a, 0);
    return list->n ? list->data[list->n - 1] : jinja_undefined(NULL);
}

jinja_value ggtok_jinja_list_length(jinja_env *e, jinja_args *a) {
    return jinja_int(list_at(e, a, 0)->n);
}

static void check_mutable(jinja_env *e, const jinja_args *a) {
    if (a->v[0].type == JINJA_TUPLE)
        ggtok_jinja_fail(&e->arena, "'%s' can't change a Tuple", a->name);
}

jinja_value ggtok_jinja_list_append(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_count(e, a, 2, 999);
    jinja_list *list = list_at(e, a, 0);
    check_mutable(e, a);
    ggtok_jinja_list_push(&e->arena, list, a->v[1]);
    return a->v[0];
}

jinja_value ggtok_jinja_list_pop(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_count(e, a, 1, 2);
    jinja_list *list = list_at(e, a, 0);
    int64_t i = a->n == 2 ? ggtok_jinja_llama_int(e, a->v[1]) : -1;
    check_mutable(e, a);
    if (i < 0) i = i < -(int64_t)list->n ? -1 : i + list->n;
    if (i < 0 || i >= (int64_t)list->n) {
        ggtok_jinja_fail(&e->arena, "'pop' index out of range: the Array has %u items", list->n);
    }
    jinja_value v = list->data[i];
    jinja_charge(&e->arena, (list->n - (uint64_t)i) / 4);
    if (list->looped_over) {
        jinja_charge(&e->arena, list->n / 4);
        list->data = copy(e, list)->data;
        list->cap = list->n;
        list->looped_over = false;
    }
    memmove(list->data + i, list->data + i + 1, (list->n - (size_t)i - 1) * sizeof v);
    list->n--;
    return v;
}

jinja_value ggtok_jinja_list_reverse(jinja_env *e, jinja_args *a) {
    jinja_list *own = copy(e, list_at(e, a, 0));
    for (uint32_t i = 0; i < own->n / 2; i++) {
        jinja_value v = own->data[i];
        own->data[i] = own->data[own->n - 1 - i];
        own->data[own->n - 1 - i] = v;
    }
    return as_type_of(a->v[0], own);
}

/* ---- items by an attribute ---- */

static jinja_value attribute_of(jinja_env *e, jinja_value v, jinja_value name, jinja_value other) {
    if (name.type == JINJA_UNDEFINED) return other;
    if (jinja_is_array(v)) {
        int64_t i = 0;
        if (name.type == JINJA_STRING) {
            const jinja_text *t = name.as.text;
            jinja_charge_bytes(&e->arena, t->n);
            for (uint32_t k = 0; k < t->n; k++) {
                if (t->data[k] < '0' || t->data[k] > '9') return other;
            }
            if (!t->n || !ggtok_jinja_parse_int(&e->arena, t->data, t->n, false, &i)) return other;
        } else if (name.type == JINJA_INT || name.type == JINJA_BOOL) {
            i = ggtok_jinja_llama_int(e, name);
        } else {
            return other;
        }
        if (i < 0) i += v.as.list->n;
        return i >= 0 && i < (int64_t)v.as.list->n ? v.as.list->data[i] : other;
    }
    if (v.type == JINJA_DICT || v.type == JINJA_LOOP) {
        jinja_value *found = ggtok_jinja_llama_at(e, v, name);
        return found ? *found : other;
    }
    return other;
}

static jinja_builtin *test_of(jinja_env *e, jinja_value name) {
    jinja_text *text = ggtok_jinja_llama_text(e, name);
    int32_t row = ggtok_jinja_llama_global("test_is_", text);
    if (row < 0) {
        ggtok_jinja_fail(&e->arena, "llama.cpp's dialect has no test '%.*s'",
                         JINJA_SHOWN(text, 60));
    }
    return ggtok_jinja_llama_globals[row].run;
}

/* Implements select (keep) and reject. Arguments: (attribute), (test, argument) or (attribute,
 * test, argument). In llama.cpp, selectattr does the same as select, and rejectattr the same as
 * reject. */
static jinja_value select_items(jinja_env *e, jinja_args *a, bool keep) {
    ggtok_jinja_args_count(e, a, 2, 4);
    jinja_list *list = list_at(e, a, 0), *kept = ggtok_jinja_list_new(&e->arena, 0);
    ggtok_jinja_args_type(e, a, 1, ON_STRING);
    jinja_builtin *test = a->n > 2 ? test_of(e, a->v[a->n - 2]) : NULL;
    for (uint32_t i = 0; i < list->n; i++) {
        jinja_value item = list->data[i], v = item;
        jinja_charge(&e->arena, 2);
        if (a->n != 3) v = attribute_of(e, item, a->v[1], jinja_undefined(NULL));
        if (test) {
            jinja_value pair[2] = {v, a->v[a->n - 1]};
            jinja_args args = {a->name, pair, 2};
            v = test(e, &args);
        }
        if (ggtok_jinja_llama_truth(e, v) == keep) ggtok_jinja_list_push(&e->arena, kept, item);
    }
    return jinja_of_list(kept);
}

jinja_value ggtok_jinja_list_select(jinja_env *e, jinja_args *a) {
    return select_items(e, a, true);
}
jinja_value ggtok_jinja_list_reject(jinja_env *e, jinja_args *a) {
    return select_items(e, a, false);
}

jinja_value ggtok_jinja_list_map(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_count(e, a, 2, 999);
    jinja_list *list = list_at(e, a, 0);
    if (a->v[1].type != JINJA_KEYWORD) {
        ggtok_jinja_fail(&e->arena, "llama.cpp's dialect doesn't support 'map' with a filter");
    }
    jinja_value name = ggtok_jinja_args_named(e, a, "attribute", 1);
    jinja_value other = jinja_keyword_named(e, a, "default", jinja_undefined(NULL));
    jinja_list *mapped = ggtok_jinja_list_new(&e->arena, list->n);
    for (uint32_t i = 0; i < list->n; i++) {
        jinja_charge(&e->arena, 1);
        ggtok_jinja_list_push(&e->arena, mapped, attribute_of(e, list->data[i], name, other));
    }
    return as_type_of(a->v[0], mapped);
}

jinja_value ggtok_jinja_list_join(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_count(e, a, 1, 3);
    jinja_list *list = list_at(e, a, 0);
    jinja_value by = ggtok_jinja_args_named(e, a, "d", 1),
                name = ggtok_jinja_args_named(e, a, "attribute", 2);
    jinja_text *separator = by.type == JINJA_UNDEFINED ? NULL : ggtok_jinja_llama_text(e, by);
    jinja_builder b = ggtok_jinja_builder_new(&e->arena, 0);
    b.merge = true;
    for (uint32_t i = 0; i < list->n; i++) {
        jinja_value v = list->data[i];
        jinja_charge(&e->arena, 1);
        if (name.type != JINJA_UNDEFINED) v = attribute_of(e, v, name, jinja_undefined(NULL));
        if (v.type != JINJA_STRING && v.type != JINJA_INT && v.type != JINJA_FLOAT) {
            ggtok_jinja_fail(&e->arena, "'join' takes strings and numbers, not %s",
                             ggtok_jinja_type_name(v));
        }
        ggtok_jinja_builder_text(&b, ggtok_jinja_llama_text(e, v));
        if (separator && i + 1 < list->n) ggtok_jinja_builder_text(&b, separator);
    }
    return jinja_new_id(
        e, jinja_of_text(ggtok_jinja_text_fuse(&e->arena, ggtok_jinja_builder_end(&b))));
}

/* ---- order ---- */

typedef struct order {
    jinja_operator op;
    jinja_value attribute;
    bool by_value;
} order;

static bool less_items(jinja_env *e, jinja_value x, jinja_value y, const void *user) {
    const order *o = user;
    if (o->attribute.type != JINJA_UNDEFINED) {
        x = attribute_of(e, x, o->attribute, jinja_undefined(NULL));
        y = attribute_of(e, y, o->attribute, jinja_undefined(NULL));
    }
    return ggtok_jinja_llama_compare(e, x, y, o->op);
}

jinja_value ggtok_jinja_list_sort(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_count(e, a, 1, 4);
    jinja_list *own = copy(e, list_at(e, a, 0));
    order o = {JINJA_LT, ggtok_jinja_args_named(e, a, "attribute", 3), false};
    if (ggtok_jinja_llama_truth(e, ggtok_jinja_args_named(e, a, "reverse", 1))) o.op = JINJA_GT;
    ggtok_jinja_llama_sort(e, own->data, own->n, less_items, &o);
    return as_type_of(a->v[0], own);
}

static jinja_value extreme(jinja_env *e, jinja_args *a, jinja_operator op) {
    ggtok_jinja_args_count(e, a, 1, 4);
    jinja_list *list = list_at(e, a, 0);
    order o = {op, ggtok_jinja_args_named(e, a, "attribute", 2), false};
    if (!list->n) return jinja_undefined(NULL);
    jinja_value result = list->data[0];
    for (uint32_t i = 0; i < list->n; i++) {
        if (less_items(e, list->data[i], result, &o)) result = list->data[i];
    }
    return result;
}

jinja_value ggtok_jinja_list_min(jinja_env *e, jinja_args *a) {
    return extreme(e, a, JINJA_LT);
}
jinja_value ggtok_jinja_list_max(jinja_env *e, jinja_args *a) {
    return extreme(e, a, JINJA_GT);
}

/* ---- objects ---- */

jinja_value ggtok_jinja_dict_get_method(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_count(e, a, 2, 3);
    dict_at(e, a, 0);
    ggtok_jinja_args_type(e, a, 1, ON_STRING);
    jinja_value *found = ggtok_jinja_llama_at(e, a->v[0], a->v[1]);
    return found ? *found : a->n == 3 ? a->v[2] : jinja_none();
}

static jinja_value pair_of(jinja_env *e, const jinja_entry *entry) {
    jinja_list *pair = ggtok_jinja_list_new(&e->arena, 2);
    ggtok_jinja_list_push(&e->arena, pair, entry->key);
    ggtok_jinja_list_push(&e->arena, pair, entry->value);
    return jinja_of_tuple(pair);
}

typedef enum entry_part { KEYS, VALUES, ITEMS } entry_part;

static jinja_value entries(jinja_env *e, jinja_args *a, entry_part part) {
    jinja_dict *dict = dict_at(e, a, 0);
    jinja_list *list = ggtok_jinja_list_new(&e->arena, dict->n);
    for (uint32_t i = 0; i < dict->n; i++) {
        const jinja_entry *entry = &dict->entries[i];
        jinja_charge(&e->arena, 1);
        ggtok_jinja_list_push(&e->arena, list,
                              part == KEYS     ? entry->key
                              : part == VALUES ? entry->value
                                               : pair_of(e, entry));
    }
    return jinja_of_list(list);
}

jinja_value ggtok_jinja_dict_keys(jinja_env *e, jinja_args *a) {
    return entries(e, a, KEYS);
}
jinja_value ggtok_jinja_dict_values(jinja_env *e, jinja_args *a) {
    return entries(e, a, VALUES);
}
jinja_value ggtok_jinja_dict_items(jinja_env *e, jinja_args *a) {
    return entries(e, a, ITEMS);
}

jinja_value ggtok_jinja_dict_length(jinja_env *e, jinja_args *a) {
    return jinja_int(dict_at(e, a, 0)->n);
}

static bool less_pairs(jinja_env *e, jinja_value x, jinja_value y, const void *user) {
    const order *o = user;
    uint32_t i = o->by_value ? 1 : 0;
    return ggtok_jinja_llama_compare(e, x.as.list->data[i], y.as.list->data[i], o->op);
}

jinja_value ggtok_jinja_dict_dictsort(jinja_env *e, jinja_args *a) {
    jinja_dict *dict = dict_at(e, a, 0);
    jinja_value by = ggtok_jinja_args_named(e, a, "by", 2);
    order o = {JINJA_LT, jinja_undefined(NULL), false};
    if (ggtok_jinja_llama_truth(e, ggtok_jinja_args_named(e, a, "reverse", 3))) o.op = JINJA_GT;
    o.by_value = by.type == JINJA_STRING && ggtok_jinja_text_is(by.as.text, "value");
    jinja_list *pairs = entries(e, a, ITEMS).as.list;
    ggtok_jinja_llama_sort(e, pairs->data, pairs->n, less_pairs, &o);
    jinja_dict *sorted = ggtok_jinja_dict_new(&e->arena, dict->n);
    JINJA_EACH(&e->arena, i, pairs->n) {
        const jinja_list *pair = pairs->data[i].as.list;
        ggtok_jinja_dict_set(&e->arena, sorted, pair->data[0], pair->data[1]);
    }
    return jinja_of_dict(sorted);
}
