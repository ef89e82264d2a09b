/*
 * Words that were tokenized before: bytes -> ids, exact, bounded, one thread's.
 *
 * Two tables, each two-way (a set is what one look-up touches):
 *   short  32 bytes an entry: key of at most 15 bytes with its length in the
 *          sixteenth, up to 3 ids                       - 9 of 10 words and more
 *   long   64 bytes an entry: key of at most 31 bytes, up to 7 ids
 * Words beyond that are not kept. A new entry pushes the older one of its set
 * out; tables start small and grow while they fill, up to a fixed size.
 */
#ifndef GGTOK_WORDCACHE_H
#define GGTOK_WORDCACHE_H

#include "mem.h"

typedef struct word_short {
    uint64_t key[2]; /* key[1] == 0: free (a length is never 0) */
    int32_t ids[3];
    uint32_t n;
} word_short;

typedef struct word_long {
    uint64_t key[4];
    int32_t ids[7];
    uint32_t n;
} word_long;

enum { WORD_SHORT = 15, WORD_LONG = 31, WORD_SHORT_IDS = 3, WORD_LONG_IDS = 7 };

typedef struct wordcache {
    word_short *shorts;
    word_long *longs;
    unsigned short_shift, long_shift; /* 64 - log2(sets) */
    size_t n_short, n_long;           /* entries made since the table's last growth */
    void *short_block, *long_block;
} wordcache;

/* False: out of memory. */
bool wordcache_init(wordcache *c);
void wordcache_free(wordcache *c);

/* Keeps word p[0..n) = ids[0..count), if it fits. May fail to; that only costs time. */
void wordcache_put(wordcache *c, const uint8_t *p, size_t n, const int32_t *ids, size_t count);

/* The first `n` (0 to 16) of the bytes at p, zero-filled. `room` bytes may be read. */
static inline void word_load16(uint64_t key[2], const uint8_t *p, size_t n, size_t room) {
    key[0] = key[1] = 0;
    if (room < 16) {
        memcpy(key, p, n);
        return;
    }
    memcpy(key, p, 16);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    uint64_t zero[2] = {0, 0};
    memcpy((uint8_t *)key + n, zero, 16 - n);
#else
    if (n < 8) {
        key[0] &= ((uint64_t)1 << 8 * n) - 1;
        key[1] = 0;
    } else if (n < 16) {
        key[1] &= ((uint64_t)1 << 8 * (n - 8)) - 1;
    }
#endif
}

/* A short word's key: its bytes, and its length in the byte that none reaches. */
static inline void word_short_key(uint64_t key[2], const uint8_t *p, size_t n, size_t room) {
    word_load16(key, p, n, room);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    key[1] |= n;
#else
    key[1] |= (uint64_t)n << 56;
#endif
}

static inline uint64_t word_hash(uint64_t a, uint64_t b) {
    return (a ^ b * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
}

bool wordcache_get_long(const wordcache *c, const uint8_t *p, size_t n, idbuf *out);

/*
 * Appends the ids of word p[0..n), n >= 1, if it is kept; `room` (>= n) bytes may
 * be read at p. The caller has reserved room for WORD_LONG_IDS + 1 ids in *out.
 */
static inline bool wordcache_get(const wordcache *c, const uint8_t *p, size_t n, size_t room,
                                 idbuf *out) {
    if (n <= WORD_SHORT) {
        uint64_t key[2];
        word_short_key(key, p, n, room);
        const word_short *e = &c->shorts[2 * (word_hash(key[0], key[1]) >> c->short_shift)];
        if (e->key[0] != key[0] || e->key[1] != key[1]) e++;
        if (e->key[0] == key[0] && e->key[1] == key[1]) {
            memcpy(out->data + out->n, e->ids, sizeof e->ids);
            out->n += e->n;
            return true;
        }
    }
    return n <= WORD_LONG && wordcache_get_long(c, p, n, out);
}

#endif
