/* Converts numbers from and to text, independently of the locale. */
#ifndef GGTOK_JINJA_CORE_NUMBER_H
#define GGTOK_JINJA_CORE_NUMBER_H

#include <stdbool.h>

#include "jinja/core/arena.h"

enum { JINJA_NUMBER_ROOM = 512 }; /* bytes; enough for each format below */

/* Reads decimal digits. Returns false if the number doesn't fit in an int64_t. */
bool ggtok_jinja_parse_int(jinja_arena *mem, const uint8_t *p, size_t n, bool negative,
                           int64_t *out);
/* Reads a number at the beginning of p[0..n), like C's strtod. Returns its length in bytes; 0 if
 * there is none. */
size_t ggtok_jinja_strtod(jinja_arena *mem, const uint8_t *p, size_t n, double *out);
/* Like ggtok_jinja_strtod, but returns whether all of p[0..n) is a number. */
bool ggtok_jinja_parse_float(jinja_arena *mem, const uint8_t *p, size_t n, double *out);
/* Whether f is zero or normal; std::stod rejects other results. */
bool ggtok_jinja_float_is_normal(double f);

/* Formats like printf's %.*f, %.*e or %.*g in the C locale, with flag # if `alternate`. Returns the
 * length. */
size_t ggtok_jinja_format(jinja_arena *mem, char out[JINJA_NUMBER_ROOM], char type, int precision,
                          bool alternate, double f);
/* Formats like Python's repr: the shortest decimal that reads back as f. Returns the length. */
size_t ggtok_jinja_format_repr(jinja_arena *mem, char out[JINJA_NUMBER_ROOM], double f);
/* Formats a double as llama.cpp's JSON library: 1.0, 1e+15, 1e-05; null if it isn't finite. Returns
 * the length. */
size_t ggtok_jinja_format_json(jinja_arena *mem, char out[JINJA_NUMBER_ROOM], double f);
size_t ggtok_jinja_format_int(char out[32], int64_t i);
size_t ggtok_jinja_format_unsigned(char out[32], uint64_t i);

#endif
