/*
 * Run-time dispatch to code for instruction sets beyond the compiler's target.
 *
 * Code that is compiled for several levels is ALWAYS_INLINE and takes the level as a constant
 * argument, which it tests where the levels differ. For each level, one function with that level's
 * TARGET attribute calls it. Call a TARGET_AVX2 function only if cpu_has_avx2(), and a
 * TARGET_AVX512 function only if cpu_has_avx512().
 */
#ifndef GGTOK_CPU_H
#define GGTOK_CPU_H

#if defined(__GNUC__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define PREFETCH(p) __builtin_prefetch(p)
#define PREFETCH_WRITE(p) __builtin_prefetch(p, 1)
#else
#define ALWAYS_INLINE static inline
#define PREFETCH(p) ((void)(p))
#define PREFETCH_WRITE(p) ((void)(p))
#endif

/* CPU_BASE: the compiler's target. CPU_AVX2: AVX2 (processors of the last ten years) and the
 * instructions that count and find bits. CPU_AVX512: AVX-512 with VBMI2, which compresses bytes
 * (Ice Lake, Zen 4). */
typedef enum cpu_level { CPU_BASE, CPU_AVX2, CPU_AVX512 } cpu_level;

#ifndef GGTOK_TEST_MACHINE
#define GGTOK_TEST_MACHINE CPU_AVX512 /* tests define a lower level to run the other code */
#endif

#if defined(__x86_64__) && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 8)) && \
    __SIZEOF_SIZE_T__ == 8 /* results are stored as 64-bit positions */
#define CPU_DISPATCH 1
#define TARGET_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define TARGET_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,avx2,bmi,bmi2,popcnt")))
#define cpu_has_avx2() \
    (GGTOK_TEST_MACHINE >= CPU_AVX2 && __builtin_cpu_supports("avx2") && \
     __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && \
     __builtin_cpu_supports("popcnt"))
#define cpu_has_avx512() \
    (GGTOK_TEST_MACHINE >= CPU_AVX512 && cpu_has_avx2() && __builtin_cpu_supports("avx512f") && \
     __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && \
     __builtin_cpu_supports("avx512vbmi2"))
#else
#define TARGET_AVX2
#define cpu_has_avx2() 0
#endif

#endif
