/* llama.cpp's scopes, and the statements that set variables or open scopes. */
#include "jinja/llama/builtins.h"
#include "jinja/llama/scope.h"

/* ---- scopes ---- */

/* Initializes the variables: llama.cpp's constants (true, false, none) and the env's inputs. */
static void init_scopes(jinja_env *e) {
    jinja_arena *mem = &e->arena;
    jinja_scopes *s = &e->scopes;
    uint32_t n = e->t->n_symbols;
    *s = (jinja_scopes){.level = 1};
    s->values = jinja_alloc_n(mem, n, sizeof *s->values);
    s->levels = jinja_alloc_n(mem, n, sizeof *s->levels);
    jinja_charge(mem, n / 4);
    for (uint32_t i = 0; i < n; i++) {
        s->values[i] = jinja_absent();
        s->levels[i] = 1; /* the outermost scope has nothing to restore */
    }
    s->values[SYM_TRUE] = s->values[SYM_TRUE2] = jinja_bool(true);
    s->values[SYM_FALSE] = s->values[SYM_FALSE2] = jinja_bool(false);
    s->values[SYM_NONE] = s->values[SYM_NONE2] = jinja_none();
    for (uint32_t i = 0; i < e->inputs->n; i++) {
        const jinja_entry *input = &e->inputs->entries[i];
        jinja_value *sym = ggtok_jinja_dict_find(mem, e->t->names, input->key);
        if (sym) s->values[sym->as.i] = input->value;
    }
}

void ggtok_jinja_llama_render(jinja_env *e) {
    init_scopes(e);
    jinja_mark start = ggtok_jinja_out_mark(e);
    if (ggtok_jinja_exec(e, e->t->root) != JINJA_NEXT) {
        ggtok_jinja_fail(&e->arena, "break or continue outside a loop");
    }
    ggtok_jinja_llama_settle(e, start);
}

void ggtok_jinja_scope_set(jinja_env *e, uint32_t sym, jinja_value v) {
    jinja_scopes *s = &e->scopes;
    if (s->levels[sym] != s->level) {
        if (s->n_saved == s->cap_saved) {
            size_t cap = 2 * s->cap_saved + 32;
            jinja_saved *saved = jinja_alloc_n(&e->arena, cap, sizeof *saved);
            if (s->n_saved) memcpy(saved, s->saved, s->n_saved * sizeof *saved);
            s->saved = saved;
            s->cap_saved = cap;
        }
        s->saved[s->n_saved++] = (jinja_saved){sym, s->levels[sym], s->values[sym]};
        s->levels[sym] = s->level;
    }
    s->values[sym] = v;
}

size_t ggtok_jinja_scope_open(jinja_env *e) {
    e->scopes.level++;
    return e->scopes.n_saved;
}

void ggtok_jinja_scope_close(jinja_env *e, size_t opened) {
    jinja_scopes *s = &e->scopes;
    while (s->n_saved > opened) {
        const jinja_saved *saved = &s->saved[--s->n_saved];
        s->values[saved->sym] = saved->value;
        s->levels[saved->sym] = saved->level;
    }
    s->level--;
}

/* ---- {% set %} ---- */

static void check_count(jinja_env *e, const jinja_node *targets, const jinja_list *items) {
    if (items->n != targets->n) {
        ggtok_jinja_fail(&e->arena, "can't unpack %u values into %u names", items->n, targets->n);
    }
}

static void set_names(jinja_env *e, const jinja_node *targets, const jinja_list *items) {
    for (uint32_t i = 0; i < targets->n; i++) {
        if (targets->kids[i]->kind != N_NAME) {
            ggtok_jinja_fail(&e->arena, "can only unpack into names");
        }
        ggtok_jinja_scope_set(e, targets->kids[i]->sym, items->data[i]);
    }
}

