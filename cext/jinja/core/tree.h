/*
 * The tokens of a template, and its syntax tree.
 */
#ifndef GGTOK_JINJA_CORE_TREE_H
#define GGTOK_JINJA_CORE_TREE_H

#include "jinja/core/value.h"

typedef enum jinja_token_type {
    T_END,
    T_TEXT, /* text between tags */
    T_NAME,
    T_STRING,
    T_INT,
    T_FLOAT,
    T_OPEN_STATEMENT,
    T_CLOSE_STATEMENT,
    T_OPEN_EXPRESSION,
    T_CLOSE_EXPRESSION,
    T_LPAREN,
    T_RPAREN,
    T_LBRACKET,
    T_RBRACKET,
    T_LBRACE,
    T_RBRACE,
    T_COMMA,
    T_DOT,
    T_COLON,
    T_PIPE,
    T_ASSIGN,
    T_SIGN, /* llama.cpp's lexer distinguishes signs from operators; op: JINJA_ADD or JINJA_SUB */
    T_OPERATOR,
    T_SEMICOLON
} jinja_token_type;

typedef enum jinja_operator {
    JINJA_ADD,
    JINJA_SUB,
    JINJA_TILDE,
    JINJA_MUL,
    JINJA_DIV,
    JINJA_FLOORDIV,
    JINJA_MOD,
    JINJA_POW,
    JINJA_EQ,
    JINJA_NE,
    JINJA_LT,
    JINJA_LE,
    JINJA_GT,
    JINJA_GE,
    JINJA_IN,
    JINJA_NOT_IN
} jinja_operator;

typedef struct jinja_token {
    uint8_t type; /* a jinja_token_type */
    uint8_t op;   /* for T_OPERATOR and T_SIGN */
    uint32_t pos; /* byte offset in the source */
    uint32_t n;   /* size of `text` in bytes; escapes are decoded */
    const uint8_t *text;
    jinja_value value; /* for T_INT and T_FLOAT */
} jinja_token;

typedef enum jinja_kind {
    /* Statements. Each comment lists the node's kids (child nodes) in order; NULL if missing. */
    N_BLOCK,        /* statements */
    N_TEXT,         /* value */
    N_OUTPUT,       /* expression */
    N_IF,           /* condition, block, condition, block, ..., and an optional else block */
    N_FOR,          /* target, iterable, condition, body, else block; flag: recursive */
    N_SET,          /* target, value */
    N_SET_BLOCK,    /* target, filter or NULL, body */
    N_MACRO,        /* parameters (N_NAME or N_KEYWORD) ..., body; sym: its name */
    N_CALL_BLOCK,   /* call, parameters ..., body */
    N_FILTER_BLOCK, /* N_FILTER without operand, body */
    N_WITH,         /* target, value, target, value, ..., body */
    N_BREAK,
    N_CONTINUE,
    N_GENERATION, /* body; in llama.cpp's dialect, no kids; flag: the tag is not endgeneration */
    N_SCOPE,      /* body in a separate scope */
    /* Expressions. */
    N_CONST, /* value */
    N_NAME,  /* sym */
    N_LIST,
    N_TUPLE,
    N_DICT,    /* key, value, key, value, ... */
    N_BINARY,  /* operands, applied from left to right; ops[i] is between operands i and i + 1 */
    N_COMPARE, /* like N_BINARY, for `a < b < c`: true if all comparisons are */
    N_CONCAT,  /* operands of transformers' ~ */
    N_AND,
    N_OR,
    N_NOT,
    N_NEGATIVE,
    N_POSITIVE,
    N_CONDITION, /* condition, value, other value or NULL */
    N_ATTRIBUTE, /* object; value: the name. flag: in llama.cpp's dialect, the property isn't a name
                    (an error when evaluated); in transformers', the node is assigned to */
    N_ITEM,      /* object, index */
    N_SLICE,     /* object, start, stop, step */
    N_CALL,      /* callee, arguments */
    N_FILTER,    /* operand, arguments; sym: the filter. flag 2: not a name, 4: a call */
    N_TEST,      /* likewise; sym: the test. flag 1: negated */
    N_KEYWORD,   /* value; sym: the name. flag: not a name */
    N_SPREAD,    /* *value; flag: **value */
    N_BLANK      /* llama.cpp's a[] */
} jinja_kind;

typedef struct jinja_node jinja_node;
struct jinja_node {
    uint8_t kind, flag;
    uint16_t up;   /* N_NAME, transformers: number of frames from here up to that of the value */
    uint32_t slot; /* N_NAME and nodes that declare names: index in that frame (python/scope.c) */
    uint32_t pos, n;
    uint32_t sym;
    const jinja_node **kids;
    const uint8_t *ops;
    const struct jinja_frame_plan *plan; /* for statements that open a frame */
    jinja_value value;
};

/* A name in the template, and the builtins with that name. */
typedef struct jinja_symbol {
    jinja_text *name;
    int32_t member, filter, test, global; /* rows in the dialect's tables, or -1 */
    bool read;                            /* whether the template reads it */
} jinja_symbol;

/* Symbols that every template has, in this order; `self` has a meaning only in transformers. */
enum {
    SYM_TRUE,
    SYM_TRUE2,
    SYM_FALSE,
    SYM_FALSE2,
    SYM_NONE,
    SYM_NONE2,
    SYM_LOOP,
    SYM_CALLER,
    SYM_SELF
};

struct jinja_template {
    jinja_arena arena;
    jinja_dialect dialect;
    const struct jinja_rules *rules; /* of the dialect; see env.h */
    const char *source;              /* with normalized newlines */
    size_t n_source;
    jinja_symbol *symbols;
    uint32_t n_symbols, cap_symbols;
    jinja_dict *names; /* map from name to index in symbols */
    const jinja_node *root;
    jinja_text **variables;
    uint32_t n_variables;
    bool wild_jumps; /* llama.cpp: a break or continue is outside a loop, perhaps in a macro */
};
typedef struct jinja_template jinja_template;

typedef struct jinja_tokens {
    jinja_token *data;
    size_t n, cap;
} jinja_tokens;

jinja_token *ggtok_jinja_token_add(jinja_arena *mem, jinja_tokens *tokens, jinja_token_type type,
                                   size_t pos, const void *text, size_t n);
void ggtok_jinja_parse(jinja_template *t, const jinja_tokens *tokens);

#endif
