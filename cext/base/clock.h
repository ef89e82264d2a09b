/* The current time in nanoseconds since a fixed moment. It can go backwards if the system clock is
 * set. C11's timespec_get isn't available in older C libraries of Windows. */
#ifndef GGTOK_CLOCK_H
#define GGTOK_CLOCK_H

#include <stdint.h>

#if defined(_WIN32)

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

static inline uint64_t clock_ns(void) {
    FILETIME t; /* in units of 100 ns */
    GetSystemTimeAsFileTime(&t);
    return ((uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime) * 100;
}

#else

#include <time.h>

static inline uint64_t clock_ns(void) {
    struct timespec t = {0, 0};
    timespec_get(&t, TIME_UTC);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif

#endif
