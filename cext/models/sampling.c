#include "models/sampling.h"

/* One step of splitmix64 (Steele, Lea and Flood). */
static uint64_t split_mix(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void ggtok_sampling_begin(sampling *s, const ggtok_sampling *options) {
    uint64_t seed = options->seed;
    uint64_t state = split_mix(&seed) ^ options->index;
    for (int i = 0; i < 4; i++) s->state[i] = split_mix(&state);
    s->nbest = options->nbest;
    s->alpha = options->value;
    s->skipped_returns = options->rule == GGTOK_SAMPLING_DROPOUT;
    s->skip_below = options->value < 1 ? (uint64_t)(options->value * 0x1p53) : (uint64_t)1 << 53;
    s->skipped.n = 0;
    s->lattice.counts.n = s->lattice.fragments.n = 0;
}

void ggtok_sampling_free(sampling *s) {
    ggtok_mem_free(s->skipped.data);
    ggtok_mem_free(s->starts.data);
    ggtok_mem_free(s->weights.data);
    ggtok_mem_free(s->lattice.paths);
    ggtok_mem_free(s->lattice.counts.data);
    ggtok_mem_free(s->lattice.fragments.data);
    memset(s, 0, sizeof *s);
}

size_t ggtok_sampling_bytes(const sampling *s) {
    return s->skipped.cap + s->starts.cap + s->weights.cap +
           s->lattice.paths_cap * sizeof *s->lattice.paths + s->lattice.counts.cap +
           s->lattice.fragments.cap;
}
