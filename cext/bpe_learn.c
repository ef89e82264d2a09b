/*
 * New words in advance, many at a time.
 *
 * A word that was not met before costs a look-up in the vocabulary and some merges, all
 * of them in tables that are larger than the processor's caches: it does little and waits
 * a lot. The words of a batch wait together here. What is found goes into the caches, and
 * words_encode then finds it there, so that ids depend on nothing that happens here.
 */
#include "model_bpe.h"
#include "utf8.h"

typedef struct new_word {
    const uint8_t *p;
    size_t n, room; /* bytes of it, and of the text from p on */
} new_word;

/* Is the word kept? (It is then brought to where the next look at it goes.) */
static bool known(wordcache *cache, const words_probe *probe, const new_word *w) {
    int32_t ids[LONG_MAX_IDS];
    idbuf out = {ids, 0, LONG_MAX_IDS};
    const uint64_t *key = probe->key;
    if (word_short_find(probe->set, key) || word_short_near(cache, probe->set, key)) return true;
    if (key[1] != WORDS_NOT_SHORT && !(probe->set->ids[3] & WORD_FAR)) return false;
    return words_find(cache, probe, w->p, w->n, w->room, &out);
}

static size_t find_new(wordcache *cache, const uint8_t *text, size_t n, size_t from,
                       const size_t *ends, size_t count, new_word *found) {
    words_probe probe[WORDS_GROUP];
    size_t n_found = 0;
    for (size_t group; count; ends += group, count -= group) {
        group = count < WORDS_GROUP ? count : WORDS_GROUP;
        words_prepare(cache, probe, text, n, from, ends, group);
        for (size_t i = 0; i < group; from = ends[i++]) {
            new_word w = {text + from, ends[i] - from, n - from};
            if (!known(cache, &probe[i], &w)) found[n_found++] = w;
        }
    }
    return n_found;
}

/* Keeps a word that was new, unless the batch had it twice. */
static void learn(bpe_state *s, wordcache *cache, const new_word *w, const int32_t *ids, size_t n) {
    words_probe probe;
    size_t end = w->n;
    words_prepare(cache, &probe, w->p, w->room, 0, &end, 1);
    if (known(cache, &probe, w)) return;
    wordcache_put(cache, w->p, w->n, ids, n);
    s->n_new++;
}

/* ---- words that are tokens ---- */

enum { SPELLED_MAX = 2 * BPE_JOB_MAX };

/* Learns those words that are tokens; returns how many others it left in `words`. */
static size_t learn_tokens(const model_call *call, new_word *words, size_t n_words) {
    enum { BATCH = 32 };
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    const textmap *map = &call->v->by_text;
    size_t left = 0;
    for (size_t at = 0; at < n_words;) {
        uint8_t text[BATCH][SPELLED_MAX];
        new_word asked[BATCH];
        uint64_t hash[BATCH];
        size_t length[BATCH], n = 0;
        for (; at < n_words && n < BATCH; at++) {
            const new_word *w = &words[at];
            if (w->n > BPE_JOB_MAX || !bpe_may_be_token(m, call->v, w->p, w->n)) {
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
                learn(s, &s->words, &asked[i], &id, 1);
            }
        }
    }
    return left;
}

/* ---- words that are merged ---- */

typedef struct job_list {
    enum { JOBS = 64 } size;
    bpe_job job[JOBS];
    wordcache *cache[JOBS]; /* where the result goes */
    size_t room[JOBS];
    size_t n;
} job_list;

static void run_jobs(const model_call *call, job_list *list) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    bpe_merge_many(&m->table, list->job, list->n);
    for (size_t i = 0; i < list->n; i++) {
        const bpe_job *job = &list->job[i];
        new_word w = {job->word, job->n, list->room[i]};
        learn(s, list->cache[i], &w, job->ids, job->n_ids);
    }
    list->n = 0;
}

static void add_job(const model_call *call, job_list *list, wordcache *cache, const new_word *w) {
    if (w->n > BPE_JOB_MAX) return;
    list->job[list->n].word = w->p;
    list->job[list->n].n = (uint32_t)w->n;
    list->cache[list->n] = cache;
    list->room[list->n] = w->room;
    if (++list->n == JOBS) run_jobs(call, list);
}

/* Longer words: the pieces that merges don't join. */
static void add_pieces(const model_call *call, job_list *list, const new_word *word) {
    enum { BATCH = 64 };
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    size_t ends[BATCH];
    new_word found[BATCH];
    for (size_t from = 0, count; from < word->n; from = ends[count - 1]) {
        count = bpe_cuts_find(&m->table.cuts, word->p, word->n, from, ends, BATCH);
        size_t n = find_new(&s->pieces, word->p, word->room, from, ends, count, found);
        for (size_t i = 0; i < n; i++) add_job(call, list, &s->pieces, &found[i]);
    }
}

void bpe_learn(const model_call *call, const uint8_t *text, size_t n, size_t from,
               const size_t *ends, size_t count) {
    const bpe_model *m = call->model;
    bpe_state *s = call->scratch;
    new_word words[BPE_LEARN_MAX];
    job_list list;
    if (!bpe_merges_many(&m->table)) return;
    size_t n_words = find_new(&s->words, text, n, from, ends, count, words);
    n_words = learn_tokens(call, words, n_words);
    list.n = 0;
    for (size_t i = 0; i < n_words; i++) {
        if (words[i].n <= BPE_WHOLE) {
            add_job(call, &list, &s->words, &words[i]);
        } else {
            add_pieces(call, &list, &words[i]);
        }
    }
    run_jobs(call, &list);
}
