#include "jinja/core/value.h"

#include "base/hash.h"
#include "jinja/core/env.h"

jinja_value ggtok_jinja_big(jinja_arena *mem, const void *digits, size_t n) {
    return (jinja_value){.type = JINJA_BIG, .as.text = ggtok_jinja_text_copy(mem, digits, n, 0)};
}

/* ---- lists ---- */

jinja_list *ggtok_jinja_list_new(jinja_arena *mem, size_t room) {
    jinja_list *list = jinja_alloc(mem, sizeof *list);
    *list = (jinja_list){0};
    if (room) {
        if (room > UINT32_MAX / 2) room = UINT32_MAX / 2;
        list->data = jinja_alloc_n(mem, room, sizeof *list->data);
        list->cap = (uint32_t)room;
    }
    return list;
}

void ggtok_jinja_list_push(jinja_arena *mem, jinja_list *list, jinja_value value) {
    if (list->n == list->cap) {
        size_t cap = 2 * (size_t)list->cap + 4;
        if (cap > UINT32_MAX / 2) ggtok_jinja_fail(mem, "a list has too many items");
        jinja_charge(mem, list->n);
        jinja_value *data = jinja_alloc_n(mem, cap, sizeof *data);
        if (list->n) memcpy(data, list->data, list->n * sizeof *data);
        list->data = data;
        list->cap = (uint32_t)cap;
    }
    list->data[list->n++] = value;
}

/* ---- numbers ---- */

/* Converts as x86-64 does: INT64_MIN if the value doesn't fit. */
int64_t ggtok_jinja_float_as_int(double f) {
    return f >= -9223372036854775808.0 && f < 9223372036854775808.0 ? (int64_t)f : INT64_MIN;
}

double ggtok_jinja_int_as_float(int64_t i) {
    double f = (double)i;
    if (ggtok_jinja_float_as_int(f) != i) return i < 0 ? -1.0 / 0.0 : 1.0 / 0.0;
    return f;
}

/* ---- keys ---- */

bool ggtok_jinja_immutable(jinja_value v) {
    return v.type != JINJA_LIST && v.type != JINJA_DICT && v.type != JINJA_LOOP;
}

bool ggtok_jinja_hashable(jinja_arena *mem, jinja_value v) {
    bool all = true;
    switch (v.type) {
    case JINJA_UNDEFINED:
    case JINJA_FUNCTION: return false;
    case JINJA_LIST:
    case JINJA_TUPLE:
        jinja_enter(mem);
        jinja_charge(mem, v.as.list->n);
        for (uint32_t i = 0; all && i < v.as.list->n; i++) {
            jinja_value item = v.as.list->data[i];
            all = ggtok_jinja_immutable(item) && ggtok_jinja_hashable(mem, item);
        }
        jinja_leave(mem);
        return all;
    case JINJA_DICT:
    case JINJA_LOOP:
        if (v.type == JINJA_LOOP) ggtok_jinja_loop_fill(mem, v.as.dict);
        jinja_enter(mem);
        jinja_charge(mem, v.as.dict->n);
        for (uint32_t i = 0; all && i < v.as.dict->n; i++) {
            jinja_value item = v.as.dict->entries[i].value;
            all = ggtok_jinja_immutable(item) && ggtok_jinja_hashable(mem, item);
        }
        jinja_leave(mem);
        return all;
    default: return true;
    }
}

/* ---- llama.cpp's equality ---- */

static bool is_number(jinja_value v) {
    return v.type == JINJA_INT || v.type == JINJA_FLOAT || v.type == JINJA_BOOL;
}

/* Whether two numbers are equal. llama.cpp compares them both as integers and as doubles. */
static bool equal_numbers(jinja_value a, jinja_value b) {
    int64_t ai, bi;
    double af, bf;
    if (a.type == JINJA_FLOAT) {
        af = a.as.f;
        ai = af - af == 0 ? ggtok_jinja_float_as_int(af) : 0;
    } else {
        ai = a.type == JINJA_BOOL ? a.as.truth : a.as.i;
        af = ggtok_jinja_int_as_float(ai);
    }
    if (b.type == JINJA_FLOAT) {
        bf = b.as.f;
        bi = bf - bf == 0 ? ggtok_jinja_float_as_int(bf) : 0;
    } else {
        bi = b.type == JINJA_BOOL ? b.as.truth : b.as.i;
        bf = ggtok_jinja_int_as_float(bi);
    }
    return ai == bi && af == bf;
}

