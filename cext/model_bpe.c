/*
 * BPE: text -> words (pretok) -> ids (merges), each word on its own.
 *
 * A word's ids depend on its bytes alone, so words met before come from a cache.
 */
#include "model_bpe.h"

#include "spaces.h"
#include "utf8.h"

static void model_free(void *model) {
    bpe_model *m = model;
    if (!m) return;
    bpe_table_free(&m->table);
    mem_free(m);
}

/* The first three bytes of the word that a token's text spells, and how long it is. False: it
 * spells none. A text has one character for each byte of the word, or is the word; the
 * length of one that goes on with other characters only makes a bound less sharp. */
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
        int byte = p < end ? bpe_byte_at(p, end, &cpt, &len) : 0;
        if (byte < 0) return false;
        start[i] = (uint8_t)byte;
        if (byte < 0x80) break; /* the others don't matter */
        p += len;
    }
    return true;
}

static void find_longest(bpe_model *m, const vocab *v) {
    const uint8_t *space = m->table.byte_char[' ']; /* two bytes */
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

static ggtok_status model_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                                void **model, ggtok_error *err) {
    bpe_model *m = mem_zalloc(sizeof *m);
    if (!m) return error_memory(err);
    m->pre_flags = pretok_flags(v->pre);
    if (options) {
        m->split = options->split;
        m->split_user = options->split_user;
    }
    ggtok_status s = bpe_table_build(&m->table, v, g, err);
    if (!s && (v->flag[GGTOK_FLAG_IGNORE_MERGES] || m->pre_flags & PRETOK_NEWLINE_WORDS)) {
        find_longest(m, v);
    }
    if (s) {
        model_free(m);
        m = NULL;
    }
    *model = m;
    return s;
}

static void scratch_free(void *scratch) {
    bpe_state *s = scratch;
    if (!s) return;
    wordcache_free(&s->words);
    wordcache_free(&s->pieces);
    bpe_scratch_free(&s->merge);
    mem_free(s->text.data);
    mem_free(s->spaced.data);
    mem_free(s->mapped.data);
    mem_free(s->ends);
    mem_free(s->late_ids.data);
    mem_free(s);
}

static size_t cache_bytes(const void *scratch) {
    const bpe_state *s = scratch;
    return wordcache_bytes(&s->words) + wordcache_bytes(&s->pieces);
}

static void *scratch_new(const vocab *v, const void *model) {
    (void)v, (void)model;
    bpe_state *s = mem_zalloc(sizeof *s);
    if (s && (!wordcache_init(&s->words) || !wordcache_init(&s->pieces))) {
        scratch_free(s);
        return NULL;
    }
    return s;
}

/* ---- one word ---- */

bool bpe_may_be_token(const bpe_model *m, const vocab *v, const uint8_t *word, size_t n) {
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

/* Sets *id to the token whose text is the word as the vocabulary spells it, or
 * to -1. False: out of memory. */
static bool whole_word(const bpe_model *m, bpe_state *s, const vocab *v, const uint8_t *word,
                       size_t n, int32_t *id) {
    *id = GGTOK_NO_TOKEN;
    if (!bpe_may_be_token(m, v, word, n)) return true;
    if (m->table.raw_utf8) {
        *id = vocab_find(v, word, n);
        return true;
    }
    if (s->mapped.cap < 2 * n && !bytebuf_reserve(&s->mapped, 2 * n)) return false;
    *id = vocab_find(v, s->mapped.data, bpe_spell(&m->table, word, n, s->mapped.data));
    return true;
}

/* A part of a word that merges don't join to the others, and its cache doesn't hold. */
static ggtok_status encode_piece(const model_call *call, const uint8_t *piece, size_t n,
                                 size_t room) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    idbuf *out = call->out;
    size_t before = out->n;
    ggtok_status st = bpe_merge_word(&m->table, call->v, &s->merge, piece, n, out, call->err);
    if (!st) wordcache_put(&s->pieces, piece, n, room, out->data + before, out->n - before);
    return st;
}

/* Merges a word in the pieces that merges don't join, most of which were met before. */
static ggtok_status merge_word(const model_call *call, word_fn encode, const uint8_t *word,
                               size_t n, size_t room) {
    enum { BATCH = 64 };
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    size_t ends[BATCH];
    if (bpe_is_whole(word, n)) {
        return bpe_merge_word(&m->table, call->v, &s->merge, word, n, call->out, call->err);
    }
    for (size_t from = 0, count; from < n; from = ends[count - 1]) {
        count = bpe_cuts_find(&m->table.cuts, word, n, from, ends, BATCH);
        ggtok_status st = words_encode(call, &s->pieces, encode, word, room, from, ends, count);
        if (st) return st;
    }
    return GGTOK_OK;
}

