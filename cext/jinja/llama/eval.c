/* llama.cpp's rules for names, operators, members and calls. */
#include "jinja/core/parser.h"
#include "jinja/llama/builtins.h"
#include "jinja/llama/scope.h"

#include <math.h>

static bool is_text(jinja_value v) {
    return v.type == JINJA_STRING;
}
static bool is_number(jinja_value v) {
    return v.type == JINJA_INT || v.type == JINJA_FLOAT;
}
static bool is_dict(jinja_value v) {
    return v.type == JINJA_DICT || v.type == JINJA_LOOP;
}
static bool is_nothing(jinja_value v) {
    return v.type == JINJA_NONE || v.type == JINJA_UNDEFINED;
}

static jinja_value new_function(jinja_env *e, const jinja_llama_row *row, const jinja_value *self) {
    jinja_function *f = jinja_alloc(&e->arena, sizeof *f);
    *f = (jinja_function){.kind = JINJA_BUILTIN, .name = row->name, .builtin = row->run};
    f->row = row;
    if (self) f->bound = true, f->self = *self;
    return jinja_new_id(e, (jinja_value){.type = JINJA_FUNCTION, .as.function = f});
}

static jinja_value eval_name(jinja_env *e, const jinja_node *node) {
    jinja_value v = jinja_scope_get(e, node->sym);
    const jinja_symbol *symbol = &e->t->symbols[node->sym];
    if (v.type != JINJA_UNDEFINED && v.type != JINJA_ABSENT) {
        jinja_note_value(e, v, JINJA_NOTE_USED);
        return v;
    }
    if (symbol->global >= 0)
        return new_function(e, &ggtok_jinja_llama_globals[symbol->global], NULL);
    return jinja_undefined(symbol->name);
}

/* ---- operators ---- */

static jinja_value arithmetic(jinja_env *e, jinja_operator op, jinja_value a, jinja_value b) {
    double x = ggtok_jinja_llama_float(e, a), y = ggtok_jinja_llama_float(e, b), result;
    bool floats = a.type == JINJA_FLOAT || b.type == JINJA_FLOAT;
    switch (op) {
    case JINJA_ADD: result = x + y; break;
    case JINJA_SUB: result = x - y; break;
    case JINJA_MUL: result = x * y; break;
    case JINJA_DIV: result = x / y, floats = true; break;
    case JINJA_MOD: jinja_charge(&e->arena, 8), result = fmod(x, y); break;
    case JINJA_LT: return jinja_bool(x < y);
    case JINJA_GT: return jinja_bool(x > y);
    case JINJA_LE: return jinja_bool(x <= y);
    case JINJA_GE: return jinja_bool(x >= y);
    default: return jinja_absent();
    }
    if (floats) return jinja_new_id(e, jinja_float(result));
    return jinja_int(ggtok_jinja_float_as_int(result));
}

static jinja_value concat(jinja_env *e, jinja_value a, jinja_value b) {
    jinja_text *x = ggtok_jinja_llama_text(e, a), *y = ggtok_jinja_llama_text(e, b);
    return jinja_new_id(e, jinja_of_text(ggtok_jinja_text_concat(&e->arena, x, y)));
}

static jinja_value repeat(jinja_env *e, const jinja_text *text, int64_t times) {
    jinja_arena *mem = &e->arena;
    if (times <= 0 || !text->n) return jinja_of_text(ggtok_jinja_text_of(mem, "", 0, 0));
    uint64_t parts = jinja_text_count(text);
    if ((uint64_t)times > mem->bytes_left / (text->n + 8 * parts)) {
        ggtok_jinja_fail(mem, "repeating the text exceeds the template's memory limit");
    }
    jinja_builder b = ggtok_jinja_builder_new(mem, (size_t)times * text->n);
    for (int64_t i = 0; i < times; i++) ggtok_jinja_builder_text(&b, text);
    return jinja_new_id(e, jinja_of_text(ggtok_jinja_builder_end(&b)));
}

