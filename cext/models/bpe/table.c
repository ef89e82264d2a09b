#include "models/bpe/table.h"

#include "base/bits.h"
#include "base/cpu.h"
#include "unicode/space_mark.h"
#include "vocab/byte_map.h"
#include "vocab/keys.h"

/* ---- symbols ---- */

static const uint8_t *extra_text(const void *extras, uint32_t i, size_t *n) {
    const bpe_extras *x = extras;
    *n = x->off[i + 1] - x->off[i];
    return x->text.data + x->off[i];
}

/* Appends a text that isn't in the set yet. Returns false if out of memory. */
static bool add_extra(bpe_extras *x, const uint8_t *p, size_t n) {
    uint32_t i = x->set.n;
    if (i + 1 >= x->cap) {
        uint32_t cap = x->cap ? x->cap * 2 : 64;
        uint32_t *off = ggtok_mem_realloc(x->off, mem_mul(cap, sizeof *off));
        if (!off) return false;
        if (!x->cap) off[0] = 0;
        x->off = off;
        x->cap = cap;
    }
    if (n > UINT32_MAX - x->text.n || !bytebuf_append(&x->text, p, n)) return false;
    x->off[i + 1] = (uint32_t)x->text.n;
    return ggtok_interned_add(&x->set, extra_text, x);
}

uint32_t ggtok_bpe_symbol(const bpe_table *t, const vocab *v, const uint8_t *p, size_t n) {
    int32_t id = ggtok_vocab_find(v, p, n);
    if (id >= 0) return (uint32_t)id;
    uint32_t i = ggtok_interned_find(&t->extras.set, extra_text, &t->extras, p, n);
    return i == TEXTSET_NONE ? BPE_NO_SYMBOL : t->n_tokens + i;
}

/* Finds or creates the symbol for a string. Returns false if out of memory. */
static bool intern(bpe_table *t, const vocab *v, const uint8_t *p, size_t n, uint32_t *symbol) {
    *symbol = ggtok_bpe_symbol(t, v, p, n);
    if (*symbol != BPE_NO_SYMBOL) return true;
    *symbol = t->n_tokens + t->extras.set.n;
    return add_extra(&t->extras, p, n);
}

/* ---- merges ---- */

/*
 * Merges are loaded in batches and in stages: each stage prefetches, for the whole
 * batch, the data for the next one. Nearly all the time is spent on cache misses,
 * which then overlap.
 */
enum { BATCH = 64 };

typedef struct merge {
    gguf_view left, right;
    uint64_t left_hash, right_hash;
    int32_t left_likely, right_likely;
    uint32_t left_symbol, right_symbol, rank;
} merge;

/* Returns the number of bytes in the file from p on. */
static size_t room_at(const gguf *g, const uint8_t *p) {
    return g->size - (size_t)(p - g->data);
}

/* Returns the offset of the first space or NUL in p[i..n), or n; `room` (>= n) bytes are
 * readable. */
static size_t find_space(const uint8_t *p, size_t i, size_t n, size_t room) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    for (; i < n && room - i >= 8; i += 8) {
        uint64_t x, y;
        memcpy(&x, p + i, 8);
        y = x ^ ' ' * ones;
        /* The lowest bit set is correct; a borrow may set wrong bits above it. */
        uint64_t found = (((x - ones) & ~x) | ((y - ones) & ~y)) & high;
        if (!found) continue;
        i += bits_lowest(found) / 8;
        return i < n ? i : n;
    }
#endif
    while (i < n && p[i] != ' ' && p[i]) i++;
    return i < n ? i : n;
}

/* Splits a merge at its first space, ignoring a space in first place. Returns false if there is no
 * such space or a half is empty; such merges are skipped. (In llama.cpp, a merge without a space
 * has two empty halves, which no text ever looks up.) `room` bytes are readable. */
