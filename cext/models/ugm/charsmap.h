/*
 * UGM's precompiled_charsmap: a table from byte sequences to replacements, made
 * by SentencePiece. Read defensively: nothing in it is trusted.
 *
 *   size of the array in bytes u32 | array of u32 | replacements, NUL-terminated
 *
 * all little-endian, whatever the file's byte order (it is an array of bytes).
 * The array is a double array with XOR addressing:
 *
 *   unit:  bits 0-7 label (bit 31 set: not a child) | bit 8 has a replacement
 *          | bit 9 base is in units of 256 | bits 10-30 base
 *   unit[i ^ base(i) ^ c] is i's child for byte c if its label is c; the one at
 *   i ^ base(i) holds, in bits 0-30, where i's replacement begins.
 */
#ifndef GGTOK_UGM_CHARSMAP_H
#define GGTOK_UGM_CHARSMAP_H

#include "base/error.h"
#include "gguf/gguf.h"

/* How many times as long as what it replaces a replacement may be, in bytes, so that a text
 * does not become ids out of proportion. Unicode's NFKC, which real maps hold, has 11. */
enum { CHARSMAP_MOST = 32 };

typedef struct charsmap {
    uint32_t *unit; /* NULL if the file has no charsmap */
    size_t n_units;
    uint8_t *text; /* the replacements */
    size_t text_n;
} charsmap;

/* Reads the file's charsmap; having none is fine. What llama.cpp refuses at load
 * is GGTOK_ERR_VOCAB. The map must be zeroed; free it even after a failure. */
ggtok_status ggtok_charsmap_load(charsmap *m, const gguf *g, ggtok_error *err);
void ggtok_charsmap_free(charsmap *m);

/*
 * The longest sequence at p[0..n) that has a replacement: its length, with the
 * replacement in *with, *with_n; 0 if there is none. Where llama.cpp throws (a
 * link out of the array, a replacement outside the text or without an end), and
 * where a replacement is longer than CHARSMAP_MOST allows, *fault is set to a sentence.
 */
size_t ggtok_charsmap_match(const charsmap *m, const uint8_t *p, size_t n, const uint8_t **with,
                            size_t *with_n, const char **fault);

/* Does ASCII byte c, followed by another ASCII byte, never match anything? */
bool ggtok_charsmap_keeps_ascii(const charsmap *m, uint8_t c);

/* What becomes of the character p[0..len), if no combining mark of U+0300 to U+037F follows: it is
 * kept; kept, if nothing that charsmap_joins does, either; replaced, if that doesn't. */
typedef enum charsmap_fate {
    CHARSMAP_UNSURE,
    CHARSMAP_KEPT,
    CHARSMAP_KEPT_UNJOINED,
    CHARSMAP_REPLACED
} charsmap_fate;
charsmap_fate ggtok_charsmap_fate(const charsmap *m, const uint8_t *p, size_t len);

/* The other marks that NFKC composes with what stands before them, in scripts that have many of them:
 * the voicing marks of kana (U+3099, U+309A, U+FF9E, U+FF9F) and Arabic's U+0653 to U+0655. */
static inline bool charsmap_joins(const uint8_t *p, size_t len) {
    if (len == 2) return p[0] == 0xD9 && (uint8_t)(p[1] - 0x93) < 3;
    return len == 3 && ((p[0] == 0xE3 && p[1] == 0x82 && (p[2] == 0x99 || p[2] == 0x9A)) ||
                        (p[0] == 0xEF && p[1] == 0xBE && (p[2] == 0x9E || p[2] == 0x9F)));
}

/* Is byte c (not 0) one space to the map, whatever stands around it: a space that it leaves
 * alone, or what it replaces by one, and part of no longer sequence? May say no wrongly. */
bool ggtok_charsmap_is_space(const charsmap *m, uint8_t c);

#endif