static bool equal_items(jinja_arena *mem, const jinja_list *a, const jinja_list *b,
                        jinja_dialect dialect) {
    bool all = a->n == b->n;
    jinja_enter(mem);
    for (uint32_t i = 0; all && i < a->n; i++) {
        all = ggtok_jinja_equal(mem, a->data[i], b->data[i], dialect);
    }
    jinja_leave(mem);
    return all;
}

/* Whether llama.cpp considers two objects equal: they have the same pairs in the same order. */
static bool equal_pairs(jinja_arena *mem, const jinja_dict *a, const jinja_dict *b) {
    bool all = a->n == b->n;
    jinja_enter(mem);
    for (uint32_t i = 0; all && i < a->n; i++) {
        all = ggtok_jinja_equal(mem, a->entries[i].key, b->entries[i].key, JINJA_LLAMA_CPP) &&
              ggtok_jinja_equal(mem, a->entries[i].value, b->entries[i].value, JINJA_LLAMA_CPP);
    }
    jinja_leave(mem);
    return all;
}

/* ---- Python's equality ---- */

static int64_t int_of(jinja_value v) {
    return v.type == JINJA_BOOL ? v.as.truth : v.as.i;
}

/* Compares exactly, not as doubles. Returns -1, 0 or 1. */
static int compare_with_float(int64_t i, double f) {
    if (f >= 9223372036854775808.0) return -1;
    if (f < -9223372036854775808.0) return 1;
    int64_t j = (int64_t)f;
    if (i != j) return i < j ? -1 : 1;
    double rest = f - (double)j;
    return rest > 0 ? -1 : rest < 0;
}

int ggtok_jinja_compare_numbers(jinja_value a, jinja_value b) {
    bool a_floats = a.type == JINJA_FLOAT, b_floats = b.type == JINJA_FLOAT;
    double x = a.as.f, y = b.as.f;
    if ((a_floats && x != x) || (b_floats && y != y)) return 2;
    if (a_floats && b_floats) return (x > y) - (x < y);
    if (a_floats) return -compare_with_float(int_of(b), x);
    if (b_floats) return compare_with_float(int_of(a), y);
    return (int_of(a) > int_of(b)) - (int_of(a) < int_of(b));
}

/* Whether a value of another type could be equal: a JINJA_BIG and a float, which is an error. */
static bool is_other_number(jinja_arena *mem, jinja_value a, jinja_value b) {
    bool unknown = (a.type == JINJA_BIG && b.type == JINJA_FLOAT) ||
                   (b.type == JINJA_BIG && a.type == JINJA_FLOAT);
    if (unknown) ggtok_jinja_fail(mem, JINJA_TOO_LARGE);
    return false;
}

static bool equal_dicts(jinja_arena *mem, const jinja_dict *a, const jinja_dict *b) {
    if (a->n != b->n) return false;
    for (uint32_t i = 0; i < a->n; i++) {
        jinja_value *found = ggtok_jinja_dict_find(mem, b, a->entries[i].key);
        if (!found || !ggtok_jinja_python_equal(mem, a->entries[i].value, *found)) return false;
    }
    return true;
}

