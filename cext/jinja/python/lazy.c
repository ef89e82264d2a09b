/*
 * jinja2's filters that are generators. Each item is computed when it is requested, so an unknown
 * filter name or a failing item is not an error if the item is never requested.
 */
#include "jinja/python/dialect.h"
#include "jinja/python/functions.h"

typedef enum generator { MAP, SELECT, UNIQUE, BATCH, SLICE } generator;

struct jinja_pull {
    generator kind;
    bool by_attribute, keep; /* for SELECT */
    bool begun, done;
    jinja_value v[4]; /* the filter's arguments */
    jinja_list *from; /* the source: a list of items, or a generator's list */
    bool lazy;        /* `from` belongs to a generator */
    uint32_t at;
    const jinja_list *path; /* the parsed attribute, or NULL */
    jinja_dict *seen;       /* for UNIQUE */
    bool cased;
    jinja_value other; /* for MAP: the default */
    bool by_name;
    const jinja_python_row *row; /* the filter or test, once it has been looked up */
};

bool ggtok_jinja_is_generator(jinja_value v) {
    return v.type == JINJA_LAZY && !v.as.list->view;
}

static jinja_value generate(jinja_env *e, generator kind, const jinja_value *v, uint32_t n) {
    jinja_list *list = ggtok_jinja_list_new(&e->arena, 0);
    list->pull = jinja_alloc(&e->arena, sizeof *list->pull);
    *list->pull = (jinja_pull){.kind = kind};
    for (uint32_t i = 0; i < n; i++) list->pull->v[i] = v[i];
    return ggtok_jinja_lazy(list);
}

/* ---- one item ---- */

static void open_source(jinja_env *e, jinja_pull *p) {
    p->lazy = ggtok_jinja_is_generator(p->v[0]);
    p->from = p->lazy ? p->v[0].as.list : ggtok_jinja_items(e, p->v[0]);
}

static bool next_of_source(jinja_env *e, jinja_pull *p, jinja_value *item) {
    jinja_charge(&e->arena, 1);
    if (p->lazy) return ggtok_jinja_next(e, p->from, item);
    if (p->at == p->from->n) return false;
    *item = p->from->data[p->at++];
    return true;
}

/* Begins map. v[1] contains its arguments: either an attribute and a default, or the name of a
 * filter and the filter's arguments. */
static void begin_map(jinja_env *e, jinja_pull *p) {
    jinja_arena *mem = &e->arena;
    jinja_args args = {"map", p->v[1].as.list->data, p->v[1].as.list->n};
    jinja_value attribute = jinja_keyword_named(e, &args, "attribute", jinja_absent());
    p->other = jinja_keyword_named(e, &args, "default", jinja_absent());
    p->by_name = args.n && args.v[0].type != JINJA_KEYWORD;
    if (!p->by_name && attribute.type == JINJA_ABSENT)
        ggtok_jinja_fail(mem, "map requires a filter argument");
    if (p->by_name && args.v[0].type != JINJA_STRING)
        ggtok_jinja_fail(mem, "map requires a filter's name");
    if (!p->by_name && args.n != 1u + (p->other.type != JINJA_ABSENT)) {
        ggtok_jinja_fail(mem, "map got an unexpected argument");
    }
    p->path = ggtok_jinja_path(e, attribute);
}

static bool next_mapped(jinja_env *e, jinja_pull *p, jinja_value *out) {
    jinja_arena *mem = &e->arena;
    const jinja_list *arguments = p->v[1].as.list;
    jinja_value item;
    if (!next_of_source(e, p, &item)) return false;
    if (!p->by_name) {
        *out = ggtok_jinja_attribute(e, item, p->path, p->other);
        return true;
    }
    jinja_value *own = jinja_alloc_n(mem, arguments->n + 1u, sizeof *own);
    memcpy(own + 1, arguments->data + 1, (arguments->n - 1u) * sizeof *own);
    own[0] = item;
    jinja_args args = {"map", own, arguments->n};
    if (!p->row) p->row = ggtok_jinja_python_filter_named(e, arguments->data[0].as.text);
    *out = ggtok_jinja_python_apply(e, p->row, &args);
    return true;
}

static void begin_select(jinja_env *e, jinja_pull *p) {
    jinja_list *arguments = p->v[1].as.list;
    uint32_t first = p->by_attribute;
    if (arguments->n > first && arguments->data[first].type == JINJA_KEYWORD)
        arguments->n = first; /* without a test, keyword arguments are ignored */
    if (arguments->n < first || (first && arguments->data[0].type == JINJA_KEYWORD))
        ggtok_jinja_fail(&e->arena, "Missing parameter for attribute name");
    if (arguments->n > first && arguments->data[first].type != JINJA_STRING)
        ggtok_jinja_fail(&e->arena, "a test's name must be a string");
    if (first) p->path = ggtok_jinja_path(e, arguments->data[0]);
}

