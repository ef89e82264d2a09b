/* PLaMo's automaton, shared by the code that builds and walks it (models/plamo2/plamo2.c),
 * the code for tokens in malformed UTF-8 (models/plamo2/odd.c), and the code that reports steps
 * (models/plamo2/trace.c). */
#ifndef GGTOK_MODEL_PLAMO2_H
#define GGTOK_MODEL_PLAMO2_H

#include "index/adjacency.h"
#include "index/trie.h"
#include "models/model.h"
#include "unicode/utf8.h"

#define PLAMO2_NOWHERE UINT32_MAX

typedef struct state { /* one for each unit of the trie; meaningful at character ends */
    uint32_t fail;     /* the longest proper prefix that is a state; NOWHERE: stop here */
    uint32_t row;      /* the first row to try: its longest usable prefix */
} state;

typedef struct row { /* a usable token; row 0 is the end: one unknown character */
    int32_t score, id;
    uint32_t length; /* in characters */
    uint32_t next;   /* the next shorter one; NOWHERE: none, not even the unknown one */
} row;

/* A link that a token in malformed UTF-8 adds to llama.cpp's table. */
typedef struct odd_link {
    uint32_t from, cpt, to;
} odd_link;

typedef struct plamo2_model {
    trie t; /* reversed tokens, byte by byte, no tails */
    state *state;
    row *row;
    size_t n_rows;
    odd_link *odd; /* in ascending order of `from`, then of `cpt` */
    size_t n_odd;
    uint32_t *
        skip; /* by state, if there are odd links: the next state on the failure path with other ways */
    adjacency pairs;
    bool whole; /* texts must not be cut into pieces */
    bool parts; /* PLaMo3 */
    int32_t byte_id[256];
} plamo2_model;

typedef struct plamo2_state { /* a state that needs a failure link */
    uint32_t unit, parent;
    const uint8_t *p; /* the character that leads from parent to unit */
    uint32_t len, depth;
} plamo2_state;

typedef struct plamo2_build {
    plamo2_model *m;
    const vocab *v;
    ggtok_error *err;
    bytebuf text;    /* keys in reading order; their bytes are those of token texts, reversed */
    uint32_t *off;   /* n + 1: key i is reversed text[off[i] .. off[i + 1]) */
    uint32_t *token; /* id of key i, or NOWHERE: only its suffixes count */
    size_t n;
    idbuf odd;            /* ids of tokens in malformed UTF-8 */
    plamo2_state *states; /* all except the root, sorted by depth */
    size_t n_states;
} plamo2_build;

/* ggtok_utf8_encode, with four bytes for values above U+10FFFF (up to 1FFFFF). */
size_t ggtok_plamo2_encode(uint32_t c, uint8_t out[4]);

/* Decodes one character as unicode_cpt_from_utf8 does, including those above U+10FFFF (which PLaMo2
 * never encodes again). A malformed byte is U+FFFD, of length one. */
size_t ggtok_plamo2_decode(const uint8_t *p, size_t n, uint32_t *cpt);

/* Appends the shortest forms of all characters. False: out of memory, or interrupted. */
bool ggtok_plamo2_repair(bytebuf *out, const uint8_t *p, size_t n, interrupt *in);

/* From unit s over the character p[0..len), last byte first; 0: there is no such unit. */
static inline uint32_t plamo2_step(const trie *t, uint32_t s, const uint8_t *p, size_t len) {
    do {
        s = trie_child(t, s, p[--len]);
    } while (s && len);
    return s;
}

/* From state s over one more character, following failure links; 0: the root. */
static inline uint32_t plamo2_advance(const plamo2_model *m, uint32_t s, const uint8_t *p,
                                      size_t len) {
    for (;;) {
        uint32_t next = plamo2_step(&m->t, s, p, len);
        if (next || !s) return next;
        s = m->state[s].fail;
        if (s == PLAMO2_NOWHERE) return 0;
    }
}

/* The same for a model with odd links. */
uint32_t ggtok_plamo2_advance_odd(const plamo2_model *m, uint32_t s, const uint8_t *p, size_t len);

/* The best paths from each of a word's `chars` characters to its end: the row taken there, and the
 * cost. */
typedef struct plamo2_path {
    const plamo2_model *m;
    const int64_t *sum;
    const uint32_t *taken;
    size_t chars;
} plamo2_path;

/* Report to g->trace the word text[0..n) and its paths; then the token taken at a character, or the n
 * bytes that represent it, which are the last of `ids` and of the spans. */
bool ggtok_plamo2_trace_places(text_guard *g, const plamo2_path *path, const uint8_t *text,
                               size_t n);
bool ggtok_plamo2_trace_taken(text_guard *g, const plamo2_path *path, size_t at, const idbuf *ids,
                              size_t n);

/* Adds the odd links of b->odd to the automaton, whose failure links are complete. When these are
 * final, the second function computes what walks over them need. False: out of memory. */
bool ggtok_plamo2_link_odd(plamo2_build *b);
bool ggtok_plamo2_find_skips(plamo2_build *b);

#endif
