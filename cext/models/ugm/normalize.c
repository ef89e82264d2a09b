/* Normalization: keeps user-defined tokens, applies the charsmap, and treats white space as the
 * flags specify. */
#include "base/bits.h"
#include "models/ugm/ugm.h"
#include "unicode/space_mark.h"
#include "unicode/utf8_valid.h"

enum { BLOCK = 1 << 15 }; /* number of normalized bytes to collect before tokenizing them */

static inline void put_space(const ugm_run *r, bytebuf *norm) {
    if (r->call->v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES]) {
        memcpy(norm->data + norm->n, SPACE_MARK, SPACE_MARK_BYTES);
        norm->n += SPACE_MARK_BYTES;
    } else {
        norm->data[norm->n++] = ' ';
    }
}

/* Appends one normalized byte; there must be room for 7 bytes. */
static inline void put(ugm_run *r, bytebuf *norm, uint8_t c) {
    const bool *flag = r->call->v->flag;
    if (c != ' ') {
        if (!r->in_word) {
            r->in_word = true;
            if (flag[GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES] ||
                (flag[GGTOK_FLAG_ADD_SPACE_PREFIX] && !r->prefixed)) {
                put_space(r, norm);
                r->prefixed = true;
            }
        }
        norm->data[norm->n++] = c;
    } else {
        r->in_word = false;
        if (!flag[GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES]) put_space(r, norm);
    }
}

/*
 * Returns how many bytes at p are a prefix of some user-defined token. These bytes
 * are kept unchanged: not only whole tokens, as one might expect, but any prefix of
 * one. This is llama.cpp's rule, so it must be ours.
 */
static size_t user_prefix(const trie *user, const uint8_t *p, size_t n) {
    size_t i = 0;
    for (uint32_t s = 0; i < n && (s = trie_child(user, s, p[i])) != 0;) i++;
    return i;
}

/* Returns the length of the sequence at p, or 0 if llama.cpp's unicode_cpt_from_utf8 would reject
 * it. Values above U+10FFFF are accepted, since they are copied, not encoded again. */
static size_t sequence(const uint8_t *p, size_t n) {
    uint32_t cpt;
    size_t len = ggtok_utf8_decode_any(p, p + n, &cpt);
    return len == 1 && *p >= 0x80 ? 0 : len;
}

/* Appends with[0..n), to which text[from..from + used) is normalized; also to the recorder's text. */
static bool put_recorded(ugm_run *r, const uint8_t *with, size_t n, size_t from, size_t used) {
    bytebuf *norm = &r->s->norm;
    recorder *rec = r->call->recorder;
    bool trusted = ggtok_recorder_trusts(rec, from, used), ok = true;
    bool same = n == used && !memcmp(with, r->text + from, n);
    for (size_t i = 0; ok && i < n; i++) {
        size_t before = norm->n, begin = same ? from + i : from,
               end = same ? begin + 1 : from + used;
        put(r, norm, with[i]);
        const uint8_t *made = norm->data + before;
        size_t n_made = norm->n - before;
        if (with[i] != ' ') {
            size_t n_space = n_made - 1;
            bool white = r->white_begin < r->white_end;
            if (!white) r->white_begin = r->white_end = begin;
            ok =
                ggtok_recorder_put_all(rec, made, n_space, trusted, r->white_begin, r->white_end) &&
                ggtok_recorder_put_all(rec, made + n_space, 1, trusted, begin, end);
            r->white_begin = r->white_end = 0;
        } else if (n_made) {
            ok = ggtok_recorder_put_all(rec, made, n_made, trusted, begin, end);
        } else {
            if (r->white_begin == r->white_end) r->white_begin = begin;
            r->white_end = end;
        }
    }
    return ok;
}

/* Normalizes the beginning of p[0..n) to with[0..with_n), all white space to spaces. Returns the
 * number of bytes used; on a fault in the charsmap, returns 0 and sets *fault. */
static size_t match_prefix(const ugm_model *m, const uint8_t *p, size_t n, const uint8_t **with,
                           size_t *with_n, const char **fault) {
    static const uint8_t replacement[3] = {0xEF, 0xBF, 0xBD};
    size_t used = user_prefix(&m->user, p, n);
    if (!used && (used = ggtok_charsmap_match(&m->map, p, n, with, with_n, fault)) != 0)
        return used;
    if (*fault) return 0;
    if (!used) used = sequence(p, n);
    *with = used ? p : replacement;
    *with_n = used ? used : sizeof replacement;
    return used ? used : 1;
}

