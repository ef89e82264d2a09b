#include "decode/detok.h"

#include "base/cpu.h"
#include "unicode/space_mark.h"
#include "unicode/utf8.h"
#include "vocab/byte_map.h"
#include "vocab/keys.h"
#include "vocab/rwkv_text.h"

#include <stdio.h>

/* ---- pieces ---- */

enum { AT_ONCE = 16 }; /* bytes copied at once; longer pieces need a second copy */

/* Appends a character that represents no byte, as llama.cpp prints it: "[UNK_BYTE_0x<hex of its
 * UTF-8><the whole text>]". Then reserves room for `after`, the number of bytes that follow it in
 * the text. */
static bool append_unknown(bytebuf *out, gguf_view text, uint32_t cpt, size_t after) {
    uint8_t utf8[4];
    char hex[9];
    size_t n = ggtok_utf8_encode(cpt, utf8);
    for (size_t i = 0; i < n; i++) snprintf(hex + 2 * i, 3, "%02x", utf8[i]);
    return bytebuf_append(out, "[UNK_BYTE_0x", 12) && bytebuf_append(out, hex, 2 * n) &&
           bytebuf_append(out, text.p, text.n) && bytebuf_append(out, "]", 1) &&
           bytebuf_reserve(out, after + AT_ONCE);
}

typedef enum fault { NO_FAULT, TOO_SHORT, TOO_LONG } fault;

/* Returns the number of bytes that append_bytes_of writes for the text. */
static uint64_t byte_level_size(gguf_view text) {
    uint64_t n = 0;
    const uint8_t *p = text.p, *end = p + text.n;
    for (size_t len; p < end; p += len) {
        uint32_t c;
        uint8_t utf8[4];
        bool known = byte_map_byte_at(p, end, &c, &len) >= 0;
        n += known ? 1 : 12 + 2 * ggtok_utf8_encode(c, utf8) + text.n + 1;
    }
    return n;
}

/* Whether the token prints as the bytes that its characters represent. */
static bool is_byte_level(const vocab *v, uint32_t id) {
    const uint32_t as_is = GGTOK_ATTR_UNKNOWN | GGTOK_ATTR_CONTROL | GGTOK_ATTR_USER_DEFINED;
    return v->type == GGTOK_VOCAB_BPE && !v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES] &&
           !(v->attr[id] & as_is) && v->attr[id] & GGTOK_ATTR_NORMAL;
}

/* The piece table while it is being built. */
typedef struct build {
    const vocab *v;
    bytebuf out;
    uint64_t limit; /* maximum size of `out` in bytes */
    bool measured;  /* measure() has been called */
    fault wrong;
} build;

/* Whether there is room for the pieces of the tokens from `id` on. A character that represents no
 * byte prints the token's whole text, so the total size of the pieces could be quadratic in the
 * size of the file; such a file is refused before that much is written. (The pieces of other tokens
 * are no longer than their texts.) */
static bool measure(build *b, uint32_t id) {
    uint64_t n = b->out.n;
    b->measured = true;
    for (; id < b->v->n_tokens && n <= b->limit; id++) {
        gguf_view text = vocab_text(b->v, id);
        n += is_byte_level(b->v, id) ? byte_level_size(text) : text.n;
    }
    return n <= b->limit;
}

/* Appends the bytes of a byte-level token. Most tokens consist of ASCII letters, perhaps after a
 * space: the letters are copied at once. `room` is the number of readable bytes (>= text.n). */
static bool append_bytes_of(build *b, uint32_t id) {
    bytebuf *out = &b->out;
    gguf_view text = vocab_text(b->v, id);
    size_t room = b->v->text_off[b->v->n_tokens] - b->v->text_off[id];
    const uint8_t *p = text.p, *end = text.p + text.n;
    if (!bytebuf_reserve(out, text.n + AT_ONCE)) return false;
    for (bool tried = false; p < end;) {
        if (!tried && *p < 0x80) {
            size_t n = (size_t)(end - p);
            tried = true;
            if (n <= AT_ONCE && room - text.n + n >= AT_ONCE && byte_map_is_plain(p, n)) {
                memcpy(out->data + out->n, p, AT_ONCE);
                out->n += n;
                break;
            }
        }
        uint32_t c;
        size_t len;
        int byte = byte_map_byte_at(p, end, &c, &len);
        if (byte < 0 && !b->measured && !measure(b, id)) return b->wrong = TOO_LONG, true;
        p += len;
        if (byte >= 0) {
            out->data[out->n++] = (uint8_t)byte;
        } else if (!append_unknown(out, text, c, (size_t)(end - p))) {
            return false;
        }
    }
    return true;
}

