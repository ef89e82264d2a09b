/* The parts of the interpreter that both dialects share. */
#include "jinja/core/env.h"

/* ---- output ---- */

void ggtok_jinja_write(jinja_env *e, const jinja_text *t) {
    if (!e->generating) {
        ggtok_jinja_builder_text(&e->out, t);
        return;
    }
    size_t count = jinja_text_count(t), begin = 0;
    for (size_t i = 0; i < count; i++) {
        size_t end = jinja_text_end(t, i);
        ggtok_jinja_builder_add(&e->out, t->data + begin, end - begin,
                                jinja_text_part_label(t, i) | JINJA_GENERATED);
        begin = end;
    }
}

jinja_mark ggtok_jinja_out_mark(const jinja_env *e) {
    return (jinja_mark){e->out.n, e->out.n_parts, e->n_printed};
}

void ggtok_jinja_out_reset(jinja_env *e, jinja_mark mark) {
    e->out.n = mark.n;
    e->out.n_parts = mark.n_parts;
    e->n_printed = mark.n_printed;
    /* Later output may have been merged into the last part. */
    if (mark.n_parts) e->out.parts[mark.n_parts - 1].end = (uint32_t)mark.n;
}

static void settle(jinja_env *e, jinja_mark mark) {
    if (e->rules->settle) e->rules->settle(e, mark);
}

jinja_text *ggtok_jinja_capture(jinja_env *e, const jinja_node *block, jinja_flow *flow) {
    jinja_mark mark = ggtok_jinja_out_mark(e);
    bool merge = e->out.merge;
    e->out.merge = false; /* otherwise, the block's output could extend a part before the mark */
    *flow = ggtok_jinja_exec(e, block);
    e->out.merge = merge;
    if (*flow != JINJA_NEXT) {
        ggtok_jinja_out_reset(e, mark);
        return NULL;
    }
    settle(e, mark);
    return ggtok_jinja_builder_take(&e->out, mark.n, mark.n_parts);
}

/* ---- expressions ---- */

bool ggtok_jinja_truth_of(jinja_env *e, const jinja_node *node) {
    return e->rules->truth(e, ggtok_jinja_eval(e, node));
}

static jinja_value eval_items(jinja_env *e, const jinja_node *node) {
    jinja_list *list = ggtok_jinja_list_new(&e->arena, node->n);
    for (uint32_t i = 0; i < node->n; i++) {
        jinja_value item = ggtok_jinja_eval(e, node->kids[i]);
        ggtok_jinja_list_push(&e->arena, list, item);
    }
    return node->kind == N_TUPLE ? jinja_of_tuple(list) : jinja_of_list(list);
}

static jinja_value eval_dict(jinja_env *e, const jinja_node *node) {
    jinja_dict *dict = ggtok_jinja_dict_new(&e->arena, node->n / 2);
    for (uint32_t i = 0; i < node->n; i += 2) {
        jinja_value key = ggtok_jinja_eval(e, node->kids[i]);
        jinja_value value = ggtok_jinja_eval(e, node->kids[i + 1]);
        e->rules->set_key(e, dict, key, value);
    }
    return jinja_of_dict(dict);
}

static jinja_value eval_binary(jinja_env *e, const jinja_node *node) {
    jinja_value left = ggtok_jinja_eval(e, node->kids[0]);
    for (uint32_t i = 1; i < node->n; i++) {
        jinja_value right = ggtok_jinja_eval(e, node->kids[i]);
        e->arena.at = node->kids[i]->pos;
        left = e->rules->binary(e, (jinja_operator)node->ops[i - 1], left, right);
    }
    return left;
}

static jinja_value eval_compare(jinja_env *e, const jinja_node *node) {
    jinja_value left = ggtok_jinja_eval(e, node->kids[0]), result = left;
    for (uint32_t i = 1; i < node->n; i++) {
        jinja_value right = ggtok_jinja_eval(e, node->kids[i]);
        e->arena.at = node->kids[i]->pos;
        result = e->rules->binary(e, (jinja_operator)node->ops[i - 1], left, right);
        if (i + 1 < node->n && !e->rules->truth(e, result)) break;
        left = right;
    }
    return result;
}

static jinja_value eval_logical(jinja_env *e, const jinja_node *node) {
    jinja_value value = ggtok_jinja_eval(e, node->kids[0]);
    for (uint32_t i = 1; i < node->n; i++) {
        if (e->rules->truth(e, value) == (node->kind == N_OR)) break;
        value = ggtok_jinja_eval(e, node->kids[i]);
    }
    return value;
}

static jinja_value eval_condition(jinja_env *e, const jinja_node *node) {
    for (;;) { /* a loop, so that chained conditions don't recurse */
        if (ggtok_jinja_truth_of(e, node->kids[0])) return ggtok_jinja_eval(e, node->kids[1]);
        if (!node->kids[2]) return e->rules->missing(e, node);
        if (node->kids[2]->kind != N_CONDITION) return ggtok_jinja_eval(e, node->kids[2]);
        node = node->kids[2];
    }
}

