/*
 * The characters of a text that normalization changes, found a few at a time, and the spans of ids in
 * the normalized text: see docs/design/offsets.md.
 */
#ifndef GGTOK_CHANGES_H
#define GGTOK_CHANGES_H

#include "base/window.h"
#include "models/tile.h"

/* text[at..at + len) becomes that many bytes, and is the source of each of them. CHANGE_UNSURE: it
 * isn't known what it becomes. */
typedef struct change {
    int64_t at;
    uint16_t len, becomes;
} change;

enum { CHANGES = 128, CHANGE_UNSURE = UINT16_MAX };

typedef struct changes {
    change found[CHANGES + 1]; /* found[i..n), and a last one at the end of the searched text */
    size_t i, n;
    const uint8_t *text;
    int64_t at, end;                 /* text[at..end) hasn't been searched yet */
    size_t valid;                    /* the text up to here is known to be well-formed */
    void (*find)(struct changes *c); /* calls changes_add while changes_have_room, advances `at` */
    const void *user;
} changes;

/* Is there room for the changes of one more window? */
static inline bool changes_have_room(const changes *c) {
    return c->n + WINDOW <= CHANGES;
}

static inline void changes_add(changes *c, size_t at, size_t len, size_t becomes) {
    c->found[c->n++] = (change){(int64_t)at, (uint16_t)len, (uint16_t)becomes};
}

/* Which characters to report, by their first bytes: those whose first byte halts, except two-byte
 * characters (C0 to DF) whose second byte is one of the n from `from` on. */
typedef struct change_leads {
    bool halts[256];
    struct {
        uint8_t from, n;
    } pass[32];
} change_leads;

/* For `find`: writes the positions of the characters to report in the next windows of the text, and
 * moves c->at after the windows. `ascii`: no ASCII characters except controls halt. If it returns 0
 * and sets *bad, the text at c->at isn't well-formed. */
size_t ggtok_changes_look(changes *c, const change_leads *leads, bool ascii, size_t *places,
                          bool *bad);

/* Starts finding the changes of text[begin..end). */
void ggtok_changes_begin(changes *c, const uint8_t *text, size_t begin, size_t end);

/* Finds more, after all found ones were used. False: there are none. */
bool ggtok_changes_find(changes *c);

/* The position of the next change, or a lower bound of it: nothing changes before. */
static inline int64_t changes_next(const changes *c) {
    return c->found[c->i].at;
}

/* The next change if it is before `end`; else NULL. */
static inline const change *changes_before(changes *c, int64_t end) {
    while (c->i == c->n && changes_next(c) < end && ggtok_changes_find(c)) {}
    return changes_next(c) < end && c->i < c->n ? &c->found[c->i] : NULL;
}

/* Discards the changes before `end`. */
static inline void changes_skip(changes *c, int64_t end) {
    while (changes_before(c, end)) c->i++;
}

/* How far spans have been assigned: up to text[at], of whose result `taken` bytes are used. */
typedef struct change_place {
    int64_t at;
    size_t taken;
} change_place;

/* Moves over characters that become nothing. False: it isn't known what the next one becomes. */
bool ggtok_changes_drop(changes *c, change_place *place, int64_t end);

/* Takes n >= 1 bytes of what text[place->at..end) becomes, and sets *span to their source. False:
 * there are fewer, or they aren't known. */
bool ggtok_changes_take(changes *c, change_place *place, int64_t end, size_t n, ggtok_span *span);

#endif
