/*
 * BPE: text -> words (pretok) -> ids (merges), each word separately.
 *
 * A word's ids depend only on its bytes. So a cache holds the ids of words, and the words that
 * aren't in it are encoded many at a time (models/bpe/misses.h).
 */
#include "models/bpe/misses.h"

#include "models/trace.h"
#include "pretok/rules.h"
#include "unicode/space_mark.h"
#include "unicode/utf8_valid.h"

enum { MARK = 0x2581 }; /* code point of SPACE_MARK */

static void model_free(void *model) {
    bpe_model *m = model;
    if (!m) return;
    ggtok_bpe_table_free(&m->table);
    ggtok_mem_free(m);
}

static ggtok_status model_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                                void **model, ggtok_error *err) {
    bpe_model *m = ggtok_mem_zalloc(sizeof *m);
    if (!m) return ggtok_error_memory(err);
    m->pre_flags = ggtok_pretok_flags(v->pre);
    if (options) {
        m->split = options->split;
        m->split_user = options->split_user;
    }
    ggtok_status s = ggtok_bpe_table_build(&m->table, v, g, err);
    if (!s && (v->flag[GGTOK_FLAG_IGNORE_MERGES] || m->pre_flags & PRETOK_NEWLINE_WORDS)) {
        ggtok_bpe_find_longest(m, v);
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
    ggtok_word_cache_free(&s->words);
    ggtok_word_cache_free(&s->pieces);
    ggtok_kept_words_free(&s->kept);
    ggtok_bpe_scratch_free(&s->merge);
    ggtok_mem_free(s->text.data);
    ggtok_mem_free(s->spaced.data);
    ggtok_mem_free(s->mapped.data);
    ggtok_mem_free(s->ends.data);
    ggtok_tile_free(&s->tiles);
    ggtok_mem_free(s->misses->ids.data);
    ggtok_pretok_places_free(s->places);
    ggtok_mem_free(s);
}

static size_t cache_bytes(const void *scratch) {
    const bpe_state *s = scratch;
    return ggtok_word_cache_bytes(&s->words) + ggtok_word_cache_bytes(&s->pieces) +
           ggtok_kept_words_bytes(&s->kept);
}

static void *scratch_new(const vocab *v, const void *model) {
    (void)v, (void)model;
    struct {
        bpe_state state;
        bpe_misses misses;
    } *both = ggtok_mem_zalloc(sizeof *both);
    if (!both) return NULL;
    bpe_state *s = &both->state;
    s->misses = &both->misses;
    if (!ggtok_word_cache_init(&s->words) || !ggtok_word_cache_init(&s->pieces)) {
        scratch_free(s);
        return NULL;
    }
    return s;
}

/* ---- a fragment ---- */

/* Encodes words with merges skipped at random; if none are skipped, as usual. */
static ggtok_status sample_words(const model_call *call, const uint8_t *text, size_t from,
                                 const size_t *ends, size_t count) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    ggtok_status st = GGTOK_OK;
    for (size_t i = 0; !st && i < count; from = ends[i++]) {
        int32_t id = GGTOK_NO_TOKEN;
        if (!call->sampling->skip_below &&
            !ggtok_bpe_find_token(m, s, call->v, text + from, ends[i] - from, &id))
            return ggtok_call_failed(call);
        st = id < 0 ? ggtok_bpe_merge_sampled(&m->table, call->v, &s->merge, call->sampling,
                                              text + from, ends[i] - from, call->out, call->err)
             : idbuf_push(call->out, id) ? GGTOK_OK
                                         : ggtok_call_failed(call);
    }
    return st;
}

