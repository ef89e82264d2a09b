#include "jinja/core/text.h"

#include "base/hash.h"
#include "unicode/utf8.h"

/* In an arena that threads share, computes a text's hash and length, which are otherwise computed
 * lazily. */
static void complete(jinja_arena *mem, jinja_text *t) {
    if (!mem->shared) return;
    ggtok_jinja_chars(mem, t);
    ggtok_jinja_hash(mem, t);
}

static jinja_text *new_text(jinja_arena *mem, const void *data, size_t n) {
    if (n > JINJA_MAX_TEXT) ggtok_jinja_fail(mem, "a text is longer than %u bytes", JINJA_MAX_TEXT);
    jinja_text *t = jinja_alloc(mem, sizeof *t);
    if (!data) data = "";
    *t = (jinja_text){.data = data, .n = (uint32_t)n, .n_chars = UINT32_MAX};
    complete(mem, t);
    return t;
}

jinja_text *ggtok_jinja_text_of(jinja_arena *mem, const void *data, size_t n, jinja_label label) {
    jinja_text *t = new_text(mem, data, n);
    t->label = label;
    return t;
}

jinja_text *ggtok_jinja_text_copy(jinja_arena *mem, const void *data, size_t n, jinja_label label) {
    jinja_charge_bytes(mem, n);
    uint8_t *own = jinja_alloc(mem, n);
    if (n) memcpy(own, data, n);
    return ggtok_jinja_text_of(mem, own, n, label);
}

jinja_text *ggtok_jinja_text_parts(jinja_arena *mem, const void *data, size_t n,
                                   const jinja_part *parts, size_t n_parts) {
    jinja_text *t = new_text(mem, data, n);
    if (n_parts == 1) {
        t->label = parts[0].label;
    } else if (n_parts) {
        t->parts = parts;
        t->n_parts = (uint32_t)n_parts;
    }
    return t;
}

int64_t ggtok_jinja_common_label(int64_t a, int64_t b) {
    const int64_t flags = JINJA_ORIGIN(1) - 1;
    if (a < 0 || b < 0 || (a ^ b) & flags) return -1;
    return a == b ? a : a & flags;
}

int64_t ggtok_jinja_text_label(jinja_arena *mem, const jinja_text *t) {
    jinja_charge(mem, t->n_parts / 8);
    if (!t->n) return -1;
    int64_t label = jinja_text_part_label(t, 0) & ~(jinja_label)JINJA_JOINED;
    for (uint32_t i = 1; i < t->n_parts && label >= 0; i++) {
        label = ggtok_jinja_common_label(label, t->parts[i].label & ~(jinja_label)JINJA_JOINED);
    }
    return label;
}

jinja_text *ggtok_jinja_text_fuse(jinja_arena *mem, jinja_text *t) {
    if (!t->n_parts) {
        t->label &= ~(jinja_label)JINJA_JOINED;
        return t;
    }
    jinja_charge(mem, t->n_parts / 2);
    jinja_part *parts = jinja_alloc_n(mem, t->n_parts, sizeof *parts);
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_parts; i++) {
        jinja_label label = t->parts[i].label & ~(jinja_label)JINJA_JOINED;
        uint32_t end = (uint32_t)jinja_text_end(t, i);
        if (n && (parts[n - 1].label & ~(jinja_label)JINJA_JOINED) == label)
            parts[n - 1].end = end;
        else
            parts[n] = (jinja_part){end, label | (n ? JINJA_JOINED : 0u)}, n++;
    }
    jinja_text *fused = ggtok_jinja_text_parts(mem, t->data, t->n, parts, n);
    fused->n_chars = t->n_chars;
    return fused;
}

uint32_t ggtok_jinja_text_hash(const jinja_text *t) {
    uint64_t hash = hash_text(t->data, t->n, 0);
    uint32_t folded = (uint32_t)(hash ^ hash >> 32);
    return folded ? folded : 1;
}

uint32_t ggtok_jinja_hash(jinja_arena *mem, jinja_text *t) {
    if (!t->hash) {
        jinja_charge_bytes(mem, t->n);
        t->hash = ggtok_jinja_text_hash(t);
    }
    return t->hash;
}

uint32_t ggtok_jinja_chars(jinja_arena *mem, jinja_text *t) {
    if (t->n_chars == UINT32_MAX) {
        uint32_t n = 0;
        jinja_charge_bytes(mem, t->n);
        for (uint32_t i = 0; i < t->n; i++) n += !utf8_continues(t->data[i]);
        t->n_chars = n;
    }
    return t->n_chars;
}

