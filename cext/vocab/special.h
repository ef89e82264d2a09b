/* Special tokens of a loaded vocabulary. */
#ifndef GGTOK_VOCAB_SPECIAL_H
#define GGTOK_VOCAB_SPECIAL_H

#include "vocab/vocab.h"

/* The value of special[GGTOK_EOT] while several tokens qualify and no caller has asked for the id.
 * ggtok_vocab_find_eot takes a few milliseconds to decide. */
enum { VOCAB_EOT_OPEN = -2 };
bool ggtok_vocab_find_eot(const vocab *v, int32_t *id); /* false: out of memory */

bool ggtok_vocab_is_eog(const vocab *v, int32_t id);

#endif
