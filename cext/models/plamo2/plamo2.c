/*
 * PLaMo2 and PLaMo3: find the tokens with the greatest sum of integer scores, from the end of the
 * text. A character that no token covers falls back to byte tokens.
 *
 * llama.cpp flattens all suffixes of all tokens, each with all its prefixes, into one table. That
 * table is the Aho-Corasick automaton of the reversed tokens: a state is the longest suffix of a
 * token that is a prefix of the text read so far (from the end), and its rows in the table are the
 * state itself and the states to which its failure links lead. Here the automaton is built
 * directly, in time linear in the size of the tokens. docs/design/types.md has the proof, and
 * explains the behaviour of vocabularies that no trainer makes.
 *
 * PLaMo3 does this for each part of the text: its tags, runs of one character, and the text
 * between them.
 */
#include "models/plamo2/plamo2.h"
#include "cache/piece_cache.h"
#include "models/tile.h"
#include "models/trace.h"
#include "unicode/unicode.h"
#include "unicode/utf8_valid.h"
#include "vocab/keys.h"

/* llama.cpp's scores, in units of 1e-4. A score of at most SCORE_INVALID is never used. */
enum { SCORE_INVALID = -20000000, SCORE_UNKNOWN = -10000000 };

typedef struct plamo2_scratch {
    bytebuf text;    /* the repaired text, if the text is malformed */
    int64_t *sum;    /* by character of a piece, and at its end: the least cost */
    uint32_t *taken; /* by character: the first row of the best path from there */
    size_t cap;
    idbuf ids; /* ids of one piece */
    piece_cache cache;
    tiles tiles;
} plamo2_scratch;

/* ---- building ---- */

static void plamo2_free(void *model) {
    plamo2_model *m = model;
    if (!m) return;
    ggtok_trie_free(&m->t);
    ggtok_mem_free(m->state);
    ggtok_mem_free(m->row);
    ggtok_mem_free(m->odd);
    ggtok_mem_free(m->skip);
    ggtok_adjacency_free(&m->pairs);
    ggtok_mem_free(m);
}

static int hex_value(uint8_t c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Returns the score as in llama.cpp's table. There, a value that doesn't fit in 32 bits becomes
 * INT32_MIN (on x86-64). A token with that score or SCORE_INVALID is never used. */
static int32_t table_score(float score) {
    double x = (double)score * 1e4;
    if (!(x > SCORE_INVALID - 1.0 && x < 2147483647.5)) return SCORE_INVALID;
    int64_t whole = (int64_t)x; /* round half away from zero, like lround, but without libm */
    double rest = x - (double)whole;
    whole += (rest >= 0.5) - (rest <= -0.5);
    return whole > INT32_MAX || whole < SCORE_INVALID ? SCORE_INVALID : (int32_t)whole;
}

/* Reads the byte tokens into the table and checks that none is missing. As in llama.cpp, id 0
 * counts as missing. */
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
            return ggtok_error_set_at(
                b->err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS), GGTOK_NO_OFFSET,
                "a %s vocabulary must have a byte token <0x%02X> (not as id 0)", b->v->model, c);
        }
    }
    return GGTOK_OK;
}

/* Adds the key of token `id` if its text is malformed (`want_odd`) or well-formed. The key of a
 * malformed token is only the text after its first character, in repaired form. */
static ggtok_status add_key(plamo2_build *b, uint32_t id, bool want_odd) {
    gguf_view t = vocab_text(b->v, id);
    bool odd = ggtok_utf8_valid_prefix(t.p, t.n) != t.n;
    if (odd != want_odd) return GGTOK_OK;
    size_t skip = 0;
    for (size_t i = 0; odd && i < t.n;) {
        uint32_t cpt;
        size_t len = ggtok_utf8_decode_any(t.p + i, t.p + t.n, &cpt);
        if (cpt > 0x10FFFF) {
            return ggtok_error_set_at(b->err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS),
                                      GGTOK_NO_OFFSET,
                                      "token %u of a %s vocabulary has a character above U+10FFFF",
                                      (unsigned)id, b->v->model);
        }
        if (!i) skip = len;
        i += len;
    }
    b->token[b->n] = odd ? PLAMO2_NOWHERE : id;
    if (!(odd ? ggtok_plamo2_repair(&b->text, t.p + skip, t.n - skip, NULL) &&
                    idbuf_push(&b->odd, (int32_t)id)
              : bytebuf_append(&b->text, t.p, t.n))) {
        return ggtok_error_memory(b->err);
    }
    b->off[++b->n] = (uint32_t)b->text.n;
    return GGTOK_OK;
}

