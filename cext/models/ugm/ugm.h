/*
 * Definitions shared by the files of UGM: the model, a context's scratch memory, and a run over one
 * text.
 *
 *   build.c      tokens, charsmap and scores -> model
 *   composed.c   text -> its NFC, if the vocabulary has the key normalizer.nfc
 *   normalize.c  text -> normalized bytes, in blocks
 *   pieces.c     normalized bytes -> pieces -> ids
 *   path.c       a piece -> ids, by the best path
 *   ugm.c        text -> spans -> ids, through the caches
 *   sample.c     a piece -> ids, by a random path
 *   nbest.c      a fragment's normalized bytes -> the best paths
 *   place.c      spans of ids in the text
 */
#ifndef GGTOK_UGM_H
#define GGTOK_UGM_H

#include "index/adjacency.h"
#include "index/trie_long.h"
#include "models/model.h"
#include "models/tile.h"
#include "models/ugm/changes.h"
#include "models/ugm/charsmap.h"
#include "models/ugm/spans.h"
#include "models/words.h"

typedef struct ugm_model {
    trie tokens;
    trie_long longs; /* the long tokens in `tokens` */
    trie user;       /* user-defined tokens, without tails; see user_prefix */
    charsmap map;
    adjacency pairs;
    double unknown;   /* score of the unknown character */
    double exact_len; /* up to this many bytes, a text's sums of scores are exact; 0: never */
    bool plain[256];  /* ASCII bytes that are kept if another ASCII byte follows */
    bool all_plain;   /* whether all from 20 to 7E are plain */
    bool words;       /* whether texts can be cut at spaces; see words_apart */
    bool newlines;    /* whether they can also be cut at tabs and newlines */
    bool opens;       /* normalized text may end inside a character; see ggtok_ugm_ends_open */
} ugm_model;

typedef struct best { /* the best path to a position in the piece */
    double score;
    int32_t id;   /* the path's last token */
    uint32_t len; /* that token's length in bytes; 0: no path leads to the position */
} best;

/* The NFC of a text. */
typedef struct ugm_composed {
    bytebuf text;
    bytebuf trusted; /* for each byte, with a recorder: whether its source is trusted */
    bytebuf origin;  /* ggtok_range: for each byte, its source, and at last the text's end */
    bytebuf marks;   /* scratch memory */
} ugm_composed;

typedef struct ugm_scratch {
    ugm_composed composed;
    bytebuf norm;
    best *best;
    size_t best_cap;
    idbuf ids;         /* ids of one piece, from last to first */
    idbuf hits;        /* long tokens by position, from ggtok_trie_long_find */
    word_cache spans;  /* keys: spans of the text, not normalized */
    word_cache pieces; /* keys: normalized pieces */
    ugm_spans found;
    bytebuf padded;     /* copy of a short text */
    double excess;      /* normalized bytes of spans beyond the number that SPAN_MORE allows */
    bool is_open;       /* whether a span ended inside a character */
    uint8_t *kind;      /* by character below U+10000: its kind, computed lazily; see plain_char */
    change_leads leads; /* characters that aren't known to be kept */
    bool asked[256];    /* by first byte: whether `leads` has been computed for it */
    bool by_span;       /* whether texts are cut into spans; see words_apart */
    tiles tiles;
    idbuf reencoded; /* the ids of a word whose path was found again */
    bool any_user;   /* some token is user-defined after all corrections of attributes */
} ugm_scratch;

/* A run over one text, or one span of it. */
typedef struct ugm_run {
    const model_call *call;
    const ugm_model *m;
    ugm_scratch *s;
    bool cut;            /* whether to cut the text into pieces; otherwise, it is one piece */
    bool keep;           /* only normalize into s->norm, don't tokenize */
    bool in_word;        /* the last byte was not a space */
    bool prefixed;       /* the space prefix was added, or none is needed */
    const uint8_t *text; /* the whole text, for the recorder */
    /* For the recorder: the white space text[white_begin..white_end), which becomes one space. */
    size_t white_begin, white_end;
    double drained; /* number of normalized bytes tokenized so far */
    bool is_open;   /* the normalized text ends inside a character; see ggtok_ugm_ends_open */
} ugm_run;

/* Kinds of characters below U+10000: what each becomes if no combining mark from U+0300 to U+037F
 * follows. Computed lazily. */
