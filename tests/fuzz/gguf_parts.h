/*
 * A GGUF file taken apart, for the fuzz targets: where its key/values are, how to
 * change one of them, and what follows them (the text that fuzz_gguf encodes).
 * Independent of the reader under test. Little-endian files only.
 */
#ifndef FUZZ_GGUF_PARTS_H
#define FUZZ_GGUF_PARTS_H

#include <stddef.h>
#include <stdint.h>

enum { MAX_PARTS = 64 };

typedef struct part { /* a key/value, by offsets */
    size_t start, key, key_n;
    size_t type;  /* of the u32 */
    size_t value; /* of the value; of the first element, for an array */
    size_t end;
    uint32_t kind, elem;
    uint64_t count; /* elements of an array */
} part;

typedef struct parts {
    part at[MAX_PARTS];
    size_t n;
    size_t end; /* after the last whole one */
} parts;

/* Finds the key/values up to the first that is broken. */
void parts_find(parts *p, const uint8_t *data, size_t size);

/* Changes one thing about a file, keeping lengths and counts right, but for some
 * that it makes wrong. Returns the new size, 0 if the file has no part to change. */
size_t parts_mutate(uint8_t *data, size_t size, size_t max, unsigned seed);

#endif
