/* Properties of code points: Unicode 15.1.0, as in llama.cpp's tables. */
#ifndef GGTOK_UNICODE_H
#define GGTOK_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

enum { /* general category by its first letter; UNICODE_UNDEFINED is Cn */
       UNICODE_UNDEFINED = 1 << 0,
       UNICODE_NUMBER = 1 << 1,
       UNICODE_LETTER = 1 << 2,
       UNICODE_SEPARATOR = 1 << 3,
       UNICODE_MARK = 1 << 4,
       UNICODE_PUNCTUATION = 1 << 5,
       UNICODE_SYMBOL = 1 << 6,
       UNICODE_CONTROL = 1 << 7,    /* C except Cn */
       UNICODE_WHITESPACE = 1 << 8, /* the 25 code points of White_Space */
       UNICODE_HAN = 1 << 9         /* the blocks of llama.cpp's unicode_cpt_is_han */
};

unsigned ggtok_unicode_flags(uint32_t cpt);    /* any value; UNDEFINED above 10FFFF */
uint32_t ggtok_unicode_to_lower(uint32_t cpt); /* the simple one-to-one map */
uint32_t
ggtok_unicode_nfd_first(uint32_t cpt); /* first code point of the canonical decomposition */

/* Classes of code points, from gen/unicode_tables.py. */
enum { UNICODE_BLOCK_BITS = 8 };
extern const uint8_t ggtok_unicode_class_index[], ggtok_unicode_class_block[];

static inline unsigned unicode_class(uint32_t cpt) { /* cpt <= 10FFFF */
    return ggtok_unicode_class_block[(unsigned)ggtok_unicode_class_index[cpt >> UNICODE_BLOCK_BITS]
                                         << UNICODE_BLOCK_BITS |
                                     (cpt & ((1u << UNICODE_BLOCK_BITS) - 1))];
}

#endif
