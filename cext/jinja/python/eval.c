/* jinja2's rules for members, calls, filters and tests. */
#include "jinja/python/dialect.h"

/* ---- functions and their arguments ---- */

jinja_value ggtok_jinja_python_function(jinja_env *e, const jinja_python_row *row,
                                        const jinja_value *self) {
    jinja_function *f = jinja_alloc(&e->arena, sizeof *f);
    *f = (jinja_function){.kind = JINJA_BUILTIN, .name = row->name, .row = row};
    if (self) f->bound = true, f->self = *self;
    return (jinja_value){.type = JINJA_FUNCTION, .as.function = f};
}

int32_t ggtok_jinja_python_row_of(const jinja_python_row *rows, size_t n, const jinja_text *name) {
    for (size_t i = 0; i < n; i++) {
        if (ggtok_jinja_text_is(name, rows[i].name)) return (int32_t)i;
    }
    return -1;
}

void ggtok_jinja_python_find_builtins(jinja_symbol *symbol) {
    symbol->filter = ggtok_jinja_python_row_of(ggtok_jinja_python_filters,
                                               ggtok_jinja_python_n_filters, symbol->name);
    symbol->test = ggtok_jinja_python_row_of(ggtok_jinja_python_tests, ggtok_jinja_python_n_tests,
                                             symbol->name);
    symbol->global = ggtok_jinja_python_row_of(ggtok_jinja_python_globals,
                                               ggtok_jinja_python_n_globals, symbol->name);
}

static void spread_into(jinja_env *e, jinja_list *list, jinja_value v, bool named) {
    jinja_arena *mem = &e->arena;
    if (!named) {
        jinja_list *items = ggtok_jinja_items(e, v);
        JINJA_EACH(mem, i, items->n) ggtok_jinja_list_push(mem, list, items->data[i]);
        return;
    }
    if (v.type != JINJA_DICT) ggtok_jinja_fail(mem, "the argument after ** is not a dict");
    JINJA_EACH(mem, i, v.as.dict->n) {
        const jinja_entry *entry = &v.as.dict->entries[i];
        if (entry->key.type != JINJA_STRING) ggtok_jinja_fail(mem, "keywords must be strings");
        jinja_keyword *keyword = jinja_alloc(mem, sizeof *keyword);
        *keyword = (jinja_keyword){entry->key.as.text, entry->value};
        ggtok_jinja_list_push(mem, list,
                              (jinja_value){.type = JINJA_KEYWORD, .as.keyword = keyword});
    }
}

jinja_args ggtok_jinja_python_arguments_of(jinja_env *e, const jinja_node *node, uint32_t from,
                                           uint32_t room) {
    jinja_list *list = ggtok_jinja_list_new(&e->arena, node->n - from + room + 1);
    ggtok_jinja_list_push(&e->arena, list, jinja_absent()); /* room for `self` */
    for (uint32_t i = from; i < node->n; i++) {
        const jinja_node *kid = node->kids[i];
        if (kid->kind == N_SPREAD)
            spread_into(e, list, ggtok_jinja_eval(e, kid->kids[0]), kid->flag);
        else
            ggtok_jinja_list_push(&e->arena, list, ggtok_jinja_eval(e, kid));
    }
    for (uint32_t i = 0; i < room; i++) ggtok_jinja_list_push(&e->arena, list, jinja_absent());
    return (jinja_args){.v = list->data + 1, .n = list->n - 1 - room};
}

enum { MOST_PARAMETERS = 8 };

/* Reads the next parameter of a signature. Returns false at the end. */
static bool next_parameter(const char **p, const char **name, size_t *n, bool *optional) {
    while (**p == ' ' || **p == ',' || **p == '/') ++*p;
    if (!**p) return false;
    *name = *p;
    while (**p && **p != ',' && **p != '=') ++*p;
    *n = (size_t)(*p - *name);
    *optional = **p == '=';
    if (*optional) ++*p;
    return true;
}

static _Noreturn void fail_extra(jinja_env *e, const jinja_python_row *row) {
    ggtok_jinja_fail(&e->arena, "'%s' got an unexpected argument", row->name);
}

