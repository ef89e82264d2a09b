#include "models/long_word.h"

#include <string.h>

enum {
    OVERLAP = 3,   /* symbols that are merged again with the text after them */
    SPAN = 4,      /* a window has at least this many times as many symbols as its overlap bytes */
    PART = 1 << 9, /* bytes of a part, at least */
    STEP = 1 << 7  /* bytes by which a part is continued to join it with the next one */
};

bool ggtok_merged_reserve(merged_symbols *m, size_t n) {
    if (n < m->cap) return true;
    size_t cap = n + n / 2 + 1;
    merged_symbol *data = ggtok_mem_realloc(m->data, mem_mul(cap, sizeof *data));
    if (!data) return false;
    m->data = data;
    m->cap = cap;
    return true;
}

static void part_begin(word_part *part, size_t from, size_t end) {
    part->pos = from;
    part->end = end;
    part->done.n = 0;
    part->overlap = OVERLAP;
    part->last.n = 0;
}

/* Copies the result of the previous window, which is the end of `done`, if the next window has the
 * same text. Sets *copied if so. Returns false if out of memory. */
static bool copy_last(word_part *part, const uint8_t *p, bool *copied) {
    size_t n = part->last.n, from = part->last.from, len = part->pos - from;
    *copied = n && part->pos - part->from < len && len <= part->end - part->from &&
              !memcmp(p + from, p + part->from, len);
    if (!*copied) return true;
    merged_symbols *out = &part->window.merged;
    if (!ggtok_merged_reserve(out, n)) return false;
    for (size_t i = 0; i <= n; i++) {
        out->data[i] = part->done.data[part->done.n - n + i];
        out->data[i].start -= (uint32_t)from;
    }
    out->n = n;
    return true;
}

/* Determines the next window of a part. */
static void next_window(word_part *part, const uint8_t *p, size_t few) {
    if (part->overlap > part->done.n) part->overlap = part->done.n;
    size_t first = part->done.n - part->overlap;
    part->from = part->overlap ? part->done.data[first].start : part->pos;
    part->window.p = p + part->from;
    part->window.n = part->end - part->from;
    part->window.most = few;
    while (part->window.most < SPAN * (part->pos - part->from) &&
           part->window.most < part->window.n) {
        part->window.most *= 2;
    }
    if (part->window.most > part->window.n) part->window.most = part->window.n;
}

/* Replaces the overlap by the merged window, if that begins with the same symbol; otherwise makes
 * the overlap longer and adds the window's length to *wasted. Returns false if out of memory. */
static bool accept(word_part *part, size_t *wasted) {
    const merged_symbols *window = &part->window.merged;
    size_t first = part->done.n - part->overlap, len = window->data[window->n].start;
    if (first && window->data[1].start != part->done.data[first + 1].start - part->from) {
        *wasted += len;
        part->overlap *= 2;
        return true;
    }
    if (!ggtok_merged_reserve(&part->done, first + window->n)) return false;
    for (size_t i = 0; i <= window->n; i++) {
        part->done.data[first + i] = window->data[i];
        part->done.data[first + i].start += (uint32_t)part->from;
    }
    part->done.n = first + window->n;
    part->pos = part->from + len;
    part->overlap = OVERLAP;
    part->last.from = part->from;
    part->last.n = window->n;
    return true;
}

