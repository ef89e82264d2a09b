/* Counts words; ggtok.h (training) specifies these functions. */
#include "train/counter.h"

#include "base/cpu.h"
#include "base/error.h"
#include "unicode/space_mark.h"
#include "unicode/utf8_valid.h"

enum { PAD = PIECE_MAX + 1 };

ggtok_status ggtok_counts_new(const ggtok_counts_options *options, ggtok_counts **out,
                              ggtok_error *err) {
    const pretok_row *row = NULL;
    const char *pre = options->pre ? options->pre : "";
    *out = NULL;
    if (options->cut == GGTOK_CUT_PRE && !(row = ggtok_pretok_find(pre, strlen(pre)))) {
        return ggtok_error_pre(err, pre, strlen(pre), NULL);
    }
    ggtok_counts *c = ggtok_mem_zalloc(sizeof *c);
    if (!c) return ggtok_error_memory(err);
    c->options = *options;
    c->options.pre = NULL;
    c->row = row;
    c->spaces = options->cut == GGTOK_CUT_SPACES ||
                (row && ggtok_pretok_flags(row) & PRETOK_ESCAPE_WHITESPACES);
    if (!ggtok_table_init(&c->table, options->max_words)) {
        ggtok_counts_free(c);
        return ggtok_error_memory(err);
    }
    *out = c;
    return GGTOK_OK;
}

void ggtok_counts_free(ggtok_counts *c) {
    if (!c) return;
    ggtok_table_free(&c->table);
    ggtok_mem_free(c);
}

ggtok_counts_info ggtok_counts_get_info(const ggtok_counts *c) {
    ggtok_counts_info info = {0};
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        const table_shard *s = &c->table.shards[i];
        info.n_words += s->n;
        info.dropped_words += s->dropped_words;
        info.dropped += s->dropped;
        table_word w;
        for (size_t at = 0; ggtok_table_next(s, &at, &w);) {
            info.word_bytes += w.n;
            info.total += w.count;
            info.total_bytes += w.count * w.n;
        }
    }
    info.memory = ggtok_table_bytes(&c->table);
    return info;
}

/* ---- a thread's counter ---- */

ggtok_status ggtok_counter_new(ggtok_counts *counts, ggtok_counter **out, ggtok_error *err) {
    ggtok_counter *c = *out = ggtok_mem_zalloc(sizeof *c);
    if (!c) return ggtok_error_memory(err);
    c->counts = counts;
    c->shorts = ggtok_mem_lines(sizeof *c->shorts << COUNTER_SHORT_LOG2, &c->shorts_block);
    c->longs = ggtok_mem_zalloc(sizeof *c->longs * 2 << COUNTER_LONG_LOG2);
    c->batches = ggtok_mem_alloc(sizeof *c->batches * TABLE_SHARDS);
    if (!c->shorts || !c->longs || !c->batches) {
        ggtok_counter_free(c);
        *out = NULL;
        return ggtok_error_memory(err);
    }
    for (size_t i = 0; i < (size_t)1 << COUNTER_SHORT_LOG2; i++) {
        memset(c->shorts[i].keys, 0xFF, sizeof c->shorts[i].keys); /* zeros are a valid key */
    }
    for (unsigned i = 0; i < TABLE_SHARDS; i++) c->batches[i].n = c->batches[i].n_bytes = 0;
    return GGTOK_OK;
}

void ggtok_counter_free(ggtok_counter *c) {
    if (!c) return;
    ggtok_mem_free(c->shorts_block);
    ggtok_mem_free(c->longs);
    ggtok_mem_free(c->batches);
    ggtok_mem_free(c->text.data);
    ggtok_mem_free(c->spaced.data);
    ggtok_mem_free(c->ends.data);
    ggtok_mem_free(c);
}

static bool send(ggtok_counter *c, unsigned shard) {
    counter_batch *b = &c->batches[shard];
    bool ok = ggtok_table_add(&c->counts->table, shard, b->words, b->n, &c->overflow);
    b->n = b->n_bytes = 0;
    return ok;
}

/* Adds a word to the batch for its shard. Copies `room` bytes, at least the word's length. */
ALWAYS_INLINE bool put(ggtok_counter *c, table_word w, size_t room) {
    unsigned shard = table_shard_of(w.hash);
    counter_batch *b = &c->batches[shard];
    if (b->n == COUNTER_BATCH || room > sizeof b->bytes - b->n_bytes) {
        if (!send(c, shard)) return false;
    }
    w.p = memcpy(b->bytes + b->n_bytes, w.p, room);
    b->n_bytes += w.n;
    b->words[b->n++] = w;
    return true;
}

