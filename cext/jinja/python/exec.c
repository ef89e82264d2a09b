/* jinja2's statements that set variables or open frames. */
#include "jinja/python/dialect.h"

/* ---- names ---- */

static jinja_value *place_of(jinja_env *e, const jinja_node *name) {
    jinja_frame *frame = e->frame;
    for (uint16_t up = name->up; up; up--) frame = frame->parent;
    return &frame->values[name->slot];
}

jinja_value ggtok_jinja_python_name(jinja_env *e, const jinja_node *node) {
    jinja_value v = *place_of(e, node);
    return v.type == JINJA_ABSENT ? jinja_undefined(e->t->symbols[node->sym].name) : v;
}

void ggtok_jinja_check_field(jinja_arena *mem, const jinja_text *name) {
    if (!name->n || name->data[0] != '_') return;
    ggtok_jinja_fail(mem, "a field of a namespace can't begin with an underscore: '%.*s'",
                     JINJA_SHOWN(name, 60));
}

static jinja_value namespace_of(jinja_env *e, const jinja_node *field) {
    jinja_value object = ggtok_jinja_eval(e, field->kids[0]);
    if (object.type != JINJA_NAMESPACE)
        ggtok_jinja_fail(&e->arena, "can only set fields of a namespace");
    return object;
}

void ggtok_jinja_python_set(jinja_env *e, const jinja_node *target, jinja_value value) {
    jinja_arena *mem = &e->arena;
    if (target->kind == N_NAME) {
        *place_of(e, target) = value;
        return;
    }
    if (target->kind == N_ATTRIBUTE) {
        jinja_value object = namespace_of(e, target);
        ggtok_jinja_check_field(mem, target->value.as.text);
        ggtok_jinja_dict_set(mem, object.as.dict, target->value, value);
        return;
    }
    jinja_list *items = ggtok_jinja_items(e, value);
    mem->at = target->pos;
    if (items->n != target->n)
        ggtok_jinja_fail(mem, "can't unpack %u values into %u names", items->n, target->n);
    jinja_enter(mem);
    for (uint32_t i = 0; i < target->n; i++)
        ggtok_jinja_python_set(e, target->kids[i], items->data[i]);
    jinja_leave(mem);
}

/* Runs {% set %}. Before the first assignment, checks that every object whose field is set
 * is a namespace. */
static void set_targets(jinja_env *e, const jinja_node *target, jinja_value value) {
    JINJA_EACH(&e->arena, i, target->kind == N_TUPLE ? target->n : 0) {
        if (target->kids[i]->kind == N_ATTRIBUTE) namespace_of(e, target->kids[i]);
    }
    ggtok_jinja_python_set(e, target, value);
}

/* ---- loops ---- */

static bool next_item(jinja_env *e, jinja_object *loop, jinja_value *item) {
    jinja_charge(&e->arena, 1);
    if (loop->lazy) return ggtok_jinja_next(e, loop->items, item);
    if (loop->next == loop->items->n) return false;
    *item = loop->items->data[loop->next++];
    return true;
}

/* Returns the values that were assigned to a loop's target. If a loop has a condition, jinja2 loops
 * over these values instead of the items, so lists and (consumed) generators become tuples. */
static jinja_value value_of(jinja_env *e, const jinja_node *target) {
    if (target->kind == N_NAME) return *place_of(e, target);
    jinja_list *own = ggtok_jinja_list_new(&e->arena, target->n);
    jinja_enter(&e->arena);
    for (uint32_t i = 0; i < target->n; i++) {
        ggtok_jinja_list_push(&e->arena, own, value_of(e, target->kids[i]));
    }
    jinja_leave(&e->arena);
    return jinja_of_tuple(own);
}

/* Appends the next item that satisfies the condition to loop->kept. Returns false at the end. */
static bool fetch(jinja_env *e, jinja_object *loop) {
    const jinja_node *node = loop->node;
    if (loop->kept == loop->items) return false;
    for (jinja_value item; next_item(e, loop, &item);) {
        if (!loop->test) {
            ggtok_jinja_list_push(&e->arena, loop->kept, item);
            return true;
        }
        jinja_frame *outer = e->frame;
        e->frame = loop->test;
        ggtok_jinja_frame_reset(e, node->plan->test, loop->test);
        ggtok_jinja_python_set(e, node->kids[0], item);
        item = value_of(e, node->kids[0]);
        bool holds = ggtok_jinja_truth_of(e, node->kids[2]);
        e->frame = outer;
        if (!holds) continue;
        ggtok_jinja_list_push(&e->arena, loop->kept, item);
        return true;
    }
    return false;
}

static bool has(jinja_env *e, jinja_object *loop, uint32_t i) {
    bool more = true;
    jinja_enter(&e->arena); /* fetch evaluates the condition, which may call this again */
    while (more && loop->kept->n <= i) more = fetch(e, loop);
    jinja_leave(&e->arena);
    return more;
}

