/* Reports the steps of PLaMo, for ggtok_trace. */
#include "models/trace.h"
#include "models/plamo2/plamo2.h"

enum { SCORE_UNIT = 10000 }; /* llama.cpp's scores are integers, in units of 1e-4 */

bool ggtok_plamo2_trace_places(recorder *rec, const plamo2_path *path, const uint8_t *text,
                               size_t n) {
    const int64_t *sum = path->sum;
    const uint8_t *p = text;
    if (!ggtok_trace_word(rec, (size_t)(text - rec->text.data), n)) return false;
    for (size_t i = 0; i < path->chars; i++) {
        const row *r = &path->m->row[path->taken[i]];
        const uint8_t *end = p;
        for (uint32_t k = r->length; k; k--) end += utf8_lead_len(*end);
        ggtok_trace_event e = {.kind = GGTOK_TRACE_PLACE, .at = i, .id = r->id};
        e.text = (ggtok_bytes){(const char *)p, (size_t)(end - p)};
        e.has_score = e.has_total = true;
        e.score = (double)(sum[i + r->length] - sum[i]) / SCORE_UNIT;
        e.total = (double)-sum[i] / SCORE_UNIT;
        if (!trace_emit(rec->trace, e)) return false;
        p += utf8_lead_len(*p);
    }
    return true;
}

bool ggtok_plamo2_trace_taken(recorder *rec, const plamo2_path *path, size_t at, const idbuf *ids,
                              size_t n) {
    const row *r = &path->m->row[path->taken[at]];
    if (r->id >= 0) {
        ggtok_trace_event e = {.id = r->id, .how = GGTOK_HOW_BEST_PATH};
        e.has_score = e.has_total = true;
        e.score = (double)r->score / SCORE_UNIT;
        e.total = (double)-path->sum[at] / SCORE_UNIT;
        return ggtok_trace_token_at(rec, e, rec->n_made - 1);
    }
    for (size_t i = 0; i < n; i++) {
        ggtok_trace_event e = {.id = ids->data[ids->n - n + i], .how = GGTOK_HOW_BYTE};
        e.note = trace_note("no token with a better score contains this character");
        if (!ggtok_trace_token_at(rec, e, rec->n_made - n + i)) return false;
    }
    return true;
}
