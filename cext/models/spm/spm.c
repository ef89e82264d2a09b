/*
 * SPM: the initial symbols are characters. Repeatedly merges the pair whose text is the token with
 * the best score (the leftmost of several). In the end, a symbol that isn't a token falls back to
 * bytes.
 *
 * A merge joins two neighbours only if some token's text contains them side by side. So the text
 * can be cut between two characters that occur side by side in no token, and each piece can be
 * merged and cached separately.
 */
#include "base/cpu.h"
#include "models/spm/merge.h"
#include "models/trace.h"
#include "unicode/space_mark.h"
#include "unicode/utf8_valid.h"

#include <math.h>

/* Adds the pairs of a token's text. The text's last character may be incomplete; it then matches
 * only the same incomplete character at the end of an encoded text. */
static void add_pairs(adjacency *pairs, gguf_view text) {
    uint32_t before = 0;
    for (size_t i = 0, len; i < text.n; i += len) {
        uint32_t c = plain_char_at(text.p + i, text.n - i, &len);
        if (i) pair_add(pairs, before, c);
        before = c;
    }
}

/* ---- the immutable model ---- */

static void model_free(void *model) {
    spm_model *m = model;
    if (!m) return;
    ggtok_adjacency_free(&m->pairs);
    ggtok_mem_free(m);
}

static ggtok_status model_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                                void **model, ggtok_error *err) {
    (void)g, (void)options;
    spm_model *m = ggtok_mem_zalloc(sizeof *m);
    *model = m;
    if (!m) return ggtok_error_memory(err);
    if (!ggtok_adjacency_init(&m->pairs, v->text_off[v->n_tokens] / 2)) {
        model_free(m);
        *model = NULL;
        return ggtok_error_memory(err);
    }
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        add_pairs(&m->pairs, vocab_key(v, id));
        if (isnan(v->score[id])) m->unordered = true;
    }
    for (int b = 0; b < 256; b++) m->byte_id[b] = ggtok_vocab_byte_token(v, (uint8_t)b);
    return GGTOK_OK;
}

static void scratch_free(void *scratch) {
    spm_state *s = scratch;
    if (!s) return;
    ggtok_word_cache_free(&s->cache);
    ggtok_mem_free(s->text.data);
    ggtok_mem_free(s->piece.data);
    ggtok_tile_free(&s->tiles);
    ggtok_mem_free(s->symbols);
    ggtok_mem_free(s->heap);
    ggtok_kept_words_free(&s->kept);
    ggtok_long_word_free(&s->long_word);
    ggtok_mem_free(s);
}

static size_t cache_bytes(const void *scratch) {
    const spm_state *s = scratch;
    return ggtok_word_cache_bytes(&s->cache) + ggtok_kept_words_bytes(&s->kept);
}

static void *scratch_new(const vocab *v, const void *model) {
    (void)v, (void)model;
    spm_state *s = ggtok_mem_zalloc(sizeof *s);
    if (s && !ggtok_word_cache_init(&s->cache)) {
        ggtok_mem_free(s);
        return NULL;
    }
    return s;
}

/* ---- pieces and fragments ---- */

/* Encodes a piece that isn't cached. */
static ggtok_status encode_piece(const model_call *call, const uint8_t *text, size_t n,
                                 size_t room) {
    spm_state *s = call->scratch;
    size_t before = call->out->n;
    bool keep = kept_words_suits(n) && !call->sampling;
    if (keep && ggtok_kept_words_get(&s->kept, text, n, call->out)) return ggtok_words_hit(call, n);
    s->piece.n = 0;
    if (!ggtok_space_mark_escape(&s->piece, text, n)) return ggtok_call_failed(call);
    ggtok_status st = ggtok_spm_merge(call, s->piece.data, s->piece.n);
    if (st || call->sampling) return st;
    const int32_t *ids = call->out->data + before;
    if (keep)
        ggtok_kept_words_put(&s->kept, text, n, ids, call->out->n - before);
    else
        ggtok_word_cache_put(&s->cache, text, n, room, ids, call->out->n - before);
    return GGTOK_OK;
}

