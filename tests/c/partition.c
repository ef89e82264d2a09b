/*
 * Compares ggtok_partition_text with a literal implementation of llama.cpp's rule, on random
 * special tokens and on texts that are made of these tokens. Prints the first difference; the exit
 * status is 1 if there is one.
 *
 *     partition [VOCABULARIES [SEED]]    VOCABULARIES: default 20000, each with about 20 texts
 *
 * Claim partition.1, Claim partition.2, Claim partition.3.
 */
#include "special/partition.h"
#include "index/stl_order.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_TOKENS = 64, MAX_TOKEN = 40, MAX_TEXT = 400, MAX_RANGES = 8, KMER_MARK = 3 };

/* ---- vocabularies ---- */

typedef struct test_vocab {
    vocab v;
    uint8_t arena[MAX_TOKENS * (MAX_TOKEN + KMER_MARK)];
    uint32_t off[MAX_TOKENS + 1], attr[MAX_TOKENS];
} test_vocab;

static const char *const alphabets[] = {"a",     "ab",  "a ",    "ab \n",    " ",
                                        " \t\n", "<a>", "<|a >", "abcdefgh "};

/* Builds a piece from an alphabet: random characters, a run, or a variant of an existing token. */
static size_t make_piece(const test_vocab *m, uint32_t n_tokens, const char *alphabet,
                         uint8_t *out) {
    size_t n = 1 + below(below(3) ? 4 : MAX_TOKEN / 2), letters = strlen(alphabet);
    uint8_t run = (uint8_t)alphabet[below(letters)];
    bool one = below(3) == 0;
    for (size_t i = 0; i < n; i++) out[i] = one ? run : (uint8_t)alphabet[below(letters)];
    if (n_tokens &&
        below(2)) { /* a token or part of one, with a few characters before or after it */
        gguf_view like = vocab_text(&m->v, (uint32_t)below(n_tokens));
        size_t from = below(3) ? 0 : below(like.n), to = like.n - (below(3) ? 0 : below(like.n));
        size_t extra = below(3) < n ? below(3) : 0, before = below(2) ? extra : 0;
        if (from < to && to - from + extra <= MAX_TOKEN) {
            uint8_t second = out[n - 1];
            memcpy(out + before, like.p + from, to - from);
            n = to - from + extra;
            for (size_t i = before + to - from; i < n; i++) out[i] = second;
        }
    }
    return n;
}

/* Builds a vocabulary in which two tokens may have equal texts, as in hybriddna, where a suffix
 * that isn't part of the search distinguishes them. */
static void make_vocab(test_vocab *m, const char *alphabet) {
    static const uint32_t kinds[] = {0,
                                     GGTOK_ATTR_NORMAL,
                                     GGTOK_ATTR_CONTROL | VOCAB_RESERVED,
                                     GGTOK_ATTR_UNKNOWN | VOCAB_RESERVED,
                                     GGTOK_ATTR_USER_DEFINED | VOCAB_RESERVED,
                                     GGTOK_ATTR_USER_DEFINED};
    uint32_t n = 1 + (uint32_t)below(below(2) ? 6 : MAX_TOKENS);
    uint32_t strips = below(2) ? 0 : GGTOK_ATTR_LSTRIP | GGTOK_ATTR_RSTRIP;
    uint32_t same_kind = below(3) ? 0 : PICK(kinds);
    m->off[0] = 0;
    m->v = (vocab){.text = m->arena, .text_off = m->off, .attr = m->attr, .kmer_from = n / 2};
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *text = m->arena + m->off[i];
        size_t len = make_piece(m, i, alphabet, text);
        if (i >= m->v.kmer_from) {
            memcpy(text + len, "\xEE\x80\x80", KMER_MARK);
            len += KMER_MARK;
        }
        m->off[i + 1] = m->off[i] + (uint32_t)len;
        m->attr[i] = same_kind ? same_kind : PICK(kinds);
        m->attr[i] |= strips & (uint32_t)(below(8) ? 0 : below(4) * GGTOK_ATTR_LSTRIP);
    }
    m->v.n_tokens = n;
}

static size_t make_text(const test_vocab *m, const char *alphabet, uint8_t *text) {
    size_t n = 0, want = below(below(2) ? 20 : MAX_TEXT - MAX_TOKEN);
    while (n < want) {
        if (below(2)) {
            n += make_piece(m, m->v.n_tokens, alphabet, text + n);
        } else { /* a token's exact text */
            gguf_view t = vocab_text(&m->v, (uint32_t)below(m->v.n_tokens));
            memcpy(text + n, t.p, t.n);
            n += t.n;
        }
    }
    return n;
}

static size_t make_ranges(size_t n, ggtok_range *ranges) {
    size_t n_ranges = 0, from = 0;
    while (n_ranges < MAX_RANGES && from < n) {
        size_t begin = from + below(12), end = begin + 1 + below(40);
        if (end > n) break;
        ranges[n_ranges++] = (ggtok_range){begin, end};
        from = end + 1;
    }
    return n_ranges;
}

/* ---- the rule ---- */

typedef struct place { /* the state of one byte of the text */
    enum { RAW, GONE, TOKEN } is;
    bool begins; /* whether a token begins at this byte */
    int32_t id;
} place;

static bool space(uint8_t c) {
    return c && strchr(" \t\n\v\f\r", c);
}

