#include "pretok_scan.h"

void pretok_begin(pretok_walk *w, const pretok_row *row, const uint8_t *text, size_t n) {
    *w = (pretok_walk){.row = row, .text = text, .n = n};
    w->stage[0].end = n;
}

/*
 * The last scanner with a piece in hand cuts on; when it has none, the nearest
 * one in front of it that has cuts one piece off and hands it down. So every
 * stage sees each byte of the text once, and the words come out in text order.
 */
size_t pretok_next(pretok_walk *w, size_t *ends, size_t max) {
    const pretok_scanner *const *chain = w->row->chain;
    pretok_stage *st = w->stage;
    size_t last = 0, n = 0;
    while (last + 1 < PRETOK_MAX_CHAIN && chain[last + 1]) last++;

    while (n < max) {
        size_t i = last;
        while (i > 0 && st[i].pos == st[i].end) i--;
        if (st[i].pos == st[i].end) break;
        for (; i < last; i++) {
            size_t start = st[i].pos, end;
            chain[i]->cut(chain[i], w->text, &st[i], &end, 1);
            st[i + 1] = (pretok_stage){.pos = start, .end = end};
        }
        n += chain[last]->cut(chain[last], w->text, &st[last], ends + n, max - n);
    }
    return n;
}

/* End of the match that starts at pos, or pos. */
static inline size_t dfa_match(const pretok_scanner *self, const uint8_t *text, size_t pos,
                               size_t end, pretok_stage *st) {
    const uint16_t *next = self->next;
    const uint8_t *ascii = self->ascii;
    const uint8_t *p = text + pos, *stop = text + end, *saved = p, *loop = NULL;
    unsigned state = 0;
    for (;;) {
        unsigned cell;
        size_t len = 1;
        for (;;) { /* the common case: ASCII, and nothing to note */
            cell = next[state + (p < stop ? ascii[*p] : PRETOK_COLUMN_END)];
            if (cell >= PRETOK_SAVE) break;
            state = cell;
            p++;
        }
        if (cell == PRETOK_STOP_DECODE) {
            const uint8_t *q = p;
            uint32_t cpt = utf8_next(&q);
            cell = next[state + self->class_[unicode_class(cpt)]];
            len = (size_t)(q - p);
            if (cell < PRETOK_SAVE) {
                state = cell;
                p = q;
                continue;
            }
        }
        if (cell == PRETOK_STOP_HERE) return (size_t)(p - text);
        if (cell == PRETOK_STOP_SAVED) {
            if (loop) {
                st->memo[0] = (size_t)(loop - text);
                st->memo[1] = (size_t)(p - text);
            }
            return (size_t)(saved - text);
        }
        if (cell < PRETOK_MEMO) {
            saved = p;
            loop = NULL;
        }
        p += len;
        state = cell & PRETOK_STATE;
        if (state == self->memo_state) {
            size_t at = (size_t)(p - text);
            if (at >= st->memo[0] && at <= st->memo[1]) return (size_t)(saved - text);
            loop = p;
        }
    }
}

size_t pretok_dfa_cut(const pretok_scanner *self, const uint8_t *text, pretok_stage *st,
                      size_t *ends, size_t max) {
    size_t n = 0, pos = st->pos, end = st->end;
    while (n < max && pos < end) {
        size_t cut = st->match_end;
        st->match_end = 0;
        if (!cut) cut = dfa_match(self, text, pos, end, st);
        if (cut == pos) { /* a gap: up to where a match starts */
            size_t match = pos;
            while (cut < end) {
                unsigned c = text[cut];
                if (c < 0x80 && self->next[self->ascii[c]] == PRETOK_STOP_SAVED) {
                    cut++;
                    match = cut;
                    continue;
                }
                match = dfa_match(self, text, cut, end, st);
                if (match > cut) break;
                cut += utf8_lead_len(text[cut]);
                match = cut;
            }
            st->match_end = match > cut ? match : 0;
        }
        ends[n++] = pos = cut;
    }
    st->pos = pos;
    return n;
}
