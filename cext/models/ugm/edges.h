/* The tokens with which a path through a piece can continue. */
#ifndef GGTOK_UGM_EDGES_H
#define GGTOK_UGM_EDGES_H

#include "base/cpu.h"
#include "models/ugm/ugm.h"

/* Calls visit(user, id, length) for each token of text[i..n), first the long ones, then the others
 * from short to long, unless the recorder forbids it. Returns whether such a token is the single
 * character at i, of `len` bytes. `visit` must be a constant, so that it is inlined. */
ALWAYS_INLINE bool ugm_each_token(const ugm_run *r, const int32_t *hits, const uint8_t *text,
                                  size_t i, size_t n, size_t len,
                                  void (*visit)(void *user, int32_t id, size_t len), void *user) {
    const trie *t = &r->m->tokens;
    const recorder *rec = r->call->recorder;
    bool known = false;
    if (hits) {
        size_t long_len;
        for (uint32_t hit = (uint32_t)hits[i]; hit; hit = trie_long_shorter(&r->m->longs, hit)) {
            int32_t id = trie_long_id(&r->m->longs, hit, &long_len);
            if (rec && !recorder_allows(rec, id, i, long_len)) continue;
            visit(user, id, long_len);
        }
        if (n - i > TRIE_WALK) n = i + TRIE_WALK;
    }
    uint32_t s = 0;
    for (size_t k = i; k < n;) {
        s = trie_child(t, s, text[k++]);
        if (!s) break;
        uint32_t link = t->unit[s].link;
        if (!(link & (TRIE_VALUE | TRIE_TAIL))) continue;
        if (link & TRIE_TAIL) {
            size_t rest = trie_tail(t, s, k - i, text + k, n - k);
            if (rest == SIZE_MAX) break;
            k += rest;
        }
        if (!rec || recorder_allows(rec, t->value[s], i, k - i)) {
            known |= k - i == len;
            visit(user, t->value[s], k - i);
        }
        if (link & TRIE_TAIL) break;
    }
    return known;
}

/* Returns a token's score in a path: llama.cpp's score for user-defined tokens is 0. */
static inline double ugm_score(const ugm_run *r, int32_t id) {
    const vocab *v = r->call->v;
    bool user = r->s->any_user && (v->attr[id] & GGTOK_ATTR_USER_DEFINED);
    return user ? 0.0 : v->score[id];
}

#endif
