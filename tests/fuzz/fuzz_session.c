/*
 * Encodes many texts with one context, as in a server, so that caches fill, grow and evict entries.
 * Byte 0 of the input selects the fixture or pre-tokenizer, byte 1 the number of steps, which have
 * four bytes each. The rest is material from which each step builds a text of up to 128 kB. The
 * plain build, which has no caches, must return the same ids.
 */
#include "../c/random.h"
#include "fuzz.h"

enum { MAX_STEPS = 16, MAX_WORDS = 1 << 14, MAX_TEXT = 1 << 17, MAX_TOTAL = 1 << 18 };

typedef struct step {
    uint8_t action; /* the lower bits select the action; the two highest are flags */
    uint8_t style;  /* selects how words are built, separated and changed */
    uint8_t size;   /* low bits: log2 of the number of words; high bits: length of random words */
    uint8_t seed;
} step;

/* ---- texts ---- */

/* The text of a step. Word i ends at ends[i], where the next word begins. */
typedef struct step_text {
    char text[MAX_TEXT];
    size_t ends[MAX_WORDS], n_words;
} step_text;

typedef struct material {
    const char *p;
    size_t n;
    ggtok_bytes words[64];
    size_t n_words;
} material;

static material material_of(const uint8_t *p, size_t n) {
    material m = {.p = (const char *)p, .n = n};
    for (size_t from = 0, i = 0; i <= n && m.n_words < 64; i++) {
        if (i < n && p[i] != ' ') continue;
        m.words[m.n_words++] = (ggtok_bytes){m.p + from, i - from};
        from = i + 1;
    }
    return m;
}

static size_t put(char *out, const char *p, size_t n) {
    if (n) memcpy(out, p, n);
    return n;
}

/* Writes a random character from the material, possibly malformed. Bits of `change` say which of
 * the character's last two bytes to change, and whether to change ASCII characters. */
static size_t put_char(const material *m, unsigned change, char *out) {
    size_t at = below(m->n), n = 1;
    while (at && (m->p[at] & 0xC0) == 0x80) at--;
    while (n < 4 && at + n < m->n && (m->p[at + n] & 0xC0) == 0x80) n++;
    put(out, m->p + at, n);
    if (n > 1 && change & 1) out[n - 1] = (char)(0x80 | below(64));
    if (n > 2 && change & 2) out[n - 2] = (char)(0x80 | below(64));
    if (n == 1 && change & 4 && out[0] > ' ') out[0] = (char)('a' + below(26));
    return n;
}

/* Writes word i of a text: at most twice the material's length, or 16 characters. */
static size_t put_word(const material *m, const step *s, size_t i, char *out) {
    ggtok_bytes a = m->words[below(m->n_words)], b = m->words[below(m->n_words)];
    size_t n = 0;
    switch (s->style & 7) {
    case 0: /* in order */ a = m->words[i % m->n_words]; return put(out, a.data, a.n);
    case 1: return put(out, a.data, a.n);
    case 2: /* one byte replaced */
        n = put(out, a.data, a.n);
        if (n) out[below(n)] = m->p[below(m->n)];
        return n;
    case 3: /* a prefix of one word and a suffix of another */
        n = put(out, a.data, below(a.n + 1));
        i = below(b.n + 1);
        return n + put(out + n, b.data + i, b.n - i);
    case 4: return put(out, m->p, below(m->n + 1));
    default: /* random characters from the material */
        for (size_t k = 0; m->n && k <= s->size >> 4u; k++) {
            n += put_char(m, s->style >> 5, out + n);
        }
        return n;
    }
}

static void build_text(const material *m, const step *s, step_text *t) {
    static const char *const between[] = {" ", "", "\n", ". "};
    const char *gap = between[s->style >> 3 & 3];
    size_t n = 0, most = (size_t)1 << (s->size & 15);
    random_state = s->seed;
    for (t->n_words = 0; t->n_words < most && t->n_words < MAX_WORDS; t->n_words++) {
        if (n + 2 * m->n + 16 * 4 + 2 > MAX_TEXT) break;
        n += put(t->text + n, gap, strlen(gap));
        n += put_word(m, s, t->n_words, t->text + n);
        t->ends[t->n_words] = n;
    }
}

static ggtok_bytes words_of(const step_text *t, size_t from, size_t to) {
    size_t begin = from ? t->ends[from - 1] : 0, end = to ? t->ends[to - 1] : 0;
    return (ggtok_bytes){t->text + begin, end - begin};
}

/* ---- steps ---- */

