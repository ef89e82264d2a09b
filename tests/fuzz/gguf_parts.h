/*
 * Parses and changes GGUF files for the fuzz targets, independently of the reader under test: finds
 * the key/value pairs, changes one of them, and finds their end (where fuzz_gguf's text begins).
 * Supports only little-endian files.
 */
#ifndef FUZZ_GGUF_PARTS_H
#define FUZZ_GGUF_PARTS_H

#include <stddef.h>
#include <stdint.h>

enum { MAX_PARTS = 64 };

typedef struct part { /* offsets of the parts of one key/value pair */
    size_t start, key, key_n;
    size_t type;  /* offset of the type, a u32 */
    size_t value; /* offset of the value or, in an array, of the first element */
    size_t end;
    uint32_t kind, elem;
    uint64_t count; /* number of an array's elements */
} part;

typedef struct parts {
    part at[MAX_PARTS];
    size_t n;
    size_t end; /* the offset after the last complete pair */
} parts;

/* Finds the key/value pairs before the first malformed pair. */
void parts_find(parts *p, const uint8_t *data, size_t size);

/* Makes one change to a file. Adjusts lengths and counts, unless the change is a wrong length or
 * count. Returns the new size, or 0 if the file has no key/value pairs. */
size_t parts_mutate(uint8_t *data, size_t size, size_t max, unsigned seed);

#endif
