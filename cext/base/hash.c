#include "base/hash.h"

#include "base/clock.h"

#include <time.h>

uint64_t ggtok_hash_new_seed(const void *p) {
    uint64_t now = clock_ns();
    uint64_t h = hash_fold(now ^ 0x9E3779B97F4A7C15u, (uint64_t)clock() ^ 0xD1B54A32D192ED03u);
    h = hash_fold(h ^ (uint64_t)(uintptr_t)p, 0x8CB92BA72F3D8DD7u);
    return hash_fold(h ^ (uint64_t)(uintptr_t)&now, 0xA0761D6478BD642Fu) | 1;
}
