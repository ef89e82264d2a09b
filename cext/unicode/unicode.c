#include "unicode/unicode.h"

#include <stddef.h>

#include "unicode/tables.inc"

#define COUNT(a) (sizeof(a) / sizeof *(a))

unsigned ggtok_unicode_flags(uint32_t cpt) {
    return cpt > 0x10FFFF ? UNICODE_UNDEFINED : class_flags[unicode_class(cpt)];
}

/* Each map is a short ascending list of ranges; the last range that starts at or before cpt
 * applies. */

uint32_t ggtok_unicode_to_lower(uint32_t cpt) {
    if (cpt < 0x80) return cpt - 'A' < 26 ? cpt + 32 : cpt;
    size_t lo = 0, hi = COUNT(lower_rows);
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (lower_rows[mid][0] <= cpt)
            lo = mid;
        else
            hi = mid;
    }
    const uint32_t *row = lower_rows[lo];
    uint32_t d = cpt - row[0];
    return cpt <= row[1] && d % row[2] == 0 ? row[3] + d : cpt;
}

uint32_t ggtok_unicode_nfd_first(uint32_t cpt) {
    if (cpt < nfd_rows[0][0]) return cpt;
    size_t lo = 0, hi = COUNT(nfd_rows);
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (nfd_rows[mid][0] <= cpt)
            lo = mid;
        else
            hi = mid;
    }
    return cpt <= nfd_rows[lo][1] ? nfd_rows[lo][2] : cpt;
}