/* Collects the keys: all tokens except the byte tokens. */
static ggtok_status gather_keys(plamo2_build *b) {
    const vocab *v = b->v;
    b->off = ggtok_mem_alloc(mem_mul((size_t)v->n_tokens + 1, sizeof *b->off));
    b->token = ggtok_mem_alloc(mem_mul((size_t)v->n_tokens + 1, sizeof *b->token));
    if (!b->off || !b->token) return ggtok_error_memory(b->err);
    b->off[0] = 0;
    /* Malformed tokens come first: of equal keys, the last wins, which must be the well-formed
     * token. */
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
    uint8_t *reversed = ggtok_mem_alloc(b->text.n);
    uint32_t *numbers = ggtok_mem_alloc(mem_mul(b->n, sizeof *numbers));
    bool ok = reversed && numbers && ggtok_adjacency_init(&m->pairs, b->text.n);
    for (size_t i = 0; ok && i < b->n; i++) {
        numbers[i] = (uint32_t)i;
        for (uint32_t k = b->off[i]; k < b->off[i + 1]; k++) {
            reversed[k] = b->text.data[b->off[i] + b->off[i + 1] - 1 - k];
        }
        ggtok_adjacency_add(&m->pairs, b->text.data + b->off[i], b->off[i + 1] - b->off[i]);
    }
    ok = ok && ggtok_trie_build(&m->t, reversed, b->off, numbers, b->n, false);
    if (ok) m->state = ggtok_mem_alloc(mem_mul(m->t.n_units, sizeof *m->state));
    ggtok_mem_free(reversed);
    ggtok_mem_free(numbers);
    return ok && m->state;
}

/* Returns all states except the root, sorted by depth, and sets *n to their number. Files can make
 * this list large, so it takes two walks: one counts the states, one places them. Returns NULL if
 * out of memory. */
static plamo2_state *list_states(plamo2_build *b, size_t *n) {
    plamo2_model *m = b->m;
    plamo2_state *sorted = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < m->t.n_units; i++) m->state[i] = (state){PLAMO2_NOWHERE, PLAMO2_NOWHERE};
    for (size_t i = 0; i < b->n; i++) {
        if (b->off[i + 1] - b->off[i] > longest) longest = b->off[i + 1] - b->off[i];
    }
    size_t *place = ggtok_mem_zalloc(mem_mul(longest + 2, sizeof *place)); /* positions by depth */
    if (!place) return NULL;
    for (int placing = 0; placing < 2; placing++) {
        for (size_t i = 0; i < b->n; i++) {
            const uint8_t *text = b->text.data + b->off[i];
            uint32_t s = 0, depth = 1;
            for (size_t left = b->off[i + 1] - b->off[i]; left; depth++) {
                uint32_t len = 1, parent = s;
                while (len < left && utf8_continues(text[left - len])) len++;
                left -= len;
                s = plamo2_step(&m->t, s, text + left, len);
                uint32_t *counted = &m->state[s].fail;
                if (placing && *counted == 0) {
                    *counted = PLAMO2_NOWHERE; /* only once: other keys lead here, too */
                    sorted[place[depth]++] = (plamo2_state){s, parent, text + left, len, depth};
                } else if (!placing && *counted) {
                    *counted = 0;
                    place[depth + 1]++;
                }
            }
        }
        if (placing) break;
        for (size_t d = 1; d <= longest + 1; d++) place[d] += place[d - 1];
        *n = place[longest + 1];
        if (!(sorted = ggtok_mem_alloc(mem_mul(*n, sizeof *sorted)))) break;
    }
    ggtok_mem_free(place);
    return sorted;
}

