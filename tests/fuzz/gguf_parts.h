/*
 * Parses and changes GGUF files for the fuzz targets, independently of the reader under test:
 * finds the key/values, changes one of them, and finds their end (after which fuzz_gguf has its
 * text). Little-endian files only.
 */
#ifndef FUZZ_GGUF_PARTS_H
#define FUZZ_GGUF_PARTS_H

#include <stddef.h>
#include <stdint.h>

enum { MAX_PARTS = 64 };

typedef struct part { /* the offsets of a key/value's parts */
    size_t start, key, key_n;
    size_t type;  /* the type, a u32 */
    size_t value; /* the value; in an array, the first element */
    size_t end;
    uint32_t kind, elem;
    uint64_t count; /* of an array's elements */
} part;

typedef struct parts {
    part at[MAX_PARTS];
    size_t n;
    size_t end; /* the offset after the last one that is whole */
} parts;

/* Finds the key/values up to the first malformed one. */
void parts_find(parts *p, const uint8_t *data, size_t size);

/* Makes one change to a file. Lengths and counts stay correct, unless they are what is changed.
 * Returns the new size, or 0 if the file has no key/values. */
size_t parts_mutate(uint8_t *data, size_t size, size_t max, unsigned seed);

#endif
