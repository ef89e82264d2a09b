/*
 * Counts the pairs in random words, and checks that the order in which they are inserted into the
 * index of pairs is independent of their home slots. The index grows during the insertions; if the
 * home slots of the first pairs were all at its beginning, each insertion would probe all earlier
 * pairs.
 */
#include "train/recount.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>

enum { N_SYMBOLS = 1 << 16, N_WORDS = 1 << 18 };

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("%s does not hold (line %d)\n", #what, __LINE__); \
            exit(1); \
        } \
    } while (0)

/* Divides the index into 2^log2_parts equal parts, and returns the greatest number of home slots,
 * among those of the first n pairs, that are in the same part. */
static size_t most_in_part(const pairs *p, size_t n, unsigned log2_parts) {
    size_t counts[64] = {0}, most = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t hash = pair_hash(pair_key(p->all[i].left, p->all[i].right));
        size_t count = ++counts[hash >> (64 - log2_parts)];
        if (count > most) most = count;
    }
    return most;
}

int main(void) {
    enum { LOG2_PARTS = 5, TIMES = 3 };
    static uint32_t slots[2 * N_WORDS + 1], starts[2] = {0, 2 * N_WORDS};
    static uint64_t counts[1] = {1};
    static ggtok_symbol initial[N_SYMBOLS];
    const ggtok_merge_options options = {
        .initial = initial, .n_initial = N_SYMBOLS, .first_new = N_SYMBOLS, .most_new = 1};
    symbols s;
    pairs p;
    random_state = 3;
    for (uint32_t i = 0; i < N_SYMBOLS; i++) initial[i].number = i;
    for (size_t i = 0; i < 2 * N_WORDS; i += 2) {
        slots[i] = SLOT_FIRST | (uint32_t)below(N_SYMBOLS);
        slots[i + 1] = (uint32_t)below(N_SYMBOLS);
    }
    slots[2 * N_WORDS] = SLOT_FIRST;
    const layout l = {
        .slots = slots, .n = 2 * N_WORDS, .starts = starts, .counts = counts, .n_classes = 1};
    CHECK(ggtok_symbols_init(&s, &options));
    CHECK(ggtok_pairs_init(&p, &s));
    p.least = 1;
    CHECK(ggtok_recount(&p, &l));
    CHECK(p.n > N_WORDS / 2);
    for (size_t n = 1 << 10; n <= p.n; n *= 2) {
        CHECK(most_in_part(&p, n, LOG2_PARTS) < TIMES * n >> LOG2_PARTS);
    }
    ggtok_pairs_free(&p);
    ggtok_symbols_free(&s);
    printf("ok\n");
    return 0;
}
