/*
 * Tests the word cache: it returns exactly the ids that were stored for a word, whatever other
 * words are stored; a word that is hit repeatedly is promoted to its set; and when the table grows,
 * far words move to their sets.
 *
 *   word_cache [CACHES [SEED]]
 *
 * Claim caches.1, Claim caches.2, Claim caches.3, Claim caches.4, Claim caches.5, Claim caches.6.
 */
#include "cache/word_cache.h"

#include <stdio.h>
#include <stdlib.h>

#include "random.h"

/* The entry layouts drawn in docs/design/caches.md. */
_Static_assert(sizeof(word_short) == 32 && WORD_SHORT == 15, "a short entry");
_Static_assert(WORD_SHORT_IDS == 4 && WORD_WIDE_IDS == 11, "its ids, and those of a wide word");
_Static_assert(offsetof(word_short, ids) == 16, "the length is the key's last byte");
_Static_assert(WORD_ID_BITS == 29 && WORD_WIDE == 7,
               "the meaning of the upper three bits of ids[0]");
_Static_assert(sizeof(piece_slot) == 64 && PIECE_MAX == 31 && PIECE_IDS == 7, "a piece");
_Static_assert(sizeof(long_slot) == 8 && LONG_MAX_BYTES == 255 && LONG_MAX_IDS == 255, "a text");

enum { MAX_WORD = 40, MAX_IDS = 2 * WORD_WIDE_IDS };

/* Derives a word's ids from its bytes and the salt; returns how many there are. */
static size_t ids_of(const uint8_t *word, size_t n, uint64_t salt, int32_t *ids) {
    static const uint32_t limits[] = {1, 2, 300000, WORD_ID_MASK + 1, 1u << 31};
    uint64_t saved = random_state;
    random_state = salt;
    for (size_t i = 0; i < n; i++) random_state = random_state * 31 + word[i] + below(1000);
    size_t count = below(below(2) ? MAX_IDS : WORD_WIDE_IDS + 1);
    uint32_t limit = PICK(limits);
    for (size_t i = 0; i < count; i++) ids[i] = (int32_t)below(limit);
    random_state = saved;
    return count;
}

/* Looks up the word, and stores it after a miss. Returns false if the ids are wrong. `memory` and
 * `text` have exactly the documented sizes, so that sanitizers detect accesses beyond them. */
static bool look_up(word_cache *c, const uint8_t *word, size_t n, size_t room, uint64_t salt) {
    int32_t ids[MAX_IDS], *memory = malloc(LONG_MAX_IDS * sizeof *memory);
    uint8_t *text = malloc(room);
    if (!memory || !text) abort();
    memset(text, 'x', room);
    memcpy(text, word, n);
    size_t count = ids_of(word, n, salt, ids);
    idbuf out = {memory, 0, LONG_MAX_IDS};
    bool good = !ggtok_word_cache_get_recent(c, text, n, &out) ||
                (out.n == count && (!count || !memcmp(memory, ids, count * sizeof *ids)));
    out.n = 0;
    if (!good) {
        /* the ids are wrong */
    } else if (ggtok_word_cache_get(c, text, n, room, &out)) {
        good = out.n == count && (!count || !memcmp(memory, ids, count * sizeof *ids));
    } else {
        ggtok_word_cache_put(c, text, n, room, ids, count);
    }
    free(text);
    free(memory);
    return good;
}

/* A short word that is pending: it has an entry, but no ids yet. */
typedef struct pending_word {
    uint64_t key[2];
    size_t n;
    word_short *at;
} pending_word;

static bool is_cached(word_cache *c, const uint8_t *word, size_t n) {
    int32_t ids[LONG_MAX_IDS];
    idbuf out = {ids, 0, LONG_MAX_IDS};
    return ggtok_word_cache_get(c, word, n, n, &out);
}

/* Makes an uncached word pending as number *i, unless it is already pending or there is no room.
 * Returns false if a lookup finds it, or if a second claim returns another entry or number. */
static bool make_pending(word_cache *c, const uint8_t *word, size_t n, pending_word *all,
                         size_t *i) {
    pending_word *w = &all[*i];
    uint8_t padded[16] = {0};
    word_short_key(w->key, memcpy(padded, word, n), n);
    w->n = n;
    if (is_cached(c, word, n) || !(w->at = ggtok_word_cache_claim(c, w->key, (uint32_t)*i)))
        return true;
    const uint32_t number = w->at->ids[0];
    if (number == *i) ++*i;
    return number < *i && all[number].at == w->at && !is_cached(c, word, n) &&
           ggtok_word_cache_claim(c, w->key, 1000) == w->at && w->at->ids[0] == number &&
           c->n_pending == *i;
}

/* Stores each pending word's ids, or drops the word. */
static void end_pending(word_cache *c, const pending_word *all, size_t n, uint64_t salt) {
    int32_t ids[MAX_IDS];
    for (size_t i = 0; i < n; i++) {
        if (below(3)) {
            size_t count = ids_of((const uint8_t *)all[i].key, all[i].n, salt, ids);
            ggtok_word_cache_fill(c, all[i].at, ids, count);
        } else {
            ggtok_word_cache_drop(c, all[i].at);
        }
    }
}

