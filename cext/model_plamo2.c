/*
 * PLaMo2 and PLaMo3: tokens with the greatest sum of integer scores, found from the text's
 * end; a character that no token covers falls back to byte tokens.
 *
 * llama.cpp flattens all suffixes of all tokens, each with all its prefixes, into
 * one table. That table is the automaton of Aho and Corasick for the reversed
 * tokens: a state is the longest suffix-of-a-token that leads the text read so
 * far (from the end), and its rows are the state and its failure links. Here it
 * is built as such, in time linear in the tokens. DESIGN.md has the proof,
 * and what happens to it in vocabularies that no trainer makes.
 *
 * PLaMo3 does this for parts of the text: its tags, runs of one character, and
 * what lies between them.
 */
#include "model.h"
#include "pairset.h"
#include "piece_cache.h"
#include "trie.h"
#include "unicode.h"
#include "utf8.h"
#include "vocab_keys.h"

/* llama.cpp's scores, 1e4 to the unit. One that is INVALID or less is never used. */
enum { SCORE_INVALID = -20000000, SCORE_UNKNOWN = -10000000 };

#define NOWHERE UINT32_MAX

typedef struct state { /* beside each unit of the trie; meaningful at character ends */
    uint32_t fail;     /* the longest proper prefix that is a state; NOWHERE: stop here (DESIGN) */
    uint32_t row;      /* its longest usable prefix: the first row to try */
} state;

typedef struct row { /* a usable token; row 0 is the end: one unknown character */
    int32_t score, id;
    uint32_t length; /* in characters */
    uint32_t next;   /* the next shorter one; NOWHERE: not even the unknown one */
} row;

/* A link that a token in broken UTF-8 puts into llama.cpp's table. */
typedef struct odd_link {
    uint32_t from, cpt, to;
} odd_link;

typedef struct plamo2_model {
    trie t; /* reversed tokens, byte by byte, no tails */
    state *state;
    row *row;
    size_t n_rows;
    odd_link *odd;
    size_t n_odd;
    pair_set pairs;
    bool whole; /* no cutting into pieces */
    bool parts; /* PLaMo3 */
    int32_t byte_id[256];
} plamo2_model;

typedef struct plamo2_scratch {
    bytebuf text;    /* a text that had to be repaired, or one padded for the cache */
    int64_t *sum;    /* for each character of a piece, and its end: the least cost */
    uint32_t *taken; /* the row taken there; no place is stored, so pieces may have any length */
    size_t cap;
    idbuf ids; /* of one piece */
    piece_cache cache;
} plamo2_scratch;

/* ---- text ---- */

/* Decodes one character as unicode_cpt_from_utf8 does, above U+10FFFF too (PLaMo2
 * never encodes them again); U+FFFD and one byte for what is none. */
static size_t decode_wide(const uint8_t *p, size_t n, uint32_t *cpt) {
    static const uint8_t mask[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    size_t len = utf8_lead_len(*p);
    *cpt = UTF8_REPLACEMENT;
    if (*p >= 0xF8 || (*p >= 0x80 && len == 1) || len > n) return 1;
    uint32_t c = *p & mask[len];
    for (size_t i = 1; i < len; i++) {
        if (!utf8_continues(p[i])) return 1;
        c = c << 6 | (p[i] & 0x3F);
    }
    *cpt = c;
    return len;
}

/* utf8_encode, and four bytes for what is above U+10FFFF (up to 1FFFFF). */
static size_t encode_wide(uint32_t c, uint8_t out[4]) {
    if (c <= 0x10FFFF) return utf8_encode(c, out);
    out[0] = (uint8_t)(0xF0 | c >> 18);
    for (int i = 1; i < 4; i++) out[i] = (uint8_t)(0x80 | (c >> (18 - 6 * i) & 0x3F));
    return 4;
}

/* Appends the shortest forms of all characters; false: out of memory. */
static bool repair(bytebuf *out, const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n;) {
        uint32_t cpt;
        i += decode_wide(p + i, n - i, &cpt);
        if (!bytebuf_reserve(out, 4)) return false;
        out->n += encode_wide(cpt, out->data + out->n);
    }
    return true;
}

