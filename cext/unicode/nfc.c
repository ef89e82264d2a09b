#include "unicode/nfc.h"

#include "unicode/utf8.h"

enum {
    NFC_BLOCK_BITS = 8,
    NFC_MOST = 4 /* maximum number of code points in a decomposition */
};

/* A class of code points. Class 0: NFC keeps a code point if a `first` one follows. */
typedef struct nfc_class {
    uint8_t combining; /* the canonical combining class */
    bool first;        /* whether a part can begin with it whatever precedes */
} nfc_class;

#include "unicode/nfc_tables.inc"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Hangul syllables, which are composed by arithmetic from up to three letters. */
enum {
    HANGUL = 0xAC00,
    HANGUL_FIRST = 0x1100,
    HANGUL_VOWEL = 0x1161,
    HANGUL_LAST = 0x11A7, /* one less than the first final consonant */
    N_FIRST = 19,
    N_VOWEL = 21,
    N_LAST = 28
};

/* A code point, with its combining class above its 21 bits. */
typedef uint32_t mark;
enum { CPT_BITS = 21, CPT_MASK = (1 << CPT_BITS) - 1 };

static unsigned class_of(uint32_t cpt) {
    return class_block[(unsigned)class_index[cpt >> NFC_BLOCK_BITS] << NFC_BLOCK_BITS |
                       (cpt & ((1u << NFC_BLOCK_BITS) - 1))];
}

size_t ggtok_nfc_kept(const uint8_t *p, size_t n) {
    size_t i = 0, last = 0; /* text[last..i) is the last character */
    while (i < n) {
        uint64_t word;
        if (n - i >= sizeof word) {
            memcpy(&word, p + i, sizeof word);
            if (!(word & 0x8080808080808080u)) {
                i += sizeof word;
                last = i - 1;
                continue;
            }
        }
        uint32_t cpt;
        size_t len = ggtok_utf8_decode_shortest(p + i, p + n, &cpt);
        if (len == 1 && p[i] >= 0x80) return i;
        unsigned class = class_of(cpt);
        if (class) return classes[class].first ? i : last;
        last = i;
        i += len;
    }
    return n;
}

static const uint32_t *find_mapping(uint32_t cpt) {
    size_t lo = 0, hi = COUNT(mappings);
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (mappings[mid][0] <= cpt)
            lo = mid;
        else
            hi = mid;
    }
    return mappings[lo][0] == cpt ? mappings[lo] : NULL;
}

/* Appends the code point's decomposition. Hangul syllables are kept: they don't contain marks, so
 * composing them again has the same result. */
static bool put_decomposed(bytebuf *marks, uint32_t cpt) {
    uint32_t left[NFC_MOST] = {cpt};
    if (!bytebuf_reserve(marks, NFC_MOST * sizeof(mark))) return false;
    for (size_t n = 1; n;) {
        uint32_t c = left[--n];
        const uint32_t *mapping = find_mapping(c);
        if (!mapping) {
            mark m = c | (uint32_t)classes[class_of(c)].combining << CPT_BITS;
            memcpy(marks->data + marks->n, &m, sizeof m);
            marks->n += sizeof m;
            continue;
        }
        if (mapping[2]) left[n++] = mapping[2];
        left[n++] = mapping[1];
    }
    return true;
}

/* Sorts m[0..n) by combining class; `sorted` has room for n. Keeps the order of equal ones. */
static void sort_marks(mark *m, size_t n, mark *sorted) {
    enum { FEW = 16 };
    if (n <= FEW) {
        for (size_t i = 1; i < n; i++) {
            mark own = m[i];
            size_t k = i;
            for (; k && m[k - 1] >> CPT_BITS > own >> CPT_BITS; k--) m[k] = m[k - 1];
            m[k] = own;
        }
        return;
    }
    size_t at[256] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++) at[m[i] >> CPT_BITS]++;
    for (size_t c = 0; c < 256; c++) {
        size_t count = at[c];
        at[c] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++) sorted[at[m[i] >> CPT_BITS]++] = m[i];
    memcpy(m, sorted, n * sizeof *m);
}

/* Returns the composition of two code points, or 0. */
static uint32_t compose(uint32_t a, uint32_t b) {
    if (a - HANGUL_FIRST < N_FIRST && b - HANGUL_VOWEL < N_VOWEL)
        return HANGUL + ((a - HANGUL_FIRST) * N_VOWEL + (b - HANGUL_VOWEL)) * N_LAST;
    if (a - HANGUL < N_FIRST * N_VOWEL * N_LAST && (a - HANGUL) % N_LAST == 0 &&
        b - HANGUL_LAST - 1 < N_LAST - 1) {
        return a + (b - HANGUL_LAST);
    }
    size_t lo = 0, hi = COUNT(compositions);
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const uint32_t *row = mappings[compositions[mid]];
        if (row[1] == a && row[2] == b) return row[0];
        if (row[1] < a || (row[1] == a && row[2] < b))
            lo = mid + 1;
        else
            hi = mid;
    }
    return 0;
}

/* Composes m[0..n), decomposed and sorted, in place. Returns the new length. */
static size_t compose_marks(mark *m, size_t n) {
    size_t out = 0, starter = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        unsigned combining = m[i] >> CPT_BITS;
        /* A character is composed with the last starter unless one between them has the same
         * combining class, or is a starter. */
        bool blocked =
            starter == SIZE_MAX || (out > starter + 1 && m[out - 1] >> CPT_BITS >= combining);
        uint32_t whole = blocked ? 0 : compose(m[starter], m[i] & CPT_MASK);
        if (whole) {
            m[starter] = whole;
            continue;
        }
        if (!combining) starter = out;
        m[out++] = m[i];
    }
    return out;
}

/* Normalizes marks[0..n). Returns the new length. */
static size_t normalize_marks(mark *m, size_t n, mark *unused) {
    for (size_t i = 0; i < n; i++) {
        if (!(m[i] >> CPT_BITS)) continue;
        size_t end = i + 1;
        while (end < n && m[end] >> CPT_BITS) end++;
        sort_marks(m + i, end - i, unused);
        i = end;
    }
    return compose_marks(m, n);
}

size_t ggtok_nfc_part(bytebuf *marks, const uint8_t *p, size_t n, bytebuf *out, interrupt *in) {
    size_t i = 0;
    marks->n = 0;
    while (i < n) {
        uint32_t cpt;
        size_t len = ggtok_utf8_decode_shortest(p + i, p + n, &cpt);
        if (i && classes[class_of(cpt)].first) break;
        if (interrupted(in, len) || !put_decomposed(marks, cpt)) return 0;
        i += len;
    }
    if (!bytebuf_reserve(marks, marks->n) || !bytebuf_reserve(out, marks->n)) return 0;
    size_t count = marks->n / sizeof(mark);
    mark *m = (void *)marks->data;
    count = normalize_marks(m, count, m + count);
    for (size_t k = 0; k < count; k++)
        out->n += ggtok_utf8_encode(m[k] & CPT_MASK, out->data + out->n);
    return i;
}
