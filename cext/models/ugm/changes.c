#include "models/ugm/changes.h"

#include "unicode/utf8_valid.h"

void ggtok_changes_begin(changes *c, const uint8_t *text, size_t begin, size_t end) {
    c->text = text;
    c->i = c->n = 0;
    c->at = c->found[0].at = (int64_t)begin;
    c->valid = begin;
    c->end = (int64_t)end;
}

bool ggtok_changes_find(changes *c) {
    c->i = c->n = 0;
    if (c->at < c->end) c->find(c);
    c->found[c->n].at = c->at < c->end ? c->at : INT64_MAX;
    return c->n || c->at < c->end;
}

/* Returns the mask of the first bytes of the characters to report in the 64 bytes at p, which are
 * well-formed. */
ALWAYS_INLINE uint64_t window_halts(const uint8_t *p, const change_leads *leads, bool ascii,
                                    uint8_t last) {
    uint64_t found = 0;
    if (!ascii) {
        for (unsigned i = 0; i < WINDOW; i++) found |= (uint64_t)leads->halts[p[i]] << i;
        return found;
    }
    if (!~window_range(p, ' ', 0x7F - ' ')) return 0;
    const uint64_t high = window_range(p, 0x80, 0x80);
    found = ~(high | window_range(p, ' ', 0x7F - ' ') | window_range(p, '\t', 2) |
              window_range(p, '\r', 1));
    if (!high) return found;
    /* A text contains few distinct lead bytes of two-byte characters; of three-byte ones, often
     * only those of Chinese characters. */
    uint64_t three = window_range(p, 0xE0, 0x20);
    for (uint64_t two = window_range(p, 0xC0, 0x20); two;) {
        const uint8_t lead = p[bits_lowest(two)];
        const uint64_t same = window_range(p, lead, 1);
        two &= ~same;
        if (!leads->halts[lead]) continue;
        const uint8_t from = leads->pass[lead & 31].from, n = leads->pass[lead & 31].n;
        /* A lead byte at the window's end is reported: its second byte isn't in the window. */
        found |= same & ~(window_range(p, from, n) >> 1);
    }
    if (three && last > 0xE0) three &= ~window_range(p, last, (uint8_t)(0xEA - last));
    return found | three;
}

ALWAYS_INLINE size_t look(changes *c, const change_leads *leads, bool ascii, size_t *places) {
    uint8_t last = 0xEA; /* characters with the lead bytes from `last` to E9 aren't reported */
    while (last > 0xE1 && !leads->halts[last - 1]) last--;
    if (last == 0xEA) last = 0;
    size_t i = (size_t)c->at, n = 0;
    while (!n && i < c->valid) {
        uint8_t padded[WINDOW];
        const uint8_t *p = c->text + i;
        const size_t left = c->valid - i;
        if (left < WINDOW) {
            memset(padded, ' ', sizeof padded);
            p = memcpy(padded, p, left);
        }
        const uint64_t found = window_halts(p, leads, ascii, last);
        n = bits_count(found);
        window_places(found, (unsigned)n, i, places);
        i += left < WINDOW ? left : WINDOW;
    }
    c->at = (int64_t)i;
    return n;
}

static TARGET_AVX2 size_t look_avx2(changes *c, const change_leads *leads, bool ascii,
                                    size_t *places) {
    return look(c, leads, ascii, places);
}

size_t ggtok_changes_look(changes *c, const change_leads *leads, bool ascii, size_t *places,
                          bool *bad) {
    const size_t at = (size_t)c->at, end = (size_t)c->end;
    *bad = false;
    if (at >= c->valid) {
        c->valid = at + ggtok_utf8_valid_prefix(c->text + at, end - at);
        if (at == c->valid) {
            *bad = at < end;
            return 0;
        }
    }
    return cpu_has_avx2() ? look_avx2(c, leads, ascii, places) : look(c, leads, ascii, places);
}

bool ggtok_changes_drop(changes *c, change_place *place, int64_t end) {
    for (const change *next; !place->taken && (next = changes_before(c, end)) != NULL; c->i++) {
        if (next->at != place->at) return true;
        if (next->becomes) return next->becomes != CHANGE_UNSURE;
        place->at += next->len;
    }
    return true;
}

bool ggtok_changes_take(changes *c, change_place *place, int64_t end, size_t n, ggtok_span *span) {
    for (bool first = true; n; first = false) {
        if (!ggtok_changes_drop(c, place, end)) return false;
        const change *next = changes_before(c, end);
        const int64_t at = place->at, stop = next ? next->at : end;
        if (first) span->begin = at;
        if (at < stop) { /* bytes that are their own source */
            const size_t left = (size_t)(stop - at), step = n < left ? n : left;
            span->end = place->at += (int64_t)step;
            n -= step;
            continue;
        }
        if (!next) return false;
        const size_t left = next->becomes - place->taken, step = n < left ? n : left;
        span->end = at + next->len;
        n -= step;
        place->taken += step;
        if (step == left) {
            *place = (change_place){span->end, 0};
            c->i++;
        }
    }
    return true;
}
