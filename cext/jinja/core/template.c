/* Compiles templates, and lists the variables that they read. */
#include "base/mem.h"
#include "index/stl_order.h"
#include "jinja/core/env.h"
#include "jinja/core/parser.h"

enum {
    COMPILE_BYTES = 256,
    COMPILE_STEPS = 64
}; /* budget per byte of source; 64 kB are added to the source's size */

typedef struct job {
    jinja_template *t;
    const char *source;
    size_t n;
} job;

/* ---- variables ---- */

/* Marks the names that the tree reads. */
static void find_names(jinja_template *t, const jinja_node *node) {
    if (!node) return;
    jinja_charge(&t->arena, 1);
    jinja_enter(&t->arena);
    uint32_t first = 0;
    if (node->kind == N_NAME) t->symbols[node->sym].read = true;
    if (node->kind == N_SET || node->kind == N_SET_BLOCK || node->kind == N_FOR) {
        const jinja_node *target = node->kids[0];
        if (target->kind == N_NAME || (target->kind == N_TUPLE && target->n)) first = 1;
    }
    for (uint32_t i = first; i < node->n; i++) {
        const jinja_node *kid = node->kids[i];
        bool parameter = node->kind == N_MACRO && i + 1 < node->n && kid && kid->kind == N_NAME;
        if (!parameter) find_names(t, kid);
    }
    jinja_leave(&t->arena);
}

static bool by_name(void *user, int32_t a, int32_t b) {
    jinja_template *t = user;
    jinja_charge(&t->arena, 1);
    return ggtok_jinja_text_compare(&t->arena, t->symbols[a].name, t->symbols[b].name) < 0;
}

static void list_variables(jinja_template *t) {
    find_names(t, t->root);
    int32_t *symbols = jinja_alloc_n(&t->arena, t->n_symbols, sizeof *symbols);
    for (uint32_t i = SYM_SELF + (t->dialect == JINJA_TRANSFORMERS); i < t->n_symbols; i++) {
        const jinja_symbol *symbol = &t->symbols[i];
        if (symbol->read && symbol->global < 0) symbols[t->n_variables++] = (int32_t)i;
    }
    ggtok_stl_sort(symbols, t->n_variables, by_name, t);
    t->variables = jinja_alloc_n(&t->arena, t->n_variables + 1, sizeof *t->variables);
    for (uint32_t i = 0; i < t->n_variables; i++) t->variables[i] = t->symbols[symbols[i]].name;
    t->variables[t->n_variables] = NULL;
}

/* ---- compiling ---- */

static void compile(jinja_arena *mem, void *user) {
    static const char *const names[] = {"true", "True", "false",  "False", "none",
                                        "None", "loop", "caller", "self"};
    job *j = user;
    jinja_template *t = j->t;
    if (j->n > JINJA_MAX_TEXT)
        ggtok_jinja_fail(mem, "the template is longer than %u bytes", JINJA_MAX_TEXT);
    t->source = j->source;
    t->n_source = j->n;
    t->names = ggtok_jinja_dict_new(mem, 64);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ggtok_jinja_symbol_of(t, names[i], strlen(names[i]));
    }
    jinja_tokens tokens = {0};
    t->rules->lex(t, &tokens);
    ggtok_jinja_parse(t, &tokens);
    if (t->rules->plan_scopes) t->rules->plan_scopes(t);
    list_variables(t);
}

ggtok_status ggtok_jinja_compile_by(const jinja_rules *rules, const char *source, size_t n,
                                    jinja_dialect dialect, jinja_template **out, jinja_error *err) {
    *out = NULL;
    jinja_template *t = ggtok_mem_zalloc(sizeof *t);
    if (!t) {
        if (err) *err = (jinja_error){.status = GGTOK_ERR_MEMORY, .message = "out of memory"};
        return GGTOK_ERR_MEMORY;
    }
    uint64_t size = (uint64_t)n + (64 << 10);
    ggtok_jinja_arena_init(&t->arena, COMPILE_BYTES * size, COMPILE_STEPS * size);
    t->arena.source = source;
    t->arena.n_source = n;
    t->arena.shared = true;
    t->dialect = dialect;
    t->rules = rules;
    job j = {t, source, n};
    ggtok_status status = ggtok_jinja_protect(&t->arena, compile, &j, err);
    if (status != GGTOK_OK) {
        ggtok_jinja_arena_free(&t->arena);
        ggtok_mem_free(t);
        return status;
    }
    *out = t;
    return GGTOK_OK;
}

void ggtok_jinja_template_free(jinja_template *t) {
    if (!t) return;
    ggtok_jinja_arena_free(&t->arena);
    ggtok_mem_free(t);
}

size_t ggtok_jinja_template_memory(const jinja_template *t) {
    size_t n = sizeof *t;
    for (const jinja_chunk *c = t->arena.chunks; c; c = c->older) n += c->whole;
    return n;
}

jinja_dialect ggtok_jinja_template_dialect(const jinja_template *t) {
    return t->dialect;
}

bool ggtok_jinja_template_reads(const jinja_template *t, const char *name) {
    const jinja_text wanted = {.data = (const uint8_t *)name, .n = (uint32_t)strlen(name)};
    uint32_t lo = 0, hi = t->n_variables;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        int order = ggtok_jinja_text_order(t->variables[mid], &wanted);
        if (!order) return true;
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}

const jinja_text *ggtok_jinja_template_variable(const jinja_template *t, size_t i) {
    return i < t->n_variables ? t->variables[i] : NULL;
}