/* Writes the ends of the pieces of text[from..n), at most `max` (> 8); text[from] must begin a
 * piece. Positions that aren't ends are also written, and then overwritten: cuts are unpredictable,
 * so no branch depends on them. Texts are cut and looked up before their spaces are escaped. */
static size_t cut_pieces(const adjacency *pairs, const uint8_t *text, size_t n, size_t from,
                         size_t *ends, size_t max) {
    size_t count = 0, len;
    uint32_t a = plain_char_at(text + from, n - from, &len), b;
    for (size_t i = from + len; i < n; a = b) {
        if (a < 0x80 && n - i >= 8 && pair_eight_ascii(text + i)) {
            count = pair_cut_eight(pairs, text, i, a, ends, count);
            i += 8;
            b = text[i - 1];
        } else {
            b = plain_char_at(text + i, n - i, &len);
            ends[count] = i;
            count += !pair_in(pairs, a, b);
            i += len;
        }
        if (count > max - 8) return count;
    }
    ends[count] = n;
    return count + 1;
}

/* Encodes pieces without the cache. */
static ggtok_status sample_pieces(const model_call *call, const uint8_t *text, size_t room,
                                  size_t from, const size_t *ends, size_t count) {
    ggtok_status st = GGTOK_OK;
    for (size_t i = 0; !st && i < count; from = ends[i++])
        st = encode_piece(call, text + from, ends[i] - from, room - from);
    return st;
}

static ggtok_status encode(const model_call *call, const uint8_t *text, size_t n) {
    enum { BATCH = 512 };
    const spm_model *m = call->model;
    spm_state *s = call->scratch;
    bool prefix = call->after_special && call->v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX];
    size_t ends[BATCH], room = n;
    bytebuf *own = &s->text;
    own->n = 0;
    /* A merge that returns after the next one depends on all pairs of the text. */
    const bool whole = m->unordered || (call->sampling && call->sampling->skipped_returns);
    if (whole || ggtok_utf8_valid_prefix(text, n) < n) {
        /* A malformed lead byte before a space would include part of the U+2581 for that space, so
         * the spaces must be escaped first. */
        if ((prefix && !bytebuf_append(own, SPACE_MARK, 3)) ||
            !ggtok_space_mark_escape(own, text, n)) {
            return ggtok_call_failed(call);
        }
        if (whole) return ggtok_spm_merge(call, own->data, own->n);
    } else if (prefix || n < WORDS_SHORT) {
        if (!bytebuf_append(own, " ", prefix) || !bytebuf_append(own, text, n)) {
            return ggtok_call_failed(call);
        }
    }
    if (own->n) {
        if (!bytebuf_reserve(own, WORDS_PAD)) return ggtok_call_failed(call);
        memset(own->data + own->n, 0, WORDS_PAD);
        text = own->data;
        n = own->n;
        room = n + WORDS_PAD;
    }
    ggtok_status st = GGTOK_OK;
    for (size_t from = 0; !st && from < n;) {
        size_t count = cut_pieces(&m->pairs, text, n, from, ends, BATCH);
        st = call->sampling
                 ? sample_pieces(call, text, room, from, ends, count)
                 : ggtok_words_encode(call, &s->cache, encode_piece, text, room, from, ends, count);
        if (interrupted(call->interrupt, ends[count - 1] - from)) return ggtok_call_failed(call);
        from = ends[count - 1];
    }
    return st;
}

/* Encodes the text as one piece, with all spaces escaped. */
static ggtok_status encode_recorded(const model_call *call, const uint8_t *text, size_t n) {
    recorder *rec = call->recorder;
    bool prefix = call->after_special && call->v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX];
    ggtok_recorder_clear(rec);
    bool ok = !prefix || ggtok_recorder_add(rec, SPACE_MARK, 3, 0);
    for (size_t i = 0; ok && i < n; i++) {
        bool space = text[i] == ' ';
        ok = ggtok_recorder_put(rec, space ? (const void *)SPACE_MARK : text + i, space ? 3 : 1, i,
                                1);
    }
    if (!ok || !ggtok_recorder_seal(rec) || !idbuf_reserve(call->out, rec->text.n)) {
        return ggtok_call_failed(call);
    }
    if (rec->trace && !ggtok_trace_word(rec, 0, rec->text.n)) return ggtok_call_failed(call);
    return ggtok_spm_merge_recorded(call);
}

