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
 *     UTF-8, possibly malformed, and may hold NUL bytes.
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
#include <time.h>

/* The version of this header, and of the library with ggtok_version(). */
#define GGTOK_VERSION "0.1.0"

/* Nothing to do for a static library. GGTOK_SHARED: who uses the shared one; with GGTOK_BUILD as
 * well, who builds it. */
#if defined(GGTOK_SHARED) && defined(_WIN32)
#ifdef GGTOK_BUILD
#define GGTOK_API __declspec(dllexport)
#else
#define GGTOK_API __declspec(dllimport)
#endif
#elif defined(GGTOK_SHARED) && defined(__GNUC__)
#define GGTOK_API __attribute__((visibility("default")))
#else
#define GGTOK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

GGTOK_API const char *ggtok_version(void); /* GGTOK_VERSION, as the library was built */

typedef enum ggtok_status {
    GGTOK_OK = 0,
    GGTOK_ERR_MEMORY,       /* an allocation failed */
    GGTOK_ERR_IO,           /* the file could not be opened or read; see os_error */
    GGTOK_ERR_GGUF,         /* not a GGUF file, or a malformed one; see key and offset */
    GGTOK_ERR_VOCAB,        /* a readable file whose vocabulary cannot work */
    GGTOK_ERR_PRETOKENIZER, /* tokenizer.ggml.pre holds a name ggtok does not know */
    GGTOK_ERR_ARGUMENT,     /* an argument makes no sense (out-of-range id, NULL, ...) */
    GGTOK_ERR_UNSUPPORTED,  /* the vocabulary has no such operation */
    GGTOK_ERR_STOPPED,      /* a ggtok_interrupt_fn returned false */
    GGTOK_ERR_TEMPLATE      /* a chat template fails, or takes more than it may */
} ggtok_status;

#define GGTOK_NO_OFFSET UINT64_MAX
#define GGTOK_NO_TOKEN (-1) /* llama.cpp's LLAMA_TOKEN_NULL */

typedef struct ggtok_error {
    ggtok_status status;
    int os_error;      /* errno of the failed system call, or 0 */
    uint64_t offset;   /* byte offset in the file, or GGTOK_NO_OFFSET */
    unsigned line;     /* line of the chat template, from 1, or 0 */
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
    const ggtok_override *overrides; /* `pre` takes precedence over one of tokenizer.ggml.pre */
    size_t n_overrides;
} ggtok_load_options;

/*
 * Loads the vocabulary of a GGUF file (version 2 or 3, either byte order).
 * Only the metadata is read, never the tensors, and nothing refers to the file
 * afterwards. Equals llama_model_load_from_file with vocab_only.
 * `options` may be NULL.
 */
GGTOK_API ggtok_status ggtok_load_file(const char *path, const ggtok_load_options *options,
                                       ggtok_tokenizer **out, ggtok_error *err);

/* The same from memory: `data` holds the file, or at least its metadata. It is
 * not referred to after the call. */
GGTOK_API ggtok_status ggtok_load_buffer(const void *data, size_t size,
                                         const ggtok_load_options *options, ggtok_tokenizer **out,
                                         ggtok_error *err);

/*
 * How much of a file ggtok_load_buffer needs, for reading from elsewhere than a
 * path: `prefix` holds the first n of the file's file_size bytes (UINT64_MAX:
 * unknown). *size becomes the size of its metadata in bytes when the prefix
 * holds all of that (*size <= n), else the least that must be read, from the
 * file's start, to get any further (*size > n). GGTOK_ERR_GGUF when what is
 * there can't begin a GGUF file of that size.
 */
GGTOK_API ggtok_status ggtok_metadata_size(const void *prefix, size_t n, uint64_t file_size,
                                           uint64_t *size, ggtok_error *err);

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
GGTOK_API ggtok_status ggtok_peek(const void *prefix, size_t n, uint64_t file_size,
                                  ggtok_summary *out, ggtok_error *err);

