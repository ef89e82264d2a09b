/*
 * UGM's precompiled_charsmap: a table from byte sequences to replacements, made by
 * SentencePiece. It comes from the file and is untrusted, so every read is checked.
 *
 *   size of the array in bytes u32 | array of u32 | replacements, NUL-terminated
 *
 * all little-endian, whatever the file's byte order (it is an array of bytes).
 * The array is a double array with XOR addressing:
 *
 *   unit:  bits 0-7 label (bit 31 set: not a child) | bit 8 has a replacement
 *          | bit 9 base is in units of 256 | bits 10-30 base
 *   unit[i ^ base(i) ^ c] is i's child for byte c if its label is c; bits 0-30 of
 *   unit[i ^ base(i)] are the offset of i's replacement.
 */
#ifndef GGTOK_UGM_CHARSMAP_H
#define GGTOK_UGM_CHARSMAP_H

#include "base/error.h"
#include "gguf/gguf.h"

/* Maximum length of a replacement, as a multiple of the length of its source, so that a short text
 * can't become very many ids. NFKC, which real charsmaps contain, needs 11. */
enum { CHARSMAP_MOST = 32 };

typedef struct charsmap {
    uint32_t *unit; /* the array; NULL: the file has no charsmap */
    size_t n_units;
    uint8_t *text; /* the replacements */
    size_t text_n;
} charsmap;

/* Reads the file's charsmap, if it has one. Returns GGTOK_ERR_VOCAB for a charsmap that llama.cpp
 * refuses at load. *m must be zeroed; free it even after a failure. */
ggtok_status ggtok_charsmap_load(charsmap *m, const gguf *g, ggtok_error *err);
void ggtok_charsmap_free(charsmap *m);

/*
 * Finds the longest sequence at p[0..n) that has a replacement. Returns its length and sets *with
 * and *with_n to the replacement; returns 0 if there is none. Sets *fault to a message where
 * llama.cpp throws (a link outside the array, a replacement outside the text or without an end),
 * and if the replacement is longer than CHARSMAP_MOST allows.
 */
size_t ggtok_charsmap_match(const charsmap *m, const uint8_t *p, size_t n, const uint8_t **with,
                            size_t *with_n, const char **fault);

/* Whether ASCII byte c, if followed by another ASCII byte, never matches anything. */
bool ggtok_charsmap_keeps_ascii(const charsmap *m, uint8_t c);

/* What happens to a character if no combining mark from U+0300 to U+037F follows. KEPT: it is kept.
 * KEPT_UNJOINED: it is kept unless a mark for which charsmap_joins is true follows. REPLACED: it is
 * replaced unless such a mark follows. UNSURE: not known. */
typedef enum charsmap_fate {
    CHARSMAP_UNSURE,
    CHARSMAP_KEPT,
    CHARSMAP_KEPT_UNJOINED,
    CHARSMAP_REPLACED
} charsmap_fate;
charsmap_fate ggtok_charsmap_fate(const charsmap *m, const uint8_t *p, size_t len);

/* Whether p[0..len) is another mark that NFKC composes with the preceding character, in scripts
 * that use many such marks: the voicing marks of kana (U+3099, U+309A, U+FF9E, U+FF9F) and Arabic's
 * U+0653 to U+0655. */
static inline bool charsmap_joins(const uint8_t *p, size_t len) {
    if (len == 2) return p[0] == 0xD9 && (uint8_t)(p[1] - 0x93) < 3;
    return len == 3 && ((p[0] == 0xE3 && p[1] == 0x82 && (p[2] == 0x99 || p[2] == 0x9A)) ||
                        (p[0] == 0xEF && p[1] == 0xBE && (p[2] == 0x9E || p[2] == 0x9F)));
}

/* Whether the charsmap treats byte c (not 0) as one space in any context: it keeps c (a space) or
 * replaces c by one space, and no longer sequence contains c. May return false even if it does. */
bool ggtok_charsmap_is_space(const charsmap *m, uint8_t c);

#endif
