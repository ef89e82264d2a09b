/* Training; see ggtok.h. docs/design/training.md explains the algorithm. */
#include "base/error.h"
#include "train/part.h"
#include "train/recount.h"

/* Maximum total length of all new symbols, in initial symbols. Longer ones would be useless, and
 * could exhaust the memory. */
enum { MAX_NEW_LENGTH = SMALL ? 1 << 12 : 1 << 30 };

struct ggtok_merges {
    ggtok_merge_row *rows;
    size_t n, cap;
};

typedef struct training {
    const ggtok_merge_options *options;
    layout layout;
    symbols symbols;
    pairs pairs;
    part part;
    ggtok_merges *merges;
    size_t n_new;
    uint64_t work; /* units of work since the last call to `progress` */
} training;

/* ---- one merge ---- */

/* Updates the counts of pairs that lose occurrences, and adds the new pairs. */
static bool update_pairs(training *t, uint32_t left, uint32_t right, uint32_t made) {
    enum { SOON = 6, LATER = 12 };
    part *p = &t->part;
    pairs *pairs = &t->pairs;
    pair *q;
    for (size_t i = 0; i < p->left.n_seen; i++) {
        uint32_t symbol = p->left.seen[i];
        if (i + LATER < p->left.n_seen) ggtok_pairs_will_find(pairs, p->left.seen[i + LATER], left);
        if (i + SOON < p->left.n_seen) ggtok_pairs_will_change(pairs, p->left.seen[i + SOON], left);
        neighbour *x = &p->left.counts[symbol];
        if ((q = ggtok_pairs_find(pairs, symbol, left)))
            q->count -= q->count < x->weight ? q->count : x->weight;
        p->left.next[symbol] = NULL;
        if (x->weight >= pairs->least && ggtok_symbols_may_join(&t->symbols, symbol, made)) {
            if (!(q = ggtok_pairs_add(pairs, symbol, made, x->weight, x->n))) return false;
            p->left.next[symbol] = q->places;
        }
        *x = (neighbour){0, 0};
    }
    for (size_t i = 0; i < p->right.n_seen; i++) {
        uint32_t symbol = p->right.seen[i];
        if (i + LATER < p->right.n_seen)
            ggtok_pairs_will_find(pairs, right, p->right.seen[i + LATER]);
        if (i + SOON < p->right.n_seen)
            ggtok_pairs_will_change(pairs, right, p->right.seen[i + SOON]);
        neighbour *x = &p->right.counts[symbol];
        if ((q = ggtok_pairs_find(pairs, right, symbol)))
            q->count -= q->count < x->weight ? q->count : x->weight;
        if (symbol == left) { /* some of these neighbours have been merged, too */
            x->weight -= p->doubled;
            x->n -= p->n_doubled;
        }
        p->right.next[symbol] = NULL;
        if (x->n && x->weight >= pairs->least &&
            ggtok_symbols_may_join(&t->symbols, made, symbol)) {
            if (!(q = ggtok_pairs_add(pairs, made, symbol, x->weight, x->n))) return false;
            p->right.next[symbol] = q->places;
        }
        *x = (neighbour){0, 0};
    }
    p->left.next[made] = NULL;
    if (p->n_doubled && p->doubled >= pairs->least &&
        ggtok_symbols_may_join(&t->symbols, made, made)) {
        if (!(q = ggtok_pairs_add(pairs, made, made, p->doubled, p->n_doubled))) return false;
        p->left.next[made] = q->places;
    }
    return true;
}

static bool note(ggtok_merges *m, ggtok_merge_row row) {
    if (m->n == m->cap) {
        size_t cap = 2 * m->cap + 1024;
        ggtok_merge_row *grown = ggtok_mem_realloc(m->rows, mem_mul(cap, sizeof *grown));
        if (!grown) return false;
        m->rows = grown;
        m->cap = cap;
    }
    m->rows[m->n++] = row;
    return true;
}

static ggtok_status merge_pair(training *t, pair *q, ggtok_error *err) {
    const uint32_t left = q->left, right = q->right, n = q->n;
    const uint64_t count = q->count;
    uint32_t *places = q->places;
    int64_t number = ggtok_symbols_number(&t->symbols, left, right);
    q->places = NULL; /* adding pairs may move all pairs in memory */
    ggtok_pairs_done(q);
    ggtok_status s = GGTOK_OK;
    if (number < 0) goto done;
    uint32_t made = (uint32_t)number;
    bool is_new = made == t->symbols.n;
    if (!is_new && t->symbols.all[made].length) {
        s = ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                            "the number %lu of a reserved text is also that of another symbol",
                            (unsigned long)made);
        goto done;
    }
    if (made > SLOT_SYMBOL - 1 || !ggtok_symbols_make(&t->symbols, made, left, right) ||
        !note(t->merges, (ggtok_merge_row){left, right, made, count, 0}) ||
        !ggtok_part_reach(&t->part, t->symbols.n) || !ggtok_part_room(&t->part, n)) {
        goto out_of_memory;
    }
    if (t->symbols.total_length > MAX_NEW_LENGTH) {
        s = ggtok_error_set(
            err, GGTOK_ERR_ARGUMENT,
            "the new tokens are too long: more than %d bytes in all after %llu merges; "
            "limit their length (max_token_length) or ask for fewer",
            MAX_NEW_LENGTH, (unsigned long long)t->merges->n);
        goto done;
    }
    t->n_new += is_new;
    t->work += n + 64;
    const symbol *all = t->symbols.all;
    ggtok_part_replace(&t->part, places, n, left, right, made, all[made].length, all);
    t->merges->rows[t->merges->n - 1].replaced = t->part.replaced;
    if (!update_pairs(t, left, right, made)) goto out_of_memory;
    ggtok_part_list(&t->part, all);
    goto done;
