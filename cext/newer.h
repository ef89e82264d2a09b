/* Code for x86-64 machines of the last ten years, chosen when it runs: AVX2, and bits
 * counted and found in one instruction each. */
#ifndef GGTOK_NEWER_H
#define GGTOK_NEWER_H

#include <stdbool.h>

#if defined(__GNUC__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE static inline
#endif

#if defined(__GNUC__) && defined(__x86_64__)
#define NEWER __attribute__((target("avx2,bmi,bmi2,popcnt"))) /* of a function */
static inline bool newer_machine(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}
#endif

#endif
