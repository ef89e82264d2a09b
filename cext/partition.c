#include "partition.h"

#include "stl_order.h"
#include "vocab_keys.h"

/*
 * The automaton is Aho and Corasick's over the special tokens' texts. Children hang on a
 * list; where there are many, and at the root, there is a table of them too.
 */
typedef struct special_node {
    uint32_t child, sibling; /* 0: none (the root is nobody's child) */
    uint32_t wide;           /* its table of children, or 0 (the root's is that) */
    uint32_t fail;           /* the longest proper suffix that is a node */
    uint32_t report;         /* nearest node on the fail chain, this one included, that ends a
                                token; 0: none */
    uint32_t token;          /* 1 + its index in ids, or 0 */
    uint8_t byte;
} special_node;

static const special_set no_tokens = {.runs = {.byte = -1}};

enum { FEW = 16 }; /* children of a node without a table: 64 bytes of table a child at most */

static uint32_t child_of(const special_set *set, uint32_t node, uint8_t byte) {
    const special_node *n = &set->nodes[node];
    if (!node || n->wide) return set->wide[n->wide][byte];
    uint32_t c = n->child;
    while (c && set->nodes[c].byte != byte) c = set->nodes[c].sibling;
    return c;
}

/* One more table; false: out of memory. */
static bool add_wide(special_set *set) {
    if (set->n_wide == set->wide_cap) {
        size_t cap = set->wide_cap ? 2 * set->wide_cap : 1;
        void *wide = mem_realloc(set->wide, mem_mul(cap, sizeof *set->wide));
        if (!wide) return false;
        set->wide = wide;
        set->wide_cap = cap;
    }
    memset(set->wide[set->n_wide++], 0, sizeof *set->wide);
    return true;
}

static bool add_child(special_set *set, uint32_t node, uint8_t byte, uint32_t *child) {
    special_node *n = &set->nodes[node];
    uint32_t count = 0, c = *child = (uint32_t)set->n_nodes++;
    set->nodes[c] = (special_node){.byte = byte, .sibling = n->child};
    n->child = c;
    if (!node || n->wide) {
        set->wide[n->wide][byte] = c;
        return true;
    }
    for (uint32_t i = c; i; i = set->nodes[i].sibling) count++;
    if (count <= FEW) return true;
    if (!add_wide(set)) return false;
    n->wide = (uint32_t)set->n_wide - 1;
    for (; c; c = set->nodes[c].sibling) set->wide[n->wide][set->nodes[c].byte] = c;
    return true;
}

static bool add_text(special_set *set, gguf_view text, uint32_t token) {
    uint32_t node = 0;
    for (size_t i = 0; i < text.n; i++) {
        uint32_t c = child_of(set, node, text.p[i]);
        if (!c && !add_child(set, node, text.p[i], &c)) return false;
        node = c;
    }
    /* Of equal texts (hybriddna has such) the first takes all there is. */
    if (!set->nodes[node].token) set->nodes[node].token = token;
    return true;
}

/* Fail links, breadth first: a node's are known once all shorter ones are. */
static bool link_nodes(special_set *set) {
    uint32_t *queue = mem_alloc(mem_mul(set->n_nodes, sizeof *queue));
    if (!queue) return false;
    size_t head = 0, tail = 0;
    queue[tail++] = 0;
    while (head < tail) {
        uint32_t parent = queue[head++];
        for (uint32_t c = set->nodes[parent].child; c; c = set->nodes[c].sibling) {
            special_node *node = &set->nodes[c];
            if (parent) {
                uint32_t f = set->nodes[parent].fail, next;
                while (!(next = child_of(set, f, node->byte)) && f) f = set->nodes[f].fail;
                node->fail = next;
            }
            node->report = node->token ? c : set->nodes[node->fail].report;
            queue[tail++] = c;
        }
    }
    mem_free(queue);
    return true;
}

ggtok_status special_set_build(special_set *set, const vocab *v, bool parse_special,
                               ggtok_error *err) {
    const uint32_t control = GGTOK_ATTR_CONTROL | GGTOK_ATTR_UNKNOWN;
    const uint32_t special = control | GGTOK_ATTR_USER_DEFINED;
    size_t n = 0, bytes = 0;
    *set = no_tokens;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (!(v->attr[id] & special)) continue;
        n++;
        bytes += vocab_text(v, id).n;
    }
    if (!n) return GGTOK_OK;
    if (bytes > UINT32_MAX - 1) {
        return error_set_at(err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS), GGTOK_NO_OFFSET,
                            "the special tokens' texts hold more than 4 GiB");
    }
    uint32_t *length = mem_alloc(mem_mul(v->n_tokens, sizeof *length));
    set->ids = mem_alloc(mem_mul(n, sizeof *set->ids));
    set->nodes = mem_alloc(mem_mul(bytes + 1, sizeof *set->nodes));
    if (!length || !set->ids || !set->nodes || !add_wide(set)) goto fail;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (!(v->attr[id] & special)) continue;
        length[id] = (uint32_t)vocab_text(v, id).n;
        set->ids[set->n++] = (int32_t)id;
    }
    stl_sort_descending(set->ids, n, length);
    mem_free(length);
    length = NULL;
    if (!parse_special) { /* sorted with the others, since the sort isn't stable */
        set->n = 0;
        for (size_t i = 0; i < n; i++) {
            if (!(v->attr[set->ids[i]] & control)) set->ids[set->n++] = set->ids[i];
        }
    }
    if (!special_runs_take(&set->runs, v, set->ids, &set->n)) goto fail;
    set->nodes[0] = (special_node){0};
    set->n_nodes = 1;
    for (size_t i = 0; i < set->n; i++) {
        if (!add_text(set, vocab_text(v, (uint32_t)set->ids[i]), (uint32_t)i + 1)) goto fail;
    }
    size_t n_first = 0;
    for (int b = 0; b < 256; b++) {
        set->first[b] = set->wide[0][b] != 0;
        if (set->first[b]) n_first++, set->only_first = b;
    }
    if (n_first != 1) set->only_first = -1;
    special_node *fitted = mem_realloc(set->nodes, mem_mul(set->n_nodes, sizeof *fitted));
    if (fitted) set->nodes = fitted;
    if (link_nodes(set)) return GGTOK_OK;