/* ---- the automaton ---- */

/* From unit s over the character p[0..len), last byte first; 0: no such way. */
static inline uint32_t step_over(const trie *t, uint32_t s, const uint8_t *p, size_t len) {
    do {
        s = trie_child(t, s, p[--len]);
    } while (s && len);
    return s;
}

/* From state s over one more character, with failure links; 0 (the root): none. */
static inline uint32_t advance(const plamo2_model *m, uint32_t s, const uint8_t *p, size_t len) {
    for (;;) {
        uint32_t next = step_over(&m->t, s, p, len);
        if (next || !s) return next;
        s = m->state[s].fail;
        if (s == NOWHERE) return 0;
    }
}

/* The same where odd links are about. They are few; this is no vocabulary to be
 * fast with. */
static uint32_t advance_odd(const plamo2_model *m, uint32_t s, const uint8_t *p, size_t len) {
    uint32_t cpt;
    decode_wide(p, len, &cpt);
    for (;;) {
        for (size_t i = 0; i < m->n_odd; i++) {
            if (m->odd[i].from == s && m->odd[i].cpt == cpt) return m->odd[i].to;
        }
        uint32_t next = step_over(&m->t, s, p, len);
        if (next || !s) return next;
        s = m->state[s].fail;
        if (s == NOWHERE) return 0;
    }
}

/* The state for all of text[0..n), read from its end: its longest prefix that is one. */
static uint32_t run_over(const plamo2_model *m, const uint8_t *text, size_t n) {
    uint32_t s = 0;
    while (n) {
        size_t len = 1;
        while (len < n && utf8_continues(text[n - len])) len++;
        n -= len;
        s = advance(m, s, text + n, len);
    }
    return s;
}

/* ---- building ---- */

typedef struct link { /* a state to be given its failure link */
    uint32_t unit, parent;
    const uint8_t *p; /* the character that leads from parent to unit */
    uint32_t len, depth;
} link;

typedef struct plamo2_build {
    plamo2_model *m;
    const vocab *v;
    ggtok_error *err;
    bytebuf text;    /* keys, in the order of reading: reversed token texts are key bytes */
    uint32_t *off;   /* n + 1: key i is reversed text[off[i] .. off[i + 1]) */
    uint32_t *token; /* id of key i, or NOWHERE: only its suffixes count */
    size_t n;
    idbuf odd; /* ids of tokens in broken UTF-8 */
} plamo2_build;

static void plamo2_free(void *model) {
    plamo2_model *m = model;
    if (!m) return;
    trie_free(&m->t);
    mem_free(m->state);
    mem_free(m->row);
    mem_free(m->odd);
    pair_set_free(&m->pairs);
    mem_free(m);
}

static int hex_value(uint8_t c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The score as llama.cpp's table holds it. What does not fit 32 bits becomes the
 * least of them on its machines; that or INVALID: never used. */
static int32_t table_score(float score) {
    double x = (double)score * 1e4;
    if (!(x > SCORE_INVALID - 1.0 && x < 2147483647.5)) return SCORE_INVALID;
    int64_t whole = (int64_t)x; /* round half away from zero: lround, without libm */
    double rest = x - (double)whole;
    whole += (rest >= 0.5) - (rest <= -0.5);
    return whole > INT32_MAX || whole < SCORE_INVALID ? SCORE_INVALID : (int32_t)whole;
}

/* Byte tokens into the table; whether all are there. Id 0 counts as missing, there
 * as here. */
static ggtok_status read_byte_tokens(plamo2_build *b) {
    for (uint32_t id = 0; id < b->v->n_tokens; id++) {
        gguf_view t = vocab_text(b->v, id);
        if (!(b->v->attr[id] & GGTOK_ATTR_BYTE) || t.n != 6 || memcmp(t.p, "<0x", 3) ||
            t.p[5] != '>' || hex_value(t.p[3]) < 0 || hex_value(t.p[4]) < 0) {
            continue;
        }
        b->m->byte_id[hex_value(t.p[3]) * 16 + hex_value(t.p[4])] = (int32_t)id;
    }
    for (unsigned c = 0; c < 256; c++) {
        if (!b->m->byte_id[c]) {
            return error_set_at(
                b->err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS), GGTOK_NO_OFFSET,
                "a %s vocabulary must have a byte token <0x%02X> (not as id 0)", b->v->model, c);
        }
    }
    return GGTOK_OK;
}