/* Normalizes the beginning of p[0..n). Returns the number of bytes used, or 0 on an error. */
static size_t put_prefix(ugm_run *r, const uint8_t *p, size_t n) {
    const char *fault = NULL;
    const uint8_t *with;
    size_t with_n, used = match_prefix(r->m, p, n, &with, &with_n, &fault);
    if (!used) {
        ggtok_ugm_charsmap_fault(fault, r->call->err);
        return 0;
    }
    bytebuf *norm = &r->s->norm;
    if (!bytebuf_reserve(norm, mem_mul(with_n, 3) + 8)) {
        ggtok_call_failed(r->call);
        return 0;
    }
    if (!r->call->recorder) {
        for (size_t i = 0; i < with_n; i++) put(r, norm, with[i]);
    } else if (!put_recorded(r, with, with_n, (size_t)(p - r->text), used)) {
        ggtok_call_failed(r->call);
        return 0;
    }
    return used;
}

#define EACH(x) ((uint64_t)(x) * 0x0101010101010101u)

/* Returns how many of the 8 bytes at p, up to the first exception, are graphic ASCII characters. */
static inline size_t graphic_run(const uint8_t *p) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t x, y;
    memcpy(&x, p, 8);
    /* The first sum sets a byte's top bit if the byte is at least 0x21; the second, if it is
     * 0x7F. */
    y = x & EACH(0x7F);
    uint64_t stop = ~((y + EACH(0x80 - 0x21)) & ~(y + EACH(1)) & ~x) & EACH(0x80);
    return stop ? bits_lowest(stop) / 8 : 8;
#else
    (void)p;
    return 0;
#endif
}

/* Whether the character is U+2581, or may change the character before it. */
static bool is_mark(const uint8_t *p, size_t len) {
    return (*p & 0xFE) == 0xCC || charsmap_joins(p, len) ||
           (len == 3 && !memcmp(p, SPACE_MARK, SPACE_MARK_BYTES));
}

/* Returns the kind of a character that is replaced. */
static uint8_t find_becomes(const ugm_model *m, const uint8_t *p, size_t len) {
    enum { MOST = UINT8_MAX - KIND_BECOMES };
    const uint8_t *with;
    const char *fault = NULL;
    size_t n;
    bool known = ggtok_charsmap_match(&m->map, p, len, &with, &n, &fault) == len && n && n <= MOST;
    if (known && n == 1 && *with == ' ') return KIND_SPACE;
    known = known && !memchr(with, ' ', n) && ggtok_utf8_valid_prefix(with, n) == n;
    for (size_t i = 0; known && i + SPACE_MARK_BYTES <= n; i++) {
        known = memcmp(with + i, SPACE_MARK, SPACE_MARK_BYTES) != 0;
    }
    return known ? (uint8_t)(KIND_BECOMES + n) : KIND_OTHER;
}

static uint8_t find_kind(const ugm_model *m, const uint8_t *p, size_t len) {
    if (PLAIN || trie_child(&m->user, 0, p[0])) return KIND_OTHER;
    const charsmap_fate fate = ggtok_charsmap_fate(&m->map, p, len);
    if (is_mark(p, len)) return fate == CHARSMAP_KEPT ? KIND_MARK : KIND_OTHER;
    return fate == CHARSMAP_KEPT            ? KIND_PLAIN
           : fate == CHARSMAP_KEPT_UNJOINED ? KIND_APART
           : fate == CHARSMAP_REPLACED      ? find_becomes(m, p, len)
                                            : KIND_OTHER;
}

/*
 * Returns the length of the character at p if it has two or three bytes and is known to be
 * kept; otherwise 0. Charsmaps compose letters with combining marks,
 * whose UTF-8 begins with CC or CD, so this returns 0 for a character before such a
 * mark. Four bytes must be readable.
 */