static jinja_value eval_keyword(jinja_env *e, const jinja_node *node) {
    if (node->flag) ggtok_jinja_fail(&e->arena, "the name of a keyword argument must be a name");
    jinja_keyword *keyword = jinja_alloc(&e->arena, sizeof *keyword);
    keyword->name = e->t->symbols[node->sym].name;
    keyword->value = ggtok_jinja_eval(e, node->kids[0]);
    return (jinja_value){.type = JINJA_KEYWORD, .as.keyword = keyword};
}

static jinja_value eval(jinja_env *e, const jinja_node *node) {
    switch (node->kind) {
    case N_LIST:
    case N_TUPLE: return eval_items(e, node);
    case N_DICT: return eval_dict(e, node);
    case N_BINARY: return eval_binary(e, node);
    case N_COMPARE: return eval_compare(e, node);
    case N_CONCAT: return e->rules->concat(e, node);
    case N_AND:
    case N_OR: return eval_logical(e, node);
    case N_NOT: return jinja_bool(!ggtok_jinja_truth_of(e, node->kids[0]));
    case N_NEGATIVE:
    case N_POSITIVE:
        return e->rules->sign(e, node->kind == N_NEGATIVE, ggtok_jinja_eval(e, node->kids[0]));
    case N_CONDITION: return eval_condition(e, node);
    case N_ATTRIBUTE: return e->rules->attribute(e, node);
    case N_ITEM: return e->rules->item(e, node);
    case N_SLICE: return e->rules->slice(e, node);
    case N_CALL: return e->rules->call(e, node);
    case N_FILTER: return e->rules->filter(e, node, ggtok_jinja_eval(e, node->kids[0]));
    case N_TEST: return e->rules->test(e, node);
    case N_KEYWORD: return eval_keyword(e, node);
    case N_BLANK: return jinja_undefined(NULL);
    case N_SPREAD:
        ggtok_jinja_fail(&e->arena, "llama.cpp's dialect doesn't support '*' before an argument");
    default: ggtok_jinja_fail(&e->arena, "not an expression");
    }
}

static JINJA_NOINLINE jinja_value eval_nested(jinja_env *e, const jinja_node *node) {
    jinja_enter(&e->arena);
    jinja_value v = eval(e, node);
    jinja_leave(&e->arena);
    return v;
}

/* Evaluates an expression. Half of all expressions are constants and names; these need no nested
 * call. */
jinja_value ggtok_jinja_eval(jinja_env *e, const jinja_node *node) {
    jinja_charge(&e->arena, 1);
    e->arena.at = node->pos;
    if (node->kind == N_NAME) return e->rules->name(e, node);
    if (node->kind != N_CONST) return eval_nested(e, node);
    return node->value.type == JINJA_INT ? node->value : jinja_new_id(e, node->value);
}

jinja_value ggtok_jinja_keyword_of(jinja_env *e, const jinja_args *a, const char *name, size_t n,
                                   jinja_value other) {
    jinja_charge(&e->arena, a->n / 4);
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->v[i].type != JINJA_KEYWORD) continue;
        const jinja_keyword *k = a->v[i].as.keyword;
        if (k->name->n == n && !memcmp(k->name->data, name, n)) return k->value;
    }
    return other;
}

/* ---- statements ---- */

enum { OPERANDS = 8 };

static bool is_sum(const jinja_env *e, const jinja_node *node) {
    bool sum = node->kind == N_BINARY && node->n <= OPERANDS;
    for (uint32_t i = 1; sum && i < node->n; i++) sum = node->ops[i - 1] == JINJA_ADD;
    return sum && e->t->dialect == JINJA_LLAMA_CPP;
}

/* Outputs a + b + c by writing the texts one after the other, without concatenating them. */
static JINJA_NOINLINE void output_sum(jinja_env *e, const jinja_node *node) {
    jinja_value v[OPERANDS];
    uint32_t texts = 0;
    jinja_charge(&e->arena, 1);
    jinja_enter(&e->arena);
    for (; texts < node->n; texts++) {
        v[texts] = ggtok_jinja_eval(e, node->kids[texts]);
        if (v[texts].type != JINJA_STRING) break;
    }
    if (texts == node->n) {
        for (uint32_t i = 0; i < texts; i++) ggtok_jinja_write(e, v[i].as.text);
    } else {
        jinja_value left = v[0];
        for (uint32_t i = 1; i < node->n; i++) {
            jinja_value right = i <= texts ? v[i] : ggtok_jinja_eval(e, node->kids[i]);
            e->arena.at = node->kids[i]->pos;
            left = e->rules->binary(e, JINJA_ADD, left, right);
        }
        e->rules->output(e, left);
    }
    jinja_leave(&e->arena);
}

