/* Renderings: values in, text with origins out. */
#include "base/mem.h"
#include "jinja/core/env.h"

enum { MEGABYTE = 1 << 20 };
/* The budget of a rendering, in bytes and steps, per started megabyte of input. */
static const uint64_t bytes_each = 192u << 20, steps_each = 30u * 1000 * 1000;
/* Probing a template takes about 16 renderings of a few short messages; together, they get the
 * budget of one rendering. */
enum { PROBES = 16 };

ggtok_status ggtok_jinja_env_new(const jinja_options *options, jinja_env **out, jinja_error *err) {
    jinja_env *e = *out = ggtok_mem_zalloc(sizeof *e);
    if (!e) {
        if (err) *err = (jinja_error){.status = GGTOK_ERR_MEMORY, .message = "out of memory"};
        return GGTOK_ERR_MEMORY;
    }
    uint64_t megabytes = 1 + (uint64_t)options->n_input / MEGABYTE;
    uint64_t share = options->probe ? PROBES : 1;
    ggtok_jinja_arena_init(&e->arena, megabytes * bytes_each / share,
                           megabytes * steps_each / share);
    e->options = *options;
    return GGTOK_OK;
}

void ggtok_jinja_env_grow(jinja_env *e, size_t n) {
    uint64_t before = (uint64_t)e->options.n_input / MEGABYTE;
    e->options.n_input += n;
    uint64_t more = (uint64_t)e->options.n_input / MEGABYTE - before;
    e->arena.bytes_left += more * bytes_each;
    e->arena.steps_left += more * steps_each;
}

void ggtok_jinja_env_free(jinja_env *e) {
    if (!e) return;
    ggtok_jinja_arena_free(&e->arena);
    ggtok_mem_free(e);
}

jinja_arena *ggtok_jinja_env_arena(jinja_env *e) {
    return &e->arena;
}

/* ---- values ---- */

/* Assigns ids to a value and everything it contains; notes are stored by id. */
static void number_values(jinja_env *e, jinja_value *v) {
    jinja_charge(&e->arena, 1);
    jinja_enter(&e->arena);
    v->id = ++e->ids;
    if (jinja_is_array(*v)) {
        for (uint32_t i = 0; i < v->as.list->n; i++) number_values(e, &v->as.list->data[i]);
    } else if (v->type == JINJA_DICT) {
        for (uint32_t i = 0; i < v->as.dict->n; i++) {
            number_values(e, &v->as.dict->entries[i].value);
        }
    }
    jinja_leave(&e->arena);
}

void ggtok_jinja_env_set(jinja_env *e, const char *name, size_t n, jinja_value value) {
    jinja_arena *mem = &e->arena;
    if (!e->inputs) e->inputs = ggtok_jinja_dict_new(mem, 16);
    if (e->options.probe) number_values(e, &value);
    jinja_text *text = ggtok_jinja_text_copy(mem, name, n, 0);
    ggtok_jinja_dict_set(mem, e->inputs, jinja_of_text(text), value);
}

typedef struct json_job {
    jinja_env *e;
    const char *json;
    size_t n;
    jinja_dialect dialect;
} json_job;

static void set_json(jinja_arena *mem, void *user) {
    json_job *j = user;
    jinja_value v = ggtok_jinja_read_json(mem, j->json, j->n, 0, j->dialect);
    if (v.type != JINJA_DICT) ggtok_jinja_fail(mem, "the variables must be a JSON object");
    for (uint32_t i = 0; i < v.as.dict->n; i++) {
        const jinja_entry *entry = &v.as.dict->entries[i];
        ggtok_jinja_env_set(j->e, (const char *)entry->key.as.text->data, entry->key.as.text->n,
                            entry->value);
    }
}

ggtok_status ggtok_jinja_env_json(jinja_env *e, const char *json, size_t n, jinja_dialect dialect,
                                  jinja_error *err) {
    json_job j = {e, json, n, dialect};
    e->arena.source = NULL;
    return ggtok_jinja_protect(&e->arena, set_json, &j, err);
}

unsigned ggtok_jinja_env_notes(const jinja_env *e, jinja_value v) {
    return e->notes && v.id && v.id <= e->n_notes ? e->notes[v.id - 1] : 0;
}

