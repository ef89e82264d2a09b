/*
 * New words, many at a time.
 *
 * A word that was not met before costs a look-up in the vocabulary and some merges, all
 * of them in tables that are larger than the processor's caches: it does little and waits
 * a lot. The new words of a batch wait together here. What comes of it goes into the
 * caches, and is found there, so that ids depend on nothing that happens here.
 */
#include "model_bpe.h"
#include "utf8.h"

/* Is it in its set or the one next to it? */
static bool near_by(const words_probe *probe, const bpe_new *w) {
    const uint64_t *key = probe->key;
    return word_short_find(probe->set, key) || word_short_near(w->cache, probe->set, key);
}

/* Is it kept? (It is then brought to where the next look at it goes.) */
static bool known(const words_probe *probe, const bpe_new *w) {
    int32_t ids[LONG_MAX_IDS];
    idbuf out = {ids, 0, LONG_MAX_IDS};
    return near_by(probe, w) || words_find(w->cache, probe, w->p, w->n, w->room, &out);
}

/* Keeps what was new, once if the batch had it twice: caches of others than short words
 * look for themselves. */
static void learn(const bpe_new *w, const int32_t *ids, size_t n) {
    words_probe probe;
    words_prepare(w->cache, &probe, w->p, w->room, 0, &w->n, 1);
    if (!near_by(&probe, w)) wordcache_put(w->cache, w->p, w->n, ids, n);
}

/* ---- words that are tokens ---- */

enum { SPELLED_MAX = 2 * PIECE_MAX }; /* words that are left out have no more bytes */

/* Learns those words that are tokens; returns how many others it left in `words`. */
static size_t learn_tokens(const model_call *call, bpe_new *words, size_t n_words) {
    enum { BATCH = 32 };
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    const textmap *map = &call->v->by_text;
    size_t left = 0;
    for (size_t at = 0; at < n_words;) {
        uint8_t text[BATCH][SPELLED_MAX];
        bpe_new asked[BATCH];
        uint64_t hash[BATCH];
        size_t length[BATCH], n = 0;
        for (; at < n_words && n < BATCH; at++) {
            const bpe_new *w = &words[at];
            if (w->cache == &s->pieces || !bpe_may_be_token(m, call->v, w->p, w->n)) {
                words[left++] = *w;
                continue;
            }
            asked[n] = *w;
            length[n] = bpe_spell(&m->table, w->p, w->n, text[n]);
            hash[n] = hash_text_within(text[n], length[n], SPELLED_MAX, map->seed);
            textmap_prefetch_slot(map, hash[n++]);
        }
        for (size_t i = 0; i < n; i++) textmap_prefetch_offset(map, hash[i]);
        for (size_t i = 0; i < n; i++) textmap_prefetch_text(map, hash[i]);
        for (size_t i = 0; i < n; i++) {
            int32_t id = textmap_find_hashed(map, text[i], length[i], hash[i]);
            if (id < 0) {
                words[left++] = asked[i];
            } else {
                learn(&asked[i], &id, 1);
            }
        }
    }
    return left;
}

/* ---- words that are merged ---- */

typedef struct job_list {
    enum { JOBS = 64 } size;
    bpe_job job[JOBS];
    bpe_new word[JOBS];
    size_t n;
} job_list;

static void run_jobs(const bpe_table *t, job_list *list) {
    bpe_merge_many(t, list->job, list->n);
    for (size_t i = 0; i < list->n; i++) {
        learn(&list->word[i], list->job[i].ids, list->job[i].n_ids);
    }
    list->n = 0;
}

static void add_job(const bpe_table *t, job_list *list, const bpe_new *w) {
    if (w->n > BPE_JOB_MAX) return;
    list->job[list->n].word = w->p;
    list->job[list->n].n = (uint32_t)w->n;
    list->word[list->n] = *w;
    if (++list->n == JOBS) run_jobs(t, list);
}

/* A longer word: those of the pieces that merges don't join which are not kept. */
static void add_pieces(const bpe_table *t, job_list *list, wordcache *cache, const bpe_new *word) {
    enum { BATCH = WORDS_GROUP };
    words_probe probe[BATCH];
    bpe_new found[BATCH];
    size_t ends[BATCH];
    for (size_t from = 0, count; from < word->n;) {
        size_t n = 0;
        count = bpe_cuts_find(&t->cuts, word->p, word->n, from, ends, BATCH);
        words_prepare(cache, probe, word->p, word->room, from, ends, count);
        for (size_t i = 0; i < count; from = ends[i++]) {
            bpe_new piece = {cache, word->p + from, ends[i] - from, word->room - from, 0};
            if (!known(&probe[i], &piece)) found[n++] = piece;
        }
        /* Not before: what a full list learns moves the tables that probes point to. */
        for (size_t i = 0; i < n; i++) add_job(t, list, &found[i]);
    }
}

void bpe_learn(const model_call *call, const bpe_new *words, size_t n) {
    const bpe_table *t = &((const bpe_model *)call->model)->table;
    bpe_state *s = call->scratch;
    bpe_new left[BPE_BATCH];
    job_list list;
    if (!bpe_merges_many(t)) return;
    memcpy(left, words, n * sizeof *words);
    n = learn_tokens(call, left, n);
    list.n = 0;
    for (size_t i = 0; i < n; i++) {
        if (left[i].cache == &s->pieces || left[i].n <= BPE_WHOLE) {
            add_job(t, &list, &left[i]);
        } else {
            add_pieces(t, &list, &s->pieces, &left[i]);
        }
    }
    run_jobs(t, &list);
}
