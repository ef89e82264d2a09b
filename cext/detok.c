#include "detok.h"

#include "bpe_table.h"
#include "rwkv_text.h"
#include "spaces.h"
#include "utf8.h"
#include "vocab_keys.h"

#include <stdio.h>

/* ---- pieces ---- */

enum { AT_ONCE = 16 }; /* bytes */

/* A character that stands for no byte shows up as llama.cpp shows it:
 * "[UNK_BYTE_0x<hex of its UTF-8><the whole text>]". `behind`: bytes of the text behind it. */
static bool append_unknown(bytebuf *out, gguf_view text, uint32_t cpt, size_t behind) {
    uint8_t utf8[4];
    char hex[9];
    size_t n = utf8_encode(cpt, utf8);
    for (size_t i = 0; i < n; i++) snprintf(hex + 2 * i, 3, "%02x", utf8[i]);
    return bytebuf_append(out, "[UNK_BYTE_0x", 12) && bytebuf_append(out, hex, 2 * n) &&
           bytebuf_append(out, text.p, text.n) && bytebuf_append(out, "]", 1) &&
           bytebuf_reserve(out, behind + AT_ONCE);
}

/* A byte-level token's bytes; `room` bytes (>= text.n) may be read. Most are ASCII letters,
 * perhaps behind a space: they are copied at once. */
static bool append_bytes_of(bytebuf *out, gguf_view text, size_t room, uint64_t limit) {
    const uint8_t *p = text.p, *end = text.p + text.n;
    if (!bytebuf_reserve(out, text.n + AT_ONCE)) return false;
    for (bool tried = false; p < end && out->n <= limit;) { /* unknown ones would grow squared */
        if (!tried && *p < 0x80) {
            size_t n = (size_t)(end - p);
            tried = true;
            if (n <= AT_ONCE && room - text.n + n >= AT_ONCE && bpe_is_plain(p, n)) {
                memcpy(out->data + out->n, p, AT_ONCE);
                out->n += n;
                break;
            }
        }
        uint32_t c;
        size_t len;
        int byte = bpe_byte_at(p, end, &c, &len);
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

/* PLaMo2 (and 3) checks its byte tokens' spelling; one that is off prints as it is. */
static bool is_plamo2_byte(gguf_view t) {
    return t.n == 6 && !memcmp(t.p, "<0x", 3) && is_hex(t.p[3]) && is_hex(t.p[4]) && t.p[5] == '>';
}

/* Appends the byte that a BYTE token stands for; *short_text if it names none. */
static bool append_byte(bytebuf *out, const vocab *v, uint32_t id, bool *short_text) {
    int value = vocab_token_byte(v, id);
    *short_text = value < 0;
    uint8_t byte = (uint8_t)value;
    return *short_text || bytebuf_append(out, &byte, 1);
}

static bool append_piece(bytebuf *out, const vocab *v, uint32_t id, uint64_t limit,
                         bool *short_text) {
    gguf_view text = vocab_text(v, id);
    uint32_t attr = v->attr[id];
    switch (v->type) {
    case GGTOK_VOCAB_RWKV: return rwkv_unescape(out, text.p, text.n);
    case GGTOK_VOCAB_TEST: {
        char hex[12];
        int n = snprintf(hex, sizeof hex, "%lx", (unsigned long)id);
        return bytebuf_append(out, hex, (size_t)n);
    }
    case GGTOK_VOCAB_PLAMO2:
    case GGTOK_VOCAB_PLAMO3:
        if ((attr & GGTOK_ATTR_BYTE) && is_plamo2_byte(text)) {
            return append_byte(out, v, id, short_text);
        }
        return bytebuf_append(out, text.p, text.n);
    default: break;
    }
    if (attr & (GGTOK_ATTR_UNKNOWN | GGTOK_ATTR_CONTROL | GGTOK_ATTR_USER_DEFINED)) {
        return bytebuf_append(out, text.p, text.n);
    }
    if (attr & GGTOK_ATTR_NORMAL) {
        return v->type == GGTOK_VOCAB_BPE && !v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES]
                   ? append_bytes_of(out, text, v->text_off[v->n_tokens] - v->text_off[id], limit)
                   : spaces_unescape(out, text.p, text.n);
    }
    if (attr & GGTOK_ATTR_BYTE) return append_byte(out, v, id, short_text);
    return true; /* unused and undefined tokens print nothing */
}

ggtok_status piece_table_build(piece_table *t, const vocab *v, ggtok_error *err) {
    bytebuf out = {0};
    bool short_text = false;
    /* Pieces are about as long as the texts; only unknown bytes make them longer,
     * and a file can't be allowed to make that quadratic. */
    const uint64_t limit = 64 * (uint64_t)v->text_off[v->n_tokens] + (1u << 20);
    t->off = mem_alloc(mem_mul((size_t)v->n_tokens + 1, sizeof *t->off));
    if (!t->off || !bytebuf_reserve(&out, (size_t)v->text_off[v->n_tokens])) goto memory;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        t->off[id] = (uint32_t)out.n;
        if (!append_piece(&out, v, id, limit, &short_text)) goto memory;
        if (short_text || out.n > limit || out.n > UINT32_MAX) {
            mem_free(out.data);
            return error_set_at(
                err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS), GGTOK_NO_OFFSET,
                short_text ? "token %lu is a byte token, but its text is shorter than '<0xXX>'"
                           : "token %lu prints as far too many bytes",
                (unsigned long)id);
        }
    }
    t->off[v->n_tokens] = (uint32_t)out.n;
    t->bytes = mem_realloc(out.data, out.n);
    if (t->bytes) return GGTOK_OK;
