/* The lattice of the best paths through a text; models/ugm/nbest.c fills it. */
#ifndef GGTOK_NBEST_H
#define GGTOK_NBEST_H

#include "base/error.h"
#include "models/sampling.h"

/* Starts the lattice of a text with the empty path. Returns false if out of memory. */
bool ggtok_nbest_begin(sampling *s);

/* Makes room for a fragment of n bytes after the last one; `ids_before` ids of special tokens
 * precede it. Sets *at and *counts to the paths to its first position and their number, and *merged
 * to scratch memory for s->nbest paths. */
ggtok_status ggtok_nbest_begin_fragment(sampling *s, size_t n, size_t ids_before, nbest_path **at,
                                        uint32_t **counts, nbest_path **merged, ggtok_error *err);

/* Returns the paths to the end of the text, best first, and sets *n to their number. */
const nbest_path *ggtok_nbest_paths(const sampling *s, uint32_t *n);

/* Appends the ids of a path, and, where they occur between its fragments, others->data. Adjacent
 * unknown ids of a fragment are fused. Returns false if out of memory. */
bool ggtok_nbest_ids(const sampling *s, uint32_t rank, const idbuf *others, int32_t unknown,
                     idbuf *out);

/* Returns the error for a number of paths that the text is too long for. */
ggtok_status ggtok_nbest_too_long(size_t n, uint32_t most, ggtok_error *err);

#endif
