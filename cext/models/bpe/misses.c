#include "models/bpe/misses.h"

#include "models/bpe/lanes.h"

static word_cache *cache_of(bpe_state *s, const bpe_miss *w) {
    return w->is_piece ? &s->pieces : &s->words;
}

/* ---- deferring ---- */

static bool can_defer(const bpe_misses *m, size_t n, const idbuf *out) {
    return m->n < BPE_BATCH && n <= LONG_MAX_BYTES && out->n - m->out_from <= UINT32_MAX;
}

/* Returns the index of the first miss with the same bytes as miss i; i if there is no other. Most
 * misses have a pending entry in the cache, by which a duplicate finds them. For the rest, `recent`
 * has the last miss for each hash. */
static uint16_t first_of_duplicates(bpe_state *s, uint16_t i) {
    bpe_misses *m = s->misses;
    bpe_miss *w = &m->miss[i];
    uint64_t key[2] = {w->n, w->is_piece};
    if (w->room >= 16) word_short_key(key, w->p, w->n < WORD_SHORT ? w->n : WORD_SHORT);
    if (w->room >= 16 && w->n <= WORD_SHORT) {
        word_short *pending = ggtok_word_cache_claim(cache_of(s, w), key, i);
        uint32_t number = pending ? pending->ids[0] : i;
        if (number != i) return (uint16_t)number;
        if ((w->pending = pending)) return i;
    }
    uint16_t *recent = &m->recent[word_hash(key) >> (64 - BPE_RECENT_LOG2)];
    const bpe_miss *like = &m->miss[*recent];
    if (*recent < i && like->n == w->n && like->is_piece == w->is_piece &&
        mem_equal(like->p, w->p, w->n)) {
        return like->same_as;
    }
    return *recent = i;
}

static void defer(bpe_state *s, bool is_piece, const uint8_t *p, size_t n, size_t room, size_t at) {
    enum { ROOM = 2 * LONG_MAX_BYTES };
    bpe_misses *m = s->misses;
    uint16_t i = (uint16_t)m->n++;
    m->miss[i] = (bpe_miss){.p = p,
                            .n = (uint16_t)n,
                            .room = (uint16_t)(room < ROOM ? room : ROOM),
                            .at = (uint32_t)(at - m->out_from),
                            .is_piece = is_piece};
    m->miss[i].same_as = first_of_duplicates(s, i);
}

static ggtok_status defer_piece(const model_call *call, const uint8_t *piece, size_t n,
                                size_t room) {
    bpe_misses *m = ((bpe_state *)call->scratch)->misses;
    if (!can_defer(m, n, call->out)) return ggtok_bpe_encode_piece(call, piece, n, room);
    defer(call->scratch, true, piece, n, room, call->out->n);
    return GGTOK_OK;
}

/* Defers a word if possible. A word that is cut into pieces is stored when it occurs for the second
 * time; until then, only its pieces are stored. */
static ggtok_status defer_word(const model_call *call, const uint8_t *word, size_t n, size_t room) {
    bpe_state *s = call->scratch;
    if (!can_defer(s->misses, n, call->out)) return ggtok_bpe_encode_word(call, word, n, room);
    if (!bpe_is_whole(word, n)) {
        if (ggtok_long_cache_seen(&s->words.longs, word, n))
            return ggtok_bpe_encode_word(call, word, n, room);
        int32_t id;
        if (!ggtok_bpe_find_token(call->model, s, call->v, word, n, &id))
            return ggtok_call_failed(call);
        if (id < 0) return ggtok_bpe_encode_pieces(call, defer_piece, word, n, room);
        return idbuf_push(call->out, id) ? GGTOK_OK : ggtok_call_failed(call);
    }
    defer(s, false, word, n, room, call->out->n);
    return GGTOK_OK;
}

/* Drops the word's pending entry, if it has one. */
static void forget(bpe_state *s, bpe_miss *w) {
    if (w->pending) ggtok_word_cache_drop(cache_of(s, w), w->pending);
    w->pending = NULL;
}

