/*
 * Shared by the files of UGM: the model, a context's scratch memory, and a run over one text.
 *
 *   build.c      tokens, charsmap and scores -> model
 *   normalize.c  text -> normalized bytes, in blocks
 *   path.c       normalized bytes -> pieces -> ids, by the best path
 *   ugm.c        text -> spans -> ids, through the caches
 *   place.c      spans of ids in the text
 */
#ifndef GGTOK_UGM_H
#define GGTOK_UGM_H

#include "index/adjacency.h"
#include "index/trie_long.h"
#include "models/changes.h"
#include "models/model.h"
#include "models/tile.h"
#include "models/ugm/charsmap.h"
#include "models/ugm/spans.h"
#include "models/words.h"

typedef struct ugm_model {
    trie tokens;
    trie_long longs; /* the long ones of `tokens` */
    trie user;       /* user-defined tokens, no tails: see user_prefix */
    charsmap map;
    adjacency pairs;
    double unknown;   /* score of an unknown character */
    double exact_len; /* texts up to this many bytes have exact sums; 0: none */
    bool plain[256];  /* ASCII bytes that are kept if another ASCII byte follows */
    bool all_plain;   /* all from 20 to 7E are plain */
    bool words;       /* texts can be cut at spaces: see words_apart */
    bool newlines;    /* ... and at tabs and newlines */
    bool opens;       /* normalized text may end inside a character: see ggtok_ugm_ends_open */
} ugm_model;

typedef struct best { /* the best path to a position in the piece */
    double score;
    int32_t id;   /* its last token */
    uint32_t len; /* its length in bytes; 0: no path leads there */
} best;

typedef struct ugm_scratch {
    bytebuf norm;
    best *best;
    size_t best_cap;
    idbuf ids;         /* ids of one piece, last to first */
    idbuf hits;        /* from ggtok_trie_long_find */
    word_cache spans;  /* keys: spans of the text, not normalized */
    word_cache pieces; /* keys: normalized pieces */
    ugm_spans found;
    bytebuf padded;     /* a copy of a short text */
    double excess;      /* normalized bytes of spans beyond what SPAN_MORE allows */
    bool is_open;       /* a span ended inside a character */
    uint8_t *kind;      /* for each character below U+10000, computed lazily: see plain_char */
    change_leads leads; /* which characters aren't known to be kept */
    bool asked[256];    /* by first byte: was that computed? */
    bool by_span;       /* see words_apart */
    tiles tiles;
    text_guard guard; /* for a word whose path is found again */
    idbuf reencoded;  /* its ids */
    bool any_user;    /* some token is user-defined, after all corrections of types */
} ugm_scratch;

/* A run over one text, or one span of it. */
typedef struct ugm_run {
    const model_call *call;
    const ugm_model *m;
    ugm_scratch *s;
    bool cut;            /* cut into pieces; otherwise the text is one piece */
    bool keep;           /* only normalize into s->norm, don't tokenize */
    bool in_word;        /* the last byte was not a space */
    bool prefixed;       /* the space prefix was added, or none is wanted */
    const uint8_t *text; /* the whole text, for the guard */
    /* For the guard: white space text[white_begin..white_end) that becomes one space. */
    size_t white_begin, white_end;
    double drained; /* normalized bytes tokenized so far */
    bool is_open;   /* the normalized text ends inside a character: see ggtok_ugm_ends_open */
} ugm_run;

/* What a character below U+10000 becomes if no combining mark of U+0300 to U+037F follows. Computed
 * lazily. */
enum {
    KIND_UNKNOWN,
    KIND_PLAIN, /* it is kept */
    KIND_MARK,  /* it is kept; it is U+2581, or may change the character before it */
    KIND_APART, /* it is kept if no mark of charsmap_joins follows */
    KIND_OTHER,
    KIND_BECOMES, /* KIND_BECOMES + n: if no such mark follows, it becomes n bytes, no white space or U+2581 */
    N_KINDS = 0x10000
};

ggtok_status ggtok_ugm_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                             void **model, ggtok_error *err);
void ggtok_ugm_free(void *model);

/* Fills *err with a fault of the charsmap; returns its status. */
ggtok_status ggtok_ugm_charsmap_fault(const char *fault, ggtok_error *err);

/* Normalizes and tokenizes the text. *exact becomes false if the normalized text is longer than
 * cutting allows. */
ggtok_status ggtok_ugm_run_text(ugm_run *r, const uint8_t *text, size_t n, bool *exact);

/* The number of bytes at the start of p[0..n) that are known to be kept by normalization and contain
 * no space. `room` bytes of the text are readable at p. */
size_t ggtok_ugm_plain(const ugm_model *m, ugm_scratch *s, const uint8_t *p, size_t n, size_t room);

/* For `changes`: finds the characters that aren't kept, in a text that is cut into spans. */
typedef struct ugm_finder {
    const ugm_model *m;
    ugm_scratch *s;
} ugm_finder;

void ggtok_ugm_changes_init(const ugm_model *m, ugm_scratch *s);
void ggtok_ugm_find_changes(changes *c);

/* Normalizes the beginning of p[0..n) to with[0..with_n), white space as spaces. Returns the number
 * of bytes used, or 0 and a fault of the charsmap. */
size_t ggtok_ugm_match(const ugm_model *m, const uint8_t *p, size_t n, const uint8_t **with,
                       size_t *with_n, const char **fault);

/*
 * Does p[0..n) end inside a character, in the view of the path, whose last character would then
 * include what follows, even white space? Normalized text ends so after malformed bytes that
 * begin a user-defined token, which are kept unchanged.
 */
static inline bool ggtok_ugm_ends_open(const uint8_t *p, size_t n) {
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        if (utf8_lead_len(p[n - k]) > k) return true;
    }
    return false;
}

/* Are spans wanted, and can they be assigned from the words of a text cut into spans? */
bool ggtok_ugm_can_place(const model_call *call);

/* Assigns spans to the ids from `first` on, those of the words in s->found. The white space before
 * the first word begins at *white, which is advanced. False: impossible. */
bool ggtok_ugm_place(const model_call *call, const uint8_t *text, size_t n, size_t first,
                     size_t *white);

/* Tokenizes the complete pieces of s->norm (`all`: the whole of it), and moves the rest to the
 * front. */
ggtok_status ggtok_ugm_drain(ugm_run *r, bool all);

#endif
