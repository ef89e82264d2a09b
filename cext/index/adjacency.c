#include "index/adjacency.h"

bool ggtok_adjacency_init(adjacency *p, size_t n_pairs) {
    enum { MIN_LOG2 = 15, MAX_LOG2 = 23, SPARSE = 8 }; /* SPARSE: minimum bits per pair */
    unsigned log2 = MIN_LOG2;
    while (log2 < MAX_LOG2 && (size_t)1 << log2 < SPARSE * n_pairs) log2++;
    memset(p->ascii, 0, sizeof p->ascii);
    p->shift = 64 - log2;
    p->bits = ggtok_mem_zalloc((size_t)1 << (log2 - 3));
    return p->bits != NULL;
}

void ggtok_adjacency_free(adjacency *p) {
    ggtok_mem_free(p->bits);
    p->bits = NULL;
}

bool ggtok_adjacency_add(adjacency *p, const uint8_t *text, size_t n) {
    uint32_t before = 0;
    if (PLAIN) return false;
    for (size_t i = 0, len; i < n; i += len) {
        if (utf8_lead_len(text[i]) > n - i) return false;
        uint32_t c = char_at(text + i, n - i, &len);
        if (i) pair_add(p, before, c);
        before = c;
    }
    return true;
}
