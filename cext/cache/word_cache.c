#include "cache/word_cache.h"

/* ---- short words ---- */

/* Minimum and maximum of log2(number of sets). */
enum { MIN_LOG2 = SMALL ? 1 : 9, MAX_LOG2 = 17 };

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BYTES(n) ((n) >= 8 ? ~(uint64_t)0 : ~(~(uint64_t)0 >> 8 * (n)))
#else
#define BYTES(n) ((n) >= 8 ? ~(uint64_t)0 : ((uint64_t)1 << 8 * ((n) & 7)) - 1)
#endif
#define MASK(n) {BYTES(n), BYTES((n) > 8 ? (n) - 8 : 0)}

/* clang-format off */
const uint64_t ggtok_word_mask[WORD_SHORT + 1][2] = {
    MASK(0), MASK(1), MASK(2),  MASK(3),  MASK(4),  MASK(5),  MASK(6),  MASK(7),
    MASK(8), MASK(9), MASK(10), MASK(11), MASK(12), MASK(13), MASK(14), MASK(15),
};
/* clang-format on */

static size_t sets_bytes(unsigned log2) {
    return ((size_t)2 << log2) * sizeof(word_short);
}

/* Allocates sets such that none straddles a cache line. */
static word_short *alloc_sets(mem_table *table, unsigned log2) {
    return ggtok_mem_table_new(table, sets_bytes(log2), sets_bytes(MAX_LOG2));
}

bool ggtok_word_cache_init(word_cache *c) {
    memset(c, 0, sizeof *c);
    c->shorts = alloc_sets(&c->table, MIN_LOG2);
    c->short_shift = 64 - MIN_LOG2;
    return c->shorts != NULL;
}

void ggtok_word_cache_free(word_cache *c) {
    ggtok_mem_table_free(&c->table);
    ggtok_piece_cache_free(&c->pieces);
    ggtok_long_cache_free(&c->longs);
    memset(c, 0, sizeof *c);
}

static void put_piece(word_cache *c, const piece_key *key, const int32_t *ids, size_t count) {
    uint64_t hash = piece_hash(key);
    if (!piece_cache_find(&c->pieces, key, hash))
        ggtok_piece_cache_put(&c->pieces, key, hash, ids, count);
}

/* Converts the key of a short word to its key in the piece cache. */
static piece_key piece_key_of_word_key(const uint64_t key[2]) {
    piece_key longer = {{key[0], key[1], 0, 0}};
    uint8_t *bytes = (uint8_t *)longer.w;
    bytes[PIECE_MAX] = bytes[WORD_SHORT];
    bytes[WORD_SHORT] = 0;
    return longer;
}

/* Converts a key in the piece cache to the key of a short word. Returns false if the word is
 * longer. */
static bool short_key(const piece_key *longer, uint64_t key[2]) {
    const uint8_t *bytes = (const uint8_t *)longer->w;
    if (bytes[PIECE_MAX] > WORD_SHORT) return false;
    memcpy(key, bytes, WORD_SHORT);
    ((uint8_t *)key)[WORD_SHORT] = bytes[PIECE_MAX];
    return true;
}

/* Makes the key of a short word. `room` >= n bytes at p are readable, perhaps fewer than 16. */
static void key_of(uint64_t key[2], const uint8_t *p, size_t n, size_t room) {
    uint8_t padded[16] = {0};
    word_short_key(key, room < 16 ? memcpy(padded, p, n) : p, n);
}

/* Makes the entry of a short word, or both entries of a wide word, from its ids. The key is already
 * set. Returns false if there are too many ids. */
static bool make_entry(word_short e[2], const int32_t *ids, size_t count) {
    if (count > WORD_WIDE_IDS) return false;
    uint32_t id[WORD_WIDE_IDS + 1] = {0}, all = 0;
    for (size_t i = 0; i < count; i++) all |= id[i] = (uint32_t)ids[i];
    memcpy(e->ids, id, sizeof e->ids);
    if (count <= WORD_SHORT_IDS) {
        e->ids[0] |= (uint32_t)count << WORD_ID_BITS;
    } else {
        e->ids[0] |= (uint32_t)WORD_WIDE << WORD_ID_BITS;
        e->ids[1] |= (uint32_t)(count - WORD_SHORT_IDS - 1) << WORD_ID_BITS;
        memcpy(e[1].ids, id + 4, sizeof e->ids);
        memcpy(e[1].key, id + 8, sizeof e->key);
    }
    return all <= WORD_ID_MASK;
}

