#include "bpe_table.h"

#include "utf8.h"
#include "vocab_keys.h"

/* ---- GPT-2's byte map ---- */

/* Printable Latin-1 bytes stand for themselves; the others, in order, for the
 * characters from U+0100 on. */
static uint32_t byte_char(uint8_t b) {
    if ((b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD)) return b;
    return b < 0x21 ? 0x100u + b : b < 0xA1 ? 0x100u + 0x21 + (b - 0x7Fu) : 0x143u;
}

size_t bpe_byte_char(uint8_t byte, uint8_t out[2]) {
    uint8_t utf8[4];
    size_t n = utf8_encode(byte_char(byte), utf8);
    memcpy(out, utf8, 2);
    return n;
}

/* ---- symbols ---- */

static size_t extra_slot(const bpe_extras *x, const uint8_t *p, size_t n) {
    size_t s = (size_t)textmap_hash(p, n) & x->mask;
    for (; x->slots[s]; s = (s + 1) & x->mask) {
        uint32_t i = x->slots[s] - 1;
        if (x->off[i + 1] - x->off[i] == n && !memcmp(x->text.data + x->off[i], p, n)) break;
    }
    return s;
}

static bool extras_grow(bpe_extras *x) {
    if (x->n + 1 >= x->cap) {
        uint32_t cap = x->cap ? x->cap * 2 : 64;
        uint32_t *off = mem_realloc(x->off, mem_mul(cap, sizeof *off));
        if (!off) return false;
        if (!x->cap) off[0] = 0;
        x->off = off;
        x->cap = cap;
    }
    if (!x->slots || 2 * (size_t)x->n >= x->mask) {
        size_t cap = x->slots ? 2 * (x->mask + 1) : 128;
        uint32_t *slots = mem_zalloc(mem_mul(cap, sizeof *slots));
        if (!slots) return false;
        mem_free(x->slots);
        x->slots = slots;
        x->mask = cap - 1;
        for (uint32_t i = 0; i < x->n; i++) {
            x->slots[extra_slot(x, x->text.data + x->off[i], x->off[i + 1] - x->off[i])] = i + 1;
        }
    }
    return true;
}

uint32_t bpe_symbol(const bpe_table *t, const vocab *v, const uint8_t *p, size_t n) {
    int32_t id = vocab_find(v, p, n);
    if (id >= 0) return (uint32_t)id;
    if (!t->extras.slots) return BPE_NO_SYMBOL;
    uint32_t i = t->extras.slots[extra_slot(&t->extras, p, n)];
    return i ? t->n_tokens + i - 1 : BPE_NO_SYMBOL;
}

/* The symbol of a string, made if need be. False: out of memory. */
static bool intern(bpe_table *t, const vocab *v, const uint8_t *p, size_t n, uint32_t *symbol) {
    bpe_extras *x = &t->extras;
    int32_t id = vocab_find(v, p, n);
    if (id >= 0) {
        *symbol = (uint32_t)id;
        return true;
    }
    if (!extras_grow(x)) return false;
    size_t s = extra_slot(x, p, n);
    if (!x->slots[s]) {
        if (n > UINT32_MAX - x->text.n || !bytebuf_append(&x->text, p, n)) return false;
        x->slots[s] = ++x->n;
        x->off[x->n] = (uint32_t)x->text.n;
    }
    *symbol = t->n_tokens + x->slots[s] - 1;
    return true;
}

/* ---- merges ---- */

static void add_pair(bpe_table *t, uint32_t left, uint32_t right, uint32_t rank, uint32_t merged) {
    size_t i = bpe_pair_slot(t, left, right);
    for (; t->pairs[i].left1; i = (i + 1) & t->pair_mask) {
        if (t->pairs[i].left1 == left + 1 && t->pairs[i].right == right) return; /* first wins */
    }
    t->pairs[i] = (bpe_pair){left + 1, right, rank, merged};
}

static bool alloc_pairs(bpe_table *t, uint64_t n) {
    unsigned bits = 6;
    while (bits < 40 && ((uint64_t)1 << bits) < 2 * n) bits++;
    t->pair_shift = 64 - bits;
    t->pair_mask = ((size_t)1 << bits) - 1;
    t->pairs = mem_zalloc(mem_mul((size_t)1 << bits, sizeof *t->pairs));
    return t->pairs != NULL;
}

