/* jinja2's filters for sequences and mappings, and the methods of list, tuple and dict. */
#include "jinja/python/dialect.h"
#include "jinja/python/functions.h"

static bool missing(jinja_value v) {
    return v.type == JINJA_ABSENT || v.type == JINJA_NONE;
}
static bool truth_or(jinja_env *e, jinja_value v, bool other) {
    return v.type == JINJA_ABSENT ? other : ggtok_jinja_python_truth(e, v);
}

/* ---- attributes ---- */

/* Returns a component of a dotted attribute: a name, or an index if it consists of digits. */
static jinja_value step_of(jinja_arena *mem, const jinja_text *path, size_t begin, size_t end) {
    jinja_text *name = ggtok_jinja_text_cut(mem, path, begin, end);
    bool digits = name->n > 0 && name->n < 18;
    int64_t i = 0;
    for (size_t k = 0; digits && k < name->n; k++) {
        digits = name->data[k] >= '0' && name->data[k] <= '9';
        i = 10 * i + (name->data[k] - '0');
    }
    return digits ? jinja_int(i) : jinja_of_text(name);
}

jinja_list *ggtok_jinja_path(jinja_env *e, jinja_value attribute) {
    jinja_arena *mem = &e->arena;
    if (missing(attribute)) return NULL;
    jinja_list *path = ggtok_jinja_list_new(mem, 1);
    if (attribute.type != JINJA_STRING) {
        ggtok_jinja_list_push(mem, path, attribute);
        return path;
    }
    const jinja_text *t = attribute.as.text;
    jinja_charge_bytes(mem, t->n);
    for (size_t begin = 0, end; begin <= t->n; begin = end + 1) {
        const uint8_t *dot = t->n > begin ? memchr(t->data + begin, '.', t->n - begin) : NULL;
        end = dot ? (size_t)(dot - t->data) : t->n;
        ggtok_jinja_list_push(mem, path, step_of(mem, t, begin, end));
    }
    return path;
}

jinja_value ggtok_jinja_attribute(jinja_env *e, jinja_value v, const jinja_list *path,
                                  jinja_value other) {
    if (!path) return v;
    JINJA_EACH(&e->arena, i, path->n) {
        v = ggtok_jinja_getitem(e, v, path->data[i]);
        if (v.type == JINJA_UNDEFINED && !missing(other)) v = other;
    }
    return v;
}

/* Lower-cases a string for comparison, unless `cased`. */
jinja_value ggtok_jinja_folded(jinja_env *e, jinja_value v, bool cased) {
    if (cased || v.type != JINJA_STRING) return v;
    return ggtok_jinja_py_lower(e, &v);
}

/* ---- order ---- */

/* Compares keys as Python compares the items of tuples: < isn't applied to equal keys, so equal
 * values of types without an order are allowed. */
static bool goes_before(jinja_env *e, jinja_value a, jinja_value b) {
    return !ggtok_jinja_python_equal(&e->arena, a, b) && ggtok_jinja_python_less(e, a, b, JINJA_LT);
}

typedef bool before_fn(jinja_env *e, jinja_value a, jinja_value b);

static bool less(jinja_env *e, jinja_value a, jinja_value b) {
    return ggtok_jinja_python_less(e, a, b, JINJA_LT);
}

static void merge_sort(jinja_env *e, jinja_value *keys, jinja_value *items, uint32_t n,
                       before_fn *before, bool reverse) {
    jinja_arena *mem = &e->arena;
    jinja_value *k2 = jinja_alloc_n(mem, n + 1u, sizeof *k2),
                *i2 = jinja_alloc_n(mem, n + 1u, sizeof *i2);
    for (uint64_t width = 1; width < n; width *= 2) {
        jinja_charge(mem, n);
        for (uint64_t from = 0; from < n; from += 2 * width) {
            uint64_t mid = from + width < n ? from + width : n;
            uint64_t end = from + 2 * width < n ? from + 2 * width : n, a = from, b = mid;
            for (uint64_t k = from; k < end; k++) {
                bool right = a == mid;
                if (a < mid && b < end) {
                    right = reverse ? before(e, keys[a], keys[b]) : before(e, keys[b], keys[a]);
                }
                uint64_t from_ = right ? b++ : a++;
                k2[k] = keys[from_];
                i2[k] = items[from_];
            }
        }
        memcpy(keys, k2, n * sizeof *keys);
        memcpy(items, i2, n * sizeof *items);
    }
}