static bool split_merge(gguf_view text, size_t room, merge *m) {
    if (!text.n || !text.p[0]) return false;
    size_t space = find_space(text.p, 1, text.n, room), end = space + 1;
    if (space == text.n || text.p[space] != ' ') return false;
    do { /* the text ends at its first NUL */
        end = find_space(text.p, end, text.n, room);
    } while (end < text.n && text.p[end] && ++end);
    if (space + 1 == end) return false;
    m->left = (gguf_view){text.p, space};
    m->right = (gguf_view){text.p + space + 1, end - space - 1};
    return true;
}

/* Whether `id` is the token whose text is a followed by b. */
static bool is_token(const vocab *v, uint32_t id, gguf_view a, gguf_view b) {
    if (id >= v->n_tokens) return false;
    gguf_view t = vocab_key(v, id);
    return t.n == a.n + b.n && mem_equal(t.p, a.p, a.n) && mem_equal(t.p + a.n, b.p, b.n);
}

/* Finds the symbol that a merge makes. Trainers number results in the order of their merges, and
 * converters list all merges with the same result together, so the symbol is likely *last or the
 * next one. */
static bool find_merged(bpe_table *t, const vocab *v, const merge *m, bytebuf *joined,
                        uint32_t *last) {
    uint32_t *merged = &t->merged[m->rank];
    if (!PLAIN && is_token(v, *last, m->left, m->right)) {
        *merged = *last;
    } else if (!PLAIN && is_token(v, *last + 1, m->left, m->right)) {
        *merged = *last + 1;
    } else {
        joined->n = 0;
        if (!bytebuf_append(joined, m->left.p, m->left.n) ||
            !bytebuf_append(joined, m->right.p, m->right.n) ||
            !intern(t, v, joined->data, joined->n, merged)) {
            return false;
        }
    }
    *last = *merged;
    return true;
}

/* Writes the bytes that the last (or first) characters of a symbol's text represent, at most 4.
 * Returns false if one of them represents no byte, so that no text contains the symbol. */
static bool edge_bytes(const bpe_table *t, gguf_view text, bool last, uint8_t out[4], size_t *n) {
    if (t->raw_utf8) {
        *n = text.n < 4 ? text.n : 4;
        memcpy(out, last ? text.p + text.n - *n : text.p, *n);
        return true;
    }
    const uint8_t *p = text.p, *end = text.p + text.n;
    if (last) {
        size_t chars = 0;
        for (p = end; p > text.p && chars < 4;) chars += (*--p & 0xC0) != 0x80;
    }
    for (*n = 0; p < end && *n < 4; ++*n) {
        uint32_t cpt;
        size_t len;
        int byte = byte_map_byte_at(p, end, &cpt, &len);
        p += len;
        if (byte < 0) return false;
        out[*n] = (uint8_t)byte;
        if (byte < 0x80 && !last) return ++*n, true; /* no more bytes are needed */
    }
    return true;
}

/* Returns the ASCII character with which a symbol's text begins or ends, or -1. */
static int ascii_edge(const bpe_table *t, gguf_view text, bool last) {
    const uint8_t *p = last ? text.p + text.n - 1 : text.p;
    if (*p < 0x80) return t->raw_utf8 || (*p > 0x20 && *p < 0x7F) ? *p : -1;
    if (t->raw_utf8 || text.n < 2) return -1;
    p -= last;
    if (p[0] < 0xC4 || p[0] > 0xC5 || (p[1] & 0xC0) != 0x80) return -1; /* not U+0100 to U+017F */
    int byte = byte_map_byte((p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu));
    return byte < 0x80 ? byte : -1;
}

static void note_cut(bpe_table *t, const merge *m) {
    uint8_t left[4], right[4];
    size_t n_left, n_right;
    int a = ascii_edge(t, m->left, true), b = ascii_edge(t, m->right, false);
    if (a >= 0 && b >= 0) { /* nearly all merges */
        pair_add(&t->cuts.set, (uint32_t)a, (uint32_t)b);
    } else if (edge_bytes(t, m->left, true, left, &n_left) &&
               edge_bytes(t, m->right, false, right, &n_right)) {
        ggtok_bpe_cuts_add(&t->cuts, left, n_left, right, n_right);
    }
}