/* Writes the arguments to v in the order of the signature. */
static void take_arguments(jinja_env *e, const jinja_python_row *row, const jinja_args *args,
                           jinja_value v[MOST_PARAMETERS]) {
    jinja_arena *mem = &e->arena;
    const char *p = row->signature, *name;
    size_t n;
    uint32_t n_used = 0, n_positional = 0, i = 0;
    bool optional;
    jinja_charge(mem, args->n / 2); /* each parameter may be searched for in all arguments */
    for (; next_parameter(&p, &name, &n, &optional); i++) {
        if (*name == '*') { /* takes the remaining arguments */
            jinja_list *rest = ggtok_jinja_list_new(mem, args->n);
            for (uint32_t k = n_positional; k < args->n; k++) {
                if (n == 1 && args->v[k].type == JINJA_KEYWORD) fail_extra(e, row);
                ggtok_jinja_list_push(mem, rest, args->v[k]);
            }
            v[i] = jinja_of_list(rest);
            return;
        }
        v[i] = jinja_absent();
        if (n_positional < args->n && args->v[n_positional].type != JINJA_KEYWORD) {
            v[i] = args->v[n_positional++];
            n_used++;
            continue;
        }
        bool named = !strchr(p, '/'); /* no slash follows, so the name may be used */
        for (uint32_t k = 0; named && k < args->n; k++) {
            if (args->v[k].type != JINJA_KEYWORD) continue;
            const jinja_keyword *keyword = args->v[k].as.keyword;
            if (keyword->name->n != n || memcmp(keyword->name->data, name, n)) continue;
            v[i] = keyword->value;
            n_used++;
        }
        if (v[i].type == JINJA_ABSENT && !optional) {
            ggtok_jinja_fail(mem, "'%s' is missing its argument '%.*s'", row->name, (int)n, name);
        }
    }
    if (n_used != args->n) fail_extra(e, row);
}

/* Calls a builtin. This counts as a nested call, since the arguments and the builtin take several
 * hundred bytes of stack. */
jinja_value ggtok_jinja_python_apply(jinja_env *e, const jinja_python_row *row, jinja_args *args) {
    jinja_value v[MOST_PARAMETERS];
    jinja_enter(&e->arena);
    take_arguments(e, row, args, v);
    jinja_value result = row->run(e, v);
    jinja_leave(&e->arena);
    return result;
}

/* ---- members ---- */

static jinja_value method_of(jinja_env *e, jinja_value object, const jinja_text *name) {
    jinja_charge(&e->arena, 4); /* the cost of searching about sixty names */
    for (size_t i = 0; i < ggtok_jinja_python_n_methods; i++) {
        const jinja_python_row *row = &ggtok_jinja_python_methods[i];
        if (!(row->types >> object.type & 1) || !ggtok_jinja_text_is(name, row->name)) continue;
        if (!row->run) { /* hidden by the sandbox; id 1 selects the error message */
            jinja_value v = jinja_undefined(NULL);
            v.id = 1;
            return v;
        }
        return ggtok_jinja_python_function(e, row, &object);
    }
    return jinja_absent();
}

jinja_value ggtok_jinja_own_attribute(jinja_env *e, jinja_value object, jinja_text *name) {
    if (object.type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, object);
    if (object.type == JINJA_NAMESPACE) {
        jinja_value *found = ggtok_jinja_dict_find(&e->arena, object.as.dict, jinja_of_text(name));
        return found ? *found : jinja_absent();
    }
    if (object.type == JINJA_OBJECT && object.as.object->kind == JINJA_SELF) return jinja_absent();
    if (object.type == JINJA_OBJECT && object.as.object->kind == JINJA_LOOP_CONTEXT) {
        jinja_value v = ggtok_jinja_loop_attribute(e, object.as.object, name);
        if (v.type != JINJA_ABSENT) return v;
    }
    if (object.type == JINJA_OBJECT && object.as.object->kind == JINJA_CYCLER &&
        ggtok_jinja_text_is(name, "current")) {
        return object.as.object->items->data[object.as.object->next];
    }
    if (object.type == JINJA_TUPLE && object.as.list->group) {
        if (ggtok_jinja_text_is(name, "grouper")) return object.as.list->data[0];
        if (ggtok_jinja_text_is(name, "list")) return object.as.list->data[1];
    }
    if (object.type == JINJA_FUNCTION && object.as.function->kind != JINJA_BUILTIN &&
        ggtok_jinja_text_is(name, "name")) {
        const char *own = object.as.function->name;
        return jinja_of_text(ggtok_jinja_text_copy(&e->arena, own, strlen(own), 0));
    }
    return method_of(e, object, name);
}