static void exec_output(jinja_env *e, const jinja_node *node) {
    const jinja_node *shown = node->kids[0];
    if (is_sum(e, shown))
        output_sum(e, shown);
    else
        e->rules->output(e, ggtok_jinja_eval(e, shown));
}

static jinja_flow exec_block(jinja_env *e, const jinja_node *node) {
    for (uint32_t i = 0; i < node->n; i++) {
        jinja_flow flow = ggtok_jinja_exec(e, node->kids[i]);
        if (flow != JINJA_NEXT) return flow;
    }
    return JINJA_NEXT;
}

static jinja_flow exec_if(jinja_env *e, const jinja_node *node) {
    uint32_t i = 0;
    for (; i + 1 < node->n; i += 2) {
        if (ggtok_jinja_truth_of(e, node->kids[i])) break;
    }
    if (i >= node->n) return JINJA_NEXT;
    jinja_mark mark = ggtok_jinja_out_mark(e);
    jinja_flow flow = exec_block(e, node->kids[i + 1 < node->n ? i + 1 : i]);
    if (flow == JINJA_NEXT) settle(e, mark);
    return flow;
}

/* Opens a block's frame in transformers' dialect. Returns the enclosing frame. */
static struct jinja_frame *open_block(jinja_env *e, const jinja_node *node) {
    struct jinja_frame *outer = e->frame;
    if (node->plan) e->frame = e->rules->open_frame(e, node->plan, outer);
    return outer;
}

/* Applies a block's filters to v, the operand of the innermost filter. */
static jinja_value filter_chain(jinja_env *e, const jinja_node *node, jinja_value v) {
    jinja_enter(&e->arena);
    if (node->kids[0]) v = filter_chain(e, node->kids[0], v);
    v = e->rules->filter(e, node, v);
    jinja_leave(&e->arena);
    return v;
}

static jinja_flow exec_set_block(jinja_env *e, const jinja_node *node) {
    jinja_flow flow;
    struct jinja_frame *outer = open_block(e, node);
    jinja_text *text = ggtok_jinja_capture(e, node->kids[2], &flow);
    jinja_value value = jinja_of_text(text);
    if (flow == JINJA_NEXT) {
        value = jinja_new_id(e, value);
        if (node->kids[1]) value = filter_chain(e, node->kids[1], value);
    }
    e->frame = outer;
    if (flow != JINJA_NEXT) return flow;
    e->rules->set(e, node->kids[0], value);
    return JINJA_NEXT;
}

static jinja_flow exec_filter_block(jinja_env *e, const jinja_node *node) {
    jinja_flow flow;
    struct jinja_frame *outer = open_block(e, node);
    jinja_text *text = ggtok_jinja_capture(e, node->kids[1], &flow);
    if (flow == JINJA_NEXT) {
        jinja_value value = jinja_new_id(e, jinja_of_text(text));
        value = filter_chain(e, node->kids[0], value);
        if (node->plan && value.type != JINJA_STRING) { /* jinja2 doesn't convert the result */
            ggtok_jinja_fail(&e->arena, "a filter block must produce a string");
        }
        e->rules->output(e, value);
    }
    e->frame = outer;
    return flow;
}

static jinja_flow exec_generation(jinja_env *e, const jinja_node *node) {
    if (node->n) return e->rules->scope(e, node);
    if (node->flag)
        e->generating++;
    else if (e->generating)
        e->generating--;
    return JINJA_NEXT;
}

jinja_flow ggtok_jinja_exec(jinja_env *e, const jinja_node *node) {
    jinja_flow flow = JINJA_NEXT;
    jinja_charge(&e->arena, 1);
    jinja_enter(&e->arena);
    e->arena.at = node->pos;
    switch (node->kind) {
    case N_BLOCK: flow = exec_block(e, node); break;
    case N_TEXT: ggtok_jinja_write(e, node->value.as.text); break;
    case N_OUTPUT: exec_output(e, node); break;
    case N_IF: flow = exec_if(e, node); break;
    case N_FOR: flow = e->rules->loop(e, node); break;
    case N_SET: e->rules->set(e, node->kids[0], ggtok_jinja_eval(e, node->kids[1])); break;
    case N_SET_BLOCK: flow = exec_set_block(e, node); break;
    case N_MACRO: e->rules->macro(e, node); break;
    case N_CALL_BLOCK: e->rules->call_block(e, node); break;
    case N_FILTER_BLOCK: flow = exec_filter_block(e, node); break;
    case N_WITH:
    case N_SCOPE: flow = e->rules->scope(e, node); break;
    case N_BREAK: flow = JINJA_BREAK; break;
    case N_CONTINUE: flow = JINJA_CONTINUE; break;
    case N_GENERATION: flow = exec_generation(e, node); break;
    default: ggtok_jinja_fail(&e->arena, "not a statement");
    }
    jinja_leave(&e->arena);
    return flow;
}