static bool returns_stored_ids(uint64_t seed) {
    enum { PENDING = 100 };
    word_cache c;
    pending_word all[PENDING];
    size_t n_pending_words = 0;
    random_state = seed;
    if (!ggtok_word_cache_init(&c)) abort();
    size_t letters = 2 + below(20), longest = 1 + below(below(4) ? WORD_SHORT : MAX_WORD);
    bool good = true;
    for (size_t i = 1000 + below(20000); good && i--;) {
        uint8_t word[MAX_WORD];
        size_t n = 1 + below(longest);
        for (size_t k = 0; k < n; k++) word[k] = (uint8_t)('a' + below(letters));
        good = n <= WORD_SHORT && !below(3) ? make_pending(&c, word, n, all, &n_pending_words)
                                            : look_up(&c, word, n, n + below(40), seed);
        if (n_pending_words == PENDING || !below(PENDING)) {
            end_pending(&c, all, n_pending_words, seed);
            n_pending_words = 0;
        }
    }
    end_pending(&c, all, n_pending_words, seed);
    good &= !c.n_pending;
    ggtok_word_cache_free(&c);
    return good;
}

/* Fills the table with other words, then repeatedly looks up a hundred words of one id each.
 * Returns how many of these end up in their sets. */
static size_t in_their_sets(size_t ids_of_others) {
    enum { OTHERS = 500000, WORDS = 100, TIMES = 50 };
    word_cache c;
    int32_t ids[WORD_WIDE_IDS] = {0}, memory[LONG_MAX_IDS];
    char word[16];
    size_t found = 0;
    if (!ggtok_word_cache_init(&c)) abort();
    for (int i = 0; i < OTHERS; i++) {
        int n = snprintf(word, sizeof word, "other %d", i);
        ggtok_word_cache_put(&c, (uint8_t *)word, (size_t)n, sizeof word, ids, ids_of_others);
    }
    for (int i = 0; i < TIMES * WORDS; i++) {
        int n = snprintf(word, sizeof word, "word %d", i % WORDS);
        idbuf out = {memory, 0, LONG_MAX_IDS};
        if (!ggtok_word_cache_get(&c, (uint8_t *)word, (size_t)n, sizeof word, &out)) {
            ggtok_word_cache_put(&c, (uint8_t *)word, (size_t)n, sizeof word, ids, 1);
        } else if (i >= (TIMES - 1) * WORDS) {
            uint64_t key[2];
            word_short_key(key, (uint8_t *)word, (size_t)n);
            found += word_short_find(word_short_set(&c, key), key) != NULL;
        }
    }
    ggtok_word_cache_free(&c);
    return found;
}

static bool is_near(const word_cache *c, const uint64_t key[2]) {
    const word_short *set = word_short_set(c, key);
    return word_short_find(set, key) || word_short_near(c, set, key);
}

/* Stores words of n_ids ids until the table has grown a few times. Returns whether nearly all words
 * are in their sets or in the next ones, and all sets with far words are marked as having them. */
static bool far_words_move(size_t n_ids) {
    enum { GROWTHS = 4 };
    word_cache c;
    int32_t ids[WORD_WIDE_IDS] = {0};
    char word[16];
    int n_words = 0, n_far = 0;
    size_t far_sets = 0;
    bool marked = true;
    if (!ggtok_word_cache_init(&c)) abort();
    for (int growths = 0; growths < GROWTHS; growths++) {
        for (unsigned before = c.short_shift; c.short_shift == before; n_words++) {
            int n = snprintf(word, sizeof word, "word %d", n_words);
            ggtok_word_cache_put(&c, (uint8_t *)word, (size_t)n, sizeof word, ids, n_ids);
        }
    }
    for (int i = 0; i < n_words; i++) {
        uint64_t key[2];
        int n = snprintf(word, sizeof word, "word %d", i);
        word_short_key(key, (uint8_t *)word, (size_t)n);
        if (is_near(&c, key)) continue;
        n_far++;
        if (word_is_far(word_short_set(&c, key))) continue;
        piece_key far = piece_key_within((uint8_t *)word, (size_t)n, sizeof word);
        marked &= !piece_cache_find(&c.pieces, &far, piece_hash(&far));
    }
    for (size_t i = 0; i < (size_t)1 << (64 - c.short_shift); i++) {
        far_sets += word_is_far(&c.shorts[2 * i]);
    }
    ggtok_word_cache_free(&c);
    printf("%d of %d words of %zu ids are far, %zu sets are marked as having far words\n", n_far,
           n_words, n_ids, far_sets);
    return marked && n_far <= n_words / 25 && far_sets <= (size_t)n_words / 25;
}

int main(int argc, char **argv) {
    unsigned long caches = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    for (unsigned long i = seed; i < seed + caches; i++) {
        if (returns_stored_ids(i)) continue;
        printf("seed %lu: the ids differ from the stored ones\n", i);
        return 1;
    }
    for (size_t n = 1; n <= WORD_WIDE_IDS; n += WORD_WIDE_IDS - 1) {
        size_t found = in_their_sets(n);
        printf("%zu of 100 words are in their sets, among words of %zu ids\n", found, n);
        if (found < 80 || (!SMALL && !far_words_move(n))) return 1;
    }
    return 0;
}
