/*
 * jinja2's scopes. A loop's body, a macro, a {% with %} and similar blocks open a frame. A name
 * that the frame sets is a new variable, which starts with the value of the enclosing variable with
 * that name. A name that no enclosing frame sets is an input of the template. Names are resolved
 * once, at compilation, by the order in which a frame's statements read and set them.
 */
#include "jinja/python/dialect.h"

typedef struct variable {
    uint32_t sym;
    uint8_t load;
    bool stored;
} variable;

typedef struct table {
    struct table *parent;
    variable *v;
    uint32_t n, cap;
    bool soft; /* inside an {% if %}, where unknown filters fail only when they run */
} table;

typedef struct planner {
    jinja_arena *mem;
    jinja_template *t;
    table *now;
    uint32_t loops; /* number of enclosing loops */
} planner;

static variable *find_own(planner *p, const table *t, uint32_t sym) {
    jinja_charge(p->mem, 1 + t->n / 8);
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->v[i].sym == sym) return &t->v[i];
    }
    return NULL;
}

static bool in_outer_frame(planner *p, const table *t, uint32_t sym) {
    for (t = t->parent; t; t = t->parent) {
        if (find_own(p, t, sym)) return true;
    }
    return false;
}

static variable *define(planner *p, table *t, uint32_t sym, jinja_load load) {
    variable *v = find_own(p, t, sym);
    if (!v) {
        if (t->n == t->cap) {
            uint32_t cap = 2 * t->cap + 8;
            variable *more = jinja_alloc_n(p->mem, cap, sizeof *more);
            if (t->n) memcpy(more, t->v, t->n * sizeof *more);
            t->v = more;
            t->cap = cap;
        }
        v = &t->v[t->n++];
        *v = (variable){.sym = sym};
    }
    v->load = (uint8_t)load;
    return v;
}

static void parameter(planner *p, uint32_t sym) {
    define(p, p->now, sym, LOAD_PARAMETER)->stored = true;
}

static void load(planner *p, uint32_t sym) {
    if (find_own(p, p->now, sym) || in_outer_frame(p, p->now, sym)) return;
    define(p, p->now, sym, LOAD_RESOLVE);
}

static void store(planner *p, uint32_t sym) {
    variable *v = find_own(p, p->now, sym);
    if (!v) {
        bool around = in_outer_frame(p, p->now, sym);
        v = define(p, p->now, sym, around ? LOAD_ALIAS : LOAD_MISSING);
    }
    v->stored = true;
}

/* ---- what a frame reads and sets ---- */

static void visit(planner *p, const jinja_node *node);

static void visit_target(planner *p, const jinja_node *target, bool as_parameter) {
    jinja_enter(p->mem);
    if (target->kind == N_NAME) {
        if (as_parameter)
            parameter(p, target->sym);
        else
            store(p, target->sym);
    } else if (target->kind == N_TUPLE) {
        for (uint32_t i = 0; i < target->n; i++) visit_target(p, target->kids[i], as_parameter);
    } else {
        visit(p, target);
    }
    jinja_leave(p->mem);
}

static table copy(planner *p, const table *t) {
    table own = *t;
    own.cap = own.n;
    own.v = jinja_alloc_n(p->mem, own.n + 1, sizeof *own.v);
    jinja_charge(p->mem, own.n / 4);
    if (own.n) memcpy(own.v, t->v, own.n * sizeof *own.v);
    return own;
}

static bool stored_in(planner *p, const table *t, uint32_t sym) {
    const variable *v = find_own(p, t, sym);
    return v && v->stored;
}

/* Merges the branches of an {% if %}. A variable that a branch sets, and that wasn't set before,
 * starts with the enclosing value. */
static void merge(planner *p, const table branches[3]) {
    table *t = p->now;
    const table before = copy(p, t);
    for (int b = 0; b < 3; b++) {
        for (uint32_t i = 0; i < branches[b].n; i++) {
            const variable *v = &branches[b].v[i];
            bool stored = v->stored || stored_in(p, t, v->sym);
            define(p, t, v->sym, (jinja_load)v->load)->stored = stored;
        }
    }
    for (uint32_t i = 0; i < t->n; i++) {
        variable *v = &t->v[i];
        if (!v->stored || stored_in(p, &before, v->sym)) continue;
        v->load = in_outer_frame(p, t, v->sym) ? LOAD_ALIAS : LOAD_RESOLVE;
    }
}

