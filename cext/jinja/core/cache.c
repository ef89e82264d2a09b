/* The cache of compiled templates, shared by the process: keyed by source, LRU. */
#include "base/hash.h"
#include "base/mem.h"
#include "base/shared_lock.h"
#include "jinja/core/jinja.h"
#include "jinja/core/tree.h"

enum { MAX_TEMPLATES = 64, MAX_BYTES = 32 << 20 };

typedef struct cached {
    jinja_template *t;
    char *source; /* as compiled */
    size_t n;
    uint64_t hash, used;
} cached;

static cached entries[MAX_TEMPLATES];
static size_t n_bytes;
static uint64_t n_uses;

/* Held for tens of nanoseconds: templates are compiled and freed without it. */
static void take_lock(void) {
    shared_lock_take(&ggtok_process_locks[LOCK_TEMPLATES]);
}
static void release_lock(void) {
    shared_lock_give(&ggtok_process_locks[LOCK_TEMPLATES]);
}

static size_t size_of(const cached *k) {
    return k->t ? k->n + k->t->n_bytes : 0;
}

static cached *find(const char *source, size_t n, uint64_t hash, jinja_dialect dialect) {
    for (size_t i = 0; i < MAX_TEMPLATES; i++) {
        cached *k = &entries[i];
        if (!k->t || k->hash != hash || k->n != n || k->t->dialect != dialect) continue;
        if (!memcmp(k->source, source, n)) return k;
    }
    return NULL;
}

/* A free entry, or else the least recently used. */
static cached *place_for_new(void) {
    cached *best = &entries[0];
    for (size_t i = 1; i < MAX_TEMPLATES; i++) {
        if (!entries[i].t ? best->t != NULL : best->t && entries[i].used < best->used) {
            best = &entries[i];
        }
    }
    return best;
}

static cached *least_recently_used(void) {
    cached *best = NULL;
    for (size_t i = 0; i < MAX_TEMPLATES; i++) {
        if (entries[i].t && (!best || entries[i].used < best->used)) best = &entries[i];
    }
    return best;
}

/* Adds k to the cache; evicted entries are appended to evicted[*n_evicted]. */
static void insert(cached k, cached *evicted, size_t *n_evicted) {
    cached *place;
    n_bytes += size_of(&k);
    place = place_for_new();
    if (place->t) {
        n_bytes -= size_of(place);
        evicted[(*n_evicted)++] = *place;
    }
    *place = k;
    while (n_bytes > MAX_BYTES) {
        cached *old = least_recently_used();
        if (old == place || !old) break;
        n_bytes -= size_of(old);
        evicted[(*n_evicted)++] = *old;
        old->t = NULL;
    }
}

ggtok_status ggtok_jinja_compile_cached(const char *source, size_t n, jinja_dialect dialect,
                                        jinja_template **out, jinja_error *err) {
    if (!ggtok_forks_are_guarded()) return ggtok_jinja_compile(source, n, dialect, out, err);
    uint64_t hash = hash_text((const uint8_t *)source, n, 0);
    take_lock();
    cached *found = find(source, n, hash, dialect);
    if (found) {
        found->used = ++n_uses;
        *out = found->t;
        ggtok_jinja_template_retain(*out);
    }
    release_lock();
    if (found) return GGTOK_OK;
    ggtok_status status = ggtok_jinja_compile(source, n, dialect, out, err);
    if (status != GGTOK_OK || (*out)->n_bytes + n > MAX_BYTES / 2) return status;
    char *copy = ggtok_mem_alloc(n ? n : 1);
    if (!copy) return GGTOK_OK; /* uncached */
    memcpy(copy, source, n);
    ggtok_jinja_template_retain(*out);
    cached k = {*out, copy, n, hash, 0}, evicted[MAX_TEMPLATES + 1];
    size_t n_evicted = 0;
    take_lock();
    k.used = ++n_uses;
    if (find(source, n, hash, dialect))
        evicted[n_evicted++] = k; /* another thread has added it */
    else
        insert(k, evicted, &n_evicted);
    release_lock();
    while (n_evicted--) {
        ggtok_jinja_template_release(evicted[n_evicted].t);
        ggtok_mem_free(evicted[n_evicted].source);
    }
    return GGTOK_OK;
}