/* Adds the key of token id if it is of the kind wanted now. Of a token in broken
 * UTF-8 only what follows its first character counts, repaired. */
static ggtok_status add_key(plamo2_build *b, uint32_t id, bool want_odd) {
    gguf_view t = vocab_text(b->v, id);
    bool odd = utf8_valid_prefix(t.p, t.n) != t.n;
    if (odd != want_odd) return GGTOK_OK;
    size_t skip = 0;
    for (size_t i = 0; odd && i < t.n;) {
        uint32_t cpt;
        size_t len = decode_wide(t.p + i, t.n - i, &cpt);
        if (cpt > 0x10FFFF) {
            return error_set_at(b->err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS),
                                GGTOK_NO_OFFSET,
                                "token %u of a %s vocabulary has a character above U+10FFFF",
                                (unsigned)id, b->v->model);
        }
        if (!i) skip = len;
        i += len;
    }
    b->token[b->n] = odd ? NOWHERE : id;
    if (!(odd ? repair(&b->text, t.p + skip, t.n - skip) && idbuf_push(&b->odd, (int32_t)id)
              : bytebuf_append(&b->text, t.p, t.n))) {
        return error_memory(b->err);
    }
    b->off[++b->n] = (uint32_t)b->text.n;
    return GGTOK_OK;
}

/* The keys: all tokens but the byte tokens. */
static ggtok_status gather_keys(plamo2_build *b) {
    const vocab *v = b->v;
    b->off = mem_alloc(mem_mul((size_t)v->n_tokens + 1, sizeof *b->off));
    b->token = mem_alloc(mem_mul((size_t)v->n_tokens + 1, sizeof *b->token));
    if (!b->off || !b->token) return error_memory(b->err);
    b->off[0] = 0;
    /* Broken ones first: of equal keys the last one counts, and must be the token. */
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t id = 0; id < v->n_tokens; id++) {
            if (v->attr[id] & GGTOK_ATTR_BYTE) continue;
            ggtok_status status = add_key(b, id, pass == 0);
            if (status) return status;
        }
    }
    return GGTOK_OK;
}

static bool build_trie(plamo2_build *b) {
    plamo2_model *m = b->m;
    uint8_t *reversed = mem_alloc(b->text.n);
    uint32_t *numbers = mem_alloc(mem_mul(b->n, sizeof *numbers));
    bool ok = reversed && numbers && pair_set_init(&m->pairs, b->text.n);
    for (size_t i = 0; ok && i < b->n; i++) {
        numbers[i] = (uint32_t)i;
        for (uint32_t k = b->off[i]; k < b->off[i + 1]; k++) {
            reversed[k] = b->text.data[b->off[i] + b->off[i + 1] - 1 - k];
        }
        pair_set_add(&m->pairs, b->text.data + b->off[i], b->off[i + 1] - b->off[i]);
    }
    ok = ok && trie_build(&m->t, reversed, b->off, numbers, b->n, false);
    if (ok) m->state = mem_alloc(mem_mul(m->t.n_units, sizeof *m->state));
    mem_free(reversed);
    mem_free(numbers);
    return ok && m->state;
}