jinja_value ggtok_jinja_env_get(jinja_env *e, const char *name, size_t n, bool after) {
    jinja_text text = {.data = (const uint8_t *)name, .n = (uint32_t)n};
    uint32_t hash = ggtok_jinja_text_hash(&text);
    if (after && e->t && e->scopes.values) {
        for (uint32_t i = 0; i < e->t->n_symbols; i++) {
            if (!ggtok_jinja_text_order(e->t->symbols[i].name, &text)) return e->scopes.values[i];
        }
    }
    for (uint32_t i = 0; e->inputs && i < e->inputs->n; i++) {
        const jinja_entry *entry = &e->inputs->entries[i];
        if (entry->hash == hash && !ggtok_jinja_text_order(entry->key.as.text, &text))
            return entry->value;
    }
    return jinja_absent();
}

/* ---- rendering ---- */

ggtok_range *ggtok_jinja_ranges(jinja_arena *mem, const jinja_text *t, jinja_label mask,
                                size_t *n) {
    size_t begin = 0, cap = 0, count = jinja_text_count(t);
    jinja_charge(mem, count);
    for (size_t i = 0; i < count; i++) {
        bool has = jinja_text_part_label(t, i) & mask;
        cap += has && !(i && jinja_text_part_label(t, i - 1) & mask);
    }
    ggtok_range *ranges = jinja_alloc_n(mem, cap + 1, sizeof *ranges);
    *n = 0;
    for (size_t i = 0; cap && i < count; i++) {
        size_t end = jinja_text_end(t, i);
        if (jinja_text_part_label(t, i) & mask) {
            if (*n && ranges[*n - 1].end == begin)
                ranges[*n - 1].end = end;
            else
                ranges[(*n)++] = (ggtok_range){begin, end};
        }
        begin = end;
    }
    return ranges;
}

static jinja_text *render_output(jinja_env *e) {
    jinja_arena *mem = &e->arena;
    e->rules = e->t->rules;
    if (!e->inputs) e->inputs = ggtok_jinja_dict_new(mem, 1);
    size_t n_input = e->options.n_input; /* most of a long prompt is input */
    e->out = ggtok_jinja_builder_new(mem, 4096 + (n_input < MEGABYTE ? n_input : MEGABYTE));
    e->n_printed = 0;
    e->generating = 0;
    e->loop = NULL;
    if (e->options.probe) {
        e->n_notes = e->ids;
        e->notes = jinja_alloc(mem, e->n_notes + 1);
        memset(e->notes, 0, e->n_notes + 1);
    }
    e->rules->render(e);
    return ggtok_jinja_builder_end(&e->out);
}

static ggtok_status render_by(void (*body)(jinja_arena *mem, void *out), jinja_env *e,
                              const jinja_template *t, void *out, jinja_error *err) {
    e->t = t;
    e->arena.source = t->source;
    e->arena.n_source = t->n_source;
    e->arena.at = 0;
    return ggtok_jinja_protect(&e->arena, body, out, err);
}

static void render_text(jinja_arena *mem, void *out) {
    *(jinja_text **)out = render_output((jinja_env *)mem); /* the arena is an env's first member */
}

ggtok_status ggtok_jinja_render_text(jinja_env *e, const jinja_template *t, jinja_text **out,
                                     jinja_error *err) {
    *out = NULL;
    return render_by(render_text, e, t, out, err);
}

static void render_result(jinja_arena *mem, void *result) {
    jinja_result *out = result;
    jinja_text *text;
    render_text(mem, &text);
    out->text = (const char *)text->data;
    out->n = text->n;
    out->from_template = ggtok_jinja_ranges(mem, text, JINJA_FROM_TEMPLATE, &out->n_from_template);
    out->generated = ggtok_jinja_ranges(mem, text, JINJA_GENERATED, &out->n_generated);
}

ggtok_status ggtok_jinja_render(jinja_env *e, const jinja_template *t, jinja_result *out,
                                jinja_error *err) {
    *out = (jinja_result){.text = ""};
    return render_by(render_result, e, t, out, err);
}
