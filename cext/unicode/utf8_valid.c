/* Validates UTF-8, character by character or, with AVX2, 32 bytes at a time. */
#include "unicode/utf8_valid.h"
#include "base/cpu.h"

/* Returns the length of the well-formed sequence at p, or 0. The bounds on the second byte exclude
 * overlong forms and values above 10FFFF. */
static size_t well_formed(const uint8_t *p, size_t n) {
    uint8_t c = p[0];
    if (c < 0x80) return 1;
    if (c < 0xC2 || c > 0xF4) return 0;
    size_t len = utf8_lead_len(c);
    if (n < len || !utf8_continues(p[1])) return 0;
    if ((c == 0xE0 && p[1] < 0xA0) || (c == 0xF0 && p[1] < 0x90) || (c == 0xF4 && p[1] > 0x8F))
        return 0;
    for (size_t i = 2; i < len; i++)
        if (!utf8_continues(p[i])) return 0;
    return len;
}

#ifdef CPU_DISPATCH
#include <immintrin.h>

/*
 * Whether one byte may follow another depends on three nibbles: both of the first byte and the
 * upper one of the second. For each nibble, a table holds the set of faults that it allows; a fault
 * is present if all three sets contain it. (Keiser and Lemire, "Validating UTF-8 in less than one
 * instruction per byte", without the test for surrogates, which are allowed here.)
 */
enum {
    SHORT = 1 << 0,             /* a lead byte without a continuation byte */
    LONG = 1 << 1,              /* a continuation byte after ASCII */
    E0 = 1 << 2,                /* overlong: E0 80..9F */
    F4 = 1 << 3,                /* above 10FFFF: F4 90..BF, F5..FF 90..BF */
    C0 = 1 << 4,                /* overlong: C0, C1 */
    F0 = 1 << 5,                /* overlong: F0 80..8F; above 10FFFF: F5..FF 80..8F */
    SECOND = 1 << 7,            /* a second continuation byte; a fault unless one is expected */
    ANY = SHORT | LONG | SECOND /* faults possible with any lower nibble of the first byte */
};

#define TWICE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

TARGET_AVX2 static inline __m256i load(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* Returns the faults in the 32 bytes at p. The three bytes before p must be readable. */
TARGET_AVX2 static inline __m256i faults(const uint8_t *p) {
    const __m256i first_upper =
        TWICE(LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, (char)SECOND, (char)SECOND,
              (char)SECOND, (char)SECOND, SHORT | C0, SHORT, SHORT | E0, SHORT | F4 | F0);
    const __m256i first_lower = TWICE(
        (char)(ANY | E0 | C0 | F0), (char)(ANY | C0), (char)ANY, (char)ANY, (char)(ANY | F4),
        (char)(ANY | F4 | F0), (char)(ANY | F4 | F0), (char)(ANY | F4 | F0), (char)(ANY | F4 | F0),
        (char)(ANY | F4 | F0), (char)(ANY | F4 | F0), (char)(ANY | F4 | F0), (char)(ANY | F4 | F0),
        (char)(ANY | F4 | F0), (char)(ANY | F4 | F0), (char)(ANY | F4 | F0));
    const __m256i second_upper =
        TWICE(SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT,
              (char)(LONG | SECOND | C0 | E0 | F0), (char)(LONG | SECOND | C0 | E0 | F4),
              (char)(LONG | SECOND | C0 | F4), (char)(LONG | SECOND | C0 | F4), SHORT, SHORT, SHORT,
              SHORT);
    const __m256i nibble = _mm256_set1_epi8(0x0F);
    __m256i before = load(p - 1), here = load(p);
    __m256i found = _mm256_and_si256(
        _mm256_and_si256(_mm256_shuffle_epi8(
                             first_upper, _mm256_and_si256(_mm256_srli_epi16(before, 4), nibble)),
                         _mm256_shuffle_epi8(first_lower, _mm256_and_si256(before, nibble))),
        _mm256_shuffle_epi8(second_upper, _mm256_and_si256(_mm256_srli_epi16(here, 4), nibble)));
    /* A second continuation byte is expected two bytes after E0..FF, and three after F0..FF. */
    __m256i due =
        _mm256_or_si256(_mm256_subs_epu8(load(p - 2), _mm256_set1_epi8(0xE0 - 0x80)),
                        _mm256_subs_epu8(load(p - 3), _mm256_set1_epi8((char)(0xF0 - 0x80))));
    return _mm256_xor_si256(found, _mm256_and_si256(due, _mm256_set1_epi8((char)SECOND)));
}

/* Returns the length of a well-formed prefix. The prefix ends near the end of the last valid block,
 * before a character that may continue after the block. */
TARGET_AVX2 static size_t valid_blocks_avx2(const uint8_t *p, size_t n) {
    enum { BLOCK = 32 };
    size_t i = 0;
    while (i < 3) {
        size_t len = well_formed(p + i, n - i);
        if (!len) return i;
        i += len;
    }
    for (; n - i >= BLOCK; i += BLOCK) {
        if (!_mm256_movemask_epi8(_mm256_or_si256(load(p + i - 3), load(p + i)))) continue;
        __m256i found = faults(p + i);
        if (!_mm256_testz_si256(found, found)) break;
    }
    size_t lead = i - 1; /* the last character may be incomplete */
    while (i - lead < 4 && lead && utf8_continues(p[lead])) lead--;
    return lead;
}

static size_t valid_blocks(const uint8_t *p, size_t n) {
    enum { WORTH_IT = 64 };
    return n >= WORTH_IT && cpu_has_avx2() ? valid_blocks_avx2(p, n) : 0;
}

#else

static size_t valid_blocks(const uint8_t *p, size_t n) {
    (void)p, (void)n;
    return 0;
}

#endif

size_t ggtok_utf8_valid_prefix(const uint8_t *p, size_t n) {
    size_t i = PLAIN ? 0 : valid_blocks(p, n);
    while (i < n) {
        if (p[i] < 0x80) { /* skip eight or sixteen ASCII bytes at a time */
            uint64_t a, b;
            while (n - i >= 16) {
                memcpy(&a, p + i, 8);
                memcpy(&b, p + i + 8, 8);
                if ((a | b) & 0x8080808080808080u) break;
                i += 16;
            }
            while (i < n && p[i] < 0x80) i++;
            continue;
        }
        /* Skips runs of two- and three-byte characters; other characters one by one. */
        while (n - i >= 2 && p[i] >= 0xC2 && p[i] < 0xE0 && utf8_continues(p[i + 1])) i += 2;
        while (n - i >= 3 && p[i] > 0xE0 && p[i] < 0xF0 && utf8_continues(p[i + 1]) &&
               utf8_continues(p[i + 2]))
            i += 3;
        if (i == n) break;
        size_t len = well_formed(p + i, n - i);
        if (!len) break;
        i += len;
    }
    return i;
}

bool ggtok_utf8_sanitize(bytebuf *out, const uint8_t *p, size_t n, interrupt *in) {
    enum { STEP = 16 }; /* a malformed byte counts as this many well-formed bytes */
    size_t i = 0;
    while (i < n) {
        size_t good = ggtok_utf8_valid_prefix(p + i, n - i);
        if (!bytebuf_append(out, p + i, good)) return false;
        i += good;
        if (i == n) break;
        uint32_t cpt;
        uint8_t c[4];
        i += ggtok_utf8_decode(p + i, p + n, &cpt);
        if (interrupted(in, STEP)) return false;
        if (!bytebuf_append(out, c, ggtok_utf8_encode(cpt, c))) return false;
    }
    return true;
}
