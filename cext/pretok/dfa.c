/*
 * Runs the automata that gen/pretok_dfa.py writes to dfa.inc. Each cut is the end of the pattern's
 * leftmost-first match (docs/design/pretokenizers.md).
 */
#include "pretok/scan.h"

/* Returns the cell for the non-ASCII character at p and sets *len to its length. */
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

/* Returns the end of the match that starts at pos, or pos if none starts there. */
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

/* Called if no match starts at pos. Returns the first later position where one starts (and sets
 * *match_end to its end), or end. */
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

size_t ggtok_pretok_dfa_cut(const pretok_scanner *self, const uint8_t *text, pretok_stage *st,
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
    /* The last possible end of the current match, and where the match entered memo_state. */
    size_t saved = p, loop = end;
    unsigned state = 0;
    while (n < max && first < end) {
        unsigned cell = 0;
        size_t len = 1;
        /* ASCII characters that need no special action. No branch depends on where words end: each
         * step writes an end, and `n` counts it if it is one. */
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
