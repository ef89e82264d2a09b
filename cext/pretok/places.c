#include "pretok/places.h"

#include "base/bits.h"
#include "base/mem.h"
#include "pretok/scan.h"

enum { COLUMNS = 256, WORDS = COLUMNS / 64, STATES = PRETOK_STATE + 1 };

typedef struct columns { /* a set of columns */
    uint64_t bits[WORDS];
} columns;

typedef struct stage { /* by the column of a character: sets of columns of the next one */
    const pretok_scanner *scanner;
    columns apart[COLUMNS];
    columns between[COLUMNS];
} stage;

/* Stages for llama.cpp's chain and for the equivalent chain of fewer scanners. The latter allows
 * more conclusions: each of its states combines the states of all scanners. */
struct pretok_places {
    size_t n, n_fast;
    stage stage[]; /* n for llama.cpp's chain, then n_fast for the other */
};

static bool has(const columns *c, unsigned column) {
    return c->bits[column >> 6] >> (column & 63) & 1;
}

static void add(columns *c, unsigned column) {
    c->bits[column >> 6] |= (uint64_t)1 << (column & 63);
}

static void keep(columns *c, const columns *other) {
    for (size_t i = 0; i < WORDS; i++) c->bits[i] &= other->bits[i];
}

/* ---- one automaton ---- */

typedef struct walk {
    columns used;            /* the columns that some character has */
    uint16_t number[STATES]; /* by state: 1 + its index in `state`; 0: not reachable */
    uint16_t state[STATES];  /* the reachable states; matches begin in the first */
    size_t n;
    columns *entered; /* for each reachable state: the columns that lead to it */
} walk;

/* Whether the scan continues after the character. (From `begin` on, the character begins a new
 * match.) */
static bool goes_on(const pretok_scanner *s, unsigned cell) {
    return cell < s->begin || (cell >= PRETOK_SAVE && cell < PRETOK_STOP_HERE);
}

/* Whether a match ends before the character and no longer match is possible. */
static bool ends_match(const pretok_scanner *s, unsigned cell) {
    return cell == PRETOK_STOP_HERE || (cell >= s->begin && cell < PRETOK_SAVE);
}

static void find_used(const pretok_scanner *s, columns *used) {
    unsigned last_block = 0, n_classes = 0;
    for (unsigned i = 0; i <= 0x10FFFF >> UNICODE_BLOCK_BITS; i++) {
        if (ggtok_unicode_class_index[i] > last_block) last_block = ggtok_unicode_class_index[i];
    }
    for (unsigned i = 0; i < (last_block + 1) << UNICODE_BLOCK_BITS; i++) {
        if (ggtok_unicode_class_block[i] >= n_classes)
            n_classes = ggtok_unicode_class_block[i] + 1u;
    }
    for (unsigned c = 0; c < 0x80; c++) add(used, s->ascii[c]);
    for (unsigned c = 0; c < n_classes; c++) add(used, s->class_[c]);
    used->bits[0] &= ~(uint64_t)1; /* the column of STOP_DECODE belongs to no character */
}

/* Finds all reachable states and the columns that lead to them. Returns false if out of memory. */
static bool find_states(const pretok_scanner *s, walk *w) {
    size_t cap = 0;
    w->state[w->n++] = 0;
    w->number[0] = 1;
    for (size_t i = 0; i < w->n; i++) {
        for (unsigned a = 0; a < COLUMNS; a++) {
            if (!has(&w->used, a)) continue;
            unsigned cell = s->next[w->state[i] + a], to = cell & PRETOK_STATE;
            if (!goes_on(s, cell)) continue;
            if (!w->number[to]) {
                w->state[w->n++] = (uint16_t)to;
                w->number[to] = (uint16_t)w->n;
            }
            if (cap < w->n) {
                columns *entered = ggtok_mem_realloc(w->entered, 2 * w->n * sizeof *entered);
                if (!entered) return false;
                memset(entered + cap, 0, (2 * w->n - cap) * sizeof *entered);
                w->entered = entered;
                cap = 2 * w->n;
            }
            add(&w->entered[w->number[to] - 1], a);
        }
    }
    return true;
}

/* Finds the characters before which a scan in this state ends as it does at the end of the text
 * (`alike`) and, of these, the characters before which it ends with a match (`matched`). */
static void find_ends(const pretok_scanner *s, const walk *w, unsigned state, columns *alike,
                      columns *matched) {
    bool match = ends_match(s, s->next[state + PRETOK_COLUMN_END]);
    for (unsigned b = 0; b < COLUMNS; b++) {
        if (!has(&w->used, b)) continue;
        unsigned cell = s->next[state + b];
        if (goes_on(s, cell) || ends_match(s, cell) != match) continue;
        add(alike, b);
        if (match) add(matched, b);
    }
}

