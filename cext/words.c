#include "words.h"

ggtok_status words_other(const model_call *call, wordcache *cache, word_fn encode,
                         const words_probe *probe, const uint8_t *word, size_t n, size_t room) {
    idbuf *out = call->out;
    if (!idbuf_reserve(out, WORD_LONG_IDS)) return error_memory(call->err);
    if (probe->key[1] == WORDS_NOT_SHORT && n > WORD_SHORT && n <= PIECE_MAX && room > PIECE_MAX) {
        piece_key key = piece_key_of(word, n);
        const piece_slot *e = piece_find(&cache->pieces, &key, probe->key[0]);
        if (e) {
            memcpy(out->data + out->n, e->id, sizeof e->id); /* what is behind is overwritten */
            out->n += e->n;
            return GGTOK_OK;
        }
    }
    if (wordcache_get(cache, word, n, room, out)) return GGTOK_OK;
    call->counts->hits--;
    call->counts->misses++;
    return encode(call, word, n, room);
}