/* All states but the root, shorter ones first. *n of them; NULL: out of memory. */
static link *list_states(plamo2_build *b, size_t *n) {
    plamo2_model *m = b->m;
    for (size_t i = 0; i < m->t.n_units; i++) m->state[i] = (state){NOWHERE, NOWHERE};
    size_t cap = b->text.n, found = 0, longest = 0;
    link *all = mem_alloc(mem_mul(cap, sizeof *all)), *sorted = NULL;
    size_t *count = NULL;
    if (!all) return NULL;
    for (size_t i = 0; i < b->n; i++) {
        const uint8_t *text = b->text.data + b->off[i];
        uint32_t s = 0, depth = 0;
        for (size_t left = b->off[i + 1] - b->off[i]; left;) {
            uint32_t len = 1;
            while (len < left && utf8_continues(text[left - len])) len++;
            left -= len;
            uint32_t parent = s;
            s = step_over(&m->t, s, text + left, len);
            depth++;
            if (m->state[s].fail != NOWHERE) continue; /* another key leads here too */
            m->state[s].fail = 0;
            all[found++] = (link){s, parent, text + left, len, depth};
        }
        if (depth > longest) longest = depth;
    }
    count = mem_zalloc((longest + 2) * sizeof *count);
    sorted = mem_alloc(mem_mul(found, sizeof *sorted));
    if (count && sorted) {
        for (size_t i = 0; i < found; i++) count[all[i].depth + 1]++;
        for (size_t d = 1; d <= longest + 1; d++) count[d] += count[d - 1];
        for (size_t i = 0; i < found; i++) sorted[count[all[i].depth]++] = all[i];
    } else {
        mem_free(sorted);
        sorted = NULL;
    }
    mem_free(all);
    mem_free(count);
    *n = found;
    return sorted;
}

/* Failure links, then rows. A token whose score equals that of the unknown
 * character ends llama.cpp's walks: no shorter token and no failure link counts
 * behind it. Such links can only be cut when all are known. */
static bool link_states(plamo2_build *b) {
    plamo2_model *m = b->m;
    size_t n, n_rows = 1;
    link *order = list_states(b, &n);
    if (order) m->row = mem_alloc(mem_mul(b->n + 1, sizeof *m->row));
    if (!order || !m->row) {
        mem_free(order);
        return false;
    }
    m->state[0] = (state){0, 0};
    m->row[0] = (row){SCORE_UNKNOWN, -1, 1, NOWHERE};
    for (size_t i = 0; i < n; i++) {
        link l = order[i];
        /* The prefixes of c s are c x for the prefixes x of s: its failure links. */
        uint32_t fail = l.parent ? advance(m, m->state[l.parent].fail, l.p, l.len) : 0;
        m->state[l.unit] = (state){fail, m->state[fail].row};
        int32_t key = m->t.unit[l.unit].link & TRIE_VALUE ? m->t.value[l.unit] : -1;
        uint32_t id = key >= 0 ? b->token[key] : NOWHERE;
        if (id == NOWHERE) continue; /* only a suffix */
        int32_t score = table_score(b->v->score[id]);
        if (score <= SCORE_INVALID) continue;
        bool stop = score == SCORE_UNKNOWN;
        m->whole |= stop;
        m->row[n_rows] = (row){score, (int32_t)id, l.depth, stop ? NOWHERE : m->state[fail].row};
        m->state[l.unit].row = (uint32_t)n_rows++;
    }
    m->n_rows = n_rows;
    mem_free(order);
    row *fitted = mem_realloc(m->row, n_rows * sizeof *fitted);
    if (fitted) m->row = fitted;
    return true;
}

/* Is a before b in the order of their reversed bytes? */
static bool reversed_less(const uint8_t *a, size_t a_n, const uint8_t *b, size_t b_n) {
    while (a_n && b_n) {
        uint8_t x = a[--a_n], y = b[--b_n];
        if (x != y) return x < y;
    }
    return a_n < b_n;
}

/*
 * A token r in broken UTF-8 links, over its first character c, from the state of
 * its (repaired) rest to that of the longest prefix of the repaired r. But where r
 * comes before its own rest in the order of reversed bytes, llama.cpp has not
 * numbered the rest yet and links from the root. Of several links from one state
 * over one character the last counts, and c itself, if it is a state, is one too.
 */
