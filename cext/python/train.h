/* What a training made, for Python; see train.c. */
#ifndef GGTOK_PYTHON_TRAIN_H
#define GGTOK_PYTHON_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

/* Appends to the Python list whose id() is `list` the functions of train.c, by their order there.
 * False: out of memory. */
bool ggtok_train_bind(uintptr_t list);

#endif
