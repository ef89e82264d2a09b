/* See ggtok.h for what a pool is. */
#ifndef GGTOK_POOL_H
#define GGTOK_POOL_H

#include "threads.h"
#include "tokenizer.h"

struct ggtok_pool {
    const ggtok_tokenizer *tok;
    lock lock;           /* of what follows */
    ggtok_context *idle; /* linked by their `next`, the one used last in front */
    unsigned round;      /* contexts of earlier rounds are freed when they come back */
};

#endif