static bool is_hex(uint8_t c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Whether t is spelled as a byte token of PLaMo2 and PLaMo3. These models check the spelling; a
 * malformed byte token prints its text. */
static bool is_plamo2_byte(gguf_view t) {
    return t.n == 6 && !memcmp(t.p, "<0x", 3) && is_hex(t.p[3]) && is_hex(t.p[4]) && t.p[5] == '>';
}

/* Appends the byte that a token with attribute BYTE represents. */
static bool append_byte(build *b, uint32_t id) {
    int value = ggtok_vocab_token_byte(b->v, id);
    uint8_t byte = (uint8_t)value;
    if (value < 0) return b->wrong = TOO_SHORT, true;
    return bytebuf_append(&b->out, &byte, 1);
}

static bool append_piece(build *b, uint32_t id) {
    const vocab *v = b->v;
    bytebuf *out = &b->out;
    gguf_view text = vocab_text(v, id);
    uint32_t attr = v->attr[id];
    switch (v->type) {
    case GGTOK_VOCAB_RWKV: return ggtok_rwkv_unescape(out, text.p, text.n);
    case GGTOK_VOCAB_TEST: {
        char hex[12];
        int n = snprintf(hex, sizeof hex, "%lx", (unsigned long)id);
        return bytebuf_append(out, hex, (size_t)n);
    }
    case GGTOK_VOCAB_PLAMO2:
    case GGTOK_VOCAB_PLAMO3:
        if ((attr & GGTOK_ATTR_BYTE) && is_plamo2_byte(text)) {
            return append_byte(b, id);
        }
        return bytebuf_append(out, text.p, text.n);
    default: break;
    }
    if (attr & (GGTOK_ATTR_UNKNOWN | GGTOK_ATTR_CONTROL | GGTOK_ATTR_USER_DEFINED)) {
        return bytebuf_append(out, text.p, text.n);
    }
    if (attr & GGTOK_ATTR_NORMAL) {
        return is_byte_level(v, id) ? append_bytes_of(b, id)
                                    : ggtok_space_mark_unescape(out, text.p, text.n);
    }
    if (attr & GGTOK_ATTR_BYTE) return append_byte(b, id);
    return true; /* unused and undefined tokens print nothing */
}

static ggtok_status refuse(uint32_t id, fault wrong, ggtok_error *err) {
    return ggtok_error_set_at(
        err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS), GGTOK_NO_OFFSET,
        wrong == TOO_SHORT ? "token %lu is a byte token, but its text is shorter than '<0xXX>'"
                           : "token %lu prints as far too many bytes",
        (unsigned long)id);
}

/* Checks only tokens whose attributes don't change during loading. */
ggtok_status ggtok_piece_check_bytes(const vocab *v, ggtok_error *err) {
    const uint32_t others =
        GGTOK_ATTR_UNKNOWN | GGTOK_ATTR_CONTROL | GGTOK_ATTR_USER_DEFINED | GGTOK_ATTR_NORMAL;
    bool spelled = v->type == GGTOK_VOCAB_RWKV || v->type == GGTOK_VOCAB_TEST ||
                   v->type == GGTOK_VOCAB_PLAMO2 || v->type == GGTOK_VOCAB_PLAMO3;
    for (uint32_t id = 0; !spelled && id < v->n_tokens; id++) {
        if (!(v->attr[id] & GGTOK_ATTR_BYTE) || v->attr[id] & others) continue;
        if (ggtok_vocab_token_byte(v, id) < 0) return refuse(id, TOO_SHORT, err);
    }
    return GGTOK_OK;
}

