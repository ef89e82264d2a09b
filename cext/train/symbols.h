/*
 * The properties of symbols, and which two may be joined, in which the rules differ.
 */
#ifndef GGTOK_TRAIN_SYMBOLS_H
#define GGTOK_TRAIN_SYMBOLS_H

#include "base/mem.h"
#include "ggtok.h"

typedef struct symbol {
    uint32_t length;      /* initial symbols; 0: no symbol of this training */
    uint32_t left, right; /* the symbols it was made of; for an initial symbol, its own number */
    uint16_t script;      /* for SentencePiece's pieces; 0 fits any */
    uint8_t kind;         /* ggtok_symbol_kind bits */
    uint32_t text, n;     /* its bytes in `texts` (GGTOK_RULE_PIECES) */
} symbol;

typedef struct symbols {
    symbol *all;
    size_t n, cap; /* numbers are less than n */
    bytebuf texts;
    ggtok_rule rule;
    uint32_t max_length;
    uint64_t total_length; /* of the symbols made by merges */
    const ggtok_reserved *reserved;
    size_t n_reserved;
} symbols;

bool ggtok_symbols_init(symbols *s, const ggtok_merge_options *options); /* false: out of memory */
void ggtok_symbols_free(symbols *s);

/* May these two be joined to a symbol? */
bool ggtok_symbols_may_join(const symbols *s, uint32_t left, uint32_t right);

/* The number of the symbol made of two: the next free one, or one that is reserved for its text;
 * -1: it must not be made. */
int64_t ggtok_symbols_number(const symbols *s, uint32_t left, uint32_t right);

/* False: out of memory. */
bool ggtok_symbols_make(symbols *s, uint32_t number, uint32_t left, uint32_t right);

/* Order two pairs of equal count: by `tie` and, if that is equal, by symbols_before. */
uint64_t ggtok_symbols_tie(const symbols *s, uint32_t left, uint32_t right);
bool ggtok_symbols_before(const symbols *s, const uint32_t a[2], const uint32_t b[2]);

#endif
