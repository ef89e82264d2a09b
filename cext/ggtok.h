/*
 * ggtok: the tokenizer inside a GGUF file, without the model.
 *
 * Loads a vocabulary from GGUF metadata and turns text into token ids and back
 * exactly as llama.cpp (build b11549) does. This header is the whole public C
 * API; it needs no Python and no llama.cpp.
 *
 *     ggtok_error err;
 *     ggtok_tokenizer *tok;
 *     if (ggtok_load_file("model.gguf", NULL, &tok, &err)) { puts(err.message); return 1; }
 *     ggtok_context *ctx;
 *     ggtok_context_new(tok, &ctx, &err);
 *     ggtok_ids ids;
 *     ggtok_encode(ctx, "Hello", 5, GGTOK_ADD_SPECIAL, &ids, &err);
 *     ...ids.data[0 .. ids.n)...
 *     ggtok_context_free(ctx);
 *     ggtok_free(tok);
 *
 * Conventions
 *   - Lengths and offsets are in bytes unless a name says otherwise; texts are
 *     UTF-8 of any quality and may hold NUL bytes.
 *   - Fallible functions return a ggtok_status (0 is success) and, when it is
 *     not 0, fill *err if err is not NULL. Nothing prints, aborts or uses errno.
 *   - A ggtok_tokenizer is immutable: any number of threads may use one at the
 *     same time. A ggtok_context belongs to one thread at a time; a ggtok_pool
 *     keeps contexts for any number of them. Both are freed before the tokenizer.
 */
#ifndef GGTOK_H
#define GGTOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ggtok_status {
    GGTOK_OK = 0,
    GGTOK_ERR_MEMORY,       /* an allocation failed */
    GGTOK_ERR_IO,           /* the file could not be opened or read; see os_error */
    GGTOK_ERR_GGUF,         /* not a GGUF file, or a malformed one; see key and offset */
    GGTOK_ERR_VOCAB,        /* a readable file whose vocabulary cannot work */
    GGTOK_ERR_PRETOKENIZER, /* tokenizer.ggml.pre holds a name ggtok does not know */
    GGTOK_ERR_ARGUMENT,     /* an argument makes no sense (out-of-range id, NULL, ...) */
    GGTOK_ERR_UNSUPPORTED,  /* the vocabulary has no such operation */
    GGTOK_ERR_STOPPED       /* a ggtok_go_on_fn said so */
} ggtok_status;

#define GGTOK_NO_OFFSET UINT64_MAX
#define GGTOK_NO_TOKEN (-1) /* llama.cpp's LLAMA_TOKEN_NULL */

typedef struct ggtok_error {
    ggtok_status status;
    int os_error;      /* errno of the failed system call, or 0 */
    uint64_t offset;   /* byte offset in the file, or GGTOK_NO_OFFSET */
    char key[128];     /* GGUF key concerned, or "" (cut to fit) */
    char message[512]; /* one sentence, NUL-terminated UTF-8 */
} ggtok_error;

/* The values of llama_vocab_type. */
typedef enum ggtok_vocab_type {
    GGTOK_VOCAB_NONE = 0,
    GGTOK_VOCAB_SPM = 1,
    GGTOK_VOCAB_BPE = 2,
    GGTOK_VOCAB_WPM = 3,
    GGTOK_VOCAB_UGM = 4,
    GGTOK_VOCAB_RWKV = 5,
    GGTOK_VOCAB_PLAMO2 = 6,
    GGTOK_VOCAB_TEST = 7,
    GGTOK_VOCAB_PLAMO3 = 8
} ggtok_vocab_type;

/* The bits of llama_token_attr. */
typedef enum ggtok_attr {
    GGTOK_ATTR_UNDEFINED = 0,
    GGTOK_ATTR_UNKNOWN = 1 << 0,
    GGTOK_ATTR_UNUSED = 1 << 1,
    GGTOK_ATTR_NORMAL = 1 << 2,
    GGTOK_ATTR_CONTROL = 1 << 3,
    GGTOK_ATTR_USER_DEFINED = 1 << 4,
    GGTOK_ATTR_BYTE = 1 << 5,
    GGTOK_ATTR_NORMALIZED = 1 << 6,
    GGTOK_ATTR_LSTRIP = 1 << 7,
    GGTOK_ATTR_RSTRIP = 1 << 8,
    GGTOK_ATTR_SINGLE_WORD = 1 << 9
} ggtok_attr;