enum {
    KIND_UNKNOWN,
    KIND_PLAIN, /* kept */
    KIND_MARK,  /* kept, but it is U+2581 or may change the character before it */
    KIND_APART, /* kept if no mark for which charsmap_joins is true follows */
    KIND_OTHER,
    KIND_SPACE,   /* becomes a space, if no such mark follows */
    KIND_BECOMES, /* KIND_BECOMES + n: if no such mark follows, it becomes n bytes
                     without white space or U+2581 */
    N_KINDS = 0x10000
};

ggtok_status ggtok_ugm_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                             void **model, ggtok_error *err);
void ggtok_ugm_free(void *model);

/* Fills *err for a fault in the charsmap; returns its status. */
ggtok_status ggtok_ugm_charsmap_fault(const char *fault, ggtok_error *err);

/* Writes the NFC of text[0..n) to the scratch's `composed`: the sources of its bytes if call->spans
 * or the recorder records spans. Returns false if out of memory or interrupted. */
bool ggtok_ugm_compose(const model_call *call, const uint8_t *text, size_t n);
void ggtok_ugm_composed_free(ugm_composed *c);

/* Returns the range of text from which the composed bytes begin..end come; if there are none, the
 * position before them. */
ggtok_range ggtok_ugm_origin(const ugm_composed *c, size_t begin, size_t end);

/* Normalizes and tokenizes the text. Sets *exact to false if the normalized text is longer than
 * cutting allows. */
ggtok_status ggtok_ugm_run_text(ugm_run *r, const uint8_t *text, size_t n, bool *exact);

/* Returns the number of bytes at the start of p[0..n) that are known to be kept by normalization
 * and contain no space. `room` bytes are readable at p. */
size_t ggtok_ugm_plain(const ugm_model *m, ugm_scratch *s, const uint8_t *p, size_t n, size_t room);

/* User data of ggtok_ugm_find_changes, which finds the characters that aren't kept, for `changes`,
 * in a text that is cut into spans. */
typedef struct ugm_finder {
    const ugm_model *m;
    ugm_scratch *s;
} ugm_finder;

void ggtok_ugm_changes_init(const ugm_model *m, ugm_scratch *s);
void ggtok_ugm_find_changes(changes *c);

/*
 * Whether p[0..n) ends inside a character from the path's point of view: the last character would
 * then include the bytes that follow, even white space. Normalized text ends in this way after
 * malformed bytes that begin a user-defined token, since such bytes are kept unchanged.
 */
static inline bool ggtok_ugm_ends_open(const uint8_t *p, size_t n) {
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        if (utf8_lead_len(p[n - k]) > k) return true;
    }
    return false;
}

/* Whether the character is a space that ends spans. */
static inline bool ugm_ends_spans(const ugm_model *m, uint32_t cpt) {
    return cpt == ' ' || (m->newlines && (cpt == '\t' || cpt == '\n' || cpt == '\r'));
}

/* Whether spans are requested and can be assigned from the words of a text that is cut into
 * spans. */
bool ggtok_ugm_can_place(const model_call *call);

/* Assigns spans to the ids from index `first` on, which belong to the words in s->found. The white
 * space before the first word begins at *white; sets *white to the beginning of the white space
 * after the last. Returns false if the spans can't be assigned. */
bool ggtok_ugm_place(const model_call *call, const uint8_t *text, size_t n, size_t first,
                     size_t *white);

/* Sets *hits to the long tokens in text[0..n) by position, or to NULL if there are none. Returns false
 * if out of memory. */
bool ggtok_ugm_find_long(const ugm_run *r, const uint8_t *text, size_t n, const int32_t **hits);

/* Append the ids of a piece: those of its best path, or of a random path. */
ggtok_status ggtok_ugm_push_path(const ugm_run *r, const uint8_t *text, size_t n);
ggtok_status ggtok_ugm_sample_path(const ugm_run *r, const uint8_t *text, size_t n);

/* Continues the best paths of the call's lattice through a fragment's normalized text. Appends no
 * ids. */
ggtok_status ggtok_ugm_push_best(const ugm_run *r, const uint8_t *text, size_t n);

/* Tokenizes the complete pieces of s->norm (with `all`: everything), and moves the rest to the
 * front. */
ggtok_status ggtok_ugm_drain(ugm_run *r, bool all);

#endif