static bool link_odd(plamo2_build *b) {
    plamo2_model *m = b->m;
    bytebuf fixed = {0};
    const uint8_t **text = mem_alloc(mem_mul(b->odd.n, sizeof *text)); /* of each link's r */
    size_t *text_n = mem_alloc(mem_mul(b->odd.n, sizeof *text_n));
    m->odd = mem_alloc(mem_mul(b->odd.n, sizeof *m->odd));
    bool ok = text && text_n && m->odd;
    for (size_t i = 0; ok && i < b->odd.n; i++) {
        gguf_view r = vocab_text(b->v, (uint32_t)b->odd.data[i]);
        uint32_t cpt;
        decode_wide(r.p, r.n, &cpt);
        fixed.n = 0;
        if (!(ok = repair(&fixed, r.p, r.n))) break;
        uint8_t c[4];
        size_t c_n = utf8_encode(cpt, c), rest_n = fixed.n - c_n;
        const uint8_t *rest = fixed.data + c_n;
        bool early = rest_n && reversed_less(r.p, r.n, rest, rest_n);
        uint32_t from = early ? 0 : run_over(m, rest, rest_n); /* the rest is a state itself */
        uint32_t to = run_over(m, fixed.data, fixed.n);
        uint32_t plain = step_over(&m->t, from, fixed.data, c_n);
        if (plain && (from || reversed_less(r.p, r.n, c, c_n))) continue;
        size_t k = 0;
        while (k < m->n_odd && (m->odd[k].from != from || m->odd[k].cpt != cpt)) k++;
        if (k < m->n_odd && reversed_less(r.p, r.n, text[k], text_n[k])) continue;
        m->odd[k] = (odd_link){from, cpt, to};
        text[k] = r.p;
        text_n[k] = r.n;
        if (k == m->n_odd) m->n_odd++;
    }
    m->whole |= m->n_odd > 0;
    mem_free(fixed.data);
    mem_free(text);
    mem_free(text_n);
    return ok;
}

/* The failure links behind tokens that end a walk (see link_states). */
static void cut_links(plamo2_model *m) {
    for (size_t i = 0; m->whole && i < m->t.n_units; i++) {
        uint32_t r = m->state[i].row;
        if (r && r != NOWHERE && m->row[r].next == NOWHERE && (m->t.unit[i].link & TRIE_VALUE)) {
            /* Its own row, not one that it inherits from a shorter prefix. */
            uint32_t f = m->state[i].fail;
            if (f == NOWHERE || m->state[f].row != r) m->state[i].fail = NOWHERE;
        }
    }
}

static ggtok_status plamo2_build_model(const vocab *v, const gguf *g,
                                       const ggtok_load_options *options, void **model,
                                       ggtok_error *err) {
    (void)g, (void)options;
    plamo2_build b = {.v = v, .err = err, .m = mem_zalloc(sizeof(plamo2_model))};
    if (!b.m) return error_memory(err);
    b.m->parts = v->type == GGTOK_VOCAB_PLAMO3;
    ggtok_status status = read_byte_tokens(&b);
    if (!status) status = gather_keys(&b);
    if (!status && !(build_trie(&b) && link_states(&b) && (!b.odd.n || link_odd(&b)))) {
        status = error_memory(err);
    }
    if (!status) {
        cut_links(b.m);
        *model = b.m;
    } else {
        plamo2_free(b.m);
    }
    mem_free(b.text.data);
    mem_free(b.off);
    mem_free(b.token);
    mem_free(b.odd.data);
    return status;
}

/* ---- encoding ---- */

static size_t plamo2_cache_bytes(const void *scratch) {
    const plamo2_scratch *s = scratch;
    return piece_cache_bytes(&s->cache);
}

static void *plamo2_scratch_new(const vocab *v, const void *model) {
    (void)v, (void)model;
    return mem_zalloc(sizeof(plamo2_scratch));
}

static void plamo2_scratch_free(void *scratch) {
    plamo2_scratch *s = scratch;
    if (!s) return;
    mem_free(s->text.data);
    mem_free(s->sum);
    mem_free(s->taken);
    mem_free(s->ids.data);
    piece_cache_free(&s->cache);
    mem_free(s);
}

