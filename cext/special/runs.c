#include "special/runs.h"

#include "base/bits.h"

/* If the text is one byte, repeated, returns the byte; otherwise -1. */
static int only_byte(gguf_view text) {
    for (size_t i = 1; i < text.n; i++) {
        if (text.p[i] != text.p[0]) return -1;
    }
    return text.n ? text.p[0] : -1;
}

/* Of the bytes that occur in several run tokens and in no other token, returns the byte with the
 * most run tokens; -1 if there is no such byte. */
static int choose_byte(const vocab *v, const int32_t *ids, size_t n) {
    uint32_t count[256] = {0};
    bool mixed[256] = {false};
    for (size_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)ids[i];
        gguf_view text = vocab_text(v, id);
        /* Tokens with these attributes also strip white space, which isn't in their text. */
        if (v->attr[id] & (GGTOK_ATTR_LSTRIP | GGTOK_ATTR_RSTRIP)) return -1;
        int byte = only_byte(text);
        /* Reserved tokens aren't allowed everywhere (trusted_ranges). */
        if (byte >= 0 && !(v->attr[id] & VOCAB_RESERVED)) {
            count[byte]++;
        } else {
            for (size_t k = 0; k < text.n; k++) mixed[text.p[k]] = true;
        }
    }
    int best = -1;
    for (int b = 0; b < 256; b++) {
        if (!mixed[b] && count[b] > 1 && (best < 0 || count[b] > count[best])) best = b;
    }
    return best;
}

bool ggtok_special_runs_take(special_runs *r, const vocab *v, int32_t *ids, size_t *n) {
    size_t kept = 0;
    *r = (special_runs){.byte = PLAIN ? -1 : choose_byte(v, ids, *n)};
    if (r->byte < 0) return true;
    for (size_t i = 0; i < *n; i++) {
        gguf_view text = vocab_text(v, (uint32_t)ids[i]);
        if (only_byte(text) == r->byte && text.n > r->longest) r->longest = (uint32_t)text.n;
    }
    r->id = ggtok_mem_alloc(mem_mul((size_t)r->longest + 1, sizeof *r->id));
    r->fit = ggtok_mem_zalloc(mem_mul((size_t)r->longest + 1, sizeof *r->fit));
    if (!r->id || !r->fit) return false;
    for (size_t i = 0; i <= r->longest; i++) r->id[i] = GGTOK_NO_TOKEN;
    for (size_t i = 0; i < *n; i++) {
        gguf_view text = vocab_text(v, (uint32_t)ids[i]);
        if (only_byte(text) != r->byte) {
            ids[kept++] = ids[i];
        } else if (r->id[text.n] < 0) { /* of tokens with equal texts, the first wins */
            r->id[text.n] = ids[i];
        }
    }
    *n = kept;
    for (uint32_t i = 1; i <= r->longest; i++) {
        r->fit[i] = r->id[i] < 0 ? r->fit[i - 1] : i;
        if (r->fit[i] && !r->shortest) r->shortest = i;
    }
    return true;
}

void ggtok_special_runs_free(special_runs *r) {
    ggtok_mem_free(r->id);
    ggtok_mem_free(r->fit);
    *r = (special_runs){.byte = -1};
}

/* Returns the first position in text[i..to) where r->byte occurs twice in a row, or `to`. Single
 * spaces are very frequent, so no branch depends on them. */
static size_t find_two(const special_runs *r, const uint8_t *text, size_t i, size_t to) {
    const uint8_t byte = (uint8_t)r->byte;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = 0x0101010101010101u, low = 0x7F * ones;
    for (; to - i >= 8; i += 7) {
        uint64_t x;
        memcpy(&x, text + i, 8);
        x ^= byte * ones;
        x = ~(((x & low) + low) | x | low); /* sets the high bit of each byte that equals `byte` */
        x &= x >> 8;
        if (x) return i + bits_lowest(x) / 8;
    }
#endif
    for (; i + 1 < to; i++) {
        if (text[i] == byte && text[i + 1] == byte) return i;
    }
    return to;
}

size_t ggtok_special_runs_next(const special_runs *r, const uint8_t *text, size_t from, size_t to,
                               size_t *n) {
    while (from < to) {
        size_t end;
        if (r->shortest > 1) {
            from = find_two(r, text, from, to);
        } else {
            const uint8_t *p = memchr(text + from, r->byte, to - from);
            from = p ? (size_t)(p - text) : to;
        }
        for (end = from; end < to && text[end] == r->byte; end++) {}
        *n = end - from;
        if (*n >= r->shortest) return from;
        from = end;
    }
    return to;
}
