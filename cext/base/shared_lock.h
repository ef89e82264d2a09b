/*
 * Locks that outlive a call and stay usable in a child process after a fork.
 *
 * A child process has only the thread that forked. If another thread held a lock at that moment,
 * nobody would release it in the child, and the data that it protects might be inconsistent.
 * Therefore every shared lock is acquired before a fork, and released afterwards in both processes.
 * A thread that holds a shared lock must not acquire a second lock, fork, or call a callback.
 *
 * Every lock of the library is a shared lock, except those that belong to a single call
 * (api/batch.c), which no other call can reach; tests/test_architecture.py lists them.
 */
#ifndef GGTOK_SHARED_LOCK_H
#define GGTOK_SHARED_LOCK_H

#include "base/threads.h"

typedef struct shared_lock {
    lock lock;
    struct shared_lock *next, **link; /* links in the list of all objects' locks */
} shared_lock;

/* Locks that belong to the process, not to an object. */
typedef enum process_lock { LOCK_POOLS, N_PROCESS_LOCKS } process_lock;
extern shared_lock ggtok_process_locks[N_PROCESS_LOCKS];

/* Returns false if the system had no memory to register the fork handlers. Functions that need a
 * process lock must then fail. */
bool ggtok_forks_are_guarded(void);

/* Initializes the lock of an object. The lock must not move in memory until it is freed. */
void ggtok_shared_lock_init(shared_lock *l);
void ggtok_shared_lock_free(shared_lock *l);

static inline void shared_lock_take(shared_lock *l) {
    lock_acquire(&l->lock);
}
static inline void shared_lock_give(shared_lock *l) {
    lock_release(&l->lock);
}

#endif