static bool reserve_places(plamo2_scratch *s, size_t n) {
    if (n <= s->cap) return true;
    size_t cap = n + n / 2 + 256;
    int64_t *sum = mem_realloc(s->sum, mem_mul(cap, sizeof *sum));
    if (sum) s->sum = sum;
    uint32_t *taken = mem_realloc(s->taken, mem_mul(cap, sizeof *taken));
    if (taken) s->taken = taken;
    if (!sum || !taken) return false;
    s->cap = cap;
    return true;
}

static bool push_bytes(const plamo2_model *m, idbuf *ids, const uint8_t *p, size_t n) {
    if (!idbuf_reserve(ids, 4)) return false;
    for (size_t i = 0; i < n; i++) ids->data[ids->n++] = m->byte_id[p[i]];
    return true;
}

/* The ids of text[0..n), in shortest forms, into s->ids. */
static bool find_path(const plamo2_model *m, plamo2_scratch *s, const uint8_t *text, size_t n) {
    if (!reserve_places(s, n + 1)) return false;
    size_t chars = 0;
    for (size_t i = 0; i < n; i++) chars += !utf8_continues(text[i]);
    s->sum[chars] = 0;

    bool odd = m->n_odd;
    uint32_t at = 0;
    const uint8_t *p = text + n;
    for (size_t i = chars; i-- > 0;) {
        size_t len = 1;
        for (p--; utf8_continues(*p); p--) len++;
        at = odd ? advance_odd(m, at, p, len) : advance(m, at, p, len);
        /* Longest first, and the first of equals stays. */
        int64_t least = INT64_MAX;
        uint32_t taken = 0;
        for (uint32_t r = m->state[at].row; r != NOWHERE; r = m->row[r].next) {
            /* An odd link may lead to tokens that the text does not hold and that reach
             * beyond its end, where llama.cpp reads what lies in memory. */
            if (odd && m->row[r].length > chars - i) continue;
            int64_t sum = s->sum[i + m->row[r].length] - m->row[r].score;
            if (sum < least) least = sum, taken = r;
        }
        if (least == INT64_MAX) least = s->sum[i + 1] - SCORE_UNKNOWN; /* all reach too far */
        s->sum[i] = least;
        s->taken[i] = taken;
    }

    s->ids.n = 0;
    for (size_t i = 0; i < chars;) {
        const row *r = &m->row[s->taken[i]];
        if (!(r->id >= 0 ? idbuf_push(&s->ids, r->id)
                         : push_bytes(m, &s->ids, p, utf8_lead_len(*p)))) {
            return false;
        }
        i += r->length;
        for (uint32_t k = r->length; k; k--) p += utf8_lead_len(*p);
    }
    return true;
}

/* Ids of one piece; 32 bytes at `text` must be readable if it is to be remembered. */
static bool push_piece(const model_call *call, const uint8_t *text, size_t n, bool remember) {
    const plamo2_model *m = call->model;
    plamo2_scratch *s = call->scratch;
    idbuf *out = call->out;
    piece_key key;
    uint64_t hash = 0;
    remember = remember && n <= PIECE_MAX;
    if (remember) {
        key = piece_key_of(text, n);
        hash = piece_hash(&key);
        const piece_slot *slot = piece_find(&s->cache, &key, hash);
        if (slot) {
            call->counts->hits++;
            if (!idbuf_reserve(out, PIECE_IDS)) return false;
            memcpy(out->data + out->n, slot->id, sizeof slot->id);
            out->n += slot->n;
            return true;
        }
    }
    call->counts->misses++;
    if (!find_path(m, s, text, n) || !idbuf_reserve(out, s->ids.n)) return false;
    memcpy(out->data + out->n, s->ids.data, s->ids.n * sizeof *out->data);
    out->n += s->ids.n;
    if (remember) piece_add(&s->cache, &key, hash, s->ids.data, s->ids.n);
    return true;
}

