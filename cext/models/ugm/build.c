/* Builds a UGM model: tries, pairs of characters, and the text length up to which sums of scores
 * are exact. */
#include "base/bits.h"
#include "models/ugm/ugm.h"
#include "unicode/space_mark.h"
#include "unicode/utf8_valid.h"
#include "vocab/keys.h"

#include <float.h>

void ggtok_ugm_free(void *model) {
    ugm_model *m = model;
    if (!m) return;
    ggtok_trie_free(&m->tokens);
    ggtok_trie_long_free(&m->longs);
    ggtok_trie_free(&m->user);
    ggtok_charsmap_free(&m->map);
    ggtok_adjacency_free(&m->pairs);
    ggtok_mem_free(m);
}

ggtok_status ggtok_ugm_charsmap_fault(const char *fault, ggtok_error *err) {
    return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, KEY_CHARSMAP, strlen(KEY_CHARSMAP),
                              GGTOK_NO_OFFSET, "key '%s': %s", KEY_CHARSMAP, fault);
}

/* Returns the exponent of the lowest set bit of a finite score other than 0: the score is a
 * multiple of 2 to that power. */
static int lowest_bit(float score) {
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    int exponent = (int)(bits >> 23 & 255);
    uint32_t mantissa = (bits & 0x7FFFFF) | (exponent ? 0x800000 : 0);
    return (exponent ? exponent : 1) - 150 + (int)bits_lowest(mantissa);
}

/* Returns 2 to the power e, for -149 <= e <= 127. */
static double power_of_two(int e) {
    double r = 1;
    for (; e < 0; e++) r /= 2;
    for (; e > 0; e--) r *= 2;
    return r;
}

/* Bounds on all scores; see exact_length. */
typedef struct score_range {
    int low_bit;
    float greatest; /* greatest absolute value of a score */
    float per_char; /* the most by which one character can raise or lower the best sum */
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
 * Returns the length, in bytes, up to which all sums of a text's scores are exact.
 *
 * All scores are multiples of g = 2^low_bit. The best sum falls by at most per_char with each
 * character, since a token of that character or the unknown token is always possible, and rises by
 * no more. So every sum over n bytes is a multiple of g whose absolute value is at most n per_char
 * + greatest; a double represents it exactly if that is at most 2^53 g.
 */
static double exact_length(const score_range *r) {
    if (!r->finite) return 0;
    if (r->greatest == 0) return DBL_MAX;
    double room = 0x1p53 * power_of_two(r->low_bit) - r->greatest;
    return room <= 0 ? 0 : r->per_char == 0 ? DBL_MAX : room / r->per_char;
}

/* Whether U+2581 occurs after the first character. */
static bool holds_space(const uint8_t *p, size_t n) {
    for (size_t i = 1; i + 3 <= n; i++) {
        if (!memcmp(p + i, SPACE_MARK, SPACE_MARK_BYTES)) return true;
    }
    return false;
}

static bool build_tries(const vocab *v, ugm_model *m) {
    enum { MATCHED = GGTOK_ATTR_NORMAL | GGTOK_ATTR_USER_DEFINED | GGTOK_ATTR_UNUSED };
    uint32_t *ids = ggtok_mem_alloc(mem_mul(v->n_tokens, sizeof *ids));
    if (!ids || !ggtok_adjacency_init(&m->pairs, v->n_tokens ? v->text_off[v->n_tokens] : 0)) {
        ggtok_mem_free(ids);
        return false;
    }
    score_range range = {INT32_MAX, 0, 0, true};
    float lowest = FLT_MAX;                /* llama.cpp's value if no token is NORMAL */
    bool whole = true, space_first = true; /* space_first: U+2581 only begins tokens */
    size_t n = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (!(v->attr[id] & MATCHED)) continue;
        gguf_view text = vocab_text(v, id);
        ids[n++] = id;
        whole &= ggtok_adjacency_add(&m->pairs, text.p, text.n);
        if (space_first) space_first = !holds_space(text.p, text.n);
        widen(&range, v->score[id], text.n && text.n == utf8_lead_len(text.p[0]));
        if ((v->attr[id] & GGTOK_ATTR_NORMAL) && v->score[id] < lowest) lowest = v->score[id];
    }
    float unknown = lowest - 10.0f; /* in single precision, as in llama.cpp */
    widen(&range, unknown, true);
    m->unknown = unknown;
    m->exact_len = whole ? exact_length(&range) : 0;
    m->words = m->exact_len > 0 && space_first;
    bool ok = ggtok_trie_build(&m->tokens, v->text, v->text_off, ids, n, true) &&
              ggtok_trie_long_build(&m->longs, v->text, v->text_off, ids, n);
    n = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (v->attr[id] & GGTOK_ATTR_USER_DEFINED) ids[n++] = id;
    }
    ok = ok && ggtok_trie_build(&m->user, v->text, v->text_off, ids, n, false);
    ggtok_mem_free(ids);
    return ok;
}

/* Whether normalization treats this byte as one space in any context. */
static bool separates_words(const vocab *v, const ugm_model *m, uint8_t c) {
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (!(v->attr[id] & GGTOK_ATTR_USER_DEFINED)) continue; /* most tokens end here */
        gguf_view text = vocab_text(v, id);
        if (text.n && memchr(text.p, c, text.n)) return false;
    }
    return ggtok_charsmap_is_space(&m->map, c);
}

/* Loading encodes a newline, so this reports an error in its normalization before the tries are
 * built. */
static ggtok_status check_newline(const vocab *v, const ugm_model *m, ggtok_error *err) {
    const char *fault = NULL;
    const uint8_t *with;
    size_t with_n;
    ggtok_charsmap_match(&m->map, (const uint8_t *)"\n", 1, &with, &with_n, &fault);
    for (uint32_t id = 0; fault && id < v->n_tokens; id++) {
        gguf_view text = vocab_text(v, id); /* user-defined tokens bypass the charsmap */
        if (v->attr[id] & GGTOK_ATTR_USER_DEFINED && text.n && *text.p == '\n') fault = NULL;
    }
    return fault ? ggtok_ugm_charsmap_fault(fault, err) : GGTOK_OK;
}

ggtok_status ggtok_ugm_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                             void **model, ggtok_error *err) {
    (void)options;
    ugm_model *m = ggtok_mem_zalloc(sizeof *m);
    if (!m) return ggtok_error_memory(err);
    ggtok_status status = ggtok_charsmap_load(&m->map, g, err);
    if (!status) status = check_newline(v, m, err);
    if (!status && !build_tries(v, m)) status = ggtok_error_memory(err);
    if (status) {
        ggtok_ugm_free(m);
        return status;
    }
    for (unsigned c = 0; c < 128; c++) {
        m->plain[c] = !PLAIN && !trie_child(&m->user, 0, (uint8_t)c) &&
                      ggtok_charsmap_keeps_ascii(&m->map, (uint8_t)c);
    }
    m->all_plain = true;
    for (unsigned c = 0x20; c < 0x7F; c++) m->all_plain &= m->plain[c];
    for (unsigned c = 0xC0; c < 0x100; c++) m->opens |= trie_child(&m->user, 0, (uint8_t)c) != 0;
    m->opens |= ggtok_utf8_valid_prefix(m->map.text, m->map.text_n) < m->map.text_n;
    m->words = m->words && separates_words(v, m, ' ');
    m->newlines =
        separates_words(v, m, '\t') && separates_words(v, m, '\n') && separates_words(v, m, '\r');
    *model = m;
    return GGTOK_OK;
}
