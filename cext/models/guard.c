#include "models/guard.h"

bool ggtok_guard_begin(text_guard *g, const ggtok_range *trusted, size_t n_trusted, size_t pos,
                       size_t n) {
    g->refused = GGTOK_NO_TOKEN;
    g->spans = false;
    g->trace = NULL;
    g->origin = NULL;
    g->source.n = 0;
    if (!bytebuf_reserve(&g->source, n)) return false;
    memset(g->source.data, 0, n);
    g->source.n = n;
    size_t low = 0, high = n_trusted;
    while (low < high) { /* finds the first range that ends after the fragment's start */
        size_t middle = low + (high - low) / 2;
        if (trusted[middle].end <= pos)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < n_trusted && trusted[low].begin < pos + n; low++) {
        size_t begin = trusted[low].begin > pos ? trusted[low].begin - pos : 0;
        size_t end = trusted[low].end < pos + n ? trusted[low].end - pos : n;
        memset(g->source.data + begin, 1, end - begin);
    }
    return true;
}

bool ggtok_guard_record(text_guard *g, const vocab *v, const uint8_t *fragment, size_t n) {
    g->v = v;
    g->reserved = 0;
    if (!ggtok_guard_begin(g, &(ggtok_range){0, n}, 1, 0, n)) return false;
    g->spans = true;
    g->bytes = fragment;
    g->n_made = 0;
    return true;
}

void ggtok_guard_free(text_guard *g) {
    ggtok_mem_free(g->from);
    ggtok_mem_free(g->made);
    ggtok_mem_free(g->source.data);
    ggtok_mem_free(g->text.data);
    ggtok_mem_free(g->trusted.data);
    ggtok_mem_free(g->foreign);
    memset(g, 0, sizeof *g);
}

size_t ggtok_guard_bytes(const text_guard *g) {
    return g->source.cap + g->text.cap + g->trusted.cap + g->cap * sizeof *g->foreign +
           g->from_cap * sizeof *g->from + g->made_cap * sizeof *g->made;
}

bool ggtok_guard_trusts(const text_guard *g, size_t from, size_t n) {
    return !n || !memchr(g->source.data + from, 0, n);
}

void ggtok_guard_clear(text_guard *g) {
    g->text.n = g->trusted.n = 0;
}

ggtok_range ggtok_guard_origin(const text_guard *g, size_t begin, size_t end) {
    if (!g->origin) return (ggtok_range){begin, end};
    if (begin < end) return (ggtok_range){g->origin[begin].begin, g->origin[end - 1].end};
    size_t at = g->origin[begin].begin;
    return (ggtok_range){at, at};
}

/* Makes room for the sources of n more bytes. */
static bool reserve_sources(text_guard *g, size_t n) {
    if (!g->spans || g->text.n + n <= g->from_cap) return true;
    size_t cap = g->text.n + n + g->text.n / 2 + 256;
    ggtok_range *from = ggtok_mem_realloc(g->from, mem_mul(cap, sizeof *from));
    if (!from) return false;
    g->from = from;
    g->from_cap = cap;
    return true;
}

bool ggtok_guard_put_all(text_guard *g, const void *p, size_t n, bool trusted, size_t begin,
                         size_t end) {
    if (!reserve_sources(g, n)) return false;
    if (g->spans && n) {
        ggtok_range source = ggtok_guard_origin(g, begin, end);
        for (size_t i = 0; i < n; i++) g->from[g->text.n + i] = source;
    }
    if (!bytebuf_append(&g->text, p, n) || !bytebuf_reserve(&g->trusted, n)) return false;
    if (n) memset(g->trusted.data + g->trusted.n, trusted, n);
    g->trusted.n += n;
    return true;
}

bool ggtok_guard_put(text_guard *g, const void *p, size_t n, size_t from, size_t len) {
    size_t before = g->text.n;
    bool trusted = ggtok_guard_trusts(g, from, len);
    if (!ggtok_guard_put_all(g, p, n, trusted, from, from + len)) return false;
    if (g->spans && n == len && n > 1 && !memcmp(p, g->bytes + from, n)) {
        for (size_t i = 0; i < n; i++)
            g->from[before + i] = ggtok_guard_origin(g, from + i, from + i + 1);
    }
    return true;
}

bool ggtok_guard_add(text_guard *g, const void *p, size_t n, size_t at) {
    return ggtok_guard_put_all(g, p, n, g->source.data[at], at, at);
}

static bool push_span(text_guard *g, ggtok_range source) {
    if (g->n_made == g->made_cap) {
        size_t cap = g->made_cap + g->made_cap / 2 + 64;
        ggtok_span *made = ggtok_mem_realloc(g->made, mem_mul(cap, sizeof *made));
        if (!made) return false;
        g->made = made;
        g->made_cap = cap;
    }
    g->made[g->n_made++] = (ggtok_span){(int64_t)source.begin, (int64_t)source.end};
    return true;
}

bool ggtok_guard_made(text_guard *g, size_t at, size_t n) {
    if (!g->spans) return true;
    return push_span(g, (ggtok_range){g->from[at].begin, g->from[at + n - 1].end});
}

bool ggtok_guard_made_of(text_guard *g, size_t begin, size_t end) {
    return !g->spans || push_span(g, ggtok_guard_origin(g, begin, end));
}

bool ggtok_guard_seal(text_guard *g) {
    size_t n = g->trusted.n, count = 0;
    if (n >= g->cap) {
        size_t cap = n + n / 2 + 256,
               *foreign = ggtok_mem_realloc(g->foreign, mem_mul(cap, sizeof *foreign));
        if (!foreign) return false;
        g->foreign = foreign;
        g->cap = cap;
    }
    for (size_t i = 0; i < n; i++) {
        g->foreign[i] = count;
        count += !g->trusted.data[i];
    }
    g->foreign[n] = count;
    return true;
}

size_t ggtok_guard_longest(const text_guard *g, const trie *t, const trie_long *l,
                           const int32_t *hits, size_t i, int32_t *id) {
    const uint8_t *p = g->text.data;
    size_t n = g->text.n, best = 0;
    if (hits) {
        size_t len;
        for (uint32_t hit = (uint32_t)hits[i]; hit; hit = trie_long_shorter(l, hit)) {
            *id = trie_long_id(l, hit, &len);
            if (guard_allows(g, *id, i, len)) return len;
        }
        if (n - i > TRIE_WALK) n = i + TRIE_WALK;
    }
    uint32_t s = 0;
    for (size_t k = i; k < n;) {
        s = trie_child(t, s, p[k++]);
        if (!s) break;
        uint32_t link = t->unit[s].link;
        if (!(link & (TRIE_VALUE | TRIE_TAIL))) continue;
        if (link & TRIE_TAIL) {
            size_t rest = trie_tail(t, s, k - i, p + k, n - k);
            if (rest == SIZE_MAX) break;
            k += rest;
        }
        if (guard_allows(g, t->value[s], i, k - i)) best = k - i, *id = t->value[s];
        if (link & TRIE_TAIL) break;
    }
    return best;
}

void ggtok_guard_reverse(text_guard *g, size_t n) {
    ggtok_span *first = g->made + (g->n_made - n), *last = g->made + g->n_made - 1;
    for (; n && first < last; first++, last--) {
        ggtok_span before = *first;
        *first = *last;
        *last = before;
    }
}