ggtok_status ggtok_piece_table_build(piece_table *t, const vocab *v, ggtok_error *err) {
    /* Pieces are about as long as the token texts, except for characters that represent no byte. */
    build b = {.v = v, .limit = 64 * (uint64_t)v->text_off[v->n_tokens] + (1u << 20)};
    t->off = ggtok_mem_alloc(mem_mul((size_t)v->n_tokens + 1, sizeof *t->off));
    if (!t->off || !bytebuf_reserve(&b.out, (size_t)v->text_off[v->n_tokens])) goto memory;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        t->off[id] = (uint32_t)b.out.n;
        if (!append_piece(&b, id)) goto memory;
        if (b.wrong || b.out.n > b.limit || b.out.n > UINT32_MAX) {
            ggtok_mem_free(b.out.data);
            return refuse(id, b.wrong, err);
        }
    }
    t->off[v->n_tokens] = (uint32_t)b.out.n;
    t->bytes = ggtok_mem_realloc(b.out.data, b.out.n + AT_ONCE);
    if (t->bytes) {
        memset(t->bytes + b.out.n, 0, AT_ONCE);
        return GGTOK_OK;
    }
memory:
    ggtok_mem_free(b.out.data);
    return ggtok_error_memory(err);
}

void ggtok_piece_table_free(piece_table *t) {
    ggtok_mem_free(t->bytes);
    ggtok_mem_free(t->off);
}

gguf_view ggtok_piece_of(const piece_table *t, const vocab *v, uint32_t id, int32_t lstrip,
                         bool special) {
    gguf_view piece = {t->bytes + t->off[id], t->off[id + 1] - t->off[id]};
    if (!special && (v->attr[id] & (GGTOK_ATTR_UNKNOWN | GGTOK_ATTR_CONTROL))) piece.n = 0;
    for (; lstrip > 0 && piece.n && *piece.p == ' '; lstrip--) piece.p++, piece.n--;
    return piece;
}

/* ---- clean_spaces: three passes over the text, in place ---- */

/* Whether the space before this character may have to be removed. */
ALWAYS_INLINE uint8_t is_joined(uint8_t c, bool punctuation) {
    uint8_t any =
        (uint8_t)(c == '?') | (uint8_t)(c == '!') | (uint8_t)(c == '.') | (uint8_t)(c == ',');
    return punctuation ? any : (uint8_t)(c == '\'');
}

/* Returns the first position, from i > 0 on, of a character that follows a space and for which
 * is_joined is true; n if there is none. */
ALWAYS_INLINE size_t find_after_space(const uint8_t *t, size_t i, size_t n, bool punctuation) {
    enum { BLOCK = 32 };
    for (; n - i >= BLOCK; i += BLOCK) {
        uint8_t any = 0;
        for (size_t k = i; k < i + BLOCK; k++)
            any |= (uint8_t)(t[k - 1] == ' ') & is_joined(t[k], punctuation);
        if (any) break;
    }
    while (i < n && !(t[i - 1] == ' ' && is_joined(t[i], punctuation))) i++;
    return i;
}

/* The state of a pass: it reads the text at offset `at` and writes the bytes it keeps at offset `n`
 * <= at. */
typedef struct cleaning {
    uint8_t *text;
    size_t end, at, n;
} cleaning;

/* Keeps the text up to the next position that find_after_space finds, and sets `at` to it. Returns
 * false if there is none. */
ALWAYS_INLINE bool next_place(cleaning *c, bool punctuation) {
    size_t found = find_after_space(c->text, c->at, c->end, punctuation);
    if (c->n < c->at) memmove(c->text + c->n, c->text + c->at, found - c->at);
    c->n += found - c->at;
    c->at = found;
    return found < c->end;
}

static cleaning begin_cleaning(const bytebuf *b) {
    size_t first = b->n ? 1 : 0;
    return (cleaning){b->data, b->n, first, first};
}

/* Removes the space in " ?" " !" " ." " ,". */
static void join_punctuation(bytebuf *b) {
    cleaning c = begin_cleaning(b);
    while (next_place(&c, true)) c.text[c.n - 1] = c.text[c.at++];
    b->n = c.n;
}

/* Removes both spaces in " ' ". The second becomes a NUL, so that it doesn't count as the space
 * before the next character. */
static void join_apostrophes(bytebuf *b) {
    cleaning c = begin_cleaning(b);
    while (next_place(&c, false)) {
        if (c.at + 1 < c.end && c.text[c.at + 1] == ' ') {
            c.text[c.n - 1] = '\'';
            c.text[c.at + 1] = 0;
            c.at += 2;
        } else {
            c.text[c.n++] = c.text[c.at++];
        }
    }
    b->n = c.n;
}

