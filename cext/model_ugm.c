/*
 * UGM: the text is normalized, then cut into the tokens with the greatest sum of
 * scores (unigram language model, Viterbi).
 *
 *   text -> normalize (user-defined tokens, charsmap, white space) -> pieces
 *        -> best path of each piece, remembered -> ids, runs of unknowns fused
 *
 * Cutting into pieces is exact when sums of scores are (see DESIGN-models.md); a
 * vocabulary or a text for which that can't be shown is one piece.
 */
#include "model.h"
#include "pieces.h"
#include "trie.h"
#include "ugm_charsmap.h"

#include <float.h>

typedef struct ugm_model {
    trie tokens;
    trie user;          /* user-defined tokens, no tails: see ugm_user_prefix */
    charsmap map;
    pair_set pairs;
    double unknown;     /* score of an unknown character */
    double exact_len;   /* texts up to this many bytes have exact sums; 0: none */
    bool plain[256];    /* an ASCII byte that stays itself if another follows */
} ugm_model;

typedef struct best {   /* the best way to a place in the piece */
    double score;
    int32_t id;         /* its last token */
    uint32_t from;      /* where that begins */
} best;

typedef struct ugm_scratch {
    bytebuf norm;
    best *best;
    size_t best_cap;
    idbuf ids;          /* of one piece, last to first */
    piece_cache cache;
} ugm_scratch;

/* One encode call. */
typedef struct ugm_run {
    const model_call *call;
    const ugm_model *m;
    ugm_scratch *s;
    bool cut;           /* pieces, not the whole text */
    bool in_word;       /* the last byte was no space */
    bool prefixed;      /* a space has been put before a word */
    bool was_unknown;   /* the last id is the unknown one, which a run gives once */
    double drained;     /* normalized bytes tokenized so far */
} ugm_run;

enum { BLOCK = 1 << 15 }; /* normalized bytes that are gathered before they are tokenized */

static void ugm_free(void *model) {
    ugm_model *m = model;
    if (!m) return;
    trie_free(&m->tokens);
    trie_free(&m->user);
    charsmap_free(&m->map);
    pair_set_free(&m->pairs);
    mem_free(m);
}

/* ---- building ---- */

/* Exponent of the lowest set bit of a finite score that is not 0: it is a
 * multiple of 2 to that power. */
static int lowest_bit(float score) {
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    int exponent = (int)(bits >> 23 & 255);
    uint32_t mantissa = (bits & 0x7FFFFF) | (exponent ? 0x800000 : 0);
    return (exponent ? exponent : 1) - 150 + __builtin_ctz(mantissa);
}

/* 2 to the power e, for -149 <= e <= 127. */
static double power_of_two(int e) {
    double r = 1;
    for (; e < 0; e++) r /= 2;
    for (; e > 0; e--) r *= 2;
    return r;
}

typedef struct score_range {
    int low_bit;
    float greatest;  /* absolute value */
    bool finite;
} score_range;

static void widen(score_range *r, float score) {
    if (!(score >= -FLT_MAX && score <= FLT_MAX)) {
        r->finite = false;
        return;
    }
    if (score == 0) return;
    int low = lowest_bit(score);
    float size = score < 0 ? -score : score;
    if (low < r->low_bit) r->low_bit = low;
    if (size > r->greatest) r->greatest = size;
}

/*
 * How long a text may be for all sums of its tokens' scores to be exact. All
 * scores are multiples of g = 2^low_bit and at most M in size, so a sum over n
 * tokens is a multiple of g of size at most n M: a double holds it exactly while
 * n M <= 2^53 g. One factor of 2 is left for the sum being compared.
 */
static double exact_length(const score_range *r) {
    if (!r->finite) return 0;
    if (r->greatest == 0) return DBL_MAX;
    return 0x1p52 * power_of_two(r->low_bit) / r->greatest;
}

