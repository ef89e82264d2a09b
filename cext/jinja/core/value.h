/*
 * The values of templates: 16 bytes, passed by value. The data to which they point is in an arena
 * and freed with it.
 */
#ifndef GGTOK_JINJA_CORE_VALUE_H
#define GGTOK_JINJA_CORE_VALUE_H

#include <stdbool.h>

#include "jinja/core/arena.h"
#include "jinja/core/text.h"

typedef enum jinja_type {
    JINJA_UNDEFINED, /* as.text: the name, or NULL */
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_FLOAT,
    JINJA_STRING,
    JINJA_LIST,
    JINJA_TUPLE, /* as.list */
    JINJA_DICT,
    JINJA_LOOP,     /* llama.cpp's `loop`: as.dict, in a jinja_loop */
    JINJA_FUNCTION, /* a macro, a builtin, or a builtin bound to a value */
    JINJA_KEYWORD,  /* a keyword argument, which is a value in llama.cpp */
    /* Types that only transformers' dialect has: */
    JINJA_NAMESPACE, /* as.dict */
    JINJA_RANGE,
    JINJA_LAZY,   /* a generator: as.list, consumed by reading */
    JINJA_OBJECT, /* other objects; see objects.h */
    JINJA_BIG,    /* an integer beyond 64 bits: its digits in as.text. It can be printed and
                     compared for equality; arithmetic fails */
    JINJA_ABSENT  /* no value: a missing argument, or a variable that is not set */
} jinja_type;

/* Sets of types that builtins accept. */
enum {
    ON_INT = 1 << JINJA_INT,
    ON_FLOAT = 1 << JINJA_FLOAT,
    ON_BOOL = 1 << JINJA_BOOL,
    ON_STRING = 1 << JINJA_STRING,
    ON_ARRAY = 1 << JINJA_LIST | 1 << JINJA_TUPLE,
    ON_DICT = 1 << JINJA_DICT,
    ON_NONE = 1 << JINJA_NONE,
    ON_UNDEFINED = 1 << JINJA_UNDEFINED
};

typedef struct jinja_list jinja_list;
typedef struct jinja_pull jinja_pull; /* see python/lazy.c */
typedef struct jinja_dict jinja_dict;
typedef struct jinja_function jinja_function;
typedef struct jinja_keyword jinja_keyword;
typedef struct jinja_range jinja_range;
typedef struct jinja_object jinja_object;

typedef struct jinja_value {
    uint8_t type;     /* a jinja_type */
    bool is_unsigned; /* JINJA_INT from JSON: `i` is the two's complement of a value from 2^63 on.
                         Only ggtok_jinja_write_json looks at it */
    uint32_t id;      /* identity, for llama.cpp's `sameas` and the notes of probes; 0: none */
    union {
        bool truth;
        int64_t i;
        double f;
        jinja_text *text;
        jinja_list *list;
        jinja_dict *dict;
        jinja_function *function;
        jinja_keyword *keyword;
        jinja_range *range;
        jinja_object *object;
    } as;
} jinja_value;

/* The views of a dict, named after the methods that return them. Unlike other lazy values, a view
 * isn't consumed by reading. */
typedef enum jinja_view { JINJA_NO_VIEW, JINJA_KEYS, JINJA_VALUES, JINJA_ITEMS } jinja_view;

struct jinja_list {
    jinja_value *data;
    uint32_t n, cap;
    bool group;        /* JINJA_TUPLE: a result of groupby, with the attributes grouper and list */
    bool looped_over;  /* llama.cpp: a loop may read `data`, so its items must stay in place */
    uint32_t read;     /* JINJA_LAZY: the number of consumed items */
    jinja_view view;   /* JINJA_LAZY: the kind of view */
    const char *fault; /* JINJA_LAZY: if not NULL, reading the items fails with this message */
    bool reversed;     /* JINJA_LAZY: the result of `reverse` */
    jinja_pull *pull;  /* JINJA_LAZY: produces items one by one; NULL: all are in `data` */
};

typedef struct jinja_entry {
    jinja_value key, value;
    uint32_t hash;
} jinja_entry;

/* A dict. Entries are in insertion order; larger dicts have an open-addressing index. */
struct jinja_dict {
    jinja_entry *entries;
    uint32_t n, cap;
    uint32_t *index; /* entry number + 1; 0: a free slot. NULL for up to JINJA_SMALL_DICT entries */
    uint32_t mask;
};

struct jinja_keyword {
    jinja_text *name;
    jinja_value value;
};

