#include "index/stl_order.h"

/* ---- std::unordered_map ---- */

/* std::hash<std::string>: MurmurHash64A with libstdc++'s seed. */
static uint64_t stl_hash(const uint8_t *p, size_t n) {
    const uint64_t mul = 0xc6a4a7935bd1e995u;
    uint64_t h = 0xc70f6907u ^ (n * mul);
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t k = 0;
        for (int i = 7; i >= 0; i--) k = k << 8 | p[i];
        k *= mul;
        k ^= k >> 47;
        h = (h ^ k * mul) * mul;
    }
    if (n) {
        uint64_t k = 0;
        for (size_t i = n; i--;) k = k << 8 | p[i];
        h = (h ^ k) * mul;
    }
    h ^= h >> 47;
    h *= mul;
    return h ^ h >> 47;
}

/* The bucket counts through which a map grows: each is the library's next prime after twice the
 * previous one. The load factor is 1, so a map of n texts has the first bucket count >= n. */
/* clang-format off */
static const uint32_t bucket_counts[] = {
    13,     29,     59,      127,     257,     541,      1109,     2357,     5087,      10273,
    20753,  42043,  85229,   172933,  351061,  712697,   1447153,  2938679,  5967347,   12117689,
    24607243, 49969847, 101473717, 206062531, 418451333, 849745009, 1725587117,
};
/* clang-format on */
enum { N_BUCKET_COUNTS = sizeof bucket_counts / sizeof bucket_counts[0] };

/* The map's singly linked list of nodes and, for each bucket, the node before its first node. Node
 * i is text i - 1; node 0 is the head of the list; NONE ends it. */
typedef struct node_list {
    uint32_t *next;   /* [n + 1], by node: the next node */
    uint32_t *before; /* [n_buckets]: the node before the first */
    uint32_t n_buckets;
} node_list;

#define HEAD 0u
#define NONE UINT32_MAX

static void clear_buckets(node_list *l) {
    for (uint32_t b = 0; b < l->n_buckets; b++) l->before[b] = NONE;
}

/* Inserts a node at the front of its bucket or, if the bucket is empty, at the front of the
 * list. */
static void link_node(node_list *l, const uint64_t *hash, uint32_t node) {
    uint32_t b = (uint32_t)(hash[node] % l->n_buckets);
    if (l->before[b] != NONE) {
        l->next[node] = l->next[l->before[b]];
        l->next[l->before[b]] = node;
        return;
    }
    uint32_t old = l->next[HEAD];
    l->next[node] = old;
    l->next[HEAD] = node;
    if (old != NONE) l->before[hash[old] % l->n_buckets] = node;
    l->before[b] = HEAD;
}

/* Links every node into a larger table, in the order of the old list. */
static void rehash(node_list *l, const uint64_t *hash, uint32_t n_buckets) {
    uint32_t node = l->next[HEAD];
    l->n_buckets = n_buckets;
    clear_buckets(l);
    l->next[HEAD] = NONE;
    while (node != NONE) {
        uint32_t following = l->next[node];
        link_node(l, hash, node);
        node = following;
    }
}

bool ggtok_stl_map_first(const uint8_t *arena, const uint32_t *off, uint32_t n,
                         const int32_t *candidates, size_t n_candidates, size_t *first) {
    size_t last = 0;
    while (last + 1 < N_BUCKET_COUNTS && bucket_counts[last] < n) last++;
    node_list l = {0};
    l.next = ggtok_mem_alloc(mem_mul((size_t)n + 1, sizeof *l.next));
    l.before = ggtok_mem_alloc(mem_mul(bucket_counts[last], sizeof *l.before));
    uint64_t *hash = ggtok_mem_alloc(mem_mul((size_t)n + 1, sizeof *hash));
    bool ok = l.next && l.before && hash;
    if (ok) {
        size_t grade = 0;
        l.n_buckets = bucket_counts[0]; /* the count grows from 1 to this at the first insertion */
        clear_buckets(&l);
        l.next[HEAD] = NONE;
        for (uint32_t i = 0; i < n; i++) {
            hash[i + 1] = stl_hash(arena + off[i], off[i + 1] - off[i]);
            if (i + 1 > l.n_buckets) rehash(&l, hash, bucket_counts[++grade]);
            link_node(&l, hash, i + 1);
        }
        *first = 0;
        for (uint32_t node = l.next[HEAD]; node != NONE; node = l.next[node]) {
            size_t c = 0;
            while (c < n_candidates && candidates[c] != (int32_t)(node - 1)) c++;
            if (c < n_candidates) {
                *first = c;
                break;
            }
        }
    }
    ggtok_mem_free(l.next);
    ggtok_mem_free(l.before);
    ggtok_mem_free(hash);
    return ok;
}

