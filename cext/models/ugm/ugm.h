/*
 * What the parts of UGM share: the model, a context's scratch memory, and one run over a text.
 *
 *   build.c      tokens, charsmap and scores to a model
 *   normalize.c  text to normalized bytes, gathered in blocks
 *   path.c       normalized bytes to pieces, pieces to ids by the best path
 *   ugm.c        the text to spans, spans to ids, through the caches
 *   place.c      where ids come from
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
    trie_long longs; /* of them */
    trie user;       /* user-defined tokens, no tails: see user_prefix */
    charsmap map;
    adjacency pairs;
    double unknown;   /* score of an unknown character */
    double exact_len; /* texts up to this many bytes have exact sums; 0: none */
    bool plain[256];  /* an ASCII byte that stays itself if another follows */
    bool all_plain;   /* all from 20 to 7E are */
    bool words;       /* a text may be cut at spaces: see words_apart */
    bool newlines;    /* and at tabs and ends of lines, too */
    bool opens;       /* text may end inside a character once it is normalized: see ugm_ends_open */
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
    idbuf ids;         /* of one piece, last to first */
    idbuf hits;        /* of ggtok_trie_long_find */
    word_cache spans;  /* as they stand in the text */
    word_cache pieces; /* normalized */
    ugm_spans found;
    bytebuf padded;     /* a short text */
    double excess;      /* by which spans were longer, normalized, than SPAN_MORE allows */
    bool is_open;       /* a span ended inside a character */
    uint8_t *kind;      /* of each character below U+10000, once met: see plain_char */
    change_leads leads; /* of characters that aren't known to stay themselves */
    bool asked[256];    /* of first bytes: could that be known? */
    bool by_span;       /* see words_apart */
    tiles tiles;
    text_guard guard; /* of a word that is placed */
    idbuf reencoded;  /* its ids */
    bool any_user;    /* some token is user-defined, now that types are final */
} ugm_scratch;

/* One text, or one span of it. */
typedef struct ugm_run {
    const model_call *call;
    const ugm_model *m;
    ugm_scratch *s;
    bool cut;            /* pieces, not the whole text */
    bool keep;           /* s->norm stays: nothing is tokenized */
    bool in_word;        /* the last byte was no space */
    bool prefixed;       /* a space has been put before a word, or none is wanted */
    const uint8_t *text; /* all of it, for the text_guard */
    /* Its white space text[white_begin..white_end) is to become one space, for the guard. */
    size_t white_begin, white_end;
    double drained; /* normalized bytes tokenized so far */
    bool is_open;   /* the normalized text ends inside a character: see ggtok_ugm_ends_open */
} ugm_run;

/* What becomes of a character below U+10000, if no combining mark of U+0300 to U+037F follows;
 * nothing is known at first. */
enum {
    KIND_UNKNOWN,
    KIND_PLAIN, /* it stays itself */
    KIND_MARK,  /* likewise; it is a U+2581, or one that may change what stands before it */
    KIND_APART, /* it stays itself if nothing that charsmap_joins follows, */
    KIND_OTHER,
    KIND_BECOMES, /* and KIND_BECOMES + n, n bytes without white space and U+2581, likewise */
    N_KINDS = 0x10000
};

ggtok_status ggtok_ugm_build(const vocab *v, const gguf *g, const ggtok_load_options *options,
                             void **model, ggtok_error *err);
void ggtok_ugm_free(void *model);

/* Fills *err with what is wrong with the charsmap; returns its status. */
ggtok_status ggtok_ugm_charsmap_fault(const char *fault, ggtok_error *err);

/* Normalizes and tokenizes the text; *exact becomes false if it turned out longer than cutting
 * allows. */
ggtok_status ggtok_ugm_run_text(ugm_run *r, const uint8_t *text, size_t n, bool *exact);

/* How many of the bytes p[0..n), after which `room` - n bytes of the text follow, surely stay the
 * same when they are normalized, none of them a space. */
size_t ggtok_ugm_plain(const ugm_model *m, ugm_scratch *s, const uint8_t *p, size_t n, size_t room);

/* Characters of a text cut into spans that don't stay themselves, for `changes`. */
typedef struct ugm_finder {
    const ugm_model *m;
    ugm_scratch *s;
} ugm_finder;

void ggtok_ugm_changes_init(const ugm_model *m, ugm_scratch *s);
void ggtok_ugm_find_changes(changes *c);

/* What the beginning of p[0..n) becomes, white space as spaces: with[0..with_n). Returns how many
 * bytes that takes, or 0 and what is wrong with the charsmap. */
size_t ggtok_ugm_match(const ugm_model *m, const uint8_t *p, size_t n, const uint8_t **with,
                       size_t *with_n, const char **fault);

/*
 * Does p[0..n) end inside a character? To the path that reaches into what follows, white space too.
 * Normalized text ends so after bad bytes that begin a user-defined token, which are taken as they
 * are.
 */
static inline bool ggtok_ugm_ends_open(const uint8_t *p, size_t n) {
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        if (utf8_lead_len(p[n - k]) > k) return true;
    }
    return false;
}

/* Are spans asked for, and may spans be assigned from the words of a text cut into spans? */
bool ggtok_ugm_can_place(const model_call *call);

/* Assigns spans to the ids from `first` on, which the words in s->found have become. The white space
 * before the first begins at *white, which is moved. False: that isn't possible. */
bool ggtok_ugm_place(const model_call *call, const uint8_t *text, size_t n, size_t first,
                     size_t *white);

/* Tokenizes the pieces of s->norm that are complete, all of it if `all`, and moves the rest to
 * the front. */
ggtok_status ggtok_ugm_drain(ugm_run *r, bool all);

#endif
