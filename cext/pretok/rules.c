/*
 * A scanner's automaton knows where a match ends but not which alternative matched. To find out,
 * the pattern's program runs over the match, with all threads of a backtracking matcher at once,
 * the preferred ones first. At the end of the match, the first thread that accepts is the one that
 * such a matcher would have followed. The time is proportional to the length of the match.
 */
#include "pretok/rules.h"

#include "pretok/scan.h"

#include <string.h>

typedef struct threads {
    uint16_t at[PRETOK_RULE_STEPS];
    unsigned n;
} threads;

/* Returns the index in a set of the bit for the character at p; sets *len to its length. */
static unsigned letter_at(const uint8_t *p, size_t *len) {
    const uint8_t *q = p;
    uint32_t cpt = utf8_next(&q);
    *len = (size_t)(q - p);
    return cpt < 0x80 ? cpt : 128 + unicode_class(cpt);
}

static bool set_has(const pretok_scanner *s, unsigned set, unsigned letter) {
    return s->sets[set][letter / 64] >> letter % 64 & 1;
}

/* Executes the split and look instructions of the threads in `now`, in order, up to the first
 * thread that accepts. Moves threads that consume the letter to `next`. Returns the alternative
 * that accepts before the letter, or n_rules. */
static unsigned step(const pretok_scanner *s, const threads *now, unsigned letter, threads *next) {
    uint64_t seen[PRETOK_RULE_STEPS / 64] = {0};
    uint16_t stack[2 * PRETOK_RULE_STEPS];
    next->n = 0;
    for (unsigned i = 0; i < now->n; i++) {
        unsigned n = 0;
        stack[n++] = now->at[i];
        while (n) {
            unsigned at = stack[--n];
            if (at == PRETOK_RULE_NONE || seen[at / 64] >> at % 64 & 1) continue;
            seen[at / 64] |= (uint64_t)1 << at % 64;
            if (at < s->n_rules) return at;
            const pretok_step *p = &s->steps[at];
            if (p->set == PRETOK_RULE_SPLIT) {
                stack[n++] = p->other;
                stack[n++] = p->to;
            } else if (p->set & PRETOK_RULE_LOOK) {
                if (set_has(s, p->set & (PRETOK_RULE_LOOK - 1), letter)) stack[n++] = p->to;
            } else if (set_has(s, p->set, letter)) {
                next->at[next->n++] = p->to;
            }
        }
    }
    return s->n_rules;
}

/* Returns the alternative whose match is text[begin..end), in a piece that ends at `limit`; NULL if
 * there is none. */
static const char *matching(const pretok_scanner *s, const uint8_t *text, size_t begin, size_t end,
                            size_t limit) {
    threads lists[2];
    threads *now = &lists[0], *next = &lists[1];
    now->n = 1;
    now->at[0] = (uint16_t)s->first;
    for (size_t at = begin, len = 0;; at += len) {
        unsigned letter = at < limit ? letter_at(text + at, &len) : PRETOK_SET_END;
        unsigned rule = step(s, now, letter, next);
        if (at == end) return rule < s->n_rules ? s->rules[rule] : NULL;
        threads *before = now;
        now = next;
        next = before;
    }
}

/* The counting scanners as regular expressions: the first cuts after its matches, the second
 * before. */
static const char groups_right[] = "\\P{N}*\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))";
static const char groups_left[] = "(?=(?:[0-9]{3})+(?![0-9]))";

static const char *rule_of(const pretok_scanner *s, const uint8_t *text, size_t begin, size_t end,
                           size_t from, size_t limit) {
    if (s == &ggtok_pretok_groups_left) return begin > from ? groups_left : NULL;
    if (s == &ggtok_pretok_groups_right) {
        const uint8_t *last = text + end - 1;
        while (last > text + begin && utf8_continues(*last)) last--;
        return ggtok_unicode_flags(utf8_next(&last)) & UNICODE_NUMBER ? groups_right : NULL;
    }
    return matching(s, text, begin, end, limit);
}

void ggtok_pretok_rules_begin(pretok_rules *r, const pretok_row *row, const uint8_t *text,
                              size_t n) {
    r->row = row;
    r->text = text;
    r->n = n;
    for (r->n_stages = 0; r->n_stages < PRETOK_MAX_CHAIN && row->chain[r->n_stages];) {
        r->stage[r->n_stages].begin = r->stage[r->n_stages].end = 0;
        r->n_stages++;
    }
}

bool ggtok_pretok_rules_next(pretok_rules *r, size_t begin, size_t end) {
    bool fresh = begin == 0; /* whether a new piece from the previous stage begins here */
    size_t from = 0, limit = r->n;
    for (unsigned i = 0; i < r->n_stages; i++) {
        const pretok_scanner *s = r->row->chain[i];
        pretok_stage *cuts = &r->stage[i].cuts;
        if (fresh) {
            memset(cuts, 0, sizeof *cuts);
            cuts->pos = begin;
            cuts->end = limit;
            r->stage[i].end = begin;
        }
        fresh = r->stage[i].end == begin;
        if (fresh) {
            size_t piece_end;
            if (cuts->pos >= limit || !s->cut(s, r->text, cuts, &piece_end, 1)) return false;
            r->stage[i].begin = begin;
            r->stage[i].end = piece_end;
            r->rule[i] = (pretok_rule){s->name, rule_of(s, r->text, begin, piece_end, from, limit)};
        }
        from = r->stage[i].begin;
        limit = r->stage[i].end;
    }
    return !r->n_stages || limit == end;
}
