/*
 * UGM: the text is normalized, then cut into the tokens with the greatest sum of
 * scores (unigram language model, Viterbi).
 *
 *   text -> normalize (user-defined tokens, charsmap, white space) -> pieces
 *        -> best path of each piece, remembered -> ids, runs of unknowns fused
 *
 * Cutting into pieces is exact when sums of scores are (see DESIGN.md); a
 * vocabulary or a text for which that can't be shown is one piece.
 */
#include "bits.h"
#include "model.h"
#include "pairset.h"
#include "piece_cache.h"
#include "trie_long.h"
#include "ugm_charsmap.h"
#include "vocab_keys.h"

#include <float.h>

typedef struct ugm_model {
    trie tokens;
    trie_long longs; /* of them */
    trie user;       /* user-defined tokens, no tails: see user_prefix */
    charsmap map;
    pair_set pairs;
    double unknown;   /* score of an unknown character */
    double exact_len; /* texts up to this many bytes have exact sums; 0: none */
    bool plain[256];  /* an ASCII byte that stays itself if another follows */
    bool all_plain;   /* all from 20 to 7E are */
    bool space_first; /* no token holds a U+2581 behind its first character */
} ugm_model;

typedef struct best { /* the best way to a place in the piece */
    double score;
    int32_t id;   /* its last token */
    uint32_t len; /* of that, in bytes; 0: no way leads there */
} best;

typedef struct ugm_scratch {
    bytebuf norm;
    best *best;
    size_t best_cap;
    idbuf ids;  /* of one piece, last to first */
    idbuf hits; /* of trie_long_find */
    piece_cache cache;
    uint8_t *kind; /* of each character below U+10000, once met: see plain_char */
    bool any_user; /* some token is user-defined, now that types are final */
} ugm_scratch;

/*
 * Pieces wait in a batch before they are looked up, so that their cache lines are
 * fetched side by side: a line takes longer to come than a piece to find.
 */
enum { BATCH = 24 };

typedef struct batch {
    struct waiting {
        piece_key key;
        uint64_t hash;
        const uint8_t *text; /* without its U+2581 if `bare` */
        bool bare;
        size_t n;
    } piece[BATCH];
    size_t n;
} batch;

/* One encode call. */
typedef struct ugm_run {
    const model_call *call;
    const ugm_model *m;
    ugm_scratch *s;
    bool cut;         /* pieces, not the whole text */
    bool in_word;     /* the last byte was no space */
    bool prefixed;    /* a space has been put before a word */
    bool was_unknown; /* the last id is the unknown one, which a run gives once */
    double drained;   /* normalized bytes tokenized so far */
    bool by_word;     /* see plain_words */
    batch waiting;
} ugm_run;

enum { BLOCK = 1 << 15 }; /* normalized bytes that are gathered before they are tokenized */

static void ugm_free(void *model) {
    ugm_model *m = model;
    if (!m) return;
    trie_free(&m->tokens);
    trie_long_free(&m->longs);
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
    return (exponent ? exponent : 1) - 150 + (int)bits_lowest(mantissa);
}

/* 2 to the power e, for -149 <= e <= 127. */
static double power_of_two(int e) {
    double r = 1;
    for (; e < 0; e++) r /= 2;
    for (; e > 0; e--) r *= 2;
    return r;
}

/* What all scores have in common; see exact_length. */
typedef struct score_range {
    int low_bit;
    float greatest; /* absolute value of any score */
    float per_char; /* the most that one character can add to, or take from, the best sum */
    bool finite;
} score_range;

static void widen(score_range *r, float score, bool one_char) {
    if (!(score >= -FLT_MAX && score <= FLT_MAX)) {
        r->finite = false;
        return;
    }
    if (score == 0) return;
    int low = lowest_bit(score);
    float size = score < 0 ? -score : score;
    if (low < r->low_bit) r->low_bit = low;
    if (size > r->greatest) r->greatest = size;
    if ((score > 0 || one_char) && size > r->per_char) r->per_char = size;
}

/*
 * How long a text may be for all sums of its tokens' scores to be exact.
 *
 * All scores are multiples of g = 2^low_bit. The best sum falls by at most
 * per_char with each character, for a token of that one character or the unknown
 * one is always there to be taken, and rises by no more. So every sum that is
 * formed over n bytes is a multiple of g of size <= n per_char + greatest, and a
 * double holds it exactly while that is <= 2^53 g.
 */
static double exact_length(const score_range *r) {
    if (!r->finite) return 0;
    if (r->greatest == 0) return DBL_MAX;
    double room = 0x1p53 * power_of_two(r->low_bit) - r->greatest;
    return room <= 0 ? 0 : r->per_char == 0 ? DBL_MAX : room / r->per_char;
}