static bool build_tries(const vocab *v, ugm_model *m) {
    enum { MATCHED = GGTOK_ATTR_NORMAL | GGTOK_ATTR_USER_DEFINED | GGTOK_ATTR_UNUSED };
    uint32_t *ids = mem_alloc(mem_mul(v->n_tokens, sizeof *ids));
    if (!ids || !pair_set_init(&m->pairs, v->n_tokens ? v->text_off[v->n_tokens] : 0)) {
        mem_free(ids);
        return false;
    }
    score_range range = {INT32_MAX, 0, true};
    float lowest = FLT_MAX; /* what llama.cpp has where no token is NORMAL */
    bool whole = true;
    size_t n = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (!(v->attr[id] & MATCHED)) continue;
        gguf_view text = vocab_text(v, id);
        ids[n++] = id;
        whole &= pair_set_add(&m->pairs, text.p, text.n);
        widen(&range, v->score[id]);
        if ((v->attr[id] & GGTOK_ATTR_NORMAL) && v->score[id] < lowest) lowest = v->score[id];
    }
    float unknown = lowest - 10.0f; /* in single precision, as there */
    widen(&range, unknown);
    m->unknown = unknown;
    m->exact_len = whole ? exact_length(&range) : 0;
    bool ok = trie_build(&m->tokens, v->text, v->text_off, ids, n, true);
    n = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (v->attr[id] & GGTOK_ATTR_USER_DEFINED) ids[n++] = id;
    }
    ok = ok && trie_build(&m->user, v->text, v->text_off, ids, n, false);
    mem_free(ids);
    return ok;
}

static ggtok_status ugm_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                              void **model, ggtok_error *err) {
    (void)options;
    ugm_model *m = mem_zalloc(sizeof *m);
    if (!m) return error_memory(err);
    ggtok_status status = charsmap_load(&m->map, g, err);
    if (!status && !build_tries(v, m)) status = error_memory(err);
    if (status) {
        ugm_free(m);
        return status;
    }
    for (unsigned c = 0; c < 128; c++) {
        m->plain[c] = !trie_child(&m->user, 0, (uint8_t)c) &&
                      charsmap_keeps_ascii(&m->map, (uint8_t)c);
    }
    *model = m;
    return GGTOK_OK;
}

static void ugm_scratch_free(void *scratch) {
    ugm_scratch *s = scratch;
    if (!s) return;
    mem_free(s->norm.data);
    mem_free(s->best);
    mem_free(s->ids.data);
    piece_cache_free(&s->cache);
    mem_free(s);
}

static void *ugm_scratch_new(const vocab *v, const void *model) {
    (void)v, (void)model;
    return mem_zalloc(sizeof(ugm_scratch));
}

/* ---- the best path ---- */

static bool reserve_best(ugm_scratch *s, size_t n) {
    if (n <= s->best_cap) return true;
    size_t cap = n + n / 2 + 256;
    best *b = mem_realloc(s->best, mem_mul(cap, sizeof *b));
    if (!b) return false;
    s->best = b;
    s->best_cap = cap;
    return true;
}

/*
 * The ids of text[0..n) into s->ids, last to first, unknowns fused.
 *
 * Ties: of equal sums the one found first stays, that is the one whose last
 * token begins first (and a token before the unknown character of same extent).
 */
static bool find_path(const ugm_run *r, const uint8_t *text, size_t n) {
    const vocab *v = r->call->v;
    const trie *t = &r->m->tokens;
    int32_t unk = v->special[GGTOK_UNK];
    if (!reserve_best(r->s, n + 1)) return false;
    best *at = r->s->best;
    for (size_t i = 0; i <= n; i++) at[i] = (best){-DBL_MAX, unk, 0};
    at[0].score = 0;

    for (size_t i = 0; i < n;) {
        size_t len = utf8_lead_len(text[i]);
        if (len > n - i) len = n - i;
        double here = at[i].score;
        bool known = false; /* this very character is a token */
        uint32_t s = 0;
        for (size_t k = i; k < n;) {
            s = trie_child(t, s, text[k++]);
            if (!s) break;
            uint32_t link = t->unit[s].link;
            size_t rest = 0;
            if (!(link & (TRIE_VALUE | TRIE_TAIL))) continue;
            if (link & TRIE_TAIL) {
                rest = trie_tail(t, s, k - i, text + k, n - k);
                if (rest == SIZE_MAX) break;
                k += rest;
            }
            int32_t id = t->value[s];
            known |= k - i == len;
            double sum = here + (v->attr[id] & GGTOK_ATTR_USER_DEFINED ? 0.0 : v->score[id]);
            if (sum > at[k].score) at[k] = (best){sum, id, (uint32_t)i};
            if (link & TRIE_TAIL) break;
        }
        if (!known) {
            double sum = here + r->m->unknown;
            if (sum > at[i + len].score) at[i + len] = (best){sum, unk, (uint32_t)i};
        }
        i += len;
    }

    idbuf *ids = &r->s->ids;
    bool was_unknown = false;
    ids->n = 0;
    for (size_t i = n;; i = at[i].from) {
        bool unknown = at[i].id == unk;
        if (!(was_unknown && unknown) && !idbuf_push(ids, at[i].id)) return false;
        if (!at[i].from) return true;
        was_unknown = unknown;
    }
}