static bool next_selected(jinja_env *e, jinja_pull *p, jinja_value *out) {
    const jinja_list *arguments = p->v[1].as.list;
    uint32_t first = p->by_attribute;
    while (next_of_source(e, p, out)) {
        jinja_value own = *out;
        own = ggtok_jinja_attribute(e, own, p->path, jinja_absent());
        bool holds;
        if (arguments->n > first) {
            uint32_t n = arguments->n - first;
            jinja_value *args = jinja_alloc_n(&e->arena, n + 1u, sizeof *args);
            memcpy(args + 1, arguments->data + first + 1, (n - 1u) * sizeof *args);
            args[0] = own;
            jinja_args all = {"select", args, n};
            if (!p->row) p->row = ggtok_jinja_python_test_named(e, arguments->data[first].as.text);
            holds = ggtok_jinja_python_truth(e, ggtok_jinja_python_apply(e, p->row, &all));
        } else {
            holds = ggtok_jinja_python_truth(e, own);
        }
        if (holds == p->keep) return true;
    }
    return false;
}

/* Implements unique. Arguments: value, case_sensitive, attribute. */
static bool next_unique(jinja_env *e, jinja_pull *p, jinja_value *out) {
    jinja_arena *mem = &e->arena;
    while (next_of_source(e, p, out)) {
        jinja_value key = ggtok_jinja_attribute(e, *out, p->path, jinja_absent());
        key = ggtok_jinja_folded(e, key, p->cased);
        if (!ggtok_jinja_python_hashable(mem, key)) {
            ggtok_jinja_fail(mem, "unhashable type: '%s'", ggtok_jinja_python_type(key));
        }
        if (ggtok_jinja_dict_find(mem, p->seen, key)) continue;
        ggtok_jinja_dict_set(mem, p->seen, key, jinja_none());
        return true;
    }
    return false;
}

static void begin(jinja_env *e, jinja_pull *p) {
    p->begun = true;
    switch (p->kind) {
    case BATCH: p->from = ggtok_jinja_batched(e, p->v); return;
    case SLICE: p->from = ggtok_jinja_sliced(e, p->v); return;
    case UNIQUE:
        p->seen = ggtok_jinja_dict_new(&e->arena, 0);
        p->path = ggtok_jinja_path(e, p->v[2]);
        p->cased = p->v[1].type != JINJA_ABSENT && ggtok_jinja_python_truth(e, p->v[1]);
        break;
    default: /* a false value yields nothing, even with invalid arguments */
        if (!(p->done = !ggtok_jinja_python_truth(e, p->v[0])))
            p->kind == MAP ? begin_map(e, p) : begin_select(e, p);
    }
    if (!p->done) open_source(e, p);
}

bool ggtok_jinja_next(jinja_env *e, jinja_list *list, jinja_value *out) {
    jinja_pull *p = list->pull;
    if (list->fault) ggtok_jinja_fail(&e->arena, "%s", list->fault);
    if (!p) {
        if (list->read == list->n) return false;
        *out = list->data[list->read++];
        return true;
    }
    jinja_enter(&e->arena); /* generators may nest */
    if (!p->begun) begin(e, p);
    bool found = !p->done;
    if (found) {
        found = p->kind == MAP      ? next_mapped(e, p, out)
                : p->kind == SELECT ? next_selected(e, p, out)
                : p->kind == UNIQUE ? next_unique(e, p, out)
                                    : next_of_source(e, p, out);
    }
    p->done = !found;
    jinja_leave(&e->arena);
    return found;
}

const char *ggtok_jinja_shown_generator(const jinja_list *list) {
    /* How Python prints generators, with a made-up address. */
    static const char *const shown[] = {
        "<generator object sync_do_map at 0x7f0000000000>",
        "<generator object select_or_reject at 0x7f0000000000>",
        "<generator object do_unique at 0x7f0000000000>",
        "<generator object do_batch at 0x7f0000000000>",
        "<generator object sync_do_slice at 0x7f0000000000>",
    };
    if (list->pull) return shown[list->pull->kind];
    return list->reversed ? "<list_reverseiterator object at 0x7f0000000000>"
                          : "<generator object do_items at 0x7f0000000000>";
}

/* ---- the filters ---- */

jinja_value ggtok_jinja_pf_map(jinja_env *e, jinja_value *v) {
    return generate(e, MAP, v, 2);
}

static jinja_value selection(jinja_env *e, jinja_value *v, bool by_attribute, bool keep) {
    jinja_value lazy = generate(e, SELECT, v, 2);
    lazy.as.list->pull->by_attribute = by_attribute;
    lazy.as.list->pull->keep = keep;
    return lazy;
}

jinja_value ggtok_jinja_pf_select(jinja_env *e, jinja_value *v) {
    return selection(e, v, false, true);
}
jinja_value ggtok_jinja_pf_reject(jinja_env *e, jinja_value *v) {
    return selection(e, v, false, false);
}
jinja_value ggtok_jinja_pf_selectattr(jinja_env *e, jinja_value *v) {
    return selection(e, v, true, true);
}
jinja_value ggtok_jinja_pf_rejectattr(jinja_env *e, jinja_value *v) {
    return selection(e, v, true, false);
}
jinja_value ggtok_jinja_pf_unique(jinja_env *e, jinja_value *v) {
    return generate(e, UNIQUE, v, 3);
}
jinja_value ggtok_jinja_pf_batch(jinja_env *e, jinja_value *v) {
    return generate(e, BATCH, v, 3);
}
jinja_value ggtok_jinja_pf_slice(jinja_env *e, jinja_value *v) {
    return generate(e, SLICE, v, 3);
}