static void visit_if(planner *p, const jinja_node *node) {
    table *whole = p->now, branches[3];
    uint32_t n = node->n;
    visit(p, node->kids[0]);
    for (int b = 0; b < 3; b++) {
        branches[b] = copy(p, whole);
        p->now = &branches[b];
        if (b == 0) visit(p, node->kids[1]);
        for (uint32_t i = 2; b == 1 && i + 1 < n; i += 2) { /* each elif is like a nested if */
            table *outer = p->now, own[3];
            visit(p, node->kids[i]);
            for (int k = 0; k < 3; k++) {
                own[k] = copy(p, outer);
                p->now = &own[k];
                if (k == 0) visit(p, node->kids[i + 1]);
            }
            p->now = outer;
            merge(p, own);
        }
        if (b == 2 && n % 2) visit(p, node->kids[n - 1]);
    }
    p->now = whole;
    merge(p, branches);
}

static void visit(planner *p, const jinja_node *node) {
    if (!node) return;
    jinja_charge(p->mem, 1);
    jinja_enter(p->mem);
    switch (node->kind) {
    case N_NAME: load(p, node->sym); break;
    case N_FOR: visit(p, node->kids[1]); break;
    case N_IF: visit_if(p, node); break;
    case N_SET:
        visit(p, node->kids[1]);
        visit_target(p, node->kids[0], false);
        break;
    case N_SET_BLOCK: visit_target(p, node->kids[0], false); break;
    case N_MACRO: store(p, node->sym); break;
    case N_CALL_BLOCK:
    case N_FILTER_BLOCK: visit(p, node->kids[0]); break;
    case N_WITH:
        for (uint32_t i = 1; i + 1 < node->n; i += 2) visit(p, node->kids[i]);
        break;
    case N_GENERATION: break;
    default:
        for (uint32_t i = 0; i < node->n; i++) visit(p, node->kids[i]);
        break;
    }
    jinja_leave(p->mem);
}

/* Whether the i-th kid of a statement is a target or a parameter. */
static bool is_target(const jinja_node *node, uint32_t i) {
    switch (node->kind) {
    case N_FOR:
    case N_SET:
    case N_SET_BLOCK: return i == 0;
    case N_WITH: return i % 2 == 0 && i + 1 < node->n;
    case N_MACRO: return i + 1 < node->n;
    case N_CALL_BLOCK: return i && i + 1 < node->n;
    default: return false;
    }
}

static bool targets(planner *p, const jinja_node *target, uint32_t sym) {
    bool found = (target->kind == N_NAME || target->kind == N_KEYWORD) && target->sym == sym;
    jinja_charge(p->mem, 1);
    jinja_enter(p->mem);
    for (uint32_t i = 0; !found && target->kind == N_TUPLE && i < target->n; i++)
        found = targets(p, target->kids[i], sym);
    jinja_leave(p->mem);
    return found;
}

typedef enum use { UNUSED, READ, DECLARED } use;

/* Returns how a name is first used in a subtree, in the order in which jinja2 visits the nodes. */
static use first_use(planner *p, const jinja_node *node, uint32_t sym) {
    if (!node) return UNUSED;
    if (node->kind == N_NAME) return node->sym == sym ? READ : UNUSED;
    use found = UNUSED;
    jinja_charge(p->mem, 1);
    jinja_enter(p->mem);
    if (node->kind == N_CALL_BLOCK) found = first_use(p, node->kids[0], sym);
    for (uint32_t i = 0; !found && i < node->n; i++) {
        if (is_target(node, i) && targets(p, node->kids[i], sym)) found = DECLARED;
    }
    for (uint32_t i = 0; !found && i < node->n; i++) {
        const jinja_node *kid = node->kids[i];
        if (is_target(node, i)) kid = kid->kind == N_KEYWORD ? kid->kids[0] : NULL;
        found = first_use(p, kid, sym);
    }
    jinja_leave(p->mem);
    return found;
}

/* ---- plans ---- */

static void bind(planner *p, const jinja_node *node);

static uint32_t slot_of(planner *p, const table *t, uint32_t sym) {
    const variable *v = find_own(p, t, sym);
    return v ? (uint32_t)(v - t->v) : UINT32_MAX;
}

static jinja_frame_plan *make_frame_plan(planner *p) {
    const table *t = p->now;
    jinja_frame_plan *plan = jinja_alloc(p->mem, sizeof *plan);
    jinja_slot *slots = jinja_alloc_n(p->mem, t->n + 1, sizeof *slots);
    for (uint32_t i = 0; i < t->n; i++) {
        slots[i] = (jinja_slot){.sym = t->v[i].sym, .load = t->v[i].load};
        if (slots[i].load != LOAD_ALIAS) continue;
        uint32_t slot = UINT32_MAX;
        for (const table *around = t->parent; around; around = around->parent) {
            slots[i].up++;
            if ((slot = slot_of(p, around, t->v[i].sym)) != UINT32_MAX) break;
        }
        slots[i].slot = slot;
        if (slot == UINT32_MAX) slots[i].load = LOAD_RESOLVE;
    }
    *plan = (jinja_frame_plan){.slots = slots, .n = t->n};
    plan->loop = plan->self = plan->caller = plan->kwargs = plan->varargs = UINT32_MAX;
    return plan;
}