/* Adds a word to the shared table, through a batch if the word is short enough. */
static bool add_far(ggtok_counter *c, const uint8_t *p, size_t n, uint64_t count) {
    table *t = &c->counts->table;
    if (n > UINT32_MAX) {
        c->too_long = true;
        return false;
    }
    table_word w = {.hash = table_hash(t, p, n), .count = count, .p = p, .n = n};
    if (n <= COUNTER_BATCH_BYTES) return put(c, w, n);
    return ggtok_table_add(t, table_shard_of(w.hash), &w, 1, &c->overflow);
}

static counter_key short_key(const uint8_t p[COUNTER_SHORT], size_t n) {
    static const uint8_t pads[2 * COUNTER_SHORT] = {
        [16] = 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF,        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
    };
    const uint8_t *pad = pads + COUNTER_SHORT - n;
    return (counter_key){
        {hash_load64(p) | hash_load64(pad), hash_load64(p + 8) | hash_load64(pad + 8)}};
}

static size_t short_n(const counter_key *key) {
    const uint8_t *p = (const uint8_t *)key;
    size_t n = COUNTER_SHORT;
    for (int i = 0; i < COUNTER_SHORT; i++) n -= p[i] == 0xFF;
    return n;
}

/* Like add_far, for a short word, without branches that depend on its length. */
static bool add_short_far(ggtok_counter *c, const counter_key *key, uint64_t count) {
    const uint8_t *p = (const uint8_t *)key;
    if (!count) return true;
    size_t n = short_n(key);
    uint64_t hash = hash_text_within(p, n, COUNTER_SHORT, c->counts->table.seed);
    return put(c, (table_word){.hash = hash, .count = count, .p = p, .n = n}, COUNTER_SHORT);
}

/* Like add_far, for a long word whose key has its length in the last byte. */
static bool add_long_far(ggtok_counter *c, const piece_key *key, uint64_t count) {
    const uint8_t *p = (const uint8_t *)key->w;
    return !count || add_far(c, p, p[sizeof key->w - 1], count);
}

/* Replaces the rarest word of a set by a word that isn't in the set. */
static bool replace_short(ggtok_counter *c, counter_set *set, const counter_key *key) {
    unsigned i = set->counts[1] < set->counts[0];
    if (set->counts[2] < set->counts[i]) i = 2;
    const counter_key gone = set->keys[i];
    const uint32_t count = set->counts[i];
    set->keys[i] = *key;
    set->counts[i] = 1;
    return add_short_far(c, &gone, count);
}

static bool replace_long(ggtok_counter *c, counter_long *set, const piece_key *key) {
    counter_long *e = set + (set[1].count < set[0].count), gone = *e;
    *e = (counter_long){*key, 1};
    return add_long_far(c, &gone.key, gone.count);
}

static inline size_t short_set(const counter_key *key) {
    return (size_t)(word_hash(key->w) >> (64 - COUNTER_SHORT_LOG2));
}

static bool add_long(ggtok_counter *c, const uint8_t *p, size_t n, size_t room) {
    if (n > PIECE_MAX) return add_far(c, p, n, 1);
    piece_key key = piece_key_within(p, n, room);
    size_t mask = ((size_t)1 << COUNTER_LONG_LOG2) - 1;
    counter_long *set = &c->longs[2 * (piece_hash(&key) & mask)];
    size_t first = piece_same(&set[0].key, &key), second = piece_same(&set[1].key, &key);
    if (!(first | second)) return replace_long(c, set, &key);
    set[second].count++;
    return true;
}

static ggtok_status failed(const ggtok_counter *c, ggtok_error *err) {
    if (c->too_long)
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "a word is longer than 4 GiB - 1");
    if (!c->overflow) return ggtok_error_memory(err);
    return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "a word's count exceeds 64 bits");
}

static bool flush_shorts(ggtok_counter *c) {
    c->since = 0;
    for (counter_set *s = c->shorts, *end = s + ((size_t)1 << COUNTER_SHORT_LOG2); s < end; s++) {
        for (unsigned i = 0; i < COUNTER_WAYS; i++) {
            uint32_t count = s->counts[i];
            s->counts[i] = 0;
            if (!add_short_far(c, &s->keys[i], count)) return false;
        }
    }
    return true;
}

