/* Counts all pairs of a layout in its current state. */
#ifndef GGTOK_TRAIN_RECOUNT_H
#define GGTOK_TRAIN_RECOUNT_H

#include "train/layout.h"
#include "train/pairs.h"

/* Fills the empty `p` with the pairs that occur at least p->least times and may be joined. Returns
 * false if out of memory. */
bool ggtok_recount(pairs *p, const layout *l);

#endif