/* Frees a tokenizer; NULL is allowed. */
GGTOK_API void ggtok_free(ggtok_tokenizer *tok);

/* What was odd about the file but not fatal (llama.cpp logs these): the i-th
 * sentence, or NULL when i is past the last. Valid until ggtok_free. */
GGTOK_API const char *ggtok_warning(const ggtok_tokenizer *tok, size_t i);

/* ---- encode ---- */

/* Scratch memory and caches of one thread. */
GGTOK_API ggtok_status ggtok_context_new(const ggtok_tokenizer *tok, ggtok_context **out,
                                         ggtok_error *err);
GGTOK_API void ggtok_context_free(ggtok_context *ctx);

/* Asked several times a second by the thread that made the call; false ends it with
 * GGTOK_ERR_STOPPED. It must not fork during a batch: the child would go on with one whose
 * other threads it doesn't have. */
typedef bool (*ggtok_interrupt_fn)(void *user);

/* Makes the calls that encode with this context ask, if their texts are long; NULL, the
 * default: they don't. A context that was stopped can be used as before. Pools forget it when
 * the context is given back. */
GGTOK_API void ggtok_context_set_go_on(ggtok_context *ctx, ggtok_interrupt_fn go_on, void *user);

enum {
    GGTOK_ADD_SPECIAL = 1,   /* BOS/EOS (CLS/SEP) as the vocabulary's flags say */
    GGTOK_PARSE_SPECIAL = 2, /* texts of control tokens become those tokens */
    /* ggtok_encode_trusted: texts of user-defined tokens, which otherwise become those tokens
     * everywhere, are plain text where control tokens' are */
    GGTOK_PLAIN_USER_DEFINED = 4,
    GGTOK_NOT_FIRST_BLOCK =
        8, /* text comes before this one: no BOS, no space prefix at its start */
    GGTOK_NOT_LAST_BLOCK = 16, /* text comes after this one: no EOS */
    /* The text goes on behind other tokens, wherever they end: GGTOK_ADD_SPECIAL adds nothing, and
     * no space prefix at its start. (After a special token inside the text it stands as usual.)
     * GGTOK_ERR_ARGUMENT for vocabularies whose ids say that a word begins: WPM, and UGM that
     * removes white space. The two flags above are for the parts of one text. */
    GGTOK_CONTINUATION = 32,
    GGTOK_SPANS = 64, /* keep what ggtok_spans needs */
    GGTOK_TAIL = 128, /* ggtok_safe_cut alone: unknown text comes before this one */
    /* ggtok_encode_batch: others may write to the texts meanwhile, so that each is copied by the
     * thread that encodes it, one at a time; and a text whose data is NULL has no ids */
    GGTOK_COPY_TEXTS = 256
};

typedef struct ggtok_ids {
    const int32_t *data; /* owned by the context, valid until its next use */
    size_t n;
} ggtok_ids;

/*
 * Text to ids: llama_tokenize, without its limits on length. `flags` is a sum
 * of the above. On failure *out is empty.
 */
GGTOK_API ggtok_status ggtok_encode(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                                    ggtok_ids *out, ggtok_error *err);

/*
 * Where a text that isn't complete yet may be cut, so that a text of any length can be
 * encoded in memory that does not grow with it. `text` holds its first n bytes, or those
 * from such a cut on. The result is the last place p, 0 < p < n, of which it is proved that
 * whatever comes after these n bytes, the ids of the whole are those of text[0..p) with
 * `flags` and GGTOK_NOT_LAST_BLOCK followed by those of the rest with `flags` and GGTOK_NOT_FIRST_BLOCK;
 * or 0: no such place was found (or memory for the search, or the caller asked to stop), so
 * read on. No token, special
 * token, white space that one strips, or normalization crosses the place, and neither does
 * the pre-tokenizer. With GGTOK_TAIL the text may be any end of a longer one, between two of
 * whose characters it begins: the place is one of that, too.
 *
 * Most texts have such a place every few words. Some vocabularies have none, or only where
 * a special token begins (if none strips white space), so that a text must be held whole:
 * type TEST, model hybriddna, those with a ggtok_split_fn, SPM with a score that is not a
 * number, PLaMo with tokens in broken UTF-8 or a score of -1000, and UGM whose charsmap or
 * tokens join spaces to what stands beside them. UGM's ids are those of exact sums of
 * scores: llama.cpp, and so ggtok_encode, rounds them in texts beyond some 70 MB.
 */