static void bind_name(planner *p, jinja_node *node) {
    uint16_t up = 0;
    for (const table *t = p->now; t; t = t->parent, up++) {
        uint32_t slot = slot_of(p, t, node->sym);
        if (slot == UINT32_MAX) continue;
        node->up = up;
        node->slot = slot;
        return;
    }
}

static void open_table(planner *p, table *t) {
    jinja_enter(p->mem);
    *t = (table){.parent = p->now};
    p->now = t;
}

static void close_table(planner *p) {
    p->now = p->now->parent;
    jinja_leave(p->mem);
}

/* Plans a frame for kids[from..n) of a node. */
static jinja_frame_plan *plan_body(planner *p, const jinja_node *node, uint32_t from, bool self) {
    table t;
    open_table(p, &t);
    if (self) parameter(p, SYM_SELF);
    for (uint32_t i = from; i < node->n; i++) visit(p, node->kids[i]);
    jinja_frame_plan *plan = make_frame_plan(p);
    if (self) plan->self = slot_of(p, &t, SYM_SELF);
    for (uint32_t i = from; i < node->n; i++) bind(p, node->kids[i]);
    close_table(p);
    return plan;
}

/* Plans the frame for a loop's body (kid 3, with `loop`) or its condition. */
static jinja_frame_plan *plan_round(planner *p, const jinja_node *node, uint32_t kid) {
    table t;
    open_table(p, &t);
    visit_target(p, node->kids[0], true);
    bool loop = kid == 3 && (node->flag || first_use(p, node->kids[3], SYM_LOOP) == READ);
    if (loop) parameter(p, SYM_LOOP);
    visit(p, node->kids[kid]);
    jinja_frame_plan *plan = make_frame_plan(p);
    if (loop) plan->loop = slot_of(p, p->now, SYM_LOOP);
    bind(p, node->kids[0]);
    bind(p, node->kids[kid]);
    close_table(p);
    return plan;
}

static void plan_loop(planner *p, jinja_node *node) {
    bind(p, node->kids[1]);
    jinja_frame_plan *plan = plan_round(p, node, 3);
    if (node->kids[2]) plan->test = plan_round(p, node, 2);
    if (node->kids[4]) {
        table t;
        open_table(p, &t);
        visit(p, node->kids[4]);
        plan->other = make_frame_plan(p);
        bind(p, node->kids[4]);
        close_table(p);
    }
    node->plan = plan;
}

/* Checks that a parameter named caller has a default, which calls without {% call %} need. */
static void check_caller(planner *p, const jinja_node *node, uint32_t from) {
    for (uint32_t i = from; i + 1 < node->n; i++) {
        jinja_charge(p->mem, 1);
        if (node->kids[i]->kind != N_NAME || node->kids[i]->sym != SYM_CALLER) continue;
        p->mem->at = node->pos;
        ggtok_jinja_fail(p->mem, "the parameter 'caller' needs a default");
    }
}

static void plan_macro(planner *p, jinja_node *node, uint32_t from) {
    static const char *const extras[] = {"caller", "kwargs", "varargs"};
    const jinja_node *body = node->kids[node->n - 1];
    uint32_t slots[3], n_parameters = node->n - 1 - from;
    table t;
    open_table(p, &t);
    for (uint32_t i = from; i + 1 < node->n; i++) parameter(p, node->kids[i]->sym);
    for (uint32_t i = from; i + 1 < node->n; i++) {
        if (node->kids[i]->kind == N_KEYWORD) visit(p, node->kids[i]->kids[0]);
    }
    visit(p, body);
    for (int k = 0; k < 3; k++) {
        uint32_t sym = ggtok_jinja_symbol_of(p->t, extras[k], strlen(extras[k]));
        variable *v = find_own(p, &t, sym);
        bool is_parameter = v && slot_of(p, &t, sym) < n_parameters;
        slots[k] = UINT32_MAX;
        if (first_use(p, body, sym) != READ) continue;
        if (is_parameter) {
            if (sym == SYM_CALLER) check_caller(p, node, from);
            continue;
        }
        parameter(p, sym);
        slots[k] = slot_of(p, &t, sym);
    }
    jinja_frame_plan *plan = make_frame_plan(p);
    plan->caller = slots[0], plan->kwargs = slots[1], plan->varargs = slots[2];
    for (uint32_t i = from; i + 1 < node->n; i++) {
        if (node->kids[i]->kind == N_KEYWORD) bind(p, node->kids[i]->kids[0]);
    }
    bind(p, body);
    close_table(p);
    node->plan = plan;
}