/* Which special token; see ggtok_special_id. */
typedef enum ggtok_special {
    GGTOK_BOS,
    GGTOK_EOS,
    GGTOK_EOT,
    GGTOK_EOM,
    GGTOK_UNK,
    GGTOK_SEP,
    GGTOK_NL,
    GGTOK_PAD,
    GGTOK_MASK,
    GGTOK_FIM_PRE,
    GGTOK_FIM_SUF,
    GGTOK_FIM_MID,
    GGTOK_FIM_PAD,
    GGTOK_FIM_REP,
    GGTOK_FIM_SEP,
    GGTOK_N_SPECIAL
} ggtok_special;

/* Vocabulary-wide switches, as they stand after every default and override. */
typedef enum ggtok_vocab_flag {
    GGTOK_FLAG_ADD_BOS,
    GGTOK_FLAG_ADD_EOS,
    GGTOK_FLAG_ADD_SEP,
    GGTOK_FLAG_ADD_SPACE_PREFIX,
    GGTOK_FLAG_IGNORE_MERGES,
    GGTOK_FLAG_CLEAN_SPACES,
    GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES,
    GGTOK_FLAG_ESCAPE_WHITESPACES,
    GGTOK_FLAG_LOWERCASE,     /* WPM and whitespace: normalizer.lowercase */
    GGTOK_FLAG_STRIP_ACCENTS, /* WPM: normalizer.strip_accents */
    GGTOK_N_FLAGS
} ggtok_vocab_flag;

typedef struct ggtok_tokenizer ggtok_tokenizer;
typedef struct ggtok_context ggtok_context;

/*
 * Cuts one raw fragment into words, for ggtok_load_options.split. `text` is
 * well-formed UTF-8 (bad bytes already replaced by U+FFFD; surrogates may
 * occur). Write the end offset of each word, ascending, none inside a character,
 * the last equal to n, into ends[0 .. max) and return how many there are; when
 * there are more than max, write nothing that matters and return the number
 * needed: the call is repeated with room for it. Return SIZE_MAX to fail the
 * encode call with GGTOK_ERR_ARGUMENT, as other offsets do. Called on the thread that encodes.
 */
typedef size_t (*ggtok_split_fn)(void *user, const char *text, size_t n, size_t *ends, size_t max);

/* The values of llama_model_kv_override_type. */
typedef enum ggtok_override_type {
    GGTOK_OVERRIDE_INT = 0,
    GGTOK_OVERRIDE_FLOAT = 1,
    GGTOK_OVERRIDE_BOOL = 2,
    GGTOK_OVERRIDE_STR = 3
} ggtok_override_type;

enum { GGTOK_OVERRIDE_MAX = 127 }; /* bytes of a key, and of a string */

/*
 * A value in place of the one that the file has (or lacks) under a key: what
 * llama_model_kv_override is to llama.cpp, with its rules. It counts where the
 * vocabulary reads a scalar of that type (int: the unsigned integers); where
 * the types differ the file's value stays and a warning says so. Arrays can't
 * be overridden, and ggtok_get_kv goes on giving what the file says. Of two
 * with the same key the first counts.
 */
typedef struct ggtok_override {
    const char *key;
    ggtok_override_type type; /* which of the following is meant */
    int64_t i64;
    double f64;
    bool boolean;
    const char *str;
} ggtok_override;

typedef struct ggtok_load_options {
    const char *pre;      /* overrides tokenizer.ggml.pre (BPE only); NULL: the file's */
    ggtok_split_fn split; /* replaces the pre-tokenizer's word splitting (BPE only); NULL: none */
    void *split_user;
    const ggtok_override *overrides; /* `pre` goes before one of tokenizer.ggml.pre */
    size_t n_overrides;
} ggtok_load_options;