/* Returns the byte that a single character represents, or -1. */
static int only_byte(gguf_view text) {
    uint32_t cpt;
    size_t n;
    if (text.n > 2 || (*text.p & 0xFE) == 0xC0) return -1; /* too long, or not in shortest form */
    int byte = byte_map_byte_at(text.p, text.p + text.n, &cpt, &n);
    return n == text.n ? byte : -1;
}

static void note_bytes(bpe_table *t, const merge *m) {
    int a = only_byte(m->left), b = only_byte(m->right);
    if (a >= 0 && b >= 0 && t->byte_rank[a][b] == BPE_NO_RANK) t->byte_rank[a][b] = m->rank;
}

/* Interns the halves and results of a batch of merges. */
static bool intern_batch(bpe_table *t, const vocab *v, const gguf *g, merge *batch, size_t n,
                         bytebuf *joined, uint32_t *last) {
    uint64_t seed = v->by_text.seed;
    for (size_t i = 0; i < n; i++) {
        merge *m = &batch[i];
        m->left_hash = hash_text_within(m->left.p, m->left.n, room_at(g, m->left.p), seed);
        m->right_hash = hash_text_within(m->right.p, m->right.n, room_at(g, m->right.p), seed);
        token_map_prefetch_slot(&v->by_text, m->left_hash);
        token_map_prefetch_slot(&v->by_text, m->right_hash);
    }
    for (size_t i = 0; i < n; i++) {
        merge *m = &batch[i];
        m->left_likely = token_map_likely(&v->by_text, m->left_hash);
        m->right_likely = token_map_likely(&v->by_text, m->right_hash);
        if (m->left_likely >= 0) token_map_prefetch_offset(&v->by_text, m->left_likely);
        if (m->right_likely >= 0) token_map_prefetch_offset(&v->by_text, m->right_likely);
    }
    for (size_t i = 0; i < n; i++) {
        const merge *m = &batch[i];
        if (m->left_likely >= 0) token_map_prefetch_text(&v->by_text, m->left_likely);
        if (m->right_likely >= 0) token_map_prefetch_text(&v->by_text, m->right_likely);
    }
    for (size_t i = 0; i < n; i++) {
        merge *m = &batch[i];
        int32_t left = ggtok_token_map_confirm(&v->by_text, m->left.p, m->left.n, m->left_hash,
                                               m->left_likely);
        int32_t right = ggtok_token_map_confirm(&v->by_text, m->right.p, m->right.n, m->right_hash,
                                                m->right_likely);
        m->left_symbol = (uint32_t)left;
        m->right_symbol = (uint32_t)right;
        if ((left < 0 && !intern(t, v, m->left.p, m->left.n, &m->left_symbol)) ||
            (right < 0 && !intern(t, v, m->right.p, m->right.n, &m->right_symbol)) ||
            !find_merged(t, v, m, joined, last)) {
            return false;
        }
        note_cut(t, m);
        if (m->left.n + m->right.n <= 4) note_bytes(t, m);
    }
    return true;
}

/* The halves of a merge as symbols, by rank. The slots can be filled only once the number of
 * symbols, and therefore of bits per symbol, is known. */
typedef struct halves {
    uint32_t left, right; /* left == BPE_NO_SYMBOL: no merge has this rank */
} halves;

/* ---- ranks that include the result of the merge ---- */

static unsigned bits_for(uint64_t n) { /* number of bits to count from 0 to n - 1 */
    unsigned bits = 1;
    while (bits < 63 && (uint64_t)1 << bits < n) bits++;
    return bits;
}

/* Returns the greatest number of merges that produce the same symbol; 0 if the symbols that merges
 * produce aren't in ascending order. */
static uint64_t most_repeats(const uint32_t *merged, const halves *pairs, size_t n) {
    uint64_t repeats = 0, most = 1;
    uint32_t last = 0;
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].left == BPE_NO_SYMBOL) continue;
        if (merged[i] < last) return 0;
        repeats = merged[i] == last ? repeats + 1 : 1;
        if (repeats > most) most = repeats;
        last = merged[i];
    }
    return most;
}