memory:
    mem_free(out.data);
    return error_memory(err);
}

void piece_table_free(piece_table *t) {
    mem_free(t->bytes);
    mem_free(t->off);
}

gguf_view piece_of(const piece_table *t, const vocab *v, uint32_t id, int32_t lstrip,
                   bool special) {
    gguf_view piece = {t->bytes + t->off[id], t->off[id + 1] - t->off[id]};
    if (!special && (v->attr[id] & (GGTOK_ATTR_UNKNOWN | GGTOK_ATTR_CONTROL))) piece.n = 0;
    for (; lstrip > 0 && piece.n && *piece.p == ' '; lstrip--) piece.p++, piece.n--;
    return piece;
}

/* ---- clean_spaces: three passes over the text, in place ---- */

/* " ?" " !" " ." " ,": the space goes. */
static void join_punctuation(bytebuf *b) {
    char *t = (char *)b->data;
    size_t n = b->n ? 1 : 0;
    for (size_t i = 1; i < b->n; i++) {
        char x = t[i];
        if (t[i - 1] == ' ' && (x == '?' || x == '!' || x == '.' || x == ',')) n--;
        t[n++] = x;
    }
    b->n = n;
}

/* " ' ": both spaces go. The second becomes a NUL, so that it does not count as
 * the space before what follows. */
static void join_apostrophes(bytebuf *b) {
    char *t = (char *)b->data;
    size_t n = b->n ? 1 : 0;
    for (size_t i = 1; i < b->n; i++) {
        char x = t[i];
        if (x == '\'' && i + 1 < b->n && t[i - 1] == ' ' && t[i + 1] == ' ') {
            n--;
            t[++i] = 0;
        }
        t[n++] = x;
    }
    b->n = n;
}

/* " 's" " 'm" " 're" " 've": the space goes (before 't, 'd and 'll it stays). */
static void join_contractions(bytebuf *b) {
    char *t = (char *)b->data;
    size_t n = b->n ? 1 : 0;
    for (size_t i = 1; i < b->n; i++) {
        char x = t[i];
        if (t[i - 1] == ' ' && x == '\'' && i + 1 < b->n) {
            char x1 = t[i + 1], x2 = i + 2 < b->n ? t[i + 2] : 0;
            if (x1 == 's' || x1 == 'm' || ((x1 == 'r' || x1 == 'v') && x2 == 'e')) n--;
        }
        t[n++] = x;
    }
    b->n = n;
}

/* ---- text ---- */

ggtok_status detok_text(const piece_table *t, const vocab *v, const int32_t *ids, size_t n,
                        unsigned flags, bytebuf *out, ggtok_error *err) {
    bool unparse = (flags & GGTOK_UNPARSE_SPECIAL) != 0;
    bool lstrip = v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX]; /* of the first token */
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
    for (size_t i = first; i < last; i++) {
        int32_t id = ids[i];
        if (id < 0 || (uint32_t)id >= v->n_tokens) {
            return error_set(err, GGTOK_ERR_ARGUMENT,
                             "ids[%llu] is %ld: not a token id of this vocabulary of %lu tokens",
                             (unsigned long long)i, (long)id, (unsigned long)v->n_tokens);
        }
        gguf_view piece = piece_of(t, v, (uint32_t)id, lstrip, unparse);
        if (!bytebuf_append(out, piece.p, piece.n)) return error_memory(err);
        lstrip = false;
    }
    if (v->flag[GGTOK_FLAG_CLEAN_SPACES]) {
        join_punctuation(out);
        join_apostrophes(out);
        join_contractions(out);
    }
    return GGTOK_OK;
}