static jinja_value add_lists(jinja_env *e, const jinja_list *a, const jinja_list *b) {
    jinja_charge(&e->arena, ((uint64_t)a->n + b->n) / 2);
    jinja_list *sum = ggtok_jinja_list_new(&e->arena, (size_t)a->n + b->n);
    for (uint32_t i = 0; i < a->n; i++) ggtok_jinja_list_push(&e->arena, sum, a->data[i]);
    for (uint32_t i = 0; i < b->n; i++) ggtok_jinja_list_push(&e->arena, sum, b->data[i]);
    return jinja_of_list(sum);
}

static const char *const operator_names[] = {"+",  "-",  "~", "*",  "/", "//", "%",  "**",
                                             "==", "!=", "<", "<=", ">", ">=", "in", "not in"};

static _Noreturn void fail_operands(jinja_env *e, jinja_operator op, jinja_value a, jinja_value b) {
    ggtok_jinja_fail(&e->arena, "operator '%s' doesn't take %s and %s", operator_names[op],
                     ggtok_jinja_type_name(a), ggtok_jinja_type_name(b));
}

static jinja_value eval_binary(jinja_env *e, jinja_operator op, jinja_value a, jinja_value b) {
    bool add = op == JINJA_ADD || op == JINJA_TILDE, in = op == JINJA_IN || op == JINJA_NOT_IN;
    bool found = op == JINJA_IN;
    if (op == JINJA_EQ || op == JINJA_NE) {
        return jinja_bool(ggtok_jinja_equal(&e->arena, a, b, JINJA_LLAMA_CPP) == (op == JINJA_EQ));
    }
    if (is_nothing(a) || is_nothing(b)) {
        bool undefined = a.type == JINJA_UNDEFINED || b.type == JINJA_UNDEFINED;
        if (in && b.type == JINJA_UNDEFINED) return jinja_bool(!found);
        if (in && !undefined && b.type != JINJA_NONE) {
            return jinja_bool(ggtok_jinja_llama_in(e, a, b) == found);
        }
        if (add && is_nothing(a) && is_text(b)) return jinja_new_id(e, b);
        if (add && is_nothing(b) && is_text(a)) return jinja_new_id(e, a);
        fail_operands(e, op, a, b);
    }
    if (is_number(a) && is_number(b)) {
        jinja_value v = arithmetic(e, op, a, b);
        if (v.type != JINJA_ABSENT) return v;
    }
    if (jinja_is_array(a) && jinja_is_array(b)) {
        if (op == JINJA_ADD) return add_lists(e, a.as.list, b.as.list);
    } else if (jinja_is_array(b)) {
        bool member = ggtok_jinja_llama_in(e, a, b);
        if (in) return jinja_bool(member == found);
    }
    if ((is_text(a) || is_text(b)) && add) return concat(e, a, b);
    if (op == JINJA_MUL && is_text(a) && b.type == JINJA_INT) return repeat(e, a.as.text, b.as.i);
    if (op == JINJA_MUL && is_text(b) && a.type == JINJA_INT) return repeat(e, b.as.text, a.as.i);
    if ((is_text(a) && is_text(b)) || is_dict(b)) {
        bool member = ggtok_jinja_llama_in(e, a, b);
        if (in) return jinja_bool(member == found);
    }
    fail_operands(e, op, a, b);
}

static jinja_value eval_sign(jinja_env *e, bool negative, jinja_value v) {
    if (!is_number(v)) {
        ggtok_jinja_fail(&e->arena, "a sign takes a number, not %s", ggtok_jinja_type_name(v));
    }
    if (!negative) return v;
    if (v.type == JINJA_INT) return jinja_int((int64_t)(0 - (uint64_t)v.as.i));
    return jinja_new_id(e, jinja_float(-v.as.f));
}

/* ---- members ---- */