void ggtok_jinja_llama_set(jinja_env *e, const jinja_node *target, jinja_value value) {
    jinja_arena *mem = &e->arena;
    mem->at = target->pos;
    if (target->kind == N_NAME) {
        ggtok_jinja_scope_set(e, target->sym, value);
    } else if (target->kind == N_TUPLE) {
        if (!jinja_is_array(value)) {
            ggtok_jinja_fail(mem, "can't unpack %s", ggtok_jinja_type_name(value));
        }
        check_count(e, target, value.as.list);
        set_names(e, target, value.as.list);
    } else if (target->kind == N_ATTRIBUTE && !target->flag) {
        jinja_value object = ggtok_jinja_eval(e, target->kids[0]);
        if (object.type != JINJA_DICT && object.type != JINJA_LOOP) {
            ggtok_jinja_fail(mem, "%s has no fields to set", ggtok_jinja_type_name(object));
        }
        if (object.type == JINJA_LOOP) ggtok_jinja_loop_fill(mem, object.as.dict);
        ggtok_jinja_llama_insert(e, object.as.dict, target->value, value);
    } else {
        ggtok_jinja_fail(mem, "can only assign to a name, names or a field");
    }
}

/* ---- {% for %} ---- */

/* Returns the items of a list, or the keys of a dict (its pairs for several targets). */
static jinja_list *loop_items(jinja_env *e, const jinja_node *node) {
    jinja_arena *mem = &e->arena;
    jinja_value v = ggtok_jinja_eval(e, node->kids[1]);
    mem->at = node->pos;
    jinja_note_value(e, v, JINJA_NOTE_USED | JINJA_NOTE_ARRAY_ACCESS);
    bool is_dict = v.type == JINJA_DICT || v.type == JINJA_LOOP;
    if (v.type == JINJA_UNDEFINED) return ggtok_jinja_list_new(mem, 0);
    if (!is_dict && !jinja_is_array(v)) {
        ggtok_jinja_fail(mem, "can't loop over %s", ggtok_jinja_type_name(v));
    }
    if (!is_dict) { /* the loop's body may change the list: append adds items after ours, and pop
                       copies a list that is looped over */
        jinja_charge(mem, v.as.list->n / 4);
        v.as.list->looped_over = true;
        jinja_list *items = ggtok_jinja_list_new(mem, 0);
        items->data = v.as.list->data;
        items->n = v.as.list->n;
        return items;
    }
    jinja_note_value(e, v, JINJA_NOTE_OBJECT_ACCESS);
    if (v.type == JINJA_LOOP) ggtok_jinja_loop_fill(mem, v.as.dict);
    jinja_list *items = ggtok_jinja_list_new(mem, v.as.dict->n);
    bool names = node->kids[0]->kind == N_NAME;
    for (uint32_t i = 0; i < v.as.dict->n; i++) {
        jinja_value item = v.as.dict->entries[i].key;
        jinja_charge(mem, 1);
        if (!names) {
            jinja_list *pair = ggtok_jinja_list_new(mem, 2);
            ggtok_jinja_list_push(mem, pair, item);
            ggtok_jinja_list_push(mem, pair, v.as.dict->entries[i].value);
            item = jinja_of_tuple(pair);
        }
        ggtok_jinja_list_push(mem, items, item);
    }
    return items;
}

static void set_target(jinja_env *e, const jinja_node *target, jinja_value item) {
    if (target->kind == N_NAME)
        ggtok_jinja_scope_set(e, target->sym, item);
    else
        set_names(e, target, item.as.list);
}

/* Returns the items that satisfy the loop's condition. Before the first iteration, the condition is
 * evaluated for all items, and each item must match the targets. */