/* Removes the space in " 's" " 'm" " 're" " 've" (before 't, 'd and 'll it stays). */
static void join_contractions(bytebuf *b) {
    cleaning c = begin_cleaning(b);
    while (next_place(&c, false)) {
        uint8_t x1 = c.at + 1 < c.end ? c.text[c.at + 1] : 0;
        uint8_t x2 = c.at + 2 < c.end ? c.text[c.at + 2] : 0;
        bool joined = x1 == 's' || x1 == 'm' || ((x1 == 'r' || x1 == 'v') && x2 == 'e');
        c.n -= joined;
        c.text[c.n++] = c.text[c.at++];
    }
    b->n = c.n;
}

/* ---- text ---- */

/* Returns the index of the first id that isn't in the vocabulary, or n. */
static size_t find_unknown(const vocab *v, const int32_t *ids, size_t n) {
    enum { BLOCK = 256 };
    size_t i = 0;
    for (; n - i >= BLOCK; i += BLOCK) {
        uint32_t highest = 0;
        for (size_t k = 0; k < BLOCK; k++) {
            uint32_t id = (uint32_t)ids[i + k]; /* a negative id becomes the greatest */
            highest = id > highest ? id : highest;
        }
        if (highest >= v->n_tokens) break;
    }
    while (i < n && (uint32_t)ids[i] < v->n_tokens) i++;
    return i;
}

/* Appends the pieces of valid ids. Pieces are scattered over a table of several megabytes, so later
 * ones are prefetched while earlier ones are copied. */
static bool append_pieces(bytebuf *out, const piece_table *t, const vocab *v, const int32_t *ids,
                          size_t n, bool special) {
    enum { BLOCK = 32 };
    gguf_view pieces[BLOCK];
    for (size_t from = 0, block; from < n; from += block) {
        size_t bytes = 0;
        block = n - from < BLOCK ? n - from : BLOCK;
        for (size_t i = 0; i < block; i++) {
            const int32_t *id = &ids[from + i];
            if (n - from - i > BLOCK) PREFETCH(&t->off[id[BLOCK]]);
            pieces[i] = ggtok_piece_of(t, v, (uint32_t)*id, 0, special);
            PREFETCH(pieces[i].p);
            bytes += pieces[i].n;
        }
        if (!bytebuf_reserve(out, bytes + AT_ONCE)) return false;
        uint8_t *to = out->data + out->n;
        for (size_t i = 0; i < block; to += pieces[i++].n) {
            memcpy(to, pieces[i].p, AT_ONCE); /* most pieces aren't longer */
            if (pieces[i].n > AT_ONCE) memcpy(to, pieces[i].p, pieces[i].n);
        }
        out->n += bytes;
    }
    return true;
}

ggtok_status ggtok_detok_text(const piece_table *t, const vocab *v, const int32_t *ids, size_t n,
                              unsigned flags, bytebuf *out, ggtok_error *err) {
    bool unparse = (flags & GGTOK_UNPARSE_SPECIAL) != 0;
    bool keep = (flags & GGTOK_KEEP_SPACES) != 0;
    bool clean = !keep && (flags & GGTOK_CLEAN_SPACES || v->flag[GGTOK_FLAG_CLEAN_SPACES]);
    bool lstrip = !keep && v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX]; /* strip the first token's space */
    size_t first = 0, last = n;
    out->n = 0;
    if (flags & GGTOK_REMOVE_SPECIAL) {
        if (v->flag[GGTOK_FLAG_ADD_BOS] && n && ids[0] == v->special[GGTOK_BOS]) {
            lstrip = false;
            first = 1;
        }
        if (v->flag[GGTOK_FLAG_ADD_EOS] && last > first && ids[last - 1] == v->special[GGTOK_EOS]) {
            last--;
        }
    }
    size_t unknown = first + find_unknown(v, ids + first, last - first);
    if (unknown < last) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                               "ids[%llu] is %ld: not a token id of this vocabulary of %lu tokens",
                               (unsigned long long)unknown, (long)ids[unknown],
                               (unsigned long)v->n_tokens);
    }
    if (lstrip && first < last) {
        gguf_view piece = ggtok_piece_of(t, v, (uint32_t)ids[first++], lstrip, unparse);
        if (!bytebuf_append(out, piece.p, piece.n)) return ggtok_error_memory(err);
    }
    if (!append_pieces(out, t, v, ids + first, last - first, unparse))
        return ggtok_error_memory(err);
    if (clean) {
        join_punctuation(out);
        join_apostrophes(out);
        join_contractions(out);
    }
    return GGTOK_OK;
}