/* ---- std::sort: introsort down to runs of 16, then insertion sort ---- */

typedef struct sorter {
    int32_t *a;
    stl_less *less;
    void *user;
} sorter;

static bool less(const sorter *s, int32_t x, int32_t y) { /* whether x goes before y */
    return s->less(s->user, x, y);
}

static void swap(sorter *s, size_t i, size_t j) {
    int32_t x = s->a[i];
    s->a[i] = s->a[j];
    s->a[j] = x;
}

static void sift(sorter *s, size_t base, size_t hole, size_t len, int32_t value) {
    int32_t *a = s->a + base;
    size_t top = hole, child = hole;
    while (child < (len - 1) / 2) {
        child = 2 * (child + 1);
        if (less(s, a[child], a[child - 1])) child--;
        a[hole] = a[child];
        hole = child;
    }
    if (len % 2 == 0 && child == (len - 2) / 2) {
        child = 2 * child + 1;
        a[hole] = a[child];
        hole = child;
    }
    while (hole > top && less(s, a[(hole - 1) / 2], value)) {
        a[hole] = a[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    a[hole] = value;
}

static void heap_sort(sorter *s, size_t first, size_t last) {
    size_t len = last - first;
    for (size_t parent = (len - 2) / 2 + 1; parent--;) {
        sift(s, first, parent, len, s->a[first + parent]);
    }
    while (len > 1) {
        len--;
        int32_t value = s->a[first + len];
        s->a[first + len] = s->a[first];
        sift(s, first, 0, len, value);
    }
}

/* Moves the median of three items to `first`, then partitions the rest around it. */
static size_t partition(sorter *s, size_t first, size_t last) {
    const int32_t *a = s->a;
    size_t x = first + 1, y = first + (last - first) / 2, z = last - 1, median;
    if (less(s, a[x], a[y])) {
        median = less(s, a[y], a[z]) ? y : less(s, a[x], a[z]) ? z : x;
    } else {
        median = less(s, a[x], a[z]) ? x : less(s, a[y], a[z]) ? z : y;
    }
    swap(s, first, median);
    size_t lo = first + 1, hi = last;
    for (;; lo++) {
        while (lo < last && less(s, a[lo], a[first])) lo++;
        do hi--;
        while (hi > first && less(s, a[first], a[hi]));
        if (lo >= hi) return lo;
        swap(s, lo, hi);
    }
}

static void insert(sorter *s, size_t i) {
    int32_t value = s->a[i];
    for (; i && less(s, value, s->a[i - 1]); i--) s->a[i] = s->a[i - 1];
    s->a[i] = value;
}

void ggtok_stl_sort(int32_t *items, size_t n, stl_less *less_fn, void *user) {
    enum { RUN = 16 };
    sorter s = {items, less_fn, user};
    unsigned depth = 0;
    for (size_t m = n; m > 1; m /= 2) depth += 2;
    struct { /* ranges left to sort, at most one per level */
        size_t first, last;
        unsigned depth;
    } todo[2 * 8 * sizeof(size_t) + 1];
    size_t n_todo = 0;
    size_t first = 0, last = n;
    for (;;) {
        if (last - first <= RUN) {
            if (!n_todo) break;
            n_todo--;
            first = todo[n_todo].first;
            last = todo[n_todo].last;
            depth = todo[n_todo].depth;
        } else if (!depth) {
            heap_sort(&s, first, last);
            last = first;
        } else {
            /* The library sorts the right part first. The parts are disjoint, so the order doesn't
             * matter. */
            depth--;
            size_t cut = partition(&s, first, last);
            todo[n_todo].first = cut;
            todo[n_todo].last = last;
            todo[n_todo].depth = depth;
            n_todo++;
            last = cut;
        }
    }
    /* In the first run, an item that goes before all others is moved to the front. After the first
     * run, the library inserts without a bound check, which is safe if the comparisons are
     * consistent: the first run then contains the least item. `insert` has the check. */
    for (size_t i = 1; i < n; i++) {
        int32_t value = items[i];
        if (i < RUN && less(&s, value, items[0])) {
            memmove(items + 1, items, i * sizeof value);
            items[0] = value;
        } else {
            insert(&s, i);
        }
    }
}

static bool greater_key(void *user, int32_t x, int32_t y) {
    const uint32_t *key = user;
    return key[x] > key[y];
}

void ggtok_stl_sort_descending(int32_t *ids, size_t n, const uint32_t *key) {
    ggtok_stl_sort(ids, n, greater_key, (void *)key);
}
