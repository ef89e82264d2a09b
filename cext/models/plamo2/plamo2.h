/* PLaMo's automaton, shared by the code that builds and walks it (models/plamo2/plamo2.c), the code
 * for tokens in malformed UTF-8 (models/plamo2/odd.c), and the code that reports steps
 * (models/plamo2/trace.c). */
#ifndef GGTOK_MODEL_PLAMO2_H
#define GGTOK_MODEL_PLAMO2_H

#include "index/adjacency.h"
#include "index/trie.h"
#include "models/model.h"
#include "unicode/utf8.h"

#define PLAMO2_NOWHERE UINT32_MAX

typedef struct state { /* one per unit of the trie; meaningful only at the ends of characters */
    uint32_t fail;     /* the longest proper prefix that is a state; NOWHERE: stop here */
    uint32_t row;      /* the first row to try: that of the longest usable prefix */
} state;

typedef struct row { /* a usable token; row 0 ends the list and represents one unknown character */
    int32_t score, id;
    uint32_t length; /* length in characters */
    uint32_t next;   /* row of the next shorter token; NOWHERE: none, not even row 0 */
} row;

/* A link that a token in malformed UTF-8 adds to llama.cpp's table. */
typedef struct odd_link {
    uint32_t from, cpt, to;
} odd_link;

typedef struct plamo2_model {
    trie t; /* the reversed tokens, byte by byte, without tails */
    state *state;
    row *row;
    size_t n_rows;
    odd_link *odd; /* sorted by `from`, then by `cpt` */
    size_t n_odd;
    /* By state, if there are odd links: the next state on its failure path that continues with a
     * character with which the state itself doesn't. */
    uint32_t *skip;
    adjacency pairs;
    bool whole; /* texts can't be cut into pieces */
    bool parts; /* the model is PLaMo3 */
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
    bytebuf text;    /* the keys, which are reversed before they enter the trie */
    uint32_t *off;   /* [n + 1]: key i is the reverse of text[off[i] .. off[i + 1]) */
    uint32_t *token; /* id of key i; NOWHERE: none, only the key's suffixes matter */
    size_t n;
    idbuf odd;            /* ids of tokens in malformed UTF-8 */
    plamo2_state *states; /* all states except the root, sorted by depth */
    size_t n_states;
} plamo2_build;

/* Like ggtok_utf8_encode, but also encodes values above U+10FFFF (up to 1FFFFF), in four bytes. */
size_t ggtok_plamo2_encode(uint32_t c, uint8_t out[4]);

/* Appends the shortest forms of all characters. Returns false if out of memory or interrupted. */
bool ggtok_plamo2_repair(bytebuf *out, const uint8_t *p, size_t n, interrupt *in);

/* Moves from unit s over the character p[0..len), last byte first. Returns 0 if there is no such
 * unit. */
static inline uint32_t plamo2_step(const trie *t, uint32_t s, const uint8_t *p, size_t len) {
    do {
        s = trie_child(t, s, p[--len]);
    } while (s && len);
    return s;
}

/* Moves from state s over one more character, following failure links. Returns 0 at the root. */
static inline uint32_t plamo2_advance(const plamo2_model *m, uint32_t s, const uint8_t *p,
                                      size_t len) {
    for (;;) {
        uint32_t next = plamo2_step(&m->t, s, p, len);
        if (next || !s) return next;
        s = m->state[s].fail;
        if (s == PLAMO2_NOWHERE) return 0;
    }
}

/* Like plamo2_advance, for a model with odd links. */
uint32_t ggtok_plamo2_advance_odd(const plamo2_model *m, uint32_t s, const uint8_t *p, size_t len);

/* The best paths from each of the `chars` characters of a word to the word's end: taken[i] is the
 * first row of the path from character i, and sum[i] is the path's cost. */
typedef struct plamo2_path {
    const plamo2_model *m;
    const int64_t *sum;
    const uint32_t *taken;
    size_t chars;
} plamo2_path;

/* Report to rec->trace: ggtok_plamo2_trace_places, the word text[0..n) and its paths;
 * ggtok_plamo2_trace_taken, the token at character `at` or, if the character fell back to bytes,
 * its n byte tokens, which are the last of `ids` and have the last spans. */
bool ggtok_plamo2_trace_places(recorder *rec, const plamo2_path *path, const uint8_t *text,
                               size_t n);
bool ggtok_plamo2_trace_taken(recorder *rec, const plamo2_path *path, size_t at, const idbuf *ids,
                              size_t n);

/* ggtok_plamo2_link_odd adds the odd links of the tokens in b->odd to the automaton, whose failure
 * links must be complete. ggtok_plamo2_find_skips computes m->skip from the final failure links.
 * Both return false if out of memory. */
bool ggtok_plamo2_link_odd(plamo2_build *b);
bool ggtok_plamo2_find_skips(plamo2_build *b);

#endif
