/*
 * ggtok: tokenizes with the vocabulary in a GGUF file, without loading the model.
 *
 * Loads a vocabulary from GGUF metadata and turns text into token ids and back
 * exactly as llama.cpp (build b11549) does. Needs no Python and no llama.cpp.
 *
 * Contents
 *   - errors and types
 *   - load: ggtok_load_file, ggtok_load_buffer, ggtok_metadata_size, ggtok_peek
 *   - encode: ggtok_context_new, ggtok_encode, ggtok_safe_cut, ggtok_special_choice_new, ggtok_spans,
 *     ggtok_encode_trusted
 *   - contexts for many threads: ggtok_pool_new, ggtok_encode_batch, ggtok_encode_parallel
 *   - decode: ggtok_decode, ggtok_token_to_piece
 *   - the vocabulary: ggtok_n_tokens, ggtok_flag, ggtok_special_id, ggtok_token_text
 *   - metadata: ggtok_get_kv
 *   - the header of any GGUF file: ggtok_header_open
 * Other headers
 *   - ggtok_chat.h: prompts and ids of chat messages
 *   - ggtok_sample.h: random segmentations, and the best ones
 *   - ggtok_trace.h: the steps from a text to its ids
 *   - ggtok_train.h: BPE training
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
 *   - A ggtok_tokenizer is immutable: any number of threads may use one at the same time. A
 *     ggtok_context belongs to one thread at a time; a ggtok_pool keeps contexts for any number of
 *     threads. Free both before the tokenizer.
 */
#ifndef GGTOK_H
#define GGTOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of this header. ggtok_version() is the version of the library. */
#define GGTOK_VERSION "0.1.0"

/* A program that links the static library needs no macro. Define GGTOK_SHARED to use the shared
 * library, and also GGTOK_BUILD to build it. */
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

GGTOK_API const char *ggtok_version(void); /* GGTOK_VERSION when the library was compiled */

typedef enum ggtok_status {
    GGTOK_OK = 0,
    GGTOK_ERR_MEMORY,       /* an allocation failed */
    GGTOK_ERR_IO,           /* the file could not be opened or read; see os_error */
    GGTOK_ERR_GGUF,         /* not a GGUF file, or a malformed one; see key and offset */
    GGTOK_ERR_VOCAB,        /* the file is readable, but its vocabulary is unusable */
    GGTOK_ERR_PRETOKENIZER, /* tokenizer.ggml.pre names an unknown pre-tokenizer */
    GGTOK_ERR_ARGUMENT,     /* an argument is invalid (id out of range, NULL, ...) */
    GGTOK_ERR_UNSUPPORTED,  /* not supported by this vocabulary, or an unsupported type */
    GGTOK_ERR_STOPPED,      /* a callback returned false */
    GGTOK_ERR_TEMPLATE      /* a chat template failed or exceeded its limits; see ggtok_chat.h */
} ggtok_status;

#define GGTOK_NO_OFFSET UINT64_MAX
#define GGTOK_NO_TOKEN (-1) /* llama.cpp's LLAMA_TOKEN_NULL */

typedef struct ggtok_error {
    ggtok_status status;
    int os_error;      /* errno of the failed system call; 0: none */
    uint64_t offset;   /* byte offset of the error in the file, or GGTOK_NO_OFFSET */
    unsigned line;     /* line of the error in the chat template, from 1; 0: none */
    char key[128];     /* the GGUF key at fault, or the path of a chat request's field, or "";
                          truncated to fit */
    char name[128];    /* the unknown pre-tokenizer name, or the text of that line, or "";
                          truncated to fit */
    char message[512]; /* one sentence, NUL-terminated UTF-8 */
} ggtok_error;

/* Vocabulary types, with the values of llama_vocab_type. */
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

/* Attributes of a token, with the bits of llama_token_attr. */
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

/* Kinds of special tokens; see ggtok_special_id. */
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

/* Settings of the whole vocabulary, after all defaults and overrides. */
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
    GGTOK_FLAG_NFC,           /* UGM: normalizer.nfc, which llama.cpp b11549 doesn't read */
    GGTOK_N_FLAGS
} ggtok_vocab_flag;

typedef struct ggtok_tokenizer ggtok_tokenizer;
typedef struct ggtok_context ggtok_context;