/* Returns the builtin bound to the object, or undefined if `row` is NULL. */
static jinja_value try_builtin(jinja_env *e, const jinja_llama_row *row, jinja_value object,
                               jinja_text *name) {
    if (object.type == JINJA_FUNCTION || object.type == JINJA_KEYWORD) {
        ggtok_jinja_fail(&e->arena, "%s has no members", ggtok_jinja_type_name(object));
    }
    jinja_note_value(e, object, JINJA_NOTE_USED);
    if (e->notes && ggtok_jinja_text_is(name, "selectattr")) {
        jinja_note_value(e, object, JINJA_NOTE_SELECTATTR);
    }
    return row ? new_function(e, row, &object) : jinja_undefined(name);
}

/* llama.cpp's name for an undefined member, visible in printed lists. */
static jinja_text no_property = {.data = (const uint8_t *)"object_property",
                                 .n = 15,
                                 .n_chars = 15,
                                 .label = JINJA_FROM_TEMPLATE};

static jinja_value item_of_text(jinja_env *e, const jinja_text *text, int64_t i) {
    if (i < 0 || i >= (int64_t)text->n) return jinja_undefined(&no_property);
    return jinja_new_id(
        e, jinja_of_text(ggtok_jinja_text_cut(&e->arena, text, (size_t)i, (size_t)i + 1)));
}

static jinja_value item_of_list(const jinja_list *list, int64_t i) {
    if (i < 0) i += list->n;
    return i >= 0 && i < (int64_t)list->n ? list->data[i] : jinja_undefined(&no_property);
}

static void note_access(jinja_env *e, jinja_value object, jinja_value property, jinja_value v) {
    jinja_note_value(e, v, JINJA_NOTE_USED);
    jinja_note_value(e, property, JINJA_NOTE_USED);
    unsigned note = JINJA_NOTE_USED;
    if (is_dict(object) || is_text(property) || property.type == JINJA_FLOAT ||
        jinja_is_array(property) || property.type == JINJA_NONE) {
        note |= JINJA_NOTE_OBJECT_ACCESS;
    } else if (property.type == JINJA_INT || property.type == JINJA_BOOL) {
        note |= JINJA_NOTE_ARRAY_ACCESS;
    }
    jinja_note_value(e, object, note);
}

/* Evaluates object[property]. */
static jinja_value member(jinja_env *e, jinja_value object, jinja_value property) {
    jinja_arena *mem = &e->arena;
    jinja_value v = jinja_undefined(&no_property);
    if (object.type == JINJA_DICT && is_text(property) && !e->notes) { /* the usual case */
        const jinja_value *found = ggtok_jinja_dict_find(mem, object.as.dict, property);
        if (found && found->type != JINJA_UNDEFINED) return *found;
    }
    if (property.type == JINJA_UNDEFINED) return v;
    if (!is_text(property) && !ggtok_jinja_hashable(mem, property)) {
        ggtok_jinja_fail(mem, "%s can't be a key", ggtok_jinja_type_name(property));
    }
    if (object.type == JINJA_UNDEFINED) return v;
    if (is_dict(object)) {
        jinja_value *found = ggtok_jinja_llama_at(e, object, property);
        if (found) v = *found;
        if (v.type == JINJA_UNDEFINED) {
            jinja_text *key = ggtok_jinja_llama_text(e, property);
            v = try_builtin(e, ggtok_jinja_llama_find_text(key, object), object, key);
        }
    } else if (jinja_is_array(object) || is_text(object)) {
        if (property.type == JINJA_INT || property.type == JINJA_BOOL) {
            int64_t i = ggtok_jinja_llama_int(e, property);
            v = is_text(object) ? item_of_text(e, object.as.text, i)
                                : item_of_list(object.as.list, i);
        } else if (is_text(property)) {
            jinja_text *key = property.as.text;
            v = try_builtin(e, ggtok_jinja_llama_find_text(key, object), object, key);
        }
    } else {
        if (!is_text(property)) {
            ggtok_jinja_fail(mem, "%s has no items, and %s can't name a member",
                             ggtok_jinja_type_name(object), ggtok_jinja_type_name(property));
        }
        jinja_text *key = property.as.text;
        v = try_builtin(e, ggtok_jinja_llama_find_text(key, object), object, key);
    }
    if (e->notes) note_access(e, object, property, v);
    return v;
}