static ggtok_status encode(const model_call *call, const uint8_t *text, size_t n) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    ggtok_status st = GGTOK_OK;
    size_t ends[BPE_BATCH], count = 0, from = 0;
    size_t room = n;
    s->merge.interrupt = call->interrupt;
    if (ggtok_utf8_valid_prefix(text, n) < n) {
        s->text.n = 0;
        if (!ggtok_utf8_sanitize(&s->text, text, n, call->interrupt))
            return ggtok_call_failed(call);
        text = s->text.data;
        room = n = s->text.n;
    } else if (!(text = ggtok_words_pad(&s->text, text, n, &room))) {
        return ggtok_call_failed(call);
    }
    if (call->v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES] && (!m->table.escapes || m->split)) {
        s->spaced.n = 0;
        if (!(m->pre_flags & PRETOK_MARK_LINES ? ggtok_space_mark_escape_lines(&s->spaced, text, n)
                                               : ggtok_space_mark_escape(&s->spaced, text, n))) {
            return ggtok_call_failed(call);
        }
        text = s->spaced.data;
        room = n = s->spaced.n;
    }
    if (m->split) {
        st = ggtok_split_text(m->split, m->split_user, text, n, &s->ends, &count, call->err);
        for (size_t i = 0, k; !st && i < count; i += k) {
            k = count - i < BPE_BATCH ? count - i : BPE_BATCH;
            st = call->sampling ? sample_words(call, text, from, s->ends.data + i, k)
                                : ggtok_words_encode(call, &s->words, ggtok_bpe_encode_word, text,
                                                     room, from, s->ends.data + i, k);
            if (interrupted(call->interrupt, s->ends.data[i + k - 1] - from))
                return ggtok_call_failed(call);
            from = s->ends.data[i + k - 1];
        }
        return st;
    }
    pretok_walk walk;
    ggtok_pretok_begin(&walk, call->v->pre, text, n);
    while (!st && (count = ggtok_pretok_next(&walk, ends, BPE_BATCH))) {
        st = call->sampling ? sample_words(call, text, from, ends, count)
             : PLAIN ? ggtok_words_encode(call, &s->words, ggtok_bpe_encode_word, text, room, from,
                                          ends, count)
                     : ggtok_bpe_encode_batch(call, text, room, from, ends, count);
        if (interrupted(call->interrupt, ends[count - 1] - from)) return ggtok_call_failed(call);
        from = ends[count - 1];
    }
    return st;
}

/* ---- recorded ---- */

/* Copies the text to the recorder's text, transformed as in `encode`. */
static bool record_text(const model_call *call, const uint8_t *text, size_t n) {
    const bpe_model *m = call->model;
    recorder *rec = call->recorder;
    bool escape = call->v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES] && (!m->table.escapes || m->split);
    bool mark_lines = escape && m->pre_flags & PRETOK_MARK_LINES, line_begins = true;
    ggtok_recorder_clear(rec);
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cpt;
        uint8_t c[4];
        len = ggtok_utf8_decode(text + i, text + n, &cpt);
        bool space = escape && cpt == ' ';
        bool mark = mark_lines && line_begins && cpt != '\n' && cpt != ' ' && cpt != 0x2581;
        if (mark && !ggtok_recorder_add(rec, SPACE_MARK, 3, i)) return false;
        size_t size = ggtok_utf8_encode(cpt, c);
        if (!ggtok_recorder_put(rec, space ? (const void *)SPACE_MARK : c, space ? 3 : size, i,
                                len)) {
            return false;
        }
        line_begins = cpt == '\n';
    }
    return ggtok_recorder_seal(rec);
}

/* Reports a word and the rules that found it (`rules` may be NULL). */
static ggtok_status trace_word(const model_call *call, pretok_rules *rules, size_t at, size_t n) {
    recorder *rec = call->recorder;
    const trace *t = rec->trace;
    if (!ggtok_trace_word(rec, at, n)) return ggtok_call_failed(call);
    if (!rules) return GGTOK_OK;
    if (!ggtok_pretok_rules_next(rules, at, at + n)) {
        return ggtok_error_set(call->err, GGTOK_ERR_UNSUPPORTED,
                               "the pre-tokenizer's rules end another word at byte %llu",
                               (unsigned long long)(at + n));
    }
    for (unsigned i = 0; i < rules->n_stages; i++) {
        ggtok_trace_event e = {.kind = GGTOK_TRACE_RULE,
                               .text = trace_note(rules->rule[i].scanner),
                               .right = trace_note(rules->rule[i].expression)};
        if (!trace_emit(t, e)) return ggtok_call_failed(call);
    }
    return GGTOK_OK;
}

