#include "cache/kept_words.h"

#include <string.h>

enum { MOST = SMALL ? 1 << 12 : 10 << 20 }; /* most bytes of all words and ids together */

static size_t bytes_of(const kept_word *w) {
    return w->n_ids * sizeof *w->ids + w->n;
}

static void drop(kept_word *w) {
    ggtok_mem_free(w->ids);
    memset(w, 0, sizeof *w);
}

bool ggtok_kept_words_get(const kept_words *k, const uint8_t *p, size_t n, idbuf *out) {
    for (size_t i = 0; i < KEPT_WORDS; i++) {
        const kept_word *w = &k->word[i];
        if (w->n != n || memcmp(w->ids + w->n_ids, p, n)) continue;
        if (!idbuf_reserve(out, w->n_ids)) return false;
        memcpy(out->data + out->n, w->ids, w->n_ids * sizeof *w->ids);
        out->n += w->n_ids;
        return true;
    }
    return false;
}

void ggtok_kept_words_put(kept_words *k, const uint8_t *p, size_t n, const int32_t *ids,
                          size_t n_ids) {
    if (n > MOST || n_ids > (MOST - n) / sizeof *ids) return;
    size_t size = n_ids * sizeof *ids + n;
    kept_word *w = &k->word[k->next];
    k->next = (k->next + 1) % KEPT_WORDS;
    drop(w);
    for (size_t i = k->next; ggtok_kept_words_bytes(k) > MOST - size; i = (i + 1) % KEPT_WORDS)
        drop(&k->word[i]);
    if (!(w->ids = ggtok_mem_realloc(NULL, size))) return;
    if (n_ids) memcpy(w->ids, ids, n_ids * sizeof *ids);
    memcpy(w->ids + n_ids, p, n);
    w->n_ids = n_ids;
    w->n = n;
}

size_t ggtok_kept_words_bytes(const kept_words *k) {
    size_t n = 0;
    for (size_t i = 0; i < KEPT_WORDS; i++) n += bytes_of(&k->word[i]);
    return n;
}

void ggtok_kept_words_free(kept_words *k) {
    for (size_t i = 0; i < KEPT_WORDS; i++) drop(&k->word[i]);
    k->next = 0;
}