/* Gets the usual fields of `loop` without filling its dict. Returns false for other fields. */
static bool loop_field(const jinja_loop *loop, const jinja_text *name, jinja_value *v) {
    const char *s = (const char *)name->data;
    if (loop->filled) return false;
    switch (name->n) {
    case 4:
        if (!memcmp(s, "last", 4)) return *v = jinja_bool(loop->index0 + 1 == loop->n), true;
        return false;
    case 5:
        if (!memcmp(s, "first", 5)) return *v = jinja_bool(loop->index0 == 0), true;
        if (!memcmp(s, "index", 5)) return *v = jinja_int((int64_t)loop->index0 + 1), true;
        return false;
    case 6:
        if (!memcmp(s, "index0", 6)) return *v = jinja_int(loop->index0), true;
        if (!memcmp(s, "length", 6)) return *v = jinja_int(loop->n), true;
        return false;
    case 8:
        if (!memcmp(s, "nextitem", 8))
            *v = loop->next;
        else if (!memcmp(s, "previtem", 8))
            *v = loop->previous;
        else
            return false;
        return v->type != JINJA_UNDEFINED;
    default: return false;
    }
}

static jinja_value eval_attribute(jinja_env *e, const jinja_node *node) {
    jinja_value object = ggtok_jinja_eval(e, node->kids[0]), v;
    e->arena.at = node->pos;
    if (node->flag) ggtok_jinja_fail(&e->arena, "expected a name or a number after '.'");
    jinja_text *name = node->value.as.text;
    if (object.type == JINJA_LOOP && loop_field((jinja_loop *)object.as.dict, name, &v)) return v;
    const jinja_llama_row *row = ggtok_jinja_llama_member(e->t, node->sym, object);
    /* A builtin takes precedence over a key with that name. */
    if (row || e->notes || object.type == JINJA_FUNCTION || object.type == JINJA_KEYWORD) {
        v = try_builtin(e, row, object, name);
        if (row) return v;
    }
    return member(e, object, node->value);
}

static jinja_value eval_item(jinja_env *e, const jinja_node *node) {
    jinja_value object = ggtok_jinja_eval(e, node->kids[0]);
    e->arena.at = node->pos;
    if (node->flag) ggtok_jinja_fail(&e->arena, "a number after a dot can't be negative");
    return member(e, object, ggtok_jinja_eval(e, node->kids[1]));
}

static jinja_value eval_slice(jinja_env *e, const jinja_node *node) {
    jinja_value object = ggtok_jinja_eval(e, node->kids[0]), v[4] = {object};
    int64_t size = jinja_is_array(object) ? object.as.list->n
                   : is_text(object)      ? object.as.text->n
                                          : 0;
    v[3] = node->kids[3] ? ggtok_jinja_eval(e, node->kids[3]) : jinja_int(1);
    v[1] = node->kids[1]                        ? ggtok_jinja_eval(e, node->kids[1])
           : ggtok_jinja_llama_int(e, v[3]) < 0 ? jinja_int(size - 1)
                                                : jinja_int(0);
    v[2] = node->kids[2]                        ? ggtok_jinja_eval(e, node->kids[2])
           : ggtok_jinja_llama_int(e, v[3]) < 0 ? jinja_int(-1)
                                                : jinja_int(size);
    e->arena.at = node->pos;
    jinja_note_value(e, object, JINJA_NOTE_USED);
    jinja_args args = {"slice", v, 4};
    if (is_text(object)) return ggtok_jinja_text_slice(e, &args);
    if (jinja_is_array(object)) return ggtok_jinja_list_slice(e, &args);
    ggtok_jinja_fail(&e->arena, "%s can't be sliced", ggtok_jinja_type_name(object));
}