/* Builds the failure links, then the rows. A token with the score of the unknown character ends
 * llama.cpp's walks: no shorter token and no failure link counts after it. These links can be cut
 * only once all are known. */
static bool link_states(plamo2_build *b) {
    plamo2_model *m = b->m;
    size_t n_rows = 1;
    b->states = list_states(b, &b->n_states);
    if (b->states) m->row = ggtok_mem_alloc(mem_mul(b->n + 1, sizeof *m->row));
    if (!b->states || !m->row) return false;
    m->state[0] = (state){0, 0};
    m->row[0] = (row){SCORE_UNKNOWN, -1, 1, PLAMO2_NOWHERE};
    for (size_t i = 0; i < b->n_states; i++) {
        plamo2_state l = b->states[i];
        /* The prefixes of c s are c x for the prefixes x of s, which are the failure links of s. */
        uint32_t fail = l.parent ? plamo2_advance(m, m->state[l.parent].fail, l.p, l.len) : 0;
        m->state[l.unit] = (state){fail, m->state[fail].row};
        int32_t key = m->t.unit[l.unit].link & TRIE_VALUE ? m->t.value[l.unit] : -1;
        uint32_t id = key >= 0 ? b->token[key] : PLAMO2_NOWHERE;
        if (id == PLAMO2_NOWHERE) continue; /* not a token, only a suffix */
        int32_t score = table_score(b->v->score[id]);
        if (score <= SCORE_INVALID) continue;
        bool stop = score == SCORE_UNKNOWN;
        m->whole |= stop;
        m->row[n_rows] =
            (row){score, (int32_t)id, l.depth, stop ? PLAMO2_NOWHERE : m->state[fail].row};
        m->state[l.unit].row = (uint32_t)n_rows++;
    }
    m->n_rows = n_rows;
    row *fitted = ggtok_mem_realloc(m->row, n_rows * sizeof *fitted);
    if (fitted) m->row = fitted;
    return true;
}

/* Cuts the failure links after tokens that end a walk; see link_states. */
static void cut_links(plamo2_model *m) {
    for (size_t i = 0; m->whole && i < m->t.n_units; i++) {
        uint32_t r = m->state[i].row;
        if (r && r != PLAMO2_NOWHERE && m->row[r].next == PLAMO2_NOWHERE &&
            (m->t.unit[i].link & TRIE_VALUE)) {
            /* Is this the state's own row, or one inherited from a shorter prefix? */
            uint32_t f = m->state[i].fail;
            if (f == PLAMO2_NOWHERE || m->state[f].row != r) m->state[i].fail = PLAMO2_NOWHERE;
        }
    }
}

static ggtok_status plamo2_build_model(const vocab *v, const gguf *g,
                                       const ggtok_load_options *options, void **model,
                                       ggtok_error *err) {
    (void)g, (void)options;
    plamo2_build b = {.v = v, .err = err, .m = ggtok_mem_zalloc(sizeof(plamo2_model))};
    if (!b.m) return ggtok_error_memory(err);
    b.m->parts = v->type == GGTOK_VOCAB_PLAMO3;
    ggtok_status status = read_byte_tokens(&b);
    if (!status) status = gather_keys(&b);
    if (!status &&
        !(build_trie(&b) && link_states(&b) && (!b.odd.n || ggtok_plamo2_link_odd(&b)))) {
        status = ggtok_error_memory(err);
    }
    if (!status) cut_links(b.m);
    if (!status && b.m->n_odd && !ggtok_plamo2_find_skips(&b)) status = ggtok_error_memory(err);
    if (status) {
        plamo2_free(b.m);
    } else {
        *model = b.m;
    }
    ggtok_mem_free(b.text.data);
    ggtok_mem_free(b.off);
    ggtok_mem_free(b.token);
    ggtok_mem_free(b.odd.data);
    ggtok_mem_free(b.states);
    return status;
}

/* ---- encoding ---- */

static size_t plamo2_cache_bytes(const void *scratch) {
    const plamo2_scratch *s = scratch;
    return ggtok_piece_cache_bytes(&s->cache);
}

static void *plamo2_scratch_new(const vocab *v, const void *model) {
    (void)v, (void)model;
    return ggtok_mem_zalloc(sizeof(plamo2_scratch));
}

