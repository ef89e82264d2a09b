/*
 * Texts that record where each of their bytes came from.
 *
 * A text is an array of bytes with a list of parts: the end and the label of each part. In
 * llama.cpp's dialect each concatenated text stays a separate part, even next to one with the same
 * label, because some filters work part by part.
 *
 *     "<|" role "|>"     data  < | u s e r | >
 *                        parts    2       6   8
 *                        label    T       -   T
 *
 * Texts are immutable but may share memory. A concatenated text has a buffer with spare room
 * (jinja_room); the first text appended to it is copied there. So the cost of building a text in a
 * loop is proportional to the size of the appended pieces, not of the whole text.
 */
#ifndef GGTOK_JINJA_CORE_TEXT_H
#define GGTOK_JINJA_CORE_TEXT_H

#include <stdbool.h>
#include <string.h>

#include "jinja/core/arena.h"

/* A part's label: flags in the low 8 bits and, above them, the number of the part's origin, which
 * the caller assigns (0: none). */
typedef uint32_t jinja_label;

enum {
    JINJA_FROM_TEMPLATE = 1, /* written by the template: may contain control tokens */
    JINJA_GENERATED = 2,     /* written inside {% generation %} */
    JINJA_JOINED = 4,        /* in llama.cpp, forms one part with the preceding part */
    JINJA_MEDIA = 8          /* the marker of an image, audio or video */
};

/* The label of data from origin n, which is less than 2^24. */
#define JINJA_ORIGIN(n) ((jinja_label)(n) << 8)

typedef struct jinja_part {
    uint32_t end;
    jinja_label label;
} jinja_part;
_Static_assert(sizeof(jinja_part) == 8, "charges for copied parts count 8 bytes each");

typedef struct jinja_room { /* the buffer shared by a text and the texts made by appending to it */
    uint8_t *data;
    jinja_part *parts;
    uint32_t n, cap, n_parts, cap_parts;
} jinja_room;

typedef struct jinja_text {
    const uint8_t *data;
    uint32_t n;
    uint32_t n_parts : 31;   /* 0: the text is empty or is one part with `label` */
    uint32_t safe : 1;       /* transformers: the text is Markup */
    const jinja_part *parts; /* the last part ends at `n`; its `end` is ignored */
    jinja_room *room;        /* may be NULL */
    uint32_t hash;           /* 0: not computed yet; in templates, computed at creation */
    uint32_t n_chars;        /* length in code points, likewise; UINT32_MAX: not computed yet */
    jinja_label label;
} jinja_text;

/* The arguments of "%.*s" that show at most `most` bytes of a text in a message. */
#define JINJA_SHOWN(t, most) \
    text_prefix((t)->data, (t)->n, (most)), (t)->n ? (const char *)(t)->data : ""
_Static_assert(sizeof(jinja_text) <= 4 * sizeof(void *) + 16, "texts are kept small");

/* The maximum length of a text, in bytes. */
#define JINJA_MAX_TEXT 0x7FFFFFF0u

/* Make a text. ggtok_jinja_text_of uses the caller's bytes, which must outlive the arena;
 * ggtok_jinja_text_copy copies them. */
jinja_text *ggtok_jinja_text_of(jinja_arena *mem, const void *data, size_t n, jinja_label label);
jinja_text *ggtok_jinja_text_copy(jinja_arena *mem, const void *data, size_t n, jinja_label label);
/* Makes a text from the caller's bytes with parts[0..n_parts), whose ends must ascend and reach
 * n. */
jinja_text *ggtok_jinja_text_parts(jinja_arena *mem, const void *data, size_t n,
                                   const jinja_part *parts, size_t n_parts);
