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
    wordcache_put(bpe_cache(s, w), w->p, w->n, w->room, ids, n);
    if (!idbuf_reserve(&s->late_ids, n)) return;
    w->first = (uint32_t)s->late_ids.n;
    w->n_ids = (uint32_t)n;
    w->known = true;
    for (size_t i = 0; i < n; i++) s->late_ids.data[s->late_ids.n++] = ids[i];
}

/* ---- words that are tokens ---- */

enum { SPELLED_MAX = 2 * PIECE_MAX + 16 }; /* words that are left out have no more bytes */

typedef struct spelling {
    bpe_new *word;
    uint64_t hash;
    size_t n;
    int32_t id; /* it is likely */
    uint8_t text[SPELLED_MAX];
} spelling;

/* Learns those words that are tokens; returns how many others it left in `words`. */
static size_t learn_tokens(const model_call *call, bpe_new **words, size_t n_words) {
    enum { BATCH = 32 };
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    const textmap *map = &call->v->by_text;
    spelling batch[BATCH];
    size_t left = 0;
    for (size_t at = 0; at < n_words;) {
        size_t n = 0, n_likely = 0;
        for (; at < n_words && n < BATCH; at++) {
            bpe_new *w = words[at];
            if (w->is_piece || !bpe_may_be_token(m, call->v, w->p, w->n)) {
                words[left++] = w;
                continue;
            }
            spelling *spelled = &batch[n++];
            spelled->word = w;
            spelled->n = bpe_spell_within(&m->table, w->p, w->n, w->room, spelled->text);
            spelled->hash = hash_text_within(spelled->text, spelled->n, SPELLED_MAX, map->seed);
            textmap_prefetch_slot(map, spelled->hash);
        }
        const spelling *likely[BATCH];
        for (size_t i = 0; i < n; i++) {
            batch[i].id = textmap_likely(map, batch[i].hash);
            likely[n_likely] = &batch[i];
            words[left] = batch[i].word;
            if (batch[i].id < 0) {
                left++;
            } else {
                n_likely++;
                textmap_prefetch_offset(map, batch[i].id);
            }
        }
        for (size_t i = 0; i < n_likely; i++) textmap_prefetch_text(map, likely[i]->id);
        for (size_t i = 0; i < n_likely; i++) {
            const spelling *l = likely[i];
            int32_t id = textmap_confirm(map, l->text, l->n, l->hash, l->id);
            if (id < 0) {
                words[left++] = l->word;
            } else {
                learn(s, l->word, &id, 1);
            }
        }
    }
    return left;
}

/* ---- words that are merged ---- */

typedef struct job_list {
    enum { JOBS = 64 } size;
    bpe_job job[JOBS];
    bpe_new *word[JOBS];
    size_t n;
} job_list;

static void run_jobs(const bpe_table *t, bpe_state *s, job_list *list) {
    bpe_merge_many(t, list->job, list->n);
    for (size_t i = 0; i < list->n; i++) {
        learn(s, list->word[i], list->job[i].ids, list->job[i].n_ids);
    }
    list->n = 0;
}

void bpe_learn(const model_call *call, bpe_new *words, size_t n) {
    const bpe_table *t = &((const bpe_model *)call->model)->table;
    bpe_new *left[BPE_BATCH];
    job_list list;
    if (!bpe_merges_many(t)) return;
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++) {
        if (words[i].twin == i) left[n_left++] = &words[i];
    }
    n = learn_tokens(call, left, n_left);
    list.n = 0;
    for (size_t i = 0; i < n; i++) {
        if (left[i]->n > BPE_JOB_MAX) continue;
        list.job[list.n].word = left[i]->p;
        list.job[list.n].n = left[i]->n;
        list.word[list.n] = left[i];
        if (++list.n == JOBS) run_jobs(t, call->scratch, &list);
    }
    run_jobs(t, call->scratch, &list);
}
