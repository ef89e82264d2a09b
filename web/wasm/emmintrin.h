/* The SSE2 intrinsics that cext/ uses, implemented with WebAssembly's 128-bit operations. */
#ifndef GGTOK_WASM_EMMINTRIN_H
#define GGTOK_WASM_EMMINTRIN_H

#include <wasm_simd128.h>

typedef v128_t __m128i;

#define _mm_add_epi8 wasm_i8x16_add
#define _mm_cmpeq_epi8 wasm_i8x16_eq
#define _mm_cmplt_epi8 wasm_i8x16_lt
#define _mm_cvtsi128_si64(a) wasm_i64x2_extract_lane(a, 0)
#define _mm_cvtsi32_si128(a) wasm_i32x4_make(a, 0, 0, 0)
#define _mm_loadl_epi64 wasm_v128_load64_zero
#define _mm_loadu_si128 wasm_v128_load
#define _mm_movemask_epi8(a) ((int)wasm_i8x16_bitmask(a))
#define _mm_or_si128 wasm_v128_or
#define _mm_set1_epi8 wasm_i8x16_splat
#define _mm_setr_epi8 wasm_i8x16_make
#define _mm_storeu_si128 wasm_v128_store
#define _mm_unpackhi_epi64(a, b) wasm_i64x2_shuffle(a, b, 1, 3)

#endif