static jinja_list *select_items(jinja_env *e, const jinja_node *node, jinja_list *items) {
    const jinja_node *target = node->kids[0], *condition = node->kids[2];
    jinja_list *kept = condition ? ggtok_jinja_list_new(&e->arena, 0) : items;
    if (target->kind == N_NAME && !condition) return items;
    for (uint32_t i = 0; i < items->n; i++) {
        jinja_value item = items->data[i];
        jinja_charge(&e->arena, 1);
        if (target->kind == N_TUPLE) {
            if (!jinja_is_array(item)) {
                ggtok_jinja_fail(&e->arena, "can't unpack %s", ggtok_jinja_type_name(item));
            }
            check_count(e, target, item.as.list);
        } else if (target->kind != N_NAME) {
            ggtok_jinja_fail(&e->arena, "the target of a loop must be a name or names");
        }
        if (!condition) continue;
        size_t opened = ggtok_jinja_scope_open(e);
        set_target(e, target, item);
        bool holds = ggtok_jinja_llama_truth(e, ggtok_jinja_eval(e, condition));
        ggtok_jinja_scope_close(e, opened);
        if (holds) ggtok_jinja_list_push(&e->arena, kept, item);
    }
    return kept;
}

static jinja_text no_previous = {.data = (const uint8_t *)"previtem", .n = 8},
                  no_next = {.data = (const uint8_t *)"nextitem", .n = 8};

static jinja_value new_loop(jinja_env *e, const jinja_list *items, uint32_t i) {
    jinja_loop *loop = jinja_alloc(&e->arena, sizeof *loop);
    *loop = (jinja_loop){.index0 = i, .n = items->n};
    loop->previous = i ? items->data[i - 1] : jinja_undefined(&no_previous);
    loop->next = i + 1 < items->n ? items->data[i + 1] : jinja_undefined(&no_next);
    return (jinja_value){.type = JINJA_LOOP, .as.dict = &loop->dict};
}

/* Runs an iteration of a loop. Sets *mark to the beginning of the last statement's output, which a
 * jump out of that statement discards. */
static jinja_flow run_round(jinja_env *e, const jinja_node *body, jinja_mark *mark) {
    for (uint32_t i = 0; i < body->n; i++) {
        *mark = ggtok_jinja_out_mark(e);
        jinja_flow flow = ggtok_jinja_exec(e, body->kids[i]);
        if (flow != JINJA_NEXT) return flow;
    }
    return JINJA_NEXT;
}

/* Like run_round, for templates whose macros may jump out of the loop that calls them. */
static jinja_flow run_round_guarded(jinja_env *e, const jinja_node *body, jinja_mark *mark,
                                    jmp_buf *here) {
    jmp_buf *const outer = e->loop;
    jinja_enter(&e->arena);
    const uint32_t depth = e->arena.depth, level = e->scopes.level, generating = e->generating;
    const size_t n_saved = e->scopes.n_saved;
    volatile jinja_flow flow;
    e->loop = here;
    if (setjmp(*here) == 0) {
        flow = run_round(e, body, mark);
    } else {
        flow = (jinja_flow)e->jump;
        while (e->scopes.level > level) { /* close the scopes opened since then */
            size_t opened = n_saved;
            ggtok_jinja_scope_close(e, opened);
        }
        e->scopes.level = level;
        e->arena.depth = depth;
        e->generating = generating;
        e->out.merge = false;
    }
    e->loop = outer;
    jinja_leave(&e->arena);
    return flow;
}

jinja_flow ggtok_jinja_llama_loop(jinja_env *e, const jinja_node *node) {
    jinja_mark whole = ggtok_jinja_out_mark(e), mark = whole;
    size_t opened = ggtok_jinja_scope_open(e);
    bool ran = false;
    jinja_list *items = select_items(e, node, loop_items(e, node));
    const jinja_node *body = node->kids[3];
    /* In the arena, because a jmp_buf is large and nested loops could exhaust the stack. */
    jmp_buf *here = e->t->wild_jumps ? jinja_alloc(&e->arena, sizeof *here) : NULL;
    for (uint32_t i = 0; i < items->n; i++) {
        jinja_charge(&e->arena, 2);
        ggtok_jinja_scope_set(e, SYM_LOOP, new_loop(e, items, i));
        set_target(e, node->kids[0], items->data[i]);
        jinja_flow flow =
            here ? run_round_guarded(e, body, &mark, here) : run_round(e, body, &mark);
        if (flow != JINJA_NEXT) ggtok_jinja_out_reset(e, mark);
        if (flow == JINJA_BREAK) break;
        if (flow == JINJA_NEXT) ran = true; /* an iteration that ends with a jump doesn't count */
    }
    ggtok_jinja_scope_close(e, opened);
    jinja_flow flow = JINJA_NEXT;
    if (!ran && node->kids[4]) flow = ggtok_jinja_exec(e, node->kids[4]);
    if (flow == JINJA_NEXT) ggtok_jinja_llama_settle(e, whole);
    return flow;
}