/* ---- spans ---- */

/* Computes how many bytes of the text each token represents. A byte token represents one byte. */
static bool measure(const vocab *v, const spm_model *m, tiles *t) {
    if (t->len) return true;
    if (!ggtok_tile_alloc(t, v)) return false;
    for (uint32_t id = 0; id < v->n_tokens; id++)
        t->len[id] = ggtok_tile_length(vocab_text(v, id), true);
    for (int b = 0; b < 256; b++) {
        int32_t id = m->byte_id[b], unk = v->special[GGTOK_UNK];
        if (id >= 0 && vocab_text(v, (uint32_t)id).n > 1) t->len[id] = 1;
        if (id < 0 && unk >= 0) t->len[unk] = TILE_ASK; /* one byte, or its own text */
    }
    t->clean = ggtok_vocab_find(v, SPACE_MARK, SPACE_MARK_BYTES) >= 0;
    return true;
}

static bool tile(const model_call *call, const model_source *source) {
    spm_state *s = call->scratch;
    bool prefix = call->after_special && call->v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX];
    if (!measure(call->v, call->model, &s->tiles)) return false;
    if (s->tiles.clean && ggtok_tile_is_plain(source->text, source->n) &&
        ggtok_tile(&s->tiles, source, prefix)) {
        return true;
    }
    const tile_text kind = {.escape = true, .prefix = prefix};
    return ggtok_tile_walk(call, &s->tiles, source, kind);
}

static bool may_cut(const vocab *v, const void *model, void *scratch, const model_place *place) {
    (void)v, (void)scratch;
    const spm_model *m = model;
    size_t len;
    uint32_t a = plain_char_at(place->text + place->start, place->at - place->start, &len);
    uint32_t b = plain_char_at(place->text + place->at, 4, &len);
    return !m->unordered && !pair_in(&m->pairs, a, b);
}

/* Whether merges can produce this symbol: it is a token or a single character. */
static bool can_be(const vocab *v, const uint8_t *p, size_t n) {
    return n <= utf8_lead_len(*p) || ggtok_vocab_find(v, p, n) >= 0;
}

static ggtok_status trace_token(const model_call *call, uint32_t id, ggtok_token_trace *out) {
    recorder *rec = call->recorder;
    gguf_view text = vocab_text(call->v, id);
    ggtok_recorder_clear(rec);
    out->reached = true;
    out->text = (ggtok_bytes){(const char *)text.p, text.n};
    if (!ggtok_recorder_put(rec, text.p, text.n, 0, text.n) || !ggtok_recorder_seal(rec) ||
        !idbuf_reserve(call->out, text.n)) {
        return ggtok_call_failed(call);
    }
    ggtok_status st = text.n ? ggtok_spm_merge_recorded(call) : GGTOK_OK;
    for (size_t i = 0, len; !st && i < text.n; i += len) {
        char_at(text.p + i, text.n - i, &len);
        if (!i || !can_be(call->v, text.p, i) || !can_be(call->v, text.p + i, text.n - i)) continue;
        ggtok_trace_event e =
            ggtok_spm_with_score(call, (ggtok_trace_event){.kind = GGTOK_TRACE_PAIR}, (int32_t)id);
        if (!ggtok_trace_merge(rec, e, text.p, i, text.n - i)) st = ggtok_call_failed(call);
    }
    return st;
}

const model_ops ggtok_model_spm = {
    .build = model_build,
    .free = model_free,
    .scratch_new = scratch_new,
    .scratch_free = scratch_free,
    .encode = encode,
    .encode_recorded = encode_recorded,
    .tile = tile,
    .cache_bytes = cache_bytes,
    .may_cut = may_cut,
    .trace_token = trace_token,
    .samples = SAMPLES_DROPOUT | SAMPLES_ALPHA,
};
