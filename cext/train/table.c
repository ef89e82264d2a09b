#include "train/table.h"

#include "base/cpu.h"

enum {
    TAG_BITS = 24,
    OFFSET_BITS = 64 - TAG_BITS,
    FIRST_LOG2 = 6,
    LONG_WORD = 255, /* length byte of a word whose length follows in four bytes */
    HEAD = 9         /* bytes of a record before a word shorter than LONG_WORD */
};
#define OFFSET_MASK (((uint64_t)1 << OFFSET_BITS) - 1)

bool ggtok_table_init(table *t, uint64_t max_words) {
    memset(t, 0, sizeof *t);
    t->seed = ggtok_hash_new_seed(t);
    if (max_words) {
        uint64_t most = max_words / TABLE_SHARDS;
        t->max_words = most > SIZE_MAX / 2 ? SIZE_MAX / 2 : most ? (size_t)most : 1;
    }
    for (unsigned i = 0; i < TABLE_SHARDS; i++) ggtok_shared_lock_init(&t->locks[i]);
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        table_shard *s = &t->shards[i];
        s->log2 = FIRST_LOG2;
        s->slots = ggtok_mem_zalloc(sizeof *s->slots << s->log2);
        if (!s->slots) return false;
    }
    return true;
}

static void free_arena(table_shard *s) {
    for (size_t i = 0; i < s->n_chunks; i++) ggtok_mem_free(s->chunks[i]);
    ggtok_mem_free(s->chunks);
    s->chunks = NULL;
    s->n_chunks = s->cap_chunks = s->used = 0;
}

void ggtok_table_free(table *t) {
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        free_arena(&t->shards[i]);
        ggtok_mem_free(t->shards[i].slots);
        ggtok_shared_lock_free(&t->locks[i]);
    }
}

/* ---- records ---- */

static uint8_t *record_at(const table_shard *s, size_t offset) {
    return s->chunks[offset >> TABLE_CHUNK_LOG2] + offset % TABLE_CHUNK;
}

static uint64_t load_count(const uint8_t *record) {
    return hash_load64(record);
}

static const uint8_t *record_word(const uint8_t *record, size_t *n) {
    *n = record[8];
    if (*n < LONG_WORD) return record + HEAD;
    *n = hash_load32(record + HEAD);
    return record + HEAD + 4;
}

static size_t record_size(size_t n) {
    return n + HEAD + (n < LONG_WORD ? 0 : 4);
}

/* Marks the rest of the last chunk as unused, with a length of 0, which no word has. */
static void end_chunk(table_shard *s) {
    size_t left = TABLE_CHUNK - s->used % TABLE_CHUNK;
    if (left >= HEAD && left < TABLE_CHUNK) record_at(s, s->used)[8] = 0;
}

/* Adds a block of `size` bytes at the end of the arena. Returns false if out of memory. */
static bool add_block(table_shard *s, size_t size) {
    size_t chunks = (size + TABLE_CHUNK - 1) >> TABLE_CHUNK_LOG2;
    if (s->n_chunks + chunks > OFFSET_MASK >> TABLE_CHUNK_LOG2) return false;
    if (s->n_chunks + chunks > s->cap_chunks) {
        size_t cap = 2 * s->cap_chunks + chunks + 4;
        uint8_t **grown = ggtok_mem_realloc(s->chunks, mem_mul(cap, sizeof *grown));
        if (!grown) return false;
        s->chunks = grown;
        s->cap_chunks = cap;
    }
    uint8_t *block = ggtok_mem_realloc(NULL, chunks << TABLE_CHUNK_LOG2);
    if (!block) return false;
    if (s->used < s->n_chunks << TABLE_CHUNK_LOG2) end_chunk(s);
    s->used = s->n_chunks << TABLE_CHUNK_LOG2;
    s->chunks[s->n_chunks++] = block;
    while (--chunks) s->chunks[s->n_chunks++] = NULL;
    return true;
}

