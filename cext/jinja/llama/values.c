/* llama.cpp's builtins for numbers, none and undefined, and its conversions to text. */
#include "jinja/core/number.h"
#include "jinja/llama/builtins.h"

static jinja_value new_string(jinja_env *e, const char *s, size_t n) {
    return jinja_new_id(e, jinja_of_text(ggtok_jinja_text_copy(&e->arena, s, n, 0)));
}

/* ---- numbers ---- */

jinja_value ggtok_jinja_number_abs(jinja_env *e, jinja_args *a) {
    jinja_value v = ggtok_jinja_args_at(e, a, 0);
    if (v.type == JINJA_FLOAT) {
        return jinja_new_id(e, jinja_float(v.as.f < 0 ? -v.as.f : v.as.f));
    }
    return jinja_int(v.as.i < 0 ? (int64_t)(0 - (uint64_t)v.as.i) : v.as.i);
}

jinja_value ggtok_jinja_number_int(jinja_env *e, jinja_args *a) {
    jinja_value v = ggtok_jinja_args_at(e, a, 0);
    return jinja_int(v.type == JINJA_FLOAT ? ggtok_jinja_float_as_int(v.as.f)
                                           : ggtok_jinja_llama_int(e, v));
}

jinja_value ggtok_jinja_number_float(jinja_env *e, jinja_args *a) {
    jinja_value v = ggtok_jinja_args_at(e, a, 0);
    double f = v.type == JINJA_FLOAT ? v.as.f : (double)ggtok_jinja_llama_int(e, v);
    return jinja_new_id(e, jinja_float(f));
}

/* ---- none, undefined and default ---- */

jinja_value ggtok_jinja_llama_empty_text(jinja_env *e, jinja_args *a) {
    return (void)a, new_string(e, "", 0);
}
jinja_value ggtok_jinja_llama_empty_list(jinja_env *e, jinja_args *a) {
    return (void)a, jinja_of_list(ggtok_jinja_list_new(&e->arena, 0));
}
jinja_value ggtok_jinja_llama_zero(jinja_env *e, jinja_args *a) {
    return (void)e, (void)a, jinja_int(0);
}
jinja_value ggtok_jinja_llama_undefined_value(jinja_env *e, jinja_args *a) {
    return (void)e, (void)a, jinja_undefined(NULL);
}

jinja_value ggtok_jinja_none_string(jinja_env *e, jinja_args *a) {
    return (void)a, new_string(e, "None", 4);
}

jinja_value ggtok_jinja_bool_string(jinja_env *e, jinja_args *a) {
    return ggtok_jinja_args_at(e, a, 0).as.truth ? new_string(e, "True", 4)
                                                 : new_string(e, "False", 5);
}

jinja_value ggtok_jinja_llama_default(jinja_env *e, jinja_args *a) {
    ggtok_jinja_args_count(e, a, 2, 3);
    jinja_value v = a->v[0];
    bool empty_too = ggtok_jinja_llama_truth(e, ggtok_jinja_args_named(e, a, "boolean", 2));
    bool missing = empty_too ? !ggtok_jinja_llama_truth(e, v)
                             : v.type == JINJA_UNDEFINED || v.type == JINJA_NONE;
    return missing ? a->v[1] : v;
}

/* ---- as text ---- */

/* Writes f with six decimals, then drops trailing zeros, but never the first decimal. Returns the
 * length. */
static size_t show_float(jinja_arena *mem, char out[JINJA_NUMBER_ROOM], double f) {
    size_t n = ggtok_jinja_format(mem, out, 'f', 6, false, f);
    while (n && out[n - 1] == '0') n--;
    if (n && out[n - 1] == '.') out[n++] = '0';
    return n;
}

static void show(jinja_env *e, jinja_builder *b, jinja_value v);

static void show_items(jinja_env *e, jinja_builder *b, jinja_value v) {
    const jinja_list *list = v.as.list;
    bool tuple = v.type == JINJA_TUPLE;
    jinja_enter(&e->arena);
    ggtok_jinja_builder_add(b, tuple ? "(" : "[", 1, 0);
    for (uint32_t i = 0; i < list->n; i++) {
        if (i) ggtok_jinja_builder_add(b, ", ", 2, 0);
        show(e, b, list->data[i]);
    }
    if (tuple && list->n == 1) ggtok_jinja_builder_add(b, ",", 1, 0);
    ggtok_jinja_builder_add(b, tuple ? ")" : "]", 1, 0);
    jinja_leave(&e->arena);
}

static void show_dict(jinja_env *e, jinja_builder *b, jinja_value v) {
    const jinja_dict *dict = v.as.dict;
    if (v.type == JINJA_LOOP) ggtok_jinja_loop_fill(&e->arena, v.as.dict);
    jinja_enter(&e->arena);
    ggtok_jinja_builder_add(b, "{", 1, 0);
    for (uint32_t i = 0; i < dict->n; i++) {
        if (i) ggtok_jinja_builder_add(b, ", ", 2, 0);
        show(e, b, dict->entries[i].key);
        ggtok_jinja_builder_add(b, ": ", 2, 0);
        show(e, b, dict->entries[i].value);
    }
    ggtok_jinja_builder_add(b, "}", 1, 0);
    jinja_leave(&e->arena);
}