/* Stores the ids. A failure only costs time: the word is then encoded separately. */
static void store_ids(bpe_state *s, bpe_miss *w, const int32_t *ids, size_t n) {
    idbuf *to = &s->misses->ids;
    if (w->pending) {
        ggtok_word_cache_fill(cache_of(s, w), w->pending, ids, n);
        w->pending = NULL;
    } else {
        ggtok_word_cache_put(cache_of(s, w), w->p, w->n, w->room, ids, n);
    }
    if (!idbuf_reserve(to, n)) return;
    w->first = (uint32_t)to->n;
    w->n_ids = (uint16_t)n;
    w->encoded = true;
    for (size_t i = 0; i < n; i++) to->data[to->n++] = ids[i];
}

/* ---- 1. misses that are tokens ---- */

enum { LOOKUPS = 32 };
enum {
    SPELLED_MAX = 2 * PIECE_MAX + 16
}; /* maximum bytes of a spelled word that is deferred whole */

typedef struct lookup {
    bpe_miss *word;
    uint64_t hash;
    size_t n;
    int32_t id; /* the likely id */
    uint8_t text[SPELLED_MAX];
} lookup;

/* Spells up to LOOKUPS of the words, from *at on, and prefetches their slots in the vocabulary.
 * Words that can't be tokens stay in `words`. Returns the number of look-ups. */
static size_t begin_lookups(const model_call *call, bpe_miss **words, size_t n_words, size_t *at,
                            size_t *kept, lookup *batch) {
    const bpe_model *m = call->model;
    const token_map *map = &call->v->by_text;
    size_t n = 0;
    for (; *at < n_words && n < LOOKUPS; ++*at) {
        bpe_miss *w = words[*at];
        if (w->is_piece || !ggtok_bpe_may_be_token(m, call->v, w->p, w->n)) {
            words[(*kept)++] = w;
            continue;
        }
        lookup *l = &batch[n++];
        l->word = w;
        l->n = bpe_spell_within(&m->table, w->p, w->n, w->room, l->text);
        l->hash = hash_text_within(l->text, l->n, SPELLED_MAX, map->seed);
        token_map_prefetch_slot(map, l->hash);
    }
    return n;
}

/* Stores the words that are tokens; keeps the others in `words` and returns their number. Each
 * stage prefetches the data for the next one. */
static size_t find_tokens(const model_call *call, bpe_miss **words, size_t n_words) {
    const token_map *map = &call->v->by_text;
    lookup batch[LOOKUPS];
    const lookup *likely[LOOKUPS];
    size_t kept = 0;
    for (size_t at = 0; at < n_words;) {
        size_t n_likely = 0, n = begin_lookups(call, words, n_words, &at, &kept, batch);
        for (size_t i = 0; i < n; i++) {
            batch[i].id = token_map_likely(map, batch[i].hash);
            likely[n_likely] = &batch[i];
            words[kept] = batch[i].word;
            if (batch[i].id < 0) {
                kept++;
            } else {
                n_likely++;
                token_map_prefetch_offset(map, batch[i].id);
            }
        }
        for (size_t i = 0; i < n_likely; i++) token_map_prefetch_text(map, likely[i]->id);
        for (size_t i = 0; i < n_likely; i++) {
            const lookup *l = likely[i];
            int32_t id = ggtok_token_map_confirm(map, l->text, l->n, l->hash, l->id);
            if (id < 0) {
                words[kept++] = l->word;
            } else {
                store_ids(call->scratch, l->word, &id, 1);
            }
        }
    }
    return kept;
}

/* ---- 2. misses that are merged side by side ---- */

static void merge_in_lanes(const model_call *call, bpe_miss **words, size_t n_words) {
    enum { TASKS = 64 };
    const bpe_table *t = &((const bpe_model *)call->model)->table;
    bpe_task task[TASKS];
    bpe_miss *word[TASKS];
    for (size_t i = 0; i < n_words;) {
        size_t n = 0;
        for (; i < n_words && n < TASKS; i++) {
            if (words[i]->n > BPE_TASK_MAX) continue;
            task[n].word = words[i]->p;
            task[n].merged = NULL;
            task[n].n = words[i]->n;
            word[n++] = words[i];
        }
        ggtok_bpe_merge_tasks(t, task, n);
        for (size_t k = 0; k < n; k++)
            store_ids(call->scratch, word[k], task[k].ids, task[k].n_ids);
    }
}