/* Is there a U+2581 behind the first character? */
static bool holds_space(const uint8_t *p, size_t n) {
    for (size_t i = 1; i + 3 <= n; i++) {
        if (p[i] == 0xE2 && p[i + 1] == 0x96 && p[i + 2] == 0x81) return true;
    }
    return false;
}

static bool build_tries(const vocab *v, ugm_model *m) {
    enum { MATCHED = GGTOK_ATTR_NORMAL | GGTOK_ATTR_USER_DEFINED | GGTOK_ATTR_UNUSED };
    uint32_t *ids = mem_alloc(mem_mul(v->n_tokens, sizeof *ids));
    if (!ids || !pair_set_init(&m->pairs, v->n_tokens ? v->text_off[v->n_tokens] : 0)) {
        mem_free(ids);
        return false;
    }
    score_range range = {INT32_MAX, 0, 0, true};
    float lowest = FLT_MAX; /* what llama.cpp has where no token is NORMAL */
    bool whole = true;
    m->space_first = true;
    size_t n = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (!(v->attr[id] & MATCHED)) continue;
        gguf_view text = vocab_text(v, id);
        ids[n++] = id;
        whole &= pair_set_add(&m->pairs, text.p, text.n);
        if (m->space_first) m->space_first = !holds_space(text.p, text.n);
        widen(&range, v->score[id], text.n && text.n == utf8_lead_len(text.p[0]));
        if ((v->attr[id] & GGTOK_ATTR_NORMAL) && v->score[id] < lowest) lowest = v->score[id];
    }
    float unknown = lowest - 10.0f; /* in single precision, as there */
    widen(&range, unknown, true);
    m->unknown = unknown;
    m->exact_len = whole ? exact_length(&range) : 0;
    bool ok = trie_build(&m->tokens, v->text, v->text_off, ids, n, true) &&
              trie_long_build(&m->longs, v->text, v->text_off, ids, n);
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
        m->plain[c] = !PLAIN && !trie_child(&m->user, 0, (uint8_t)c) &&
                      charsmap_keeps_ascii(&m->map, (uint8_t)c);
    }
    m->all_plain = true;
    for (unsigned c = 0x20; c < 0x7F; c++) m->all_plain &= m->plain[c];
    *model = m;
    return GGTOK_OK;
}

static void ugm_scratch_free(void *scratch) {
    ugm_scratch *s = scratch;
    if (!s) return;
    mem_free(s->norm.data);
    mem_free(s->best);
    mem_free(s->kind);
    mem_free(s->ids.data);
    mem_free(s->hits.data);
    piece_cache_free(&s->cache);
    mem_free(s);
}

static size_t ugm_cache_bytes(const void *scratch) {
    const ugm_scratch *s = scratch;
    return piece_cache_bytes(&s->cache);
}

