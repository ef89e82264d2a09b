/* Composes a text (NFC) before it is normalized, for vocabularies with the key normalizer.nfc. */
#include "models/ugm/ugm.h"
#include "unicode/nfc.h"

void ggtok_ugm_composed_free(ugm_composed *c) {
    ggtok_mem_free(c->text.data);
    ggtok_mem_free(c->trusted.data);
    ggtok_mem_free(c->origin.data);
    ggtok_mem_free(c->marks.data);
}

/* Records the sources of the last `size` bytes: text[at..at + len). */
static bool put_origin(ugm_composed *c, const uint8_t *text, size_t at, size_t len, size_t size) {
    if (!bytebuf_reserve(&c->origin, mem_mul(size, sizeof(ggtok_range)))) return false;
    bool same = size == len && !memcmp(c->text.data + c->text.n - size, text + at, size);
    for (size_t i = 0; i < size; i++) {
        ggtok_range from = {same ? at + i : at, same ? at + i + 1 : at + len};
        memcpy(c->origin.data + c->origin.n, &from, sizeof from);
        c->origin.n += sizeof from;
    }
    return true;
}

bool ggtok_ugm_compose(const model_call *call, const uint8_t *text, size_t n) {
    ugm_composed *c = &((ugm_scratch *)call->scratch)->composed;
    const recorder *rec = call->recorder;
    const bool origins = call->spans || (rec && rec->spans);
    c->text.n = c->trusted.n = c->origin.n = 0;
    for (size_t i = 0, len; i < n; i += len) {
        const size_t before = c->text.n;
        len = ggtok_nfc_kept(text + i, n - i);
        if (len) {
            if (interrupted(call->interrupt, len) || !bytebuf_append(&c->text, text + i, len))
                return false;
        } else {
            len = ggtok_nfc_part(&c->marks, text + i, n - i, &c->text, call->interrupt);
            if (!len) return false;
        }
        const size_t size = c->text.n - before;
        if (origins && !put_origin(c, text, i, len, size)) return false;
        if (!rec) continue;
        if (!bytebuf_reserve(&c->trusted, size)) return false;
        memset(c->trusted.data + c->trusted.n, ggtok_recorder_trusts(rec, i, len), size);
        c->trusted.n += size;
    }
    return !origins || put_origin(c, text, n, 0, 1);
}

ggtok_range ggtok_ugm_origin(const ugm_composed *c, size_t begin, size_t end) {
    const ggtok_range *origin = (const void *)c->origin.data;
    if (begin < end) return (ggtok_range){origin[begin].begin, origin[end - 1].end};
    return (ggtok_range){origin[begin].begin, origin[begin].begin};
}
