/*
 * Texts that know where each of their bytes came from.
 *
 * A text is one stretch of bytes and its parts: for each part where it ends and its label.
 * Parts follow one another as they were put together, in llama.cpp's dialect even if their
 * labels are the same, for there some filters work part by part.
 *
 *     "<|" role "|>"     data  < | u s e r | >
 *                        parts    2       6   8
 *                        label    T       -   T
 *
 * Texts never change, but may share: one that was put together owns a buffer with room
 * behind it, and what is appended to it first goes there, so that text built up in a loop
 * costs what is appended, not what there is.
 */
#ifndef GGTOK_JINJA_CORE_TEXT_H
#define GGTOK_JINJA_CORE_TEXT_H

#include <stdbool.h>

#include "jinja/core/arena.h"

enum {
    JINJA_FROM_TEMPLATE = 1, /* the template's: may hold control tokens */
    JINJA_GENERATED = 2,     /* written inside {% generation %} */
    JINJA_JOINED = 4         /* llama.cpp sees this part and the one before as one */
};

typedef struct jinja_part {
    uint32_t end;
    uint8_t label;
} jinja_part;

typedef struct jinja_room { /* what texts that were appended to share */
    uint8_t *data;
    jinja_part *parts;
    uint32_t n, cap, n_parts, cap_parts;
} jinja_room;

typedef struct jinja_text {
    const uint8_t *data;
    uint32_t n;
    uint32_t n_parts;        /* 0: empty, or one part with `label` */
    const jinja_part *parts; /* the last one ends with the text, whatever it says */
    jinja_room *room;        /* or NULL */
    uint32_t hash;           /* 0: not known yet; a template's texts know both */
    uint32_t n_chars;        /* code points, or UINT32_MAX: not counted yet */
    uint8_t label;
    bool safe; /* transformers: Markup */
} jinja_text;

/* Longer ones are an error. */
#define JINJA_MAX_TEXT 0x7FFFFFF0u

/* A text whose bytes are the caller's and must outlive the arena; ggtok_jinja_text_copy copies. */
jinja_text *ggtok_jinja_text_of(jinja_arena *mem, const void *data, size_t n, uint8_t label);
jinja_text *ggtok_jinja_text_copy(jinja_arena *mem, const void *data, size_t n, uint8_t label);
/* With parts[0..n_parts), ends ascending, the last one n. */
jinja_text *ggtok_jinja_text_parts(jinja_arena *mem, const void *data, size_t n,
                                   const jinja_part *parts, size_t n_parts);
jinja_text *ggtok_jinja_text_concat(jinja_arena *mem, const jinja_text *a, const jinja_text *b);
/* Bytes [begin, end) with their labels. */
jinja_text *ggtok_jinja_text_cut(jinja_arena *mem, const jinja_text *t, size_t begin, size_t end);
/* The same text as one part in llama.cpp's eyes. */
jinja_text *ggtok_jinja_text_fuse(jinja_arena *mem, jinja_text *t);
uint32_t ggtok_jinja_text_hash(const jinja_text *t);
/* The hash, and the number of code points, which the text remembers. */
uint32_t ggtok_jinja_hash(jinja_arena *mem, jinja_text *t);
uint32_t ggtok_jinja_chars(jinja_arena *mem, jinja_text *t);
/* The one label of all of it, or -1. Empty texts have none. */
int ggtok_jinja_text_label(jinja_arena *mem, const jinja_text *t);
bool ggtok_jinja_text_equal(jinja_arena *mem, const jinja_text *a, const jinja_text *b);
bool ggtok_jinja_text_is(const jinja_text *t, const char *s);
int ggtok_jinja_text_compare(jinja_arena *mem, const jinja_text *a, const jinja_text *b);
/* The same where nothing is charged: between renderings. */
int ggtok_jinja_text_order(const jinja_text *a, const jinja_text *b);
/* First (last) place at or after `from` (that ends at or before `to`), or SIZE_MAX. */
size_t ggtok_jinja_text_find(jinja_arena *mem, const jinja_text *t, const jinja_text *what,
                             size_t from);
size_t ggtok_jinja_text_rfind(jinja_arena *mem, const jinja_text *t, const jinja_text *what,
                              size_t to);

/* The i-th part's bounds; i < jinja_text_count(t). */
static inline size_t jinja_text_count(const jinja_text *t) {
    return t->n_parts ? t->n_parts : t->n != 0;
}
static inline size_t jinja_text_end(const jinja_text *t, size_t i) {
    return i + 1 < t->n_parts ? t->parts[i].end : t->n;
}
static inline uint8_t jinja_text_part_label(const jinja_text *t, size_t i) {
    return t->n_parts ? t->parts[i].label : t->label;
}

/* What a text is put together in. */
typedef struct jinja_builder {
    jinja_arena *arena;
    uint8_t *data;
    jinja_part *parts;
    size_t n, cap, n_parts, cap_parts;
    bool merge; /* neighbours of one label become one part */
} jinja_builder;

jinja_builder ggtok_jinja_builder_new(jinja_arena *mem, size_t room);
/* Room for n more bytes at the end, for the caller to write before ggtok_jinja_builder_wrote. */
uint8_t *ggtok_jinja_builder_reserve(jinja_builder *b, size_t n);
void ggtok_jinja_builder_wrote(jinja_builder *b, size_t n, uint8_t label);
void ggtok_jinja_builder_add(jinja_builder *b, const void *data, size_t n, uint8_t label);
void ggtok_jinja_builder_text(jinja_builder *b, const jinja_text *t);
void ggtok_jinja_builder_cut(jinja_builder *b, const jinja_text *t, size_t begin, size_t end);
jinja_text *ggtok_jinja_builder_end(jinja_builder *b);
/* Bytes and parts from a mark on, as a text; the builder forgets them. */
jinja_text *ggtok_jinja_builder_take(jinja_builder *b, size_t n, size_t n_parts);

#endif