/* Parses an attribute argument that may contain several attributes, separated by commas. */
static jinja_list *paths_of(jinja_env *e, jinja_value attribute) {
    jinja_list *paths = ggtok_jinja_list_new(&e->arena, 1);
    if (attribute.type != JINJA_STRING) {
        ggtok_jinja_list_push(&e->arena, paths, jinja_of_list(ggtok_jinja_path(e, attribute)));
        return paths;
    }
    const jinja_text *t = attribute.as.text;
    jinja_charge_bytes(&e->arena, t->n);
    for (size_t begin = 0, end; begin <= t->n; begin = end + 1) {
        const uint8_t *comma = t->n > begin ? memchr(t->data + begin, ',', t->n - begin) : NULL;
        end = comma ? (size_t)(comma - t->data) : t->n;
        jinja_value one = jinja_of_text(ggtok_jinja_text_cut(&e->arena, t, begin, end));
        ggtok_jinja_list_push(&e->arena, paths, jinja_of_list(ggtok_jinja_path(e, one)));
    }
    return paths;
}

static jinja_value sort_key(jinja_env *e, jinja_value item, const jinja_list *paths, bool cased) {
    jinja_list *keys = paths->n > 1 ? ggtok_jinja_list_new(&e->arena, paths->n) : NULL;
    jinja_value key = item;
    JINJA_EACH(&e->arena, i, paths->n) {
        key = ggtok_jinja_attribute(e, item, paths->data[i].as.list, jinja_absent());
        key = ggtok_jinja_folded(e, key, cased);
        if (keys) ggtok_jinja_list_push(&e->arena, keys, key);
    }
    return keys ? jinja_of_tuple(keys) : key;
}

jinja_list *ggtok_jinja_sorted(jinja_env *e, const jinja_list *list, jinja_value attribute,
                               bool cased, bool reverse) {
    jinja_arena *mem = &e->arena;
    const jinja_list *paths = paths_of(e, attribute);
    jinja_list *own = ggtok_jinja_list_new(mem, list->n);
    jinja_value *keys = jinja_alloc_n(mem, list->n + 1u, sizeof *keys);
    JINJA_EACH(mem, i, list->n) {
        ggtok_jinja_list_push(mem, own, list->data[i]);
        keys[i] = sort_key(e, list->data[i], paths, cased);
    }
    merge_sort(e, keys, own->data, own->n, goes_before, reverse);
    return own;
}

jinja_list *ggtok_jinja_sorted_by(jinja_env *e, const jinja_list *rows, uint32_t i, bool cased,
                                  bool reverse) {
    jinja_list *own = ggtok_jinja_list_new(&e->arena, rows->n);
    jinja_value *keys = jinja_alloc_n(&e->arena, rows->n + 1u, sizeof *keys);
    JINJA_EACH(&e->arena, k, rows->n) {
        ggtok_jinja_list_push(&e->arena, own, rows->data[k]);
        keys[k] = ggtok_jinja_folded(e, rows->data[k].as.list->data[i], cased);
    }
    merge_sort(e, keys, own->data, own->n, less, reverse);
    return own;
}

/* Returns the `reverse` argument. Like Python's sorted(), accepts only integers. */
static bool reversed(jinja_env *e, jinja_value v) {
    return v.type != JINJA_ABSENT && ggtok_jinja_index(e, v) != 0;
}