static word_short *set_of_key(const word_cache *c, const uint64_t key[2]) {
    return (word_short *)word_short_set(c, key);
}

/* Replaces an entry, but keeps the bits in a set's first entry that describe the set. */
static void set_entry(word_short *to, const word_short *e) {
    uint32_t where = to->ids[3] & ~(uint32_t)WORD_ID_MASK;
    *to = *e;
    to->ids[3] |= where;
}

/* Returns a copy of an entry without the bits that describe its set. */
static word_short plain_entry(const word_short *e) {
    word_short copy = *e;
    copy.ids[3] &= WORD_ID_MASK;
    return copy;
}

static size_t key_length(const uint64_t key[2]) {
    return ((const uint8_t *)key)[WORD_SHORT];
}

/* Stores a word, given its entry or both entries, as a far word: outside its set, which is full. */
static void put_far(word_cache *c, const word_short *e) {
    int32_t ids[WORD_WIDE_IDS + 1];
    size_t n = word_short_ids(e, ids);
    piece_key key = piece_key_of_word_key(e->key);
    if (n <= PIECE_IDS) {
        put_piece(c, &key, ids, n);
    } else {
        ggtok_long_cache_put(&c->longs, (const uint8_t *)e->key, key_length(e->key), ids, n, true);
    }
    set_of_key(c, e->key)->ids[3] |= WORD_FAR;
}

/* Puts a word into a set and returns its entry, or NULL if the set has no room. */
static word_short *put_into(word_short *set, const word_short *e) {
    if (word_same(set[0].key, e->key)) return &set[0];
    if (word_same(set[1].key, e->key)) return &set[1];
    if (word_is_wide(set)) return NULL;
    if (word_is_wide(e)) {
        if (set[0].key[1] || set[1].key[1]) return NULL;
        set_entry(&set[0], e);
        set[1] = e[1];
        return &set[0];
    }
    for (int i = 0; i < 2; i++) {
        if (set[i].key[1]) continue;
        set_entry(&set[i], e);
        return &set[i];
    }
    return NULL;
}

/* Puts a word into its set or the next one and returns its entry, or NULL if neither has room. */
static word_short *put_near(word_cache *c, word_short *set, const word_short *e) {
    word_short *at = put_into(set, e);
    if (at) return at;
    c->n_moved++;
    if (!(at = put_into((word_short *)word_short_next(c, set), e))) return NULL;
    set->ids[3] |= WORD_NEAR;
    return at;
}

/* Stores a short word. The frequent words of a text occur early, so words stay in the sets where
 * they were stored first. Most words that aren't in their set aren't stored at all; the bits
 * WORD_NEAR and WORD_FAR of the set show this without a search. */
static void put_short(word_cache *c, const word_short *e) {
    if (!put_near(c, set_of_key(c, e->key), e)) put_far(c, e);
}

/* At every SELDOM-th hit of any far word, moves that word into its set. Frequent far words thus
 * reach their sets, without evicting each other at every hit. */
static void promote(word_cache *c, const word_short *e) {
    enum { SELDOM = 4 };
    if (++c->n_far_hits % SELDOM) return;
    word_short *set = set_of_key(c, e->key), gone[2] = {plain_entry(&set[0]), set[1]};
    if (word_is_pending(&gone[0]) || word_is_pending(&gone[1]))
        return; /* a pending word must not move */
    const bool both = word_is_wide(gone) || word_is_wide(e);
    const size_t only = c->n_far_hits / SELDOM % 2;
    for (size_t i = 0; i < 2; i++) {
        if ((both || i == only) && gone[i].key[1] && !(i && word_is_wide(gone))) {
            put_far(c, &gone[i]);
        }
    }
    if (both) {
        set_entry(&set[0], e);
        set[1] = word_is_wide(e) ? e[1] : (word_short){.key = {0, 0}};
    } else {
        set_entry(&set[only], e);
    }
}

/* Moves a far word, whose key is set, into its set or the next one. Returns false if it stays
 * far. */
static bool bring_home(word_cache *c, word_short e[2], const int32_t *ids, size_t count) {
    word_short *set = set_of_key(c, e->key);
    if (make_entry(e, ids, count) && put_near(c, set, e)) return true;
    set->ids[3] |= WORD_FAR;
    return false;
}

