/*
 * The properties of symbols, and the rules for which two symbols may be joined.
 */
#ifndef GGTOK_TRAIN_SYMBOLS_H
#define GGTOK_TRAIN_SYMBOLS_H

#include "base/mem.h"
#include "ggtok_train.h"

typedef struct symbol {
    uint32_t length;      /* number of initial symbols in it; 0: not a symbol in this training */
    uint32_t left, right; /* the symbols that were merged; both its own index if it is initial */
    uint16_t script;      /* for SentencePiece's pieces; 0 matches any script */
    uint8_t kind;         /* a combination of GGTOK_SYMBOL_ bits */
    uint32_t text, n;     /* position and length of its bytes in `texts` (GGTOK_RULE_PIECES) */
} symbol;

typedef struct symbols {
    symbol *all;
    size_t n, cap; /* all numbers are less than n */
    bytebuf texts;
    ggtok_rule rule;
    uint32_t max_length;
    uint64_t total_length; /* total length of the symbols made by merges */
    const ggtok_reserved *reserved;
    size_t n_reserved;
} symbols;

bool ggtok_symbols_init(symbols *s, const ggtok_merge_options *options); /* false: out of memory */
void ggtok_symbols_free(symbols *s);

/* Whether the two symbols may be joined. */
bool ggtok_symbols_may_join(const symbols *s, uint32_t left, uint32_t right);

/* Returns the number of the symbol made from two symbols: the next free number, or the one reserved
 * for its text; -1 if it must not be made. */
int64_t ggtok_symbols_number(const symbols *s, uint32_t left, uint32_t right);

/* Makes the symbol `number` from two symbols. Returns false if out of memory. */
bool ggtok_symbols_make(symbols *s, uint32_t number, uint32_t left, uint32_t right);

/* Order two pairs of equal count: first by ggtok_symbols_tie, then by ggtok_symbols_before. */
uint64_t ggtok_symbols_tie(const symbols *s, uint32_t left, uint32_t right);
bool ggtok_symbols_before(const symbols *s, const uint32_t a[2], const uint32_t b[2]);

#endif
