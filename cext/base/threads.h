/* Threads and locks, as little of them as the library needs, for POSIX and Windows. */
#ifndef GGTOK_THREADS_H
#define GGTOK_THREADS_H

#include <stdbool.h>

#ifdef _WIN32

#define WIN32_LEAN_AND_MEAN
#include <process.h>
#include <windows.h>

typedef SRWLOCK lock;
typedef HANDLE thread;
#define LOCK_STATIC SRWLOCK_INIT
#define THREAD_BODY(name, arg) static unsigned __stdcall name(void *arg)

static inline void lock_init(lock *l) {
    InitializeSRWLock(l);
}
static inline void lock_free(lock *l) {
    (void)l;
}
static inline void lock_take(lock *l) {
    AcquireSRWLockExclusive(l);
}
static inline void lock_give(lock *l) {
    ReleaseSRWLockExclusive(l);
}
/* False: the system grants no thread. */
static inline bool thread_start(thread *t, unsigned(__stdcall *body)(void *), void *arg) {
    *t = (HANDLE)_beginthreadex(NULL, 0, body, arg, 0, NULL);
    return *t != NULL;
}
static inline void thread_join(thread t) {
    WaitForSingleObject(t, INFINITE);
    CloseHandle(t);
}
static inline void thread_yield(void) {
    SwitchToThread();
}
static inline void thread_sleep(unsigned ms) {
    Sleep(ms);
}

#else

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>

typedef pthread_mutex_t lock;
typedef pthread_t thread;
#define LOCK_STATIC PTHREAD_MUTEX_INITIALIZER
#define THREAD_BODY(name, arg) static void *name(void *arg)

static inline void lock_init(lock *l) {
    pthread_mutex_init(l, NULL); /* can't fail with default attributes here */
}
static inline void lock_free(lock *l) {
    pthread_mutex_destroy(l);
}
static inline void lock_take(lock *l) {
    pthread_mutex_lock(l);
}
static inline void lock_give(lock *l) {
    pthread_mutex_unlock(l);
}
/* False: the system grants no thread. */
static inline bool thread_start(thread *t, void *(*body)(void *), void *arg) {
    return !pthread_create(t, NULL, body, arg);
}
static inline void thread_join(thread t) {
    pthread_join(t, NULL);
}
static inline void thread_yield(void) {
    sched_yield();
}
static inline void thread_sleep(unsigned ms) {
    poll(NULL, 0, (int)ms); /* plain C11 declares no other way */
}

#endif

#endif
