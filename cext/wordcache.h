/*
 * Words that were tokenized before: a piece cache with a smaller, faster one in
 * front for short words, which most are.
 *
 *   short  32 bytes an entry: key of at most 15 bytes with its length in the
 *          sixteenth, up to 3 ids
 *   piece  64 bytes an entry: at most 31 bytes, up to 7 ids; see piece_cache.h
 *
 * Words beyond that are not kept. Sets have two entries; a new one pushes the
 * older one out. The table starts small and grows while it fills.
 */
#ifndef GGTOK_WORDCACHE_H
#define GGTOK_WORDCACHE_H

#include "piece_cache.h"

enum { WORD_SHORT = 15, WORD_SHORT_IDS = 3, WORD_LONG = PIECE_MAX, WORD_LONG_IDS = PIECE_IDS };

typedef struct word_short {
    uint64_t key[2]; /* key[1] == 0: free (a length is never 0) */
    int32_t ids[WORD_SHORT_IDS];
    uint32_t n;
} word_short;

typedef struct wordcache {
    word_short *shorts;
    unsigned short_shift; /* 64 - log2(sets) */
    size_t n_short;       /* entries made since the table's last growth */
    void *block;
    piece_cache pieces;
} wordcache;

/* False: out of memory. */
bool wordcache_init(wordcache *c);
void wordcache_free(wordcache *c);

/* Keeps word p[0..n) = ids[0..count), if it fits. May fail to; that only costs time. */
void wordcache_put(wordcache *c, const uint8_t *p, size_t n, const int32_t *ids, size_t count);

/* By length: the bits of a short word's bytes in its key. A table, since how long
 * a word is can't be predicted. */
extern const uint64_t word_mask[WORD_SHORT + 1][2];

/* A short word's key: its bytes, zeros, and its length in the byte that none
 * reaches. `room` (>= n) bytes may be read at p. */
static inline void word_short_key(uint64_t key[2], const uint8_t *p, size_t n, size_t room) {
    if (room < 16) {
        key[0] = key[1] = 0;
        memcpy(key, p, n);
    } else {
        memcpy(key, p, 16);
        key[0] &= word_mask[n][0];
        key[1] &= word_mask[n][1];
    }
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    key[1] |= n;
#else
    key[1] |= (uint64_t)n << 56;
#endif
}

static inline uint64_t word_hash(uint64_t a, uint64_t b) {
    return (a ^ b * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
}

static inline const word_short *word_short_set(const wordcache *c, uint64_t hash) {
    return &c->shorts[2 * (hash >> c->short_shift)];
}

static inline void word_prefetch(const void *p) {
#if defined(__GNUC__)
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

/* Appends the ids of a short word, given its key and hash, if it is kept. The
 * caller has reserved room for WORD_SHORT_IDS + 1 ids. */
static inline bool wordcache_get_short(const wordcache *c, const uint64_t key[2], uint64_t hash,
                                       idbuf *out) {
    const word_short *set = word_short_set(c, hash);
    bool first = !((set[0].key[0] ^ key[0]) | (set[0].key[1] ^ key[1]));
    bool second = !((set[1].key[0] ^ key[0]) | (set[1].key[1] ^ key[1]));
    const word_short *e = set + !first; /* no branch: which of the two is a toss-up */
    if (!(first | second)) return false;
    memcpy(out->data + out->n, e->ids, sizeof e->ids + sizeof e->n); /* 16 bytes: one move */
    out->n += e->n;
    return true;
}

/* The same for any word's key; room for WORD_LONG_IDS + 1 ids. */
static inline bool wordcache_get_long(const wordcache *c, const piece_key *key, uint64_t hash,
                                      idbuf *out) {
    const piece_slot *e = piece_find(&c->pieces, key, hash);
    if (!e) return false;
    memcpy(out->data + out->n, e->id, sizeof e->id + sizeof e->n);
    out->n += e->n;
    return true;
}

/* Any word: n >= 1 bytes, of which `room` (>= n) may be read. */
static inline bool wordcache_get(const wordcache *c, const uint8_t *p, size_t n, size_t room,
                                 idbuf *out) {
    if (n > WORD_LONG) return false;
    if (n <= WORD_SHORT) {
        uint64_t key[2];
        word_short_key(key, p, n, room);
        if (wordcache_get_short(c, key, word_hash(key[0], key[1]), out)) return true;
    }
    piece_key key = piece_key_within(p, n, room);
    return wordcache_get_long(c, &key, piece_hash(&key), out);
}

#endif