/* Allocates a record of `size` bytes and returns its offset, or SIZE_MAX if out of memory. */
static size_t arena_take(table_shard *s, size_t size) {
    if ((s->n_chunks << TABLE_CHUNK_LOG2) - s->used < size && !add_block(s, size)) return SIZE_MAX;
    size_t offset = s->used;
    /* A block of several chunks contains only one record, since only its first chunk has an
     * address. */
    s->used = size > TABLE_CHUNK ? s->n_chunks << TABLE_CHUNK_LOG2 : offset + size;
    return offset;
}

/* ---- slots ---- */

static size_t slot_of(uint64_t hash, unsigned log2) {
    return (size_t)(hash << TABLE_SHARDS_LOG2 >> (64 - log2));
}

static uint64_t slot_value(uint64_t hash, size_t offset) {
    return hash << OFFSET_BITS | (uint64_t)(offset + 1);
}

static void slot_put(table_shard *s, uint64_t hash, size_t offset) {
    size_t mask = ((size_t)1 << s->log2) - 1, i = slot_of(hash, s->log2);
    while (s->slots[i]) i = (i + 1) & mask;
    s->slots[i] = slot_value(hash, offset);
}

/* Returns the record of a word; if there is none, returns NULL and sets *slot to the free slot for
 * it. */
static uint8_t *find_record(const table_shard *s, const table_word *w, size_t *slot) {
    size_t mask = ((size_t)1 << s->log2) - 1;
    uint64_t tag = w->hash << OFFSET_BITS;
    for (size_t i = slot_of(w->hash, s->log2);; i = (i + 1) & mask) {
        uint64_t value = s->slots[i];
        *slot = i;
        if (!value) return NULL;
        if ((value ^ tag) >> OFFSET_BITS) continue;
        uint8_t *record = record_at(s, (size_t)(value & OFFSET_MASK) - 1);
        size_t n;
        const uint8_t *p = record_word(record, &n);
        if (n == w->n && mem_equal(p, w->p, n)) return record;
    }
}

bool ggtok_table_next(const table_shard *s, size_t *offset, table_word *word) {
    size_t at = *offset;
    const uint8_t *chunk = at < s->used ? s->chunks[at >> TABLE_CHUNK_LOG2] : NULL;
    size_t left = TABLE_CHUNK - at % TABLE_CHUNK;
    if (!chunk || left < HEAD || !chunk[at % TABLE_CHUNK + 8]) { /* no record: next chunk */
        at = ((at >> TABLE_CHUNK_LOG2) + 1) << TABLE_CHUNK_LOG2;
        while (at < s->used && !s->chunks[at >> TABLE_CHUNK_LOG2]) at += TABLE_CHUNK;
        if (at >= s->used) return false;
    }
    const uint8_t *record = record_at(s, at);
    word->count = load_count(record);
    word->p = record_word(record, &word->n);
    *offset = at + record_size(word->n);
    return true;
}

static bool grow(table *t, table_shard *s) {
    unsigned log2 = s->log2 + 1;
    uint64_t *slots = ggtok_mem_zalloc(mem_mul(sizeof *slots, (size_t)1 << log2));
    if (!slots) return false;
    ggtok_mem_free(s->slots);
    s->slots = slots;
    s->log2 = log2;
    table_word w;
    for (size_t at = 0; ggtok_table_next(s, &at, &w);) {
        size_t n = record_size(w.n);
        slot_put(s, table_hash(t, w.p, w.n), at - n);
    }
    return true;
}