static void plan_with(planner *p, jinja_node *node) {
    table t;
    for (uint32_t i = 1; i + 1 < node->n; i += 2) bind(p, node->kids[i]);
    open_table(p, &t);
    for (uint32_t i = 0; i + 1 < node->n; i += 2) visit_target(p, node->kids[i], true);
    visit(p, node->kids[node->n - 1]);
    node->plan = make_frame_plan(p);
    for (uint32_t i = 0; i + 1 < node->n; i += 2) bind(p, node->kids[i]);
    bind(p, node->kids[node->n - 1]);
    close_table(p);
}

static void check_loop_name(planner *p, const jinja_node *target) {
    if (!p->loops || !targets(p, target, SYM_LOOP)) return;
    p->mem->at = target->pos;
    ggtok_jinja_fail(p->mem, "the name 'loop' can't be set in a loop");
}

static void check_named(planner *p, const jinja_node *node) {
    const jinja_symbol *symbol = &p->t->symbols[node->sym];
    bool filter = node->kind == N_FILTER;
    if (p->now->soft || (filter ? symbol->filter : symbol->test) >= 0) return;
    p->mem->at = node->pos;
    ggtok_jinja_fail(p->mem, "no %s named '%.*s'", filter ? "filter" : "test",
                     JINJA_SHOWN(symbol->name, 60));
}

/* Sets the frame and slot of each name in this frame, and plans the frames inside it. */
static void bind(planner *p, const jinja_node *fixed) {
    jinja_node *node = (jinja_node *)fixed; /* the tree isn't shared yet */
    if (!node) return;
    bool soft = p->now->soft;
    jinja_charge(p->mem, 1);
    jinja_enter(p->mem);
    switch (node->kind) {
    case N_NAME: bind_name(p, node); break;
    case N_FOR:
        p->loops++;
        check_loop_name(p, node->kids[0]);
        plan_loop(p, node);
        p->loops--;
        break;
    case N_SET_BLOCK:
        check_loop_name(p, node->kids[0]);
        bind(p, node->kids[0]);
        node->plan = plan_body(p, node, 1, false);
        break;
    case N_MACRO:
        bind_name(p, node);
        plan_macro(p, node, 0);
        break;
    case N_CALL_BLOCK:
        bind(p, node->kids[0]);
        plan_macro(p, node, 1);
        break;
    case N_FILTER_BLOCK:
    case N_GENERATION: node->plan = plan_body(p, node, 0, false); break;
    case N_WITH: plan_with(p, node); break;
    case N_IF:
    case N_CONDITION:
        p->now->soft = true;
        for (uint32_t i = 0; i < node->n; i++) bind(p, node->kids[i]);
        p->now->soft = soft;
        break;
    case N_FILTER:
    case N_TEST: check_named(p, node); /* fall through */
    default:
        if (node->kind == N_SET) check_loop_name(p, node->kids[0]);
        for (uint32_t i = 0; i < node->n; i++) bind(p, node->kids[i]);
        break;
    }
    jinja_leave(p->mem);
}

void ggtok_jinja_python_plan_scopes(jinja_template *t) {
    planner p = {.mem = &t->arena, .t = t};
    jinja_node *root = (jinja_node *)t->root;
    bool self = first_use(&p, root, SYM_SELF) == READ;
    root->plan = plan_body(&p, root, 0, self);
}

/* ---- frames ---- */

void ggtok_jinja_frame_reset(jinja_env *e, const jinja_frame_plan *plan, jinja_frame *frame) {
    jinja_charge(&e->arena, 1 + plan->n / 4);
    for (uint32_t i = 0; i < plan->n; i++) {
        const jinja_slot *slot = &plan->slots[i];
        jinja_value v = jinja_absent();
        if (slot->load == LOAD_RESOLVE) {
            v = e->scopes.values[slot->sym];
        } else if (slot->load == LOAD_ALIAS) {
            const jinja_frame *around = frame;
            for (uint16_t up = slot->up; up; up--) around = around->parent;
            v = around->values[slot->slot];
        }
        frame->values[i] = v;
    }
}

jinja_frame *ggtok_jinja_python_open_frame(jinja_env *e, const jinja_frame_plan *plan,
                                           jinja_frame *parent) {
    jinja_frame *frame = jinja_alloc(&e->arena, sizeof *frame);
    frame->parent = parent;
    frame->values = jinja_alloc_n(&e->arena, plan->n + 1, sizeof *frame->values);
    ggtok_jinja_frame_reset(e, plan, frame);
    return frame;
}
