/*
 * The paths to position i are paths[i * nbest .. i * nbest + counts[i]). Position 0 is scratch memory;
 * position 1 is the start of the text. The last position of a fragment is the first of the next.
 */
#include "models/nbest.h"

enum { START = 1 };

static inline uint32_t *counts_of(const nbest_lattice *l) {
    return (void *)l->counts.data;
}

static inline size_t n_positions(const nbest_lattice *l) {
    return l->counts.n / sizeof(uint32_t);
}

/* Adds n positions without paths. Returns false if out of memory. */
static bool add_positions(sampling *s, size_t n) {
    nbest_lattice *l = &s->lattice;
    size_t need = mem_mul(n_positions(l) + n, s->nbest);
    if (need > l->paths_cap) {
        size_t cap = need + need / 2;
        nbest_path *paths = ggtok_mem_realloc(l->paths, mem_mul(cap, sizeof *paths));
        if (!paths) return false;
        l->paths = paths;
        l->paths_cap = cap;
    }
    if (!bytebuf_reserve(&l->counts, mem_mul(n, sizeof(uint32_t)))) return false;
    memset(l->counts.data + l->counts.n, 0, n * sizeof(uint32_t));
    l->counts.n += n * sizeof(uint32_t);
    return true;
}

bool ggtok_nbest_begin(sampling *s) {
    nbest_lattice *l = &s->lattice;
    if (!add_positions(s, START + 1)) return false;
    l->paths[START * s->nbest] = (nbest_path){0, GGTOK_NO_TOKEN, 0, 0};
    counts_of(l)[START] = 1;
    return true;
}

ggtok_status ggtok_nbest_too_long(size_t n, uint32_t most, ggtok_error *err) {
    return ggtok_error_set_at(err, GGTOK_ERR_ARGUMENT, "nbest", strlen("nbest"), GGTOK_NO_OFFSET,
                              "nbest: the normalized text has at least %llu bytes, and with the "
                              "%lu best segmentations at "
                              "most %lu are possible; divide the text, or use fewer segmentations",
                              (unsigned long long)n, (unsigned long)most,
                              (unsigned long)(GGTOK_NBEST_PLACES / most));
}

ggtok_status ggtok_nbest_begin_fragment(sampling *s, size_t n, size_t ids_before, nbest_path **at,
                                        uint32_t **counts, nbest_path **merged, ggtok_error *err) {
    nbest_lattice *l = &s->lattice;
    const nbest_fragment f = {n_positions(l) - 1, n, ids_before};
    if (n >= GGTOK_NBEST_PLACES || (f.first + n) * s->nbest > GGTOK_NBEST_PLACES)
        return ggtok_nbest_too_long(f.first + n, s->nbest, err);
    if (!add_positions(s, n) || !bytebuf_append(&l->fragments, &f, sizeof f))
        return ggtok_error_memory(err);
    *at = l->paths + f.first * s->nbest;
    *counts = counts_of(l) + f.first;
    *merged = l->paths;
    return GGTOK_OK;
}

const nbest_path *ggtok_nbest_paths(const sampling *s, uint32_t *n) {
    const size_t last = n_positions(&s->lattice) - 1;
    *n = counts_of(&s->lattice)[last];
    return s->lattice.paths + last * s->nbest;
}

/* Appends the ids of the path `rank` to the end of a fragment, from last to first. Returns the path
 * to its start, or s->nbest if out of memory. */
static uint32_t push_fragment(const sampling *s, const nbest_fragment *f, uint32_t rank,
                              int32_t unknown, idbuf *out) {
    bool was_unknown = false;
    for (size_t i = f->n; i;) {
        const nbest_path *p = &s->lattice.paths[(f->first + i) * s->nbest + rank];
        if (!(was_unknown && p->id == unknown) && !idbuf_push(out, p->id)) return s->nbest;
        was_unknown = p->id == unknown;
        rank = p->rank;
        i -= p->len;
    }
    return rank;
}

/* Appends ids[0..n) from last to first. Returns false if out of memory. */
static bool push_reversed(const int32_t *ids, size_t n, idbuf *out) {
    if (!idbuf_reserve(out, n)) return false;
    while (n) out->data[out->n++] = ids[--n];
    return true;
}

bool ggtok_nbest_ids(const sampling *s, uint32_t rank, const idbuf *others, int32_t unknown,
                     idbuf *out) {
    const nbest_fragment *f = (const void *)s->lattice.fragments.data;
    size_t before = out->n, end = others->n;
    for (size_t k = s->lattice.fragments.n / sizeof *f; k-- > 0; end = f[k].ids_before) {
        if (!push_reversed(others->data + f[k].ids_before, end - f[k].ids_before, out))
            return false;
        rank = push_fragment(s, &f[k], rank, unknown, out);
        if (rank == s->nbest) return false;
    }
    if (!push_reversed(others->data, end, out)) return false;
    for (size_t i = before, k = out->n; i + 1 < k; i++) {
        int32_t id = out->data[i];
        out->data[i] = out->data[--k];
        out->data[k] = id;
    }
    return true;
}