/* Arguments: value, reverse, case_sensitive, attribute. */
jinja_value ggtok_jinja_pf_sort(jinja_env *e, jinja_value *v) {
    return jinja_of_list(ggtok_jinja_sorted(e, ggtok_jinja_items(e, v[0]), v[3],
                                            truth_or(e, v[2], false), reversed(e, v[1])));
}

/* Arguments: value, case_sensitive, by, reverse. */
jinja_value ggtok_jinja_pf_dictsort(jinja_env *e, jinja_value *v) {
    jinja_arena *mem = &e->arena;
    if (v[0].type != JINJA_DICT)
        ggtok_jinja_fail(mem, "'dictsort' takes a mapping, not %s", ggtok_jinja_python_type(v[0]));
    bool by_value = v[2].type == JINJA_STRING && ggtok_jinja_text_is(v[2].as.text, "value");
    bool by_key = v[2].type == JINJA_ABSENT ||
                  (v[2].type == JINJA_STRING && ggtok_jinja_text_is(v[2].as.text, "key"));
    if (!by_value && !by_key)
        ggtok_jinja_fail(mem, "You can only sort by either \"key\" or \"value\"");
    jinja_list *pairs = ggtok_jinja_dict_pairs(e, v[0].as.dict);
    return jinja_of_list(
        ggtok_jinja_sorted_by(e, pairs, by_value, truth_or(e, v[1], false), reversed(e, v[3])));
}

/* Returns the minimum or maximum. Arguments: value, case_sensitive, attribute. */
static jinja_value extreme(jinja_env *e, jinja_value *v, bool most) {
    jinja_list *items = ggtok_jinja_items(e, v[0]);
    const jinja_list *path = ggtok_jinja_path(e, v[2]);
    bool cased = truth_or(e, v[1], false);
    if (!items->n) return jinja_undefined(NULL);
    jinja_value best = jinja_absent(), key = best;
    JINJA_EACH(&e->arena, i, items->n) {
        jinja_value own = ggtok_jinja_attribute(e, items->data[i], path, jinja_absent());
        own = ggtok_jinja_folded(e, own, cased);
        if (i && !ggtok_jinja_python_less(e, most ? key : own, most ? own : key, JINJA_LT))
            continue;
        best = items->data[i];
        key = own;
    }
    return best;
}
jinja_value ggtok_jinja_pf_min(jinja_env *e, jinja_value *v) {
    return extreme(e, v, false);
}
jinja_value ggtok_jinja_pf_max(jinja_env *e, jinja_value *v) {
    return extreme(e, v, true);
}

/* Returns pairs (grouper, list). Arguments: value, attribute, default, case_sensitive. */
jinja_value ggtok_jinja_pf_groupby(jinja_env *e, jinja_value *v) {
    jinja_arena *mem = &e->arena;
    bool cased = truth_or(e, v[3], false);
    jinja_list *items = ggtok_jinja_items(e, v[0]), *keyed = ggtok_jinja_list_new(mem, items->n);
    const jinja_list *path = ggtok_jinja_path(e, v[1]);
    JINJA_EACH(mem, i, items->n) { /* collects tuples (folded key, item, key) */
        jinja_list *row = ggtok_jinja_list_new(mem, 3);
        jinja_value key = ggtok_jinja_attribute(e, items->data[i], path, v[2]);
        ggtok_jinja_list_push(mem, row, ggtok_jinja_folded(e, key, cased));
        ggtok_jinja_list_push(mem, row, items->data[i]);
        ggtok_jinja_list_push(mem, row, key);
        ggtok_jinja_list_push(mem, keyed, jinja_of_list(row));
    }
    keyed = ggtok_jinja_sorted_by(e, keyed, 0, true, false);
    jinja_list *groups = ggtok_jinja_list_new(mem, 0), *group = NULL;
    jinja_value last = jinja_absent();
    JINJA_EACH(&e->arena, i, keyed->n) {
        const jinja_list *row = keyed->data[i].as.list;
        if (!group || !ggtok_jinja_python_equal(mem, last, row->data[0])) {
            jinja_list *pair = ggtok_jinja_list_new(mem, 2);
            group = ggtok_jinja_list_new(mem, 0);
            last = row->data[0];
            ggtok_jinja_list_push(mem, pair, cased ? last : row->data[2]);
            ggtok_jinja_list_push(mem, pair, jinja_of_list(group));
            pair->group = true;
            ggtok_jinja_list_push(mem, groups, jinja_of_tuple(pair));
        }
        ggtok_jinja_list_push(mem, group, row->data[1]);
    }
    return jinja_of_list(groups);
}