/* Evaluates object[key] as Python does. Returns JINJA_ABSENT where Python raises TypeError or
 * LookupError. */
static jinja_value own_item(jinja_env *e, jinja_value object, jinja_value key) {
    jinja_arena *mem = &e->arena;
    bool index = key.type == JINJA_INT || key.type == JINJA_BOOL;
    int64_t i = key.type == JINJA_INT ? key.as.i : key.type == JINJA_BOOL ? key.as.truth : 0;
    switch (object.type) {
    case JINJA_UNDEFINED: ggtok_jinja_fail_undefined(e, object);
    case JINJA_DICT: {
        if (!ggtok_jinja_python_hashable(mem, key)) return jinja_absent();
        jinja_value *found = ggtok_jinja_dict_find(mem, object.as.dict, key);
        return found ? *found : jinja_absent();
    }
    case JINJA_LIST:
    case JINJA_TUPLE:
        if (i < 0) i += object.as.list->n;
        return index && i >= 0 && i < object.as.list->n ? object.as.list->data[i] : jinja_absent();
    case JINJA_RANGE:
        if (i < 0) i += object.as.range->n;
        if (!index || i < 0 || i >= object.as.range->n) return jinja_absent();
        return jinja_int(jinja_range_at(object.as.range, i));
    case JINJA_STRING: {
        uint32_t n = ggtok_jinja_chars(mem, object.as.text);
        if (i < 0) i += n;
        if (!index || i < 0 || i >= n) return jinja_absent();
        size_t begin = ggtok_jinja_byte_of(mem, object.as.text, (uint64_t)i);
        size_t end = ggtok_jinja_byte_of(mem, object.as.text, (uint64_t)i + 1);
        return jinja_of_text(ggtok_jinja_text_cut(mem, object.as.text, begin, end));
    }
    default: return jinja_absent();
    }
}

jinja_value ggtok_jinja_getattr(jinja_env *e, jinja_value object, jinja_text *name) {
    jinja_value v = ggtok_jinja_own_attribute(e, object, name);
    if (v.type == JINJA_ABSENT) v = own_item(e, object, jinja_of_text(name));
    return v.type == JINJA_ABSENT ? jinja_undefined(name) : v;
}

jinja_value ggtok_jinja_getitem(jinja_env *e, jinja_value object, jinja_value key) {
    jinja_value v = own_item(e, object, key);
    if (v.type == JINJA_ABSENT && key.type == JINJA_STRING) {
        v = ggtok_jinja_own_attribute(e, object, key.as.text);
    }
    if (v.type != JINJA_ABSENT) return v;
    return jinja_undefined(key.type == JINJA_STRING ? key.as.text : NULL);
}

jinja_value ggtok_jinja_python_eval_attribute(jinja_env *e, const jinja_node *node) {
    jinja_value object = ggtok_jinja_eval(e, node->kids[0]);
    e->arena.at = node->pos;
    return ggtok_jinja_getattr(e, object, node->value.as.text);
}

jinja_value ggtok_jinja_python_eval_item(jinja_env *e, const jinja_node *node) {
    jinja_value object = ggtok_jinja_eval(e, node->kids[0]),
                key = ggtok_jinja_eval(e, node->kids[1]);
    e->arena.at = node->pos;
    return ggtok_jinja_getitem(e, object, key);
}

jinja_value ggtok_jinja_python_eval_slice(jinja_env *e, const jinja_node *node) {
    jinja_value object = ggtok_jinja_eval(e, node->kids[0]), bounds[3];
    for (int i = 0; i < 3; i++) {
        bounds[i] = node->kids[i + 1] ? ggtok_jinja_eval(e, node->kids[i + 1]) : jinja_none();
    }
    e->arena.at = node->pos;
    return ggtok_jinja_slice_of(e, object, bounds);
}