static bool find_places(stage *st) {
    const pretok_scanner *s = st->scanner;
    walk *w = ggtok_mem_zalloc(sizeof *w);
    if (w) find_used(s, &w->used);
    bool ok = w && find_states(s, w);
    if (ok) {
        for (unsigned a = 0; a < COLUMNS; a++) {
            memset(&st->apart[a], 0xFF, sizeof st->apart[a]);
            if (has(&w->used, a) && goes_on(s, s->next[a])) st->between[a] = st->apart[a];
        }
        for (size_t i = 0; w->entered && i < w->n; i++) {
            columns alike = {{0}}, matched = {{0}};
            find_ends(s, w, w->state[i], &alike, &matched);
            for (unsigned a = 0; a < COLUMNS; a++) {
                if (!has(&w->entered[i], a)) continue;
                keep(&st->apart[a], &alike);
                keep(&st->between[a], &matched);
            }
        }
    }
    if (w) ggtok_mem_free(w->entered);
    ggtok_mem_free(w);
    return ok;
}

/* ---- a chain ---- */

static size_t chain_length(const pretok_scanner *const *chain) {
    size_t n = 0;
    while (n < PRETOK_MAX_CHAIN && chain[n]) n++;
    return n;
}

/* Returns false if out of memory. */
static bool find_chain(stage *stages, const pretok_scanner *const *chain, size_t n) {
    for (size_t i = 0; i < n; i++) {
        stages[i].scanner = chain[i]->plain ? chain[i]->plain : chain[i];
        if (stages[i].scanner->cut == ggtok_pretok_dfa_cut && !find_places(&stages[i]))
            return false;
    }
    return true;
}

pretok_places *ggtok_pretok_places_new(const pretok_row *row) {
    size_t n = chain_length(row->chain), n_fast = chain_length(row->fast);
    pretok_places *p = ggtok_mem_zalloc(sizeof *p + (n + n_fast) * sizeof *p->stage);
    if (!p) return NULL;
    p->n = n;
    p->n_fast = n_fast;
    if (find_chain(p->stage, row->chain, n) && find_chain(p->stage + n, row->fast, n_fast)) {
        return p;
    }
    ggtok_pretok_places_free(p);
    return NULL;
}

void ggtok_pretok_places_free(pretok_places *places) {
    ggtok_mem_free(places);
}

static bool is_number(uint32_t cpt) {
    return ggtok_unicode_flags(cpt) & UNICODE_NUMBER;
}

static bool is_digit(uint32_t cpt) {
    return cpt >= '0' && cpt <= '9';
}

static unsigned column_of(const pretok_scanner *s, uint32_t cpt) {
    return cpt < 0x80 ? s->ascii[cpt] : s->class_[unicode_class(cpt)];
}

static int place_in_stage(const stage *st, uint32_t before, uint32_t after) {
    const pretok_scanner *s = st->scanner;
    if (s == &ggtok_pretok_groups_right) {
        if (!is_number(before)) return PRETOK_APART;
        return is_number(after) ? PRETOK_CROSSED : PRETOK_BETWEEN;
    }
    if (s == &ggtok_pretok_newlines) { /* the rest of a run is a run of the same kind */
        if ((before == '\n') != (after == '\n')) return PRETOK_BETWEEN;
        return before == '\n' ? PRETOK_CROSSED : PRETOK_APART;
    }
    if (s == &ggtok_pretok_groups_left) {
        return is_digit(before) && is_digit(after) ? PRETOK_CROSSED : PRETOK_APART;
    }
    unsigned a = column_of(s, before), b = column_of(s, after);
    if (has(&st->between[a], b)) return PRETOK_BETWEEN;
    return has(&st->apart[a], b) ? PRETOK_APART : PRETOK_CROSSED;
}

static int place_in_chain(const stage *stages, size_t n, uint32_t before, uint32_t after) {
    int kind = n ? PRETOK_APART : PRETOK_CROSSED;
    for (size_t i = 0; i < n && kind == PRETOK_APART; i++) {
        kind = place_in_stage(&stages[i], before, after);
    }
    return kind;
}

int ggtok_pretok_place(const pretok_places *places, uint32_t before, uint32_t after) {
    int kind = place_in_chain(places->stage, places->n, before, after);
    int fast = place_in_chain(places->stage + places->n, places->n_fast, before, after);
    return fast > kind ? fast : kind;
}