out_of_memory:
    s = ggtok_error_memory(err);
done:
    ggtok_mem_free(places);
    return s;
}

/* ---- all merges ---- */

static bool keep_going(training *t, uint64_t count) {
    enum { ASK = 1 << 18 }; /* units of work between calls: a few milliseconds */
    const ggtok_merge_options *o = t->options;
    if (!o->progress || t->work < ASK) return true;
    t->work = 0;
    ggtok_merge_progress now = {t->n_new, o->most_new, count};
    return o->progress(o->user, &now);
}

/* Returns the initial minimum count of the pairs that are kept. In natural text, the last merge of
 * a vocabulary occurs a fiftieth to a hundredth as often as if the weight were spread evenly over
 * the merges. Most pairs occur fewer than RARE times; such pairs are kept only if no other pairs
 * are left. */
enum { RARE = 4 };

static uint64_t first_least(const training *t) {
    const ggtok_merge_options *o = t->options;
    if (PLAIN) return o->min_count;
    uint64_t least = t->layout.weight / 128 / (o->most_new ? o->most_new : 1);
    if (least < RARE) least = RARE;
    return least > o->min_count ? least : o->min_count;
}

/* Returns the next minimum count, once no pair is left that reaches the current one. */
static uint64_t next_least(const training *t) {
    uint64_t least = t->pairs.least, next = least > 4 * RARE ? least / 4 : least / 2;
    return next > t->options->min_count ? next : t->options->min_count;
}

static ggtok_status train(training *t, ggtok_error *err) {
    const ggtok_merge_options *o = t->options;
    pairs *p = &t->pairs;
    p->least = first_least(t);
    if (!ggtok_recount(p, &t->layout)) return ggtok_error_memory(err);
    while (t->n_new < o->most_new) {
        pair *q = ggtok_pairs_take(p);
        if (!q) {
            if (p->least <= o->min_count) break;
            p->least = next_least(t);
            ggtok_pairs_clear(p);
            if (!ggtok_recount(p, &t->layout)) return ggtok_error_memory(err);
            continue;
        }
        uint64_t count = q->count;
        ggtok_status s = merge_pair(t, q, err);
        if (s) return s;
        if (!keep_going(t, count)) {
            return ggtok_error_set(err, GGTOK_ERR_STOPPED, "the caller asked to stop");
        }
    }
    return GGTOK_OK;
}

static ggtok_status check_options(const ggtok_merge_options *o, ggtok_error *err) {
    const char *wrong = NULL;
    uint32_t codes = o->bytes ? 0x100 : 0x110000;
    if (o->min_count < 1) wrong = "min_count is 0";
    if (o->first_new >= SLOT_NONE) wrong = "first_new is too large";
    for (size_t i = 0; i < o->n_initial; i++) {
        if (o->initial[i].code >= codes) wrong = "an initial symbol is not a byte or code point";
        if (o->initial[i].number >= o->first_new)
            wrong = "an initial symbol's number isn't below first_new";
    }
    for (size_t i = 0; i < o->n_reserved; i++) {
        const ggtok_reserved *r = &o->reserved[i];
        if (i && r->n < r[-1].n) wrong = "reserved texts are not in ascending order of length";
        if (r->number >= o->first_new) wrong = "a reserved number isn't below first_new";
    }
    return wrong ? ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "%s", wrong) : GGTOK_OK;
}

static ggtok_status prepare(training *t, const ggtok_counts *counts, ggtok_error *err) {
    const ggtok_merge_options *o = t->options;
    size_t codes = o->bytes ? 0x100 : 0x110000;
    alphabet a = {ggtok_mem_alloc(codes * sizeof *a.symbol), o->bytes};
    if (!a.symbol || !ggtok_symbols_init(&t->symbols, o) ||
        !ggtok_pairs_init(&t->pairs, &t->symbols)) {
        ggtok_mem_free(a.symbol);
        return ggtok_error_memory(err);
    }
    for (size_t i = 0; i < codes; i++) a.symbol[i] = SLOT_NONE;
    for (size_t i = 0; i < o->n_initial; i++) a.symbol[o->initial[i].code] = o->initial[i].number;
    ggtok_status s = ggtok_layout_build(&t->layout, &counts->table, &a, err);
    ggtok_mem_free(a.symbol);
    t->part.layout = &t->layout;
    return s;
}

ggtok_status ggtok_merge(const ggtok_counts *counts, const ggtok_merge_options *options,
                         ggtok_merges **out, ggtok_error *err) {
    *out = NULL;
    ggtok_status s = check_options(options, err);
    if (s) return s;
    training *t = ggtok_mem_zalloc(sizeof *t);
    if (!t || !(t->merges = ggtok_mem_zalloc(sizeof *t->merges))) {
        ggtok_mem_free(t);
        return ggtok_error_memory(err);
    }
    t->options = options;
    s = prepare(t, counts, err);
    if (!s) s = train(t, err);
    ggtok_layout_free(&t->layout);
    ggtok_symbols_free(&t->symbols);
    ggtok_pairs_free(&t->pairs);
    ggtok_part_free(&t->part);
    if (s) {
        ggtok_merges_free(t->merges);
    } else {
        *out = t->merges;
    }
    ggtok_mem_free(t);
    return s;
}

const ggtok_merge_row *ggtok_merges_rows(const ggtok_merges *m, size_t *n) {
    *n = m->n;
    return m->rows;
}

void ggtok_merges_free(ggtok_merges *m) {
    if (!m) return;
    ggtok_mem_free(m->rows);
    ggtok_mem_free(m);
}