/* Replaces the ranks in t->merged by ranks that include the result of the merge. Returns false if
 * that is impossible. */
static bool make_ranks(bpe_table *t, const halves *pairs, size_t n) {
    uint64_t most = PLAIN ? 0 : most_repeats(t->merged, pairs, n);
    unsigned repeat_bits = most > 1 ? bits_for(most) : 0;
    if (!most || 3 * t->symbol_bits + repeat_bits >= 64 || t->symbol_bits + repeat_bits >= 32) {
        return false;
    }
    uint32_t last = BPE_NO_SYMBOL, repeats = 0;
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].left == BPE_NO_SYMBOL) continue;
        repeats = t->merged[i] == last ? repeats + 1 : 0;
        last = t->merged[i];
        t->merged[i] = last << repeat_bits | repeats;
    }
    for (size_t i = 0; i < 256 * 256; i++) {
        uint32_t *rank = &t->byte_rank[i >> 8][i & 255];
        if (*rank != BPE_NO_RANK) *rank = t->merged[*rank];
    }
    t->repeat_bits = repeat_bits;
    return true;
}

/* Fills the empty table. `rank` contains the rank of each pair; NULL: its index in `pairs`. Returns
 * false if a pair would be more than `most` slots from its home slot. */
static bool add_pairs(bpe_table *t, const halves *pairs, const uint32_t *rank, size_t n,
                      size_t most) {
    t->pair_reach = t->n_pairs = 0;
    for (size_t base = 0; base < n; base += BATCH) {
        size_t count = n - base < BATCH ? n - base : BATCH;
        const halves *p = pairs + base;
        for (size_t i = 0; i < count; i++) {
            uint64_t key = bpe_pair_key(t, p[i].left, p[i].right);
            PREFETCH_WRITE(&t->pairs[bpe_pair_slot(t, key)]);
        }
        for (size_t i = 0; i < count; i++) {
            if (p[i].left == BPE_NO_SYMBOL) continue;
            uint64_t key = bpe_pair_key(t, p[i].left, p[i].right);
            size_t own = bpe_pair_slot(t, key), s = own, steps = 0;
            while (t->pairs[s] && t->pairs[s] >> t->rank_bits != key) {
                s = bpe_pair_at(own, ++steps, t->pair_mask);
            }
            if (t->pairs[s]) continue; /* a pair that already has a rank keeps it */
            t->pairs[s] = key << t->rank_bits | ((rank ? rank[base + i] : base + i) + 1);
            t->n_pairs++;
            if (steps > t->pair_reach) t->pair_reach = steps;
        }
        if (t->pair_reach > most) return false;
    }
    return true;
}

/* Sets t->unused. Returns false if out of memory. */
static bool find_unused(bpe_table *t, const halves *pairs, const uint32_t *rank, size_t n) {
    if (t->n_pairs == n) return true;
    t->unused = ggtok_mem_alloc(mem_mul(n - t->n_pairs, sizeof *t->unused));
    for (size_t i = 0; t->unused && i < n; i++) {
        const halves *p = &pairs[i];
        bool is_used = p->left != BPE_NO_SYMBOL && bpe_rank(t, p->left, p->right) == rank[i];
        if (!is_used) t->unused[t->n_unused++] = (uint32_t)i;
    }
    return t->unused != NULL;
}