/*
 * Splits one raw fragment into words; see ggtok_load_options.split. `text` is
 * well-formed UTF-8: malformed bytes are already replaced by U+FFFD, but surrogates
 * may occur. Write the end offset of each word to ends[0 .. max) and return the
 * number of words. The offsets must ascend and be on character boundaries, and the
 * last must be n. If there are more than max words, return their number; the function
 * is then called again with a larger `max`, and what it wrote to `ends` before is
 * ignored. Return SIZE_MAX to fail the encode call with GGTOK_ERR_ARGUMENT; invalid
 * offsets fail it in the same way. Called on the encoding thread.
 */
typedef size_t (*ggtok_split_fn)(void *user, const char *text, size_t n, size_t *ends, size_t max);

/* Types of override values, with the values of llama_model_kv_override_type. */
typedef enum ggtok_override_type {
    GGTOK_OVERRIDE_INT = 0,
    GGTOK_OVERRIDE_FLOAT = 1,
    GGTOK_OVERRIDE_BOOL = 2,
    GGTOK_OVERRIDE_STR = 3
} ggtok_override_type;

enum { GGTOK_OVERRIDE_MAX = 127 }; /* maximum bytes of a key, and of a string value */

/*
 * Replaces or adds the value of a key, following the rules of llama.cpp's llama_model_kv_override.
 * An override applies where the vocabulary reads a scalar of the override's type
 * (GGTOK_OVERRIDE_INT applies to unsigned integers). If the types differ, the file's value is used
 * and a warning is added (see ggtok_warning). Arrays can't be overridden, and ggtok_get_kv still
 * returns the file's values. If two overrides have the same key, the first applies.
 */
typedef struct ggtok_override {
    const char *key;
    ggtok_override_type type; /* selects one of the fields below */
    int64_t i64;
    double f64;
    bool boolean;
    const char *str;
} ggtok_override;

typedef struct ggtok_load_options {
    const char *pre;      /* overrides tokenizer.ggml.pre (BPE only); NULL: use the file's value */
    ggtok_split_fn split; /* replaces the pre-tokenizer's word splitting (BPE only); NULL: don't */
    void *split_user;
    const ggtok_override *overrides; /* an override of tokenizer.ggml.pre yields to `pre` */
    size_t n_overrides;
} ggtok_load_options;

/*
 * Loads the vocabulary of a GGUF file (version 2 or 3, either byte order), like
 * llama_model_load_from_file with vocab_only. Reads only the metadata, never the
 * tensors. The file isn't needed after the call. `options` may be NULL.
 */
GGTOK_API ggtok_status ggtok_load_file(const char *path, const ggtok_load_options *options,
                                       ggtok_tokenizer **out, ggtok_error *err);

/* Loads a vocabulary like ggtok_load_file, but from memory: `data` holds the file, or at least its
 * metadata, and isn't needed after the call. */
GGTOK_API ggtok_status ggtok_load_buffer(const void *data, size_t size,
                                         const ggtok_load_options *options, ggtok_tokenizer **out,
                                         ggtok_error *err);

/*
 * Computes how many bytes of a file ggtok_load_buffer needs, for callers that don't
 * read the file by its path. `prefix` holds the first n of the file's file_size bytes
 * (UINT64_MAX if the size is unknown). If the prefix contains the whole metadata,
 * *size is the size of the metadata (*size <= n). Otherwise *size (> n) is the
 * minimum number of bytes, from the start of the file, to read before calling again.
 * Returns GGTOK_ERR_GGUF if no GGUF file of that size begins with the prefix.
 */
GGTOK_API ggtok_status ggtok_metadata_size(const void *prefix, size_t n, uint64_t file_size,
                                           uint64_t *size, ggtok_error *err);

/* A summary of a file's vocabulary, available without loading it. */
typedef struct ggtok_summary {
    uint64_t size; /* size of the metadata in bytes; see ggtok_metadata_size */
    bool known;    /* whether the fields below are set; if not, read `size` bytes and call again */
    ggtok_vocab_type type;
    char model[64];    /* value of tokenizer.ggml.model */
    char pre[64];      /* the pre-tokenizer that would be used, even if unknown; "" unless BPE */
    uint64_t n_tokens; /* number of tokens according to the file */
} ggtok_summary;

/*
 * Summarizes a vocabulary from a prefix of its file; the arguments are those of
 * ggtok_metadata_size. In most files the relevant keys precede the token texts, so
 * the first 64 kB suffice. Returns GGTOK_ERR_VOCAB if the file has no vocabulary, or
 * one of a type that llama.cpp doesn't know.
 */
GGTOK_API ggtok_status ggtok_peek(const void *prefix, size_t n, uint64_t file_size,
                                  ggtok_summary *out, ggtok_error *err);

