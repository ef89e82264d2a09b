/* Cuts a normalized text into pieces, and tokenizes each. */
#include "models/ugm/ugm.h"

/* Encodes a piece that isn't cached. */
static ggtok_status encode_piece(const model_call *call, const uint8_t *text, size_t n,
                                 size_t room) {
    const ugm_run r = {.call = call, .m = call->model, .s = call->scratch};
    idbuf *out = call->out;
    size_t before = out->n;
    ggtok_status status = ggtok_ugm_push_path(&r, text, n);
    if (!status)
        ggtok_word_cache_put(&r.s->pieces, text, n, room, out->data + before, out->n - before);
    return status;
}

/* Appends the ids of a random path through each piece, or collects the best paths. */
static ggtok_status sample_pieces(ugm_run *r, size_t from, const size_t *ends, size_t count) {
    ggtok_status status = GGTOK_OK;
    for (size_t i = 0; !status && i < count; from = ends[i++]) {
        const uint8_t *piece = r->s->norm.data + from;
        status = r->call->sampling->nbest ? ggtok_ugm_push_best(r, piece, ends[i] - from)
                                          : ggtok_ugm_sample_path(r, piece, ends[i] - from);
    }
    return status;
}

/* Appends the ids of *count pieces of s->norm, the first beginning at *start. Advances *start past
 * them and sets *count to 0. */
static ggtok_status push_pieces(ugm_run *r, size_t room, size_t *start, const size_t *ends,
                                size_t *count) {
    size_t from = *start, n = *count;
    if (!n) return GGTOK_OK;
    *start = ends[n - 1];
    *count = 0;
    if (r->call->sampling) return sample_pieces(r, from, ends, n);
    return ggtok_words_encode(r->call, &r->s->pieces, encode_piece, r->s->norm.data, room, from,
                              ends, n);
}

/* Cuts s->norm between two characters that no token contains side by side. */
ggtok_status ggtok_ugm_drain(ugm_run *r, bool all) {
    enum { ENDS = 256, ROOM = PIECE_MAX + 1 };
    bytebuf *norm = &r->s->norm;
    size_t ends[ENDS], count = 0, start = 0, n = norm->n, i = 0, len;
    ggtok_status status = GGTOK_OK;
    if (!bytebuf_reserve(norm, ROOM)) return ggtok_call_failed(r->call);
    const uint8_t *p = norm->data;
    if (r->cut && n) {
        uint32_t c = char_at(p, n, &len);
        for (i = len; !status && i < n; i += len) {
            /* The last characters may be incomplete. */
            if (!all && n - i < 4) break;
            uint32_t next = p[i];
            if (next < 0x80)
                len = 1;
            else
                next = char_at(p + i, n - i, &len);
            ends[count] = i;
            count += !pair_in(&r->m->pairs, c, next);
            c = next;
            if (count == ENDS) {
                status = push_pieces(r, n + ROOM, &start, ends, &count);
            }
        }
    }
    if (!status) status = push_pieces(r, n + ROOM, &start, ends, &count);
    if (!status && all && start < n) {
        if (!r->cut && !r->call->sampling) {
            status = ggtok_ugm_push_path(r, p, n);
        } else {
            ends[count++] = n;
            status = push_pieces(r, n + ROOM, &start, ends, &count);
        }
        start = n;
    }
    r->drained += (double)start;
    norm->n = n - start;
    memmove(norm->data, p + start, norm->n);
    return status;
}