fail:
    mem_free(length);
    special_set_free(set);
    return error_memory(err);
}

void special_set_free(special_set *set) {
    mem_free(set->ids);
    mem_free(set->nodes);
    mem_free(set->wide);
    special_runs_free(&set->runs);
    *set = no_tokens;
}

/* ---- which tokens does the text hold? ---- */

static bool none_seen(partition_scratch *s, const special_set *set) {
    if (s->seen_cap < set->n) {
        uint8_t *seen = mem_realloc(s->seen, set->n);
        if (!seen) return false;
        s->seen = seen;
        s->seen_cap = set->n;
    }
    memset(s->seen, 0, set->n);
    return true;
}

/* The first place in text[i..n) where a token may begin, or n. */
static size_t next_start(const special_set *set, const uint8_t *text, size_t i, size_t n) {
    if (set->only_first >= 0) { /* as in most vocabularies: '<' */
        const uint8_t *p = memchr(text + i, set->only_first, n - i);
        return p ? (size_t)(p - text) : n;
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

/* Sets seen[i] for each token i that occurs; *count of them. Linear: a token
 * that was seen before ends the walk along the report links, for all behind it
 * on that chain were seen with it. */
static bool find_tokens(partition_scratch *s, const special_set *set, const uint8_t *text, size_t n,
                        size_t *count) {
    uint32_t node = 0;
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        if (!node && (i = next_start(set, text, i, n)) == n) break;
        uint32_t c = child_of(set, node, text[i]);
        while (!c && node) {
            node = set->nodes[node].fail;
            c = child_of(set, node, text[i]);
        }
        node = c;
        for (uint32_t r = set->nodes[node].report; r; r = set->nodes[set->nodes[r].fail].report) {
            if (!*count && !none_seen(s, set)) return false;
            uint8_t *seen = &s->seen[set->nodes[r].token - 1];
            if (*seen) break;
            *seen = 1;
            ++*count;
        }
    }
    return true;
}

/* The rule's own answer: who knows. */
static bool all_tokens(partition_scratch *s, const special_set *set, size_t *count) {
    if (!none_seen(s, set)) return false;
    memset(s->seen, 1, *count = set->n);
    return true;
}

/* ---- the rule ---- */

static bool push(fragments *f, size_t pos, size_t n, int32_t id) {
    if (f->n == f->cap) {
        size_t cap = f->cap ? f->cap * 2 : 16;
        fragment *data = mem_realloc(f->data, mem_mul(cap, sizeof *data));
        if (!data) return false;
        f->data = data;
        f->cap = cap;
    }
    f->data[f->n++] = (fragment){pos, n, id};
    return true;
}

static bool is_space(uint8_t c) { /* C's isspace, as llama.cpp uses it */
    return c == ' ' || (c >= '\t' && c <= '\r');
}

enum { SHORT = 64 };

/* Knuth, Morris and Pratt's table for a long word, since comparing at each place could
 * be quadratic: how many bytes of the word's beginning end at its i-th byte. */
static bool long_borders(partition_scratch *s, gguf_view word) {
    if (word.n <= SHORT) return true;
    if (s->border_cap < word.n) {
        uint32_t *border = mem_realloc(s->border, mem_mul(word.n, sizeof *border));
        if (!border) return false;
        s->border = border;
        s->border_cap = word.n;
    }
    uint32_t k = 0;
    s->border[0] = 0;
    for (size_t i = 1; i < word.n; i++) {
        while (k && word.p[i] != word.p[k]) k = s->border[k - 1];
        s->border[i] = k += word.p[i] == word.p[k];
    }
    return true;
}

/* Offset of the first `word` in text[from..to), or SIZE_MAX. */
static size_t find_word(const uint8_t *text, size_t from, size_t to, gguf_view word,
                        const uint32_t *border) {
    if (word.n > to - from) return SIZE_MAX;
    size_t last = to - word.n, k = 0;
    while (word.n <= SHORT) {
        const uint8_t *p = from <= last ? memchr(text + from, word.p[0], last - from + 1) : NULL;
        if (!p) return SIZE_MAX;
        if (!memcmp(p, word.p, word.n)) return (size_t)(p - text);
        from = (size_t)(p - text) + 1;
    }
    for (size_t i = from; i < to; i++) {
        if (!k) {
            const uint8_t *p = memchr(text + i, word.p[0], to - i);
            if (!p) break;
            i = (size_t)(p - text);
        }
        while (k && text[i] != word.p[k]) k = border[k - 1];
        k += text[i] == word.p[k];
        if (k == word.n) return i + 1 - k;
    }
    return SIZE_MAX;
}

/* The same, inside one of the ranges. */
static size_t find_trusted(const uint8_t *text, size_t from, size_t to, gguf_view word,
                           const uint32_t *border, const trusted_ranges *trusted) {
    size_t low = 0, high = trusted->n; /* the first range that ends behind `from` */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trusted->data[middle].end <= from)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < trusted->n && trusted->data[low].begin < to; low++) {
        ggtok_range r = trusted->data[low];
        size_t at =
            find_word(text, r.begin > from ? r.begin : from, r.end < to ? r.end : to, word, border);
        if (at != SIZE_MAX) return at;
    }
    return SIZE_MAX;
}

