/*
 * Locks that outlive a call, which a child process may need after a fork.
 *
 * A child has the forking thread alone. If another thread held a lock at that moment, nobody would
 * release it in the child, and what it protects might be half changed. So a fork takes every shared
 * lock before, and both processes release them after. A thread therefore never takes a second lock
 * while it holds a shared one, and never forks or calls back while it does.
 *
 * Every lock of the library is a shared lock, except those of a single call (api/batch.c), which no
 * other call can reach: tests/test_architecture.py knows them.
 */
#ifndef GGTOK_SHARED_LOCK_H
#define GGTOK_SHARED_LOCK_H

#include "base/threads.h"

typedef struct shared_lock {
    lock lock;
    struct shared_lock *next, **link; /* among those that objects have */
} shared_lock;

/* The locks of the process. */
typedef enum process_lock { LOCK_POOLS, LOCK_TEMPLATES, N_PROCESS_LOCKS } process_lock;
extern shared_lock ggtok_process_locks[N_PROCESS_LOCKS];

/* False: the system has no memory to remember what a fork has to do. Use nothing that needs a
 * process's lock then. */
bool ggtok_forks_are_guarded(void);

/* An object's lock, which stays where it is. */
void ggtok_shared_lock_init(shared_lock *l);
void ggtok_shared_lock_free(shared_lock *l);

static inline void shared_lock_take(shared_lock *l) {
    lock_take(&l->lock);
}
static inline void shared_lock_give(shared_lock *l) {
    lock_give(&l->lock);
}

#endif
