/* A walk: the scanners of a chain, each over the pieces of the one before it. */
#include "pretok/scan.h"

static void stage_start(pretok_stage *st, size_t pos, size_t end) {
    st->pos = st->start = pos;
    st->end = end;
    st->match_end = st->memo[0] = st->memo[1] = 0;
    st->next = st->n = 0;
}

static void begin_chain(pretok_walk *w, const pretok_scanner *const *chain, const uint8_t *text,
                        size_t n) {
    w->chain = chain;
    w->text = text;
    w->last = 0;
    while (w->last + 1 < PRETOK_MAX_CHAIN && chain[w->last + 1]) w->last++;
    for (unsigned i = 0; i <= w->last; i++) stage_start(&w->stage[i], 0, i ? 0 : n);
}

void ggtok_pretok_begin(pretok_walk *w, const pretok_row *row, const uint8_t *text, size_t n) {
    begin_chain(w, row->fast[0] && !PLAIN ? row->fast : row->chain, text, n);
}

void ggtok_pretok_begin_plain(pretok_walk *w, const pretok_row *row, const uint8_t *text,
                              size_t n) {
    begin_chain(w, row->chain, text, n);
}

/* Hands the next piece of the scanners before stage `i` to it; false when
 * there is none. Only the stages that have run dry are touched. */
static bool refill(pretok_walk *w, unsigned i) {
    const pretok_scanner *const *chain = w->chain;
    unsigned from = i;
    pretok_stage *st;
    do {
        if (from == 0) return false;
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

/* The last scanner cuts its piece straight into `ends`; those before it
 * cut some pieces ahead. So every stage walks the text once, in text order. */
size_t ggtok_pretok_next(pretok_walk *w, size_t *ends, size_t max) {
    const pretok_scanner *scanner = w->chain[w->last];
    pretok_stage *st = &w->stage[w->last];
    size_t n = 0;
    while (n < max) {
        if (st->pos == st->end && !refill(w, w->last)) break;
        n += scanner->cut(scanner, w->text, st, ends + n, max - n);
        if (st->pos < st->end) break; /* full, or nearly: some scanners want room */
    }
    return n;
}
