#include "models/recorder.h"

bool ggtok_recorder_begin(recorder *rec, const ggtok_range *trusted, size_t n_trusted, size_t pos,
                          size_t n) {
    rec->refused = GGTOK_NO_TOKEN;
    rec->spans = false;
    rec->trace = NULL;
    rec->origin = NULL;
    rec->source.n = 0;
    if (!bytebuf_reserve(&rec->source, n)) return false;
    memset(rec->source.data, 0, n);
    rec->source.n = n;
    size_t low = 0, high = n_trusted;
    while (low < high) { /* finds the first range that ends after the fragment's start */
        size_t middle = low + (high - low) / 2;
        if (trusted[middle].end <= pos)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < n_trusted && trusted[low].begin < pos + n; low++) {
        size_t begin = trusted[low].begin > pos ? trusted[low].begin - pos : 0;
        size_t end = trusted[low].end < pos + n ? trusted[low].end - pos : n;
        memset(rec->source.data + begin, 1, end - begin);
    }
    return true;
}

bool ggtok_recorder_begin_spans(recorder *rec, const vocab *v, const uint8_t *fragment, size_t n) {
    rec->v = v;
    rec->reserved = 0;
    if (!ggtok_recorder_begin(rec, &(ggtok_range){0, n}, 1, 0, n)) return false;
    rec->spans = true;
    rec->bytes = fragment;
    rec->n_made = 0;
    return true;
}

void ggtok_recorder_free(recorder *rec) {
    ggtok_mem_free(rec->from);
    ggtok_mem_free(rec->made);
    ggtok_mem_free(rec->source.data);
    ggtok_mem_free(rec->text.data);
    ggtok_mem_free(rec->trusted.data);
    ggtok_mem_free(rec->foreign);
    memset(rec, 0, sizeof *rec);
}

size_t ggtok_recorder_bytes(const recorder *rec) {
    return rec->source.cap + rec->text.cap + rec->trusted.cap + rec->cap * sizeof *rec->foreign +
           rec->from_cap * sizeof *rec->from + rec->made_cap * sizeof *rec->made;
}

bool ggtok_recorder_trusts(const recorder *rec, size_t from, size_t n) {
    return !n || !memchr(rec->source.data + from, 0, n);
}

void ggtok_recorder_clear(recorder *rec) {
    rec->text.n = rec->trusted.n = 0;
}

ggtok_range ggtok_recorder_origin(const recorder *rec, size_t begin, size_t end) {
    if (!rec->origin) return (ggtok_range){begin, end};
    if (begin < end) return (ggtok_range){rec->origin[begin].begin, rec->origin[end - 1].end};
    size_t at = rec->origin[begin].begin;
    return (ggtok_range){at, at};
}

/* Makes room for the sources of n more bytes. */
static bool reserve_sources(recorder *rec, size_t n) {
    if (!rec->spans || rec->text.n + n <= rec->from_cap) return true;
    size_t cap = rec->text.n + n + rec->text.n / 2 + 256;
    ggtok_range *from = ggtok_mem_realloc(rec->from, mem_mul(cap, sizeof *from));
    if (!from) return false;
    rec->from = from;
    rec->from_cap = cap;
    return true;
}

bool ggtok_recorder_put_all(recorder *rec, const void *p, size_t n, bool trusted, size_t begin,
                            size_t end) {
    if (!reserve_sources(rec, n)) return false;
    if (rec->spans && n) {
        ggtok_range source = ggtok_recorder_origin(rec, begin, end);
        for (size_t i = 0; i < n; i++) rec->from[rec->text.n + i] = source;
    }
    if (!bytebuf_append(&rec->text, p, n) || !bytebuf_reserve(&rec->trusted, n)) return false;
    if (n) memset(rec->trusted.data + rec->trusted.n, trusted, n);
    rec->trusted.n += n;
    return true;
}

