#include "pretok_scan.h"

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

void pretok_begin(pretok_walk *w, const pretok_row *row, const uint8_t *text, size_t n) {
    begin_chain(w, row->fast[0] && !PLAIN ? row->fast : row->chain, text, n);
}

void pretok_begin_plain(pretok_walk *w, const pretok_row *row, const uint8_t *text, size_t n) {
    begin_chain(w, row->chain, text, n);
}

/* Hands the next piece of the scanners in front of stage `i` to it; false when
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

/* The last scanner cuts its piece straight into `ends`; the ones in front of it
 * cut some pieces ahead. So every stage walks the text once, in text order. */
size_t pretok_next(pretok_walk *w, size_t *ends, size_t max) {
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

/* The cell for the character at p, not ASCII; *len gets its length. */
static inline unsigned decode_cell(const pretok_scanner *self, unsigned state, const uint8_t *p,
                                   size_t *len) {
    const uint8_t *q = p;
    uint32_t cpt = utf8_next(&q);
    *len = (size_t)(q - p);
    return self->next[state + self->class_[unicode_class(cpt)]];
}

static size_t char_before(const uint8_t *text, size_t p) {
    do p--;
    while ((text[p] & 0xC0) == 0x80);
    return p;
}

static bool known_failure(const pretok_stage *st, size_t at) {
    return st->memo[0] <= at && at <= st->memo[1] && st->memo[1] != 0;
}

/* End of the match that starts at pos, or pos if none does. */
static size_t match_at(const pretok_scanner *self, const uint8_t *text, size_t pos, size_t end,
                       pretok_stage *st) {
    size_t p = pos, saved = pos, loop = end;
    unsigned state = 0;
    for (;;) {
        size_t len = 1;
        unsigned cell = self->next[state + (p < end ? self->ascii[text[p]] : PRETOK_COLUMN_END)];
        if (cell == PRETOK_STOP_DECODE) cell = decode_cell(self, state, text + p, &len);
        if (cell == PRETOK_STOP_SAVED) {
            if (loop < p) st->memo[0] = loop, st->memo[1] = p;
            return saved;
        }
        if (cell == PRETOK_STOP_BACK) return char_before(text, p);
        if (cell == PRETOK_STOP_HERE || (self->begin <= cell && cell < PRETOK_SAVE)) return p;
        if (PRETOK_SAVE <= cell && cell < PRETOK_MEMO) saved = p, loop = end;
        p += len;
        state = cell & PRETOK_STATE;
        if (cell >= PRETOK_SAVE && state == self->memo_state) {
            if (known_failure(st, p)) return saved;
            loop = p;
        }
    }
}

/* No match starts at pos: the first place behind it where one does (it ends at
 * *match_end), or end. */
static size_t gap_end(const pretok_scanner *self, const uint8_t *text, size_t pos, size_t end,
                      pretok_stage *st, size_t *match_end) {
    pos += utf8_lead_len(text[pos]);
    while (pos < end) {
        size_t len = 1;
        unsigned cell = self->next[self->ascii[text[pos]]];
        if (cell == PRETOK_STOP_DECODE) cell = decode_cell(self, 0, text + pos, &len);
        if (cell != PRETOK_STOP_SAVED) {
            *match_end = match_at(self, text, pos, end, st);
            if (*match_end > pos) return pos;
        }
        pos += len;
    }
    return end;
}

size_t pretok_dfa_cut(const pretok_scanner *self, const uint8_t *text, pretok_stage *st,
                      size_t *ends, size_t max) {
    const uint16_t *next = self->next;
    const uint8_t *ascii = self->ascii;
    const unsigned begin = self->begin;
    const size_t end = st->end;
    size_t p = st->pos, first = p, n = 0;
    if (st->match_end) {
        ends[n++] = first = p = st->match_end;
        st->match_end = 0;
    }
    /* Of the match being read: the last end met, and where it went into memo_state. */
    size_t saved = p, loop = end;
    unsigned state = 0;
    while (n < max && first < end) {
        unsigned cell = 0;
        size_t len = 1;
        /* ASCII, nothing to note: no branch depends on where words end. Each
         * step writes at most one end. */
        size_t stop = p + (end - p < max - n ? end - p : max - n);
        while (p < stop) {
            cell = (next + ascii[text[p]])[state];
            if (cell >= PRETOK_SAVE) break;
            ends[n] = p++;
            n += cell >= begin;
            state = cell;
        }
        if (p == stop) {
            if (p < end || n == max) continue;
            cell = next[state + PRETOK_COLUMN_END];
        } else if (cell == PRETOK_STOP_DECODE) {
            cell = decode_cell(self, state, text + p, &len);
            if (cell < PRETOK_SAVE) {
                ends[n] = p;
                n += cell >= begin;
                state = cell;
                p += len;
                continue;
            }
        }
        if (n) first = ends[n - 1];
        if (cell < PRETOK_STOP_HERE) {
            if (cell < PRETOK_MEMO) saved = p, loop = end;
            p += len;
            state = cell & PRETOK_STATE;
            if (state != self->memo_state) continue;
            if (!known_failure(st, p)) {
                loop = p;
                continue;
            }
        } else if (cell == PRETOK_STOP_HERE) {
            saved = p;
        } else if (cell == PRETOK_STOP_BACK) {
            saved = char_before(text, p);
        } else if (first < loop && loop < p) {
            st->memo[0] = loop;
            st->memo[1] = p;
        }
        if (saved > first) {
            ends[n++] = first = p = saved;
        } else {
            size_t match_end = 0;
            ends[n++] = first = p = gap_end(self, text, first, end, st, &match_end);
            if (match_end > p) {
                if (n < max)
                    ends[n++] = first = p = match_end;
                else
                    st->match_end = match_end;
            }
        }
        saved = p;
        loop = end;
        state = 0;
    }
    st->pos = n ? ends[n - 1] : st->pos;
    return n;
}