/* ---- pieces ---- */

jinja_value ggtok_jinja_pf_first(jinja_env *e, jinja_value *v) {
    if (ggtok_jinja_is_generator(v[0])) { /* consume only one item */
        jinja_value first;
        return ggtok_jinja_next(e, v[0].as.list, &first) ? first : jinja_undefined(NULL);
    }
    jinja_list *items = ggtok_jinja_items(e, v[0]);
    return items->n ? items->data[0] : jinja_undefined(NULL);
}

jinja_value ggtok_jinja_pf_last(jinja_env *e, jinja_value *v) {
    if (ggtok_jinja_is_generator(v[0])) {
        ggtok_jinja_fail(&e->arena, "'generator' object is not reversible");
    }
    jinja_list *items = ggtok_jinja_items(e, v[0]);
    return items->n ? items->data[items->n - 1] : jinja_undefined(NULL);
}

jinja_value ggtok_jinja_pf_length(jinja_env *e, jinja_value *v) {
    return jinja_int(ggtok_jinja_len(e, v[0]));
}

static jinja_list *copied(jinja_env *e, const jinja_list *list) {
    jinja_list *own = ggtok_jinja_list_new(&e->arena, list->n);
    jinja_charge(&e->arena, list->n / 4);
    for (uint32_t i = 0; i < list->n; i++) ggtok_jinja_list_push(&e->arena, own, list->data[i]);
    return own;
}

jinja_value ggtok_jinja_pf_list(jinja_env *e, jinja_value *v) {
    return jinja_of_list(copied(e, ggtok_jinja_items(e, v[0])));
}

jinja_value ggtok_jinja_pf_reverse(jinja_env *e, jinja_value *v) {
    if (v[0].type == JINJA_STRING) {
        jinja_value bounds[3] = {jinja_none(), jinja_none(), jinja_int(-1)};
        return ggtok_jinja_slice_of(e, v[0], bounds);
    }
    jinja_list *own = copied(e, ggtok_jinja_items(e, v[0]));
    for (uint32_t i = 0; i < own->n / 2; i++) {
        jinja_value one = own->data[i];
        own->data[i] = own->data[own->n - 1 - i];
        own->data[own->n - 1 - i] = one;
    }
    own->reversed = true;
    return ggtok_jinja_is_generator(v[0]) ? jinja_of_list(own) : ggtok_jinja_lazy(own);
}

jinja_list *ggtok_jinja_dict_pairs(jinja_env *e, const jinja_dict *dict) {
    jinja_arena *mem = &e->arena;
    jinja_list *list = ggtok_jinja_list_new(mem, dict->n);
    JINJA_EACH(&e->arena, i, dict->n) {
        jinja_list *pair = ggtok_jinja_list_new(mem, 2);
        ggtok_jinja_list_push(mem, pair, dict->entries[i].key);
        ggtok_jinja_list_push(mem, pair, dict->entries[i].value);
        ggtok_jinja_list_push(mem, list, jinja_of_tuple(pair));
    }
    return list;
}

jinja_value ggtok_jinja_pf_items(jinja_env *e, jinja_value *v) {
    if (v[0].type == JINJA_UNDEFINED) return ggtok_jinja_lazy(ggtok_jinja_list_new(&e->arena, 0));
    if (v[0].type != JINJA_DICT) {
        jinja_list *none = ggtok_jinja_list_new(&e->arena, 0);
        none->fault = "'items' takes a mapping";
        return ggtok_jinja_lazy(none);
    }
    return ggtok_jinja_lazy(ggtok_jinja_dict_pairs(e, v[0].as.dict));
}