/* ---- macros and calls ---- */

static _Noreturn void fail_parameter(jinja_env *e, const char *name) {
    ggtok_jinja_fail(&e->arena, "'%s' has a parameter that is not a name", name);
}

/* Returns the values of the parameters kids[from..to) of a node. */
static jinja_value *bind(jinja_env *e, const jinja_node *node, uint32_t from, uint32_t to,
                         const jinja_args *args, const char *name) {
    jinja_value *values = jinja_alloc_n(&e->arena, to - from + 1, sizeof *values);
    for (uint32_t i = from; i < to; i++) {
        const jinja_node *parameter = node->kids[i];
        bool keyword = parameter->kind == N_KEYWORD;
        if (i - from < args->n) {
            if ((parameter->kind != N_NAME && !keyword) || (keyword && parameter->flag)) {
                fail_parameter(e, name);
            }
            const jinja_text *own = e->t->symbols[parameter->sym].name;
            values[i - from] = ggtok_jinja_args_named_text(e, args, own, i - from);
        } else {
            if (!keyword) ggtok_jinja_fail(&e->arena, "too few arguments for '%s'", name);
            if (parameter->flag) fail_parameter(e, name);
            values[i - from] = ggtok_jinja_eval(e, parameter->kids[0]);
        }
    }
    return values;
}

/* Runs a body and returns its text. A break or continue in the body applies to the loop around
 * the call. */
static jinja_value run_body(jinja_env *e, const jinja_node *body) {
    jinja_flow flow;
    jinja_text *text = ggtok_jinja_capture(e, body, &flow);
    if (flow != JINJA_NEXT) {
        if (!e->loop) ggtok_jinja_fail(&e->arena, "break or continue outside a loop");
        e->jump = flow;
        longjmp(*e->loop, 1);
    }
    return jinja_new_id(e, jinja_of_text(text));
}

static jinja_value run_macro(jinja_env *e, const jinja_function *f, const jinja_args *args) {
    const jinja_node *node = f->node;
    bool caller = f->kind == JINJA_CALLER;
    uint32_t from = caller ? 1 : 0, to = node->n - 1;
    jinja_value *values = bind(e, node, from, to, args, f->name);
    size_t opened = ggtok_jinja_scope_open(e);
    for (uint32_t i = from; i < to; i++) {
        ggtok_jinja_scope_set(e, node->kids[i]->sym, values[i - from]);
    }
    jinja_value text = run_body(e, node->kids[to]);
    ggtok_jinja_scope_close(e, opened);
    return text;
}

/* Runs a call block, which sees the variables as they were when the block was reached. */
static jinja_value run_caller(jinja_env *e, const jinja_function *f, const jinja_args *args) {
    jinja_arena *mem = &e->arena;
    const jinja_scopes outer = e->scopes;
    uint32_t n = e->t->n_symbols;
    const jinja_node *node = f->node;
    /* Defaults are evaluated with the variables of the calling macro. */
    jinja_value *values = bind(e, node, 1, node->n - 1, args, f->name);
    jinja_scopes own = {.level = 1};
    jinja_charge(mem, n);
    own.values = jinja_alloc_n(mem, n, sizeof *own.values);
    own.levels = jinja_alloc_n(mem, n, sizeof *own.levels);
    memcpy(own.values, f->snapshot, n * sizeof *own.values);
    for (uint32_t i = 0; i < n; i++) own.levels[i] = 1;
    jmp_buf *const loop = e->loop;
    e->scopes = own;
    for (uint32_t i = 1; i + 1 < node->n; i++) {
        ggtok_jinja_scope_set(e, node->kids[i]->sym, values[i - 1]);
    }
    jinja_value text;
    if (e->t->wild_jumps && loop) { /* restore the variables if the body jumps out */
        jmp_buf *here = jinja_alloc(mem, sizeof *here);
        e->loop = here;
        if (setjmp(*here)) {
            e->loop = loop;
            e->scopes = outer;
            longjmp(*loop, 1);
        }
        text = run_body(e, node->kids[node->n - 1]);
        e->loop = loop;
    } else {
        text = run_body(e, node->kids[node->n - 1]);
    }
    uint32_t level = outer.level;
    e->scopes = outer;
    e->scopes.level = level;
    return text;
}