/* Is `id` the token whose text is a followed by b? */
static bool is_token(const vocab *v, uint32_t id, gguf_view a, gguf_view b) {
    if (id >= v->n_tokens) return false;
    gguf_view t = vocab_key(v, id);
    return t.n == a.n + b.n && !memcmp(t.p, a.p, a.n) && !memcmp(t.p + a.n, b.p, b.n);
}

/* Adds the merge "left right" of one rank: a merge is split at its first space
 * that isn't its first character; without one it is two empty strings, which no
 * text ever asks for. `guess` is where trainers put the result: behind the last
 * one. */
static bool add_merge(bpe_table *t, const vocab *v, gguf_view merge, uint32_t rank,
                      bytebuf *joined, uint32_t *guess) {
    const uint8_t *nul = merge.n ? memchr(merge.p, 0, merge.n) : NULL;
    if (nul) merge.n = (size_t)(nul - merge.p);
    const uint8_t *space = merge.n > 1 ? memchr(merge.p + 1, ' ', merge.n - 1) : NULL;
    if (!space) return true;
    gguf_view a = {merge.p, (size_t)(space - merge.p)};
    gguf_view b = {space + 1, merge.n - a.n - 1};
    uint32_t left, right, merged;
    if (!b.n) return true;
    if (!intern(t, v, a.p, a.n, &left) || !intern(t, v, b.p, b.n, &right)) return false;
    if (is_token(v, *guess, a, b)) {
        merged = *guess;
    } else {
        joined->n = 0;
        if (!bytebuf_append(joined, a.p, a.n) || !bytebuf_append(joined, b.p, b.n) ||
            !intern(t, v, joined->data, joined->n, &merged)) {
            return false;
        }
    }
    *guess = merged + 1;
    add_pair(t, left, right, rank, merged);
    return true;
}

static ggtok_status load_merges(bpe_table *t, const vocab *v, const gguf *g, ggtok_error *err) {
    const gguf_kv *kv;
    ggtok_status s =
        vocab_array_of(g, KEY_MERGES, 1u << GGTOK_STRING, "array of string", &kv, err);
    if (s) return s;
    if (!kv && strcmp(pretok_name(v->pre), "kimi-k2") != 0) { /* may do without, as in llama.cpp */
        return error_set_at(err, GGTOK_ERR_VOCAB, KEY_MERGES, strlen(KEY_MERGES), GGTOK_NO_OFFSET,
                            "the file has no key '%s', which a BPE vocabulary needs", KEY_MERGES);
    }
    uint64_t n = kv ? kv->count : 0;
    if (!alloc_pairs(t, n)) return error_memory(err);
    bytebuf joined = {0};
    uint32_t guess = 0;
    bool ok = true;
    size_t pos = kv ? kv->value : 0;
    for (uint64_t i = 0; ok && i < n; i++) {
        ok = add_merge(t, v, gguf_next_string(g, &pos), (uint32_t)i, &joined, &guess);
    }
    mem_free(joined.data);
    return ok ? GGTOK_OK : error_memory(err);
}

static bool load_bytes(bpe_table *t, const vocab *v) {
    for (unsigned b = 0; b < 256; b++) {
        uint8_t c[2] = {(uint8_t)b, 0};
        t->fallback[b][0] = t->fallback[b][1] = GGTOK_NO_TOKEN;
        if (t->raw_utf8) {
            static const char hex[] = "0123456789ABCDEF";
            char name[6] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>'};
            t->byte_symbol[b] = b < 0x80 ? bpe_symbol(t, v, c, 1) : BPE_NO_SYMBOL;
            t->fallback[b][0] = vocab_find(v, name, sizeof name);
        } else {
            size_t n = bpe_byte_char((uint8_t)b, c);
            if (!intern(t, v, c, n, &t->byte_symbol[b])) return false;
            for (size_t i = 0; i < n; i++) t->fallback[b][i] = vocab_find(v, &c[i], 1);
        }
    }
    return true;
}

ggtok_status bpe_table_build(bpe_table *t, const vocab *v, const gguf *g, ggtok_error *err) {
    t->n_tokens = v->n_tokens;
    t->raw_utf8 = (pretok_flags(v->pre) & PRETOK_RAW_UTF8) != 0;
    ggtok_status s = load_merges(t, v, g, err);
    if (!s && !load_bytes(t, v)) s = error_memory(err);
    return s;
}

void bpe_table_free(bpe_table *t) {
    mem_free(t->extras.text.data);
    mem_free(t->extras.off);
    mem_free(t->extras.slots);
    mem_free(t->pairs);
}
