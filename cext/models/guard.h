/*
 * Keeps untrusted text from becoming reserved tokens.
 *
 * The text of a chat template is trusted; messages in it are not: they must not produce tokens that
 * begin or end a turn. Partition finds such tokens only in trusted text (special/partition.h), but
 * raw text can also become one of them: by a merge, as a token of a unigram or longest-match model,
 * or because normalization turns other letters into the token's text. So a fragment whose ids
 * contain a reserved token is encoded again, by rules that skip the token wherever a byte of its
 * text is untrusted:
 *
 *   SPM, BPE     no merge produces the token; a character that equals it falls back to bytes
 *   WPM, RWKV    the token doesn't match; the next shorter token is tried
 *   UGM, PLaMo   no path contains the token
 *
 * Encoding a fragment in this way, without caches, can also record the source of each token: see
 * text_guard's `spans` and docs/design/offsets.md.
 *
 * If some text has no other tokens, the guard records the refused token, and encoding fails. Text
 * that no token matches still becomes the unknown token, unless that token ends generation. If no
 * token is skipped, the ids are the usual ones.
 */
#ifndef GGTOK_GUARD_H
#define GGTOK_GUARD_H

#include "index/trie_long.h"
#include "vocab/special.h"

typedef struct text_guard {
    const vocab *v;
    uint32_t reserved; /* attributes of the tokens that only trusted text may become */
    int32_t refused;   /* a token that couldn't be avoided, or GGTOK_NO_TOKEN */
    bytebuf source;    /* for each byte of the fragment: whether it is trusted */
    bytebuf text,
        trusted;     /* the transformed text in which the model finds tokens, and whether each byte
                        is trusted */
    size_t *foreign; /* [text.n + 1]: number of untrusted bytes before each byte of `text` */
    size_t cap;
    bool spans;                /* whether sources are recorded. If so: */
    const uint8_t *bytes;      /* the bytes that `source` describes */
    const ggtok_range *origin; /* the range of each of these bytes in the fragment; NULL:
                                  `bytes` is the fragment */
    ggtok_range *from;         /* the range of each byte of `text` in the fragment */
    size_t from_cap;
    ggtok_span *made; /* the spans of the ids, in the order of the ids */
    size_t n_made, made_cap;
    struct trace *trace; /* reports each step (models/trace.h), if `spans`; may be NULL */
} text_guard;

/* Starts a new fragment text[pos..pos + n), given the trusted ranges of the text. Returns false if
 * out of memory. */
bool ggtok_guard_begin(text_guard *g, const ggtok_range *trusted, size_t n_trusted, size_t pos,
                       size_t n);
void ggtok_guard_free(text_guard *g);
size_t ggtok_guard_bytes(const text_guard *g);

/* Starts a fragment of n bytes that is wholly trusted: its ids are the usual ones, and their spans
 * are recorded. Returns false if out of memory. */
bool ggtok_guard_record(text_guard *g, const vocab *v, const uint8_t *fragment, size_t n);

/* Whether all of source[from..from + n) is trusted. */
bool ggtok_guard_trusts(const text_guard *g, size_t from, size_t n);

/* Clear `text`, and complete it after the last byte. Return false if out of memory. */
void ggtok_guard_clear(text_guard *g);
bool ggtok_guard_seal(text_guard *g);

/* Append p[0..n) to `text`. ggtok_guard_put: source[from..from + len) becomes these bytes; if they
 * are the same bytes, each is its own source. ggtok_guard_put_all: the source of each byte is the
 * whole of source[begin..end). ggtok_guard_add: the bytes are inserted before source[at]. Return
 * false if out of memory. */
bool ggtok_guard_put(text_guard *g, const void *p, size_t n, size_t from, size_t len);
bool ggtok_guard_put_all(text_guard *g, const void *p, size_t n, bool trusted, size_t begin,
                         size_t end);
bool ggtok_guard_add(text_guard *g, const void *p, size_t n, size_t at);

/* Record the span of the next id: the source of text[at..at + n), or source[begin..end). Return
 * false if out of memory. */
bool ggtok_guard_made(text_guard *g, size_t at, size_t n);
bool ggtok_guard_made_of(text_guard *g, size_t begin, size_t end);

/* Returns the range of source[begin..end) in the fragment; if it is empty, the position before
 * source[begin]. */
ggtok_range ggtok_guard_origin(const text_guard *g, size_t begin, size_t end);

/* Extends the last id's span to source[end], because the text after the span was dropped. */
static inline void ggtok_guard_extend(text_guard *g, size_t end) {
    if (g->spans) g->made[g->n_made - 1].end = (int64_t)end;
}

/* Reverses the order of the last n spans. */
void ggtok_guard_reverse(text_guard *g, size_t n);

/* Whether text[from..from + n) may become this token. */
static inline bool guard_allows(const text_guard *g, int32_t id, size_t from, size_t n) {
    return id < 0 || !(g->v->attr[id] & g->reserved) || g->foreign[from] == g->foreign[from + n];
}

/* Records a token that the text may not become, but that has no alternative. */
static inline void guard_refuse(text_guard *g, int32_t id) {
    if (g->refused < 0) g->refused = id;
}

/* Records the unknown token as refused if text[from..from + n) may not become it. */
static inline void guard_unknown(text_guard *g, int32_t id, size_t from, size_t n) {
    if (id >= 0 && ggtok_vocab_is_eog(g->v, id) && !guard_allows(g, id, from, n))
        guard_refuse(g, id);
}

/* Like trie_longest_at, for the guard's text and only the tokens that the guard allows. */
size_t ggtok_guard_longest(const text_guard *g, const trie *t, const trie_long *l,
                           const int32_t *hits, size_t i, int32_t *id);

#endif
