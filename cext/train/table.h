/*
 * Words and how often each occurs: one table for all threads, in shards by hash.
 *
 * A shard is an open-addressing table of 8-byte slots over an arena of records:
 *
 *   slot     tag (24 bits of the hash) | offset of the record in the arena + 1 (40 bits)
 *   record   count (8 bytes) | length (1 byte, or 255 and 4 more) | the word's bytes
 *
 * So a word of 7 bytes takes 16 bytes plus its share of the slots, of which at most 70 % are used:
 * about 28 bytes in all, for any number of threads. The hash is seeded with a secret of the
 * process.
 */
#ifndef GGTOK_TRAIN_TABLE_H
#define GGTOK_TRAIN_TABLE_H

#include "base/hash.h"
#include "base/mem.h"
#include "base/shared_lock.h"
#include "ggtok.h"

enum {
    TABLE_SHARDS_LOG2 = 4,
    TABLE_SHARDS = 1 << TABLE_SHARDS_LOG2,
    TABLE_CHUNK_LOG2 = 16,
    TABLE_CHUNK = 1 << TABLE_CHUNK_LOG2
};

typedef struct table_shard {
    uint64_t *slots; /* slots as described above; 0: free */
    unsigned log2;   /* log2 of the number of slots */
    size_t n;        /* number of words */
    /* The arena: byte o is at chunks[o >> TABLE_CHUNK_LOG2] + o % TABLE_CHUNK. A record never
     * crosses a chunk boundary; a larger one has a separate block of several chunks. */
    uint8_t **chunks;
    size_t n_chunks, cap_chunks;
    size_t used; /* offset after the last record */
    /* Words dropped because of the limit, and their occurrences. */
    uint64_t dropped_words, dropped;
} table_shard;

typedef struct table {
    table_shard shards[TABLE_SHARDS];
    shared_lock locks[TABLE_SHARDS];
    uint64_t seed;
    size_t max_words; /* limit for each shard; 0: no limit */
} table;

typedef struct table_word {
    uint64_t hash, count;
    const uint8_t *p;
    size_t n;
} table_word;

bool ggtok_table_init(table *t, uint64_t max_words);
void ggtok_table_free(table *t);

static inline uint64_t table_hash(const table *t, const uint8_t *p, size_t n) {
    return hash_text(p, n, t->seed);
}

static inline unsigned table_shard_of(uint64_t hash) {
    return (unsigned)(hash >> (64 - TABLE_SHARDS_LOG2));
}

/* Adds words of at most UINT32_MAX bytes, all of which belong to `shard`; the shard is locked
 * during the call. Adds up the counts of equal words. Returns false if out of memory or if a count
 * would exceed 64 bits (*overflow). */
bool ggtok_table_add(table *t, unsigned shard, const table_word *words, size_t n, bool *overflow);

/* Sets *word to the next word of a shard, in order of insertion; start with *offset = 0. Returns
 * false at the end. */
bool ggtok_table_next(const table_shard *s, size_t *offset, table_word *word);

size_t ggtok_table_bytes(const table *t);

#endif