bool ggtok_jinja_python_equal(jinja_arena *mem, jinja_value a, jinja_value b) {
    bool same = true;
    jinja_charge(mem, 1);
    if (is_number(a) && is_number(b)) return ggtok_jinja_compare_numbers(a, b) == 0;
    if (a.type != b.type) return is_other_number(mem, a, b);
    switch (a.type) {
    case JINJA_UNDEFINED:
    case JINJA_NONE: return true;
    case JINJA_BIG:
    case JINJA_STRING: return ggtok_jinja_text_equal(mem, a.as.text, b.as.text);
    case JINJA_LIST:
    case JINJA_TUPLE:
        if (a.as.list == b.as.list) return true;
        if (a.as.list->n != b.as.list->n) return false;
        jinja_enter(mem);
        for (uint32_t i = 0; same && i < a.as.list->n; i++) {
            same = ggtok_jinja_python_equal(mem, a.as.list->data[i], b.as.list->data[i]);
        }
        jinja_leave(mem);
        return same;
    case JINJA_DICT:
        jinja_enter(mem);
        same = a.as.dict == b.as.dict || equal_dicts(mem, a.as.dict, b.as.dict);
        jinja_leave(mem);
        return same;
    case JINJA_RANGE: {
        const jinja_range *x = a.as.range, *y = b.as.range;
        return x->n == y->n &&
               (!x->n || (x->start == y->start && (x->n == 1 || x->step == y->step)));
    }
    case JINJA_FUNCTION:
        return a.as.function == b.as.function ||
               (a.as.function->row && a.as.function->row == b.as.function->row &&
                !a.as.function->bound && !b.as.function->bound);
    default: return a.as.list == b.as.list;
    }
}

/* ---- by dialect ---- */

bool ggtok_jinja_equal(jinja_arena *mem, jinja_value a, jinja_value b, jinja_dialect dialect) {
    jinja_charge(mem, 1);
    if (dialect == JINJA_TRANSFORMERS) return ggtok_jinja_python_equal(mem, a, b);
    if (is_number(a)) return is_number(b) && equal_numbers(a, b);
    if (a.type != b.type) return false;
    switch (a.type) {
    case JINJA_STRING: return ggtok_jinja_text_equal(mem, a.as.text, b.as.text);
    case JINJA_LIST:
    case JINJA_TUPLE:
        return ggtok_jinja_hashable(mem, a) && ggtok_jinja_hashable(mem, b) &&
               equal_items(mem, a.as.list, b.as.list, dialect);
    case JINJA_DICT:
    case JINJA_LOOP: /* ggtok_jinja_hashable fills the loop's dict */
        return ggtok_jinja_hashable(mem, a) && ggtok_jinja_hashable(mem, b) &&
               equal_pairs(mem, a.as.dict, b.as.dict);
    case JINJA_KEYWORD: return a.as.keyword == b.as.keyword;
    default: return true; /* none, undefined; functions, which llama.cpp considers all equal */
    }
}

/* ---- dicts ---- */

/* Returns a hash. Equal values have equal hashes. */
static uint32_t hash_value(jinja_arena *mem, jinja_value v) {
    uint64_t x = 0;
    switch (v.type) {
    case JINJA_BIG:
    case JINJA_STRING: return ggtok_jinja_hash(mem, v.as.text);
    case JINJA_BOOL: x = v.as.truth; break;
    case JINJA_INT: x = (uint64_t)v.as.i; break;
    case JINJA_FLOAT:
        if (v.as.f >= -9e18 && v.as.f <= 9e18 && (double)(int64_t)v.as.f == v.as.f) {
            x = (uint64_t)(int64_t)v.as.f;
        } else {
            memcpy(&x, &v.as.f, 8);
        }
        break;
    case JINJA_TUPLE:
        jinja_enter(mem);
        jinja_charge(mem, v.as.list->n);
        for (uint32_t i = 0; i < v.as.list->n; i++) {
            x = hash_fold(x ^ hash_value(mem, v.as.list->data[i]), HASH_K2);
        }
        jinja_leave(mem);
        break;
    default: x = v.type; break;
    }
    x = hash_fold(x ^ HASH_K1(0), HASH_K2);
    uint32_t folded = (uint32_t)(x ^ x >> 32);
    return folded ? folded : 1;
}