static void plamo2_scratch_free(void *scratch) {
    plamo2_scratch *s = scratch;
    if (!s) return;
    ggtok_mem_free(s->text.data);
    ggtok_mem_free(s->sum);
    ggtok_mem_free(s->taken);
    ggtok_mem_free(s->ids.data);
    ggtok_tile_free(&s->tiles);
    ggtok_piece_cache_free(&s->cache);
    ggtok_mem_free(s);
}

static bool reserve_places(plamo2_scratch *s, size_t n) {
    if (n <= s->cap) return true;
    size_t cap = n + n / 2 + 256;
    int64_t *sum = ggtok_mem_realloc(s->sum, mem_mul(cap, sizeof *sum));
    if (sum) s->sum = sum;
    uint32_t *taken = ggtok_mem_realloc(s->taken, mem_mul(cap, sizeof *taken));
    if (taken) s->taken = taken;
    if (!sum || !taken) return false;
    s->cap = cap;
    return true;
}

static bool push_bytes(const model_call *call, idbuf *ids, const uint8_t *p, size_t n) {
    const plamo2_model *m = call->model;
    recorder *rec = call->recorder;
    if (!idbuf_reserve(ids, 4)) return false;
    for (size_t i = 0; i < n; i++) {
        int32_t id = m->byte_id[p[i]];
        if (rec && !recorder_allows(rec, id, (size_t)(p + i - rec->text.data), 1))
            recorder_refuse(rec, id);
        ids->data[ids->n++] = id;
        if (rec && !ggtok_recorder_add_span(rec, (size_t)(p + i - rec->text.data), 1)) return false;
    }
    return true;
}

/* Whether the recorder forbids this row at p, where `left` bytes remain. */
static bool is_forbidden(const model_call *call, const row *r, const uint8_t *p, size_t left) {
    const plamo2_model *m = call->model;
    const recorder *rec = call->recorder;
    if (!rec || r->id < 0) return false;
    /* After an odd link, the token's text may differ from the text at p. */
    size_t n = m->n_odd ? left : vocab_text(call->v, (uint32_t)r->id).n;
    return !recorder_allows(rec, r->id, (size_t)(p - rec->text.data), n);
}

/* Records the span of the token used at a character, text[0..n) of the recorder, and reports it. */
static bool note_taken(const model_call *call, size_t at, const uint8_t *text, size_t n) {
    const plamo2_scratch *s = call->scratch;
    recorder *rec = call->recorder;
    const plamo2_path path = {call->model, s->sum, s->taken, 0};
    bool is_token = path.m->row[s->taken[at]].id >= 0;
    if (is_token && !ggtok_recorder_add_span(rec, (size_t)(text - rec->text.data), n)) return false;
    return !rec->trace || ggtok_plamo2_trace_taken(rec, &path, at, &s->ids, n);
}

/* Finds the ids of text[0..n), which must be in shortest forms, and writes them to s->ids. */
static bool find_path(const model_call *call, const uint8_t *text, size_t n) {
    const plamo2_model *m = call->model;
    plamo2_scratch *s = call->scratch;
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
        if (interrupted(call->interrupt, len)) return false;
        at = odd ? ggtok_plamo2_advance_odd(m, at, p, len) : plamo2_advance(m, at, p, len);
        /* Tries the longest token first. Of tokens with equal sums, the first wins. */
        int64_t least = INT64_MAX;
        uint32_t taken = 0;
        for (uint32_t r = m->state[at].row; r != PLAMO2_NOWHERE; r = m->row[r].next) {
            /* An odd link may lead to tokens that the text doesn't contain and that extend beyond
             * its end, where llama.cpp reads adjacent memory. */
            if (odd && m->row[r].length > chars - i) continue;
            if (is_forbidden(call, &m->row[r], p, (size_t)(text + n - p))) continue;
            int64_t sum = s->sum[i + m->row[r].length] - m->row[r].score;
            if (sum < least) least = sum, taken = r;
        }
        if (least == INT64_MAX) least = s->sum[i + 1] - SCORE_UNKNOWN; /* all tokens are too long */
        s->sum[i] = least;
        s->taken[i] = taken;
    }

    s->ids.n = 0;
    if (trace_of(call->recorder)) {
        const plamo2_path path = {m, s->sum, s->taken, chars};
        if (!ggtok_plamo2_trace_places(call->recorder, &path, text, n)) return false;
    }
    for (size_t i = 0; i < chars;) {
        const row *r = &m->row[s->taken[i]];
        if (!(r->id >= 0 ? idbuf_push(&s->ids, r->id)
                         : push_bytes(call, &s->ids, p, utf8_lead_len(*p)))) {
            return false;
        }
        i += r->length;
        if (interrupted(call->interrupt, r->length)) return false;
        const uint8_t *from = p;
        for (uint32_t k = r->length; k; k--) p += utf8_lead_len(*p);
        if (call->recorder && !note_taken(call, i - r->length, from, (size_t)(p - from)))
            return false;
    }
    return true;
}