static inline size_t plain_char(const ugm_model *m, ugm_scratch *s, const uint8_t *p) {
    size_t len;
    uint32_t cpt;
    if (p[0] >= 0xC2 && p[0] < 0xE0 && utf8_continues(p[1])) {
        cpt = (p[0] & 0x1Fu) << 6 | (p[1] & 0x3F);
        len = 2;
    } else if ((p[0] & 0xF0) == 0xE0 && utf8_continues(p[1]) && utf8_continues(p[2])) {
        cpt = (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3F);
        len = 3;
        if (cpt < 0x800) return 0;
    } else {
        return 0;
    }
    if ((p[len] & 0xFE) == 0xCC) return 0;
    uint8_t *kind = &s->kind[cpt];
    if (*kind == KIND_UNKNOWN) *kind = find_kind(m, p, len);
    return *kind == KIND_PLAIN || *kind == KIND_MARK ? len : 0;
}

ggtok_status ggtok_ugm_run_text(ugm_run *r, const uint8_t *text, size_t n, bool *exact) {
    bytebuf *norm = &r->s->norm;
    size_t drain_at = BLOCK;
    norm->n = 0;
    r->text = text;
    for (size_t i = 0, asked = 0; i < n;) {
        if (i - asked >= INTERRUPT_EVERY) {
            if (interrupted(r->call->interrupt, i - asked)) return ggtok_call_failed(r->call);
            asked = i;
        }
        if (r->cut && norm->n >= drain_at) {
            ggtok_status status = ggtok_ugm_drain(r, false);
            if (status) return status;
            /* The rest will be scanned again; doubling the threshold keeps the cost linear. */
            drain_at = 2 * norm->n + BLOCK;
            if (r->drained + (double)norm->n > r->m->exact_len) break;
        }
        if (!bytebuf_reserve(norm, 1024 + 16)) return ggtok_call_failed(r->call);
        /* Appends as many plain bytes as fit in the room just reserved, at up to four bytes
         * each. */
        size_t stop = n - 1 - i > 250 ? i + 250 : n - 1;
        while (i < stop && !r->call->recorder) {
            size_t len;
            if (text[i + 1] < 0x80 && r->m->plain[text[i]]) {
                put(r, norm, text[i++]);
                if (r->m->all_plain && r->in_word && stop - i >= 8) {
                    /* Appends up to eight more at once; `stop` counted four bytes for each. */
                    size_t run = graphic_run(text + i);
                    if (run && text[i + run] >= 0x80) run--;
                    memcpy(norm->data + norm->n, text + i, 8);
                    norm->n += run;
                    i += run;
                }
            } else if (stop - i > 3 && (len = plain_char(r->m, r->s, text + i)) != 0) {
                put(r, norm, text[i]);
                memcpy(norm->data + norm->n, text + i + 1, 2);
                norm->n += len - 1;
                i += len;
            } else {
                break;
            }
        }
        if (i == stop && stop < n - 1 && !r->call->recorder) continue;
        size_t used = put_prefix(r, text + i, n - i);
        if (!used) return r->call->err->status;
        i += used;
    }
    *exact = r->drained + (double)norm->n <= r->m->exact_len;
    r->is_open = ggtok_ugm_ends_open(norm->data, norm->n);
    if (r->cut && !*exact) return GGTOK_OK;
    if (r->call->recorder && !ggtok_recorder_seal(r->call->recorder))
        return ggtok_call_failed(r->call);
    return r->keep ? GGTOK_OK : ggtok_ugm_drain(r, true);
}

/* ---- changes ---- */

void ggtok_ugm_changes_init(const ugm_model *m, ugm_scratch *s) {
    bool *halts = s->leads.halts;
    memset(halts, true, sizeof s->leads.halts);
    memset(halts + 0x80, false, 0x40); /* continuation bytes */
    halts[' '] = false;
    if (m->newlines) halts['\t'] = halts['\n'] = halts['\r'] = false;
}

/* Returns the kind of a character in well-formed text, and sets *len. */
static inline uint8_t kind_of(const ugm_model *m, ugm_scratch *s, const uint8_t *p, size_t *len) {
    *len = utf8_lead_len(*p);
    if (*len == 4) return find_kind(m, p, 4);
    const uint8_t *next = p;
    uint8_t *kind = &s->kind[utf8_next(&next)];
    if (*kind == KIND_UNKNOWN) *kind = find_kind(m, p, *len);
    return *kind;
}

/* Whether the character is kept. False for marks that may change the character before them. */
static bool stays(const ugm_model *m, ugm_scratch *s, const uint8_t *p, size_t len) {
    return !is_mark(p, len) && (plain_char(m, s, p) || kind_of(m, s, p, &len) == KIND_APART);
}