/* ---- concatenation ---- */

/* Ensures capacity for `extra` more bytes and `extra_parts` more parts. */
static void grow_room(jinja_arena *mem, jinja_room *room, size_t extra, size_t extra_parts) {
    if (room->cap - room->n < extra) {
        size_t cap = (size_t)room->n + extra;
        if (cap > JINJA_MAX_TEXT)
            ggtok_jinja_fail(mem, "a text is longer than %u bytes", JINJA_MAX_TEXT);
        cap += cap / 2 + 32;
        jinja_charge_bytes(mem, room->n);
        uint8_t *data = jinja_alloc(mem, cap);
        if (room->n) memcpy(data, room->data, room->n);
        room->data = data;
        room->cap = (uint32_t)cap;
    }
    if (room->cap_parts - room->n_parts < extra_parts) {
        size_t cap = (size_t)room->n_parts + extra_parts;
        cap += cap / 2 + 4;
        jinja_charge(mem, room->n_parts / 2);
        jinja_part *parts = jinja_alloc_n(mem, cap, sizeof *parts);
        if (room->n_parts) memcpy(parts, room->parts, room->n_parts * sizeof *parts);
        room->parts = parts;
        room->cap_parts = (uint32_t)cap;
    }
}

static void append(jinja_room *room, const jinja_text *t) {
    size_t count = jinja_text_count(t), at = room->n;
    memcpy(room->data + room->n, t->data, t->n);
    for (size_t i = 0; i < count; i++) {
        room->parts[room->n_parts + i] =
            (jinja_part){(uint32_t)(at + jinja_text_end(t, i)), jinja_text_part_label(t, i)};
    }
    room->n_parts += (uint32_t)count;
    room->n += t->n;
}

jinja_text *ggtok_jinja_text_concat(jinja_arena *mem, const jinja_text *a, const jinja_text *b) {
    jinja_text *t = jinja_alloc(mem, sizeof *t);
    if (!a->n || !b->n) {
        *t = a->n ? *a : *b;
        t->safe = false;
        return t;
    }
    size_t count_b = jinja_text_count(b);
    jinja_charge_bytes(mem, (size_t)b->n + 8 * count_b);
    jinja_room *room = a->room;
    if (!room || room->n != a->n) { /* no buffer, or another text was appended there */
        size_t count_a = jinja_text_count(a);
        jinja_charge_bytes(mem, (size_t)a->n + 8 * count_a);
        room = jinja_alloc(mem, sizeof *room);
        *room = (jinja_room){0};
        grow_room(mem, room, (size_t)a->n + b->n, count_a + count_b);
        append(room, a);
    } else {
        grow_room(mem, room, b->n, count_b);
    }
    append(room, b);
    *t = (jinja_text){.data = room->data,
                      .n = room->n,
                      .n_parts = room->n_parts,
                      .parts = room->parts,
                      .room = room,
                      .n_chars = UINT32_MAX};
    complete(mem, t);
    return t;
}

/* ---- cutting ---- */

/* Returns the index of the part that contains byte `at`, which is less than t->n. */
static size_t part_at(const jinja_text *t, size_t at) {
    size_t lo = 0, hi = jinja_text_count(t) - 1;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->parts[mid].end > at)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

jinja_text *ggtok_jinja_text_cut(jinja_arena *mem, const jinja_text *t, size_t begin, size_t end) {
    jinja_charge(mem, 1);
    if (begin >= end) return ggtok_jinja_text_of(mem, t->data, 0, 0);
    jinja_text *cut = ggtok_jinja_text_of(mem, t->data + begin, end - begin, t->label);
    if (!t->n_parts) return cut;
    size_t first = part_at(t, begin), last = part_at(t, end - 1);
    if (first == last) {
        cut->label = t->parts[first].label;
        return cut;
    }
    size_t count = last - first + 1;
    jinja_charge(mem, count / 2);
    jinja_part *parts = jinja_alloc_n(mem, count, sizeof *parts);
    for (size_t i = 0; i < count; i++) {
        parts[i] = (jinja_part){(uint32_t)(jinja_text_end(t, first + i) - begin),
                                t->parts[first + i].label};
    }
    cut->parts = parts;
    cut->n_parts = (uint32_t)count;
    return cut;
}

/* ---- comparing and searching ---- */