/* Frees a tokenizer. `tok` may be NULL. */
GGTOK_API void ggtok_free(ggtok_tokenizer *tok);

/* Returns the i-th warning about the file: one sentence about a flaw that isn't fatal and that
 * llama.cpp logs. NULL if there are no more. Valid until ggtok_free. */
GGTOK_API const char *ggtok_warning(const ggtok_tokenizer *tok, size_t i);

/* ---- encode ---- */

/* Creates a context, which holds the scratch memory and caches of one thread. */
GGTOK_API ggtok_status ggtok_context_new(const ggtok_tokenizer *tok, ggtok_context **out,
                                         ggtok_error *err);
GGTOK_API void ggtok_context_free(ggtok_context *ctx);

/* A callback that a long call runs several times a second, on the thread that made the call.
 * Returning false stops the call with GGTOK_ERR_STOPPED. The callback must not fork during a batch:
 * the child would continue the batch without its other threads. */
typedef bool (*ggtok_interrupt_fn)(void *user);

/* Sets a callback that runs regularly while this context encodes a long text; NULL (the default):
 * none. A stopped context can be used again. Releasing the context to its pool clears the
 * setting. */
GGTOK_API void ggtok_context_set_interrupt(ggtok_context *ctx, ggtok_interrupt_fn keep_going,
                                           void *user);

enum {
    GGTOK_ADD_SPECIAL = 1,   /* add BOS/EOS (CLS/SEP) as the vocabulary's flags specify */
    GGTOK_PARSE_SPECIAL = 2, /* convert the texts of control tokens to those tokens */
    /* For ggtok_encode_trusted only: the text of a user-defined token is plain text wherever the
     * text of a control token is. Without this flag, it becomes the token everywhere. */
    GGTOK_PLAIN_USER_DEFINED = 4,
    GGTOK_NOT_FIRST_BLOCK = 8, /* other text precedes: no BOS, no space prefix at the start */
    GGTOK_NOT_LAST_BLOCK = 16, /* other text follows: no EOS */
    /* The ids follow other tokens, whose text may end anywhere, even inside a word:
     * GGTOK_ADD_SPECIAL adds nothing, and no space prefix is added at the start. (After a special
     * token in the text, the space prefix is added as usual.) GGTOK_ERR_ARGUMENT for vocabularies
     * whose ids depend on whether a word begins: WPM, and UGM that removes white space. To encode
     * one text in blocks, use the two flags above instead. */
    GGTOK_CONTINUATION = 32,
    GGTOK_SPANS = 64, /* keep the data that ggtok_spans needs */
    GGTOK_TAIL = 128, /* for ggtok_safe_cut only: unknown text precedes `text` */
    /* For ggtok_encode_batch only: other threads may write to the texts during the call, so each
     * encoding thread copies one text at a time. A text whose data is NULL has no ids. */
    GGTOK_COPY_TEXTS = 256
};

typedef struct ggtok_ids {
    const int32_t *data; /* owned by the context, valid until its next use */
    size_t n;
} ggtok_ids;

/*
 * Encodes text to ids, like llama_tokenize but without its limits on length. `flags` is a
 * combination of the flags above. On failure, *out is empty.
 */
GGTOK_API ggtok_status ggtok_encode(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                                    ggtok_ids *out, ggtok_error *err);

/*
 * Finds where an incomplete text can be cut, so that a text of any length can be encoded in
 * constant memory. `text` holds n bytes of a longer text, from its start or from an earlier cut on.
 * Returns the last offset p, 0 < p < n, that is proven safe: whatever follows these n bytes, the
 * ids of the whole text are the ids of text[0..p) with `flags` and GGTOK_NOT_LAST_BLOCK, then the
 * ids of the rest with `flags` and GGTOK_NOT_FIRST_BLOCK. No token, special token, white space that
 * a special token strips, normalization or pre-tokenizer match crosses p. Returns 0 if it found no
 * such offset (or ran out of memory, or was stopped): read more of the text and call again. With
 * GGTOK_TAIL, `text` may begin at any character boundary of the longer text; p is safe there, too.
 *
 * Most texts have a safe cut every few words. Some vocabularies allow no cut, or only cuts where a
 * special token begins (if none strips white space), so the whole text must be in memory: type
 * TEST, model hybriddna, any with a ggtok_split_fn, SPM with a NaN score, PLaMo with tokens in
 * malformed UTF-8 or a score of -1000, and UGM whose charsmap or tokens join spaces to their
 * neighbours. For UGM, the proof assumes exact sums of scores: llama.cpp, and therefore
 * ggtok_encode, rounds them in texts longer than about 70 MB.
 */
