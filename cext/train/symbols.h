/*
 * What is known of each symbol, and which two may be joined: what the rules differ in.
 */
#ifndef GGTOK_TRAIN_SYMBOLS_H
#define GGTOK_TRAIN_SYMBOLS_H

#include "base/mem.h"
#include "ggtok.h"

typedef struct symbol {
    uint32_t length;      /* initial symbols; 0: no symbol of this training */
    uint32_t left, right; /* what it was made of; of an initial symbol, its own number */
    uint16_t script;      /* of SentencePiece's pieces: 0 goes with any */
    uint8_t kind;         /* ggtok_symbol_kind bits */
    uint32_t text, n;     /* its bytes in `texts` (GGTOK_RULE_PIECES) */
} symbol;

typedef struct symbols {
    symbol *all;
    size_t n, cap; /* numbers are below n */
    bytebuf texts;
    ggtok_rule rule;
    uint32_t max_length;
    uint64_t total_length; /* of those that merges made */
    const ggtok_reserved *reserved;
    size_t n_reserved;
} symbols;

bool ggtok_symbols_init(symbols *s, const ggtok_merge_options *options); /* false: out of memory */
void ggtok_symbols_free(symbols *s);

/* May a symbol be made of these two? */
bool ggtok_symbols_may_join(const symbols *s, uint32_t left, uint32_t right);

/* The number for what is made of two: the next, or one that is reserved for such a text;
 * -1: it must not be made. */
int64_t ggtok_symbols_number(const symbols *s, uint32_t left, uint32_t right);

/* False: out of memory. */
bool ggtok_symbols_make(symbols *s, uint32_t number, uint32_t left, uint32_t right);

/* Of two pairs of equal count: `tie` decides; where it is equal too, symbols_before does. */
uint64_t ggtok_symbols_tie(const symbols *s, uint32_t left, uint32_t right);
bool ggtok_symbols_before(const symbols *s, const uint32_t a[2], const uint32_t b[2]);

#endif
