/* Code for newer x86-64 machines, chosen when it runs. */
#ifndef GGTOK_NEWER_H
#define GGTOK_NEWER_H

#if defined(__GNUC__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE static inline
#endif

#ifndef GGTOK_TEST_MACHINE
#define GGTOK_TEST_MACHINE MACHINE_NEWEST /* tests also try what others do */
#endif

/* NEWER: of the last ten years, with AVX2, and bits counted and found in one instruction
 * each. NEWEST: with AVX-512 and its compressed bytes (Ice Lake, Zen 4). */
typedef enum machine { MACHINE_ANY, MACHINE_NEWER, MACHINE_NEWEST } machine;

/* A NEWER function may be called if newer_machine(), a NEWEST one if newest_machine(); what
 * is to be compiled for several is ALWAYS_INLINE, in a function for each. */
#if defined(__x86_64__) && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 8)) && \
    __SIZEOF_SIZE_T__ == 8 /* places are written as 64-bit numbers */
#define NEWER_X86 1
#define NEWER __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define NEWEST __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,avx2,bmi,bmi2,popcnt")))
#define newer_machine() \
    (GGTOK_TEST_MACHINE >= MACHINE_NEWER && __builtin_cpu_supports("avx2") && \
     __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && \
     __builtin_cpu_supports("popcnt"))
#define newest_machine() \
    (GGTOK_TEST_MACHINE >= MACHINE_NEWEST && newer_machine() && \
     __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && \
     __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2"))
#else
#define NEWER
#define newer_machine() 0
#endif

#endif