GGTOK_API size_t ggtok_safe_cut(ggtok_context *ctx, const char *text, size_t n, unsigned flags);

/*
 * Encodes the part of an incomplete text whose ids no further text can change: text[0 .. *used),
 * where *used is what ggtok_safe_cut returns (0: no ids yet). A text that grows, such as a prompt to
 * which messages are appended, is encoded once in this way:
 *
 *     append the new text to `rest`;
 *     ggtok_encode_block(ctx, rest, n, flags, &ids, &used, &err);       (these ids are final)
 *     if (used) flags |= GGTOK_NOT_FIRST_BLOCK; remove the first `used` bytes of `rest`;
 *     ggtok_encode(ctx, rest, n, flags, &ids, &err);                    (those of the rest)
 *
 * All final ids, followed by those of the rest, are the ids of the whole text. If *used is 0, call
 * again once `rest` has twice as many bytes: then the total time grows linearly with the text, even
 * if nothing can be cut. On failure, *out is empty and *used is 0.
 */
GGTOK_API ggtok_status ggtok_encode_block(ggtok_context *ctx, const char *text, size_t n,
                                          unsigned flags, ggtok_ids *out, size_t *used,
                                          ggtok_error *err);

/*
 * A set of special tokens to parse: ids[0 .. n), each CONTROL or UNKNOWN (or user-defined; those
 * are always parsed). Creating a set fails with GGTOK_ERR_ARGUMENT if an id is out of range or
 * isn't a special token. The set is immutable: any number of threads may use it. Free it after its
 * last use and before the tokenizer.
 */
typedef struct ggtok_special_choice ggtok_special_choice;

GGTOK_API ggtok_status ggtok_special_choice_new(const ggtok_tokenizer *tok, const int32_t *ids,
                                                size_t n, ggtok_special_choice **out,
                                                ggtok_error *err);
GGTOK_API void ggtok_special_choice_free(ggtok_special_choice *choice); /* `choice` may be NULL */

/* Restricts GGTOK_PARSE_SPECIAL to the tokens of `choice` in all calls with the context; NULL (the
 * default): no restriction. Releasing the context to its pool clears the setting. */
GGTOK_API void ggtok_context_set_special_choice(ggtok_context *ctx,
                                                const ggtok_special_choice *choice);

typedef struct ggtok_range {
    size_t begin, end; /* byte offsets; `end` is excluded */
} ggtok_range;

/* The source of a token: a range of bytes in the text, `end` excluded. begin == end: no source. */
typedef struct ggtok_span {
    int64_t begin, end;
} ggtok_span;

/*
 * Writes to spans[0 .. n) the span of each of the n ids from the context's last call to
 * ggtok_encode. That call must have succeeded with GGTOK_SPANS, and its text must still be in
 * memory, unchanged.
 *
 * A span extends from the start of the source of the token's first byte, after normalization, to
 * the end of the source of its last byte. Tokens made from one source character share its span. A
 * run of white space that becomes one space belongs to that space's token. A space that was added
 * before a word has an empty source at that position. White space that a special token strips
 * belongs to that token. A token added before or after the text has an empty span there. If nothing
 * is normalized, the spans tile the text and their bytes are the tokens' pieces.
 */
GGTOK_API ggtok_status ggtok_spans(ggtok_context *ctx, ggtok_span *spans, ggtok_error *err);

/* The unit of offsets into a text. */
typedef enum ggtok_unit {
    GGTOK_UNIT_BYTE,
    GGTOK_UNIT_CHAR, /* code points */
    GGTOK_UNIT_UTF16 /* UTF-16 code units */
} ggtok_unit;

/*
 * Converts spans of a text from bytes to another unit. The text is well-formed UTF-8, except that
 * surrogates may occur. The spans come from ggtok_spans, or are in ascending order of `begin`. A
 * span that contains part of a character is extended to the whole character.
 */
GGTOK_API void ggtok_convert_spans(const char *text, size_t n, ggtok_span *spans, size_t n_spans,
                                   ggtok_unit unit);

/* A part of a text that was encoded on its own: one special token, or raw text. */
typedef struct ggtok_part {
    size_t pos, n;       /* position and length in the text, in bytes; any bytes between parts were
                            stripped by a special token */
    size_t first, n_ids; /* index of its first id, and the number of its ids */
    bool special;
} ggtok_part;