/*
 * Loads the vocabulary of a GGUF file (version 2 or 3, either byte order).
 * Only the metadata is read, never the tensors, and nothing refers to the file
 * afterwards. Equals llama_model_load_from_file with vocab_only.
 * `options` may be NULL.
 */
ggtok_status ggtok_load_file(const char *path, const ggtok_load_options *options,
                             ggtok_tokenizer **out, ggtok_error *err);

/* The same from memory: `data` holds the file, or at least its metadata. It is
 * not referred to after the call. */
ggtok_status ggtok_load_buffer(const void *data, size_t size, const ggtok_load_options *options,
                               ggtok_tokenizer **out, ggtok_error *err);

/*
 * How much of a file ggtok_load_buffer needs, for reading from elsewhere than a
 * path: `prefix` holds the first n of the file's file_size bytes (UINT64_MAX:
 * unknown). *size becomes the size of its metadata in bytes when the prefix
 * holds all of that (*size <= n), else the least that must be read, from the
 * file's start, to get any further (*size > n). GGTOK_ERR_GGUF when what is
 * there can't begin a GGUF file of that size.
 */
ggtok_status ggtok_metadata_size(const void *prefix, size_t n, uint64_t file_size, uint64_t *size,
                                 ggtok_error *err);

/* What a file's vocabulary is, without loading it. */
typedef struct ggtok_summary {
    uint64_t size; /* as from ggtok_metadata_size */
    bool known;    /* the rest is filled; if not, read as far as `size` says */
    ggtok_vocab_type type;
    char model[64];    /* tokenizer.ggml.model */
    char pre[64];      /* the pre-tokenizer that would be in effect, known or not; "" outside BPE */
    uint64_t n_tokens; /* as the file claims */
} ggtok_summary;

/*
 * Sums up a vocabulary from a prefix of its file, arguments as above. The keys
 * that matter stand before the token texts in most files, so that the first
 * 64 kB tell. GGTOK_ERR_VOCAB when the file has no vocabulary, or one of a kind
 * that llama.cpp does not know.
 */
ggtok_status ggtok_peek(const void *prefix, size_t n, uint64_t file_size, ggtok_summary *out,
                        ggtok_error *err);

/* Frees a tokenizer; NULL is allowed. */
void ggtok_free(ggtok_tokenizer *tok);

/* What was odd about the file but not fatal (llama.cpp logs these): the i-th
 * sentence, or NULL when i is past the last. Valid until ggtok_free. */
const char *ggtok_warning(const ggtok_tokenizer *tok, size_t i);

/* ---- encode ---- */

/* Scratch memory and caches of one thread. */
ggtok_status ggtok_context_new(const ggtok_tokenizer *tok, ggtok_context **out, ggtok_error *err);
void ggtok_context_free(ggtok_context *ctx);

enum {
    GGTOK_ADD_SPECIAL = 1,  /* BOS/EOS (CLS/SEP) as the vocabulary's flags say */
    GGTOK_PARSE_SPECIAL = 2 /* texts of control tokens become those tokens */
};

typedef struct ggtok_ids {
    const int32_t *data; /* owned by the context, valid until its next use */
    size_t n;
} ggtok_ids;

/*
 * Text to ids: llama_tokenize, without its limits on length. `flags` is a sum
 * of the above. On failure *out is empty.
 */
ggtok_status ggtok_encode(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                          ggtok_ids *out, ggtok_error *err);

typedef struct ggtok_range {
    size_t begin, end; /* bytes, end excluded */
} ggtok_range;

/* A stretch of a text that became tokens by itself: one special token, or raw text. */
typedef struct ggtok_part {
    size_t pos, n;       /* bytes of the text; what lies between parts, a special token stripped */
    size_t first, n_ids; /* its ids */
    bool special;
} ggtok_part;

typedef struct ggtok_parts {
    const ggtok_part *data; /* owned by the context, valid until its next use */
    size_t n;
} ggtok_parts;