static bool store_new(table *t, table_shard *s, const table_word *w, size_t slot) {
    if (s->n >= ((size_t)1 << s->log2) / 10 * 7) {
        if (!grow(t, s)) return false;
        find_record(s, w, &slot);
    }
    size_t offset = arena_take(s, record_size(w->n));
    if (offset == SIZE_MAX) return false;
    uint8_t *record = record_at(s, offset);
    memcpy(record, &w->count, 8);
    record[8] = w->n < LONG_WORD ? (uint8_t)w->n : LONG_WORD;
    if (w->n >= LONG_WORD) {
        uint32_t n = (uint32_t)w->n;
        memcpy(record + HEAD, &n, 4);
    }
    memcpy(record + record_size(w->n) - w->n, w->p, w->n);
    s->slots[slot] = slot_value(w->hash, offset);
    s->n++;
    return true;
}

/* ---- a limit on the number of words ---- */

/* Returns the least count such that at most `most` words occur more often. */
static uint64_t threshold(const table_shard *s, size_t most) {
    enum { SMALL_COUNTS = 256 };
    size_t words_of[SMALL_COUNTS] = {0}, above = s->n, at = 0;
    table_word w;
    while (ggtok_table_next(s, &at, &w)) {
        if (w.count < SMALL_COUNTS) words_of[w.count]++;
    }
    uint64_t count = 0;
    while (count + 1 < SMALL_COUNTS && above > most) above -= words_of[++count];
    if (above <= most) return count;
    /* Few words are this frequent: double the count until it is high enough. */
    for (; above > most; count *= 2) {
        above = at = 0;
        while (ggtok_table_next(s, &at, &w)) above += w.count > 2 * count;
    }
    return count;
}

/* Drops the rarest words, keeping at most half as many words as allowed. */
static bool prune(table *t, table_shard *s) {
    table_shard kept = {.log2 = s->log2};
    uint64_t rare = threshold(s, t->max_words / 2);
    kept.dropped = s->dropped;
    kept.dropped_words = s->dropped_words;
    kept.slots = ggtok_mem_zalloc(mem_mul(sizeof *kept.slots, (size_t)1 << kept.log2));
    if (!kept.slots) return false;
    table_word w;
    bool ok = true;
    for (size_t at = 0; ok && ggtok_table_next(s, &at, &w);) {
        size_t slot;
        if (w.count <= rare) {
            kept.dropped += w.count;
            kept.dropped_words++;
            continue;
        }
        w.hash = table_hash(t, w.p, w.n);
        find_record(&kept, &w, &slot);
        ok = store_new(t, &kept, &w, slot);
    }
    table_shard gone = ok ? *s : kept;
    if (ok) *s = kept;
    free_arena(&gone);
    ggtok_mem_free(gone.slots);
    return ok;
}

/* ---- words from threads ---- */

static bool add_one(table *t, table_shard *s, const table_word *w, bool *overflow) {
    size_t slot;
    uint8_t *record = find_record(s, w, &slot);
    if (record) {
        uint64_t count = load_count(record);
        if (count > UINT64_MAX - w->count) {
            *overflow = true;
            return false;
        }
        count += w->count;
        memcpy(record, &count, 8);
        return true;
    }
    if (t->max_words && s->n >= t->max_words) {
        if (!prune(t, s)) return false;
        find_record(s, w, &slot);
    }
    return store_new(t, s, w, slot);
}

bool ggtok_table_add(table *t, unsigned shard, const table_word *words, size_t n, bool *overflow) {
    enum { AHEAD = 8 };
    table_shard *s = &t->shards[shard];
    bool ok = true;
    shared_lock_take(&t->locks[shard]);
    for (size_t i = 0; ok && i < n; i++) {
        if (i + AHEAD < n) PREFETCH(&s->slots[slot_of(words[i + AHEAD].hash, s->log2)]);
        ok = add_one(t, s, &words[i], overflow);
    }
    shared_lock_give(&t->locks[shard]);
    return ok;
}

size_t ggtok_table_bytes(const table *t) {
    size_t n = 0;
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        const table_shard *s = &t->shards[i];
        n += (sizeof *s->slots << s->log2) + (s->n_chunks << TABLE_CHUNK_LOG2);
    }
    return n;
}