jinja_dict *ggtok_jinja_dict_new(jinja_arena *mem, size_t room) {
    jinja_dict *dict = jinja_alloc(mem, sizeof *dict);
    *dict = (jinja_dict){0};
    if (room) {
        if (room > UINT32_MAX / 4) room = UINT32_MAX / 4;
        dict->entries = jinja_alloc_n(mem, room, sizeof *dict->entries);
        dict->cap = (uint32_t)room;
    }
    return dict;
}

/* Compares keys with equal hashes. */
static bool equal_keys(jinja_arena *mem, const jinja_value *a, const jinja_value *b) {
    if (a->type == JINJA_STRING && b->type == JINJA_STRING) {
        const jinja_text *s = a->as.text, *t = b->as.text;
        jinja_charge(mem, s->n / 16);
        return s->n == t->n && !memcmp(s->data, t->data, s->n);
    }
    return ggtok_jinja_equal(mem, *a, *b, JINJA_LLAMA_CPP) ||
           (a->type >= JINJA_NAMESPACE && ggtok_jinja_equal(mem, *a, *b, JINJA_TRANSFORMERS));
}

static jinja_entry *find_entry(jinja_arena *mem, const jinja_dict *dict, const jinja_value *key,
                               uint32_t hash) {
    if (!dict->index) {
        for (uint32_t i = 0; i < dict->n; i++) {
            jinja_entry *e = &dict->entries[i];
            if (e->hash == hash && equal_keys(mem, &e->key, key)) return e;
        }
        return NULL;
    }
    for (uint32_t i = hash & dict->mask; dict->index[i]; i = (i + 1) & dict->mask) {
        jinja_charge(mem, 1); /* per probed slot, because of collisions */
        jinja_entry *e = &dict->entries[dict->index[i] - 1];
        if (e->hash == hash && equal_keys(mem, &e->key, key)) return e;
    }
    return NULL;
}

static void index_entry(jinja_arena *mem, jinja_dict *dict, uint32_t entry) {
    uint32_t i = dict->entries[entry].hash & dict->mask;
    for (; dict->index[i]; i = (i + 1) & dict->mask) jinja_charge(mem, 1);
    dict->index[i] = entry + 1;
}

/* Makes room for more entries. */
static void grow(jinja_arena *mem, jinja_dict *dict) {
    size_t cap = 2 * (size_t)dict->cap + 2;
    if (cap > UINT32_MAX / 4) ggtok_jinja_fail(mem, "a dict has too many keys");
    jinja_charge(mem, dict->n);
    jinja_entry *entries = jinja_alloc_n(mem, cap, sizeof *entries);
    if (dict->n) memcpy(entries, dict->entries, dict->n * sizeof *entries);
    dict->entries = entries;
    dict->cap = (uint32_t)cap;
}

static void rebuild_index(jinja_arena *mem, jinja_dict *dict) {
    size_t size = 32;
    while (size < 4 * (size_t)dict->n) size *= 2;
    jinja_charge(mem, size / 4);
    dict->index = jinja_alloc_n(mem, size, sizeof *dict->index);
    memset(dict->index, 0, size * sizeof *dict->index);
    dict->mask = (uint32_t)size - 1;
    for (uint32_t i = 0; i < dict->n; i++) index_entry(mem, dict, i);
}

static void add(jinja_arena *mem, jinja_dict *dict, jinja_value key, uint32_t hash,
                jinja_value value) {
    if (dict->n == dict->cap) grow(mem, dict);
    dict->entries[dict->n++] = (jinja_entry){key, value, hash};
    if (dict->index && dict->n <= dict->mask / 2)
        index_entry(mem, dict, dict->n - 1);
    else if (dict->n > JINJA_SMALL_DICT)
        rebuild_index(mem, dict);
}

void ggtok_jinja_dict_add(jinja_arena *mem, jinja_dict *dict, jinja_value key, jinja_value value) {
    add(mem, dict, key, hash_value(mem, key), value);
}

void ggtok_jinja_dict_set(jinja_arena *mem, jinja_dict *dict, jinja_value key, jinja_value value) {
    jinja_charge(mem, 1);
    uint32_t hash = hash_value(mem, key);
    jinja_entry *e = find_entry(mem, dict, &key, hash);
    if (e)
        e->value = value;
    else
        add(mem, dict, key, hash, value);
}

