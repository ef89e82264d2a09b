#include "hash.h"

#include <time.h>

uint64_t hash_new_seed(const void *p) {
    struct timespec now = {0};
    timespec_get(&now, TIME_UTC);
    uint64_t h = hash_fold((uint64_t)now.tv_sec ^ 0x9E3779B97F4A7C15u,
                           (uint64_t)now.tv_nsec ^ 0xD1B54A32D192ED03u);
    h = hash_fold(h ^ (uint64_t)(uintptr_t)p, (uint64_t)clock() ^ 0x8CB92BA72F3D8DD7u);
    return hash_fold(h ^ (uint64_t)(uintptr_t)&now, 0xA0761D6478BD642Fu) | 1;
}
