/*
 * Classifies the bytes of a window with NEON, which every 64-bit ARM processor has.
 */
#ifndef GGTOK_PRETOK_CLASSES_NEON_H
#define GGTOK_PRETOK_CLASSES_NEON_H

#include "base/window.h"
#include "pretok/windows/shape.h"

/* Converts four vectors of 0x00 and 0xFF bytes to 64 bits. */
ALWAYS_INLINE uint64_t bits(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
    const uint8x16_t weight = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t ab = vpaddq_u8(vandq_u8(a, weight), vandq_u8(b, weight));
    uint8x16_t cd = vpaddq_u8(vandq_u8(c, weight), vandq_u8(d, weight));
    uint8x16_t abcd = vpaddq_u8(ab, cd);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(abcd, abcd)), 0);
}

ALWAYS_INLINE uint8x16_t in_range(uint8x16_t x, uint8_t lo, uint8_t n) {
    return vcltq_u8(vsubq_u8(x, vdupq_n_u8(lo)), vdupq_n_u8(n));
}

ALWAYS_INLINE uint8x16_t equal(uint8x16_t x, char c) {
    return vceqq_u8(x, vdupq_n_u8((uint8_t)c));
}

/* Finds $ + < = > ^ ` | ~: the ASCII characters in \p{S}. */
ALWAYS_INLINE uint8x16_t symbols(uint8x16_t x) {
    uint8x16_t pipe_or_tilde = equal(vorrq_u8(x, vdupq_n_u8('|' ^ '~')), '~');
    uint8x16_t rest =
        vorrq_u8(vorrq_u8(equal(x, '$'), equal(x, '+')), vorrq_u8(equal(x, '^'), equal(x, '`')));
    return vorrq_u8(vorrq_u8(in_range(x, '<', 3), pipe_or_tilde), rest);
}

ALWAYS_INLINE classes classify(const uint8_t *p, shape s) {
    uint8x16_t x[4], letter[4];
    for (int i = 0; i < 4; i++) {
        x[i] = vld1q_u8(p + 16 * i);
        letter[i] = in_range(vorrq_u8(x[i], vdupq_n_u8(0x20)), 'a', 26);
    }
#define EACH(f) bits(f(x[0]), f(x[1]), f(x[2]), f(x[3]))
#define HIGH(v) vcgeq_u8(v, vdupq_n_u8(0x80))
#define INNER(v) in_range(v, 0x80, 0x40)
#define UPPER(v) in_range(v, 'A', 26)
#define DIGIT(v) in_range(v, '0', 10)
#define SPACE(v) equal(v, ' ')
#define WHITE(v) in_range(v, '\t', 5)
#define NEWLINE(v) vorrq_u8(equal(v, '\n'), equal(v, '\r'))
#define QUOTE(v) equal(v, '\'')
#define SLASH(v) equal(v, '/')
#define BACKTICK(v) equal(v, '`')
#define CONTROL(v) vorrq_u8(in_range(v, 0, 0x20), vceqq_u8(v, vdupq_n_u8(0x7F)))
    classes c = {.high = EACH(HIGH),
                 .inner = EACH(INNER),
                 .digit = EACH(DIGIT),
                 .space = EACH(SPACE),
                 .newline = EACH(NEWLINE),
                 .quote = EACH(QUOTE)};
    c.letter = bits(letter[0], letter[1], letter[2], letter[3]);
    if (s.cased) c.upper = EACH(UPPER);
    if (s.slashes) c.slash = EACH(SLASH);
    if (s.no_controls) c.control = EACH(CONTROL);
    if (s.no_backtick) c.control |= EACH(BACKTICK);
    if (s.gaps == CODER) c.symbol = EACH(symbols);
    c.other_white = EACH(WHITE) & ~c.newline;
    return c;
}

#endif
