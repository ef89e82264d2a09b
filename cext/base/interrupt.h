/*
 * Lets the caller stop the encoding of a long text.
 *
 * Each loop whose length depends on the text counts its work. After a loop that had to stop, the
 * scratch memory is ready for the next text and no cache holds an incomplete result. A function
 * that returns a status returns GGTOK_ERR_STOPPED; one that returns a bool returns false, and its
 * caller gets the status from ggtok_error_failed (base/error.h).
 */
#ifndef GGTOK_INTERRUPT_H
#define GGTOK_INTERRUPT_H

#include "ggtok.h"

#include <stdbool.h>
#include <stddef.h>

/* Work between two calls to `keep_going`, in bytes of text or steps of about the same cost: less
 * than 10 ms even for the slowest models. */
enum { INTERRUPT_EVERY = 1 << 15 };

typedef struct interrupt {
    bool (*keep_going)(void *user); /* returns false to stop the call; NULL: never stops */
    void *user;
    size_t left; /* work until the next call to keep_going */
    bool stopped;
    ggtok_status refused; /* what a trace's callback ended the call with, or GGTOK_OK */
} interrupt;

/* Starts a new call. */
static inline void interrupt_begin(interrupt *in) {
    in->left = INTERRUPT_EVERY;
    in->stopped = false;
    in->refused = GGTOK_OK;
}

/* Counts `done` units of work. Returns true if the caller must stop. */
static inline bool interrupted(interrupt *in, size_t done) {
    if (!in || !in->keep_going) return false;
    if (done < in->left) {
        in->left -= done;
        return false;
    }
    in->left = INTERRUPT_EVERY;
    in->stopped = in->stopped || !in->keep_going(in->user);
    return in->stopped;
}

#endif