typedef struct ggtok_parts {
    const ggtok_part *data; /* owned by the context, valid until its next use */
    size_t n;
} ggtok_parts;

/*
 * Encodes like ggtok_encode a text of which only some ranges are trusted to contain control tokens,
 * such as the output of a chat template with users' messages in it. A reserved token is made only
 * from bytes that are all inside `trusted` ranges. A token is reserved if it is CONTROL, UNKNOWN or
 * EOG, or if the file marks it as CONTROL (llama.cpp makes some of gpt-oss's control tokens
 * user-defined). The exception is a plain token that is EOG only because the file names no EOS and
 * llama.cpp's default applies. Outside the ranges, the text of a reserved token is plain text,
 * however it would become the token: by its spelling, by merges or by normalization. Other
 * user-defined tokens are parsed everywhere, as in ggtok_encode, unless GGTOK_PLAIN_USER_DEFINED is
 * set. If there is no reserved token outside the ranges, the ids equal those from ggtok_encode.
 *
 * Returns GGTOK_ERR_ARGUMENT if the vocabulary has no other tokens for an untrusted text (for
 * instance, a single character that is a control token). Text that no token matches still becomes
 * the unknown token, unless that token is EOG. The ranges must be in ascending order, and neither
 * empty nor adjacent. *parts lists which bytes produced which ids.
 */
GGTOK_API ggtok_status ggtok_encode_trusted(ggtok_context *ctx, const char *text, size_t n,
                                            unsigned flags, const ggtok_range *trusted,
                                            size_t n_trusted, ggtok_ids *out, ggtok_parts *parts,
                                            ggtok_error *err);

/* ---- contexts for many threads ---- */

/*
 * A pool of idle contexts. Any thread may acquire a context and release it at any time. Acquiring
 * creates a context if none is idle (and returns NULL if out of memory). Releasing a context
 * invalidates its results. An idle context keeps at most 2 MB each of its buffers for ids, for text
 * and for fragments. (Its other scratch memory stays as large as the largest text required: for
 * most models, at most the size of a copy of that text.) Clearing frees the contexts and their
 * caches: idle ones at once, the others when they are released. Release all contexts before you
 * free the pool. A process may fork at any time, and the child may use the pool; but see
 * ggtok_interrupt_fn.
 */
typedef struct ggtok_pool ggtok_pool;

GGTOK_API ggtok_status ggtok_pool_new(const ggtok_tokenizer *tok, ggtok_pool **out,
                                      ggtok_error *err);
GGTOK_API ggtok_context *ggtok_pool_acquire(ggtok_pool *pool, ggtok_error *err);
GGTOK_API void ggtok_pool_release(ggtok_pool *pool, ggtok_context *ctx);
GGTOK_API void ggtok_pool_clear(ggtok_pool *pool);

/* Cache statistics, summed over the idle contexts of a pool. `hits` and `misses` count the words
 * (and parts of words) that were and weren't found in a cache since the context was created; a word
 * can miss several times until it is stored. `bytes` is the memory in use. The caches of one
 * context grow as they fill, up to 40 MB. */
typedef struct ggtok_cache_info {
    uint64_t hits, misses;
    uint64_t bytes;
} ggtok_cache_info;
GGTOK_API ggtok_cache_info ggtok_pool_cache_info(ggtok_pool *pool);
GGTOK_API void ggtok_pool_free(ggtok_pool *pool); /* `pool` may be NULL */

typedef struct ggtok_bytes {
    const char *data; /* in a result: owned by the context, valid until its next use */
    size_t n;
} ggtok_bytes;

typedef struct ggtok_batch ggtok_batch;

/*
 * Encodes texts[0 .. n) like ggtok_encode, on `threads` threads, including the calling one.
 * `keep_going` may be NULL. On success, *out holds the ids until it is freed. On failure, *out is
 * NULL and *failed is the index of the first text that was found to fail, or n if the failure isn't
 * due to a text.
 */
GGTOK_API ggtok_status ggtok_encode_batch(ggtok_pool *pool, const ggtok_bytes *texts, size_t n,
                                          unsigned flags, unsigned threads,
                                          ggtok_interrupt_fn keep_going, void *user,
                                          ggtok_batch **out, size_t *failed, ggtok_error *err);

/* The ids of n texts from texts[first] on, one text after another: n_ids[i] ids for texts[first +
 * i]. */
typedef struct ggtok_batch_part {
    size_t first, n;
    const int32_t *ids; /* valid until the callback returns */
    const int64_t *n_ids;
} ggtok_batch_part;