jinja_text *ggtok_jinja_text_concat(jinja_arena *mem, const jinja_text *a, const jinja_text *b);
/* Returns bytes [begin, end) with their labels. */
jinja_text *ggtok_jinja_text_cut(jinja_arena *mem, const jinja_text *t, size_t begin, size_t end);
/* Returns the same text as one part for llama.cpp's filters. Its bytes keep their labels. */
jinja_text *ggtok_jinja_text_fuse(jinja_arena *mem, jinja_text *t);
uint32_t ggtok_jinja_text_hash(const jinja_text *t);
/* Return the hash and the number of code points, cached in the text. */
uint32_t ggtok_jinja_hash(jinja_arena *mem, jinja_text *t);
uint32_t ggtok_jinja_chars(jinja_arena *mem, jinja_text *t);
/* Returns the label of the whole text without JINJA_JOINED; -1 if its parts have different flags or
 * it is empty. If the parts have different origins, the label has none. */
int64_t ggtok_jinja_text_label(jinja_arena *mem, const jinja_text *t);
/* Returns the common label of two texts with these labels, by the same rules. */
int64_t ggtok_jinja_common_label(int64_t a, int64_t b);
/* Returns the label of text that is made from a text with label `whole`: data if that is -1. */
static inline jinja_label jinja_label_of(int64_t whole) {
    return whole < 0 ? 0 : (jinja_label)whole;
}
bool ggtok_jinja_text_equal(jinja_arena *mem, const jinja_text *a, const jinja_text *b);
static inline bool ggtok_jinja_text_is(const jinja_text *t, const char *s) {
    size_t n = strlen(s);
    return t->n == n && !memcmp(t->data, s, n);
}
int ggtok_jinja_text_compare(jinja_arena *mem, const jinja_text *a, const jinja_text *b);
/* Like ggtok_jinja_text_compare, without charging; for use outside renderings. */
int ggtok_jinja_text_order(const jinja_text *a, const jinja_text *b);
/* Return the offset of the first occurrence of `needle` at or after `from`, or of the last
 * occurrence that ends at or before `to`; SIZE_MAX if there is none. */
size_t ggtok_jinja_text_find(jinja_arena *mem, const jinja_text *t, const jinja_text *needle,
                             size_t from);
size_t ggtok_jinja_text_rfind(jinja_arena *mem, const jinja_text *t, const jinja_text *needle,
                              size_t to);

/* Return the number of parts, and the end and label of the i-th, i < jinja_text_count(t). */
static inline size_t jinja_text_count(const jinja_text *t) {
    return t->n_parts ? t->n_parts : t->n != 0;
}
static inline size_t jinja_text_end(const jinja_text *t, size_t i) {
    return i + 1 < t->n_parts ? t->parts[i].end : t->n;
}
static inline jinja_label jinja_text_part_label(const jinja_text *t, size_t i) {
    return t->n_parts ? t->parts[i].label : t->label;
}

/* Builds a text piece by piece. */
typedef struct jinja_builder {
    jinja_arena *arena;
    uint8_t *data;
    jinja_part *parts;
    size_t n, cap, n_parts, cap_parts;
    bool merge; /* merge adjacent parts with the same label */
} jinja_builder;

jinja_builder ggtok_jinja_builder_new(jinja_arena *mem, size_t room);
/* Reserves n bytes at the end. The caller writes them, then calls ggtok_jinja_builder_wrote. */
uint8_t *ggtok_jinja_builder_reserve(jinja_builder *b, size_t n);
void ggtok_jinja_builder_wrote(jinja_builder *b, size_t n, jinja_label label);
void ggtok_jinja_builder_add(jinja_builder *b, const void *data, size_t n, jinja_label label);
void ggtok_jinja_builder_text(jinja_builder *b, const jinja_text *t);
void ggtok_jinja_builder_cut(jinja_builder *b, const jinja_text *t, size_t begin, size_t end);
/* Like ggtok_jinja_builder_cut, but the bytes count as data: labels keep only the origin and
 * JINJA_MEDIA. */
void ggtok_jinja_builder_data(jinja_builder *b, const jinja_text *t, size_t begin, size_t end);
jinja_text *ggtok_jinja_builder_end(jinja_builder *b);
/* Adds a JSON string, as data. */
void ggtok_jinja_builder_json(jinja_builder *b, const jinja_text *t);
/* Removes the bytes from index n on and the parts from index n_parts on; returns them as a text. */
jinja_text *ggtok_jinja_builder_take(jinja_builder *b, size_t n, size_t n_parts);

#endif