ggtok_status ggtok_counter_flush(ggtok_counter *c, ggtok_error *err) {
    if (!flush_shorts(c)) goto fail;
    for (size_t i = 0; i < (size_t)2 << COUNTER_LONG_LOG2; i++) {
        counter_long e = c->longs[i];
        memset(&c->longs[i], 0, sizeof e);
        if (!add_long_far(c, &e.key, e.count)) goto fail;
    }
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        if (!send(c, i)) goto fail;
    }
    return GGTOK_OK;
fail:
    return failed(c, err);
}

/* ---- words of a document ---- */

/* Adds the words text[from..ends[0]), text[ends[0]..ends[1]), ..., at most a group. n bytes of the
 * text are readable. All of the group's sets are prefetched before the first is used. */
enum { GROUP = 64 };

ALWAYS_INLINE bool add_group(ggtok_counter *c, const uint8_t *text, size_t n, size_t from,
                             const size_t *ends, size_t count, bool at_end) {
    counter_key keys[GROUP];
    counter_set *sets[GROUP];
    size_t n_short = 0, longs[GROUP], n_long = 0;
    for (size_t i = 0, start = from; i < count; start = ends[i++]) {
        size_t length = ends[i] - start;
        if (length > COUNTER_SHORT) {
            longs[n_long++] = i;
            continue;
        }
        counter_key *key = &keys[n_short];
        if (at_end && n - start < COUNTER_SHORT) { /* fewer bytes are readable than a key has */
            uint8_t padded[COUNTER_SHORT] = {0};
            memcpy(padded, text + start, length);
            *key = short_key(padded, length);
        } else {
            *key = short_key(text + start, length);
        }
        sets[n_short] = c->shorts + short_set(key);
        PREFETCH_WRITE(sets[n_short++]);
    }
    for (size_t i = 0; i < n_short; i++) {
        counter_set *set = sets[i];
        unsigned first = word_same(set->keys[0].w, keys[i].w);
        unsigned second = word_same(set->keys[1].w, keys[i].w);
        unsigned third = word_same(set->keys[2].w, keys[i].w);
        if (first | second | third) {
            set->counts[second + 2 * third]++;
        } else if (!replace_short(c, set, &keys[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < n_long; i++) {
        size_t start = longs[i] ? ends[longs[i] - 1] : from;
        if (!add_long(c, text + start, ends[longs[i]] - start, n - start)) return false;
    }
    return true;
}

static bool add_words(ggtok_counter *c, const uint8_t *text, size_t n, size_t from,
                      const size_t *ends, size_t count) {
    for (size_t group; count; from = ends[group - 1], ends += group, count -= group) {
        group = count < GROUP ? count : GROUP;
        if (c->since > COUNTER_SINCE - GROUP && !flush_shorts(c)) return false;
        c->since += (uint32_t)group;
        bool ok = n - ends[group - 1] >= COUNTER_SHORT
                      ? add_group(c, text, n, from, ends, group, false)
                      : add_group(c, text, n, from, ends, group, true);
        if (!ok) return false;
    }
    return true;
}

/* Adds the words in c->found; `room` bytes of their text are readable. */
static bool add_found(ggtok_counter *c, const uint8_t *text, size_t room) {
    size_t n = c->n_found;
    if (!n) return true;
    c->n_found = 0;
    if (!add_words(c, text, room, c->added, c->found, n)) return false;
    c->added = c->found[n - 1];
    return true;
}

/* Adds SentencePiece's words: each is a run of U+2581 and the characters up to the next U+2581.
 * `text` is escaped; `n` is its length, `room` the number of readable bytes. */
static bool add_marked(ggtok_counter *c, const uint8_t *text, size_t n, size_t room) {
    enum { MARK = 3 };
    size_t i = 0;
    while (i < n) {
        while (n - i >= MARK && !memcmp(text + i, SPACE_MARK, MARK)) i += MARK;
        do { /* to the next U+2581 */
            const uint8_t *mark = memchr(text + i, (uint8_t)SPACE_MARK[0], n - i);
            i = mark ? (size_t)(mark - text) : n;
            if (i == n || (n - i >= MARK && !memcmp(text + i, SPACE_MARK, MARK))) break;
            i++;
        } while (i < n);
        if (c->n_found == COUNTER_FOUND && !add_found(c, text, room)) return false;
        c->found[c->n_found++] = i;
    }
    return add_found(c, text, room);
}

/* Copies the text to c->spaced with its spaces escaped, as the kind of splitting requires, and adds
 * PAD bytes after the copy. */
static bool escape(ggtok_counter *c, const uint8_t *text, size_t n) {
    bytebuf *out = &c->spaced;
    out->n = 0;
    if (c->counts->options.cut == GGTOK_CUT_SPACES) {
        if (!bytebuf_append(out, SPACE_MARK, 3) || !ggtok_space_mark_escape(out, text, n))
            return false;
    } else if (ggtok_pretok_flags(c->counts->row) & PRETOK_MARK_LINES) {
        if (!ggtok_space_mark_escape_lines(out, text, n)) return false;
    } else if (!ggtok_space_mark_escape(out, text, n)) {
        return false;
    }
    if (!bytebuf_reserve(out, PAD)) return false;
    memset(out->data + out->n, 0, PAD);
    return true;
}

/* Adds the words of a text or, with `lines`, of each of its lines. */
static bool add_cut(ggtok_counter *c, const uint8_t *text, size_t n, size_t room, bool lines) {
    pretok_walk walk;
    (lines ? ggtok_pretok_begin_lines : ggtok_pretok_begin)(&walk, c->counts->row, text, n);
    do {
        if (!add_found(c, text, room)) return false;
        c->n_found = ggtok_pretok_next(&walk, c->found, COUNTER_FOUND);
    } while (c->n_found);
    return true;
}

/* Adds one well-formed document; `room` (>= n) bytes are readable. */
static ggtok_status add_document(ggtok_counter *c, const uint8_t *text, size_t n, size_t room,
                                 ggtok_error *err) {
    const ggtok_counts_options *o = &c->counts->options;
    bool ok;
    if (!n) return GGTOK_OK;
    c->added = 0;
    if (c->counts->spaces) {
        if (!escape(c, text, n)) return ggtok_error_memory(err);
        text = c->spaced.data;
        n = c->spaced.n;
        room = n + PAD;
    }
    if (o->cut == GGTOK_CUT_CALLER) {
        size_t count;
        ggtok_status s = ggtok_split_text(o->split, o->split_user, text, n, &c->ends, &count, err);
        if (s) return s;
        ok = add_words(c, text, room, 0, c->ends.data, count);
    } else if (o->cut == GGTOK_CUT_SPACES) {
        ok = add_marked(c, text, n, room);
    } else {
        ok = add_cut(c, text, n, room, false);
    }
    return ok ? GGTOK_OK : failed(c, err);
}

ggtok_status ggtok_counter_add(ggtok_counter *c, const char *text, size_t n, bool lines,
                               ggtok_error *err) {
    const ggtok_counts_options *o = &c->counts->options;
    const uint8_t *p = (const uint8_t *)text;
    if (o->cut == GGTOK_CUT_CALLER && !o->split) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                               "these counts accept only words, not texts");
    }
    if (n > UINT32_MAX) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "a text or line of more than 4 GiB");
    }
    if (ggtok_utf8_valid_prefix(p, n) < n) {
        c->text.n = 0;
        if (!ggtok_utf8_sanitize(&c->text, p, n, NULL)) return ggtok_error_memory(err);
        p = c->text.data;
        n = c->text.n;
    }
    if (!lines) return add_document(c, p, n, n, err);
    if (o->cut == GGTOK_CUT_PRE && !c->counts->spaces) {
        c->added = 0;
        return add_cut(c, p, n, n, true) ? GGTOK_OK : failed(c, err);
    }
    for (size_t from = 0; from < n;) {
        const uint8_t *newline = memchr(p + from, '\n', n - from);
        size_t end = newline ? (size_t)(newline - p) : n;
        /* SentencePiece never sees the newline; pre-tokenizers do. */
        size_t stop = newline && o->cut != GGTOK_CUT_SPACES ? end + 1 : end;
        ggtok_status s = add_document(c, p + from, stop - from, n - from, err);
        if (s) return s;
        from = end + 1;
    }
    return GGTOK_OK;
}

ggtok_status ggtok_counter_add_words(ggtok_counter *c, const char *text, size_t n,
                                     const size_t *ends, const uint64_t *times, size_t count,
                                     ggtok_error *err) {
    const uint8_t *p = (const uint8_t *)text;
    size_t from = 0;
    for (size_t i = 0; i < count; from = ends[i++]) {
        size_t length = ends[i] - from;
        if (ends[i] <= from || ends[i] > n || length > UINT32_MAX) {
            return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "the end of word %llu is out of order",
                                   (unsigned long long)i);
        }
        if (ggtok_utf8_valid_prefix(p + from, length) < length) {
            return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "word %llu is not well-formed UTF-8",
                                   (unsigned long long)i);
        }
        if (times ? times[i] && !add_far(c, p + from, length, times[i])
                  : !add_words(c, p, n, from, &ends[i], 1)) {
            return failed(c, err);
        }
    }
    return GGTOK_OK;
}
