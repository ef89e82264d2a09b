/* Code for x86-64 machines of the last ten years, chosen when it runs: AVX2, and bits
 * counted and found in one instruction each. */
#ifndef GGTOK_NEWER_H
#define GGTOK_NEWER_H

#if defined(__GNUC__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE static inline
#endif

/* A NEWER function may be called if newer_machine(); what is to be compiled for both is
 * ALWAYS_INLINE, in such a function and in another. */
#if defined(__GNUC__) && defined(__x86_64__)
#define NEWER __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define NEWER_AVX2 1
#define newer_machine() \
    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && \
     __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt"))
#else
#define NEWER
#define newer_machine() 0
#endif

#endif
