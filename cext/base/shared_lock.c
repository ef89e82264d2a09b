#include "base/shared_lock.h"

shared_lock ggtok_process_locks[N_PROCESS_LOCKS] = {
    [LOCK_POOLS] = {.lock = LOCK_STATIC},
};

static lock registry = LOCK_STATIC;
static shared_lock *first; /* head of the list of all objects' locks */

void ggtok_shared_lock_init(shared_lock *l) {
    lock_init(&l->lock);
    lock_acquire(&registry);
    l->next = first;
    l->link = &first;
    if (first) first->link = &l->next;
    first = l;
    lock_release(&registry);
}

void ggtok_shared_lock_free(shared_lock *l) {
    lock_acquire(&registry);
    *l->link = l->next;
    if (l->next) l->next->link = l->link;
    lock_release(&registry);
    lock_free(&l->lock);
}

#if defined(_WIN32) || defined(__wasi__) /* no fork */

bool ggtok_forks_are_guarded(void) {
    return true;
}

#else

static int not_guarded; /* errno from pthread_atfork; 0: it succeeded */

static void before_fork(void) {
    lock_acquire(&registry);
    for (int i = 0; i < N_PROCESS_LOCKS; i++) shared_lock_take(&ggtok_process_locks[i]);
    for (shared_lock *l = first; l; l = l->next) shared_lock_take(l);
}

static void after_fork(void) {
    for (shared_lock *l = first; l; l = l->next) shared_lock_give(l);
    for (int i = 0; i < N_PROCESS_LOCKS; i++) shared_lock_give(&ggtok_process_locks[i]);
    lock_release(&registry);
}

/* Runs when the library is loaded. If this ran in the library's first call instead, another thread
 * could fork during that call. */
__attribute__((constructor)) static void guard_forks(void) {
    not_guarded = pthread_atfork(before_fork, after_fork, after_fork);
}

bool ggtok_forks_are_guarded(void) {
    return !not_guarded;
}

#endif
