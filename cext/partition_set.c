#include "partition_set.h"

#include "stl_order.h"
#include "vocab_keys.h"

static const special_set no_tokens = {.runs = {.byte = -1}};
static const uint32_t control = GGTOK_ATTR_CONTROL | GGTOK_ATTR_UNKNOWN;

enum { FEW = 16 }; /* children of a node without a table: 64 bytes of table a child at most */

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

static bool add_token(special_set *set, const vocab *v, uint32_t token) {
    uint32_t id = (uint32_t)set->ids[token - 1], node = 0;
    gguf_view text = vocab_text(v, id);
    for (size_t i = 0; i < text.n; i++) {
        uint32_t c = special_child(set, node, text.p[i]);
        if (!c && !add_child(set, node, text.p[i], &c)) return false;
        node = c;
    }
    /* Of equal texts (hybriddna has such) the first takes all that it may. */
    uint32_t *first = &set->nodes[node].token;
    if (!*first) *first = token;
    if (!set->open[*first] && !(v->attr[id] & control)) set->open[*first] = token;
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
            node->fail = parent ? special_step(set, set->nodes[parent].fail, node->byte) : 0;
            uint32_t shorter = set->nodes[node->fail].token;
            if (!node->token)
                node->token = shorter;
            else if (!set->open[node->token])
                set->open[node->token] = set->open[shorter];
            queue[tail++] = c;
        }
    }
    mem_free(queue);
    return true;
}

ggtok_status special_set_build(special_set *set, const vocab *v, bool parse_special,
                               ggtok_error *err) {
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
    set->open = mem_zalloc(mem_mul(n + 1, sizeof *set->open));
    set->nodes = mem_alloc(mem_mul(bytes + 1, sizeof *set->nodes));
    if (!length || !set->ids || !set->open || !set->nodes || !add_wide(set)) goto fail;
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
        set->strips |= (v->attr[set->ids[i]] & (GGTOK_ATTR_LSTRIP | GGTOK_ATTR_RSTRIP)) != 0;
        if (!add_token(set, v, (uint32_t)i + 1)) goto fail;
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
    mem_free(set->open);
    mem_free(set->nodes);
    mem_free(set->wide);
    special_runs_free(&set->runs);
    *set = no_tokens;
}
