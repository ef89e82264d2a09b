/*
 * Characters of a text that normalizing changes, found a few at a time, and the spans of ids in what it
 * makes of them: see docs/design/offsets.md.
 */
#ifndef GGTOK_CHANGES_H
#define GGTOK_CHANGES_H

#include "base/window.h"
#include "models/tile.h"

/* text[at..at + len) becomes that many bytes, all of whose source it is; CHANGE_UNSURE: it isn't
 * known what becomes of it. */
typedef struct change {
    int64_t at;
    uint16_t len, becomes;
} change;

enum { CHANGES = 128, CHANGE_UNSURE = UINT16_MAX };

typedef struct changes {
    change found[CHANGES + 1]; /* found[i..n), and where the text that they are in ends */
    size_t i, n;
    const uint8_t *text;
    int64_t at, end;                 /* text[at..end) is still to be looked at */
    size_t valid;                    /* up to there the text is well-formed, once one was there */
    void (*find)(struct changes *c); /* calls changes_add while changes_have_room, and moves `at` */
    const void *user;
} changes;

/* Is there room for those of one more window? */
static inline bool changes_have_room(const changes *c) {
    return c->n + WINDOW <= CHANGES;
}

static inline void changes_add(changes *c, size_t at, size_t len, size_t becomes) {
    c->found[c->n++] = (change){(int64_t)at, (uint16_t)len, (uint16_t)becomes};
}

/* Which characters are to be seen, by their first bytes: those that begin with one that halts, but
 * for those of two bytes, C0 to DF, whose second byte is one of the n from `from` on. */
typedef struct change_leads {
    bool halts[256];
    struct {
        uint8_t from, n;
    } pass[32];
} change_leads;

/* For `find`: places in the text's next windows of characters that are to be seen.
 * Moves c->at after the windows. `ascii`: of ASCII, all but controls are known not to halt.
 * None, with *bad: what stands at c->at isn't well-formed. */
size_t ggtok_changes_look(changes *c, const change_leads *leads, bool ascii, size_t *places,
                          bool *bad);

/* Those of text[begin..end). */
void ggtok_changes_begin(changes *c, const uint8_t *text, size_t begin, size_t end);

/* Finds more, when all found ones are used. False: there are none. */
bool ggtok_changes_find(changes *c);

/* Where the next one is, or may be: nothing changes before. */
static inline int64_t changes_next(const changes *c) {
    return c->found[c->i].at;
}

/* The next one, if it lies before `end`; else NULL. */
static inline const change *changes_before(changes *c, int64_t end) {
    while (c->i == c->n && changes_next(c) < end && ggtok_changes_find(c)) {}
    return changes_next(c) < end && c->i < c->n ? &c->found[c->i] : NULL;
}

/* Uses up those before `end`. */
static inline void changes_skip(changes *c, int64_t end) {
    while (changes_before(c, end)) c->i++;
}

/* How far spans have been assigned: to text[at], of which `taken` bytes of what it becomes are used. */
typedef struct change_place {
    int64_t at;
    size_t taken;
} change_place;

/* Moves over characters that become nothing. False: nothing is known of the next one. */
bool ggtok_changes_drop(changes *c, change_place *place, int64_t end);

/* Takes n bytes, at least one, of what text[place->at..end) becomes, into *span. False: there are
 * fewer, or they aren't known. */
bool ggtok_changes_take(changes *c, change_place *place, int64_t end, size_t n, ggtok_span *span);

#endif