/* Arguments: value, count, fill. */
jinja_list *ggtok_jinja_batched(jinja_env *e, const jinja_value *v) {
    jinja_arena *mem = &e->arena;
    jinja_list *items = ggtok_jinja_items(e, v[0]), *out = ggtok_jinja_list_new(mem, 0),
               *row = ggtok_jinja_list_new(mem, 0);
    /* In jinja2, the count may have any type; the length of a row may then never equal it. */
    bool whole = v[1].type == JINJA_INT || v[1].type == JINJA_BOOL;
    int64_t size = whole ? ggtok_jinja_index(e, v[1]) : -1;
    if (v[1].type == JINJA_FLOAT && v[1].as.f >= 0 && v[1].as.f < 4294967296.0 &&
        v[1].as.f == (double)(int64_t)v[1].as.f)
        size = (int64_t)v[1].as.f;
    JINJA_EACH(&e->arena, i, items->n) {
        if (row->n == size) {
            ggtok_jinja_list_push(mem, out, jinja_of_list(row));
            row = ggtok_jinja_list_new(mem, 0);
        }
        ggtok_jinja_list_push(mem, row, items->data[i]);
    }
    if (row->n) {
        bool fill = !missing(v[2]);
        if (fill && !whole) size = ggtok_jinja_index(e, v[1]);
        while (fill && row->n < size) jinja_charge(mem, 1), ggtok_jinja_list_push(mem, row, v[2]);
        ggtok_jinja_list_push(mem, out, jinja_of_list(row));
    }
    return out;
}

/* Arguments: value, slices, fill. */
jinja_list *ggtok_jinja_sliced(jinja_env *e, const jinja_value *v) {
    jinja_arena *mem = &e->arena;
    jinja_list *items = ggtok_jinja_items(e, v[0]), *out = ggtok_jinja_list_new(mem, 0);
    int64_t slices = ggtok_jinja_index(e, v[1]), offset = 0;
    if (!slices) ggtok_jinja_fail(mem, "integer division or modulo by zero");
    int64_t each = items->n / slices, more = items->n % slices;
    for (int64_t s = 0; s < slices; s++) {
        jinja_charge(mem, 2);
        int64_t start = offset + s * each;
        if (s < more) offset++;
        int64_t end = offset + (s + 1) * each;
        jinja_list *row = ggtok_jinja_list_new(mem, 0);
        for (int64_t i = start; i < end; i++) ggtok_jinja_list_push(mem, row, items->data[i]);
        if (!missing(v[2]) && s >= more) ggtok_jinja_list_push(mem, row, v[2]);
        ggtok_jinja_list_push(mem, out, jinja_of_list(row));
    }
    return out;
}

/* Arguments: value, attribute, start. */
jinja_value ggtok_jinja_pf_sum(jinja_env *e, jinja_value *v) {
    jinja_list *items = ggtok_jinja_items(e, v[0]);
    jinja_value sum = v[2].type == JINJA_ABSENT ? jinja_int(0) : v[2];
    if (sum.type == JINJA_STRING) ggtok_jinja_fail(&e->arena, "sum() can't sum strings");
    const jinja_list *path = ggtok_jinja_path(e, v[1]);
    JINJA_EACH(&e->arena, i, items->n) {
        jinja_value own = ggtok_jinja_attribute(e, items->data[i], path, jinja_absent());
        sum = ggtok_jinja_python_binary(e, JINJA_ADD, sum, own);
    }
    return sum;
}