/* A callback that receives the ids of a batch, in the order of the texts, while other threads
 * encode. Called on the thread that made the call. Returning false stops the batch with
 * GGTOK_ERR_STOPPED. */
typedef bool (*ggtok_receive_fn)(void *user, const ggtok_batch_part *parts, size_t n);

/* A callback that changes the spans of a text in place. Called on the thread that encoded the
 * text. */
typedef void (*ggtok_convert_fn)(void *user, ggtok_bytes text, ggtok_span *spans, size_t n);

/* Options of ggtok_encode_batch_with, which otherwise equals ggtok_encode_batch. The pointers may
 * be NULL. With `receive`, the batch keeps only the offsets and spans of the ids, not the ids.
 * Parts received before a failure are valid. `convert` requires GGTOK_SPANS. */
typedef struct ggtok_batch_options {
    unsigned flags, threads;
    const ggtok_special_choice *choice;
    ggtok_interrupt_fn keep_going;
    void *user; /* passed to the three callbacks */
    ggtok_receive_fn receive;
    ggtok_convert_fn convert;
    const struct ggtok_sampling *sampling; /* see ggtok_sample.h; text i has index + i. Not with
                                              GGTOK_SPANS */
} ggtok_batch_options;

GGTOK_API ggtok_status ggtok_encode_batch_with(ggtok_pool *pool, const ggtok_bytes *texts, size_t n,
                                               const ggtok_batch_options *options,
                                               ggtok_batch **out, size_t *failed, ggtok_error *err);

/*
 * Encodes one text like ggtok_encode, on several threads: in parts that end where ggtok_safe_cut
 * allows it. The batch has one text. A text that can't be cut, a short or a sampled text, and texts
 * of UGM vocabularies, whose cuts assume sums that may not be exact, are encoded on one thread. Of
 * the options, `receive` and `convert` are ignored, and GGTOK_SPANS and GGTOK_COPY_TEXTS are
 * GGTOK_ERR_ARGUMENT.
 */
GGTOK_API ggtok_status ggtok_encode_parallel(ggtok_pool *pool, const char *text, size_t n,
                                             const ggtok_batch_options *options, ggtok_batch **out,
                                             ggtok_error *err);

/* Return the result, valid until the batch is freed: the ids of all texts in order, ids[0 ..
 * ggtok_batch_n_ids); the index of each text's first id, offsets[0 .. n + 1); and, with
 * GGTOK_SPANS, the span of each id in its text (NULL if there are no ids). */
GGTOK_API size_t ggtok_batch_n_ids(const ggtok_batch *batch);
GGTOK_API const int32_t *ggtok_batch_ids(const ggtok_batch *batch);
GGTOK_API const int64_t *ggtok_batch_offsets(const ggtok_batch *batch);
GGTOK_API const ggtok_span *ggtok_batch_spans(const ggtok_batch *batch);
GGTOK_API void ggtok_batch_free(ggtok_batch *batch); /* `batch` may be NULL */

/* ---- decode ---- */

enum {
    /* drop a leading BOS and a trailing EOS, if the vocabulary adds them */
    GGTOK_REMOVE_SPECIAL = 1,
    /* render control and unknown tokens as their text */
    GGTOK_UNPARSE_SPECIAL = 2,
    /* keep all spaces: the text is the concatenation of the tokens' pieces, as from llama-server's
     * /detokenize */
    GGTOK_KEEP_SPACES = 4,
    /* remove spaces before punctuation even if the vocabulary doesn't specify it */
    GGTOK_CLEAN_SPACES = 8
};

/* Decodes ids to text like llama_detokenize, unless the flags change how spaces are treated
 * (GGTOK_KEEP_SPACES takes precedence over GGTOK_CLEAN_SPACES). Returns GGTOK_ERR_ARGUMENT for an
 * id outside [0, n_tokens). */
GGTOK_API ggtok_status ggtok_decode(ggtok_context *ctx, const int32_t *ids, size_t n,
                                    unsigned flags, ggtok_bytes *out, ggtok_error *err);

/*
 * Returns the bytes of one token, like llama_token_to_piece. Drops up to `lstrip`
 * leading spaces. If `special` is false, control and unknown tokens have no bytes.
 * *piece points into the tokenizer. Returns GGTOK_ERR_ARGUMENT if the id is out of
 * range.
 */
GGTOK_API ggtok_status ggtok_token_to_piece(const ggtok_tokenizer *tok, int32_t id, int32_t lstrip,
                                            bool special, ggtok_bytes *piece, ggtok_error *err);