/* Finds a token in all raw text, from left to right, and claims its occurrences. */
static void take_all(const vocab *v, uint32_t id, const uint8_t *text, size_t n,
                     const trusted_ranges *trusted, place *at) {
    gguf_view word = vocab_text(v, id);
    bool anywhere = !trusted || !(trusted->all || v->attr[id] & VOCAB_RESERVED);
    for (size_t i = 0; i + word.n <= n; i++) {
        bool may = anywhere, fits = !memcmp(text + i, word.p, word.n);
        for (size_t k = 0; !may && k < trusted->n; k++) {
            may = trusted->data[k].begin <= i && i + word.n <= trusted->data[k].end;
        }
        for (size_t k = 0; k < word.n; k++) fits &= at[i + k].is == RAW;
        if (!may || !fits) continue;
        for (size_t k = 0; k < word.n; k++) at[i + k] = (place){TOKEN, k == 0, (int32_t)id};
        for (size_t k = i; v->attr[id] & GGTOK_ATTR_LSTRIP && k--;) {
            if (at[k].is != RAW || !space(text[k])) break;
            at[k].is = GONE;
        }
        for (size_t k = i + word.n; v->attr[id] & GGTOK_ATTR_RSTRIP && k < n; k++) {
            if (at[k].is != RAW || !space(text[k])) break;
            at[k].is = GONE;
        }
    }
}

static size_t by_rule(const vocab *v, bool parse_special, const uint8_t *text, size_t n,
                      const trusted_ranges *trusted, fragment *out) {
    const uint32_t control = GGTOK_ATTR_CONTROL | GGTOK_ATTR_UNKNOWN;
    int32_t ids[MAX_TOKENS];
    uint32_t length[MAX_TOKENS];
    place at[MAX_TEXT] = {{RAW, false, GGTOK_NO_TOKEN}};
    size_t n_ids = 0, count = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        length[id] = (uint32_t)vocab_text(v, id).n;
        if (v->attr[id] & (control | GGTOK_ATTR_USER_DEFINED)) ids[n_ids++] = (int32_t)id;
    }
    ggtok_stl_sort_descending(ids, n_ids, length);
    for (size_t i = 0; i < n; i++) at[i] = (place){RAW, false, GGTOK_NO_TOKEN};
    for (size_t i = 0; i < n_ids; i++) {
        if (!parse_special && v->attr[ids[i]] & control) continue;
        take_all(v, (uint32_t)ids[i], text, n, trusted, at);
    }
    for (size_t i = 0; i < n; i++) {
        if (at[i].is == GONE) continue;
        if (!i || at[i].begins || at[i - 1].is != at[i].is) {
            out[count++] = (fragment){i, 0, at[i].id};
        }
        out[count - 1].n++;
    }
    return count;
}

/* ---- comparison ---- */

static size_t n_rejected, n_runs, n_strips, n_trusted; /* counters to check that each case occurs */

static void show(const char *who, const uint8_t *text, const fragment *f, size_t n) {
    printf("  %s:", who);
    for (size_t i = 0; i < n; i++) {
        printf(f[i].id == GGTOK_NO_TOKEN ? " " : " %ld=", (long)f[i].id);
        printf("'%.*s'", (int)f[i].n, (const char *)text + f[i].pos);
    }
    printf("\n");
}

static bool check_partition(const test_vocab *m, const special_set *set, bool parse_special,
                            partition_scratch *s, const uint8_t *made_text, size_t n,
                            const trusted_ranges *trusted) {
    fragment want[MAX_TEXT];
    uint8_t *text = malloc(n + !n); /* exact size, for sanitizers to detect overreads */
    if (!text) abort();
    memcpy(text, made_text, n);
    size_t count = by_rule(&m->v, parse_special, text, n, trusted, want);
    if (!ggtok_partition_text(s, set, &m->v, text, n, trusted)) abort();
    bool same = s->now.n == count;
    for (size_t i = 0; same && i < count; i++) {
        const fragment *f = &s->now.data[i];
        same = f->pos == want[i].pos && f->n == want[i].n && f->id == want[i].id;
    }
    if (!same) {
        show("the rule", text, want, count);
        show("ggtok_partition_text", text, s->now.data, s->now.n);
    }
    free(text);
    return same;
}

static bool check_vocabulary(partition_scratch *s) {
    static test_vocab m;
    uint8_t text[MAX_TEXT];
    ggtok_range ranges[MAX_RANGES];
    const char *alphabet = PICK(alphabets);
    special_set set;
    bool same = true, parse_special = below(4) != 0;
    make_vocab(&m, alphabet);
    if (ggtok_special_set_build(&set, &m.v, parse_special, NULL, NULL)) abort();
    n_runs += set.runs.byte >= 0;
    n_strips += set.strips;
    for (int i = 0; same && i < 20; i++) {
        size_t n = make_text(&m, alphabet, text);
        const trusted_ranges some = {ranges, make_ranges(n, ranges), below(2)};
        const trusted_ranges none = {NULL, 0, below(2)};
        const trusted_ranges *kinds[] = {NULL, NULL, &some, &none};
        const trusted_ranges *trusted = PICK(kinds);
        n_trusted += trusted == &some;
        same = check_partition(&m, &set, parse_special, s, text, n, trusted);
        for (size_t k = 0; k < s->spare.n; k++) n_rejected += s->spare.data[k].n == 0;
    }
    ggtok_special_set_free(&set);
    return same;
}

int main(int argc, char **argv) {
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000, bad = 0;
    random_state = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    partition_scratch s = {0};
    for (size_t i = 0; !bad && i < n; i++) bad += !check_vocabulary(&s);
    ggtok_partition_scratch_free(&s);
    printf("%zu vocabularies (%zu with runs, %zu that strip), %zu texts with "
           "ranges, %zu candidates rejected: %zu differ\n",
           n, n_runs, n_strips, n_trusted, n_rejected, bad);
    return bad || !n_runs || !n_strips || !n_trusted || !n_rejected;
}
