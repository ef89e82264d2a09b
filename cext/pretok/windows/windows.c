/*
 * The patterns that windows of 64 bytes implement, one row each. They find the same words as the
 * automata of pretok/dfa.c, against which they are tested. Each row is compiled for every level of
 * base/cpu.h, and the first call selects one for the processor.
 *
 * A window begins where a word begins, so nothing before it matters. Each class of ASCII characters
 * becomes a 64-bit mask, and shifts and sums of masks yield the starts of words (starts.h).
 */
#include "pretok/windows/windows.h"

/* clang-format off */
#define TEXT const uint8_t *text, pretok_stage *st, size_t *ends, size_t max

#if defined(__SSE2__) || defined(_M_X64) || (defined(__ARM_NEON) && defined(__aarch64__))

#include "pretok/windows/cut.h"

/* Each row is compiled to separate code, specialized for its shape. Without optimization or under
 * sanitizers, that would gain nothing and take long to compile, so one function per level then
 * reads the shape. */
#if defined(__GNUC__) && !defined(__OPTIMIZE__)
#define CUT_CODE static
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CUT_CODE static
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CUT_CODE static
#endif
#endif
#ifndef CUT_CODE
#define CUT_CODE ALWAYS_INLINE
#endif

#define LEVEL(name, on) \
    size_t cut_##name(const pretok_scanner *self, shape s, TEXT) { \
        return cut(self, s, on, text, st, ends, max); \
    }
#define CUT(level, ...) \
    (const pretok_scanner *self, TEXT) { \
        return cut_##level(self, (shape){__VA_ARGS__}, text, st, ends, max); \
    }

CUT_CODE LEVEL(base, CPU_BASE)

#ifdef CPU_DISPATCH
CUT_CODE TARGET_AVX2 LEVEL(avx2, CPU_AVX2)
CUT_CODE TARGET_AVX512 LEVEL(avx512, CPU_AVX512)

#define PATTERN(name, ...) \
    static TARGET_AVX512 size_t name##_avx512 CUT(avx512, __VA_ARGS__) \
    static TARGET_AVX2 size_t name##_avx2 CUT(avx2, __VA_ARGS__) \
    static size_t name##_base CUT(base, __VA_ARGS__) \
    size_t ggtok_pretok_cut_##name(const pretok_scanner *self, TEXT) { \
        return (cpu_has_avx512() ? name##_avx512 \
                : cpu_has_avx2() ? name##_avx2 \
                                 : name##_base)(self, text, st, ends, max); \
    }
#else
#define PATTERN(name, ...) size_t ggtok_pretok_cut_##name CUT(base, __VA_ARGS__)
#endif

#else /* use the automaton */

#define PATTERN(name, ...) \
    size_t ggtok_pretok_cut_##name(const pretok_scanner *self, TEXT) { \
        return (st->lines ? ggtok_pretok_line_cut : ggtok_pretok_dfa_cut)(self->plain, text, st, \
                                                                          ends, max); \
    }

#endif

#define LLAMA .any_prefix = true, .newline_words = true, .joined = true
#define OWN .contractions = OWN_WORD
#define EITHER .either_case = true
#define V3 LLAMA, .ascii_prefix = true, .no_controls = true, .han = true, .han_apart = true

PATTERN(gpt2, OWN)
PATTERN(starcoder, OWN, .digits = 1, .digits_apart = true)
PATTERN(llama3, LLAMA, OWN, EITHER, .digits = 3)
PATTERN(minicpm5, LLAMA, OWN, EITHER, .digits = 3, .digits_apart = true)
PATTERN(qwen2, LLAMA, OWN, EITHER, .digits = 1)
PATTERN(seed_coder, .any_prefix = true, .newline_words = true, OWN, EITHER, .digits = 1)
PATTERN(ufakzeka, LLAMA, .digits = 1)
PATTERN(kimi_k2, LLAMA, .han = true, .contractions = SUFFIX, EITHER, .digits = 3)
PATTERN(gpt4o, LLAMA, .slashes = true, .cased = true, .contractions = SUFFIX, EITHER, .digits = 3)
PATTERN(tekken, LLAMA, .slashes = true, .cased = true, .digits = 1)
PATTERN(youtu, LLAMA, .slashes = true, .contractions = SUFFIX, EITHER, .digits = 1)
PATTERN(tiny_aya, LLAMA, .slashes = true, .contractions = SUFFIX, EITHER, .digits = 3)
PATTERN(default, .no_controls = true, .no_backtick = true, .punct_apart = true, .digits = 3)
PATTERN(falcon, .no_controls = true, .punct_apart = true, .digits = 3, .prefixed_digits = true)
PATTERN(deepseek_v3, V3, .digits = 3, .digits_apart = true)
PATTERN(afmoe, V3, .no_digits = true)
PATTERN(deepseek_coder, .gaps = CODER, .no_controls = true, .han = true)
PATTERN(deepseek_llm, .gaps = LLM, .no_controls = true, .han = true)
