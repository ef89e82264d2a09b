/*
 * UGM: the text is normalized, then cut into the tokens with the greatest sum of
 * scores (unigram language model, Viterbi).
 *
 *   text -> spans between spaces, remembered
 *        -> normalize (user-defined tokens, charsmap, white space) -> pieces
 *        -> best path of each piece, remembered -> ids, runs of unknowns fused
 *
 * Cutting into spans and pieces is exact when sums of scores are (see DESIGN.md); a
 * vocabulary or a text for which that can't be shown is one piece.
 */
#include "bits.h"
#include "model.h"
#include "pairset.h"
#include "trie_long.h"
#include "ugm_charsmap.h"
#include "ugm_spans.h"
#include "vocab_keys.h"
#include "words.h"

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
    bool words;       /* a text may be cut at spaces: see words_apart */
    bool newlines;    /* and at tabs and ends of lines, too */
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
    idbuf ids;        /* of one piece, last to first */
    idbuf hits;       /* of trie_long_find */
    wordcache spans;  /* as they stand in the text */
    wordcache pieces; /* normalized */
    ugm_spans found;
    bytebuf padded; /* a short text */
    double excess;  /* by which spans were longer, normalized, than SPAN_MORE allows */
    uint8_t *kind;  /* of each character below U+10000, once met: see plain_char */
    bool by_span;   /* see words_apart */
    bool any_user;  /* some token is user-defined, now that types are final */
} ugm_scratch;

/* One text, or one span of it. */
typedef struct ugm_run {
    const model_call *call;
    const ugm_model *m;
    ugm_scratch *s;
    bool cut;       /* pieces, not the whole text */
    bool in_word;   /* the last byte was no space */
    bool prefixed;  /* a space has been put before a word */
    double drained; /* normalized bytes tokenized so far */
} ugm_run;

enum { BLOCK = 1 << 15 }; /* normalized bytes that are gathered before they are tokenized */
enum { SPAN_MORE = 3 };   /* bytes by which a span that is kept may grow: its U+2581 */

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
    float lowest = FLT_MAX;                /* what llama.cpp has where no token is NORMAL */
    bool whole = true, space_first = true; /* no token holds a U+2581 behind its first character */
    size_t n = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (!(v->attr[id] & MATCHED)) continue;
        gguf_view text = vocab_text(v, id);
        ids[n++] = id;
        whole &= pair_set_add(&m->pairs, text.p, text.n);
        if (space_first) space_first = !holds_space(text.p, text.n);
        widen(&range, v->score[id], text.n && text.n == utf8_lead_len(text.p[0]));
        if ((v->attr[id] & GGTOK_ATTR_NORMAL) && v->score[id] < lowest) lowest = v->score[id];
    }
    float unknown = lowest - 10.0f; /* in single precision, as there */
    widen(&range, unknown, true);
    m->unknown = unknown;
    m->exact_len = whole ? exact_length(&range) : 0;
    m->words = m->exact_len > 0 && space_first;
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

/* Is this byte one space, whatever stands around it, to normalizing? */
static bool parts_words(const vocab *v, const ugm_model *m, uint8_t c) {
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (!(v->attr[id] & GGTOK_ATTR_USER_DEFINED)) continue; /* most of 250,000 */
        gguf_view text = vocab_text(v, id);
        if (text.n && memchr(text.p, c, text.n)) return false;
    }
    return charsmap_is_space(&m->map, c);
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
    m->words = m->words && parts_words(v, m, ' ');
    m->newlines = parts_words(v, m, '\t') && parts_words(v, m, '\n') && parts_words(v, m, '\r');
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
    mem_free(s->padded.data);
    wordcache_free(&s->spans);
    wordcache_free(&s->pieces);
    mem_free(s);
}

static size_t ugm_cache_bytes(const void *scratch) {
    const ugm_scratch *s = scratch;
    return wordcache_bytes(&s->spans) + wordcache_bytes(&s->pieces);
}

/*
 * May the text be cut into spans? Each is normalized to words that begin with U+2581, and
 * no token holds that behind its first character: so there is a cut in front of each. And
 * no span begins with the unknown id, so that runs of it end with their span: U+2581 is a
 * token, and what else begins like it isn't the unknown one.
 */