static ggtok_status encode_word_recorded(const model_call *call, pretok_rules *rules, size_t at,
                                         size_t n) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    recorder *rec = call->recorder;
    int32_t id;
    ggtok_status st = rec->trace ? trace_word(call, rules, at, n) : GGTOK_OK;
    if (st) return st;
    if (!ggtok_bpe_find_token(m, s, call->v, rec->text.data + at, n, &id))
        return ggtok_call_failed(call);
    if (id < 0 || !recorder_allows(rec, id, at, n)) {
        return ggtok_bpe_merge_recorded(&m->table, &s->merge, rec, at, n, call->out, call->err);
    }
    bool ok = idbuf_push(call->out, id) && ggtok_recorder_add_span(rec, at, n);
    if (ok && rec->trace) {
        ok = ggtok_trace_last(rec, id, GGTOK_HOW_WHOLE_WORD, "a word that is a token isn't merged");
    }
    return ok ? GGTOK_OK : ggtok_call_failed(call);
}

static ggtok_status encode_words_recorded(const model_call *call, pretok_rules *rules, size_t from,
                                          const size_t *ends, size_t count) {
    ggtok_status st = GGTOK_OK;
    for (size_t i = 0; !st && i < count; from = ends[i++]) {
        st = encode_word_recorded(call, rules, from, ends[i] - from);
    }
    return st;
}

/* Encodes word by word, without the caches. */
static ggtok_status encode_recorded(const model_call *call, const uint8_t *text, size_t n) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    const bytebuf *own = &call->recorder->text;
    size_t ends[BPE_BATCH], count = 0, from = 0;
    if (!record_text(call, text, n)) return ggtok_call_failed(call);
    if (call->recorder->trace) call->recorder->trace->marks = m->table.escapes && !m->split;
    if (m->split) {
        ggtok_status st = ggtok_split_text(m->split, m->split_user, own->data, own->n, &s->ends,
                                           &count, call->err);
        return st ? st : encode_words_recorded(call, NULL, 0, s->ends.data, count);
    }
    pretok_walk walk;
    pretok_rules rules;
    ggtok_pretok_begin(&walk, call->v->pre, own->data, own->n);
    if (call->recorder->trace) ggtok_pretok_rules_begin(&rules, call->v->pre, own->data, own->n);
    ggtok_status st = GGTOK_OK;
    while (!st && (count = ggtok_pretok_next(&walk, ends, BPE_BATCH))) {
        st = encode_words_recorded(call, &rules, from, ends, count);
        from = ends[count - 1];
    }
    return st;
}

/* ---- spans ---- */

/* Returns the number of bytes that a token's text in GPT-2's characters represents. */
static tile_length spelled_length(gguf_view text) {
    size_t n = 0;
    const uint8_t *p = text.p, *end = p + text.n;
    for (size_t len; p < end; p += len, n++) {
        uint32_t cpt;
        if (byte_map_byte_at(p, end, &cpt, &len) < 0) return TILE_ASK;
    }
    return n < TILE_ASK ? (tile_length)n : TILE_ASK;
}

static bool measure(const vocab *v, const bpe_model *m, tiles *t) {
    bool raw = m->table.raw_utf8, escape = v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES];
    if (t->len) return true;
    if (!ggtok_tile_alloc(t, v)) return false;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        gguf_view text = vocab_text(v, id);
        t->len[id] = raw ? ggtok_tile_length(text, escape) : spelled_length(text);
    }
    for (int b = 0; raw && b < 256; b++) {
        int32_t id = m->table.fallback[b][0];
        if (id >= 0 && vocab_text(v, (uint32_t)id).n > 1) t->len[id] = 1;
    }
    /* Spaces never fall back to bytes if U+2581 is a token and no symbol that isn't a token
     * contains it. */
    t->clean =
        !escape || (ggtok_vocab_find(v, SPACE_MARK, SPACE_MARK_BYTES) >= 0 &&
                    !ggtok_tile_holds_mark(m->table.extras.text.data, m->table.extras.text.n));
    return true;
}

static bool tile(const model_call *call, const model_source *source) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    bool escape = call->v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES];
    const tile_text kind = {
        .escape = escape, .mark_lines = escape && m->pre_flags & PRETOK_MARK_LINES, .repair = true};
    if ((escape && !m->table.raw_utf8) || !measure(call->v, m, &s->tiles)) return false;
    bool plain = escape ? s->tiles.clean && ggtok_tile_is_plain(source->text, source->n)
                        : ggtok_utf8_valid_prefix(source->text, source->n) == source->n;
    return (plain && !kind.mark_lines && ggtok_tile(&s->tiles, source, false)) ||
           ggtok_tile_walk(call, &s->tiles, source, kind);
}