/* Whether all three-byte characters with this first byte are kept. */
static bool all_stay(const ugm_model *m, ugm_scratch *s, uint8_t first) {
    for (unsigned i = 0; i < 64 * 64; i++) {
        const uint8_t p[] = {first, (uint8_t)(0x80 | i >> 6), (uint8_t)(0x80 | (i & 63)), 'a'};
        if (ggtok_utf8_valid_prefix(p, 3) == 3 && !stays(m, s, p, 3)) return false;
    }
    return true;
}

/* Excludes the run of kept two-byte characters around the one at p from the characters to report.
 * Returns whether the run includes all 64 characters with that lead byte. */
static bool note_run(const ugm_model *m, ugm_scratch *s, const uint8_t *p) {
    uint8_t c[] = {p[0], p[1], 'a', 'a'};
    unsigned from = p[1], end = p[1] + 1;
    while (c[1] = (uint8_t)(from - 1), from > 0x80 && stays(m, s, c, 2)) from--;
    while (c[1] = (uint8_t)end, end < 0xC0 && stays(m, s, c, 2)) end++;
    s->leads.pass[p[0] & 31].from = (uint8_t)from;
    s->leads.pass[p[0] & 31].n = (uint8_t)(end - from);
    return end - from == 64;
}

/* Records that the character at p, the first with its first byte, is kept. */
static void note_stays(const ugm_model *m, ugm_scratch *s, const uint8_t *p) {
    s->asked[*p] = true;
    bool all = *p < 0x80 || (*p < 0xE0 ? note_run(m, s, p) : *p < 0xF0 && all_stay(m, s, *p));
    s->leads.halts[*p] = !all;
}

/* Whether the white space at text[at..end) is between two characters that aren't white space, or
 * that are in a word with an unsure change. */
static bool is_single_space(const changes *c, const ugm_finder *f, size_t at, size_t end) {
    size_t len;
    return at && end < c->valid && !ugm_ends_spans(f->m, c->text[at - 1]) &&
           !ugm_ends_spans(f->m, c->text[end]) &&
           kind_of(f->m, f->s, c->text + end, &len) != KIND_SPACE;
}

void ggtok_ugm_find_changes(changes *c) {
    const ugm_finder *f = c->user;
    ugm_scratch *s = f->s;
    const bool ascii = f->m->all_plain && f->m->newlines;
    while (changes_have_room(c) && c->at < c->end) {
        size_t places[WINDOW];
        bool bad;
        const size_t n = ggtok_changes_look(c, &s->leads, ascii, places, &bad);
        if (bad) changes_add(c, (size_t)c->at++, 1, CHANGE_UNSURE);
        for (size_t i = 0; i < n; i++) {
            const uint8_t *p = c->text + places[i];
            size_t len;
            const uint8_t kind = kind_of(f->m, s, p, &len);
            if (kind == KIND_PLAIN || kind == KIND_APART) {
                if (!s->asked[*p]) note_stays(f->m, s, p);
                continue;
            }
            /* A space counts one byte, like the U+2581 that it becomes. */
            const bool space =
                kind == KIND_SPACE && is_single_space(c, f, places[i], places[i] + len);
            changes_add(c, places[i], len,
                        space                 ? 1
                        : kind > KIND_BECOMES ? (size_t)(kind - KIND_BECOMES)
                                              : CHANGE_UNSURE);
        }
    }
}

/* Like plain_char, this stops at an ASCII character before a combining mark. */
size_t ggtok_ugm_plain(const ugm_model *m, ugm_scratch *s, const uint8_t *p, size_t n,
                       size_t room) {
    size_t i = 0;
    for (size_t len; i < n && room - i >= 4; i += len) {
        if (p[i] < 0x80) {
            uint8_t *kind = &s->kind[p[i]];
            if (*kind == KIND_UNKNOWN) *kind = find_kind(m, p + i, 1);
            if (*kind != KIND_PLAIN || p[i] == ' ' || (p[i + 1] & 0xFE) == 0xCC) break;
            len = 1;
        } else if (!memcmp(p + i, SPACE_MARK, SPACE_MARK_BYTES) ||
                   !(len = plain_char(m, s, p + i))) {
            break;
        }
    }
    return i;
}