/* Writes a number. This is a separate function so that its buffer isn't in the stack frame of
 * each level. */
static JINJA_NOINLINE void put_number(jinja_builder *b, jinja_value v) {
    char number[JINJA_NUMBER_ROOM];
    size_t n = v.type == JINJA_INT ? ggtok_jinja_format_int(number, v.as.i)
                                   : show_float(b->arena, number, v.as.f);
    ggtok_jinja_builder_add(b, number, n, 0);
}

static void show(jinja_env *e, jinja_builder *b, jinja_value v) {
    jinja_charge(&e->arena, 1);
    switch (v.type) {
    case JINJA_UNDEFINED:
        ggtok_jinja_builder_add(b, "Undefined", 9, 0);
        if (!v.as.text || !v.as.text->n) break;
        ggtok_jinja_builder_add(b, " (hint: '", 9, 0);
        ggtok_jinja_builder_add(b, v.as.text->data, v.as.text->n, 0);
        ggtok_jinja_builder_add(b, "')", 2, 0);
        break;
    case JINJA_NONE: ggtok_jinja_builder_add(b, "None", 4, 0); break;
    case JINJA_BOOL:
        ggtok_jinja_builder_add(b, v.as.truth ? "True" : "False", 5u - v.as.truth, 0);
        break;
    case JINJA_INT:
    case JINJA_FLOAT: put_number(b, v); break;
    case JINJA_STRING:
        if (v.as.text->n && memchr(v.as.text->data, '\'', v.as.text->n)) {
            ggtok_jinja_builder_text(b, ggtok_jinja_llama_json(e, v, -1, NULL, NULL));
            break;
        }
        ggtok_jinja_builder_add(b, "'", 1, 0);
        ggtok_jinja_builder_data(b, v.as.text, 0, v.as.text->n);
        ggtok_jinja_builder_add(b, "'", 1, 0);
        break;
    case JINJA_LIST:
    case JINJA_TUPLE: show_items(e, b, v); break;
    case JINJA_DICT:
    case JINJA_LOOP: show_dict(e, b, v); break;
    case JINJA_FUNCTION:
        ggtok_jinja_builder_add(b, "Function<", 9, 0);
        ggtok_jinja_builder_add(b, v.as.function->name, strlen(v.as.function->name), 0);
        ggtok_jinja_builder_add(b, ">(", 2, 0);
        if (v.as.function->bound) {
            jinja_enter(&e->arena);
            ggtok_jinja_show_debug(e, b, v.as.function->self);
            jinja_leave(&e->arena);
        }
        ggtok_jinja_builder_add(b, ")", 1, 0);
        break;
    default: ggtok_jinja_builder_add(b, "KwArg", 5, 0); break;
    }
}

/* Like show, but writes each part of a string on a separate line. */
void ggtok_jinja_show_debug(jinja_env *e, jinja_builder *b, jinja_value v) {
    if (v.type != JINJA_STRING) {
        show(e, b, v);
        return;
    }
    const jinja_text *t = v.as.text;
    for (size_t i = 0, begin = 0; i < jinja_text_count(t); i++) {
        size_t end = jinja_text_end(t, i);
        if (!(jinja_text_part_label(t, i) & JINJA_JOINED))
            ggtok_jinja_builder_add(b, "TMPL:  ", 7, 0);
        ggtok_jinja_builder_add(b, t->data + begin, end - begin, 0);
        ggtok_jinja_builder_add(b, "\n", 1, 0);
        begin = end;
    }
}

jinja_text *ggtok_jinja_llama_text(jinja_env *e, jinja_value v) {
    switch (v.type) {
    case JINJA_STRING: return v.as.text;
    case JINJA_NONE:
    case JINJA_BOOL:
    case JINJA_INT:
    case JINJA_FLOAT:
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
    case JINJA_LOOP: {
        jinja_builder b = ggtok_jinja_builder_new(&e->arena, 32);
        b.merge = true;
        show(e, &b, v);
        return ggtok_jinja_text_fuse(&e->arena, ggtok_jinja_builder_end(&b));
    }
    default: ggtok_jinja_fail(&e->arena, "%s is not a string", ggtok_jinja_type_name(v));
    }
}

jinja_value ggtok_jinja_container_string(jinja_env *e, jinja_args *a) {
    jinja_value v = ggtok_jinja_args_at(e, a, 0);
    if (e->notes) ggtok_jinja_note_deep(e, v);
    return jinja_new_id(e, jinja_of_text(ggtok_jinja_llama_text(e, v)));
}