/* Arguments: value, d, attribute. */
jinja_value ggtok_jinja_pf_join(jinja_env *e, jinja_value *v) {
    jinja_arena *mem = &e->arena;
    jinja_list *items = ggtok_jinja_items(e, v[0]);
    jinja_text *by = v[1].type == JINJA_ABSENT ? NULL : ggtok_jinja_str(e, v[1]);
    jinja_builder b = ggtok_jinja_builder_new(mem, 0);
    b.merge = true;
    const jinja_list *path = ggtok_jinja_path(e, v[2]);
    JINJA_EACH(mem, i, items->n) {
        jinja_value own = ggtok_jinja_attribute(e, items->data[i], path, jinja_absent());
        if (i && by) ggtok_jinja_builder_text(&b, by);
        ggtok_jinja_builder_text(&b, ggtok_jinja_str(e, own));
    }
    return jinja_of_text(ggtok_jinja_builder_end(&b));
}

/* ---- methods ---- */

jinja_value ggtok_jinja_pm_items(jinja_env *e, jinja_value *v) {
    jinja_list *list = ggtok_jinja_dict_pairs(e, v[0].as.dict);
    list->view = JINJA_ITEMS;
    return ggtok_jinja_lazy(list);
}
jinja_value ggtok_jinja_pm_keys(jinja_env *e, jinja_value *v) {
    jinja_list *list = ggtok_jinja_items(e, v[0]);
    list->view = JINJA_KEYS;
    return ggtok_jinja_lazy(list);
}
jinja_value ggtok_jinja_pm_values(jinja_env *e, jinja_value *v) {
    jinja_dict *dict = v[0].as.dict;
    jinja_list *list = ggtok_jinja_list_new(&e->arena, dict->n);
    JINJA_EACH(&e->arena, i, dict->n) {
        ggtok_jinja_list_push(&e->arena, list, dict->entries[i].value);
    }
    list->view = JINJA_VALUES;
    return ggtok_jinja_lazy(list);
}
jinja_value ggtok_jinja_pm_get(jinja_env *e, jinja_value *v) {
    if (!ggtok_jinja_python_hashable(&e->arena, v[1])) {
        ggtok_jinja_fail(&e->arena, "unhashable type: '%s'", ggtok_jinja_python_type(v[1]));
    }
    jinja_value *found = ggtok_jinja_dict_find(&e->arena, v[0].as.dict, v[1]);
    return found ? *found : v[2].type == JINJA_ABSENT ? jinja_none() : v[2];
}
jinja_value ggtok_jinja_pm_copy(jinja_env *e, jinja_value *v) {
    if (v[0].type == JINJA_LIST) return jinja_of_list(copied(e, v[0].as.list));
    jinja_dict *own = ggtok_jinja_dict_new(&e->arena, v[0].as.dict->n);
    JINJA_EACH(&e->arena, i, v[0].as.dict->n) {
        ggtok_jinja_dict_set(&e->arena, own, v[0].as.dict->entries[i].key,
                             v[0].as.dict->entries[i].value);
    }
    return jinja_of_dict(own);
}
jinja_value ggtok_jinja_pm_list_index(jinja_env *e, jinja_value *v) {
    const jinja_list *list = v[0].as.list;
    int64_t start = v[2].type == JINJA_ABSENT ? 0 : ggtok_jinja_index(e, v[2]),
            stop = v[3].type == JINJA_ABSENT ? list->n : ggtok_jinja_index(e, v[3]);
    if (start < 0) start = start < -(int64_t)list->n ? 0 : start + list->n;
    if (stop < 0) stop += list->n;
    for (int64_t i = start; i < stop && i < list->n; i++) {
        if (ggtok_jinja_python_equal(&e->arena, list->data[i], v[1])) return jinja_int(i);
    }
    ggtok_jinja_fail(&e->arena, "the value is not in the list");
}
jinja_value ggtok_jinja_pm_list_count(jinja_env *e, jinja_value *v) {
    const jinja_list *list = v[0].as.list;
    int64_t n = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        n += ggtok_jinja_python_equal(&e->arena, list->data[i], v[1]);
    }
    return jinja_int(n);
}