/* Ids of one piece; 32 bytes at `text` must be readable. */
static inline bool push_piece(ugm_run *r, const uint8_t *text, size_t n) {
    ugm_scratch *s = r->s;
    idbuf *out = r->call->out;
    int32_t unk = r->call->v->special[GGTOK_UNK];
    piece_key key;
    uint64_t hash = 0;
    if (n <= PIECE_MAX && r->cut) {
        key = piece_key_of(text, n);
        hash = piece_hash(&key);
        const piece_slot *slot = piece_find(&s->cache, &key, hash);
        if (slot) {
            if (!idbuf_reserve(out, PIECE_IDS)) return false;
            unsigned skip = r->was_unknown && slot->id[0] == unk;
            memcpy(out->data + out->n, slot->id + skip, (PIECE_IDS - 1) * sizeof *out->data);
            out->data[out->n + PIECE_IDS - 1] = slot->id[PIECE_IDS - 1]; /* if skip is 0 */
            out->n += slot->n - skip;
            r->was_unknown = slot->id[slot->n - 1] == unk;
            return true;
        }
    }
    if (!find_path(r, text, n) || !idbuf_reserve(out, s->ids.n)) return false;
    for (size_t i = 0, k = s->ids.n; i < k / 2; i++) {
        int32_t swap = s->ids.data[i];
        s->ids.data[i] = s->ids.data[k - 1 - i];
        s->ids.data[k - 1 - i] = swap;
    }
    if (n <= PIECE_MAX && r->cut) piece_add(&s->cache, &key, hash, s->ids.data, s->ids.n);
    unsigned skip = r->was_unknown && s->ids.data[0] == unk;
    memcpy(out->data + out->n, s->ids.data + skip, (s->ids.n - skip) * sizeof *out->data);
    out->n += s->ids.n - skip;
    r->was_unknown = s->ids.data[s->ids.n - 1] == unk;
    return true;
}

/*
 * Tokenizes the pieces of s->norm that are complete, all of it if `all`, and
 * moves the rest to the front. A cut lies between two characters that no token
 * holds side by side.
 */
static bool drain(ugm_run *r, bool all) {
    bytebuf *norm = &r->s->norm;
    if (!bytebuf_reserve(norm, PIECE_MAX + 1)) return false; /* for piece_key_of */
    const uint8_t *p = norm->data;
    size_t n = norm->n, start = 0;
    if (r->cut && n) {
        size_t len, i = 0;
        uint32_t c = char_at(p, n, &len);
        for (i = len; i < n; i += len) {
            /* The last characters may not all be there yet. */
            if (!all && n - i < 4) break;
            uint32_t next = p[i];
            if (next < 0x80) len = 1;
            else next = char_at(p + i, n - i, &len);
            if (!pair_in(&r->m->pairs, c, next)) {
                if (!push_piece(r, p + start, i - start)) return false;
                start = i;
            }
            c = next;
        }
    }
    if (all && start < n) {
        if (!push_piece(r, p + start, n - start)) return false;
        start = n;
    }
    r->drained += (double)start;
    norm->n = n - start;
    memmove(norm->data, p + start, norm->n);
    return true;
}

/* ---- normalizing ---- */

static inline void put_space(const ugm_run *r, bytebuf *norm) {
    static const uint8_t escaped[3] = {0xE2, 0x96, 0x81};
    if (r->call->v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES]) {
        memcpy(norm->data + norm->n, escaped, 3);
        norm->n += 3;
    } else {
        norm->data[norm->n++] = ' ';
    }
}

/* Appends one normalized byte; there is room for 7. */
static inline void put(ugm_run *r, bytebuf *norm, uint8_t c) {
    const bool *flag = r->call->v->flag;
    if (c != ' ') {
        if (!r->in_word) {
            r->in_word = true;
            if (flag[GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES] ||
                (flag[GGTOK_FLAG_ADD_SPACE_PREFIX] && !r->prefixed)) {
                put_space(r, norm);
                r->prefixed = true;
            }
        }
        norm->data[norm->n++] = c;
    } else {
        r->in_word = false;
        if (!flag[GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES]) put_space(r, norm);
    }
}