/* ---- calls, filters, tests ---- */

/* Evaluates the arguments kids[from..) of a node, leaving room for `self` before them. */
static jinja_args eval_arguments(jinja_env *e, const jinja_node *node, uint32_t from) {
    jinja_args args = {.n = node->n - from};
    args.v = jinja_alloc_n(&e->arena, args.n + 1, sizeof *args.v);
    args.v++;
    for (uint32_t i = 0; i < args.n; i++) args.v[i] = ggtok_jinja_eval(e, node->kids[from + i]);
    return args;
}

static jinja_value eval_call(jinja_env *e, const jinja_node *node) {
    jinja_args args = eval_arguments(e, node, 1);
    jinja_value callee = ggtok_jinja_eval(e, node->kids[0]);
    e->arena.at = node->pos;
    return ggtok_jinja_llama_invoke(e, callee, &args);
}

static jinja_value eval_filter(jinja_env *e, const jinja_node *node, jinja_value v) {
    static const char *const of_text[] = {"capitalize", "lower", "replace",  "strip",
                                          "title",      "upper", "wordcount"};
    jinja_arena *mem = &e->arena;
    mem->at = node->pos;
    if (node->flag & 2) ggtok_jinja_fail(mem, "expected the name of a filter after '|'");
    const jinja_symbol *symbol = &e->t->symbols[node->sym];
    const char *name = symbol->filter >= 0 ? ggtok_jinja_llama_builtins[symbol->filter].name : "";
    if (!(node->flag & 4) && v.type != JINJA_UNDEFINED && !is_text(v)) {
        for (size_t i = 0; i < sizeof of_text / sizeof of_text[0]; i++) {
            if (strcmp(name, of_text[i])) continue;
            v = jinja_new_id(e, jinja_of_text(ggtok_jinja_llama_text(e, v)));
            break;
        }
    }
    jinja_args args = eval_arguments(e, node, 1);
    mem->at = node->pos;
    if (v.type == JINJA_FUNCTION || v.type == JINJA_KEYWORD) {
        ggtok_jinja_fail(mem, "%s has no filters", ggtok_jinja_type_name(v));
    }
    jinja_note_value(e, v, JINJA_NOTE_USED);
    if (e->notes && !strcmp(name, "selectattr")) jinja_note_value(e, v, JINJA_NOTE_SELECTATTR);
    const jinja_llama_row *row = ggtok_jinja_llama_filter_row(e->t, node->sym, v);
    if (!row) {
        ggtok_jinja_fail(mem, "llama.cpp's dialect has no filter '%.*s' for %s",
                         JINJA_SHOWN(symbol->name, 60), ggtok_jinja_type_name(v));
    }
    args.v--, args.n++;
    args.v[0] = v;
    args.name = name;
    if (row->unsupported)
        ggtok_jinja_fail(mem, "llama.cpp's dialect doesn't support %s", row->unsupported);
    return row->run(e, &args);
}

