/* Random numbers, reproducible from a seed (splitmix64). */
#ifndef RANDOM_H
#define RANDOM_H

#include <stddef.h>
#include <stdint.h>

static uint64_t random_state;

static size_t below(size_t n) { /* returns a number from 0 to n - 1 */
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (size_t)((z ^ z >> 31) % n);
}

#define PICK(list) ((list)[below(sizeof(list) / sizeof *(list))])

#endif
