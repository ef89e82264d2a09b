/*
 * Asking the caller, now and then, whether to go on with a long text.
 *
 * Loops whose length the text decides count what they have done. A loop that is told to stop
 * fails as if memory had run out: all scratch is fit for the next text, nothing half done is in
 * a cache. Whoever began the call (api/encode.c) knows the reason from `stopped`.
 */
#ifndef GGTOK_INTERRUPT_H
#define GGTOK_INTERRUPT_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of text, or steps of about as much work, between two questions: less than 10 ms, of
 * the slowest models. */
enum { INTERRUPT_EVERY = 1 << 15 };

typedef struct interrupt {
    bool (*go_on)(void *user); /* NULL: nobody is asked */
    void *user;
    size_t left; /* until the next question */
    bool stopped;
} interrupt;

/* A new call. */
static inline void interrupt_begin(interrupt *in) {
    in->left = INTERRUPT_EVERY;
    in->stopped = false;
}

/* Counts what was done. True: stop. */
static inline bool interrupted(interrupt *in, size_t done) {
    if (!in || !in->go_on) return false;
    if (done < in->left) {
        in->left -= done;
        return false;
    }
    in->left = INTERRUPT_EVERY;
    in->stopped = in->stopped || !in->go_on(in->user);
    return in->stopped;
}

#endif
