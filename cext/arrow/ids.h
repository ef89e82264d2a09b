/* A batch's ids as an Arrow array of type large_list<int32>. */
#ifndef GGTOK_ARROW_IDS_H
#define GGTOK_ARROW_IDS_H

#include "arrow/c_data.h"
#include "ggtok.h"

/* Immutable and reference-counted. Any thread may export it or drop a reference. */
typedef struct arrow_ids arrow_ids;

/* Takes over *batch, whose texts were `texts` (NULL data: a null), and sets *batch to NULL. The result
 * has one reference. NULL: out of memory. */
arrow_ids *ggtok_arrow_ids_new(ggtok_batch **batch, const ggtok_bytes *texts, size_t n);
void ggtok_arrow_ids_drop(arrow_ids *ids); /* NULL is allowed */

/* Fills *out, which holds a reference; its buffers are those of `ids`. False: out of memory. */
bool ggtok_arrow_ids_export(arrow_ids *ids, struct ArrowArray *out);

/* The schema, the same for all. */
bool ggtok_arrow_ids_schema(struct ArrowSchema *out);

size_t ggtok_arrow_ids_rows(const arrow_ids *ids);
size_t ggtok_arrow_ids_nulls(const arrow_ids *ids);

#endif
