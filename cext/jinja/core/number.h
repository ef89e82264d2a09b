/* Numbers from and to text, independent of the locale. */
#ifndef GGTOK_JINJA_CORE_NUMBER_H
#define GGTOK_JINJA_CORE_NUMBER_H

#include <stdbool.h>

#include "jinja/core/arena.h"

enum { JINJA_NUMBER_ROOM = 512 }; /* bytes that suffice for each format below */

/* Reads decimal digits; false if the number exceeds 64 bits. */
bool ggtok_jinja_parse_int(jinja_arena *mem, const uint8_t *p, size_t n, bool negative,
                           int64_t *out);
/* Reads the number that p[0..n) begins with, as C's strtod does. Returns its length; 0: none. */
size_t ggtok_jinja_strtod(jinja_arena *mem, const uint8_t *p, size_t n, double *out);
/* The same, but p[0..n) must be a number as a whole. */
bool ggtok_jinja_parse_float(jinja_arena *mem, const uint8_t *p, size_t n, double *out);
/* Whether f is zero or normal; std::stod rejects other results. */
bool ggtok_jinja_float_is_normal(double f);

/* Formats like printf's %.*f, %.*e or %.*g in the C locale, with flag # if `alternate`. */
size_t ggtok_jinja_format(jinja_arena *mem, char out[JINJA_NUMBER_ROOM], char type, int precision,
                          bool alternate, double f);
/* Python's repr: the shortest decimal that reads back as f. */
size_t ggtok_jinja_format_repr(jinja_arena *mem, char out[JINJA_NUMBER_ROOM], double f);
size_t ggtok_jinja_format_int(char out[32], int64_t i);

#endif
