/* Counts the lists, objects and members in JSON text before Python parses it; see json_size.c. */
#ifndef GGTOK_PYTHON_JSON_SIZE_H
#define GGTOK_PYTHON_JSON_SIZE_H

#include <stddef.h>

/* Returns the number of lists and objects in JSON text plus that of the objects' members, counted by
 * the brackets and colons outside strings. The text may be malformed. */
size_t ggtok_json_size(const char *json, size_t n);

#endif
