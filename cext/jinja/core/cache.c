/* Compiled templates of the process, kept by their sources; the oldest go first. */
#include "base/hash.h"
#include "base/mem.h"
#include "base/shared_lock.h"
#include "jinja/core/jinja.h"
#include "jinja/core/tree.h"

enum { MOST = 64, MOST_BYTES = 32 << 20 };

typedef struct kept {
    jinja_template *t;
    char *source; /* as it was given */
    size_t n;
    uint64_t hash, used;
} kept;

static kept entries[MOST];
static size_t n_bytes;
static uint64_t clock_now;

/* Held for tens of nanoseconds: no template is compiled or freed under it. */
static void take_lock(void) {
    shared_lock_take(&ggtok_process_locks[LOCK_TEMPLATES]);
}
static void give_lock(void) {
    shared_lock_give(&ggtok_process_locks[LOCK_TEMPLATES]);
}

static size_t size_of(const kept *k) {
    return k->t ? k->n + k->t->n_bytes : 0;
}

static kept *find(const char *source, size_t n, uint64_t hash, jinja_dialect dialect) {
    for (size_t i = 0; i < MOST; i++) {
        kept *k = &entries[i];
        if (!k->t || k->hash != hash || k->n != n || k->t->dialect != dialect) continue;
        if (!memcmp(k->source, source, n)) return k;
    }
    return NULL;
}

/* The entry that was used longest ago, or a free one. */
static kept *oldest(void) {
    kept *best = &entries[0];
    for (size_t i = 1; i < MOST; i++) {
        if (!entries[i].t ? best->t != NULL : best->t && entries[i].used < best->used) {
            best = &entries[i];
        }
    }
    return best;
}

static kept *oldest_used(void) {
    kept *best = NULL;
    for (size_t i = 0; i < MOST; i++) {
        if (entries[i].t && (!best || entries[i].used < best->used)) best = &entries[i];
    }
    return best;
}

/* Puts k into the cache; what makes room for it is moved to gone[0..*n_gone). */
static void keep(kept k, kept *gone, size_t *n_gone) {
    kept *place;
    n_bytes += size_of(&k);
    place = oldest();
    if (place->t) {
        n_bytes -= size_of(place);
        gone[(*n_gone)++] = *place;
    }
    *place = k;
    while (n_bytes > MOST_BYTES) {
        kept *old = oldest_used();
        if (old == place || !old) break;
        n_bytes -= size_of(old);
        gone[(*n_gone)++] = *old;
        old->t = NULL;
    }
}

ggtok_status ggtok_jinja_compile_cached(const char *source, size_t n, jinja_dialect dialect,
                                        jinja_template **out, jinja_error *err) {
    if (!ggtok_forks_are_guarded()) return ggtok_jinja_compile(source, n, dialect, out, err);
    uint64_t hash = hash_text((const uint8_t *)source, n, 0);
    take_lock();
    kept *found = find(source, n, hash, dialect);
    if (found) {
        found->used = ++clock_now;
        *out = found->t;
        ggtok_jinja_template_retain(*out);
    }
    give_lock();
    if (found) return GGTOK_OK;
    ggtok_status status = ggtok_jinja_compile(source, n, dialect, out, err);
    if (status != GGTOK_OK || (*out)->n_bytes + n > MOST_BYTES / 2) return status;
    char *own = ggtok_mem_alloc(n ? n : 1);
    if (!own) return GGTOK_OK; /* it works without */
    memcpy(own, source, n);
    ggtok_jinja_template_retain(*out);
    kept k = {*out, own, n, hash, 0}, gone[MOST + 1];
    size_t n_gone = 0;
    take_lock();
    k.used = ++clock_now;
    if (find(source, n, hash, dialect))
        gone[n_gone++] = k; /* another thread was quicker */
    else
        keep(k, gone, &n_gone);
    give_lock();
    while (n_gone--) {
        ggtok_jinja_template_release(gone[n_gone].t);
        ggtok_mem_free(gone[n_gone].source);
    }
    return GGTOK_OK;
}