/* A word that the cache does not hold. */
static ggtok_status encode_word(const model_call *call, const uint8_t *word, size_t n,
                                size_t room) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    idbuf *out = call->out;
    size_t before = out->n;
    int32_t id;
    if (!whole_word(m, s, call->v, word, n, &id)) return error_memory(call->err);
    if (id >= 0) {
        if (!idbuf_push(out, id)) return error_memory(call->err);
    } else {
        ggtok_status st = merge_word(call, encode_piece, word, n, room);
        if (st) return st;
    }
    wordcache_put(&s->words, word, n, room, out->data + before, out->n - before);
    return GGTOK_OK;
}

/* ---- a batch of words ---- */

/* Is there room to leave out n bytes? */
static bool can_leave(const bpe_state *s, size_t n, const idbuf *out) {
    return s->n_late < BPE_BATCH && n <= LONG_MAX_BYTES && out->n - s->late_from <= UINT32_MAX;
}

/* Leaves out a word or piece. New words like to come several times in a row. */
static void leave(bpe_state *s, bool is_piece, const uint8_t *p, size_t n, size_t room, size_t at) {
    enum { ROOM = 2 * LONG_MAX_BYTES };
    uint16_t i = (uint16_t)s->n_late++;
    uint64_t start[2] = {n, is_piece};
    if (room >= 16) word_short_key(start, p, n < WORD_SHORT ? n : WORD_SHORT);
    uint16_t *last = &s->late_by_hash[word_hash(start) >> (64 - BPE_TWINS_LOG2)];
    const bpe_new *like = &s->late[*last];
    bool twin = *last < i && like->n == n && like->is_piece == is_piece && mem_equal(like->p, p, n);
    if (!twin) *last = i;
    s->late[i] = (bpe_new){.p = p,
                           .n = (uint32_t)n,
                           .room = (uint32_t)(room < ROOM ? room : ROOM),
                           .at = (uint32_t)(at - s->late_from),
                           .twin = twin ? like->twin : i,
                           .is_piece = is_piece};
}

static ggtok_status leave_out_piece(const model_call *call, const uint8_t *piece, size_t n,
                                    size_t room) {
    bpe_state *s = call->scratch;
    if (!can_leave(s, n, call->out)) return encode_piece(call, piece, n, room);
    leave(s, true, piece, n, room, call->out->n);
    return GGTOK_OK;
}

/* A word that the cache does not hold is left out, to be learned with the batch's others.
 * Those that are cut are kept when they come again; until then, only their pieces are. */
static ggtok_status leave_out(const model_call *call, const uint8_t *word, size_t n, size_t room) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    if (!can_leave(s, n, call->out)) return encode_word(call, word, n, room);
    if (!bpe_is_whole(word, n)) {
        if (long_came(&s->words.longs, word, n)) return encode_word(call, word, n, room);
        int32_t id;
        if (!whole_word(m, s, call->v, word, n, &id)) return error_memory(call->err);
        if (id < 0) return merge_word(call, leave_out_piece, word, n, room);
        return idbuf_push(call->out, id) ? GGTOK_OK : error_memory(call->err);
    }
    leave(s, false, word, n, room, call->out->n);
    return GGTOK_OK;
}

/* The ids of what was left out and is not known yet. */
static ggtok_status encode_late(const model_call *call) {
    bpe_state *s = call->scratch;
    model_call own = *call;
    own.out = &s->late_ids;
    for (size_t i = 0; i < s->n_late; i++) {
        bpe_new *w = &s->late[i];
        if (w->known || w->twin != i) continue;
        w->first = (uint32_t)own.out->n;
        if (!idbuf_reserve(own.out, LONG_MAX_IDS)) return error_memory(call->err);
        if (!wordcache_get(bpe_cache(s, w), w->p, w->n, w->room, own.out)) {
            ggtok_status st = (w->is_piece ? encode_piece : encode_word)(&own, w->p, w->n, w->room);
            if (st) return st;
        }
        w->n_ids = (uint32_t)own.out->n - w->first;
    }
    return GGTOK_OK;
}

/* Words text[from..ends[0]), text[ends[0]..ends[1]), ..., at most BPE_BATCH: those in the
 * cache first, and then the others, for whose ids the former's make room. */
