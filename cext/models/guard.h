/*
 * Tokens that only trusted text may give.
 *
 * A chat template's text is trusted, what people say in it is not: from that no token may come
 * that ends a turn or begins one. The partition looks for such tokens in trusted text alone
 * (special/partition.h), but raw text may give them too: merges may have one as their result,
 * a unigram or longest-match model may have one among its tokens, and normalizing may make one
 * of other letters. So a fragment whose ids hold one is encoded again, by rules that pass over
 * such a token wherever a byte of its text is not trusted:
 *
 *   SPM, BPE     it is the result of no merge, and a character that is one goes by its bytes
 *   WPM, RWKV    it is no match: the next shorter token is
 *   UGM, PLaMo   no path leads over it
 *
 * Encoding a fragment this way, without caches, can also tell where each token comes from: see
 * text_guard's `spans` and docs/design/offsets.md.
 *
 * Where that leaves text without tokens the guard notes the token, and encoding is an error.
 * Text that no token stands for still becomes the unknown token, unless that one ends
 * generation. Where no token is passed over, the ids are the usual ones.
 */
#ifndef GGTOK_GUARD_H
#define GGTOK_GUARD_H

#include "index/trie_long.h"
#include "vocab/special.h"

typedef struct text_guard {
    const vocab *v;
    uint32_t reserved;     /* attributes of the tokens that only trusted text gives */
    int32_t refused;       /* a token that there was no way around, or GGTOK_NO_TOKEN */
    bytebuf source;        /* the fragment's bytes: is it trusted? */
    bytebuf text, trusted; /* what a model makes of it before it looks for tokens: likewise */
    size_t *foreign;       /* text.n + 1: of the bytes before it, those that aren't trusted */
    size_t cap;
    bool spans;                /* are sources recorded? */
    const uint8_t *bytes;      /* then: what `source` is about */
    const ggtok_range *origin; /* and where each byte of that lies in the fragment; NULL: there */
    ggtok_range *from;         /* where each byte of `text` comes from, likewise */
    size_t from_cap;
    ggtok_span *made; /* of the ids, in their order */
    size_t n_made, made_cap;
} text_guard;

/* A new fragment text[pos..pos + n), given where the text is trusted. False: out of memory. */
bool ggtok_guard_begin(text_guard *g, const ggtok_range *trusted, size_t n_trusted, size_t pos,
                       size_t n);
void ggtok_guard_free(text_guard *g);
size_t ggtok_guard_bytes(const text_guard *g);

/* The same for all of a fragment of n bytes, which is trusted: its ids are the usual ones, and
 * their spans are recorded. */
bool ggtok_guard_record(text_guard *g, const vocab *v, const uint8_t *fragment, size_t n);

/* Is all of source[from..from + n) trusted? */
bool ggtok_guard_trusts(const text_guard *g, size_t from, size_t n);

/* The model's text: emptied; with more bytes of one kind; complete. False: out of memory. */
void ggtok_guard_clear(text_guard *g);
bool ggtok_guard_seal(text_guard *g);

/* More bytes: those that source[from..from + len) becomes (each is its own, where they are the
 * same); those that come from source[begin..end) together; those that are added before
 * source[at]. */
bool ggtok_guard_put(text_guard *g, const void *p, size_t n, size_t from, size_t len);
bool ggtok_guard_put_all(text_guard *g, const void *p, size_t n, bool trusted, size_t begin,
                         size_t end);
bool ggtok_guard_add(text_guard *g, const void *p, size_t n, size_t at);

/* The next id is that of text[at..at + n), or of source[begin..end). False: out of memory. */
bool ggtok_guard_made(text_guard *g, size_t at, size_t n);
bool ggtok_guard_made_of(text_guard *g, size_t begin, size_t end);

/* The last id recorded also comes from what was dropped after it, up to source[end]. */
static inline void ggtok_guard_extend(text_guard *g, size_t end) {
    if (g->spans) g->made[g->n_made - 1].end = (int64_t)end;
}

/* Reverses the order of the last n spans. */
void ggtok_guard_reverse(text_guard *g, size_t n);

/* May text[from..from + n) become this token? */
static inline bool guard_allows(const text_guard *g, int32_t id, size_t from, size_t n) {
    return id < 0 || !(g->v->attr[id] & g->reserved) || g->foreign[from] == g->foreign[from + n];
}

/* Notes what had no other token. */
static inline void guard_refuse(text_guard *g, int32_t id) {
    if (g->refused < 0) g->refused = id;
}

/* The unknown token stands for text[from..from + n). */
static inline void guard_unknown(text_guard *g, int32_t id, size_t from, size_t n) {
    if (id >= 0 && ggtok_vocab_is_eog(g->v, id) && !guard_allows(g, id, from, n))
        guard_refuse(g, id);
}

/* trie_longest_at of the guard's text, of the tokens that are allowed. */
size_t ggtok_guard_longest(const text_guard *g, const trie *t, const trie_long *l,
                           const int32_t *hits, size_t i, int32_t *id);

#endif