/* Moves far words into their sets. Called after the table has grown, when most sets have room. */
static void bring_all_home(word_cache *c) {
    const size_t n_pieces = c->pieces.slot ? 2 * (c->pieces.mask + 1) : 0;
    const size_t n_longs = c->longs.slots ? (size_t)2 << (64 - c->longs.shift) : 0;
    for (size_t i = 0; i < n_pieces; i++) {
        piece_slot *s = &c->pieces.slot[i];
        word_short e[2];
        if (!s->n || !short_key(&s->key, e->key)) continue;
        if (bring_home(c, e, s->id, s->n)) *s = (piece_slot){.n = 0};
    }
    for (size_t i = 0; i < n_longs; i++) {
        if (!c->longs.slots[i].place) continue;
        const uint32_t *at = c->longs.arena + c->longs.slots[i].place;
        const size_t n = long_bytes(at), count = long_n(at);
        int32_t ids[WORD_WIDE_IDS];
        word_short e[2];
        if (n > WORD_SHORT) continue;
        key_of(e->key, (const uint8_t *)(at + 1 + count), n, n);
        if (count <= WORD_WIDE_IDS) memcpy(ids, at + 1, count * sizeof *ids);
        bring_home(c, e, ids, count);
    }
}

/* Distributes the words of two adjacent sets of the old table over the n sets that replace them. */
static void spread(word_cache *c, const word_short *pair, word_short *to, size_t n) {
    word_short from[4]; /* `to` may overlap `pair` */
    memcpy(from, pair, sizeof from);
    memset(to, 0, 2 * n * sizeof *to);
    for (size_t i = 0; i < 4; i += 2) {
        word_short e[2] = {plain_entry(&from[i]), from[i + 1]};
        if (e[0].key[1]) put_short(c, &e[0]);
        if (e[1].key[1] && !word_is_wide(e)) put_short(c, &e[1]);
    }
}

/* Grows the table, in place if its memory has room. On failure, the old table stays. */
static void grow(word_cache *c) {
    enum { LARGE_LOG2 = 15 }; /* from this log2 on, tables double; smaller ones quadruple */
    const unsigned log2 = 64 - c->short_shift, step = SMALL || log2 >= LARGE_LOG2 ? 1 : 2;
    mem_table old = c->table;
    c->n_moved = 0;
    if (sets_bytes(log2 + step) > old.room && !alloc_sets(&c->table, log2 + step)) return;
    c->shorts = c->table.data;
    c->short_shift -= step;
    for (size_t i = (size_t)1 << log2;
         i;) { /* backwards, so that no set is overwritten before it is read */
        i -= 2;
        spread(c, (word_short *)old.data + 2 * i, c->shorts + (2 * i << step), (size_t)2 << step);
    }
    if (old.data != c->table.data) ggtok_mem_table_free(&old);
    bring_all_home(c);
    c->n_moved = 0;
}

static void grow_if_crowded(word_cache *c) {
    unsigned log2 = 64 - c->short_shift;
    if (c->n_moved > (size_t)1 << log2 >> 4 && log2 < MAX_LOG2 && !c->n_pending) grow(c);
}

/* ---- any word ---- */

void ggtok_word_cache_put(word_cache *c, const uint8_t *p, size_t n, size_t room,
                          const int32_t *ids, size_t count) {
    if (PLAIN) return;
    if (n <= WORD_SHORT) {
        word_short e[2];
        key_of(e->key, p, n, room);
        if (make_entry(e, ids, count)) {
            put_short(c, e);
            grow_if_crowded(c);
            return;
        }
        set_of_key(c, e->key)->ids[3] |= WORD_FAR;
    }
    if (n <= PIECE_MAX && count <= PIECE_IDS) {
        piece_key key = piece_key_within(p, n, room);
        put_piece(c, &key, ids, count);
    } else {
        ggtok_long_cache_put(&c->longs, p, n, ids, count, n <= PIECE_MAX);
    }
}

/* Appends the ids of a short word that is in its set or the next one. */
static bool get_short(const word_cache *c, const uint64_t key[2], idbuf *out) {
    const word_short *set = word_short_set(c, key), *e = word_short_find(set, key);
    if (!e) e = word_short_near(c, set, key);
    if (!e) return false;
    out->n += word_short_ids(e, out->data + out->n);
    return true;
}

/* ---- pending words ---- */