/* Appends the ids of text[0..n), n >= 1; `room` bytes at text are readable. */
static bool push_part(const model_call *call, const uint8_t *text, size_t n, size_t room) {
    const plamo2_model *m = call->model;
    size_t start = 0, len, i;
    uint32_t c = char_at(text, n, &len);
    for (i = len; i < n && !m->whole; i += len) {
        uint32_t next = text[i];
        if (next < 0x80)
            len = 1;
        else
            next = char_at(text + i, n - i, &len);
        if (!pair_in(&m->pairs, c, next)) {
            if (!push_piece(call, text + start, i - start, room - start > PIECE_MAX)) return false;
            start = i;
        }
        c = next;
    }
    /* Without room behind it the last piece can't be read as a key. */
    return push_piece(call, text + start, n - start, room - start > PIECE_MAX);
}

/* ---- PLaMo3's parts ---- */

/* Bytes of the tag <|plamo:NAME|> at p, or 0. A name has at most 64 characters,
 * none of them '|' or white space (to Python, so U+001C to U+001F too). Hence a tag
 * never begins inside another. */
static size_t tag_at(const uint8_t *p, const uint8_t *end) {
    enum { OPEN = 8, MAX_NAME = 64 };
    if (end - p < OPEN || memcmp(p, "<|plamo:", OPEN)) return 0;
    const uint8_t *at = p + OPEN;
    for (int chars = 0; at < end; chars++) {
        uint32_t c = utf8_next(&at);
        if (c == '|') return at < end && *at == '>' ? (size_t)(at + 1 - p) : 0;
        if (chars == MAX_NAME || (c >= 0x1C && c <= 0x1F)) return 0;
        if (unicode_flags(c) & UNICODE_WHITESPACE) return 0;
    }
    return 0;
}

#define BREAK 0xEE00u /* ends a part and is dropped */

/*
 * The end of the part that starts at `from`: its first place behind `from` where a tag
 * or a long run (two spaces, or four of anything but newlines) begins or ends, or
 * beside a BREAK. Runs don't reach across the ends of tags. *tag: the end of the
 * last tag that was met, for the next call.
 */
static const uint8_t *part_end(const uint8_t *from, const uint8_t *end, const uint8_t **tag) {
    for (const uint8_t *p = from, *next; p < end; p = next) {
        size_t tag_n = *p == '<' ? tag_at(p, end) : 0;
        if (p > from && (tag_n || p == *tag)) return p;
        if (tag_n) *tag = p + tag_n;
        next = p;
        uint32_t c = utf8_next(&next);
        size_t run = 1;
        for (const uint8_t *q = next; c != BREAK && q < end && q != *tag; run++) {
            if (utf8_next(&q) != c || (c == '<' && tag_at(next, end))) break;
            next = q;
        }
        bool is_long = c == ' ' ? run > 1 : c != '\n' && run > 3;
        if (is_long || c == BREAK) return p > from ? p : next;
    }
    return end;
}

static bool push_parts(const model_call *call, const uint8_t *text, const uint8_t *end) {
    const uint8_t *tag = NULL, *next;
    for (; text < end; text = next) {
        next = part_end(text, end, &tag);
        if (next - text == 3 && !memcmp(text, "\xEE\xB8\x80", 3)) continue; /* BREAK */
        if (!push_part(call, text, (size_t)(next - text), (size_t)(end - text))) return false;
    }
    return true;
}

static ggtok_status plamo2_encode(const model_call *call, const uint8_t *text, size_t n) {
    const plamo2_model *m = call->model;
    plamo2_scratch *s = call->scratch;
    if (utf8_valid_prefix(text, n) != n) {
        s->text.n = 0;
        if (!repair(&s->text, text, n)) return error_memory(call->err);
        text = s->text.data;
        n = s->text.n;
    }
    if (m->parts) return push_parts(call, text, text + n) ? GGTOK_OK : error_memory(call->err);
    if (n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) text += 3, n -= 3; /* one BOM is dropped */
    return !n || push_part(call, text, n, n) ? GGTOK_OK : error_memory(call->err);
}

const model_ops model_plamo2 = {
    .build = plamo2_build_model,
    .free = plamo2_free,
    .scratch_new = plamo2_scratch_new,
    .scratch_free = plamo2_scratch_free,
    .encode = plamo2_encode,
    .cache_bytes = plamo2_cache_bytes,
};
