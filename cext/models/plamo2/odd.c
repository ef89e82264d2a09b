/* The entries that tokens in malformed UTF-8 add to PLaMo's table; see docs/design/types.md. */
#include "models/plamo2/plamo2.h"

#include <stdlib.h>

/* Returns the odd link from a state for a character, or NULL. */
static const odd_link *find_odd(const plamo2_model *m, uint32_t from, uint32_t cpt) {
    size_t low = 0, high = m->n_odd;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const odd_link *l = &m->odd[middle];
        if (l->from < from || (l->from == from && l->cpt < cpt))
            low = middle + 1;
        else
            high = middle;
    }
    const odd_link *l = m->odd + low;
    return low < m->n_odd && l->from == from && l->cpt == cpt ? l : NULL;
}

uint32_t ggtok_plamo2_advance_odd(const plamo2_model *m, uint32_t s, const uint8_t *p, size_t len) {
    uint32_t cpt;
    ggtok_utf8_decode_any(p, p + len, &cpt);
    for (;;) {
        const odd_link *odd = find_odd(m, s, cpt);
        if (odd) return odd->to;
        uint32_t next = plamo2_step(&m->t, s, p, len);
        if (next || !s) return next;
        s = m->skip[s];
        if (s == PLAMO2_NOWHERE) return 0;
    }
}

/* Returns the state after reading all of text[0..n) from its end: its longest prefix that is a
 * state. */
static uint32_t run_over(const plamo2_model *m, const uint8_t *text, size_t n) {
    uint32_t s = 0;
    while (n) {
        size_t len = 1;
        while (len < n && utf8_continues(text[n - len])) len++;
        n -= len;
        s = plamo2_advance(m, s, text + n, len);
    }
    return s;
}

/* Whether a is before b in the order of their reversed bytes. */
static bool reversed_less(const uint8_t *a, size_t a_n, const uint8_t *b, size_t b_n) {
    while (a_n && b_n) {
        uint8_t x = a[--a_n], y = b[--b_n];
        if (x != y) return x < y;
    }
    return a_n < b_n;
}

typedef struct odd_token { /* a token that may add an odd link */
    odd_link link;
    gguf_view text;
    size_t i; /* its index in b->odd */
} odd_token;

static int by_link(const void *a, const void *b) {
    const odd_token *x = a, *y = b;
    if (x->link.from != y->link.from) return x->link.from < y->link.from ? -1 : 1;
    if (x->link.cpt != y->link.cpt) return x->link.cpt < y->link.cpt ? -1 : 1;
    return x->i < y->i ? -1 : 1;
}

/*
 * Adds odd links. Let r be a token in malformed UTF-8, c its first character, and s the repaired
 * text after c. The token adds a link for c from the state s to the longest prefix of c s that is a
 * state. But if r comes before s in the order of reversed bytes, llama.cpp has not yet numbered s
 * and links from the root. Of several links from one state for one character, the last wins; c, if
 * it is a state, also counts as a link.
 */
bool ggtok_plamo2_link_odd(plamo2_build *b) {
    plamo2_model *m = b->m;
    bytebuf fixed = {0};
    size_t n = 0;
    odd_token *all = ggtok_mem_alloc(mem_mul(b->odd.n, sizeof *all));
    bool ok = all != NULL;
    for (size_t i = 0; ok && i < b->odd.n; i++) {
        gguf_view r = vocab_text(b->v, (uint32_t)b->odd.data[i]);
        uint32_t cpt;
        ggtok_utf8_decode_any(r.p, r.p + r.n, &cpt);
        fixed.n = 0;
        if (!(ok = ggtok_plamo2_repair(&fixed, r.p, r.n, NULL))) break;
        uint8_t c[4];
        size_t c_n = ggtok_utf8_encode(cpt, c), rest_n = fixed.n - c_n;
        const uint8_t *rest = fixed.data + c_n;
        bool early = rest_n && reversed_less(r.p, r.n, rest, rest_n);
        uint32_t from = early ? 0 : run_over(m, rest, rest_n); /* the rest is itself a state */
        uint32_t to = run_over(m, fixed.data, fixed.n);
        uint32_t plain = plamo2_step(&m->t, from, fixed.data, c_n);
        if (plain && (from || reversed_less(r.p, r.n, c, c_n))) continue;
        all[n++] = (odd_token){{from, cpt, to}, r, i};
    }
    if (ok) qsort(all, n, sizeof *all, by_link);
    ok = ok && (m->odd = ggtok_mem_alloc(mem_mul(n, sizeof *m->odd)));
    gguf_view last = {0};
    for (size_t i = 0; ok && i < n; i++) {
        const odd_token *t = &all[i];
        bool same = i && t[-1].link.from == t->link.from && t[-1].link.cpt == t->link.cpt;
        if (same && reversed_less(t->text.p, t->text.n, last.p, last.n)) continue;
        m->odd[same ? m->n_odd - 1 : m->n_odd++] = t->link;
        last = t->text;
    }
    m->whole |= m->n_odd > 0;
    ggtok_mem_free(fixed.data);
    ggtok_mem_free(all);
    return ok;
}