static void encode_many(const model_call *call) {
    bpe_misses *m = ((bpe_state *)call->scratch)->misses;
    bpe_miss *words[BPE_BATCH];
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->miss[i].same_as == i) words[n++] = &m->miss[i];
    }
    merge_in_lanes(call, words, find_tokens(call, words, n));
}

/* ---- 3. the others, one by one ---- */

static ggtok_status encode_rest(const model_call *call) {
    bpe_state *s = call->scratch;
    bpe_misses *m = s->misses;
    model_call own = *call;
    own.out = &m->ids;
    for (size_t i = 0; i < m->n; i++) {
        bpe_miss *w = &m->miss[i];
        if (w->encoded || w->same_as != i) continue;
        w->first = (uint32_t)own.out->n;
        forget(s, w); /* the function that encodes the word stores it */
        if (!idbuf_reserve(own.out, LONG_MAX_IDS)) return ggtok_call_failed(call);
        if (!ggtok_word_cache_get(cache_of(s, w), w->p, w->n, w->room, own.out)) {
            word_fn encode = w->is_piece ? ggtok_bpe_encode_piece : ggtok_bpe_encode_word;
            ggtok_status st = encode(&own, w->p, w->n, w->room);
            if (st) return st;
        }
        w->n_ids = (uint16_t)(own.out->n - w->first);
    }
    return GGTOK_OK;
}

/* ---- the batch ---- */

enum { STEP = 8 }; /* ids copied at once */

/* Copies n ids, and up to STEP - 1 elements after them. Either there are STEP elements between `to`
 * and `from`, or the two don't overlap. */
ALWAYS_INLINE void copy_ids(int32_t *to, const int32_t *from, size_t n) {
    for (size_t i = 0; i < n; i += STEP) memcpy(to + i, from + i, STEP * sizeof *to);
}

/* Moves the hits' ids after the first miss out of the way, then back, interleaved with the ids of
 * the misses. Returns false if out of memory. */
static bool insert_ids(bpe_misses *m, idbuf *out) {
    size_t n_ids = 0;
    for (size_t i = 0; i < m->n; i++) n_ids += m->miss[m->miss[i].same_as].n_ids;
    if (!idbuf_reserve(out, n_ids + 2 * STEP) || !idbuf_reserve(&m->ids, STEP)) return false;
    int32_t *hits = out->data + m->out_from, *to = hits + m->miss[0].at;
    const int32_t *from = to + n_ids + STEP, *end = out->data + out->n + n_ids + STEP;
    memmove(to + n_ids + STEP, to, (size_t)(out->data + out->n - to) * sizeof *to);
    for (size_t i = 0, at = m->miss[0].at; i < m->n; i++) {
        const bpe_miss *w = &m->miss[i], *ids = &m->miss[w->same_as];
        const size_t n = w->at - at;
        copy_ids(to, from, n);
        copy_ids(to + n, m->ids.data + ids->first, ids->n_ids);
        from += n;
        to += n + ids->n_ids;
        at = w->at;
    }
    memmove(to, from, (size_t)(end - from) * sizeof *to);
    out->n += n_ids;
    return true;
}

ggtok_status ggtok_bpe_encode_batch(const model_call *call, const uint8_t *text, size_t room,
                                    size_t from, const size_t *ends, size_t count) {
    enum { FEW = 4 };
    bpe_state *s = call->scratch;
    bpe_misses *m = s->misses;
    m->n = m->ids.n = 0;
    m->out_from = call->out->n;
    ggtok_status st =
        ggtok_words_encode(call, &s->words, defer_word, text, room, from, ends, count);
    if (!st && m->n > FEW && ggtok_bpe_has_lanes(&((const bpe_model *)call->model)->table))
        encode_many(call);
    if (!st) st = encode_rest(call);
    for (size_t i = 0; st && i < m->n; i++) forget(s, &m->miss[i]);
    if (st || !m->n) return st;
    return insert_ids(m, call->out) ? GGTOK_OK : ggtok_call_failed(call);
}