/*
 * How many bytes at p lead some user-defined token. Such bytes are taken as they
 * are: not only whole tokens, as one might expect, but any beginning of one,
 * which is llama.cpp's rule and has to be ours.
 */
static size_t user_prefix(const trie *user, const uint8_t *p, size_t n) {
    size_t i = 0;
    for (uint32_t s = 0; i < n && (s = trie_child(user, s, p[i])) != 0;) i++;
    return i;
}

/* Length of the sequence at p, 0 if it is none: unicode_cpt_from_utf8 without its
 * value. What decodes above U+10FFFF passes, as it is never encoded again. */
static size_t sequence(const uint8_t *p, size_t n) {
    size_t len = utf8_lead_len(*p);
    if (*p >= 0xF8 || (*p >= 0x80 && len == 1) || len > n) return 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
    }
    return len;
}

/* Normalizes what stands at p; returns how many bytes that takes, 0 on an error. */
static size_t put_prefix(ugm_run *r, const uint8_t *p, size_t n) {
    static const uint8_t replacement[3] = {0xEF, 0xBF, 0xBD};
    const char *fault = NULL;
    const uint8_t *with = p;
    size_t with_n = 0, used = user_prefix(&r->m->user, p, n);
    if (used) {
        with_n = used;
    } else if ((used = charsmap_match(&r->m->map, p, n, &with, &with_n, &fault)) == 0) {
        with = p;
        used = with_n = sequence(p, n);
        if (!used) used = 1, with = replacement, with_n = 3;
    }
    if (fault) {
        error_set(r->call->err, GGTOK_ERR_VOCAB, "%s", fault);
        return 0;
    }
    bytebuf *norm = &r->s->norm;
    if (!bytebuf_reserve(norm, mem_mul(with_n, 3) + 8)) {
        error_memory(r->call->err);
        return 0;
    }
    for (size_t i = 0; i < with_n; i++) put(r, norm, with[i]);
    return used;
}

/* Normalizes and tokenizes the text; *exact becomes false if it turned out longer
 * than cutting allows. */
static ggtok_status run(ugm_run *r, const uint8_t *text, size_t n, bool *exact) {
    bytebuf *norm = &r->s->norm;
    size_t drain_at = BLOCK;
    norm->n = 0;
    for (size_t i = 0; i < n;) {
        if (r->cut && norm->n >= drain_at) {
            if (!drain(r, false)) return error_memory(r->call->err);
            /* What is left is scanned again: twice as much next time keeps that linear. */
            drain_at = 2 * norm->n + BLOCK;
            if (r->drained + (double)norm->n > r->m->exact_len) break;
        }
        if (!bytebuf_reserve(norm, 1024 + 16)) return error_memory(r->call->err);
        /* Plain bytes, as many as the room just made holds at four for one. */
        size_t stop = n - 1 - i > 250 ? i + 250 : n - 1;
        while (i < stop && text[i + 1] < 0x80 && r->m->plain[text[i]]) put(r, norm, text[i++]);
        if (i == stop && stop < n - 1) continue;
        size_t used = put_prefix(r, text + i, n - i);
        if (!used) return r->call->err->status;
        i += used;
    }
    *exact = r->drained + (double)norm->n <= r->m->exact_len;
    if (r->cut && !*exact) return GGTOK_OK;
    return drain(r, true) ? GGTOK_OK : error_memory(r->call->err);
}

static ggtok_status ugm_encode(const model_call *call, const uint8_t *text, size_t n) {
    const ugm_model *m = call->model;
    ggtok_error unwanted;
    model_call own = *call;
    if (!own.err) own.err = &unwanted; /* run() needs the status that is in it */
    size_t before = call->out->n;
    ugm_run r = {.call = &own, .m = m, .s = call->scratch, .cut = m->exact_len > 0};
    bool exact, cut = r.cut;
    ggtok_status status = run(&r, text, n, &exact);
    if (!status && cut && !exact) {
        /* Too long for sums to be exact (35 MB, for a usual vocabulary): once more, whole. */
        call->out->n = before;
        r = (ugm_run){.call = &own, .m = m, .s = call->scratch};
        status = run(&r, text, n, &exact);
    }
    return status;
}

const model_ops model_ugm = {
    .build = ugm_build,
    .free = ugm_free,
    .scratch_new = ugm_scratch_new,
    .scratch_free = ugm_scratch_free,
    .encode = ugm_encode,
};
