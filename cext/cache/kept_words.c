#include "cache/kept_words.h"

#include <string.h>

enum { MOST = 10 << 20 }; /* bytes of all words and ids */

bool ggtok_kept_words_get(const kept_words *k, const uint8_t *p, size_t n, idbuf *out,
                          bool *found) {
    *found = false;
    for (size_t i = 0; i < KEPT_WORDS; i++) {
        const kept_word *w = &k->word[i];
        if (!w->ids || w->n != n || memcmp(w->ids + w->n_ids, p, n)) continue;
        if (!idbuf_reserve(out, w->n_ids)) return false;
        memcpy(out->data + out->n, w->ids, w->n_ids * sizeof *w->ids);
        out->n += w->n_ids;
        *found = true;
        break;
    }
    return true;
}

void ggtok_kept_words_put(kept_words *k, const uint8_t *p, size_t n, const int32_t *ids,
                          size_t n_ids) {
    if (n > MOST || n_ids > (MOST - n) / sizeof *ids) return;
    size_t size = n_ids * sizeof *ids + n;
    kept_word *w = &k->word[k->next];
    k->next = (k->next + 1) % KEPT_WORDS;
    if (w->cap < size) {
        ggtok_mem_free(w->ids);
        memset(w, 0, sizeof *w);
        if (ggtok_kept_words_bytes(k) > MOST - size) ggtok_kept_words_free(k);
        if (!(w->ids = ggtok_mem_alloc(size))) return;
        w->cap = size;
    }
    memcpy(w->ids, ids, n_ids * sizeof *ids);
    memcpy(w->ids + n_ids, p, n);
    w->n_ids = n_ids;
    w->n = n;
}

size_t ggtok_kept_words_bytes(const kept_words *k) {
    size_t n = 0;
    for (size_t i = 0; i < KEPT_WORDS; i++) n += k->word[i].cap;
    return n;
}

void ggtok_kept_words_free(kept_words *k) {
    for (size_t i = 0; i < KEPT_WORDS; i++) ggtok_mem_free(k->word[i].ids);
    memset(k, 0, sizeof *k);
}
