/* Counts the containers in JSON text, before Python parses it; see containers.c. */
#ifndef GGTOK_PYTHON_CONTAINERS_H
#define GGTOK_PYTHON_CONTAINERS_H

#include <stddef.h>

/* Returns the number of brackets that open a list or an object in JSON text: those outside strings.
 * The text may be malformed. */
size_t ggtok_json_containers(const char *json, size_t n);

#endif