/* Merges each part by itself. Returns false if interrupted or out of memory, or if *slow. */
static bool merge_parts(word_part *parts, size_t n_parts, const merge_ops *ops, const uint8_t *p,
                        size_t most, size_t *wasted, interrupt *in, bool *slow) {
    word_part *turn[LONG_WORD_PARTS]; /* the unfinished parts */
    size_t n = 0;
    for (size_t i = 0; i < n_parts; i++) {
        if (parts[i].pos < parts[i].end) turn[n++] = &parts[i];
    }
    while (n) {
        merge_window *windows[LONG_WORD_PARTS];
        size_t n_windows = 0, left = 0;
        for (size_t i = 0; i < n; i++) {
            bool copied;
            next_window(turn[i], p, ops->few);
            if (!copy_last(turn[i], p, &copied)) return false;
            if (!copied) windows[n_windows++] = &turn[i]->window;
        }
        if (n_windows && !ops->merge(ops->model, windows, n_windows)) return false;
        for (size_t i = 0; i < n; i++) {
            const merged_symbols *merged = &turn[i]->window.merged;
            if (interrupted(in, merged->data[merged->n].start)) return false;
            if (!accept(turn[i], wasted)) return false;
            if (turn[i]->pos < turn[i]->end) turn[left++] = turn[i];
        }
        if ((*slow = *wasted > most)) return false;
        n = left;
    }
    return true;
}

/* Appends the rest of the next part from the first symbol on that both parts have at the same place,
 * if there is one from `border` on. The next part's symbols before *at are known not to be. */
static bool splice(word_part *part, const word_part *next, size_t border, size_t *at) {
    merged_symbols *done = &part->done;
    const merged_symbols *more = &next->done;
    size_t i = *at, k = done->n;
    while (k && done->data[k - 1].start >= border) k--;
    for (; k < done->n; k++) {
        uint32_t start = done->data[k].start;
        while (i < more->n && more->data[i].start < start) i++;
        *at = i;
        if (i == more->n) break;
        if (more->data[i].start != start || more->data[i + 1].start != done->data[k + 1].start)
            continue;
        if (!ggtok_merged_reserve(done, k + more->n - i)) return false;
        memcpy(done->data + k, more->data + i, (more->n - i + 1) * sizeof *done->data);
        done->n = k + more->n - i;
        part->pos = next->end;
        part->last.n = 0;
        break;
    }
    return true;
}

/* Joins the parts' results in the first part, which is continued into the text of the next one until
 * both have the same symbol. */
static bool join(word_part *parts, size_t n_parts, const merge_ops *ops, const uint8_t *p,
                 size_t most, size_t *wasted, interrupt *in, bool *slow) {
    word_part *whole = &parts[0];
    for (size_t i = 1; i < n_parts; i++) {
        size_t at = 0, border = whole->pos;
        while (whole->pos < parts[i].end) {
            size_t left = parts[i].end - whole->pos;
            whole->end = whole->pos + (left < STEP ? left : STEP);
            if (!merge_parts(whole, 1, ops, p, most, wasted, in, slow)) return false;
            if (!splice(whole, &parts[i], border, &at)) return false;
        }
    }
    return true;
}

static bool merge_windows(word_part *parts, const merge_ops *ops, const uint8_t *p, size_t n,
                          interrupt *in, bool *slow) {
    size_t n_parts = ops->side_by_side ? n / PART : 1, wasted = 0, from = 0;
    if (n_parts > LONG_WORD_PARTS) n_parts = LONG_WORD_PARTS;
    if (!n_parts) n_parts = 1;
    for (size_t i = 0; i < n_parts; i++) {
        size_t end = i + 1 < n_parts ? n / n_parts * (i + 1) : n;
        part_begin(&parts[i], from, end);
        from = end;
    }
    return merge_parts(parts, n_parts, ops, p, n, &wasted, in, slow) &&
           join(parts, n_parts, ops, p, n, &wasted, in, slow);
}

const merged_symbols *ggtok_long_word_merge(long_word *w, const merge_ops *ops, const uint8_t *p,
                                            size_t n, interrupt *in, bool *slow) {
    *slow = false;
    return merge_windows(w->parts, ops, p, n, in, slow) ? &w->parts[0].done : NULL;
}

void ggtok_long_word_free(long_word *w) {
    for (size_t i = 0; i < LONG_WORD_PARTS; i++) {
        ggtok_mem_free(w->parts[i].done.data);
        ggtok_mem_free(w->parts[i].window.merged.data);
    }
    memset(w, 0, sizeof *w);
}