static ggtok_status build_pairs(bpe_table *t, const halves *pairs, size_t n, ggtok_error *err) {
    unsigned bits = bits_for((uint64_t)n + 2 * ((uint64_t)n / 3)); /* at most 0.6 full */
    if (bits < 6) bits = 6;
    t->symbol_bits = bits_for((uint64_t)t->n_tokens + t->extras.set.n);
    t->rank_bits = 64 - 2 * t->symbol_bits;
    if (2 * t->symbol_bits + bits_for((uint64_t)n + 2) > 64) {
        return ggtok_error_set_at(
            err, GGTOK_ERR_VOCAB, KEY_MERGES, strlen(KEY_MERGES), GGTOK_NO_OFFSET,
            "key '%s' has %llu merges of %llu strings: too many to represent", KEY_MERGES,
            (unsigned long long)n, (unsigned long long)t->n_tokens + t->extras.set.n);
    }
    t->pair_shift = 64 - bits;
    t->pair_mask = ((size_t)1 << bits) - 1;
    t->pairs = ggtok_mem_lines(mem_mul((size_t)1 << bits, sizeof *t->pairs), &t->pair_block);
    if (!t->pairs) return ggtok_error_memory(err);
    t->pair_factor = BPE_PAIR_FACTOR;
    uint32_t *rank = make_ranks(t, pairs, n) ? t->merged : NULL;
    for (int i = 1; !add_pairs(t, pairs, rank, n, hash_reach(i)); i++) {
        memset(t->pairs, 0, ((size_t)1 << bits) * sizeof *t->pairs);
        t->pair_factor = ggtok_hash_new_seed(t->pairs);
    }
    if (rank) {
        if (!find_unused(t, pairs, rank, n)) return ggtok_error_memory(err);
        ggtok_mem_free(t->merged);
        t->merged = NULL;
    }
    return GGTOK_OK;
}

static bool read_merges(bpe_table *t, const vocab *v, const gguf *g, const gguf_kv *kv,
                        halves *pairs) {
    merge batch[BATCH];
    bytebuf joined = {0};
    uint32_t last = 0;
    size_t pos = kv->value;
    bool ok = true;
    for (uint64_t rank = 0; ok && rank < kv->count;) {
        size_t n = 0;
        for (; rank < kv->count && n < BATCH; rank++) {
            batch[n].rank = (uint32_t)rank;
            pairs[rank] = (halves){BPE_NO_SYMBOL, 0};
            gguf_view text = ggtok_gguf_next_string(g, &pos);
            n += split_merge(text, room_at(g, text.p), &batch[n]);
        }
        ok = intern_batch(t, v, g, batch, n, &joined, &last);
        for (size_t i = 0; i < n; i++) {
            pairs[batch[i].rank] = (halves){batch[i].left_symbol, batch[i].right_symbol};
        }
    }
    ggtok_mem_free(joined.data);
    return ok;
}

static ggtok_status load_merges(bpe_table *t, const vocab *v, const gguf *g, ggtok_error *err) {
    const gguf_kv *kv;
    ggtok_status s =
        ggtok_vocab_array_of(g, KEY_MERGES, 1u << GGTOK_STRING, "array of string", &kv, err);
    if (s) return s;
    if (!kv) {
        /* llama.cpp requires no merges for this pre-tokenizer. */
        if (!strcmp(ggtok_pretok_name(v->pre), "kimi-k2")) return build_pairs(t, NULL, 0, err);
        return ggtok_error_set_at(
            err, GGTOK_ERR_VOCAB, KEY_MERGES, strlen(KEY_MERGES), GGTOK_NO_OFFSET,
            "the file has no key '%s', which a BPE vocabulary needs", KEY_MERGES);
    }
    size_t n = (size_t)kv->count;
    halves *pairs = ggtok_mem_alloc(mem_mul(n, sizeof *pairs));
    t->merged = ggtok_mem_alloc(mem_mul(n, sizeof *t->merged));
    s = pairs && t->merged && read_merges(t, v, g, kv, pairs) ? build_pairs(t, pairs, n, err)
                                                              : ggtok_error_memory(err);
    ggtok_mem_free(pairs);
    return s;
}

