/* A minimal layer over POSIX and Windows threads, locks and condition variables. */
#ifndef GGTOK_THREADS_H
#define GGTOK_THREADS_H

#include <stdbool.h>

#ifdef _WIN32

#define WIN32_LEAN_AND_MEAN
#include <process.h>
#include <windows.h>

typedef SRWLOCK lock;
typedef CONDITION_VARIABLE condition;
typedef HANDLE thread;
#define LOCK_STATIC SRWLOCK_INIT
#define THREAD_BODY(name, arg) static unsigned __stdcall name(void *arg)

static inline void lock_init(lock *l) {
    InitializeSRWLock(l);
}
static inline void lock_free(lock *l) {
    (void)l;
}
static inline void lock_acquire(lock *l) {
    AcquireSRWLockExclusive(l);
}
static inline void lock_release(lock *l) {
    ReleaseSRWLockExclusive(l);
}
/* Returns false if the system can't create a thread. */
static inline bool thread_start(thread *t, unsigned(__stdcall *body)(void *), void *arg) {
    *t = (HANDLE)_beginthreadex(NULL, 0, body, arg, 0, NULL);
    return *t != NULL;
}
static inline void thread_join(thread t) {
    WaitForSingleObject(t, INFINITE);
    CloseHandle(t);
}
static inline void condition_init(condition *c) {
    InitializeConditionVariable(c);
}
static inline void condition_free(condition *c) {
    (void)c;
}
/* Releases the lock until the condition is signalled, or for at most `ms` milliseconds (0: no
 * limit). May return early. */
static inline void condition_wait(condition *c, lock *l, unsigned ms) {
    SleepConditionVariableSRW(c, l, ms ? ms : INFINITE, 0);
}
static inline void condition_signal_all(condition *c) {
    WakeAllConditionVariable(c);
}

#else

#include <pthread.h>
#include <stddef.h>
#include <time.h>

typedef pthread_mutex_t lock;
typedef pthread_cond_t condition;
typedef pthread_t thread;
#define LOCK_STATIC PTHREAD_MUTEX_INITIALIZER
#define THREAD_BODY(name, arg) static void *name(void *arg)

static inline void lock_init(lock *l) {
    pthread_mutex_init(l, NULL); /* can't fail with default attributes */
}
static inline void lock_free(lock *l) {
    pthread_mutex_destroy(l);
}
static inline void lock_acquire(lock *l) {
    pthread_mutex_lock(l);
}
static inline void lock_release(lock *l) {
    pthread_mutex_unlock(l);
}
/* Returns false if the system can't create a thread. */
static inline bool thread_start(thread *t, void *(*body)(void *), void *arg) {
    return !pthread_create(t, NULL, body, arg);
}
static inline void thread_join(thread t) {
    pthread_join(t, NULL);
}
static inline void condition_init(condition *c) {
    pthread_cond_init(c, NULL); /* can't fail with default attributes */
}
static inline void condition_free(condition *c) {
    pthread_cond_destroy(c);
}
/* Releases the lock until the condition is signalled, or for at most `ms` milliseconds (0: no
 * limit). May return early. */
static inline void condition_wait(condition *c, lock *l, unsigned ms) {
    struct timespec end;
    if (ms && timespec_get(&end, TIME_UTC)) {
        end.tv_nsec += (long)(ms % 1000) * 1000000;
        end.tv_sec += ms / 1000 + end.tv_nsec / 1000000000;
        end.tv_nsec %= 1000000000;
        pthread_cond_timedwait(c, l, &end);
    } else {
        pthread_cond_wait(c, l);
    }
}
static inline void condition_signal_all(condition *c) {
    pthread_cond_broadcast(c);
}

#endif

#endif