bool ggtok_jinja_text_equal(jinja_arena *mem, const jinja_text *a, const jinja_text *b) {
    if (a == b || a->n != b->n) return a == b;
    jinja_charge(mem, a->n / 16);
    return a->n == 0 || !memcmp(a->data, b->data, a->n);
}

int ggtok_jinja_text_compare(jinja_arena *mem, const jinja_text *a, const jinja_text *b) {
    jinja_charge(mem, (a->n < b->n ? a->n : b->n) / 16);
    return ggtok_jinja_text_order(a, b);
}

int ggtok_jinja_text_order(const jinja_text *a, const jinja_text *b) {
    size_t n = a->n < b->n ? a->n : b->n;
    int order = n ? memcmp(a->data, b->data, n) : 0;
    if (!order) return (a->n > b->n) - (a->n < b->n);
    return order > 0 ? 1 : -1; /* memcmp may return any number */
}

/*
 * Returns the failure table of a Knuth-Morris-Pratt search for p[0..n), or for its reverse if
 * `back`. A naive search could take time proportional to the product of the lengths. Most searches
 * end with memchr, before the table is built.
 */
static const uint32_t *borders(jinja_arena *mem, const uint8_t *p, size_t n, bool back) {
    uint32_t *border = jinja_alloc_n(mem, n, sizeof *border);
    jinja_charge(mem, n / 4);
    border[0] = 0;
    for (size_t i = 1, k = 0; i < n; i++) {
        uint8_t c = back ? p[n - 1 - i] : p[i];
        while (k && c != (back ? p[n - 1 - k] : p[k])) k = border[k - 1];
        if (c == (back ? p[n - 1 - k] : p[k])) k++;
        border[i] = (uint32_t)k;
    }
    return border;
}

static size_t search(jinja_arena *mem, const uint8_t *p, size_t n, const jinja_text *needle,
                     bool back) {
    const uint8_t *w = needle->data;
    size_t m = needle->n;
    const uint32_t *border = borders(mem, w, m, back);
    jinja_charge(mem, 1 + n / 4);
    for (size_t i = 0, k = 0; i < n; i++) {
        uint8_t c = back ? p[n - 1 - i] : p[i];
        while (k && c != (back ? w[m - 1 - k] : w[k])) k = border[k - 1];
        if (c == (back ? w[m - 1 - k] : w[k])) k++;
        if (k == m) return back ? n - 1 - i : i + 1 - m;
    }
    return SIZE_MAX;
}

size_t ggtok_jinja_text_find(jinja_arena *mem, const jinja_text *t, const jinja_text *needle,
                             size_t from) {
    if (from > t->n || needle->n > t->n - from) return SIZE_MAX;
    if (!needle->n) return from;
    const uint8_t *p = t->data + from, *end = t->data + t->n;
    size_t n = t->n - from;
    for (size_t tries = 0; tries < 8; tries++) { /* memchr and a comparison often suffice */
        const uint8_t *found = memchr(p, needle->data[0], (size_t)(end - p));
        size_t passed = found ? (size_t)(found - p) : (size_t)(end - p);
        jinja_charge(mem, 1 + passed / 16);
        if (!found || (size_t)(end - found) < needle->n) return SIZE_MAX;
        jinja_charge(mem, needle->n / 16);
        if (!memcmp(found, needle->data, needle->n)) return (size_t)(found - t->data);
        p = found + 1;
    }
    n = (size_t)(end - p);
    size_t at = search(mem, p, n, needle, false);
    return at == SIZE_MAX ? at : (size_t)(p - t->data) + at;
}

size_t ggtok_jinja_text_rfind(jinja_arena *mem, const jinja_text *t, const jinja_text *needle,
                              size_t to) {
    if (to > t->n) to = t->n;
    if (needle->n > to) return SIZE_MAX;
    if (!needle->n) return to;
    jinja_charge(mem, 1 + needle->n / 16);
    if (!memcmp(t->data + to - needle->n, needle->data, needle->n)) return to - needle->n;
    return search(mem, t->data, to, needle, true);
}

/* ---- building ---- */

jinja_builder ggtok_jinja_builder_new(jinja_arena *mem, size_t room) {
    jinja_builder b = {.arena = mem};
    if (room) ggtok_jinja_builder_reserve(&b, room);
    return b;
}