jinja_value ggtok_jinja_loop_attribute(jinja_env *e, jinja_object *loop, const jinja_text *name) {
    uint32_t i = loop->index0;
    if (ggtok_jinja_text_is(name, "index")) return jinja_int((int64_t)i + 1);
    if (ggtok_jinja_text_is(name, "index0")) return jinja_int(i);
    if (ggtok_jinja_text_is(name, "first")) return jinja_bool(i == 0);
    if (ggtok_jinja_text_is(name, "last")) return jinja_bool(!has(e, loop, i + 1));
    if (ggtok_jinja_text_is(name, "depth")) return jinja_int((int64_t)loop->depth0 + 1);
    if (ggtok_jinja_text_is(name, "depth0")) return jinja_int(loop->depth0);
    if (ggtok_jinja_text_is(name, "previtem")) {
        return i ? loop->kept->data[i - 1] : jinja_undefined(NULL);
    }
    if (ggtok_jinja_text_is(name, "nextitem")) {
        return has(e, loop, i + 1) ? loop->kept->data[i + 1] : jinja_undefined(NULL);
    }
    bool length = ggtok_jinja_text_is(name, "length"), from = ggtok_jinja_text_is(name, "revindex");
    if (!length && !from && !ggtok_jinja_text_is(name, "revindex0")) return jinja_absent();
    has(e, loop, UINT32_MAX - 1);
    int64_t n = loop->kept->n;
    return jinja_int(length ? n : from ? n - i : n - i - 1);
}

static jinja_flow run_loop(jinja_env *e, const jinja_node *node, jinja_value over,
                           uint32_t depth0) {
    jinja_arena *mem = &e->arena;
    bool lazy = ggtok_jinja_is_generator(over);
    jinja_list *items = lazy ? over.as.list : ggtok_jinja_items(e, over);
    jinja_frame *outer = e->frame;
    jinja_object *loop = jinja_alloc(mem, sizeof *loop);
    *loop = (jinja_object){.kind = JINJA_LOOP_CONTEXT, .items = items, .depth0 = depth0};
    loop->node = node;
    loop->frame = outer;
    loop->last = jinja_absent();
    loop->lazy = lazy;
    loop->kept = lazy || node->kids[2] ? ggtok_jinja_list_new(mem, 0) : items;
    if (node->kids[2]) {
        loop->test = ggtok_jinja_python_open_frame(e, node->plan->test, outer);
    }
    jinja_frame *frame = ggtok_jinja_python_open_frame(e, node->plan, outer);
    jinja_flow flow = JINJA_NEXT;
    bool ran = false;
    for (uint32_t i = 0; flow != JINJA_BREAK && has(e, loop, i); i++) {
        loop->index0 = i;
        if (i) ggtok_jinja_frame_reset(e, node->plan, frame);
        e->frame = frame;
        jinja_charge(mem, 2);
        ggtok_jinja_python_set(e, node->kids[0], loop->kept->data[i]);
        if (node->plan->loop != UINT32_MAX) {
            frame->values[node->plan->loop] =
                (jinja_value){.type = JINJA_OBJECT, .as.object = loop};
        }
        flow = ggtok_jinja_exec(e, node->kids[3]);
        if (flow == JINJA_NEXT) ran = true;
        e->frame = outer;
    }
    flow = JINJA_NEXT;
    if (!ran && node->kids[4]) {
        e->frame = ggtok_jinja_python_open_frame(e, node->plan->other, outer);
        flow = ggtok_jinja_exec(e, node->kids[4]);
        e->frame = outer;
    }
    return flow;
}

static jinja_flow exec_loop(jinja_env *e, const jinja_node *node) {
    jinja_value v = ggtok_jinja_eval(e, node->kids[1]);
    e->arena.at = node->pos;
    return run_loop(e, node, v, 0);
}

/* Runs loop(items) of a recursive loop and returns its output. */
jinja_value ggtok_jinja_loop_recurse(jinja_env *e, jinja_object *loop, jinja_value v) {
    jinja_frame *outer = e->frame;
    if (!loop->node->flag) ggtok_jinja_fail(&e->arena, "only a recursive loop can be called");
    jinja_mark mark = ggtok_jinja_out_mark(e);
    bool merge = e->out.merge;
    e->out.merge = false;
    jinja_enter(&e->arena);
    e->frame = loop->frame;
    run_loop(e, loop->node, v, loop->depth0 + 1);
    e->frame = outer;
    jinja_leave(&e->arena);
    e->out.merge = merge;
    return jinja_of_text(ggtok_jinja_builder_take(&e->out, mark.n, mark.n_parts));
}

/* ---- macros ---- */

