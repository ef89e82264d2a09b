/* A walk runs the scanners of a chain, each over the pieces of the previous one. */
#include "pretok/scan.h"

#include <string.h>

static void stage_start(pretok_stage *st, size_t pos, size_t end) {
    st->pos = st->start = pos;
    st->end = end;
    st->match_end = st->memo[0] = st->memo[1] = st->line_end = 0;
    st->lines = false;
    st->next = st->n = 0;
}

static void begin_chain(pretok_walk *w, const pretok_scanner *const *chain, const uint8_t *text,
                        size_t n) {
    w->chain = chain;
    w->text = text;
    w->last = 0;
    w->next = w->n = n;
    while (w->last + 1 < PRETOK_MAX_CHAIN && chain[w->last + 1]) w->last++;
    for (unsigned i = 0; i <= w->last; i++) stage_start(&w->stage[i], 0, i ? 0 : n);
}

static const pretok_scanner *const *chain_of(const pretok_row *row) {
    return row->fast[0] && !PLAIN ? row->fast : row->chain;
}

void ggtok_pretok_begin(pretok_walk *w, const pretok_row *row, const uint8_t *text, size_t n) {
    begin_chain(w, chain_of(row), text, n);
}

void ggtok_pretok_begin_plain(pretok_walk *w, const pretok_row *row, const uint8_t *text,
                              size_t n) {
    begin_chain(w, row->chain, text, n);
}

/* ---- lines ---- */

static size_t line_end(const uint8_t *text, size_t pos, size_t end) {
    const uint8_t *newline = memchr(text + pos, '\n', end - pos);
    return newline ? (size_t)(newline - text) + 1 : end;
}

void ggtok_pretok_begin_lines(pretok_walk *w, const pretok_row *row, const uint8_t *text,
                              size_t n) {
    begin_chain(w, chain_of(row), text, n);
    w->stage[0].lines = !w->last && w->chain[0]->plain; /* windows handle lines themselves */
    if (w->stage[0].lines) return;
    stage_start(&w->stage[0], 0, 0);
    w->next = 0;
}

/* Starts the first stage on the next line. Returns false if there is none. */
static bool begin_line(pretok_walk *w) {
    if (w->next == w->n) return false;
    size_t end = line_end(w->text, w->next, w->n);
    stage_start(&w->stage[0], w->next, end);
    w->next = end;
    return true;
}

size_t ggtok_pretok_line_cut(const pretok_scanner *self, const uint8_t *text, pretok_stage *st,
                             size_t *ends, size_t max) {
    const size_t end = st->end;
    if (st->line_end <= st->pos) st->line_end = line_end(text, st->pos, end);
    st->end = st->line_end;
    size_t n = ggtok_pretok_dfa_cut(self, text, st, ends, max);
    st->end = end;
    return n;
}

/* ---- words ---- */

/* Starts stage `i` on the next piece from the stages before it. Returns false if there is none.
 * Refills only the stages that have no pieces left. */
static bool refill(pretok_walk *w, unsigned i) {
    const pretok_scanner *const *chain = w->chain;
    unsigned from = i;
    pretok_stage *st;
    do {
        if (from == 0) {
            if (!begin_line(w)) return false;
            break;
        }
        st = &w->stage[--from];
    } while (st->next == st->n && st->pos == st->end);
    for (; from < i; from++) {
        st = &w->stage[from];
        if (st->next == st->n) {
            st->n = (unsigned)chain[from]->cut(chain[from], w->text, st, st->ends, PRETOK_BUFFER);
            st->next = 0;
        }
        size_t end = st->ends[st->next++];
        stage_start(&w->stage[from + 1], st->start, end);
        st->start = end;
    }
    return true;
}

/* Writes the ends of the next words. The last scanner writes its cuts directly into `ends`; the
 * others cut a few pieces ahead. So every stage reads the text once, in order. */
size_t ggtok_pretok_next(pretok_walk *w, size_t *ends, size_t max) {
    const pretok_scanner *scanner = w->chain[w->last];
    pretok_stage *st = &w->stage[w->last];
    size_t n = 0;
    while (n < max) {
        if (st->pos == st->end && !refill(w, w->last)) break;
        n += scanner->cut(scanner, w->text, st, ends + n, max - n);
        if (st->pos < st->end) break; /* `ends` is full or has less room than the scanner needs */
    }
    return n;
}
