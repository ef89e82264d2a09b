/* The file's key/values, kept after loading: scalars and strings with their values, arrays only
 * with type and count. */
#ifndef GGTOK_METADATA_H
#define GGTOK_METADATA_H

#include "gguf/gguf.h"

typedef struct metadata {
    ggtok_kv *kv;
    size_t n;
    uint8_t *bytes; /* the bytes of the keys and strings */
    size_t end;     /* offset in the file after the last key/value */
} metadata;

bool ggtok_metadata_copy(metadata *m, const gguf *g); /* false: out of memory */
void ggtok_metadata_free(metadata *m);

#endif