static jinja_value eval_test(jinja_env *e, const jinja_node *node) {
    jinja_arena *mem = &e->arena;
    jinja_value v = ggtok_jinja_eval(e, node->kids[0]);
    mem->at = node->pos;
    if (node->flag & 2) ggtok_jinja_fail(mem, "expected the name of a test after 'is'");
    jinja_args args = eval_arguments(e, node, 1);
    mem->at = node->pos;
    const jinja_symbol *symbol = &e->t->symbols[node->sym];
    if (symbol->test < 0) {
        ggtok_jinja_fail(mem, "llama.cpp's dialect has no test '%.*s'",
                         JINJA_SHOWN(symbol->name, 60));
    }
    const jinja_llama_row *row = &ggtok_jinja_llama_globals[symbol->test];
    if (row->unsupported)
        ggtok_jinja_fail(mem, "llama.cpp's dialect doesn't support %s", row->unsupported);
    jinja_note_value(e, v, JINJA_NOTE_USED);
    if (e->notes && !strcmp(row->name, "test_is_string")) {
        jinja_note_value(e, v, JINJA_NOTE_IS_STRING);
    }
    args.v--, args.n++;
    args.v[0] = v;
    args.name = row->name;
    jinja_value result = row->run(e, &args);
    return node->flag & 1 ? jinja_bool(!ggtok_jinja_llama_truth(e, result)) : result;
}

static jinja_value eval_missing(jinja_env *e, const jinja_node *node) {
    return (void)e, (void)node, jinja_undefined(NULL);
}

/* ---- output ---- */

static void print(jinja_env *e, jinja_value v) {
    if (v.type == JINJA_STRING) {
        ggtok_jinja_write(e, v.as.text);
    } else if (is_number(v) || v.type == JINJA_BOOL) {
        ggtok_jinja_write(e, ggtok_jinja_llama_text(e, v));
    } else if (jinja_is_array(v)) {
        jinja_enter(&e->arena);
        for (uint32_t i = 0; i < v.as.list->n; i++) {
            jinja_charge(&e->arena, 1);
            print(e, v.as.list->data[i]);
        }
        jinja_leave(&e->arena);
    }
}

static void output(jinja_env *e, jinja_value v) {
    if (!jinja_is_array(v)) {
        print(e, v);
        return;
    }
    if (e->n_printed == e->cap_printed) {
        size_t cap = 2 * e->cap_printed + 8;
        jinja_printed *printed = jinja_alloc_n(&e->arena, cap, sizeof *printed);
        if (e->n_printed) memcpy(printed, e->printed, e->n_printed * sizeof *printed);
        e->printed = printed;
        e->cap_printed = cap;
    }
    e->printed[e->n_printed++] = (jinja_printed){e->out.n, e->out.n_parts, v};
}

void ggtok_jinja_llama_settle(jinja_env *e, jinja_mark mark) {
    if (e->n_printed == mark.n_printed) return;
    size_t first = mark.n_printed, last = e->n_printed, at = e->printed[first].n,
           part = e->printed[first].n_parts;
    jinja_text *tail = ggtok_jinja_builder_take(&e->out, at, part);
    e->n_printed = first;
    for (size_t i = first; i < last; i++) {
        print(e, e->printed[i].value);
        size_t end = i + 1 < last ? e->printed[i + 1].n : at + tail->n;
        size_t begin = e->printed[i].n;
        ggtok_jinja_builder_cut(&e->out, tail, begin - at, end - at);
    }
}

const jinja_rules ggtok_jinja_llama_rules = {
    .lex = ggtok_jinja_llama_lex,
    .find_builtins = ggtok_jinja_llama_find_builtins,
    .operand = ggtok_jinja_llama_operand,
    .printed = ggtok_jinja_parse_expression,
    .statement = ggtok_jinja_llama_statement,
    .render = ggtok_jinja_llama_render,
    .settle = ggtok_jinja_llama_settle,
    .name = eval_name,
    .binary = eval_binary,
    .sign = eval_sign,
    .truth = ggtok_jinja_llama_truth,
    .attribute = eval_attribute,
    .item = eval_item,
    .slice = eval_slice,
    .call = eval_call,
    .filter = eval_filter,
    .test = eval_test,
    .missing = eval_missing,
    .set_key = ggtok_jinja_llama_insert,
    .output = output,
    .set = ggtok_jinja_llama_set,
    .loop = ggtok_jinja_llama_loop,
    .macro = ggtok_jinja_llama_macro,
    .call_block = ggtok_jinja_llama_call_block,
};