/* ---- the vocabulary ---- */

GGTOK_API uint32_t ggtok_n_tokens(const ggtok_tokenizer *tok);
GGTOK_API ggtok_vocab_type ggtok_type(const ggtok_tokenizer *tok);
GGTOK_API const char *ggtok_model(const ggtok_tokenizer *tok); /* value of tokenizer.ggml.model */
GGTOK_API const char *
ggtok_pre(const ggtok_tokenizer *tok); /* the pre-tokenizer in effect; NULL unless BPE */
GGTOK_API bool ggtok_flag(const ggtok_tokenizer *tok, ggtok_vocab_flag flag);

/* Returns the id of a special token, or GGTOK_NO_TOKEN, like llama_vocab_bos and similar
 * functions. */
GGTOK_API int32_t ggtok_special_id(const ggtok_tokenizer *tok, ggtok_special which);

/* Gets the token's text as stored in the vocabulary (as llama_vocab_get_text does), not its piece.
 */
GGTOK_API ggtok_status ggtok_token_text(const ggtok_tokenizer *tok, int32_t id, ggtok_bytes *text,
                                        ggtok_error *err);
GGTOK_API ggtok_status ggtok_token_score(const ggtok_tokenizer *tok, int32_t id, float *score,
                                         ggtok_error *err); /* equals llama_vocab_get_score */
GGTOK_API ggtok_status
ggtok_token_attr(const ggtok_tokenizer *tok, int32_t id, uint32_t *attr,
                 ggtok_error *err); /* equals llama_vocab_get_attr: ggtok_attr bits */

/* Writes the ids of tokens that structure a text instead of representing part of it: tokens that
 * are CONTROL, UNKNOWN, UNUSED or EOG, or that were CONTROL in the file before llama.cpp's
 * corrections. Writes the first `max` ids, in ascending order, to `out` and returns the total
 * number. */
GGTOK_API size_t ggtok_special_ids(const ggtok_tokenizer *tok, int32_t *out, size_t max);

/* Whether a token ends generation, like llama_vocab_is_eog; false for an id out of range. */
GGTOK_API bool ggtok_is_eog(const ggtok_tokenizer *tok, int32_t id);

/* Return the end-of-generation ids, ascending, and the file's suppress_tokens, in the file's
 * order. */
GGTOK_API ggtok_ids ggtok_eog_ids(const ggtok_tokenizer *tok);
GGTOK_API ggtok_ids ggtok_suppress_tokens(const ggtok_tokenizer *tok);

/* Returns the concatenated bytes of all tokens, as from ggtok_token_to_piece if `special` is true.
 * The bytes of token i are data[(*offsets)[i] .. (*offsets)[i + 1]). Both arrays belong to the
 * tokenizer. */
GGTOK_API ggtok_bytes ggtok_pieces(const ggtok_tokenizer *tok, const uint32_t **offsets);

/* Returns the concatenated texts of all tokens, as from ggtok_token_text, in the same form. */
GGTOK_API ggtok_bytes ggtok_texts(const ggtok_tokenizer *tok, const uint32_t **offsets);

/* Returns the scores of all tokens, as from ggtok_token_score, or NULL if there are no tokens. The
 * array belongs to the tokenizer. */
GGTOK_API const float *ggtok_scores(const ggtok_tokenizer *tok);

/* Writes the attributes of the first `max` tokens, as from ggtok_token_attr, to `out`, and returns
 * the number of tokens. */
GGTOK_API size_t ggtok_attrs(const ggtok_tokenizer *tok, uint32_t *out, size_t max);

/* Whether two tokenizers have the same tokens, scores, attributes, merges, normalizer, special ids
 * and flags, after all defaults and overrides. If so, they encode and decode identically, except
 * for the effect of a ggtok_split_fn. */
GGTOK_API bool ggtok_same_vocabulary(const ggtok_tokenizer *tok, const ggtok_tokenizer *other);

/* Returns the id of the token with exactly this text, or GGTOK_NO_TOKEN. */
GGTOK_API int32_t ggtok_text_to_token(const ggtok_tokenizer *tok, const char *text, size_t n);

/* Whether this version knows a key of a GGUF file that begins with "tokenizer.ggml.": it reads the
 * key, or llama.cpp doesn't use it for ids. Loading a file with other such keys adds warnings. */
GGTOK_API bool ggtok_knows_key(const char *key);

/* Returns the name of the i-th pre-tokenizer that this build knows, or NULL if there are no
 * more. */
