/* A batch's ids as an Arrow array of type large_list<int32>. */
#ifndef GGTOK_ARROW_IDS_H
#define GGTOK_ARROW_IDS_H

#include "arrow/c_data.h"
#include "ggtok.h"

/* Immutable and reference-counted. Any thread may export it or drop a reference. */
typedef struct arrow_ids arrow_ids;

/* Takes ownership of *batch and sets *batch to NULL. `texts` are the batch's texts; a NULL `data`
 * marks a null. The result has one reference. Returns NULL if out of memory. */
arrow_ids *ggtok_arrow_ids_new(ggtok_batch **batch, const ggtok_bytes *texts, size_t n);
void ggtok_arrow_ids_drop(arrow_ids *ids); /* `ids` may be NULL */

/* Fills *out, which holds a new reference and shares the buffers of `ids`. Returns false if out of
 * memory. */
bool ggtok_arrow_ids_export(arrow_ids *ids, struct ArrowArray *out);

/* Fills *out with the schema, which is the same for all ids. Returns false if out of memory. */
bool ggtok_arrow_ids_schema(struct ArrowSchema *out);

size_t ggtok_arrow_ids_rows(const arrow_ids *ids);
size_t ggtok_arrow_ids_nulls(const arrow_ids *ids);

#endif
