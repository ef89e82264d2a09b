/* Sorts like llama.cpp, which uses the C++ library's std::sort, including the order of equal
 * items. */
#include "index/stl_order.h"
#include "jinja/llama/builtins.h"

typedef struct sorter {
    jinja_env *e;
    const jinja_value *items;
    bool (*less)(jinja_env *, jinja_value, jinja_value, const void *);
    const void *user;
} sorter;

static bool less(void *user, int32_t x, int32_t y) {
    const sorter *s = user;
    jinja_charge(&s->e->arena, 1);
    return s->less(s->e, s->items[x], s->items[y], s->user);
}

void ggtok_jinja_llama_sort(jinja_env *e, jinja_value *items, size_t n,
                            bool (*less_fn)(jinja_env *, jinja_value, jinja_value, const void *),
                            const void *user) {
    jinja_charge(&e->arena, n);
    jinja_value *unsorted = jinja_alloc_n(&e->arena, n, sizeof *unsorted);
    int32_t *order = jinja_alloc_n(&e->arena, n, sizeof *order);
    sorter s = {e, unsorted, less_fn, user};
    if (n) memcpy(unsorted, items, n * sizeof *items);
    for (size_t i = 0; i < n; i++) order[i] = (int32_t)i;
    ggtok_stl_sort(order, n, less, &s);
    for (size_t i = 0; i < n; i++) items[i] = unsorted[order[i]];
}