GGTOK_API const char *ggtok_pre_name(size_t i);

/* Whether vocabularies with this pre-tokenizer store token texts unencoded, with <0xXX> for bytes
 * and U+2581 for spaces. Others spell texts with GPT-2's byte characters. False for an unknown
 * name. */
GGTOK_API bool ggtok_pre_is_raw(const char *name);

/* ---- metadata ---- */

/* Value types, with GGUF's numbers. */
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
    ggtok_value_type elem_type; /* for an array: type of the elements */
    uint64_t n;                 /* for an array: number of elements */
    uint64_t u64;               /* value of an unsigned integer or a bool */
    int64_t i64;                /* value of a signed integer */
    double f64;                 /* value of a float */
    ggtok_bytes str;            /* value of a string */
} ggtok_kv;

/* Returns the size of the metadata: bytes from the start of the file to the end of the last
 * key/value read. */
GGTOK_API size_t ggtok_metadata_bytes(const ggtok_tokenizer *tok);

/* Return the number of key/value pairs in the file, and the i-th pair, in file order. For arrays,
 * only type and length are kept. */
GGTOK_API size_t ggtok_n_kv(const ggtok_tokenizer *tok);
GGTOK_API ggtok_status ggtok_get_kv(const ggtok_tokenizer *tok, size_t i, ggtok_kv *out,
                                    ggtok_error *err);

/* ---- the header of any GGUF file ---- */

/*
 * The key/value pairs and tensor descriptions in the first bytes of a GGUF file, as positions in
 * these bytes. Nothing is copied: the bytes must stay in memory, unchanged, until
 * ggtok_header_free. ggtok_metadata_size tells how many bytes contain all pairs.
 *
 *     ggtok_header *header;
 *     ggtok_pair pair;
 *     if (ggtok_header_open(data, size, &header, &err)) return 1;
 *     for (uint64_t i = 0; ggtok_header_pair(header, i, &pair); i++) ...pair.key...
 *     ggtok_header_free(header);
 */
typedef struct ggtok_header ggtok_header;

/* Returns GGTOK_ERR_GGUF if the bytes don't contain all pairs, or the file is malformed. */
GGTOK_API ggtok_status ggtok_header_open(const void *data, size_t size, ggtok_header **out,
                                         ggtok_error *err);
GGTOK_API void ggtok_header_free(ggtok_header *header); /* `header` may be NULL */

typedef struct ggtok_header_info {
    uint32_t version;
    bool big_endian;
    uint64_t n_pairs, n_tensors;
    uint64_t size; /* offset of the first tensor's description */
} ggtok_header_info;
GGTOK_API ggtok_header_info ggtok_header_get_info(const ggtok_header *header);

typedef struct ggtok_pair {
    ggtok_bytes key;
    ggtok_value_type type;
    ggtok_value_type elem_type; /* for an array: type of the elements; otherwise `type` */
    uint64_t n;                 /* for an array: number of elements; otherwise 1 */
    uint64_t begin, end;        /* offsets of the value's bytes, which follow its type */
    uint64_t first;             /* offset of an array's first element; otherwise `begin` */
} ggtok_pair;

/* Gets the i-th pair, in file order; false if there are no more. */
GGTOK_API bool ggtok_header_pair(const ggtok_header *header, uint64_t i, ggtok_pair *out);

/* Writes the end offsets of the strings in the i-th pair, an array of strings, to ends[0 .. n).
 * Each string begins 8 bytes after the previous string's end (the first: after `first`). */
GGTOK_API ggtok_status ggtok_header_string_ends(const ggtok_header *header, uint64_t i,
                                                uint64_t *ends, ggtok_error *err);

typedef struct ggtok_tensor {
    ggtok_bytes name;
    uint32_t n_dims, type;
    uint64_t dims[4];
    uint64_t offset; /* of the tensor's data, after the start of all tensors' data */
    uint64_t end;    /* of this description */
} ggtok_tensor;

/* Reads the description of a tensor at `offset`: the first is at ggtok_header_info.size, the next
 * at out->end, n_tensors in all. If the bytes don't contain it, out->end (> size) is the minimum
 * number of bytes to read before opening the header again, and the other fields are zero. Returns
 * GGTOK_ERR_GGUF for a malformed description. */
GGTOK_API ggtok_status ggtok_header_tensor(const ggtok_header *header, uint64_t offset,
                                           ggtok_tensor *out, ggtok_error *err);

#ifdef __cplusplus
}
#endif
#endif