static void *ugm_scratch_new(const vocab *v, const void *model) {
    (void)model;
    ugm_scratch *s = mem_zalloc(sizeof *s);
    for (uint32_t id = 0; s && id < v->n_tokens; id++) {
        s->any_user |= (v->attr[id] & GGTOK_ATTR_USER_DEFINED) != 0;
    }
    return s;
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

/* A way to the place `to`, over a token of `len` bytes. */
static inline void offer(best *to, double sum, int32_t id, size_t len) {
    if (sum > to->score) *to = (best){sum, id, (uint32_t)len};
}

static inline double sum_with(const ugm_run *r, double here, int32_t id) {
    const vocab *v = r->call->v;
    bool user = r->s->any_user && (v->attr[id] & GGTOK_ATTR_USER_DEFINED);
    return here + (user ? 0.0 : v->score[id]);
}

/* Offers all tokens that lead text[i..n); is one of them the character of `len` bytes? */
static inline bool offer_tokens(const ugm_run *r, const int32_t *hits, const uint8_t *text,
                                size_t i, size_t n, size_t len) {
    const trie *t = &r->m->tokens;
    best *at = r->s->best;
    double here = at[i].score;
    bool known = false;
    if (hits) {
        size_t long_len;
        for (uint32_t hit = (uint32_t)hits[i]; hit; hit = trie_long_shorter(&r->m->longs, hit)) {
            int32_t id = trie_long_id(&r->m->longs, hit, &long_len);
            offer(&at[i + long_len], sum_with(r, here, id), id, long_len);
        }
        if (n - i > TRIE_WALK) n = i + TRIE_WALK;
    }
    uint32_t s = 0;
    for (size_t k = i; k < n;) {
        s = trie_child(t, s, text[k++]);
        if (!s) break;
        uint32_t link = t->unit[s].link;
        if (!(link & (TRIE_VALUE | TRIE_TAIL))) continue;
        if (link & TRIE_TAIL) {
            size_t rest = trie_tail(t, s, k - i, text + k, n - k);
            if (rest == SIZE_MAX) break;
            k += rest;
        }
        known |= k - i == len;
        offer(&at[k], sum_with(r, here, t->value[s]), t->value[s], k - i);
        if (link & TRIE_TAIL) break;
    }
    return known;
}

/*
 * The ids of text[0..n) into s->ids, last to first, unknowns fused.
 *
 * Ties: of equal sums the one found first stays, that is the one whose last
 * token begins first (and a token before the unknown character of same extent).
 */
static bool find_path(const ugm_run *r, const uint8_t *text, size_t n) {
    const trie_long *longs = &r->m->longs;
    int32_t unk = r->call->v->special[GGTOK_UNK];
    const int32_t *hits = NULL;
    if (!reserve_best(r->s, n + 1)) return false;
    if (trie_long_for(longs, n)) {
        if (!trie_long_find(longs, text, n, &r->s->hits)) return false;
        hits = r->s->hits.data;
    }
    best *at = r->s->best;
    for (size_t i = 0; i <= n; i++) at[i] = (best){-DBL_MAX, unk, 0};
    at[0].score = 0;

    for (size_t i = 0, len; i < n; i += len) {
        len = utf8_lead_len(text[i]);
        if (len > n - i) len = n - i;
        if (!offer_tokens(r, hits, text, i, n, len)) {
            offer(&at[i + len], at[i].score + r->m->unknown, unk, len);
        }
    }

    idbuf *ids = &r->s->ids;
    bool was_unknown = false;
    ids->n = 0;
    for (size_t i = n;; i -= at[i].len) {
        bool unknown = at[i].id == unk;
        if (!(was_unknown && unknown) && !idbuf_push(ids, at[i].id)) return false;
        if (at[i].len == i || !at[i].len) return true; /* 0: no sum led there, all being NaN */
        was_unknown = unknown;
    }
}

/* Appends ids of a piece, without a first unknown if the last id is one. */
static bool push_ids(ugm_run *r, const int32_t *ids, size_t n) {
    idbuf *out = r->call->out;
    int32_t unk = r->call->v->special[GGTOK_UNK];
    size_t skip = r->was_unknown && ids[0] == unk;
    if (!idbuf_reserve(out, n)) return false;
    memcpy(out->data + out->n, ids + skip, (n - skip) * sizeof *ids);
    out->n += n - skip;
    r->was_unknown = ids[n - 1] == unk;
    return true;
}

/* The path of a piece that the cache doesn't know, first id first. */
static bool push_path(ugm_run *r, const uint8_t *text, size_t n, const piece_key *key,
                      uint64_t hash) {
    idbuf *ids = &r->s->ids;
    if (!find_path(r, text, n)) return false;
    for (size_t i = 0, k = ids->n; i < k / 2; i++) {
        int32_t swap = ids->data[i];
        ids->data[i] = ids->data[k - 1 - i];
        ids->data[k - 1 - i] = swap;
    }
    if (key) piece_add(&r->s->cache, key, hash, ids->data, ids->n);
    return push_ids(r, ids->data, ids->n);
}

static bool look_up(ugm_run *r) {
    batch *b = &r->waiting;
    idbuf *out = r->call->out;
    int32_t unk = r->call->v->special[GGTOK_UNK];
    for (size_t i = 0; i < b->n; i++) {
        const struct waiting *w = &b->piece[i];
        const piece_slot *slot =
            w->n <= PIECE_MAX ? piece_find(&r->s->cache, &w->key, w->hash) : NULL;
        r->call->counts->hits += slot != NULL;
        r->call->counts->misses += slot == NULL;
        if (!slot) {
            uint8_t word[3 + PIECE_MAX + 1] = {0xE2, 0x96, 0x81};
            if (w->bare) memcpy(word + 3, w->text, PIECE_MAX); /* WORD_ROOM is behind it */
            if (!push_path(r, w->bare ? word : w->text, w->n, w->n <= PIECE_MAX ? &w->key : NULL,
                           w->hash)) {
                return false;
            }
        } else if (slot->id[0] == unk) {
            if (!push_ids(r, slot->id, slot->n)) return false;
        } else {
            if (!idbuf_reserve(out, PIECE_IDS)) return false;
            memcpy(out->data + out->n, slot->id, sizeof slot->id); /* a fixed size is faster */
            out->n += slot->n;
            r->was_unknown = slot->id[slot->n - 1] == unk;
        }
    }
    b->n = 0;
    return true;
}

/* 32 bytes at `text` must be readable. */
static inline bool push_piece(ugm_run *r, const uint8_t *text, size_t n) {
    struct waiting *w = &r->waiting.piece[r->waiting.n++];
    w->text = text;
    w->bare = false;
    w->n = n;
    if (n <= PIECE_MAX) {
        w->key = piece_key_of(text, n);
        w->hash = piece_hash(&w->key);
        piece_prefetch(&r->s->cache, w->hash);
    }
    return r->waiting.n < BATCH || look_up(r);
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
            if (next < 0x80)
                len = 1;
            else
                next = char_at(p + i, n - i, &len);
            if (!pair_in(&r->m->pairs, c, next)) {
                if (!push_piece(r, p + start, i - start)) return false;
                start = i;
            }
            c = next;
        }
    }
    if (!look_up(r)) return false;
    if (all && start < n) {
        if (!(r->cut ? push_piece(r, p + start, n - start) && look_up(r)
                     : push_path(r, p + start, n - start, NULL, 0))) {
            return false;
        }
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
        if (!utf8_continues(p[i])) return 0;
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
        error_set_at(r->call->err, GGTOK_ERR_VOCAB, KEY_CHARSMAP, strlen(KEY_CHARSMAP),
                     GGTOK_NO_OFFSET, "key '%s': %s", KEY_CHARSMAP, fault);
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

#define EACH(x) ((uint64_t)(x) * 0x0101010101010101u)

/* How many of the 8 bytes at p, from the first on, are graphic ASCII characters. */
static inline size_t graphic_run(const uint8_t *p, uint64_t *bytes) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t x, y;
    memcpy(&x, p, 8);
    *bytes = x;
    /* Sums that carry into a byte's top bit: at least 21, and not 7F. */
    y = x & EACH(0x7F);
    uint64_t stop = ~((y + EACH(0x80 - 0x21)) & ~(y + EACH(1)) & ~x) & EACH(0x80);
    return stop ? bits_lowest(stop) / 8 : 8;
#else
    (void)p, (void)bytes;
    return 0;
#endif
}