/* ---- skips ---- */

/* A character with which a state continues, to another state or by an odd link. */
typedef struct way {
    uint32_t state, cpt;
} way;

/* Returns the ways from all states: those from state s are ways[first[s]..first[s + 1]). Returns
 * NULL if out of memory. */
static way *list_ways(const plamo2_build *b, uint32_t *first) {
    const plamo2_model *m = b->m;
    size_t n = b->n_states + m->n_odd, n_units = m->t.n_units;
    way *all = ggtok_mem_alloc(mem_mul(n, sizeof *all)),
        *sorted = ggtok_mem_alloc(mem_mul(n, sizeof *sorted));
    if (all && sorted) {
        for (size_t i = 0; i < b->n_states; i++) {
            const plamo2_state *s = &b->states[i];
            all[i].state = s->parent;
            ggtok_utf8_decode_any(s->p, s->p + s->len, &all[i].cpt);
        }
        for (size_t i = 0; i < m->n_odd; i++) {
            all[b->n_states + i] = (way){m->odd[i].from, m->odd[i].cpt};
        }
        for (size_t i = 0; i < n; i++) first[all[i].state + 2]++;
        for (size_t u = 0; u < n_units; u++) first[u + 2] += first[u + 1];
        for (size_t i = 0; i < n; i++) sorted[first[all[i].state + 1]++] = all[i];
    } else {
        ggtok_mem_free(sorted);
        sorted = NULL;
    }
    ggtok_mem_free(all);
    return sorted;
}

/* Whether state s itself continues with this character. */
static bool leads_over(const plamo2_model *m, uint32_t s, uint32_t cpt) {
    uint8_t c[4];
    return find_odd(m, s, cpt) || plamo2_step(&m->t, s, c, ggtok_utf8_encode(cpt, c));
}

/*
 * Computes m->skip. After an odd link, which may lead to a state of any length, a walk could follow
 * as many failure links as the state has characters, and do so at each character. But a walk that
 * finds no way from a state can skip the next states on the failure path that have no other ways.
 */
bool ggtok_plamo2_find_skips(plamo2_build *b) {
    plamo2_model *m = b->m;
    uint32_t *first = ggtok_mem_zalloc(mem_mul(m->t.n_units + 2, sizeof *first));
    m->skip = ggtok_mem_alloc(mem_mul(m->t.n_units, sizeof *m->skip));
    way *ways = first && m->skip ? list_ways(b, first) : NULL;
    for (size_t i = 0; ways && i < m->t.n_units; i++) m->skip[i] = m->state[i].fail;
    for (size_t i = 0; ways && i < b->n_states; i++) {
        uint32_t s = b->states[i].unit, fail = m->state[s].fail;
        if (!fail || fail == PLAMO2_NOWHERE) continue;
        /* This loop takes at most as many steps as s has ways, so all loops together take at most
         * as many as there are ways. */
        bool same = first[fail + 1] - first[fail] <= first[s + 1] - first[s];
        for (uint32_t w = first[fail]; same && w < first[fail + 1]; w++) {
            same = leads_over(m, s, ways[w].cpt);
        }
        if (same) m->skip[s] = m->skip[fail];
    }
    bool ok = ways != NULL;
    ggtok_mem_free(first);
    ggtok_mem_free(ways);
    return ok;
}