uint8_t *ggtok_jinja_builder_reserve(jinja_builder *b, size_t n) {
    if (b->cap - b->n < n) {
        if (n > JINJA_MAX_TEXT - b->n) {
            ggtok_jinja_fail(b->arena, "a text is longer than %u bytes", JINJA_MAX_TEXT);
        }
        size_t cap = b->n + n;
        cap += cap / 2 + 64;
        jinja_charge_bytes(b->arena, b->n);
        uint8_t *data = jinja_alloc(b->arena, cap);
        if (b->n) memcpy(data, b->data, b->n);
        b->data = data;
        b->cap = cap;
    }
    return b->data + b->n;
}

void ggtok_jinja_builder_wrote(jinja_builder *b, size_t n, jinja_label label) {
    if (!n) return;
    b->n += n;
    if (b->merge && b->n_parts && b->parts[b->n_parts - 1].label == label) {
        b->parts[b->n_parts - 1].end = (uint32_t)b->n;
        return;
    }
    if (b->n_parts == b->cap_parts) {
        size_t cap = 2 * b->cap_parts + 8;
        jinja_charge(b->arena, b->n_parts / 2);
        jinja_part *parts = jinja_alloc_n(b->arena, cap, sizeof *parts);
        if (b->n_parts) memcpy(parts, b->parts, b->n_parts * sizeof *parts);
        b->parts = parts;
        b->cap_parts = cap;
    }
    b->parts[b->n_parts++] = (jinja_part){(uint32_t)b->n, label};
}

void ggtok_jinja_builder_add(jinja_builder *b, const void *data, size_t n, jinja_label label) {
    jinja_charge_bytes(b->arena, n);
    if (n) memcpy(ggtok_jinja_builder_reserve(b, n), data, n);
    ggtok_jinja_builder_wrote(b, n, label);
}

void ggtok_jinja_builder_text(jinja_builder *b, const jinja_text *t) {
    if (!t->n_parts) {
        ggtok_jinja_builder_add(b, t->data, t->n, t->label);
        return;
    }
    ggtok_jinja_builder_cut(b, t, 0, t->n);
}

void ggtok_jinja_builder_cut(jinja_builder *b, const jinja_text *t, size_t begin, size_t end) {
    if (begin >= end) return;
    if (!t->n_parts) {
        ggtok_jinja_builder_add(b, t->data + begin, end - begin, t->label);
        return;
    }
    for (size_t i = part_at(t, begin); begin < end; i++) {
        size_t stop = jinja_text_end(t, i) < end ? jinja_text_end(t, i) : end;
        ggtok_jinja_builder_add(b, t->data + begin, stop - begin, t->parts[i].label);
        begin = stop;
    }
}

void ggtok_jinja_builder_data(jinja_builder *b, const jinja_text *t, size_t begin, size_t end) {
    const jinja_label kept = ~(jinja_label)(JINJA_FROM_TEMPLATE | JINJA_GENERATED | JINJA_JOINED);
    if (!t->n_parts || begin >= end) { /* an empty piece is charged for, too */
        ggtok_jinja_builder_add(b, t->data + begin, end - begin, t->label & kept);
        return;
    }
    for (size_t i = part_at(t, begin); begin < end;) {
        jinja_label label = t->parts[i].label & kept;
        size_t stop = jinja_text_end(t, i++);
        while (stop < end && (t->parts[i].label & kept) == label) stop = jinja_text_end(t, i++);
        if (stop > end) stop = end;
        ggtok_jinja_builder_add(b, t->data + begin, stop - begin, label);
        begin = stop;
    }
}

jinja_text *ggtok_jinja_builder_end(jinja_builder *b) {
    return ggtok_jinja_text_parts(b->arena, b->data, b->n, b->parts, b->n_parts);
}

jinja_text *ggtok_jinja_builder_take(jinja_builder *b, size_t n, size_t n_parts) {
    size_t count = b->n_parts - n_parts, size = b->n - n;
    jinja_charge_bytes(b->arena, size + 8 * count);
    uint8_t *data = jinja_alloc(b->arena, size);
    if (size) memcpy(data, b->data + n, size);
    jinja_part *parts = NULL;
    if (count) parts = jinja_alloc_n(b->arena, count, sizeof *parts);
    for (size_t i = 0; i < count; i++) {
        parts[i] = b->parts[n_parts + i];
        parts[i].end -= (uint32_t)n;
    }
    b->n = n;
    b->n_parts = n_parts;
    return ggtok_jinja_text_parts(b->arena, data, size, parts, count);
}