static bool load_bytes(bpe_table *t, const vocab *v) {
    for (unsigned b = 0; b < 256; b++) {
        uint8_t c[2] = {(uint8_t)b, 0};
        if (byte_map_spell((uint8_t)b, t->byte_char[b]) == 1) t->byte_char[b][1] = 0;
        t->fallback[b][0] = t->fallback[b][1] = GGTOK_NO_TOKEN;
        if (t->raw_utf8) {
            static const char hex[] = "0123456789ABCDEF";
            char name[6] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>'};
            t->byte_symbol[b] = BPE_NO_SYMBOL; /* no character starts with 80 to BF */
            bool ok =
                b >= 0x80 || (b == ' ' && t->escapes
                                  ? intern(t, v, (const uint8_t *)SPACE_MARK, 3, &t->byte_symbol[b])
                                  : intern(t, v, c, 1, &t->byte_symbol[b]));
            if (!ok) return false;
            t->fallback[b][0] = ggtok_vocab_find(v, name, sizeof name);
        } else {
            size_t n = byte_map_spell((uint8_t)b, c);
            if (!intern(t, v, c, n, &t->byte_symbol[b])) return false;
            for (size_t i = 0; i < n; i++) t->fallback[b][i] = ggtok_vocab_find(v, &c[i], 1);
        }
    }
    return true;
}

ggtok_status ggtok_bpe_table_build(bpe_table *t, const vocab *v, const gguf *g, ggtok_error *err) {
    t->n_tokens = v->n_tokens;
    t->raw_utf8 = (ggtok_pretok_flags(v->pre) & PRETOK_RAW_UTF8) != 0;
    t->escapes = !PLAIN && t->raw_utf8 && (ggtok_pretok_flags(v->pre) & PRETOK_LINES) &&
                 v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES] && !v->flag[GGTOK_FLAG_IGNORE_MERGES];
    memset(t->byte_rank, 0xFF, sizeof t->byte_rank); /* sets all to BPE_NO_RANK */
    if (!ggtok_adjacency_init(&t->cuts.set, v->n_tokens)) return ggtok_error_memory(err);
    /* Bytes come first: they may add symbols, whose number determines the layout of the pairs. */
    return load_bytes(t, v) ? load_merges(t, v, g, err) : ggtok_error_memory(err);
}

/* Whether two tables were built from the same merges. The same merges of the same tokens are
 * inserted in the same steps, so such tables are equal byte for byte. */
bool ggtok_bpe_table_same(const bpe_table *a, const bpe_table *b) {
    size_t bytes = (a->pair_mask + 1) * sizeof *a->pairs;
    return a->raw_utf8 == b->raw_utf8 && a->escapes == b->escapes &&
           a->extras.set.n == b->extras.set.n && a->extras.text.n == b->extras.text.n &&
           a->pair_mask == b->pair_mask && a->pair_factor == b->pair_factor &&
           a->symbol_bits == b->symbol_bits && a->rank_bits == b->rank_bits &&
           a->repeat_bits == b->repeat_bits && !a->merged == !b->merged &&
           (!a->extras.set.n ||
            (!memcmp(a->extras.off, b->extras.off, (a->extras.set.n + 1) * sizeof *a->extras.off) &&
             !memcmp(a->extras.text.data, b->extras.text.data, a->extras.text.n))) &&
           !memcmp(a->pairs, b->pairs, bytes);
}

void ggtok_bpe_table_free(bpe_table *t) {
    ggtok_adjacency_free(&t->cuts.set);
    ggtok_mem_free(t->extras.text.data);
    ggtok_mem_free(t->extras.off);
    ggtok_interned_free(&t->extras.set);
    ggtok_mem_free(t->pair_block);
    ggtok_mem_free(t->merged);
    ggtok_mem_free(t->unused);
}

void ggtok_bpe_emit_byte_tokens(const bpe_table *t, const uint8_t *p, size_t n, idbuf *out) {
    for (size_t i = 0; i < n; i++) {
        if (p[i] == ' ' && t->escapes) {
            ggtok_bpe_emit_byte_tokens(t, (const uint8_t *)SPACE_MARK, 3, out);
            continue;
        }
        for (int k = 0; k < 2; k++) {
            if (t->fallback[p[i]][k] >= 0) out->data[out->n++] = t->fallback[p[i]][k];
        }
    }
}
