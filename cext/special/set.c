#include "special/set.h"

#include "index/stl_order.h"
#include "vocab/keys.h"

static const special_set no_tokens = {.runs = {.byte = -1}};
static const uint32_t control = GGTOK_ATTR_CONTROL | GGTOK_ATTR_UNKNOWN;

/* Maximum number of children of a node without a table. A table takes at most 64 bytes for each
 * child. */
enum { FEW = 16 };

/* Adds a table of children. Returns false if out of memory. */
static bool add_wide(special_set *set) {
    if (set->n_wide == set->wide_cap) {
        size_t cap = set->wide_cap ? 2 * set->wide_cap : 1;
        void *wide = ggtok_mem_realloc(set->wide, mem_mul(cap, sizeof *set->wide));
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

static bool add_token(special_set *set, const vocab *v, uint32_t token) {
    uint32_t id = (uint32_t)set->ids[token - 1], node = 0;
    gguf_view text = vocab_text(v, id);
    for (size_t i = 0; i < text.n; i++) {
        uint32_t c = special_child(set, node, text.p[i]);
        if (!c && !add_child(set, node, text.p[i], &c)) return false;
        node = c;
    }
    /* Of tokens with equal texts (hybriddna has some), the first gets every occurrence that it is
     * allowed to match. */
    uint32_t *first = &set->nodes[node].token;
    if (!*first) *first = token;
    if (!set->open[*first] && !(v->attr[id] & VOCAB_RESERVED)) set->open[*first] = token;
    return true;
}

/* Sets the fail links, breadth first: the link of a node depends on those of all shorter nodes. */
static bool link_nodes(special_set *set) {
    uint32_t *queue = ggtok_mem_alloc(mem_mul(set->n_nodes, sizeof *queue));
    if (!queue) return false;
    size_t head = 0, tail = 0;
    queue[tail++] = 0;
    while (head < tail) {
        uint32_t parent = queue[head++];
        for (uint32_t c = set->nodes[parent].child; c; c = set->nodes[c].sibling) {
            special_node *node = &set->nodes[c];
            node->fail = parent ? special_step(set, set->nodes[parent].fail, node->byte) : 0;
            uint32_t shorter = set->nodes[node->fail].token;
            if (!node->token)
                node->token = shorter;
            else if (!set->open[node->token])
                set->open[node->token] = set->open[shorter];
            queue[tail++] = c;
        }
    }
    ggtok_mem_free(queue);
    return true;
}

static const uint32_t special = GGTOK_ATTR_CONTROL | GGTOK_ATTR_UNKNOWN | GGTOK_ATTR_USER_DEFINED;

/* Returns the number of special tokens; sets *bytes to the total length of their texts. */
static size_t count_tokens(const vocab *v, size_t *bytes) {
    size_t n = 0;
    *bytes = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (!(v->attr[id] & special)) continue;
        n++;
        *bytes += vocab_text(v, id).n;
    }
    return n;
}

/* Sorts the special tokens into llama.cpp's order, then removes the tokens that aren't parsed.
 * Removing them first could change the order of the others, since the sort isn't stable. Returns
 * false if out of memory. */
static bool sort_tokens(special_set *set, const vocab *v, size_t n, bool parse_special,
                        const bool *chosen) {
    uint32_t *length = ggtok_mem_alloc(mem_mul(v->n_tokens, sizeof *length));
    if (!length) return false;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (!(v->attr[id] & special)) continue;
        length[id] = (uint32_t)vocab_text(v, id).n;
        set->ids[set->n++] = (int32_t)id;
    }
    ggtok_stl_sort_descending(set->ids, n, length);
    ggtok_mem_free(length);
    if (parse_special && !chosen) return true;
    set->n = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t id = set->ids[i];
        bool parsed = parse_special && chosen[id];
        if (parsed || !(v->attr[id] & control)) set->ids[set->n++] = id;
    }
    return true;
}

/* Builds the automaton over the texts of set->ids. Returns false if out of memory. */
static bool build_automaton(special_set *set, const vocab *v) {
    set->nodes[0] = (special_node){0};
    set->n_nodes = 1;
    for (size_t i = 0; i < set->n; i++) {
        uint32_t attr = v->attr[set->ids[i]];
        set->strips |= (attr & (GGTOK_ATTR_LSTRIP | GGTOK_ATTR_RSTRIP)) != 0;
        set->anywhere |= !(attr & VOCAB_RESERVED);
        if (!add_token(set, v, (uint32_t)i + 1)) return false;
    }
    special_node *fitted = ggtok_mem_realloc(set->nodes, mem_mul(set->n_nodes, sizeof *fitted));
    if (fitted) set->nodes = fitted;
    return link_nodes(set);
}

/* Collects the first bytes of the tokens, for which partition searches a text. */
static void find_first_bytes(special_set *set) {
    size_t n = 0;
    for (int b = 0; b < 256; b++) {
        set->first[b] = set->wide[0][b] != 0;
        if (set->first[b] && n++ < SPECIAL_STARTS) set->starts[n - 1] = (uint8_t)b;
    }
    set->n_starts = n <= SPECIAL_STARTS ? n : 0;
}

ggtok_status ggtok_special_set_build(special_set *set, const vocab *v, bool parse_special,
                                     const bool *chosen, ggtok_error *err) {
    size_t bytes, n = count_tokens(v, &bytes);
    *set = no_tokens;
    if (!n) return GGTOK_OK;
    if (bytes > UINT32_MAX - 1) {
        return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS),
                                  GGTOK_NO_OFFSET,
                                  "the special tokens' texts hold more than 4 GiB");
    }
    set->ids = ggtok_mem_alloc(mem_mul(n, sizeof *set->ids));
    set->open = ggtok_mem_zalloc(mem_mul(n + 1, sizeof *set->open));
    set->nodes = ggtok_mem_alloc(mem_mul(bytes + 1, sizeof *set->nodes));
    if (set->ids && set->open && set->nodes && add_wide(set) &&
        sort_tokens(set, v, n, parse_special, chosen) &&
        ggtok_special_runs_take(&set->runs, v, set->ids, &set->n) && build_automaton(set, v)) {
        find_first_bytes(set);
        return GGTOK_OK;
    }
    ggtok_special_set_free(set);
    return ggtok_error_memory(err);
}

void ggtok_special_set_free(special_set *set) {
    ggtok_mem_free(set->ids);
    ggtok_mem_free(set->open);
    ggtok_mem_free(set->nodes);
    ggtok_mem_free(set->wide);
    ggtok_special_runs_free(&set->runs);
    *set = no_tokens;
}