/* Appends the ids of one piece. If `remember`, uses the cache; 32 bytes at `text` must then be
 * readable. */
static bool push_piece(const model_call *call, const uint8_t *text, size_t n, bool remember) {
    plamo2_scratch *s = call->scratch;
    idbuf *out = call->out;
    piece_key key;
    uint64_t hash = 0;
    if (interrupted(call->interrupt, n)) return false;
    remember = remember && n <= PIECE_MAX && !call->recorder;
    if (remember) {
        key = piece_key_of(text, n);
        hash = piece_hash(&key);
        const piece_slot *slot = piece_cache_find(&s->cache, &key, hash);
        if (slot) {
            call->counts->hits++;
            if (!idbuf_reserve(out, PIECE_IDS)) return false;
            memcpy(out->data + out->n, slot->id, sizeof slot->id);
            out->n += slot->n;
            return true;
        }
    }
    call->counts->misses++;
    if (!find_path(call, text, n) || !idbuf_reserve(out, s->ids.n)) return false;
    memcpy(out->data + out->n, s->ids.data, s->ids.n * sizeof *out->data);
    out->n += s->ids.n;
    if (remember) ggtok_piece_cache_put(&s->cache, &key, hash, s->ids.data, s->ids.n);
    return true;
}

/* Appends the ids of text[0..n), n >= 1; `room` bytes are readable at `text`. */
static bool push_part(const model_call *call, const uint8_t *text, size_t n, size_t room) {
    const plamo2_model *m = call->model;
    size_t start = 0, len, i;
    uint32_t c = char_at(text, n, &len);
    const bool whole = m->whole || trace_of(call->recorder);
    for (i = len; i < n && !whole; i += len) {
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
    /* The last piece can be read as a key only if there is enough room after it. */
    return push_piece(call, text + start, n - start, room - start > PIECE_MAX);
}

/* ---- PLaMo3's parts ---- */

/* Returns the length of the tag <|plamo:NAME|> at p, or 0. A name has at most 64 characters, none
 * of them '|' or white space (as in Python, which includes U+001C to U+001F). So a tag never begins
 * inside another. */
static size_t tag_at(const uint8_t *p, const uint8_t *end) {
    enum { OPEN = 8, MAX_NAME = 64 };
    if (end - p < OPEN || memcmp(p, "<|plamo:", OPEN)) return 0;
    const uint8_t *at = p + OPEN;
    for (int chars = 0; at < end; chars++) {
        uint32_t c = utf8_next(&at);
        if (c == '|') return at < end && *at == '>' ? (size_t)(at + 1 - p) : 0;
        if (chars == MAX_NAME || (c >= 0x1C && c <= 0x1F)) return 0;
        if (ggtok_unicode_flags(c) & UNICODE_WHITESPACE) return 0;
    }
    return 0;
}

#define BREAK 0xEE00u /* ends a part and is dropped */
#define BOM 0xFEFFu   /* dropped by PLaMo2 at the start of a text */

/*
 * Returns the end of the part that starts at `from`: the first later position where a tag or a long
 * run (two spaces, or four of any other character except newlines) begins or ends, or that is next
 * to a BREAK. Runs don't extend over the ends of tags. Sets *tag to the end of the last tag found,
 * for the next call.
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
        if (next - text == 3 && !memcmp(text, "\xEE\xB8\x80", 3)) continue; /* a BREAK */
        if (!push_part(call, text, (size_t)(next - text), (size_t)(end - text))) return false;
    }
    return true;
}