GGTOK_API size_t ggtok_safe_cut(ggtok_context *ctx, const char *text, size_t n, unsigned flags);

/*
 * A choice of special tokens: those of ids[0 .. n), which are CONTROL or UNKNOWN (or user-defined:
 * these are found anyway). GGTOK_ERR_ARGUMENT for an id of another kind, or of none. It never
 * changes, and any number of threads may use it; freed after all use, before the tokenizer.
 */
typedef struct ggtok_special_choice ggtok_special_choice;

GGTOK_API ggtok_status ggtok_choice_new(const ggtok_tokenizer *tok, const int32_t *ids, size_t n,
                                        ggtok_special_choice **out, ggtok_error *err);
GGTOK_API void ggtok_choice_free(ggtok_special_choice *choice); /* NULL is allowed */

/* Has GGTOK_PARSE_SPECIAL mean only these, in all calls with the context; NULL, as at first: all
 * there are. Pools forget it when the context is given back. */
GGTOK_API void ggtok_context_set_choice(ggtok_context *ctx, const ggtok_special_choice *choice);

typedef struct ggtok_range {
    size_t begin, end; /* bytes, end excluded */
} ggtok_range;

/* Where a token comes from: bytes of the text, end excluded; equal: from none. */
typedef struct ggtok_span {
    int64_t begin, end;
} ggtok_span;

/*
 * Where the ids come from that the context's last ggtok_encode gave, which must have succeeded
 * with GGTOK_SPANS among its flags: one span for each into spans[0 .. n). The text must still be
 * there, unchanged.
 *
 * A span goes from the beginning of the source of the token's first byte, after normalizing, to
 * the end of that of its last. Tokens made of one source character share its span; a run of white
 * space that becomes one space belongs whole to that space's token; a space that is put before a
 * word has an empty source there; white space that a special token strips belongs to that token;
 * added tokens have empty spans at their end of the text. Where nothing is normalized, the spans
 * tile the text and their bytes are the tokens' pieces.
 */