/*
 * ggtok_encode for a text of which only parts are trusted to hold control
 * tokens, such as a chat template's output with users' messages in it. With
 * GGTOK_PARSE_SPECIAL, control and unknown tokens are found only where their
 * text lies inside one of the `trusted` ranges; elsewhere it is plain text, as
 * without that flag. All else is as in ggtok_encode, so a text that holds no
 * control token outside the ranges has the same ids. The ranges ascend, are not
 * empty and don't touch. *parts tells which bytes gave which ids. Where a
 * vocabulary makes control tokens of raw text (RWKV, PLaMo-2, PLaMo-3), text
 * that would become one is GGTOK_ERR_ARGUMENT.
 */
ggtok_status ggtok_encode_trusted(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                                  const ggtok_range *trusted, size_t n_trusted, ggtok_ids *out,
                                  ggtok_parts *parts, ggtok_error *err);

/* ---- contexts for many threads ---- */

/*
 * Contexts that are not in use. Any thread takes one and gives it back, at any
 * time; a context is made when none is there (NULL: out of memory). One that is
 * given back no longer owns its results: room for ids, for text and for what special
 * tokens make of one is kept up to 2 MB each. (What a model needed besides for its
 * largest text stays; for most that is no more than a copy of it.) Clearing frees the
 * contexts with their caches: those at rest at once, the others when they come back.
 * All contexts must be back when the pool is freed. A process may fork at any time, and
 * the child use the pool, but see ggtok_go_on_fn.
 */
typedef struct ggtok_pool ggtok_pool;

ggtok_status ggtok_pool_new(const ggtok_tokenizer *tok, ggtok_pool **out, ggtok_error *err);
ggtok_context *ggtok_pool_take(ggtok_pool *pool, ggtok_error *err);
void ggtok_pool_give(ggtok_pool *pool, ggtok_context *ctx);
void ggtok_pool_clear(ggtok_pool *pool);

/* What the contexts at rest remember: words (and parts of words) that were found and
 * that were not (the same one again, as long as it isn't remembered yet), since each was
 * made, and the memory that takes. A context's caches grow while they fill, to 29 MB at
 * most. */
typedef struct ggtok_cache_info {
    uint64_t hits, misses;
    uint64_t bytes;
} ggtok_cache_info;
ggtok_cache_info ggtok_pool_cache_info(ggtok_pool *pool);
void ggtok_pool_free(ggtok_pool *pool); /* NULL is allowed */

/* Asked by the calling thread, several times a second; false stops the batch. It must not
 * fork: the child would go on with a batch whose other threads it doesn't have. */
typedef bool (*ggtok_go_on_fn)(void *user);

typedef struct ggtok_bytes {
    const char *data; /* when it is a result: owned by the context, valid until its next use */
    size_t n;
} ggtok_bytes;

typedef struct ggtok_batch ggtok_batch;

/*
 * ggtok_encode for texts[0 .. n) on `threads` threads, the calling one among
 * them. `go_on` may be NULL. On success *out holds the ids until it is freed; on
 * failure it is NULL, and *failed is the text that failed, or n. The first text
 * in order that was found to fail is named.
 */
ggtok_status ggtok_encode_batch(ggtok_pool *pool, const ggtok_bytes *texts, size_t n,
                                unsigned flags, unsigned threads, ggtok_go_on_fn go_on, void *user,
                                ggtok_batch **out, size_t *failed, ggtok_error *err);

/* Copies the result: all ids in the order of the texts, ids[0 .. ggtok_batch_n_ids),
 * and where each text's begin, offsets[0 .. n + 1). */
size_t ggtok_batch_n_ids(const ggtok_batch *batch);
void ggtok_batch_copy(const ggtok_batch *batch, int32_t *ids, int64_t *offsets, unsigned threads);
void ggtok_batch_free(ggtok_batch *batch); /* NULL is allowed */

/* ---- decode ---- */

enum {
    /* drop a leading BOS and a trailing EOS, if the vocabulary adds them */
    GGTOK_REMOVE_SPECIAL = 1,
    /* render control and unknown tokens as their text */
    GGTOK_UNPARSE_SPECIAL = 2
};

/* Ids to text: llama_detokenize. An id outside [0, n_tokens) is GGTOK_ERR_ARGUMENT. */
ggtok_status ggtok_decode(ggtok_context *ctx, const int32_t *ids, size_t n, unsigned flags,
                          ggtok_bytes *out, ggtok_error *err);