static jinja_value new_macro(jinja_env *e, const jinja_node *node, jinja_function_kind kind,
                             const char *name) {
    jinja_function *f = jinja_alloc(&e->arena, sizeof *f);
    *f = (jinja_function){.kind = kind, .name = name, .node = node, .frame = e->frame};
    return (jinja_value){.type = JINJA_FUNCTION, .as.function = f};
}

static const char *c_name(jinja_env *e, const jinja_text *text) {
    char *name = jinja_alloc(&e->arena, (size_t)text->n + 1);
    memcpy(name, text->data, text->n);
    name[text->n] = 0;
    return name;
}

static void exec_macro(jinja_env *e, const jinja_node *node) {
    const char *name = c_name(e, e->t->symbols[node->sym].name);
    *place_of(e, node) = new_macro(e, node, JINJA_MACRO, name);
}

/* Sets varargs, kwargs and caller to the arguments that match no parameter. */
static void gather_rest(jinja_env *e, const jinja_function *f, const jinja_args *args,
                        uint32_t n_parameters, jinja_frame *frame, const bool *used) {
    jinja_arena *mem = &e->arena;
    const jinja_frame_plan *plan = f->node->plan;
    jinja_dict *kwargs = ggtok_jinja_dict_new(mem, 0);
    jinja_list *varargs = ggtok_jinja_list_new(mem, 0);
    if (plan->caller != UINT32_MAX) frame->values[plan->caller] = jinja_undefined(NULL);
    JINJA_EACH(mem, i, args->n) {
        if (used[i]) continue;
        if (args->v[i].type != JINJA_KEYWORD) {
            ggtok_jinja_list_push(mem, varargs, args->v[i]);
            continue;
        }
        const jinja_keyword *k = args->v[i].as.keyword;
        if (plan->caller != UINT32_MAX && ggtok_jinja_text_is(k->name, "caller")) {
            frame->values[plan->caller] = k->value;
        } else {
            ggtok_jinja_dict_set(mem, kwargs, jinja_of_text(k->name), k->value);
        }
    }
    if (plan->kwargs != UINT32_MAX)
        frame->values[plan->kwargs] = jinja_of_dict(kwargs);
    else if (kwargs->n) {
        ggtok_jinja_fail(mem, "the macro '%s' takes no keyword argument '%.*s'", f->name,
                         JINJA_SHOWN(kwargs->entries[0].key.as.text, 60));
    }
    if (plan->varargs != UINT32_MAX)
        frame->values[plan->varargs] = jinja_of_tuple(varargs);
    else if (varargs->n) {
        ggtok_jinja_fail(mem, "the macro '%s' takes not more than %u arguments", f->name,
                         n_parameters);
    }
}

jinja_value ggtok_jinja_macro_run(jinja_env *e, const jinja_function *f, const jinja_args *args) {
    jinja_arena *mem = &e->arena;
    const jinja_node *node = f->node;
    uint32_t from = f->kind == JINJA_CALLER ? 1 : 0, n = node->n - 1 - from;
    jinja_frame *outer = e->frame, *frame = ggtok_jinja_python_open_frame(e, node->plan, f->frame);
    bool *used = jinja_alloc(mem, args->n + 1);
    memset(used, 0, args->n + 1);
    jinja_enter(mem);
    uint32_t n_positional = 0;
    JINJA_EACH(mem, i, args->n) { /* positional arguments */
        if (args->v[i].type == JINJA_KEYWORD || n_positional >= n) continue;
        used[i] = true;
        frame->values[n_positional++] = args->v[i];
    }
    e->frame = frame;
    for (uint32_t i = n_positional; i < n; i++) { /* arguments by name */
        const jinja_text *name = e->t->symbols[node->kids[from + i]->sym].name;
        for (uint32_t k = 0; k < args->n; k++) {
            jinja_charge(mem, 1);
            if (args->v[k].type != JINJA_KEYWORD || used[k]) continue;
            if (!ggtok_jinja_text_equal(mem, args->v[k].as.keyword->name, name)) continue;
            frame->values[i] = args->v[k].as.keyword->value;
            used[k] = true;
        }
    }
    gather_rest(e, f, args, n, frame, used);
    for (uint32_t i = n_positional; i < n; i++) { /* defaults, which may use preceding parameters */
        const jinja_node *parameter = node->kids[from + i];
        if (frame->values[i].type != JINJA_ABSENT || parameter->kind != N_KEYWORD) continue;
        frame->values[i] = ggtok_jinja_eval(e, parameter->kids[0]);
    }
    jinja_flow flow;
    jinja_text *text = ggtok_jinja_capture(e, node->kids[node->n - 1], &flow);
    e->frame = outer;
    jinja_leave(mem);
    return jinja_of_text(text);
}

