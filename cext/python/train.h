/* Results of training, for Python; see train.c. */
#ifndef GGTOK_PYTHON_TRAIN_H
#define GGTOK_PYTHON_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

/* Appends the functions of train.c, in their order there, to the Python list whose id() is `list`.
 * Returns false if out of memory. */
bool ggtok_train_bind(uintptr_t list);

#endif