GGTOK_API ggtok_status ggtok_spans(ggtok_context *ctx, ggtok_span *spans, ggtok_error *err);

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
 * tokens, such as a chat template's output with users' messages in it. A
 * token that is CONTROL, UNKNOWN or EOG, or that the file marks as CONTROL
 * (llama.cpp makes some of gpt-oss's user-defined), comes only from bytes that
 * all lie inside `trusted` ranges. (A plain token that is EOG only because
 * llama.cpp has a default where the file names no EOS counts as plain text.) Elsewhere its text is plain text, whichever
 * way it would become the token: by its spelling, by merges, by normalizing.
 * Other user-defined tokens are found everywhere, as in ggtok_encode, unless
 * GGTOK_PLAIN_USER_DEFINED is given. A text that holds no such token outside
 * the ranges has the ids that ggtok_encode gives it.
 *
 * Text for which the vocabulary has no other tokens (a lone character that is
 * a control token) is GGTOK_ERR_ARGUMENT. What is no token's text still becomes
 * the unknown token, unless that one is EOG. The ranges ascend, are not empty
 * and don't touch. *parts tells which bytes gave which ids.
 */
GGTOK_API ggtok_status ggtok_encode_trusted(ggtok_context *ctx, const char *text, size_t n,
                                            unsigned flags, const ggtok_range *trusted,
                                            size_t n_trusted, ggtok_ids *out, ggtok_parts *parts,
                                            ggtok_error *err);

/* ---- contexts for many threads ---- */

/*
 * Contexts that are not in use. Any thread takes one and gives it back, at any
 * time; a context is made when none is there (NULL: out of memory). One that is
 * given back no longer owns its results: room for ids, for text and for what special
 * tokens make of one is kept up to 2 MB each. (What a model needed besides for its
 * largest text stays; for most that is no more than a copy of it.) Clearing frees the
 * contexts with their caches: those at rest at once, the others when they come back.
 * All contexts must be back when the pool is freed. A process may fork at any time, and
 * the child use the pool, but see ggtok_interrupt_fn.
 */
typedef struct ggtok_pool ggtok_pool;

GGTOK_API ggtok_status ggtok_pool_new(const ggtok_tokenizer *tok, ggtok_pool **out,
                                      ggtok_error *err);
GGTOK_API ggtok_context *ggtok_pool_take(ggtok_pool *pool, ggtok_error *err);
GGTOK_API void ggtok_pool_give(ggtok_pool *pool, ggtok_context *ctx);
GGTOK_API void ggtok_pool_clear(ggtok_pool *pool);

/* What the contexts at rest remember: words (and parts of words) that were found and
 * that were not (the same one again, as long as it isn't remembered yet), since each was
 * made, and the memory that takes. A context's caches grow while they fill, to 29 MB at
 * most. */
typedef struct ggtok_cache_info {
    uint64_t hits, misses;
    uint64_t bytes;
} ggtok_cache_info;
GGTOK_API ggtok_cache_info ggtok_pool_cache_info(ggtok_pool *pool);
GGTOK_API void ggtok_pool_free(ggtok_pool *pool); /* NULL is allowed */

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
GGTOK_API ggtok_status ggtok_encode_batch(ggtok_pool *pool, const ggtok_bytes *texts, size_t n,
                                          unsigned flags, unsigned threads,
                                          ggtok_interrupt_fn go_on, void *user, ggtok_batch **out,
                                          size_t *failed, ggtok_error *err);

/* The same with a choice of special tokens, which may be NULL. */
typedef struct ggtok_batch_options {
    unsigned flags, threads;
    const ggtok_special_choice *choice;
    ggtok_interrupt_fn go_on;
    void *user;
} ggtok_batch_options;

GGTOK_API ggtok_status ggtok_encode_batch_with(ggtok_pool *pool, const ggtok_bytes *texts, size_t n,
                                               const ggtok_batch_options *options,
                                               ggtok_batch **out, size_t *failed, ggtok_error *err);

/* The result, which lives as long as the batch: all ids in the order of the texts,
 * ids[0 .. ggtok_batch_n_ids), where each text's begin, offsets[0 .. n + 1), and, of a batch with
 * GGTOK_SPANS, each id's span in its text (NULL if there are no ids). */
GGTOK_API size_t ggtok_batch_n_ids(const ggtok_batch *batch);
GGTOK_API const int32_t *ggtok_batch_ids(const ggtok_batch *batch);
GGTOK_API const int64_t *ggtok_batch_offsets(const ggtok_batch *batch);
GGTOK_API const ggtok_span *ggtok_batch_spans(const ggtok_batch *batch);
GGTOK_API void ggtok_batch_free(ggtok_batch *batch); /* NULL is allowed */

/* ---- decode ---- */

enum {
    /* drop a leading BOS and a trailing EOS, if the vocabulary adds them */
    GGTOK_REMOVE_SPECIAL = 1,
    /* render control and unknown tokens as their text */
    GGTOK_UNPARSE_SPECIAL = 2,
    /* keep all spaces: the text is the tokens' pieces, joined, as llama-server's /detokenize */
    GGTOK_KEEP_SPACES = 4,
    /* remove spaces before punctuation even if the vocabulary doesn't ask for it */
    GGTOK_CLEAN_SPACES = 8
};

/* Ids to text: llama_detokenize, unless the flags change what happens to spaces
 * (GGTOK_KEEP_SPACES wins over GGTOK_CLEAN_SPACES). An id outside [0, n_tokens) is GGTOK_ERR_ARGUMENT. */
GGTOK_API ggtok_status ggtok_decode(ggtok_context *ctx, const int32_t *ids, size_t n,
                                    unsigned flags, ggtok_bytes *out, ggtok_error *err);

/*
 * One token's bytes: llama_token_to_piece. Up to `lstrip` leading spaces are
 * dropped; with special == false a control or unknown token gives no bytes.
 * *piece points into the tokenizer. GGTOK_ERR_ARGUMENT if id is out of range.
 */
GGTOK_API ggtok_status ggtok_token_to_piece(const ggtok_tokenizer *tok, int32_t id, int32_t lstrip,
                                            bool special, ggtok_bytes *piece, ggtok_error *err);

/* ---- the vocabulary ---- */

GGTOK_API uint32_t ggtok_n_tokens(const ggtok_tokenizer *tok);
GGTOK_API ggtok_vocab_type ggtok_type(const ggtok_tokenizer *tok);
GGTOK_API const char *ggtok_model(const ggtok_tokenizer *tok); /* tokenizer.ggml.model */
GGTOK_API const char *
ggtok_pre(const ggtok_tokenizer *tok); /* pre-tokenizer in effect; NULL outside BPE */
GGTOK_API bool ggtok_flag(const ggtok_tokenizer *tok, ggtok_vocab_flag flag);

/* Id of a special token, or GGTOK_NO_TOKEN: llama_vocab_bos and its kin. */
GGTOK_API int32_t ggtok_special_id(const ggtok_tokenizer *tok, ggtok_special which);

/* Text as stored in the vocabulary (not the piece it prints): llama_vocab_get_text. */
GGTOK_API ggtok_status ggtok_token_text(const ggtok_tokenizer *tok, int32_t id, ggtok_bytes *text,
                                        ggtok_error *err);
GGTOK_API ggtok_status ggtok_token_score(const ggtok_tokenizer *tok, int32_t id, float *score,
                                         ggtok_error *err); /* llama_vocab_get_score */
GGTOK_API ggtok_status
ggtok_token_attr(const ggtok_tokenizer *tok, int32_t id, uint32_t *attr,
                 ggtok_error *err); /* llama_vocab_get_attr: ggtok_attr bits */

/* The ids of tokens that structure text rather than stand for some, ascending: CONTROL, UNKNOWN,
 * UNUSED or EOG, or CONTROL in the file, before llama.cpp's rules made them something else.
 * Writes the first `max` to `out` and returns how many there are. */
GGTOK_API size_t ggtok_special_ids(const ggtok_tokenizer *tok, int32_t *out, size_t max);

/* llama_vocab_is_eog; false for an id that is out of range. */
GGTOK_API bool ggtok_is_eog(const ggtok_tokenizer *tok, int32_t id);

/* The end-of-generation ids, ascending, and the file's suppress_tokens, in its order. */
GGTOK_API ggtok_ids ggtok_eog_ids(const ggtok_tokenizer *tok);
GGTOK_API ggtok_ids ggtok_suppress_tokens(const ggtok_tokenizer *tok);

/* All tokens' bytes, as ggtok_token_to_piece with special == true gives them, one after the
 * other: those of id i are data[(*offsets)[i] .. (*offsets)[i + 1]). Both belong to the
 * tokenizer. */
GGTOK_API ggtok_bytes ggtok_pieces(const ggtok_tokenizer *tok, const uint32_t **offsets);

/* Do two tokenizers have the same tokens, scores, attributes, merges, normalizer, special ids
 * and flags, after all defaults and overrides? Then they encode and decode alike, unless a
 * ggtok_split_fn makes a difference. */
GGTOK_API bool ggtok_same_vocabulary(const ggtok_tokenizer *tok, const ggtok_tokenizer *other);

/* Id of the token with exactly this text, or GGTOK_NO_TOKEN. */
GGTOK_API int32_t ggtok_text_to_token(const ggtok_tokenizer *tok, const char *text, size_t n);

/* Names of the pre-tokenizers this build knows: the i-th, or NULL past the last. */
GGTOK_API const char *ggtok_pre_name(size_t i);

/* Does its vocabulary spell tokens as they are, with <0xXX> for bytes and U+2581 for spaces?
 * Others have GPT-2's characters for bytes. False for a name that isn't known. */
GGTOK_API bool ggtok_pre_is_raw(const char *name);

/* ---- training ---- */

/*
 * The words of a corpus and how often each occurs: all that byte pair encoding is trained on.
 * Any number of threads add to them at the same time, each through a ggtok_counter of its own;
 * the counts are complete once each of those was flushed. What they come to doesn't depend on
 * threads or order.
 *
 *     ggtok_counts_new(GGTOK_CUT_PRE, "llama-bpe", 0, &counts, &err);
 *     ggtok_counter_new(counts, &counter, &err);              (in each thread)
 *     ggtok_counter_add(counter, text, n, true, &err);        (as often as there is text)
 *     ggtok_counter_flush(counter, &err);
 *     ggtok_counter_free(counter);
 *     ggtok_merge(counts, &options, &merges, &err);
 */
typedef struct ggtok_counts ggtok_counts;
typedef struct ggtok_counter ggtok_counter;

/* What cuts texts into words. */
typedef enum ggtok_cut {
    GGTOK_CUT_PRE,    /* a pre-tokenizer, by its name */
    GGTOK_CUT_SPACES, /* SentencePiece: U+2581 for each space and before the text; a word is a run
                         of those and what follows */
    GGTOK_CUT_CALLER  /* `split`, or ggtok_counter_add_words alone if that is NULL */
} ggtok_cut;

typedef struct ggtok_counts_options {
    ggtok_cut cut;
    const char *pre;      /* GGTOK_CUT_PRE: one of ggtok_pre_name */
    ggtok_split_fn split; /* GGTOK_CUT_CALLER; called on the thread that counts */
    void *split_user;
    uint64_t max_words; /* if not 0: when there are more distinct words, the rarest are dropped */
} ggtok_counts_options;

GGTOK_API ggtok_status ggtok_counts_new(const ggtok_counts_options *options, ggtok_counts **out,
                                        ggtok_error *err);
GGTOK_API void ggtok_counts_free(ggtok_counts *counts); /* NULL is allowed */

typedef struct ggtok_counts_info {
    uint64_t n_words, word_bytes;    /* distinct words, and their bytes */
    uint64_t total, total_bytes;     /* words with their counts, and their bytes */
    uint64_t dropped_words, dropped; /* what max_words dropped: words, and with their counts */
    uint64_t memory;                 /* bytes that the counts take */
} ggtok_counts_info;
GGTOK_API ggtok_counts_info ggtok_counts_get_info(const ggtok_counts *counts);

GGTOK_API ggtok_status ggtok_counter_new(ggtok_counts *counts, ggtok_counter **out,
                                         ggtok_error *err);
GGTOK_API void
ggtok_counter_free(ggtok_counter *counter); /* NULL is allowed; what wasn't flushed is lost */

/* Counts the words of text[0 .. n): of each of its lines by itself, newline included (for
 * GGTOK_CUT_SPACES without), or of the whole as one document. Malformed UTF-8 is read as in
 * ggtok_encode. After a failure the counts are incomplete. */
GGTOK_API ggtok_status ggtok_counter_add(ggtok_counter *counter, const char *text, size_t n,
                                         bool lines, ggtok_error *err);

/* Counts words text[0 .. ends[0]), text[ends[0] .. ends[1]), ..., the i-th times[i] times (`times`
 * NULL: once). Each must be well-formed UTF-8, but that surrogates may occur. */
GGTOK_API ggtok_status ggtok_counter_add_words(ggtok_counter *counter, const char *text, size_t n,
                                               const size_t *ends, const uint64_t *times,
                                               size_t count, ggtok_error *err);
GGTOK_API ggtok_status ggtok_counter_flush(ggtok_counter *counter, ggtok_error *err);

/* Writes all words, by falling count and then by their bytes: to words[0 .. word_bytes), with
 * their ends and their counts in arrays of n_words, as ggtok_counts_get_info tells those. */
GGTOK_API ggtok_status ggtok_counts_copy(const ggtok_counts *counts, char *words, size_t *ends,
                                         uint64_t *times, ggtok_error *err);

/*
 * Adds to `to` the same counts with the byte `boundary` in place of each of the n texts that a word
 * holds: texts text[0 .. ends[0]), text[ends[0] .. ends[1]), ..., none of them empty; leftmost ones
 * first, and the longest of those that begin at one place. If no word holds any, *any is false and
 * nothing is added. SentencePiece's trainer does so with special tokens.
 */
GGTOK_API ggtok_status ggtok_counts_cut_at(const ggtok_counts *counts, const char *text,
                                           const size_t *ends, size_t n, char boundary,
                                           ggtok_counts *to, bool *any, ggtok_error *err);

typedef struct ggtok_char_count {
    uint32_t code;
    uint64_t count;
} ggtok_char_count;

/* How often each character occurs, by falling count and then by code point; *out is freed with
 * ggtok_chars_free. */
GGTOK_API ggtok_status ggtok_counts_chars(const ggtok_counts *counts, ggtok_char_count **out,
                                          size_t *n, ggtok_error *err);
GGTOK_API void ggtok_chars_free(ggtok_char_count *chars);

/* Which of the pairs that occur most often is merged first; all else is the same. */
typedef enum ggtok_rule {
    GGTOK_RULE_NUMBERS, /* of the smaller left number, then of the smaller right one: Hugging
                           Face's trainer; with the bytes' values as numbers rustbpe's */
    GGTOK_RULE_PIECES   /* with fewer characters, then with smaller bytes; and only what
                           SentencePiece takes for a piece is made */
} ggtok_rule;

enum {                               /* of symbols, for GGTOK_RULE_PIECES */
       GGTOK_SYMBOL_SPACE = 1,       /* holds a U+2581 */
       GGTOK_SYMBOL_ONLY_SPACES = 2, /* and nothing else */
       GGTOK_SYMBOL_ALONE = 4,       /* a digit that is never merged */
       GGTOK_SYMBOL_NEVER = 8        /* never merged for another reason */
};

typedef struct ggtok_symbol {
    uint32_t code;   /* a byte, or a code point */
    uint32_t number; /* its own */
    uint16_t script; /* GGTOK_RULE_PIECES: pieces have characters of one script; 0 goes with any */
    unsigned kind;   /* and the sum of the above */
} ggtok_symbol;

/* A text that has a number already: of a special token, for instance. Where merges come to it
 * they give that number (GGTOK_RULE_PIECES: don't come to it). */
typedef struct ggtok_reserved {
    const uint32_t *symbols; /* numbers of its initial symbols */
    size_t n;
    uint32_t number;
} ggtok_reserved;

typedef struct ggtok_merge_progress {
    size_t n_merges, most;
    uint64_t count; /* how often the pair merged last occurs */
} ggtok_merge_progress;

/* Called by the calling thread, several times a second; false stops the training. */
typedef bool (*ggtok_merge_fn)(void *user, const ggtok_merge_progress *progress);

typedef struct ggtok_merge_options {
    ggtok_rule rule;
    bool bytes;                  /* words are made of bytes; else of characters */
    const ggtok_symbol *initial; /* words are cut at what isn't among them */
    size_t n_initial;
    uint32_t first_new;  /* number of the first new symbol: above all others */
    uint32_t most_new;   /* stop after so many new symbols */
    uint64_t min_count;  /* or when no pair occurs that often; at least 1 */
    uint32_t max_length; /* GGTOK_RULE_NUMBERS: new symbols have fewer initial ones (but two are
                            always allowed); 0: any number */
    const ggtok_reserved *reserved; /* by rising n */
    size_t n_reserved;
    ggtok_merge_fn progress; /* or NULL */
    void *user;
} ggtok_merge_options;

typedef struct ggtok_merge_row {
    uint32_t left, right, made;
    uint64_t count;    /* how often the pair occurred when it was merged, overlaps included */
    uint64_t replaced; /* and how many occurrences were replaced: without overlaps */
} ggtok_merge_row;

typedef struct ggtok_merges ggtok_merges;

/*
 * Trains: merges the pair of neighbouring symbols that occurs most often in the counted words,
 * everywhere, from left to right; and again. GGTOK_ERR_ARGUMENT where the words' symbols, their
 * counts or the made symbols' lengths exceed what 32 or 64 bits hold.
 */
GGTOK_API ggtok_status ggtok_merge(const ggtok_counts *counts, const ggtok_merge_options *options,
                                   ggtok_merges **out, ggtok_error *err);

GGTOK_API const ggtok_merge_row *ggtok_merges_rows(const ggtok_merges *merges, size_t *n);
GGTOK_API void ggtok_merges_free(ggtok_merges *merges); /* NULL is allowed */

/* ---- chat templates ---- */

/*
 * A compiled chat template. It is immutable: any number of threads may render it. The text of a
 * rendering and its trusted ranges are the arguments of ggtok_encode_trusted, so that control
 * tokens in a message's text stay plain text.
 *
 * What a chat template reads (messages, tools, add_generation_prompt, bos_token, ...) is up to
 * the caller: these functions know neither vocabularies nor a server's rules for requests.
 */
typedef struct ggtok_template ggtok_template;
typedef struct ggtok_rendering ggtok_rendering;

typedef enum ggtok_dialect {
    GGTOK_DIALECT_LLAMA_CPP = 0,   /* llama.cpp's template engine, as llama-server uses it */
    GGTOK_DIALECT_TRANSFORMERS = 1 /* jinja2, as transformers configures it */
} ggtok_dialect;

/* Compiles a template of n bytes of UTF-8. GGTOK_ERR_TEMPLATE: err->message says what is wrong,
 * err->line where. */
GGTOK_API ggtok_status ggtok_template_compile(const char *source, size_t n, ggtok_dialect dialect,
                                              ggtok_template **out, ggtok_error *err);
GGTOK_API void ggtok_template_free(ggtok_template *t); /* NULL is allowed */

/* Renders a template. `json` is an object of n bytes, whose fields are the template's variables;
 * `now` is the local time that it may ask for (NULL: midnight, 1 January 1970). Time and memory
 * are bounded. GGTOK_ERR_TEMPLATE: the JSON is malformed (line 0), or the template fails, refuses
 * the messages or exceeds its budget. */
GGTOK_API ggtok_status ggtok_template_render(const ggtok_template *t, const char *json, size_t n,
                                             const struct tm *now, ggtok_rendering **out,
                                             ggtok_error *err);
GGTOK_API void ggtok_rendering_free(ggtok_rendering *r); /* NULL is allowed */

/* The text, and the ranges of it (in bytes) that the template wrote itself. They live as long as
 * the rendering. */
GGTOK_API ggtok_bytes ggtok_rendering_text(const ggtok_rendering *r);
GGTOK_API const ggtok_range *ggtok_rendering_trusted(const ggtok_rendering *r, size_t *n);

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
GGTOK_API size_t ggtok_metadata_bytes(const ggtok_tokenizer *tok);

/* The file's key/values in file order. Arrays keep their type and count only. */
GGTOK_API size_t ggtok_n_kv(const ggtok_tokenizer *tok);
GGTOK_API ggtok_status ggtok_get_kv(const ggtok_tokenizer *tok, size_t i, ggtok_kv *out,
                                    ggtok_error *err);

#ifdef __cplusplus
}
#endif
#endif
