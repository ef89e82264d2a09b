/* What values of the rarer types point to. */
#ifndef GGTOK_JINJA_CORE_OBJECTS_H
#define GGTOK_JINJA_CORE_OBJECTS_H

#include "jinja/core/value.h"

/* llama.cpp's `loop`: a dict that is filled once more than a field of it is wanted. */
typedef struct jinja_loop {
    jinja_dict dict; /* first: JINJA_LOOP's as.dict points here */
    bool filled;
    uint32_t index0, n;
    jinja_value previous, next;
} jinja_loop;

/* transformers' range(). */
struct jinja_range {
    int64_t start, stop, step;
    int64_t n;
};

/* The i-th number, 0 <= i < n. Only a product on the way to it may be beyond 64 bits. */
static inline int64_t jinja_range_at(const jinja_range *r, int64_t i) {
    return (int64_t)((uint64_t)r->start + (uint64_t)i * (uint64_t)r->step);
}

typedef enum jinja_object_kind {
    JINJA_LOOP_CONTEXT,
    JINJA_CYCLER,
    JINJA_JOINER,
    JINJA_SELF
} jinja_object_kind;

/* What is called or asked for its attributes, and changes: `loop`, cycler(), joiner(). `self` would
 * have the template's blocks, of which there are none. */
struct jinja_object {
    jinja_object_kind kind;
    jinja_list *items; /* a loop's source, perhaps a generator's; a cycler's values */
    bool lazy;         /* a loop's: it is a generator's */
    uint32_t next;     /* of them */
    jinja_list *kept;  /* those that hold the loop's condition so far */
    uint32_t index0, depth0;
    jinja_value last;                 /* loop.changed() */
    const struct jinja_node *node;    /* the loop */
    struct jinja_frame *frame, *test; /* where it runs, and where its condition does */
    jinja_text *text;                 /* a joiner's separator */
};

#endif