/* Whether the text can be cut at the position; only two characters of the words there are known. A
 * cut inside a word is possible if no merge joins the two characters and words aren't looked up
 * whole. */
static bool may_cut(const vocab *v, const void *model, void *scratch, const model_place *place) {
    const bpe_model *m = model;
    bpe_state *s = scratch;
    uint32_t before = place->before, after = place->after;
    if (m->split || (!s->places && !(s->places = ggtok_pretok_places_new(v->pre)))) return false;
    /* U+2581 is added to each text and line that doesn't begin with it, so the second part must. */
    bool marks = m->pre_flags & PRETOK_MARK_LINES && v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES];
    if (marks && before == '\n') return after != '\n';
    if (marks && after != ' ' && after != MARK) return false;
    if (v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES]) {
        if (before == ' ') before = MARK;
        if (after == ' ') after = MARK;
    }
    int kind = ggtok_pretok_place(s->places, before, after);
    if (kind != PRETOK_APART) return kind == PRETOK_BETWEEN;
    if (v->flag[GGTOK_FLAG_IGNORE_MERGES] || before == '\n' || after == '\n') return false;
    if (v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES] && !m->table.escapes) return false;
    return !ggtok_bpe_cuts_joined(&m->table.cuts, place->text, place->start, place->at);
}

/* ---- a token's own merges ---- */

/* Appends the bytes that p[0..n) represents. Returns false if some character represents none. */
static bool unspell(const bpe_table *t, const uint8_t *p, size_t n, bytebuf *out) {
    const uint8_t *end = p + n;
    if (t->raw_utf8) return memcpy(out->data + out->n, p, n), out->n += n, true;
    for (size_t len; p < end; p += len) {
        uint32_t cpt;
        uint8_t spelled[2];
        int byte = byte_map_byte_at(p, end, &cpt, &len);
        if (byte < 0 || byte_map_spell((uint8_t)byte, spelled) != len || memcmp(spelled, p, len))
            return false;
        out->data[out->n++] = (uint8_t)byte;
    }
    return true;
}

/* Returns one half of a pair: the bytes that it represents, or its text if it represents none. */
static ggtok_bytes half(const bpe_table *t, const uint8_t *p, size_t n, bytebuf *out) {
    out->n = 0;
    bool ok = unspell(t, p, n, out);
    return (ggtok_bytes){ok ? (const char *)out->data : (const char *)p, ok ? out->n : n};
}

/* Reports the pairs that merge into the token, by rank. */
static bool trace_pairs(const model_call *call, gguf_view text) {
    const bpe_model *m = call->model;
    const bpe_table *t = &m->table;
    bpe_state *s = call->scratch;
    trace *to = call->recorder->trace;
    uint64_t *found = ggtok_mem_alloc(mem_mul(text.n + 1, sizeof *found)); /* rank << 32 | n_left */
    size_t n = 0;
    bool ok = found && bytebuf_reserve(&s->mapped, text.n) && bytebuf_reserve(&s->spaced, text.n);
    for (size_t i = 1; ok && i < text.n; i++) {
        uint32_t left = ggtok_bpe_symbol(t, call->v, text.p, i), index;
        uint32_t right =
            left == BPE_NO_SYMBOL ? left : ggtok_bpe_symbol(t, call->v, text.p + i, text.n - i);
        uint32_t rank = right == BPE_NO_SYMBOL ? BPE_NO_RANK : bpe_rank(t, left, right);
        if (rank == BPE_NO_RANK) continue;
        ok = ggtok_bpe_file_rank(t, &s->merge, rank, &index);
        size_t k = n++;
        for (; k && found[k - 1] >> 32 > index; k--) found[k] = found[k - 1];
        found[k] = (uint64_t)index << 32 | i;
    }
    for (size_t k = 0; ok && k < n; k++) {
        size_t i = (uint32_t)found[k];
        ggtok_trace_event e = {
            .kind = GGTOK_TRACE_PAIR, .has_rank = true, .rank = (uint32_t)(found[k] >> 32)};
        s->mapped.n = s->spaced.n = 0;
        e.text = half(t, text.p, i, &s->mapped);
        e.right = half(t, text.p + i, text.n - i, &s->spaced);
        ok = trace_emit(to, e);
    }
    ggtok_mem_free(found);
    return ok;
}