static void check_text(build_pair *t, ggtok_bytes text, unsigned flags) {
    char *copy = copy_of((const uint8_t *)text.data, text.n);
    check_ids(t, copy, text.n, flags);
    free(copy);
}

/* Encodes a text in which control tokens are parsed in every other word. */
static void check_trusted(build_pair *t, const step_text *words, unsigned flags) {
    static ggtok_range ranges[MAX_WORDS];
    ggtok_bytes text = words_of(words, 0, words->n_words);
    ggtok_ids ids, plain;
    ggtok_parts parts, plain_parts;
    size_t n = 0;
    for (size_t i = 0, from = 0; i < words->n_words; i += 2) {
        ggtok_range r = {i ? words->ends[i - 1] : 0, words->ends[i]};
        if (r.begin < from || r.begin == r.end) continue;
        ranges[n++] = r;
        from = r.end + 1;
    }
    ggtok_status s =
        ggtok_encode_trusted(t->ctx, text.data, text.n, flags, ranges, n, &ids, &parts, NULL);
    CHECK(s == plain_ggtok_encode_trusted(t->plain_ctx, text.data, text.n, flags, ranges, n, &plain,
                                          &plain_parts, NULL));
    CHECK(parts.n == plain_parts.n);
    check_same(ids, plain);
}

/* Encodes the text as a batch in which each text has `each` words. */
static void check_batch(build_pair *t, ggtok_pool *pool, const step_text *words, size_t each,
                        unsigned flags) {
    static ggtok_bytes texts[MAX_WORDS];
    ggtok_batch *batch;
    ggtok_ids plain;
    size_t n = 0, failed;
    for (size_t i = 0; i < words->n_words; i += each) {
        texts[n++] = words_of(words, i, i + each < words->n_words ? i + each : words->n_words);
    }
    ggtok_status s =
        ggtok_encode_batch(pool, texts, n, flags, 1, NULL, NULL, &batch, &failed, NULL);
    if (s) {
        CHECK(failed < n && s == plain_ggtok_encode(t->plain_ctx, texts[failed].data,
                                                    texts[failed].n, flags, &plain, NULL));
        return;
    }
    const int32_t *ids = ggtok_batch_ids(batch);
    const int64_t *offsets = ggtok_batch_offsets(batch);
    for (size_t i = 0; i < n; i++) {
        CHECK(!plain_ggtok_encode(t->plain_ctx, texts[i].data, texts[i].n, flags, &plain, NULL));
        check_same((ggtok_ids){ids + offsets[i], (size_t)(offsets[i + 1] - offsets[i])}, plain);
    }
    ggtok_batch_free(batch);
}

static void take_step(build_pair *t, ggtok_pool *pool, const step *s, const step_text *words) {
    unsigned flags = s->action >> 6;
    CHECK((t->ctx = ggtok_pool_acquire(pool, NULL)) != NULL);
    switch (s->action & 7) {
    case 0: ggtok_pool_clear(pool); break; /* the context is freed when it is released */
    case 1:
        flags |= s->action >> 3 & GGTOK_PLAIN_USER_DEFINED;
        check_trusted(t, words, flags | GGTOK_PARSE_SPECIAL);
        break;
    case 2: break;
    case 3: /* each word separately, then the whole text */
        for (size_t i = 0; i < words->n_words; i++) check_text(t, words_of(words, i, i + 1), flags);
        /* fall through */
    default: check_text(t, words_of(words, 0, words->n_words), flags);
    }
    ggtok_pool_release(pool, t->ctx);
    if ((s->action & 7) == 2) check_batch(t, pool, words, 1 + s->seed % 40u, flags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static step_text text;
    if (size < 2) return 0;
    build_pair t = *pair_at(data[0]);
    size_t n_steps = data[1] % MAX_STEPS, total = 0;
    step steps[MAX_STEPS];
    if (size < 2 + n_steps * sizeof *steps) return 0;
    memcpy(steps, data + 2, n_steps * sizeof *steps);
    material m =
        material_of(data + 2 + n_steps * sizeof *steps, size - 2 - n_steps * sizeof *steps);
    ggtok_pool *pool;
    CHECK(!ggtok_pool_new(t.tok, &pool, NULL));
    for (size_t i = 0; i < n_steps && total < MAX_TOTAL; i++) {
        build_text(&m, &steps[i], &text);
        take_step(&t, pool, &steps[i], &text);
        total += words_of(&text, 0, text.n_words).n;
    }
    ggtok_pool_free(pool);
    return 0;
}