/* Takes one token's occurrences out of one raw fragment. */
static bool cut_fragment(partition_scratch *s, const fragment *raw, int32_t id, gguf_view word,
                         uint32_t attr, const uint8_t *text, const trusted_ranges *trusted) {
    fragments *out = &s->next;
    size_t pos = raw->pos, end = raw->pos + raw->n, at;
    if (!(attr & (GGTOK_ATTR_CONTROL | GGTOK_ATTR_UNKNOWN))) trusted = NULL;
    while ((at = trusted ? find_trusted(text, pos, end, word, s->border, trusted)
                         : find_word(text, pos, end, word, s->border)) != SIZE_MAX) {
        size_t left = at;
        if (attr & GGTOK_ATTR_LSTRIP) {
            while (left > pos && is_space(text[left - 1])) left--;
        }
        if (left > pos && !push(out, pos, left - pos, GGTOK_NO_TOKEN)) return false;
        if (!push(out, at, word.n, id)) return false;
        pos = at + word.n;
        if (attr & GGTOK_ATTR_RSTRIP) {
            while (pos < end && is_space(text[pos])) pos++;
        }
    }
    return pos == end || push(out, pos, end - pos, GGTOK_NO_TOKEN);
}

static void swap(partition_scratch *s) {
    fragments before = s->now;
    s->now = s->next;
    s->next = before;
    s->next.n = 0;
}

/* Takes the tokens that are runs out of one raw fragment. */
static bool cut_runs(partition_scratch *s, const special_runs *r, const fragment *raw,
                     const uint8_t *text) {
    size_t pos = raw->pos, end = raw->pos + raw->n, n;
    for (size_t at = pos; (at = special_runs_next(r, text, at, end, &n)) < end; at += n) {
        if (at > pos && !push(&s->next, pos, at - pos, GGTOK_NO_TOKEN)) return false;
        for (uint32_t fit; (fit = r->fit[n < r->longest ? n : r->longest]); n -= fit, at += fit) {
            if (!push(&s->next, at, fit, r->id[fit])) return false;
        }
        pos = at;
    }
    return pos == end || push(&s->next, pos, end - pos, GGTOK_NO_TOKEN);
}

bool partition_text(partition_scratch *s, const special_set *set, const vocab *v,
                    const uint8_t *text, size_t n, const trusted_ranges *trusted) {
    size_t count = 0;
    s->now.n = 0;
    if (!n) return true;
    if (!push(&s->now, 0, n, GGTOK_NO_TOKEN)) return false;
    s->next.n = 0;
    if (set->n && !(PLAIN ? all_tokens(s, set, &count) : find_tokens(s, set, text, n, &count)))
        return false;
    for (size_t i = 0; count; i++) {
        if (!s->seen[i]) continue;
        count--;
        int32_t id = set->ids[i];
        gguf_view word = vocab_text(v, (uint32_t)id);
        if (!long_borders(s, word)) return false;
        for (size_t k = 0; k < s->now.n; k++) {
            const fragment *f = &s->now.data[k];
            bool ok = f->id == GGTOK_NO_TOKEN
                          ? cut_fragment(s, f, id, word, v->attr[id], text, trusted)
                          : push(&s->next, f->pos, f->n, f->id);
            if (!ok) return false;
        }
        swap(s);
    }
    if (set->runs.byte < 0) return true;
    for (size_t k = 0; k < s->now.n; k++) {
        const fragment *f = &s->now.data[k];
        if (!(f->id == GGTOK_NO_TOKEN ? cut_runs(s, &set->runs, f, text)
                                      : push(&s->next, f->pos, f->n, f->id))) {
            return false;
        }
    }
    swap(s);
    return true;
}

void partition_scratch_free(partition_scratch *s) {
    mem_free(s->now.data);
    mem_free(s->next.data);
    mem_free(s->seen);
    mem_free(s->border);
    memset(s, 0, sizeof *s);
}
