#include "words.h"

const uint8_t *words_pad(bytebuf *pad, const uint8_t *text, size_t n, size_t *room) {
    *room = n;
    if (n >= WORDS_SHORT) return text;
    pad->n = 0;
    if (!bytebuf_reserve(pad, WORDS_SHORT + WORDS_PAD)) return NULL;
    memset(pad->data + n, 0, WORDS_PAD);
    *room = n + WORDS_PAD;
    return memcpy(pad->data, text, n);
}

bool words_find(wordcache *cache, const words_probe *probe, const uint8_t *word, size_t n,
                size_t room, idbuf *out) {
    const uint64_t *key = probe->key;
    if (key[1] != WORDS_NOT_SHORT) {
        return word_is_far(probe->set) && wordcache_get_far(cache, key, word, n, out);
    }
    if (n > LONG_MAX_BYTES) return false;
    if (n > PIECE_MAX) return wordcache_get_long(cache, word, n, key[0], out);
    if (n > WORD_SHORT && room > PIECE_MAX) {
        return wordcache_get_piece(cache, word, n, key[0], out);
    }
    return wordcache_get(cache, word, n, room, out); /* where the text ends */
}

ggtok_status words_other(const model_call *call, wordcache *cache, word_fn encode,
                         const words_probe *probe, const uint8_t *word, size_t n, size_t room) {
    if (!idbuf_reserve(call->out, LONG_MAX_IDS)) return error_memory(call->err);
    if (words_find(cache, probe, word, n, room, call->out)) return GGTOK_OK;
    call->counts->hits--;
    call->counts->misses++;
    return encode(call, word, n, room);
}
