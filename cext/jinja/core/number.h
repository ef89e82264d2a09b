/* Numbers from text and to text, whatever the process's locale. */
#ifndef GGTOK_JINJA_CORE_NUMBER_H
#define GGTOK_JINJA_CORE_NUMBER_H

#include <stdbool.h>

#include "jinja/core/arena.h"

enum { JINJA_NUMBER_ROOM = 512 }; /* bytes that any of the formats below may take */

/* Decimal digits; false: beyond 64 bits. */
bool ggtok_jinja_parse_int(jinja_arena *mem, const uint8_t *p, size_t n, bool negative,
                           int64_t *out);
/* What C's strtod reads from the beginning of p[0..n): how many bytes; 0: no number. */
size_t ggtok_jinja_strtod(jinja_arena *mem, const uint8_t *p, size_t n, double *out);
/* The same of all of it. */
bool ggtok_jinja_parse_float(jinja_arena *mem, const uint8_t *p, size_t n, double *out);
/* Zero or normal: std::stod refuses the others. */
bool ggtok_jinja_float_is_normal(double f);

/* Formats like printf's %.*f, %.*e, %.*g in the C locale, with flag # for %g if `alternate`. */
size_t ggtok_jinja_format(jinja_arena *mem, char out[JINJA_NUMBER_ROOM], char type, int precision,
                          bool alternate, double f);
/* Python's repr: the shortest digits that give the same number. */
size_t ggtok_jinja_format_repr(jinja_arena *mem, char out[JINJA_NUMBER_ROOM], double f);
size_t ggtok_jinja_format_int(char out[32], int64_t i);

#endif