/*
 * A short way for most of a Latin text: words of graphic ASCII between spaces that
 * are merged. Such a word comes out of normalizing as it is with a U+2581 before
 * it, and where no token crosses a U+2581 there is a cut on either side. So its
 * key is made from the text itself. Takes as many words as come one behind the
 * other from text[*i]; WORD_ROOM bytes behind that are readable up to `stop`.
 */
enum { WORD_ROOM = 40 };

static inline bool plain_words(ugm_run *r, const uint8_t *text, size_t *at, size_t stop) {
    size_t i = *at;
    while (i < stop) {
        uint64_t x[4] = {0};
        size_t n = 0, k = 0;
        do {
            size_t m = graphic_run(text + i + n, &x[k]);
            n += m;
            if (m == 8) continue;
            x[k] &= ((uint64_t)1 << (8 * m)) - 1;
            break;
        } while (++k < 4);
        if (!n || n > PIECE_MAX - 3 || text[i + n] != ' ') break;
        struct waiting *w = &r->waiting.piece[r->waiting.n++];
        w->key.w[0] = x[0] << 24 | 0x8196E2;
        w->key.w[1] = x[1] << 24 | x[0] >> 40;
        w->key.w[2] = x[2] << 24 | x[1] >> 40;
        w->key.w[3] = x[3] << 24 | x[2] >> 40 | (uint64_t)(n + 3) << 56;
        w->hash = piece_hash(&w->key);
        piece_prefetch(&r->s->cache, w->hash);
        w->text = text + i;
        w->bare = true;
        w->n = n + 3;
        r->drained += (double)(n + 3);
        r->prefixed = true;
        i += n;
        *at = i;
        if (r->waiting.n == BATCH && !look_up(r)) return false;
        /* The space behind is the charsmap's if it could combine with what follows. */
        if (text[i + 1] >= 0x80) {
            r->in_word = true;
            break;
        }
        *at = ++i;
    }
    return true;
}

/* What becomes of a character of two or three bytes; nothing is known at first. */
enum { KIND_UNKNOWN, KIND_PLAIN, KIND_OTHER, N_KINDS = 0x10000 };

static uint8_t find_kind(const ugm_model *m, const uint8_t *p, size_t len) {
    bool plain = !PLAIN && !trie_child(&m->user, 0, p[0]) && charsmap_keeps(&m->map, p, len);
    return plain ? KIND_PLAIN : KIND_OTHER;
}