static void exec_call_block(jinja_env *e, const jinja_node *node) {
    jinja_arena *mem = &e->arena;
    const jinja_node *call = node->kids[0];
    jinja_value callee = ggtok_jinja_eval(e, call->kids[0]);
    jinja_keyword *caller = jinja_alloc(mem, sizeof *caller);
    caller->name = e->t->symbols[SYM_CALLER].name;
    caller->value = new_macro(e, node, JINJA_CALLER, "caller");
    jinja_args args = ggtok_jinja_python_arguments_of(e, call, 1, 1);
    args.v[args.n++] = (jinja_value){.type = JINJA_KEYWORD, .as.keyword = caller};
    e->arena.at = node->pos;
    e->rules->output(e, ggtok_jinja_python_invoke(e, callee, &args));
}

/* ---- {% with %}, {% generation %} ---- */

static jinja_flow exec_scope(jinja_env *e, const jinja_node *node) {
    jinja_frame *outer = e->frame;
    if (node->kind == N_GENERATION) {
        e->frame = ggtok_jinja_python_open_frame(e, node->plan, outer);
        e->generating++;
        jinja_flow flow = ggtok_jinja_exec(e, node->kids[0]);
        e->generating--;
        e->frame = outer;
        return flow;
    }
    uint32_t n = node->n / 2;
    jinja_value *values = jinja_alloc_n(&e->arena, n + 1, sizeof *values);
    for (uint32_t i = 0; i < n; i++) values[i] = ggtok_jinja_eval(e, node->kids[2 * i + 1]);
    e->frame = ggtok_jinja_python_open_frame(e, node->plan, outer);
    for (uint32_t i = 0; i < n; i++) ggtok_jinja_python_set(e, node->kids[2 * i], values[i]);
    jinja_flow flow = ggtok_jinja_exec(e, node->kids[node->n - 1]);
    e->frame = outer;
    return flow;
}

static void output(jinja_env *e, jinja_value v) {
    ggtok_jinja_write(e, ggtok_jinja_str(e, v));
}

/* ---- the whole template ---- */

static void render(jinja_env *e) {
    jinja_arena *mem = &e->arena;
    uint32_t n = e->t->n_symbols;
    e->out.merge = true;
    e->scopes = (jinja_scopes){.values = jinja_alloc_n(mem, n, sizeof(jinja_value))};
    for (uint32_t i = 0; i < n; i++) {
        int32_t row = e->t->symbols[i].global;
        e->scopes.values[i] =
            row < 0 ? jinja_absent()
                    : ggtok_jinja_python_function(e, &ggtok_jinja_python_globals[row], NULL);
    }
    for (uint32_t i = 0; i < e->inputs->n; i++) {
        jinja_value *sym = ggtok_jinja_dict_find(mem, e->t->names, e->inputs->entries[i].key);
        if (sym) e->scopes.values[sym->as.i] = e->inputs->entries[i].value;
    }
    const jinja_frame_plan *plan = e->t->root->plan;
    e->frame = ggtok_jinja_python_open_frame(e, plan, NULL);
    if (plan->self != UINT32_MAX) {
        jinja_object *self = jinja_alloc(mem, sizeof *self);
        *self = (jinja_object){.kind = JINJA_SELF};
        e->frame->values[plan->self] = (jinja_value){.type = JINJA_OBJECT, .as.object = self};
    }
    ggtok_jinja_exec(e, e->t->root);
}

const jinja_rules ggtok_jinja_python_rules = {
    .lex = ggtok_jinja_python_lex,
    .find_builtins = ggtok_jinja_python_find_builtins,
    .operand = ggtok_jinja_python_operand,
    .exponent = ggtok_jinja_python_operand,
    .printed = ggtok_jinja_python_printed,
    .statement = ggtok_jinja_python_statement,
    .plan_scopes = ggtok_jinja_python_plan_scopes,
    .render = render,
    .open_frame = ggtok_jinja_python_open_frame,
    .name = ggtok_jinja_python_name,
    .binary = ggtok_jinja_python_binary,
    .sign = ggtok_jinja_python_sign,
    .truth = ggtok_jinja_python_truth,
    .attribute = ggtok_jinja_python_eval_attribute,
    .item = ggtok_jinja_python_eval_item,
    .slice = ggtok_jinja_python_eval_slice,
    .call = ggtok_jinja_python_eval_call,
    .filter = ggtok_jinja_python_eval_filter,
    .test = ggtok_jinja_python_eval_test,
    .concat = ggtok_jinja_python_eval_concat,
    .missing = ggtok_jinja_python_missing,
    .set_key = ggtok_jinja_python_key,
    .output = output,
    .set = set_targets,
    .loop = exec_loop,
    .macro = exec_macro,
    .call_block = exec_call_block,
    .scope = exec_scope,
};
