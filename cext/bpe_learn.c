/*
 * New words, many at a time.
 *
 * A word that was not met before costs a look-up in the vocabulary and some merges, all
 * of them in tables that are larger than the processor's caches: it does little and waits
 * a lot. The new words of a batch wait together here.
 */
#include "model_bpe.h"
#include "utf8.h"

/* Failing costs time: the word is then encoded by itself. */
static void learn(bpe_state *s, bpe_new *w, const int32_t *ids, size_t n) {
    wordcache_put(w->cache, w->p, w->n, w->room, ids, n);
    if (!idbuf_reserve(&s->late_ids, n)) return;
    w->first = s->late_ids.n;
    memcpy(s->late_ids.data + w->first, ids, n * sizeof *ids);
    w->last = s->late_ids.n += n;
    w->known = true;
}

/* ---- words that are tokens ---- */

enum { SPELLED_MAX = 2 * PIECE_MAX }; /* words that are left out have no more bytes */

/* Learns those words that are tokens; returns how many others it left in `words`. */
static size_t learn_tokens(const model_call *call, bpe_new **words, size_t n_words) {
    enum { BATCH = 32 };
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    const textmap *map = &call->v->by_text;
    size_t left = 0;
    for (size_t at = 0; at < n_words;) {
        uint8_t text[BATCH][SPELLED_MAX];
        bpe_new *asked[BATCH];
        uint64_t hash[BATCH];
        size_t length[BATCH], n = 0;
        for (; at < n_words && n < BATCH; at++) {
            bpe_new *w = words[at];
            if (w->cache == &s->pieces || !bpe_may_be_token(m, call->v, w->p, w->n)) {
                words[left++] = w;
                continue;
            }
            asked[n] = w;
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
                learn(s, asked[i], &id, 1);
            }
        }
    }
    return left;
}

/* ---- words that are merged ---- */

typedef struct job_list {
    enum { JOBS = 64 } size;
    bpe_job job[JOBS];
    bpe_new *word[JOBS]; /* NULL: it is a piece of one, which goes into the cache */
    size_t n;
} job_list;

static void run_jobs(const bpe_table *t, bpe_state *s, job_list *list) {
    bpe_merge_many(t, list->job, list->n);
    for (size_t i = 0; i < list->n; i++) {
        const bpe_job *job = &list->job[i];
        if (list->word[i]) {
            learn(s, list->word[i], job->ids, job->n_ids);
        } else {
            wordcache_put(&s->pieces, job->word, job->n, job->n, job->ids, job->n_ids);
        }
    }
    list->n = 0;
}

static void add_job(const bpe_table *t, bpe_state *s, job_list *list, bpe_new *word,
                    const uint8_t *p, size_t n) {
    if (n > BPE_JOB_MAX) return;
    list->job[list->n].word = p;
    list->job[list->n].n = (uint32_t)n;
    list->word[list->n] = word;
    if (++list->n == JOBS) run_jobs(t, s, list);
}

/* Is the piece kept? (It is then brought to where the next look at it goes.) */
static bool is_kept(wordcache *cache, const words_probe *probe, const uint8_t *p, size_t n,
                    size_t room) {
    int32_t ids[LONG_MAX_IDS];
    idbuf out = {ids, 0, LONG_MAX_IDS};
    return word_short_find(probe->set, probe->key) ||
           word_short_near(cache, probe->set, probe->key) ||
           words_find(cache, probe, p, n, room, &out);
}

/* A longer word: those of the pieces that merges don't join which are not kept. */
static void add_pieces(const bpe_table *t, bpe_state *s, job_list *list, const bpe_new *word) {
    enum { BATCH = WORDS_GROUP };
    words_probe probe[BATCH];
    size_t ends[BATCH], new_from[BATCH], new_n[BATCH];
    for (size_t from = 0, count; from < word->n;) {
        size_t n = 0;
        count = bpe_cuts_find(&t->cuts, word->p, word->n, from, ends, BATCH);
        words_prepare(&s->pieces, probe, word->p, word->room, from, ends, count);
        for (size_t i = 0; i < count; from = ends[i++]) {
            size_t length = ends[i] - from;
            if (is_kept(&s->pieces, &probe[i], word->p + from, length, word->room - from)) continue;
            new_from[n] = from;
            new_n[n++] = length;
        }
        /* Not before: what a full list learns moves the tables that probes point to. */
        for (size_t i = 0; i < n; i++) add_job(t, s, list, NULL, word->p + new_from[i], new_n[i]);
    }
}

void bpe_learn(const model_call *call, bpe_new *words, size_t n) {
    const bpe_table *t = &((const bpe_model *)call->model)->table;
    bpe_state *s = call->scratch;
    bpe_new *left[BPE_BATCH];
    job_list list;
    if (!bpe_merges_many(t)) return;
    for (size_t i = 0; i < n; i++) left[i] = &words[i];
    n = learn_tokens(call, left, n);
    list.n = 0;
    for (size_t i = 0; i < n; i++) {
        bpe_new *w = left[i];
        if (w->cache == &s->pieces || bpe_is_whole(w->p, w->n)) {
            add_job(t, s, &list, w, w->p, w->n);
        } else {
            add_pieces(t, s, &list, w);
        }
    }
    run_jobs(t, s, &list);
}