word_short *ggtok_word_cache_claim(word_cache *c, const uint64_t key[2], uint32_t number) {
    if (PLAIN) return NULL;
    word_short e = {.key = {key[0], key[1]}, .ids = {number}}, *set = set_of_key(c, key), *at;
    ((uint8_t *)e.key)[WORD_SHORT] |= WORD_PENDING;
    if ((at = (word_short *)word_short_find(set, e.key)) ||
        (at = (word_short *)word_short_near(c, set, e.key))) {
        return at;
    }
    if ((at = put_near(c, set, &e))) c->n_pending++;
    return at;
}

void ggtok_word_cache_drop(word_cache *c, word_short *pending) {
    set_entry(pending, &(word_short){.key = {0, 0}});
    c->n_pending--;
}

void ggtok_word_cache_fill(word_cache *c, word_short *pending, const int32_t *ids, size_t count) {
    word_short e[2] = {{.key = {pending->key[0], pending->key[1]}}};
    ((uint8_t *)e->key)[WORD_SHORT] ^= WORD_PENDING;
    if (make_entry(e, ids, count) && !word_is_wide(e)) {
        set_entry(pending, e);
        c->n_pending--;
        grow_if_crowded(c);
    } else { /* the word needs another entry */
        ggtok_word_cache_drop(c, pending);
        ggtok_word_cache_put(c, (const uint8_t *)e->key, key_length(e->key), sizeof e->key, ids,
                             count);
    }
}

static void append_long(const uint32_t *e, idbuf *out) {
    memcpy(out->data + out->n, e + 1, long_n(e) * sizeof *e);
    out->n += long_n(e);
}

bool ggtok_word_cache_get_recent(const word_cache *c, const uint8_t *p, size_t n, idbuf *out) {
    const uint32_t *e = long_cache_recent(&c->longs, p, n);
    if (e) append_long(e, out);
    return e != NULL;
}

bool ggtok_word_cache_get_long(word_cache *c, const uint8_t *p, size_t n, uint64_t hash,
                               idbuf *out) {
    const uint32_t *e = long_cache_find(&c->longs, p, n, hash);
    if (!e) return false;
    /* A short word that fits into a set isn't noted as recent, so that its next hit may promote it
     * (see promote). */
    if (n > WORD_SHORT || long_n(e) > WORD_WIDE_IDS) long_cache_note(&c->longs, e);
    append_long(e, out);
    return true;
}

/* Looks up a word in the piece cache, and then in the long cache, which also holds words with many
 * ids. */
static bool get_piece(word_cache *c, const piece_key *key, uint64_t hash, const uint8_t *p,
                      size_t n, idbuf *out) {
    const piece_slot *e = piece_cache_find(&c->pieces, key, hash);
    if (!e) return ggtok_word_cache_get_long(c, p, n, ggtok_long_hash(p, n), out);
    memcpy(out->data + out->n, e->id, sizeof e->id); /* also overwrites elements after the ids */
    out->n += e->n;
    return true;
}

bool ggtok_word_cache_get_piece(word_cache *c, const uint8_t *p, size_t n, uint64_t hash,
                                idbuf *out) {
    piece_key key = piece_key_of(p, n);
    return get_piece(c, &key, hash, p, n, out);
}

bool ggtok_word_cache_get_far(word_cache *c, const uint64_t key[2], const uint8_t *p, size_t n,
                              idbuf *out) {
    piece_key longer = piece_key_of_word_key(key);
    size_t before = out->n;
    if (!get_piece(c, &longer, piece_hash(&longer), p, n, out)) return false;
    word_short back[2] = {{.key = {key[0], key[1]}}};
    if (make_entry(back, out->data + before, out->n - before)) promote(c, back);
    return true;
}

bool ggtok_word_cache_get(word_cache *c, const uint8_t *p, size_t n, size_t room, idbuf *out) {
    if (n > LONG_MAX_BYTES) return false;
    if (n > PIECE_MAX) return ggtok_word_cache_get_long(c, p, n, ggtok_long_hash(p, n), out);
    if (n > WORD_SHORT) {
        piece_key key = piece_key_within(p, n, room);
        return get_piece(c, &key, piece_hash(&key), p, n, out);
    }
    uint64_t key[2];
    key_of(key, p, n, room);
    if (get_short(c, key, out)) return true;
    return word_is_far(word_short_set(c, key)) && ggtok_word_cache_get_far(c, key, p, n, out);
}

size_t ggtok_word_cache_bytes(const word_cache *c) {
    size_t shorts = ((size_t)2 << (64 - c->short_shift)) * sizeof *c->shorts;
    return shorts + ggtok_piece_cache_bytes(&c->pieces) + ggtok_long_cache_bytes(&c->longs);
}