/*
 * One token's bytes: llama_token_to_piece. Up to `lstrip` leading spaces are
 * left out; with special == false a control or unknown token gives no bytes.
 * *piece points into the tokenizer. GGTOK_ERR_ARGUMENT if id is out of range.
 */
ggtok_status ggtok_token_to_piece(const ggtok_tokenizer *tok, int32_t id, int32_t lstrip,
                                  bool special, ggtok_bytes *piece, ggtok_error *err);

/* ---- the vocabulary ---- */

uint32_t ggtok_n_tokens(const ggtok_tokenizer *tok);
ggtok_vocab_type ggtok_type(const ggtok_tokenizer *tok);
const char *ggtok_model(const ggtok_tokenizer *tok); /* tokenizer.ggml.model */
const char *ggtok_pre(const ggtok_tokenizer *tok);   /* pre-tokenizer in effect; NULL outside BPE */
bool ggtok_flag(const ggtok_tokenizer *tok, ggtok_vocab_flag flag);

/* Id of a special token, or GGTOK_NO_TOKEN: llama_vocab_bos and its kin. */
int32_t ggtok_special_id(const ggtok_tokenizer *tok, ggtok_special which);

/* Text as stored in the vocabulary (not the piece it prints): llama_vocab_get_text. */
ggtok_status ggtok_token_text(const ggtok_tokenizer *tok, int32_t id, ggtok_bytes *text,
                              ggtok_error *err);
ggtok_status ggtok_token_score(const ggtok_tokenizer *tok, int32_t id, float *score,
                               ggtok_error *err); /* llama_vocab_get_score */
ggtok_status ggtok_token_attr(const ggtok_tokenizer *tok, int32_t id, uint32_t *attr,
                              ggtok_error *err); /* llama_vocab_get_attr: ggtok_attr bits */

/* llama_vocab_is_eog; false for an id that is out of range. */
bool ggtok_is_eog(const ggtok_tokenizer *tok, int32_t id);

/* The end-of-generation ids, ascending, and the file's suppress_tokens, in its order. */
ggtok_ids ggtok_eog_ids(const ggtok_tokenizer *tok);
ggtok_ids ggtok_suppress_tokens(const ggtok_tokenizer *tok);

/* Id of the token with exactly this text, or GGTOK_NO_TOKEN. */
int32_t ggtok_text_to_token(const ggtok_tokenizer *tok, const char *text, size_t n);

/* Names of the pre-tokenizers this build knows: the i-th, or NULL past the last. */
const char *ggtok_pre_name(size_t i);

/* ---- metadata ---- */

/* GGUF's type numbers. */
typedef enum ggtok_value_type {
    GGTOK_U8 = 0,
    GGTOK_I8 = 1,
    GGTOK_U16 = 2,
    GGTOK_I16 = 3,
    GGTOK_U32 = 4,
    GGTOK_I32 = 5,
    GGTOK_F32 = 6,
    GGTOK_BOOL = 7,
    GGTOK_STRING = 8,
    GGTOK_ARRAY = 9,
    GGTOK_U64 = 10,
    GGTOK_I64 = 11,
    GGTOK_F64 = 12
} ggtok_value_type;

typedef struct ggtok_kv {
    ggtok_bytes key;
    ggtok_value_type type;
    ggtok_value_type elem_type; /* of an array's elements */
    uint64_t n;                 /* elements of an array */
    uint64_t u64;               /* value of an unsigned integer or bool */
    int64_t i64;                /* value of a signed integer */
    double f64;                 /* value of a float */
    ggtok_bytes str;            /* value of a string */
} ggtok_kv;

/* Bytes from the file's beginning to the end of its metadata: all that was read. */
size_t ggtok_metadata_bytes(const ggtok_tokenizer *tok);

/* The file's key/values in file order. Arrays keep their type and count only. */
size_t ggtok_n_kv(const ggtok_tokenizer *tok);
ggtok_status ggtok_get_kv(const ggtok_tokenizer *tok, size_t i, ggtok_kv *out, ggtok_error *err);

#ifdef __cplusplus
}
#endif
#endif
