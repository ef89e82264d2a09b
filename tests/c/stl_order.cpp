/*
 * Compares stl_order.c with the C++ library whose orders it reproduces (libstdc++): std::sort on
 * many lists, some of which make it fall back to heap sort, and the iteration order of
 * std::unordered_map. Prints the first difference; the exit status is 1 if there is one.
 *
 * Claim stl.1.
 */
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

extern "C" {
#include "index/stl_order.h"
}

static std::mt19937_64 random_bits(1);

static size_t below(size_t n) {
    return (size_t)(random_bits() % n);
}

static bool same_sort(const std::vector<uint32_t> &key) {
    std::vector<int32_t> want(key.size()), got(key.size());
    std::iota(want.begin(), want.end(), 0);
    got = want;
    std::sort(want.begin(), want.end(), [&](int32_t a, int32_t b) { return key[a] > key[b]; });
    ggtok_stl_sort_descending(got.data(), got.size(), key.data());
    if (got != want) std::printf("std::sort of %zu differs\n", key.size());
    return got == want;
}

/* Returns keys that make quicksort recurse as deeply as possible. McIlroy's adversary chooses them
 * while the list is being sorted. */
static std::vector<uint32_t> killer(size_t n) {
    const uint32_t gas = 0; /* the key of an item without a chosen key: less than any chosen key */
    std::vector<uint32_t> key(n, gas);
    std::vector<int32_t> ids(n);
    uint32_t next = (uint32_t)n;
    int32_t candidate = 0;
    std::iota(ids.begin(), ids.end(), 0);
    std::sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
        if (key[a] == gas && key[b] == gas) key[a == candidate ? a : b] = next--;
        if (key[a] == gas)
            candidate = a;
        else if (key[b] == gas)
            candidate = b;
        return key[a] > key[b];
    });
    return key;
}

static bool same_map(size_t n) {
    std::unordered_map<std::string, int> map;
    std::vector<uint8_t> arena(1);
    std::vector<uint32_t> off(1, 0);
    arena.clear();
    for (size_t i = 0; i < n; i++) {
        std::string text = std::to_string(i);
        while (below(3)) text += (char)below(256);
        map[text] = (int)i;
        arena.insert(arena.end(), text.begin(), text.end());
        off.push_back((uint32_t)arena.size());
    }
    std::vector<int32_t> candidates;
    for (size_t i = 0; i < 1 + n % 5; i++) candidates.push_back((int32_t)below(n));
    size_t first = SIZE_MAX;
    bool ok = map.size() != n || ggtok_stl_map_first(arena.data(), off.data(), (uint32_t)n,
                                                     candidates.data(), candidates.size(), &first);
    if (map.size() != n) return true; /* two texts are equal */
    for (const auto &entry : map) {
        auto at = std::find(candidates.begin(), candidates.end(), entry.second);
        if (at == candidates.end()) continue;
        if (ok && first == (size_t)(at - candidates.begin())) return true;
        break;
    }
    std::printf("std::unordered_map of %zu differs\n", n);
    return false;
}

/* Checks the example drawn in docs/design/loading.md. */
static bool example() {
    const char *const texts[] = {"<|im_end|>", "<|eot_id|>", "[EOT]"};
    const size_t bucket[] = {5, 0, 5};
    const int32_t order[] = {1, 2, 0};
    std::unordered_map<std::string, int32_t> map;
    std::string arena;
    std::vector<uint32_t> off(1, 0);
    bool ok = true;
    for (int32_t i = 0; i < 3; i++) {
        map[texts[i]] = i;
        ok &= map.bucket_count() == 13 && map.bucket(texts[i]) == bucket[i];
        arena += texts[i];
        off.push_back((uint32_t)arena.size());
    }
    size_t at = 0;
    for (const auto &entry : map) ok &= entry.second == order[at++];
    /* The candidates are all texts, the last two, and the last one. */
    for (size_t from = 0; from < 3; from++) {
        size_t first = SIZE_MAX;
        ok &= ggtok_stl_map_first((const uint8_t *)arena.data(), off.data(), 3, order + from,
                                  3 - from, &first) &&
              first == 0;
    }
    if (!ok) std::printf("the example differs\n");
    return ok;
}

int main() {
    bool ok = example();
    for (size_t i = 0; ok && i < 3000; i++) {
        std::vector<uint32_t> key(below(i % 10 ? 100 : 5000));
        size_t kinds = 1 + below(below(2) ? 5 : 1000);
        for (auto &k : key) k = (uint32_t)below(kinds);
        ok = same_sort(key);
    }
    for (size_t n = 17; ok && n < 3000; n += 1 + n / 4) ok = same_sort(killer(n));
    for (size_t n = 1; ok && n < 3000; n += 1 + n / 8) ok = same_map(n);
    if (ok) std::printf("ok\n");
    return !ok;
}
