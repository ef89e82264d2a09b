#include "models/bpe/word.h"

#include "unicode/utf8.h"
#include "vocab/byte_map.h"

/* Sets start[0..3) to the first three bytes of the word that a token's text spells, and *n to an
 * upper bound on its length. Returns false if the text spells no word. The text normally has one
 * character for each byte of the word, or is the word itself; other characters only make the bound
 * looser. */
static bool spelled(const bpe_model *m, gguf_view text, uint8_t start[3], uint32_t *n) {
    *n = (uint32_t)text.n;
    if (m->table.raw_utf8) {
        for (size_t i = 0; i < 3; i++) start[i] = i < text.n ? text.p[i] : 0;
        return true;
    }
    const uint8_t *p = text.p, *end = p + text.n;
    for (size_t i = 0; i < text.n; i++) *n -= utf8_continues(p[i]);
    for (size_t i = 0; i < 3; i++) {
        uint32_t cpt;
        size_t len;
        int byte = p < end ? byte_map_byte_at(p, end, &cpt, &len) : 0;
        if (byte < 0) return false;
        start[i] = (uint8_t)byte;
        if (byte < 0x80) break; /* the other bytes don't matter */
        p += len;
    }
    return true;
}

void ggtok_bpe_find_longest(bpe_model *m, const vocab *v) {
    const uint8_t *space = m->table.byte_char[' ']; /* two bytes long */
    bool spells = !m->table.raw_utf8;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        gguf_view t = vocab_key(v, id);
        uint8_t start[3] = {0};
        uint32_t n;
        if (spells && t.n > 1 && !memcmp(t.p, space, 2) && t.n - 1 <= m->longest[' ']) continue;
        if (t.p[0] > 0x20 && t.p[0] < 0x7F && t.n <= m->longest[t.p[0]]) continue;
        if (!spelled(m, t, start, &n)) continue;
        if (n > m->longest[start[0]]) m->longest[start[0]] = n;
        if ((start[0] & start[1] & start[2]) < 0x80) continue;
        uint32_t *longest = &m->longest_high[bpe_start(start)];
        if (n > *longest) *longest = n;
    }
}

bool ggtok_bpe_may_be_token(const bpe_model *m, const vocab *v, const uint8_t *word, size_t n) {
    if (n > m->longest[word[0]]) return false;
    if (n >= 3 && (word[0] & word[1] & word[2]) >= 0x80 && n > m->longest_high[bpe_start(word)]) {
        return false;
    }
    if (v->flag[GGTOK_FLAG_IGNORE_MERGES]) return true;
    for (size_t i = 0; i < n; i++) {
        if (word[i] != '\n') return false;
    }
    return m->pre_flags & PRETOK_NEWLINE_WORDS;
}

bool ggtok_bpe_find_token(const bpe_model *m, bpe_state *s, const vocab *v, const uint8_t *word,
                          size_t n, int32_t *id) {
    *id = GGTOK_NO_TOKEN;
    if (!ggtok_bpe_may_be_token(m, v, word, n)) return true;
    if (m->table.raw_utf8) {
        *id = ggtok_vocab_find(v, word, n);
        return true;
    }
    if (s->mapped.cap < 2 * n && !bytebuf_reserve(&s->mapped, 2 * n)) return false;
    *id = ggtok_vocab_find(v, s->mapped.data, bpe_spell(&m->table, word, n, s->mapped.data));
    return true;
}

ggtok_status ggtok_bpe_encode_piece(const model_call *call, const uint8_t *piece, size_t n,
                                    size_t room) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    idbuf *out = call->out;
    size_t before = out->n;
    ggtok_status st = ggtok_bpe_merge_word(&m->table, call->v, &s->merge, piece, n, out, call->err);
    if (!st) ggtok_word_cache_put(&s->pieces, piece, n, room, out->data + before, out->n - before);
    return st;
}

ggtok_status ggtok_bpe_encode_pieces(const model_call *call, word_fn encode, const uint8_t *word,
                                     size_t n, size_t room) {
    enum { BATCH = 64 };
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    size_t ends[BATCH];
    if (bpe_is_whole(word, n)) {
        return ggtok_bpe_merge_word(&m->table, call->v, &s->merge, word, n, call->out, call->err);
    }
    for (size_t from = 0, count; from < n; from = ends[count - 1]) {
        count = ggtok_bpe_cuts_find(&m->table.cuts, word, n, from, ends, BATCH);
        ggtok_status st =
            ggtok_words_encode(call, &s->pieces, encode, word, room, from, ends, count);
        if (st) return st;
        if (interrupted(call->interrupt, ends[count - 1] - from)) return ggtok_call_failed(call);
    }
    return GGTOK_OK;
}

ggtok_status ggtok_bpe_encode_word(const model_call *call, const uint8_t *word, size_t n,
                                   size_t room) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    idbuf *out = call->out;
    size_t before = out->n;
    int32_t id;
    bool keep = kept_words_suits(n);
    if (keep && ggtok_kept_words_get(&s->kept, word, n, out)) return ggtok_words_hit(call, n);
    if (!ggtok_bpe_find_token(m, s, call->v, word, n, &id)) return ggtok_call_failed(call);
    if (id >= 0) {
        if (!idbuf_push(out, id)) return ggtok_call_failed(call);
    } else {
        ggtok_status st = ggtok_bpe_encode_pieces(call, ggtok_bpe_encode_piece, word, n, room);
        if (st) return st;
    }
    if (keep)
        ggtok_kept_words_put(&s->kept, word, n, out->data + before, out->n - before);
    else
        ggtok_word_cache_put(&s->words, word, n, room, out->data + before, out->n - before);
    return GGTOK_OK;
}