jinja_value ggtok_jinja_llama_invoke(jinja_env *e, jinja_value function, jinja_args *args) {
    if (function.type != JINJA_FUNCTION) {
        ggtok_jinja_fail(&e->arena, "%s can't be called", ggtok_jinja_type_name(function));
    }
    const jinja_function *f = function.as.function;
    args->name = f->name;
    if (f->kind != JINJA_BUILTIN) {
        jinja_enter(&e->arena);
        jinja_value text = f->kind == JINJA_MACRO ? run_macro(e, f, args) : run_caller(e, f, args);
        jinja_leave(&e->arena);
        return text;
    }
    const jinja_llama_row *row = f->row;
    if (row->unsupported)
        ggtok_jinja_fail(&e->arena, "llama.cpp's dialect doesn't support %s", row->unsupported);
    if (f->bound) {
        args->v--, args->n++; /* callers leave room before the arguments */
        args->v[0] = f->self;
    }
    return f->builtin(e, args);
}

static const char *name_of(jinja_env *e, uint32_t sym) {
    const jinja_text *text = e->t->symbols[sym].name;
    char *name = jinja_alloc(&e->arena, (size_t)text->n + 1);
    memcpy(name, text->data, text->n);
    name[text->n] = 0;
    return name;
}

static jinja_value new_macro(jinja_env *e, jinja_function_kind kind, const jinja_node *node,
                             const char *name) {
    jinja_function *f = jinja_alloc(&e->arena, sizeof *f);
    *f = (jinja_function){.kind = kind, .name = name, .node = node};
    return jinja_new_id(e, (jinja_value){.type = JINJA_FUNCTION, .as.function = f});
}

void ggtok_jinja_llama_macro(jinja_env *e, const jinja_node *node) {
    if (node->flag) ggtok_jinja_fail(&e->arena, "a macro must have a name");
    ggtok_jinja_scope_set(e, node->sym, new_macro(e, JINJA_MACRO, node, name_of(e, node->sym)));
}

void ggtok_jinja_llama_call_block(jinja_env *e, const jinja_node *node) {
    jinja_arena *mem = &e->arena;
    const jinja_node *call = node->kids[0];
    jinja_value callee = ggtok_jinja_eval(e, call->kids[0]);
    if (callee.type != JINJA_FUNCTION) {
        ggtok_jinja_fail(mem, "%s can't be called", ggtok_jinja_type_name(callee));
    }
    jinja_value caller = new_macro(e, JINJA_CALLER, node, "caller");
    uint32_t n = e->t->n_symbols;
    jinja_charge(mem, n / 2);
    jinja_value *snapshot = jinja_alloc_n(mem, n, sizeof *snapshot);
    memcpy(snapshot, e->scopes.values, n * sizeof *snapshot);
    caller.as.function->snapshot = snapshot;
    jinja_args args = {.n = call->n - 1};
    args.v = jinja_alloc_n(mem, args.n + 1, sizeof *args.v);
    args.v++;
    for (uint32_t i = 0; i < args.n; i++) args.v[i] = ggtok_jinja_eval(e, call->kids[i + 1]);
    size_t opened = ggtok_jinja_scope_open(e);
    ggtok_jinja_scope_set(e, SYM_CALLER, caller);
    jinja_value text = ggtok_jinja_llama_invoke(e, callee, &args);
    ggtok_jinja_scope_close(e, opened);
    e->rules->output(e, text);
}
