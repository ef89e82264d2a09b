#include "special/partition.h"

#include "base/heap.h"

static bool push(fragments *f, size_t pos, size_t n, int32_t id) {
    if (f->n == f->cap) {
        size_t cap = f->cap ? f->cap * 2 : 16;
        fragment *data = ggtok_mem_realloc(f->data, mem_mul(cap, sizeof *data));
        if (!data) return false;
        f->data = data;
        f->cap = cap;
    }
    f->data[f->n++] = (fragment){pos, n, id};
    return true;
}

static void swap(partition_scratch *s) {
    fragments before = s->now;
    s->now = s->spare;
    s->spare = before;
    s->spare.n = 0;
}

static bool is_space(uint8_t c) { /* C's isspace, as llama.cpp uses it */
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* ---- finding candidates ---- */

typedef struct walk {
    const special_set *set;
    const trusted_ranges *trusted; /* ranges where reserved tokens are allowed; NULL: everywhere */
    size_t range;                  /* index of the first range that ends after the position */
    size_t begin, end;             /* bounds of that range; SIZE_MAX if there is none */
    uint32_t node;                 /* node of the automaton after the text read in the current
                                      trusted range */
    uint32_t open; /* node after all text read; it finds the tokens that are allowed in untrusted
                      text */
} walk;

/* Returns the index of the first range that ends after `from`. */
static size_t range_at(const trusted_ranges *trusted, size_t from) {
    size_t low = 0, high = trusted->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trusted->data[middle].end <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void set_range(walk *w, size_t range) {
    const trusted_ranges *t = w->trusted;
    bool any = t && range < t->n;
    w->range = range;
    w->begin = any ? t->data[range].begin : SIZE_MAX;
    w->end = any ? t->data[range].end : SIZE_MAX;
}

static walk walk_from(const special_set *set, const trusted_ranges *trusted, size_t from) {
    walk w = {.set = set, .trusted = trusted};
    set_range(&w, trusted ? range_at(trusted, from) : 0);
    return w;
}

/* Advances over text[i]. Of the tokens that end with text[i] and are allowed here, returns the
 * first in llama.cpp's order; 0 if there is none. */
static inline uint32_t walk_over(walk *w, const uint8_t *text, size_t i) {
    const special_set *set = w->set;
    const special_node *nodes = set->nodes;
    if (!w->trusted) return nodes[w->node = special_step(set, w->node, text[i])].token;
    while (w->end <= i) set_range(w, w->range + 1);
    bool alike = w->node == w->open;
    w->open = special_step(set, w->open, text[i]);
    w->node = i < w->begin ? 0 : alike ? w->open : special_step(set, w->node, text[i]);
    uint32_t longest = nodes[w->open].token; /* the longest token that ends here, allowed or not */
    if (!longest) return 0;
    uint32_t any = nodes[w->node].token, open = w->trusted->all ? 0 : set->open[longest];
    return any && (!open || any < open) ? any : open;
}

/* For each possible first byte of a special token, its next position in the text. Computed
 * lazily. */
typedef struct next_starts {
    size_t at[SPECIAL_STARTS];
} next_starts;

/* Returns the first position in text[i..n) where a token may begin, or n. */
static size_t next_start(const special_set *set, next_starts *next, const uint8_t *text, size_t i,
                         size_t n) {
    if (set->n_starts) { /* there are few first bytes, as in most vocabularies: '<', perhaps '[' */
        size_t first = n;
        for (size_t k = 0; k < set->n_starts; k++) {
            if (next->at[k] <= i) {
                const uint8_t *p = memchr(text + i, set->starts[k], n - i);
                next->at[k] = p ? (size_t)(p - text) : n;
            }
            if (next->at[k] < first) first = next->at[k];
        }
        return first;
    }
    const bool *f = set->first;
    const uint8_t *t = text;
    while (n - i >= 8 && !(f[t[i]] | f[t[i + 1]] | f[t[i + 2]] | f[t[i + 3]] | f[t[i + 4]] |
                           f[t[i + 5]] | f[t[i + 6]] | f[t[i + 7]])) {
        i += 8;
    }
    while (i < n && !f[t[i]]) i++;
    return i;
}

/* ---- choosing among candidates ---- */

/* Arguments of ggtok_partition_text. */
typedef struct task {
    partition_scratch *s;
    const special_set *set;
    const vocab *v;
    const uint8_t *text;
    size_t n;
    const trusted_ranges *trusted;
} task;

/* Returns a candidate: a fragment whose id is an index in set->ids, or GGTOK_NO_TOKEN if it was
 * rejected. There is at most one candidate for each position where tokens end. */
static fragment candidate(const task *t, size_t end, uint32_t token) {
    size_t n = token ? vocab_text(t->v, (uint32_t)t->set->ids[token - 1]).n : 0;
    return (fragment){end - n, n, (int32_t)token - 1};
}

static size_t end_of(const fragment *f) {
    return f->pos + f->n;
}

/* Returns the first position from i on where an allowed token may begin, or n. */
static size_t next_place(const task *t, walk *w, next_starts *next, size_t i) {
    if (!t->trusted || (t->set->anywhere && !t->trusted->all))
        return next_start(t->set, next, t->text, i, t->n);
    for (;;) { /* for each trusted range */
        while (w->end <= i) set_range(w, w->range + 1);
        if (w->begin == SIZE_MAX) return t->n;
        if (i < w->begin) i = w->begin;
        i = next_start(t->set, next, t->text, i, w->end);
        if (i < w->end) return i;
    }
}

/* Writes the candidates to s->spare, from left to right; sets *overlap if any two overlap. */
static bool find_candidates(const task *t, bool *overlap) {
    fragments *found = &t->s->spare;
    walk w = walk_from(t->set, t->trusted, 0);
    next_starts next = {{0}};
    size_t last = 0, asked = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (i - asked >= INTERRUPT_EVERY) {
            if (interrupted(t->s->interrupt, INTERRUPT_EVERY)) return false;
            asked = i;
        }
        if (!(w.node | w.open) && (i = next_place(t, &w, &next, i)) == t->n) break;
        uint32_t token = walk_over(&w, t->text, i);
        if (!token) continue;
        fragment c = candidate(t, i + 1, token);
        if (!push(found, c.pos, c.n, c.id)) return false;
        *overlap |= c.pos < last;
        last = i + 1;
    }
    return true;
}

static bool is_edge(const task *t, size_t at) {
    return t->s->edges.data[at / 8] >> at % 8 & 1;
}

static void set_edge(const task *t, size_t at) {
    t->s->edges.data[at / 8] |= (uint8_t)(1 << at % 8);
}

/* Extends *left and *right over the white space that a token strips. */
static void strip(const task *t, const fragment *token, size_t *left, size_t *right) {
    uint32_t attr = t->v->attr[t->set->ids[token->id]];
    if (attr & GGTOK_ATTR_LSTRIP) {
        while (*left && !is_edge(t, *left) && is_space(t->text[*left - 1])) --*left;
    }
    if (attr & GGTOK_ATTR_RSTRIP) {
        while (*right < t->n && !is_edge(t, *right) && is_space(t->text[*right])) ++*right;
    }
    set_edge(t, token->pos);
    set_edge(t, end_of(token));
}

/* Accepts the i-th candidate. Rejects candidates that end inside it. A candidate that begins inside
 * it is replaced by the longest that ends at the same position and doesn't begin inside it, if any;
 * otherwise it is rejected. No such candidate is longer than the accepted one, so all of them end
 * shortly after it. */
static void accept(const task *t, size_t i) {
    fragment *c = t->s->spare.data, token = c[i];
    size_t n = t->s->spare.n, left = token.pos, right = end_of(&token), to, k;
    if (t->set->strips) strip(t, &token, &left, &right);
    for (k = i; k && end_of(&c[k - 1]) > left; k--) c[k - 1] = candidate(t, end_of(&c[k - 1]), 0);
    for (k = i + 1; k < n && end_of(&c[k]) <= right; k++) c[k] = candidate(t, end_of(&c[k]), 0);
    to = right;
    for (size_t j = k; j < n && end_of(&c[j]) < right + token.n; j++) {
        if (c[j].pos < right) to = end_of(&c[j]);
    }
    walk w = walk_from(t->set, t->trusted, right);
    for (size_t at = right; at < to; at++) {
        uint32_t longest = walk_over(&w, t->text, at);
        if (end_of(&c[k]) == at + 1) c[k++] = candidate(t, at + 1, longest);
    }
}

/* Accepts or rejects each candidate in llama.cpp's order. Each number in the heap combines a
 * candidate's token, which may have been replaced by a shorter one, with its index. */
static bool choose_tokens(const task *t) {
    enum { STEP = 32 }; /* a candidate counts as this many bytes of text */
    partition_scratch *s = t->s;
    const fragment *c = s->spare.data;
    size_t n = s->spare.n;
    if (n > UINT32_MAX) return false; /* so many candidates would take 100 GB */
    if (n > s->heap_cap) {
        uint64_t *heap = ggtok_mem_realloc(s->heap, mem_mul(n, sizeof *heap));
        if (!heap) return false;
        s->heap = heap;
        s->heap_cap = n;
    }
    if (t->set->strips) {
        s->edges.n = 0;
        if (!bytebuf_reserve(&s->edges, t->n / 8 + 1)) return false;
        memset(s->edges.data, 0, t->n / 8 + 1);
    }
    for (size_t i = 0; i < n; i++) s->heap[i] = (uint64_t)c[i].id << 32 | i;
    if (!heap_make(s->heap, n, s->interrupt)) return false;
    while (n) {
        if (interrupted(s->interrupt, STEP)) return false;
        size_t i = (uint32_t)s->heap[0];
        bool first = c[i].id == (int32_t)(s->heap[0] >> 32);
        if (first) accept(t, i);
        if (first || c[i].id == GGTOK_NO_TOKEN)
            s->heap[0] = s->heap[--n];
        else
            s->heap[0] = (uint64_t)c[i].id << 32 | i;
        heap_down(s->heap, n, 0);
    }
    return true;
}

/* Writes the tokens and the raw text between them to s->now. */
static bool write_fragments(const task *t) {
    partition_scratch *s = t->s;
    size_t from = 0;
    uint32_t before = 0; /* attributes of the previous token */
    for (size_t i = 0; i <= s->spare.n; i++) {
        fragment f = i < s->spare.n ? s->spare.data[i] : (fragment){t->n, 0, 0};
        if (f.id == GGTOK_NO_TOKEN) continue;
        int32_t id = f.n ? t->set->ids[f.id] : GGTOK_NO_TOKEN;
        uint32_t attr = f.n ? t->v->attr[id] : 0;
        size_t to = f.pos;
        while (before & GGTOK_ATTR_RSTRIP && from < to && is_space(t->text[from])) from++;
        while (attr & GGTOK_ATTR_LSTRIP && from < to && is_space(t->text[to - 1])) to--;
        if (from < to && !push(&s->now, from, to - from, GGTOK_NO_TOKEN)) return false;
        if (f.n && !push(&s->now, f.pos, f.n, id)) return false;
        from = end_of(&f);
        before = attr;
    }
    return true;
}

/* ---- llama.cpp's rule implemented literally, for the plain build ---- */

static bool is_allowed(const trusted_ranges *trusted, size_t pos, size_t n) {
    for (size_t i = 0; trusted && i < trusted->n; i++) {
        if (trusted->data[i].begin <= pos && pos + n <= trusted->data[i].end) return true;
    }
    return !trusted;
}

/* Returns the offset of the first allowed `word` in text[from..to), or SIZE_MAX. */
static size_t find_word(const uint8_t *text, size_t from, size_t to, gguf_view word,
                        const trusted_ranges *trusted) {
    for (; to - from >= word.n; from++) {
        const uint8_t *p = memchr(text + from, word.p[0], to - from - word.n + 1);
        if (!p) break;
        from = (size_t)(p - text);
        if (!memcmp(p, word.p, word.n) && is_allowed(trusted, from, word.n)) return from;
    }
    return SIZE_MAX;
}

/* Cuts all occurrences of one token out of one raw fragment. */
static bool cut_fragment(const task *t, const fragment *raw, int32_t id) {
    fragments *out = &t->s->spare;
    gguf_view word = vocab_text(t->v, (uint32_t)id);
    uint32_t attr = t->v->attr[id];
    bool anywhere = t->trusted && !t->trusted->all && !(attr & VOCAB_RESERVED);
    const trusted_ranges *trusted = anywhere ? NULL : t->trusted;
    size_t pos = raw->pos, end = end_of(raw), at;
    while ((at = find_word(t->text, pos, end, word, trusted)) != SIZE_MAX) {
        size_t left = at;
        if (attr & GGTOK_ATTR_LSTRIP) {
            while (left > pos && is_space(t->text[left - 1])) left--;
        }
        if (left > pos && !push(out, pos, left - pos, GGTOK_NO_TOKEN)) return false;
        if (!push(out, at, word.n, id)) return false;
        pos = at + word.n;
        if (attr & GGTOK_ATTR_RSTRIP) {
            while (pos < end && is_space(t->text[pos])) pos++;
        }
    }
    return pos == end || push(out, pos, end - pos, GGTOK_NO_TOKEN);
}

static bool by_rule(const task *t) {
    partition_scratch *s = t->s;
    if (!push(&s->now, 0, t->n, GGTOK_NO_TOKEN)) return false;
    for (size_t i = 0; i < t->set->n; i++) {
        for (size_t k = 0; k < s->now.n; k++) {
            const fragment *f = &s->now.data[k];
            bool ok = f->id == GGTOK_NO_TOKEN ? cut_fragment(t, f, t->set->ids[i])
                                              : push(&s->spare, f->pos, f->n, f->id);
            if (!ok) return false;
        }
        swap(s);
    }
    return true;
}

/* ---- the whole partition ---- */

/* Cuts the run tokens out of text[at..end). Writes them, and the raw text between them, which
 * begins at *pos, to s->spare; moves *pos to the end of the last run token. */
static bool take_runs(partition_scratch *s, const special_runs *r, const uint8_t *text, size_t *pos,
                      size_t at, size_t end) {
    size_t n;
    for (; (at = ggtok_special_runs_next(r, text, at, end, &n)) < end; at += n) {
        if (at > *pos && !push(&s->spare, *pos, at - *pos, GGTOK_NO_TOKEN)) return false;
        for (uint32_t fit; (fit = r->fit[n < r->longest ? n : r->longest]); n -= fit, at += fit) {
            if (!push(&s->spare, at, fit, r->id[fit])) return false;
        }
        *pos = at;
    }
    return true;
}

/* Cuts the run tokens out of a raw fragment, wherever they are allowed. */
static bool cut_runs(const task *t, const fragment *raw) {
    const special_runs *r = &t->set->runs;
    const trusted_ranges *only = t->trusted && t->trusted->all ? t->trusted : NULL;
    size_t pos = raw->pos, end = end_of(raw);
    if (!only && !take_runs(t->s, r, t->text, &pos, pos, end)) return false;
    for (size_t i = only ? range_at(only, pos) : 0; only && i < only->n; i++) {
        size_t from = only->data[i].begin, to = only->data[i].end;
        if (from >= end) break;
        if (from < pos) from = pos;
        if (to > end) to = end;
        if (!take_runs(t->s, r, t->text, &pos, from, to)) return false;
    }
    return pos == end || push(&t->s->spare, pos, end - pos, GGTOK_NO_TOKEN);
}

bool ggtok_partition_text(partition_scratch *s, const special_set *set, const vocab *v,
                          const uint8_t *text, size_t n, const trusted_ranges *trusted) {
    task t = {s, set, v, text, n, trusted};
    bool overlap = false;
    s->now.n = s->spare.n = 0;
    if (!n) return true;
    if (PLAIN) return by_rule(&t);
    if (set->n && !find_candidates(&t, &overlap)) return false;
    if (s->spare.n && (overlap || set->strips) && !choose_tokens(&t)) return false;
    if (!write_fragments(&t)) return false;
    if (set->runs.byte < 0) return true;
    s->spare.n = 0;
    for (size_t k = 0; k < s->now.n; k++) {
        const fragment *f = &s->now.data[k];
        if (interrupted(s->interrupt, f->n)) return false;
        if (!(f->id == GGTOK_NO_TOKEN ? cut_runs(&t, f) : push(&s->spare, f->pos, f->n, f->id))) {
            return false;
        }
    }
    swap(s);
    return true;
}

void ggtok_partition_scratch_free(partition_scratch *s) {
    ggtok_mem_free(s->now.data);
    ggtok_mem_free(s->spare.data);
    ggtok_mem_free(s->heap);
    ggtok_mem_free(s->edges.data);
    *s = (partition_scratch){.interrupt = s->interrupt};
}

size_t ggtok_partition_scratch_bytes(const partition_scratch *s) {
    return (s->now.cap + s->spare.cap) * sizeof *s->now.data + s->heap_cap * sizeof *s->heap +
           s->edges.cap;
}
