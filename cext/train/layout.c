#include "train/layout.h"

#include "base/error.h"
#include "unicode/utf8.h"

#include <stdlib.h>

/* Each count below this has a separate class, found by index. Words with greater counts are
 * sorted. */
enum { SMALL_COUNT = SMALL ? 4 : 1 << 14, BLOCKS_LOG2 = 16 };
#define MAX_SLOTS ((uint64_t)UINT32_MAX - 1)

typedef struct frequent { /* a word that occurs at least SMALL_COUNT times */
    uint64_t count;
    const uint8_t *p;
    size_t n;
} frequent;

void ggtok_layout_free(layout *l) {
    ggtok_mem_free(l->slots);
    ggtok_mem_free(l->starts);
    ggtok_mem_free(l->counts);
    ggtok_mem_free(l->class_at);
    memset(l, 0, sizeof *l);
}

/* Writes a word's symbols to `out`, unless it is NULL; returns the number of slots that they take.
 * Characters outside the alphabet divide a word. A lone symbol is in no pair and takes no slot. */
static size_t put_word(const alphabet *a, const uint8_t *p, size_t n, uint32_t *out) {
    size_t written = 0, length = 0;
    uint32_t first = SLOT_NONE;
    for (const uint8_t *end = p + n;;) {
        bool last = p == end;
        uint32_t symbol = last ? SLOT_NONE : a->symbol[a->bytes ? *p++ : utf8_next(&p)];
        if (symbol != SLOT_NONE) {
            /* A lone symbol isn't written: the slot belongs to another word. */
            if (out && length == 1) out[written] = first | SLOT_FIRST;
            if (out && length) out[written + length] = symbol;
            if (!length++) first = symbol;
            continue;
        }
        if (length > 1) written += length;
        if (last) return written;
        length = 0;
    }
}

static int by_count(const void *a, const void *b) {
    const frequent *x = a, *y = b;
    return x->count == y->count ? 0 : x->count < y->count ? 1 : -1;
}

typedef struct build {
    frequent *frequent;
    size_t n_frequent, cap;
    /* For each small count, the number of slots of all words with that count; later, the next free
     * slot for such a word. */
    uint64_t slots_of[SMALL_COUNT];
} build;

/* Computes the number of slots for each small count, and lists the frequent words. */
static ggtok_status measure(layout *l, build *b, const table *t, const alphabet *a,
                            ggtok_error *err) {
    uint64_t n = 0;
    table_word w;
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        for (size_t at = 0; ggtok_table_next(&t->shards[i], &at, &w);) {
            uint64_t size = put_word(a, w.p, w.n, NULL);
            if (!size) continue;
            n += size;
            if (w.count > (UINT64_MAX / 4 - l->weight) / size) {
                return ggtok_error_set(
                    err, GGTOK_ERR_ARGUMENT,
                    "the words' counts are too large: more than 2^62 symbols in all");
            }
            l->weight += w.count * size;
            if (w.count < SMALL_COUNT) {
                b->slots_of[w.count] += size;
                continue;
            }
            if (b->n_frequent == b->cap) {
                size_t cap = 2 * b->cap + 256;
                frequent *grown = ggtok_mem_realloc(b->frequent, mem_mul(cap, sizeof *grown));
                if (!grown) return ggtok_error_memory(err);
                b->frequent = grown;
                b->cap = cap;
            }
            b->frequent[b->n_frequent++] = (frequent){w.count, w.p, w.n};
        }
    }
    if (n > MAX_SLOTS) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                               "the distinct words have more than 2^32 symbols: count fewer "
                               "(max_words), or split long words");
    }
    l->n = (size_t)n;
    return GGTOK_OK;
}

static void add_class(layout *l, uint64_t count, size_t start) {
    if (l->n_classes && l->counts[l->n_classes - 1] == count) return;
    l->counts[l->n_classes] = count;
    l->starts[l->n_classes++] = (uint32_t)start;
}

static void fill(layout *l, build *b, const table *t, const alphabet *a) {
    size_t at = 0;
    table_word w;
    if (b->n_frequent) qsort(b->frequent, b->n_frequent, sizeof *b->frequent, by_count);
    for (size_t i = 0; i < b->n_frequent; i++) {
        const frequent *f = &b->frequent[i];
        add_class(l, f->count, at);
        at += put_word(a, f->p, f->n, l->slots + at);
    }
    for (size_t count = SMALL_COUNT; count-- > 1;) {
        size_t size = (size_t)b->slots_of[count];
        b->slots_of[count] = at;
        if (size) add_class(l, count, at);
        at += size;
    }
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        for (size_t k = 0; ggtok_table_next(&t->shards[i], &k, &w);) {
            if (w.count >= SMALL_COUNT) continue;
            uint64_t *place = &b->slots_of[w.count];
            *place += put_word(a, w.p, w.n, l->slots + *place);
        }
    }
    l->starts[l->n_classes] = (uint32_t)l->n;
    l->slots[l->n] = SLOT_FIRST | SLOT_NONE;
    l->slots[l->n + 1] = SLOT_FIRST | SLOT_NONE;
}

/* Records the class of each block's first slot, to shorten searches for a slot's class. */
static bool index_classes(layout *l) {
    while (l->n >> l->shift >> BLOCKS_LOG2) l->shift++;
    size_t n = (l->n >> l->shift) + 2, class = 0;
    l->class_at = ggtok_mem_alloc(mem_mul(n, sizeof *l->class_at));
    if (!l->class_at) return false;
    for (size_t i = 0; i < n; i++) {
        while (class + 1 < l->n_classes && l->starts[class + 1] <= (uint64_t)i << l->shift) class++;
        l->class_at[i] = (uint32_t)class;
    }
    return true;
}

ggtok_status ggtok_layout_build(layout *l, const table *t, const alphabet *a, ggtok_error *err) {
    memset(l, 0, sizeof *l);
    build *b = ggtok_mem_zalloc(sizeof *b);
    if (!b) return ggtok_error_memory(err);
    ggtok_status s = measure(l, b, t, a, err);
    if (s) goto done;
    size_t classes = b->n_frequent + SMALL_COUNT + 1;
    l->slots = ggtok_mem_alloc(mem_mul(l->n + 2, sizeof *l->slots));
    l->starts = ggtok_mem_alloc(mem_mul(classes, sizeof *l->starts));
    l->counts = ggtok_mem_alloc(mem_mul(classes, sizeof *l->counts));
    if (!l->slots || !l->starts || !l->counts) goto out_of_memory;
    fill(l, b, t, a);
    if (!index_classes(l)) goto out_of_memory;
    goto done;
out_of_memory:
    s = ggtok_error_memory(err);
done:
    ggtok_mem_free(b->frequent);
    ggtok_mem_free(b);
    if (s) ggtok_layout_free(l);
    return s;
}
