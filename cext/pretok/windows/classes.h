/* Classifies the bytes of a window, with code for the processor's instruction set. */
#ifndef GGTOK_PRETOK_CLASSES_H
#define GGTOK_PRETOK_CLASSES_H

#include "base/window_levels.h"

#if defined(__SSE2__) || defined(_M_X64)
#include "pretok/windows/classes_sse2.h"
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include "pretok/windows/classes_neon.h"
#endif

#ifdef CPU_DISPATCH
#include "pretok/windows/classes_avx2.h"
#include "pretok/windows/classes_avx512.h"
#else
#define classify_avx512 classify
#define letters_only_avx2(high, p) 0
#define letters_only_avx512(high, p) 0
#endif

#endif
