/*
 * Records a fragment that is encoded plainly, without caches: for each byte of the transformed text,
 * whether its source is trusted and, for spans and traces, where that source is
 * (docs/design/offsets.md).
 *
 * Trust keeps untrusted text from becoming reserved tokens.
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
 * If some text has no other tokens, the recorder notes the refused token, and encoding fails. Text
 * that no token matches still becomes the unknown token, unless that token ends generation. If no
 * token is skipped, the ids are the usual ones.
 */
#ifndef GGTOK_RECORDER_H
#define GGTOK_RECORDER_H

#include "index/trie_long.h"
#include "vocab/special.h"

typedef struct recorder {
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
} recorder;

/* Starts a new fragment text[pos..pos + n), given the trusted ranges of the text. Returns false if
 * out of memory. */
bool ggtok_recorder_begin(recorder *rec, const ggtok_range *trusted, size_t n_trusted, size_t pos,
                          size_t n);
void ggtok_recorder_free(recorder *rec);
size_t ggtok_recorder_bytes(const recorder *rec);

/* Starts a fragment of n bytes that is wholly trusted: its ids are the usual ones, and their spans
 * are recorded. Returns false if out of memory. */
bool ggtok_recorder_begin_spans(recorder *rec, const vocab *v, const uint8_t *fragment, size_t n);

/* Whether all of source[from..from + n) is trusted. */
bool ggtok_recorder_trusts(const recorder *rec, size_t from, size_t n);

/* Clear `text`, and complete it after the last byte. Return false if out of memory. */
void ggtok_recorder_clear(recorder *rec);
bool ggtok_recorder_seal(recorder *rec);

/* Append p[0..n) to `text`. ggtok_recorder_put: source[from..from + len) becomes these bytes; if they
 * are the same bytes, each is its own source. ggtok_recorder_put_all: the source of each byte is the
 * whole of source[begin..end). ggtok_recorder_add: the bytes are inserted before source[at]. Return
 * false if out of memory. */
bool ggtok_recorder_put(recorder *rec, const void *p, size_t n, size_t from, size_t len);
bool ggtok_recorder_put_all(recorder *rec, const void *p, size_t n, bool trusted, size_t begin,
                            size_t end);
bool ggtok_recorder_add(recorder *rec, const void *p, size_t n, size_t at);

/* Record the span of the next id: the source of text[at..at + n), or source[begin..end). Return
 * false if out of memory. */
bool ggtok_recorder_add_span(recorder *rec, size_t at, size_t n);
bool ggtok_recorder_add_span_of(recorder *rec, size_t begin, size_t end);

/* Returns the range of source[begin..end) in the fragment; if it is empty, the position before
 * source[begin]. */
ggtok_range ggtok_recorder_origin(const recorder *rec, size_t begin, size_t end);

/* Extends the last id's span to source[end], because the text after the span was dropped. */
static inline void ggtok_recorder_extend(recorder *rec, size_t end) {
    if (rec->spans) rec->made[rec->n_made - 1].end = (int64_t)end;
}

/* Writes the n_made spans to `out`, with `base` added. */
void ggtok_recorder_copy_spans(const recorder *rec, ggtok_span *out, int64_t base);

/* Reverses the order of the last n spans. */
void ggtok_recorder_reverse(recorder *rec, size_t n);

/* Whether text[from..from + n) may become this token. */
static inline bool recorder_allows(const recorder *rec, int32_t id, size_t from, size_t n) {
    return id < 0 || !(rec->v->attr[id] & rec->reserved) ||
           rec->foreign[from] == rec->foreign[from + n];
}

/* Records a token that the text may not become, but that has no alternative. */
static inline void recorder_refuse(recorder *rec, int32_t id) {
    if (rec->refused < 0) rec->refused = id;
}

/* Records the unknown token as refused if text[from..from + n) may not become it. */
static inline void recorder_refuse_unknown(recorder *rec, int32_t id, size_t from, size_t n) {
    if (id >= 0 && ggtok_vocab_is_eog(rec->v, id) && !recorder_allows(rec, id, from, n))
        recorder_refuse(rec, id);
}

/* Like trie_longest_at, for the recorder's text and only the tokens that the recorder allows. */
size_t ggtok_recorder_longest(const recorder *rec, const trie *t, const trie_long *l,
                              const int32_t *hits, size_t i, int32_t *id);

#endif