static ggtok_status encode_batch(const model_call *call, const uint8_t *text, size_t room,
                                 size_t from, const size_t *ends, size_t count) {
    enum { FEW = 4 };
    bpe_state *s = call->scratch;
    idbuf *out = call->out;
    s->n_late = s->late_ids.n = 0;
    s->late_from = out->n;
    ggtok_status st = words_encode(call, &s->words, leave_out, text, room, from, ends, count);
    if (st || !s->n_late) return st;
    if (s->n_late > FEW) bpe_learn(call, s->late, s->n_late);
    if ((st = encode_late(call))) return st;
    size_t n_ids = 0;
    for (size_t i = 0; i < s->n_late; i++) n_ids += s->late[s->late[i].twin].n_ids;
    if (!idbuf_reserve(out, n_ids)) return error_memory(call->err);
    int32_t *left = out->data + out->n, *to = left + n_ids; /* the ends of what is to be moved */
    out->n += n_ids;
    for (size_t i = s->n_late; i--;) {
        const bpe_new *w = &s->late[i], *ids = &s->late[w->twin];
        const int32_t *from_at = out->data + s->late_from + w->at;
        size_t behind = (size_t)(left - from_at);
        left -= behind;
        to -= behind;
        if (behind) memmove(to, left, behind * sizeof *to);
        to -= ids->n_ids;
        if (ids->n_ids) memcpy(to, s->late_ids.data + ids->first, ids->n_ids * sizeof *to);
    }
    return GGTOK_OK;
}

/* ---- a fragment ---- */

/* Asks the caller's splitter, with more room if it needs it, and checks it. */
static ggtok_status user_words(const model_call *call, const uint8_t *text, size_t n,
                               size_t *count) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    size_t want = s->ends_cap ? s->ends_cap : 256;
    for (;;) {
        if (want > s->ends_cap) {
            size_t *ends = mem_realloc(s->ends, mem_mul(want, sizeof *ends));
            if (!ends) return error_memory(call->err);
            s->ends = ends;
            s->ends_cap = want;
        }
        want = m->split(m->split_user, (const char *)text, n, s->ends, s->ends_cap);
        if (want <= s->ends_cap) break;
        if (want > n) {
            return error_set(call->err, GGTOK_ERR_ARGUMENT, "the word splitter failed");
        }
    }
    for (size_t i = 0; i < want; i++) {
        if (s->ends[i] > n || s->ends[i] <= (i ? s->ends[i - 1] : 0)) {
            return error_set(call->err, GGTOK_ERR_ARGUMENT,
                             "the word splitter's offset %llu is out of order",
                             (unsigned long long)i);
        }
        if (s->ends[i] < n && utf8_continues(text[s->ends[i]])) { /* bpe_cuts.h knows whole ones */
            return error_set(call->err, GGTOK_ERR_ARGUMENT,
                             "the word splitter's offset %llu is inside a character",
                             (unsigned long long)i);
        }
    }
    if (!want || s->ends[want - 1] != n) {
        return error_set(call->err, GGTOK_ERR_ARGUMENT,
                         "the word splitter's words do not cover the text");
    }
    *count = want;
    return GGTOK_OK;
}

static ggtok_status encode(const model_call *call, const uint8_t *text, size_t n) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    ggtok_status st = GGTOK_OK;
    size_t ends[BPE_BATCH], count = 0, from = 0;
    size_t room = n;
    if (utf8_valid_prefix(text, n) < n) {
        s->text.n = 0;
        if (!utf8_sanitize(&s->text, text, n)) return error_memory(call->err);
        text = s->text.data;
        room = n = s->text.n;
    } else if (!(text = words_pad(&s->text, text, n, &room))) {
        return error_memory(call->err);
    }
    if (call->v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES] && (!m->table.escapes || m->split)) {
        s->spaced.n = 0;
        if (!(m->pre_flags & PRETOK_MARK_LINES ? spaces_escape_lines(&s->spaced, text, n)
                                               : spaces_escape(&s->spaced, text, n))) {
            return error_memory(call->err);
        }
        text = s->spaced.data;
        room = n = s->spaced.n;
    }
    if (m->split) {
        st = user_words(call, text, n, &count);
        return st ? st : words_encode(call, &s->words, encode_word, text, room, 0, s->ends, count);
    }
    pretok_walk walk;
    pretok_begin(&walk, call->v->pre, text, n);
    while (!st && (count = pretok_next(&walk, ends, BPE_BATCH))) {
        st = PLAIN ? words_encode(call, &s->words, encode_word, text, room, from, ends, count)
                   : encode_batch(call, text, room, from, ends, count);
        from = ends[count - 1];
    }
    return st;
}

const model_ops model_bpe = {
    .build = model_build,
    .free = model_free,
    .scratch_new = scratch_new,
    .scratch_free = scratch_free,
    .encode = encode,
    .cache_bytes = cache_bytes,
};