/* ---- calls, filters, tests ---- */

jinja_value ggtok_jinja_python_invoke(jinja_env *e, jinja_value function, jinja_args *args) {
    jinja_arena *mem = &e->arena;
    if (function.type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, function);
    if (function.type == JINJA_OBJECT) return ggtok_jinja_object_call(e, function.as.object, args);
    if (function.type != JINJA_FUNCTION) {
        ggtok_jinja_fail(mem, "'%s' object is not callable", ggtok_jinja_python_type(function));
    }
    const jinja_function *f = function.as.function;
    args->name = f->name;
    if (f->kind != JINJA_BUILTIN) return ggtok_jinja_macro_run(e, f, args);
    if (f->bound) {
        args->v--, args->n++;
        args->v[0] = f->self;
    }
    return ggtok_jinja_python_apply(e, f->row, args);
}

jinja_value ggtok_jinja_python_eval_call(jinja_env *e, const jinja_node *node) {
    jinja_value callee = ggtok_jinja_eval(e, node->kids[0]);
    jinja_args args = ggtok_jinja_python_arguments_of(e, node, 1, 0);
    e->arena.at = node->pos;
    return ggtok_jinja_python_invoke(e, callee, &args);
}

static _Noreturn void fail_unknown(jinja_env *e, const char *what, const jinja_text *name) {
    ggtok_jinja_fail(&e->arena, "no %s named '%.*s'", what, JINJA_SHOWN(name, 60));
}

const jinja_python_row *ggtok_jinja_python_filter_named(jinja_env *e, const jinja_text *name) {
    int32_t row =
        ggtok_jinja_python_row_of(ggtok_jinja_python_filters, ggtok_jinja_python_n_filters, name);
    if (row < 0) fail_unknown(e, "filter", name);
    return &ggtok_jinja_python_filters[row];
}

const jinja_python_row *ggtok_jinja_python_test_named(jinja_env *e, const jinja_text *name) {
    int32_t row =
        ggtok_jinja_python_row_of(ggtok_jinja_python_tests, ggtok_jinja_python_n_tests, name);
    if (row < 0) fail_unknown(e, "test", name);
    return &ggtok_jinja_python_tests[row];
}

jinja_value ggtok_jinja_python_eval_filter(jinja_env *e, const jinja_node *node, jinja_value v) {
    const jinja_symbol *symbol = &e->t->symbols[node->sym];
    jinja_args args = ggtok_jinja_python_arguments_of(e, node, 1, 0);
    e->arena.at = node->pos;
    args.v--, args.n++;
    args.v[0] = v;
    if (symbol->filter < 0) fail_unknown(e, "filter", symbol->name);
    return ggtok_jinja_python_apply(e, &ggtok_jinja_python_filters[symbol->filter], &args);
}

jinja_value ggtok_jinja_python_eval_test(jinja_env *e, const jinja_node *node) {
    const jinja_symbol *symbol = &e->t->symbols[node->sym];
    jinja_value v = ggtok_jinja_eval(e, node->kids[0]);
    jinja_args args = ggtok_jinja_python_arguments_of(e, node, 1, 0);
    e->arena.at = node->pos;
    args.v--, args.n++;
    args.v[0] = v;
    if (symbol->test < 0) fail_unknown(e, "test", symbol->name);
    jinja_value result =
        ggtok_jinja_python_apply(e, &ggtok_jinja_python_tests[symbol->test], &args);
    return node->flag ? jinja_bool(!ggtok_jinja_python_truth(e, result)) : result;
}

jinja_value ggtok_jinja_python_missing(jinja_env *e, const jinja_node *node) {
    return (void)e, (void)node, jinja_undefined(NULL);
}

jinja_value ggtok_jinja_python_eval_concat(jinja_env *e, const jinja_node *node) {
    jinja_value *v = jinja_alloc_n(&e->arena, node->n, sizeof *v);
    for (uint32_t i = 0; i < node->n; i++) v[i] = ggtok_jinja_eval(e, node->kids[i]);
    e->arena.at = node->pos;
    return jinja_of_text(ggtok_jinja_concat(e, v, node->n));
}