/* Encodes text[0..n), which must be in shortest forms. */
static ggtok_status encode_text(const model_call *call, const uint8_t *text, size_t n) {
    const plamo2_model *m = call->model;
    if (m->parts) return push_parts(call, text, text + n) ? GGTOK_OK : ggtok_call_failed(call);
    if (n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) text += 3, n -= 3; /* one BOM is dropped */
    return !n || push_part(call, text, n, n) ? GGTOK_OK : ggtok_call_failed(call);
}

/* Assigns spans from the lengths of tokens. If nothing is dropped, the tokens' texts tile the text,
 * and byte tokens represent its bytes. */
static bool plamo2_tile(const model_call *call, const model_source *source) {
    const plamo2_model *m = call->model;
    tiles *t = &((plamo2_scratch *)call->scratch)->tiles;
    if (m->n_odd || ggtok_utf8_valid_prefix(source->text, source->n) < source->n) return false;
    if (!t->len) {
        const vocab *v = call->v;
        if (!ggtok_tile_alloc(t, v)) return false;
        for (uint32_t id = 0; id < v->n_tokens; id++) {
            bool is_byte = (v->attr[id] & GGTOK_ATTR_BYTE) != 0;
            t->len[id] = is_byte ? 1 : ggtok_tile_length(vocab_text(v, id), false);
        }
    }
    return ggtok_tile(t, source, false);
}

static ggtok_status plamo2_encode(const model_call *call, const uint8_t *text, size_t n) {
    plamo2_scratch *s = call->scratch;
    if (ggtok_utf8_valid_prefix(text, n) != n) {
        s->text.n = 0;
        if (!ggtok_plamo2_repair(&s->text, text, n, call->interrupt))
            return ggtok_call_failed(call);
        text = s->text.data;
        n = s->text.n;
    }
    return encode_text(call, text, n);
}

/* A character, or a byte that isn't part of one, is either wholly trusted or
 * not at all. */
static ggtok_status plamo2_encode_recorded(const model_call *call, const uint8_t *text, size_t n) {
    recorder *rec = call->recorder;
    ggtok_recorder_clear(rec);
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cpt;
        uint8_t c[4];
        len = ggtok_utf8_decode_any(text + i, text + n, &cpt);
        if (!ggtok_recorder_put(rec, c, ggtok_plamo2_encode(cpt, c), i, len)) {
            return ggtok_call_failed(call);
        }
    }
    return ggtok_recorder_seal(rec) ? encode_text(call, rec->text.data, rec->text.n)
                                    : ggtok_call_failed(call);
}

/* Whether a part always ends at the position: a tag contains no white space, a run consists of one
 * character, and a BREAK is dropped. */
static bool separates_parts(const model_place *place) {
    uint32_t a = place->before, b = place->after;
    bool tag = a != ' ' && a != '\n' && b != ' ' && b != '\n';
    return a != b && !tag && a != BREAK && b != BREAK;
}

static bool plamo2_may_cut(const vocab *v, const void *model, void *scratch,
                           const model_place *place) {
    (void)v, (void)scratch;
    const plamo2_model *m = model;
    if (m->whole || (m->parts ? !separates_parts(place) : place->after == BOM)) return false;
    size_t len;
    uint32_t a = char_at(place->text + place->start, place->at - place->start, &len);
    return !pair_in(&m->pairs, a, char_at(place->text + place->at, 4, &len));
}

const model_ops ggtok_model_plamo2 = {
    .build = plamo2_build_model,
    .free = plamo2_free,
    .scratch_new = plamo2_scratch_new,
    .scratch_free = plamo2_scratch_free,
    .encode = plamo2_encode,
    .encode_recorded = plamo2_encode_recorded,
    .tile = plamo2_tile,
    .cache_bytes = plamo2_cache_bytes,
    .may_cut = plamo2_may_cut,
};