/*
 * Length of the character at p if it is of two or three bytes and stays itself;
 * else 0, which decides nothing. Charsmaps compose letters with combining marks,
 * whose UTF-8 begins with CC or CD: what stands before one is not for this way.
 * Four bytes must be readable.
 */
static inline size_t plain_char(ugm_run *r, const uint8_t *p) {
    size_t len;
    uint32_t cpt;
    if (p[0] >= 0xC2 && p[0] < 0xE0 && utf8_continues(p[1])) {
        cpt = (p[0] & 0x1Fu) << 6 | (p[1] & 0x3F);
        len = 2;
    } else if ((p[0] & 0xF0) == 0xE0 && utf8_continues(p[1]) && utf8_continues(p[2])) {
        cpt = (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3F);
        len = 3;
        if (cpt < 0x800) return 0;
    } else {
        return 0;
    }
    if ((p[len] & 0xFE) == 0xCC) return 0;
    uint8_t *kind = &r->s->kind[cpt];
    if (*kind == KIND_UNKNOWN) *kind = find_kind(r->m, p, len);
    return *kind == KIND_PLAIN ? len : 0;
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
        if (r->by_word && !r->in_word && n - i > WORD_ROOM && text[i] > ' ' && text[i] < 0x7F) {
            /* What has been gathered is whole words, and a U+2581 comes next: a cut. */
            size_t before = i;
            if (norm->n && !drain(r, true)) return error_memory(r->call->err);
            if (!plain_words(r, text, &i, n - WORD_ROOM)) return error_memory(r->call->err);
            if (r->drained > r->m->exact_len) break;
            if (i > before) continue;
        }
        if (!bytebuf_reserve(norm, 1024 + 16)) return error_memory(r->call->err);
        /* Plain bytes, as many as the room just made holds at four for one. */
        size_t stop = n - 1 - i > 250 ? i + 250 : n - 1;
        while (i < stop) {
            size_t len;
            if (text[i + 1] < 0x80 && r->m->plain[text[i]]) {
                put(r, norm, text[i++]);
                if (r->m->all_plain && r->in_word && stop - i >= 8) {
                    /* Up to eight more in one go; `stop` counted four for one. */
                    uint64_t bytes;
                    size_t run = graphic_run(text + i, &bytes);
                    if (run && text[i + run] >= 0x80) run--;
                    memcpy(norm->data + norm->n, text + i, 8);
                    norm->n += run;
                    i += run;
                }
            } else if (stop - i > 3 && (len = plain_char(r, text + i)) != 0) {
                put(r, norm, text[i]);
                memcpy(norm->data + norm->n, text + i + 1, 2);
                norm->n += len - 1;
                i += len;
            } else {
                break;
            }
        }
        if (i == stop && stop < n - 1) continue;
        size_t used = put_prefix(r, text + i, n - i);
        if (!used) return r->call->err->status;
        i += used;
    }
    *exact = r->drained + (double)norm->n <= r->m->exact_len;
    if (r->cut && !*exact) return GGTOK_OK;
    return drain(r, true) ? GGTOK_OK : error_memory(r->call->err);
}

/* The batch's pieces, a few kilobytes, are left as they are. */
static void begin(ugm_run *r, const model_call *call, bool cut) {
    r->call = call;
    r->m = call->model;
    r->s = call->scratch;
    r->cut = cut;
    r->in_word = r->prefixed = r->was_unknown = r->by_word = false;
    r->drained = 0;
    r->waiting.n = 0;
}

static ggtok_status ugm_encode(const model_call *call, const uint8_t *text, size_t n) {
    const ugm_model *m = call->model;
    ggtok_error unwanted;
    model_call own = *call;
    if (!own.err) own.err = &unwanted; /* run() needs the status that is in it */
    size_t before = call->out->n;
    const bool *flag = call->v->flag;
    ugm_scratch *s = call->scratch;
    if (!s->kind && !(s->kind = mem_zalloc(N_KINDS))) return error_memory(call->err);
    ugm_run r;
    begin(&r, &own, m->exact_len > 0);
    r.by_word = r.cut && m->all_plain && m->space_first &&
                flag[GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES] && flag[GGTOK_FLAG_ESCAPE_WHITESPACES];
    bool exact, cut = r.cut;
    ggtok_status status = run(&r, text, n, &exact);
    if (!status && cut && !exact) {
        /* Too long for sums to be exact (70 MB, for a usual vocabulary): once more, whole. */
        call->out->n = before;
        begin(&r, &own, false);
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
    .cache_bytes = ugm_cache_bytes,
};
