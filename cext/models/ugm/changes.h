/*
 * Finds, a few at a time, the characters of a text that normalization changes. Computes the spans
 * of ids in the normalized text from these changes; see docs/design/offsets.md.
 */
#ifndef GGTOK_CHANGES_H
#define GGTOK_CHANGES_H

#include "base/window.h"
#include "models/tile.h"

/* A change: normalization replaces text[at..at + len) with `becomes` bytes; all of that text is
 * the source of each. If `becomes` is CHANGE_UNSURE, the result isn't known. */
typedef struct change {
    int64_t at;
    uint16_t len, becomes;
} change;

enum { CHANGES = 128, CHANGE_UNSURE = UINT16_MAX };

typedef struct changes {
    change found[CHANGES + 1]; /* the next are found[i..n); the search stopped at found[n].at */
    size_t i, n;
    const uint8_t *text;
    int64_t at, end;                 /* text[at..end) hasn't been searched yet */
    size_t valid;                    /* the text up to this offset is known to be well-formed */
    void (*find)(struct changes *c); /* calls changes_add while changes_have_room; advances `at` */
    const void *user;
} changes;

/* Whether there is room for the changes in one more window. */
static inline bool changes_have_room(const changes *c) {
    return c->n + WINDOW <= CHANGES;
}

static inline void changes_add(changes *c, size_t at, size_t len, size_t becomes) {
    c->found[c->n++] = (change){(int64_t)at, (uint16_t)len, (uint16_t)becomes};
}

/* Defines the characters to report: those whose first byte is set in `halts`, except two-byte
 * characters (first byte C0 to DF) whose second byte is one of the n values starting at `from`. */
typedef struct change_leads {
    bool halts[256];
    struct {
        uint8_t from, n;
    } pass[32];
} change_leads;

/* For use in `find`: writes the positions of the characters to report in the next windows of the
 * text to `places`, moves c->at past the windows, and returns the number of positions. Set `ascii`
 * if `halts` contains no ASCII characters except control characters. Returns 0 and sets *bad if the
 * text at c->at is malformed. */
size_t ggtok_changes_look(changes *c, const change_leads *leads, bool ascii, size_t *places,
                          bool *bad);

/* Starts a search for the changes in text[begin..end). */
void ggtok_changes_begin(changes *c, const uint8_t *text, size_t begin, size_t end);

/* Continues the search after all changes in `found` have been used. Returns false if the text ends
 * without another change. */
bool ggtok_changes_find(changes *c);

/* Returns the position of the next change, or a lower bound for that position. */
static inline int64_t changes_next(const changes *c) {
    return c->found[c->i].at;
}

/* Returns the next change if it is before `end`; otherwise NULL. */
static inline const change *changes_before(changes *c, int64_t end) {
    while (c->i == c->n && changes_next(c) < end && ggtok_changes_find(c)) {}
    return changes_next(c) < end && c->i < c->n ? &c->found[c->i] : NULL;
}

/* Discards the changes before `end`. */
static inline void changes_skip(changes *c, int64_t end) {
    while (changes_before(c, end)) c->i++;
}

/* The position up to which spans have been assigned: the text before `at`, and the first `taken`
 * bytes of the result of the change at `at`. */
typedef struct change_place {
    int64_t at;
    size_t taken;
} change_place;

/* Moves past characters that normalization removes. Returns false if the result of the next
 * character isn't known. */
bool ggtok_changes_drop(changes *c, change_place *place, int64_t end);

/* Consumes n >= 1 bytes of the result of text[place->at..end), and sets *span to their source.
 * Returns false if there are fewer bytes, or if some of them aren't known. */
bool ggtok_changes_take(changes *c, change_place *place, int64_t end, size_t n, ggtok_span *span);

#endif