jinja_value *ggtok_jinja_dict_find(jinja_arena *mem, const jinja_dict *dict, jinja_value key) {
    jinja_charge(mem, 1);
    if (!dict->n) return NULL;
    uint32_t hash =
        key.type == JINJA_STRING ? ggtok_jinja_hash(mem, key.as.text) : hash_value(mem, key);
    jinja_entry *e = find_entry(mem, dict, &key, hash);
    return e ? &e->value : NULL;
}

jinja_value *ggtok_jinja_dict_get(jinja_arena *mem, const jinja_dict *dict, const char *key,
                                  size_t n) {
    jinja_text text = {.data = (const uint8_t *)key, .n = (uint32_t)n, .n_chars = UINT32_MAX};
    return ggtok_jinja_dict_find(mem, dict, jinja_of_text(&text));
}

void ggtok_jinja_dict_put(jinja_arena *mem, jinja_dict *dict, const char *key, jinja_value value) {
    ggtok_jinja_dict_set(
        mem, dict, jinja_of_text(ggtok_jinja_text_of(mem, key, strlen(key), JINJA_FROM_TEMPLATE)),
        value);
}

/* ---- copies ---- */

static jinja_list *copy_list(jinja_arena *mem, const jinja_list *list) {
    jinja_list *copy = ggtok_jinja_list_new(mem, list->n);
    copy->group = list->group;
    copy->n = list->n;
    for (uint32_t i = 0; i < list->n; i++) copy->data[i] = ggtok_jinja_copy(mem, list->data[i]);
    return copy;
}

static jinja_dict *copy_dict(jinja_arena *mem, const jinja_dict *dict) {
    jinja_dict *copy = ggtok_jinja_dict_new(mem, dict->n);
    if (dict->index) {
        size_t size = (size_t)dict->mask + 1;
        jinja_charge(mem, size / 4);
        copy->index = jinja_alloc_n(mem, size, sizeof *copy->index);
        memcpy(copy->index, dict->index, size * sizeof *copy->index);
        copy->mask = dict->mask;
    }
    copy->n = dict->n;
    for (uint32_t i = 0; i < dict->n; i++) {
        copy->entries[i] = dict->entries[i];
        copy->entries[i].value = ggtok_jinja_copy(mem, dict->entries[i].value);
    }
    return copy;
}

jinja_value ggtok_jinja_copy(jinja_arena *mem, jinja_value v) {
    v.id = 0;
    jinja_charge(mem, 1);
    if (jinja_is_array(v)) {
        jinja_enter(mem);
        v.as.list = copy_list(mem, v.as.list);
        jinja_leave(mem);
    } else if (v.type == JINJA_DICT) {
        jinja_enter(mem);
        v.as.dict = copy_dict(mem, v.as.dict);
        jinja_leave(mem);
    }
    return v;
}

void ggtok_jinja_loop_fill(jinja_arena *mem, jinja_dict *dict) {
    jinja_loop *loop = (jinja_loop *)dict;
    int64_t i = loop->index0, n = loop->n;
    if (loop->filled) return;
    loop->filled = true;
    ggtok_jinja_dict_put(mem, dict, "index", jinja_int(i + 1));
    ggtok_jinja_dict_put(mem, dict, "index0", jinja_int(i));
    ggtok_jinja_dict_put(mem, dict, "revindex", jinja_int(n - i));
    ggtok_jinja_dict_put(mem, dict, "revindex0", jinja_int(n - i - 1));
    ggtok_jinja_dict_put(mem, dict, "first", jinja_bool(i == 0));
    ggtok_jinja_dict_put(mem, dict, "last", jinja_bool(i + 1 == n));
    ggtok_jinja_dict_put(mem, dict, "length", jinja_int(n));
    ggtok_jinja_dict_put(mem, dict, "previtem", loop->previous);
    ggtok_jinja_dict_put(mem, dict, "nextitem", loop->next);
}