/* Reports the parts into which the pre-tokenizer splits the recorder's text, if there are several. */
static ggtok_status trace_split(const model_call *call) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    recorder *rec = call->recorder;
    size_t end, count;
    if (m->split) {
        ggtok_status st = ggtok_split_text(m->split, m->split_user, rec->text.data, rec->text.n,
                                           &s->ends, &count, call->err);
        if (st) return st;
    } else {
        pretok_walk walk;
        ggtok_pretok_begin(&walk, call->v->pre, rec->text.data, rec->text.n);
        for (count = 0; ggtok_pretok_next(&walk, &end, 1); count++) {
            if (count == s->ends.cap) {
                size_t cap = 2 * count + 64;
                size_t *grown = ggtok_mem_realloc(s->ends.data, mem_mul(cap, sizeof *grown));
                if (!grown) return ggtok_call_failed(call);
                s->ends.data = grown;
                s->ends.cap = cap;
            }
            s->ends.data[count] = end;
        }
    }
    for (size_t i = 0, from = 0; count > 1 && i < count; from = s->ends.data[i++]) {
        if (!ggtok_trace_word(rec, from, s->ends.data[i] - from)) return ggtok_call_failed(call);
    }
    return GGTOK_OK;
}

static ggtok_status trace_token(const model_call *call, uint32_t id, ggtok_token_trace *out) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    recorder *rec = call->recorder;
    gguf_view text = vocab_text(call->v, id);
    s->text.n = 0;
    s->merge.interrupt = call->interrupt;
    if (!bytebuf_reserve(&s->text, text.n)) return ggtok_call_failed(call);
    bool spells = unspell(&m->table, text.p, text.n, &s->text);
    const uint8_t *word = s->text.data;
    size_t n = s->text.n;
    bool valid = spells && ggtok_utf8_valid_prefix(word, n) == n;
    const char *reason = NULL;
    if (!spells) {
        reason = "it contains a character that stands for no byte, so merging never produces it";
    } else if (m->table.raw_utf8 && !valid) {
        reason = "it isn't UTF-8, but merging starts from whole characters";
    } else if (call->v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES] && n && memchr(word, ' ', n)) {
        reason = "it contains a space, but spaces become U+2581 before merging";
    }
    out->reached = !reason;
    out->text =
        (ggtok_bytes){spells ? (const char *)word : (const char *)text.p, spells ? n : text.n};
    out->whole_word = spells && call->v->flag[GGTOK_FLAG_IGNORE_MERGES];
    if (spells && m->pre_flags & PRETOK_NEWLINE_WORDS) {
        size_t i = 0;
        while (i < n && word[i] == '\n') i++;
        out->whole_word |= i == n;
    }
    ggtok_status st = GGTOK_OK;
    if (!reason && n) {
        ggtok_recorder_clear(rec);
        bool ok = ggtok_recorder_put_all(rec, word, n, true, 0, text.n) && ggtok_recorder_seal(rec);
        st = !ok ? ggtok_call_failed(call) : valid ? trace_split(call) : GGTOK_OK;
        if (!st)
            st = ggtok_bpe_merge_recorded(&m->table, &s->merge, rec, 0, n, call->out, call->err);
    }
    if (!st && !trace_pairs(call, text)) st = ggtok_call_failed(call);
    if (!st && reason) {
        ggtok_trace_event e = {.kind = GGTOK_TRACE_NOTE, .note = trace_note(reason)};
        if (!trace_emit(rec->trace, e)) st = ggtok_call_failed(call);
    }
    return st;
}

static bool same(const void *a, const void *b) {
    const bpe_model *first = a, *second = b;
    return ggtok_bpe_table_same(&first->table, &second->table);
}

const model_ops ggtok_model_bpe = {
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
    .same = same,
    .samples = SAMPLES_DROPOUT,
};