bool ggtok_recorder_put(recorder *rec, const void *p, size_t n, size_t from, size_t len) {
    size_t before = rec->text.n;
    bool trusted = ggtok_recorder_trusts(rec, from, len);
    if (!ggtok_recorder_put_all(rec, p, n, trusted, from, from + len)) return false;
    if (rec->spans && n == len && n > 1 && !memcmp(p, rec->bytes + from, n)) {
        for (size_t i = 0; i < n; i++)
            rec->from[before + i] = ggtok_recorder_origin(rec, from + i, from + i + 1);
    }
    return true;
}

bool ggtok_recorder_add(recorder *rec, const void *p, size_t n, size_t at) {
    return ggtok_recorder_put_all(rec, p, n, rec->source.data[at], at, at);
}

static bool push_span(recorder *rec, ggtok_range source) {
    if (rec->n_made == rec->made_cap) {
        size_t cap = rec->made_cap + rec->made_cap / 2 + 64;
        ggtok_span *made = ggtok_mem_realloc(rec->made, mem_mul(cap, sizeof *made));
        if (!made) return false;
        rec->made = made;
        rec->made_cap = cap;
    }
    rec->made[rec->n_made++] = (ggtok_span){(int64_t)source.begin, (int64_t)source.end};
    return true;
}

bool ggtok_recorder_add_span(recorder *rec, size_t at, size_t n) {
    if (!rec->spans) return true;
    return push_span(rec, (ggtok_range){rec->from[at].begin, rec->from[at + n - 1].end});
}

bool ggtok_recorder_add_span_of(recorder *rec, size_t begin, size_t end) {
    return !rec->spans || push_span(rec, ggtok_recorder_origin(rec, begin, end));
}

bool ggtok_recorder_seal(recorder *rec) {
    size_t n = rec->trusted.n, count = 0;
    if (n >= rec->cap) {
        size_t cap = n + n / 2 + 256,
               *foreign = ggtok_mem_realloc(rec->foreign, mem_mul(cap, sizeof *foreign));
        if (!foreign) return false;
        rec->foreign = foreign;
        rec->cap = cap;
    }
    for (size_t i = 0; i < n; i++) {
        rec->foreign[i] = count;
        count += !rec->trusted.data[i];
    }
    rec->foreign[n] = count;
    return true;
}

size_t ggtok_recorder_longest(const recorder *rec, const trie *t, const trie_long *l,
                              const int32_t *hits, size_t i, int32_t *id) {
    const uint8_t *p = rec->text.data;
    size_t n = rec->text.n, best = 0;
    if (hits) {
        size_t len;
        for (uint32_t hit = (uint32_t)hits[i]; hit; hit = trie_long_shorter(l, hit)) {
            *id = trie_long_id(l, hit, &len);
            if (recorder_allows(rec, *id, i, len)) return len;
        }
        if (n - i > TRIE_WALK) n = i + TRIE_WALK;
    }
    uint32_t s = 0;
    for (size_t k = i; k < n;) {
        s = trie_child(t, s, p[k++]);
        if (!s) break;
        uint32_t link = t->unit[s].link;
        if (!(link & (TRIE_VALUE | TRIE_TAIL))) continue;
        if (link & TRIE_TAIL) {
            size_t rest = trie_tail(t, s, k - i, p + k, n - k);
            if (rest == SIZE_MAX) break;
            k += rest;
        }
        if (recorder_allows(rec, t->value[s], i, k - i)) best = k - i, *id = t->value[s];
        if (link & TRIE_TAIL) break;
    }
    return best;
}

void ggtok_recorder_reverse(recorder *rec, size_t n) {
    ggtok_span *first = rec->made + (rec->n_made - n), *last = rec->made + rec->n_made - 1;
    for (; n && first < last; first++, last--) {
        ggtok_span before = *first;
        *first = *last;
        *last = before;
    }
}

void ggtok_recorder_copy_spans(const recorder *rec, ggtok_span *out, int64_t base) {
    for (size_t i = 0; i < rec->n_made; i++)
        out[i] = (ggtok_span){base + rec->made[i].begin, base + rec->made[i].end};
}