enum { JINJA_SMALL_DICT = 8 };

static inline jinja_value jinja_undefined(jinja_text *name) {
    return (jinja_value){.type = JINJA_UNDEFINED, .as.text = name};
}
static inline jinja_value jinja_none(void) {
    return (jinja_value){.type = JINJA_NONE, .as.i = 0};
}
static inline jinja_value jinja_absent(void) {
    return (jinja_value){.type = JINJA_ABSENT, .as.i = 0};
}
static inline jinja_value jinja_bool(bool truth) {
    return (jinja_value){.type = JINJA_BOOL, .as.i = truth};
}
static inline jinja_value jinja_int(int64_t i) {
    return (jinja_value){.type = JINJA_INT, .as.i = i};
}
static inline jinja_value jinja_float(double f) {
    return (jinja_value){.type = JINJA_FLOAT, .as.f = f};
}
static inline jinja_value jinja_of_text(jinja_text *text) {
    return (jinja_value){.type = JINJA_STRING, .as.text = text};
}
static inline jinja_value jinja_of_list(jinja_list *list) {
    return (jinja_value){.type = JINJA_LIST, .as.list = list};
}
static inline jinja_value jinja_of_tuple(jinja_list *list) {
    return (jinja_value){.type = JINJA_TUPLE, .as.list = list};
}
static inline jinja_value jinja_of_dict(jinja_dict *dict) {
    return (jinja_value){.type = JINJA_DICT, .as.dict = dict};
}
static inline bool jinja_is_array(jinja_value v) {
    return v.type == JINJA_LIST || v.type == JINJA_TUPLE;
}

/* Returns a JINJA_BIG with these decimal digits, which may begin with '-'. */
jinja_value ggtok_jinja_big(jinja_arena *mem, const void *digits, size_t n);

/* The dialect whose rules apply. */
typedef enum jinja_dialect { JINJA_LLAMA_CPP, JINJA_TRANSFORMERS } jinja_dialect;

jinja_list *ggtok_jinja_list_new(jinja_arena *mem, size_t room);
void ggtok_jinja_list_push(jinja_arena *mem, jinja_list *list, jinja_value value);

jinja_dict *ggtok_jinja_dict_new(jinja_arena *mem, size_t room);
/* Sets a key's value; a new key goes to the end. Keys must be hashable. */
void ggtok_jinja_dict_set(jinja_arena *mem, jinja_dict *dict, jinja_value key, jinja_value value);
/* Adds a key that must not be in the dict. */
void ggtok_jinja_dict_add(jinja_arena *mem, jinja_dict *dict, jinja_value key, jinja_value value);
/* Returns a pointer to a key's value, or NULL. */
jinja_value *ggtok_jinja_dict_find(jinja_arena *mem, const jinja_dict *dict, jinja_value key);
/* Like ggtok_jinja_dict_find and ggtok_jinja_dict_set, for keys that are texts: of n bytes, or
 * NUL-terminated. */
jinja_value *ggtok_jinja_dict_get(jinja_arena *mem, const jinja_dict *dict, const char *key,
                                  size_t n);
void ggtok_jinja_dict_put(jinja_arena *mem, jinja_dict *dict, const char *key, jinja_value value);

/* Returns a deep copy of lists, tuples and dicts. Texts, keys of dicts and other objects are
 * shared. */
jinja_value ggtok_jinja_copy(jinja_arena *mem, jinja_value v);

#define JINJA_TOO_LARGE "arithmetic on integers beyond 64 bits is not supported"

/* Compares two numbers exactly, not as doubles. Returns -1, 0 or 1; 2 if either number is NaN. */
int ggtok_jinja_compare_numbers(jinja_value a, jinja_value b);
/* Whether Python's == is true for a and b. */
bool ggtok_jinja_python_equal(jinja_arena *mem, jinja_value a, jinja_value b);
/* Whether the dialect's == is true for a and b. In llama.cpp, arrays and objects are equal only if
 * they are hashable. */
bool ggtok_jinja_equal(jinja_arena *mem, jinja_value a, jinja_value b, jinja_dialect dialect);
/* Two properties of values that can be keys. llama.cpp requires one of them or both, depending on
 * the operation. */
bool ggtok_jinja_hashable(jinja_arena *mem, jinja_value v);
bool ggtok_jinja_immutable(jinja_value v);

/* Convert an integer to a double and back as llama.cpp does. The result is infinite if no double
 * equals the integer. */
double ggtok_jinja_int_as_float(int64_t i);
int64_t ggtok_jinja_float_as_int(double f);

#endif