static bool words_apart(const vocab *v, const ugm_model *m) {
    static const uint8_t mark[3] = {0xE2, 0x96, 0x81};
    int32_t id, unk = v->special[GGTOK_UNK];
    if (!m->words || !v->flag[GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES] ||
        !v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES] ||
        trie_longest(&m->tokens, mark, sizeof mark, &id) != sizeof mark) {
        return false;
    }
    if (unk < 0) return true;
    gguf_view text = vocab_text(v, (uint32_t)unk);
    return !text.n || text.p[0] != mark[0];
}

static void *ugm_scratch_new(const vocab *v, const void *model) {
    ugm_scratch *s = mem_zalloc(sizeof *s);
    if (!s) return NULL;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        s->any_user |= (v->attr[id] & GGTOK_ATTR_USER_DEFINED) != 0;
    }
    s->by_span = words_apart(v, model);
    if (!wordcache_init(&s->spans) || !wordcache_init(&s->pieces)) {
        ugm_scratch_free(s);
        return NULL;
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

/* Appends the path of a piece. */
static ggtok_status push_path(const ugm_run *r, const uint8_t *text, size_t n) {
    idbuf *out = r->call->out, *ids = &r->s->ids;
    if (!find_path(r, text, n) || !idbuf_reserve(out, ids->n)) return error_memory(r->call->err);
    for (size_t i = ids->n; i-- > 0;) out->data[out->n++] = ids->data[i];
    return GGTOK_OK;
}

/* A piece that the cache doesn't know. */
static ggtok_status encode_piece(const model_call *call, const uint8_t *text, size_t n,
                                 size_t room) {
    const ugm_run r = {.call = call, .m = call->model, .s = call->scratch};
    idbuf *out = call->out;
    size_t before = out->n;
    ggtok_status status = push_path(&r, text, n);
    if (!status) wordcache_put(&r.s->pieces, text, n, room, out->data + before, out->n - before);
    return status;
}

/* Of neighbours among the ids from `first` on that are the unknown one, one stays. */
static void fuse_unknown(const model_call *call, size_t first) {
    idbuf *out = call->out;
    int32_t unk = call->v->special[GGTOK_UNK];
    size_t n = first;
    bool was_unknown = false;
    for (size_t i = first; i < out->n; i++) {
        bool unknown = out->data[i] == unk;
        out->data[n] = out->data[i];
        n += !(was_unknown & unknown);
        was_unknown = unknown;
    }
    out->n = n;
}

/* Appends the ids of pieces of s->norm, the first from *start on, and moves that. */
static ggtok_status push_pieces(ugm_run *r, size_t room, size_t *start, const size_t *ends,
                                size_t *count) {
    size_t from = *start, n = *count;
    if (!n) return GGTOK_OK;
    *start = ends[n - 1];
    *count = 0;
    return words_encode(r->call, &r->s->pieces, encode_piece, r->s->norm.data, room, from, ends, n);
}

/*
 * Tokenizes the pieces of s->norm that are complete, all of it if `all`, and
 * moves the rest to the front. A cut lies between two characters that no token
 * holds side by side.
 */
static ggtok_status drain(ugm_run *r, bool all) {
    enum { ENDS = 256, ROOM = PIECE_MAX + 1 };
    bytebuf *norm = &r->s->norm;
    size_t ends[ENDS], count = 0, start = 0, n = norm->n, i = 0, len;
    ggtok_status status = GGTOK_OK;
    if (!bytebuf_reserve(norm, ROOM)) return error_memory(r->call->err);
    const uint8_t *p = norm->data;
    if (r->cut && n) {
        uint32_t c = char_at(p, n, &len);
        for (i = len; !status && i < n; i += len) {
            /* The last characters may not all be there yet. */
            if (!all && n - i < 4) break;
            uint32_t next = p[i];
            if (next < 0x80)
                len = 1;
            else
                next = char_at(p + i, n - i, &len);
            ends[count] = i;
            count += !pair_in(&r->m->pairs, c, next);
            c = next;
            if (count == ENDS) {
                status = push_pieces(r, n + ROOM, &start, ends, &count);
            }
        }
    }
    if (!status) status = push_pieces(r, n + ROOM, &start, ends, &count);
    if (!status && all && start < n) {
        if (!r->cut) {
            status = push_path(r, p, n);
        } else {
            ends[count++] = n;
            status = push_pieces(r, n + ROOM, &start, ends, &count);
        }
        start = n;
    }
    r->drained += (double)start;
    norm->n = n - start;
    memmove(norm->data, p + start, norm->n);
    return status;
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
static inline size_t graphic_run(const uint8_t *p) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t x, y;
    memcpy(&x, p, 8);
    /* Sums that carry into a byte's top bit: at least 21, and not 7F. */
    y = x & EACH(0x7F);
    uint64_t stop = ~((y + EACH(0x80 - 0x21)) & ~(y + EACH(1)) & ~x) & EACH(0x80);
    return stop ? bits_lowest(stop) / 8 : 8;
#else
    (void)p;
    return 0;
#endif
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
            ggtok_status status = drain(r, false);
            if (status) return status;
            /* What is left is scanned again: twice as much next time keeps that linear. */
            drain_at = 2 * norm->n + BLOCK;
            if (r->drained + (double)norm->n > r->m->exact_len) break;
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
                    size_t run = graphic_run(text + i);
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
    return drain(r, true);
}

/* A span that the cache doesn't know. */
static ggtok_status encode_span(const model_call *call, const uint8_t *span, size_t n,
                                size_t room) {
    ugm_scratch *s = call->scratch;
    idbuf *out = call->out;
    size_t before = out->n;
    ugm_run r = {call, call->model, s, .cut = true};
    bool exact;
    ggtok_status status = run(&r, span, n, &exact);
    if (status) return status;
    fuse_unknown(call, before);
    double more = exact ? r.drained - (double)(n + SPAN_MORE) : DBL_MAX;
    if (more > 0) {
        s->excess += more; /* each time it comes: it isn't kept */
    } else {
        wordcache_put(&s->spans, span, n, room, out->data + before, out->n - before);
    }
    return GGTOK_OK;
}

/* The ids of all spans of the text; *exact becomes false if it turned out, or may be, longer
 * than cutting allows. */
static ggtok_status encode_spans(const model_call *call, const uint8_t *text, size_t n,
                                 bool *exact) {
    const ugm_model *m = call->model;
    ugm_scratch *s = call->scratch;
    ugm_spans *f = &s->found;
    ggtok_status status = GGTOK_OK;
    double spans = 0;
    size_t room;
    s->excess = 0;
    *exact = true;
    if (!(text = words_pad(&s->padded, text, n, &room))) return error_memory(call->err);
    for (ugm_spans_begin(f, m->newlines); !status && *exact && ugm_spans_next(f, text, n);) {
        status = spans_encode(call, &s->spans, encode_span, text, room, f->start, f->end, f->n);
        spans += (double)f->n;
        *exact = (double)f->at + SPAN_MORE * spans + s->excess <= m->exact_len;
    }
    return status;
}

/* The text as a whole, or cut into pieces behind normalizing. */
static ggtok_status encode_text(const model_call *call, const uint8_t *text, size_t n, bool cut,
                                bool *exact) {
    ugm_run r = {call, call->model, call->scratch, .cut = cut};
    size_t before = call->out->n;
    ggtok_status status = run(&r, text, n, exact);
    fuse_unknown(call, before);
    return status;
}

static ggtok_status ugm_encode(const model_call *call, const uint8_t *text, size_t n) {
    const ugm_model *m = call->model;
    ggtok_error unwanted;
    model_call own = *call;
    if (!own.err) own.err = &unwanted; /* run() needs the status that is in it */
    size_t before = call->out->n;
    ugm_scratch *s = call->scratch;
    if (!s->kind && !(s->kind = mem_zalloc(N_KINDS))) return error_memory(call->err);
    bool exact, cut = m->exact_len > 0;
    ggtok_status status =
        s->by_span ? encode_spans(&own, text, n, &exact) : encode_text(&own, text, n, cut, &exact);
    if (!status && cut && !exact) {
        /* Too long for sums to be exact (70 MB, for a usual vocabulary): once more, whole. */
        call->out->n = before;
        status = encode_text(&own, text, n, false, &exact);
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
