/* All pairs of a layout as it stands, counted afresh. */
#ifndef GGTOK_TRAIN_RECOUNT_H
#define GGTOK_TRAIN_RECOUNT_H

#include "train/layout.h"
#include "train/pairs.h"

/* Fills `p`, which is empty, with the pairs that occur p->least times and may be joined.
 * False: out of memory. */
bool ggtok_recount(pairs *p, const layout *l);

#endif
