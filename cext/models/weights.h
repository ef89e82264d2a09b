/*
 * Weights: positive numbers whose exponents have 64 bits, so that the product of a text's
 * probabilities never becomes 0. Only additions and multiplications of doubles are used, which give
 * the same results on all platforms; the exp of C libraries doesn't.
 */
#ifndef GGTOK_WEIGHTS_H
#define GGTOK_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* a fused operation would round differently */
#endif

typedef struct weight { /* m * 2^e; m is 0, or from 0.5 to less than 4 */
    double m;
    int64_t e;
} weight;

/* Returns 2^e, for e from -1022 to 1023. */
static inline double weight_power(int64_t e) {
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Returns the weight m * 2^e, for an m of 0 or from 2^-1000 to 2^1000. */
static inline weight weight_of(double m, int64_t e) {
    uint64_t bits;
    if (m == 0) return (weight){0, 0};
    memcpy(&bits, &m, sizeof bits);
    int64_t more = (int64_t)(bits >> 52) - 1023;
    return (weight){m * weight_power(-more), e + more};
}

/* Returns exp(x), with a relative error below 1e-9 and 0.7 < m < 1.5; 0 if x is NaN or minus
 * infinity. Exponents are limited so that the product of 2^32 weights can't overflow. */
static inline weight weight_exp(double x) {
    const double most = 0x1p30, log2_e = 1.4426950408889634, log_2 = 0.6931471805599453;
    x *= log2_e;
    if (!(x >= -1.7976931348623157e308)) return (weight){0, 0};
    if (x > most) x = most;
    if (x < -most) x = -most;
    int64_t e = (int64_t)(x + (x < 0 ? -0.5 : 0.5));
    double y = (x - (double)e) * log_2; /* |y| <= 0.35 */
    double y2 = y * y, y4 = y2 * y2;
    double low = (1 + y) + y2 * (0.5 + y * (1.0 / 6));
    double high = (1.0 / 24 + y * (1.0 / 120)) + y2 * (1.0 / 720 + y * (1.0 / 5040));
    return (weight){low + y4 * (high + y4 * (1.0 / 40320)), e};
}

/* Returns w.m * 2^(w.e - e), or 0 if it is too small to matter beside 2^e; w.e - e < 1000. */
static inline double weight_relative(weight w, int64_t e) {
    int64_t less = e - w.e;
    return less > 100 ? 0 : w.m * weight_power(-less);
}

/* Adds a weight to the sum *m * 2^*e. */
static inline void weight_add(double *m, int64_t *e, weight w) {
    if (w.e > *e || *m == 0) {
        *m = *m == 0 || w.e - *e > 100 ? 0 : *m * weight_power(*e - w.e);
        *e = w.e;
    }
    *m += weight_relative(w, *e);
}

#endif
