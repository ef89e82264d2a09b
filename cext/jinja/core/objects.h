/* The objects behind the rarer types of values. */
#ifndef GGTOK_JINJA_CORE_OBJECTS_H
#define GGTOK_JINJA_CORE_OBJECTS_H

#include "jinja/core/value.h"

/* llama.cpp's `loop`: a dict that stays empty until ggtok_jinja_loop_fill is called. */
typedef struct jinja_loop {
    jinja_dict dict; /* must be first: a JINJA_LOOP's as.dict points here */
    bool filled;
    uint32_t index0, n;
    jinja_value previous, next;
} jinja_loop;

/* Fills the dict of llama.cpp's `loop`. The dict stays empty until the template needs all of it. */
void ggtok_jinja_loop_fill(jinja_arena *mem, jinja_dict *loop);

/* The result of transformers' range(). */
struct jinja_range {
    int64_t start, stop, step;
    int64_t n;
};

/* Returns the i-th number, 0 <= i < n. i * step may wrap around, but the sum fits in 64 bits. */
static inline int64_t jinja_range_at(const jinja_range *r, int64_t i) {
    return (int64_t)((uint64_t)r->start + (uint64_t)i * (uint64_t)r->step);
}

typedef enum jinja_object_kind {
    JINJA_LOOP_CONTEXT,
    JINJA_CYCLER,
    JINJA_JOINER,
    JINJA_SELF
} jinja_object_kind;

/* Objects with state: `loop`, cycler(), joiner(). `self` has no attributes, since chat templates
 * have no {% block %}. */
struct jinja_object {
    jinja_object_kind kind;
    jinja_list *items; /* the list or generator of a loop; the values of a cycler */
    bool lazy;         /* whether a loop iterates over a generator */
    uint32_t next;     /* index of the next item */
    jinja_list *kept;  /* items fetched so far that satisfy the loop's condition */
    uint32_t index0, depth0;
    jinja_value last;                 /* last argument of loop.changed() */
    const struct jinja_node *node;    /* node of the loop */
    struct jinja_frame *frame, *test; /* frames around the loop and of its condition */
    jinja_text *text;                 /* a joiner's separator */
};

#endif
