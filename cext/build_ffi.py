"""Describes ggtok._ffi, the Python view of ggtok.h and ggtok_train.h, to cffi (API mode).

setup.py runs this. `python cext/build_ffi.py OUT.c` writes the generated module for inspection.
"""

import os
import re
import sys
import sysconfig
from glob import glob

from cffi import FFI

# The part of the public headers that Python uses. The compiler checks each line against them; "..."
# makes cffi get the value from the compiler.
CDEF = """
typedef enum {
    GGTOK_OK, GGTOK_ERR_MEMORY, GGTOK_ERR_IO, GGTOK_ERR_GGUF, GGTOK_ERR_VOCAB,
    GGTOK_ERR_PRETOKENIZER, GGTOK_ERR_ARGUMENT, GGTOK_ERR_UNSUPPORTED, GGTOK_ERR_TEMPLATE, ...
} ggtok_status;

#define GGTOK_NO_OFFSET ...

typedef struct {
    ggtok_status status;
    int os_error;
    uint64_t offset;
    char key[...];
    char name[...];
    char message[...];
    ...;
} ggtok_error;

typedef enum {
    GGTOK_VOCAB_NONE, GGTOK_VOCAB_SPM, GGTOK_VOCAB_BPE, GGTOK_VOCAB_WPM, GGTOK_VOCAB_UGM,
    GGTOK_VOCAB_RWKV, GGTOK_VOCAB_PLAMO2, GGTOK_VOCAB_TEST, GGTOK_VOCAB_PLAMO3, ...
} ggtok_vocab_type;

typedef enum {
    GGTOK_BOS, GGTOK_EOS, GGTOK_EOT, GGTOK_EOM, GGTOK_UNK, GGTOK_SEP, GGTOK_NL, GGTOK_PAD,
    GGTOK_MASK, GGTOK_FIM_PRE, GGTOK_FIM_SUF, GGTOK_FIM_MID, GGTOK_FIM_PAD, GGTOK_FIM_REP,
    GGTOK_FIM_SEP, ...
} ggtok_special;

typedef enum {
    GGTOK_FLAG_ADD_BOS, GGTOK_FLAG_ADD_EOS, GGTOK_FLAG_ADD_SEP, GGTOK_FLAG_ADD_SPACE_PREFIX,
    GGTOK_FLAG_IGNORE_MERGES, GGTOK_FLAG_CLEAN_SPACES, GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES,
    GGTOK_FLAG_ESCAPE_WHITESPACES, GGTOK_FLAG_LOWERCASE, GGTOK_FLAG_STRIP_ACCENTS,
    GGTOK_FLAG_NFC, ...
} ggtok_vocab_flag;

#define GGTOK_ADD_SPECIAL ...
#define GGTOK_PARSE_SPECIAL ...
#define GGTOK_NOT_FIRST_BLOCK ...
#define GGTOK_CONTINUATION ...
#define GGTOK_NOT_LAST_BLOCK ...
#define GGTOK_TAIL ...
#define GGTOK_SPANS ...
#define GGTOK_PLAIN_USER_DEFINED ...

typedef enum {
    GGTOK_U8, GGTOK_I8, GGTOK_U16, GGTOK_I16, GGTOK_U32, GGTOK_I32, GGTOK_F32, GGTOK_BOOL,
    GGTOK_STRING, GGTOK_ARRAY, GGTOK_U64, GGTOK_I64, GGTOK_F64, ...
} ggtok_value_type;

typedef struct { const int32_t *data; size_t n; ...; } ggtok_ids;
typedef struct { const char *data; size_t n; ...; } ggtok_bytes;
typedef struct {
    ggtok_bytes key;
    ggtok_value_type type;
    ggtok_value_type elem_type;
    uint64_t n;
    uint64_t u64;
    int64_t i64;
    double f64;
    ggtok_bytes str;
    ...;
} ggtok_kv;

typedef ... ggtok_tokenizer;
typedef size_t (*ggtok_split_fn)(void *user, const char *text, size_t n, size_t *ends, size_t max);
typedef enum {
    GGTOK_OVERRIDE_INT, GGTOK_OVERRIDE_FLOAT, GGTOK_OVERRIDE_BOOL, GGTOK_OVERRIDE_STR, ...
} ggtok_override_type;
typedef struct {
    const char *key;
    ggtok_override_type type;
    int64_t i64;
    double f64;
    bool boolean;
    const char *str;
    ...;
} ggtok_override;
typedef struct {
    const char *pre;
    ggtok_split_fn split;
    void *split_user;
    const ggtok_override *overrides;
    size_t n_overrides;
    ...;
} ggtok_load_options;
typedef struct {
    uint64_t size;
    bool known;
    ggtok_vocab_type type;
    char model[...];
    char pre[...];
    uint64_t n_tokens;
    ...;
} ggtok_summary;

ggtok_status ggtok_load_file(const char *path, const ggtok_load_options *options,
                             ggtok_tokenizer **out, ggtok_error *err);
ggtok_status ggtok_load_buffer(const void *data, size_t size, const ggtok_load_options *options,
                               ggtok_tokenizer **out, ggtok_error *err);
ggtok_status ggtok_metadata_size(const void *prefix, size_t n, uint64_t file_size, uint64_t *size,
                                 ggtok_error *err);
ggtok_status ggtok_peek(const void *prefix, size_t n, uint64_t file_size, ggtok_summary *out,
                        ggtok_error *err);
void ggtok_free(ggtok_tokenizer *tok);
const char *ggtok_warning(const ggtok_tokenizer *tok, size_t i);
ggtok_status ggtok_token_to_piece(const ggtok_tokenizer *tok, int32_t id, int32_t lstrip,
                                  bool special, ggtok_bytes *piece, ggtok_error *err);
uint32_t ggtok_n_tokens(const ggtok_tokenizer *tok);
ggtok_vocab_type ggtok_type(const ggtok_tokenizer *tok);
const char *ggtok_model(const ggtok_tokenizer *tok);
const char *ggtok_pre(const ggtok_tokenizer *tok);
bool ggtok_flag(const ggtok_tokenizer *tok, ggtok_vocab_flag flag);
int32_t ggtok_special_id(const ggtok_tokenizer *tok, ggtok_special which);
ggtok_status ggtok_token_text(const ggtok_tokenizer *tok, int32_t id, ggtok_bytes *text,
                              ggtok_error *err);
ggtok_status ggtok_token_score(const ggtok_tokenizer *tok, int32_t id, float *score,
                               ggtok_error *err);
ggtok_status ggtok_token_attr(const ggtok_tokenizer *tok, int32_t id, uint32_t *attr,
                              ggtok_error *err);
size_t ggtok_special_ids(const ggtok_tokenizer *tok, int32_t *out, size_t max);
ggtok_bytes ggtok_pieces(const ggtok_tokenizer *tok, const uint32_t **offsets);
ggtok_bytes ggtok_texts(const ggtok_tokenizer *tok, const uint32_t **offsets);
const float *ggtok_scores(const ggtok_tokenizer *tok);
size_t ggtok_attrs(const ggtok_tokenizer *tok, uint32_t *out, size_t max);
bool ggtok_same_vocabulary(const ggtok_tokenizer *tok, const ggtok_tokenizer *other);
ggtok_ids ggtok_eog_ids(const ggtok_tokenizer *tok);
ggtok_ids ggtok_suppress_tokens(const ggtok_tokenizer *tok);
int32_t ggtok_text_to_token(const ggtok_tokenizer *tok, const char *text, size_t n);
const char *ggtok_pre_name(size_t i);
bool ggtok_knows_key(const char *key);
bool ggtok_pre_is_raw(const char *name);
size_t ggtok_metadata_bytes(const ggtok_tokenizer *tok);
size_t ggtok_n_kv(const ggtok_tokenizer *tok);
ggtok_status ggtok_get_kv(const ggtok_tokenizer *tok, size_t i, ggtok_kv *out, ggtok_error *err);

typedef ... ggtok_header;
typedef struct {
    uint32_t version;
    bool big_endian;
    uint64_t n_pairs, n_tensors, size;
    ...;
} ggtok_header_info;
typedef struct {
    ggtok_bytes key;
    ggtok_value_type type, elem_type;
    uint64_t n, begin, end, first;
    ...;
} ggtok_pair;
typedef struct {
    ggtok_bytes name;
    uint32_t n_dims, type;
    uint64_t dims[4];
    uint64_t offset, end;
    ...;
} ggtok_tensor;
ggtok_status ggtok_header_open(const void *data, size_t size, ggtok_header **out,
                               ggtok_error *err);
void ggtok_header_free(ggtok_header *header);
ggtok_header_info ggtok_header_get_info(const ggtok_header *header);
bool ggtok_header_pair(const ggtok_header *header, uint64_t i, ggtok_pair *out);
ggtok_status ggtok_header_string_ends(const ggtok_header *header, uint64_t i, uint64_t *ends,
                                      ggtok_error *err);
ggtok_status ggtok_header_tensor(const ggtok_header *header, uint64_t offset, ggtok_tensor *out,
                                 ggtok_error *err);

typedef ... ggtok_counts;
typedef ... ggtok_counter;
typedef ... ggtok_merges;
typedef enum { GGTOK_CUT_PRE, GGTOK_CUT_SPACES, GGTOK_CUT_CALLER, ... } ggtok_cut;
typedef struct {
    ggtok_cut cut;
    const char *pre;
    ggtok_split_fn split;
    void *split_user;
    uint64_t max_words;
    ...;
} ggtok_counts_options;
typedef struct {
    uint64_t n_words, word_bytes, total, total_bytes, dropped_words, dropped, memory;
    ...;
} ggtok_counts_info;
typedef struct { uint32_t code; uint64_t count; ...; } ggtok_char_count;
typedef enum { GGTOK_RULE_NUMBERS, GGTOK_RULE_PIECES, ... } ggtok_rule;
#define GGTOK_SYMBOL_SPACE ...
#define GGTOK_SYMBOL_ONLY_SPACES ...
#define GGTOK_SYMBOL_ALONE ...
#define GGTOK_SYMBOL_NEVER ...
typedef struct { uint32_t code, number; uint16_t script; unsigned kind; ...; } ggtok_symbol;
typedef struct { const uint32_t *symbols; size_t n; uint32_t number; ...; } ggtok_reserved;
typedef struct { size_t n_merges, most; uint64_t count; ...; } ggtok_merge_progress;
typedef bool (*ggtok_merge_fn)(void *user, const ggtok_merge_progress *progress);
typedef struct {
    ggtok_rule rule;
    bool bytes;
    const ggtok_symbol *initial;
    size_t n_initial;
    uint32_t first_new, most_new;
    uint64_t min_count;
    uint32_t max_length;
    const ggtok_reserved *reserved;
    size_t n_reserved;
    ggtok_merge_fn progress;
    void *user;
    ...;
} ggtok_merge_options;
typedef struct {
    uint32_t left, right, made;
    uint64_t count, replaced;
    ...;
} ggtok_merge_row;

ggtok_status ggtok_counts_new(const ggtok_counts_options *options, ggtok_counts **out,
                              ggtok_error *err);
void ggtok_counts_free(ggtok_counts *counts);
ggtok_counts_info ggtok_counts_get_info(const ggtok_counts *counts);
ggtok_status ggtok_counter_new(ggtok_counts *counts, ggtok_counter **out, ggtok_error *err);
void ggtok_counter_free(ggtok_counter *counter);
ggtok_status ggtok_counter_add(ggtok_counter *counter, const char *text, size_t n, bool lines,
                               ggtok_error *err);
ggtok_status ggtok_counter_add_words(ggtok_counter *counter, const char *text, size_t n,
                                     const size_t *ends, const uint64_t *times, size_t count,
                                     ggtok_error *err);
ggtok_status ggtok_counter_flush(ggtok_counter *counter, ggtok_error *err);
ggtok_status ggtok_counts_copy(const ggtok_counts *counts, char *words, size_t *ends,
                               uint64_t *times, ggtok_error *err);
ggtok_status ggtok_counts_cut_at(const ggtok_counts *counts, const char *text, const size_t *ends,
                                 size_t n, char boundary, ggtok_counts *to, bool *any,
                                 ggtok_error *err);
ggtok_status ggtok_counts_chars(const ggtok_counts *counts, ggtok_char_count **out, size_t *n,
                                ggtok_error *err);
void ggtok_chars_free(ggtok_char_count *chars);
ggtok_status ggtok_merge(const ggtok_counts *counts, const ggtok_merge_options *options,
                         ggtok_merges **out, ggtok_error *err);
const ggtok_merge_row *ggtok_merges_rows(const ggtok_merges *merges, size_t *n);
void ggtok_merges_free(ggtok_merges *merges);

extern "Python" bool ggtok_python_merge(void *user, const ggtok_merge_progress *progress);

unsigned ggtok_unicode_flags(uint32_t cpt);
uint32_t ggtok_unicode_to_lower(uint32_t cpt);
uint32_t ggtok_unicode_nfd_first(uint32_t cpt);
void ggtok_stl_sort_descending(int32_t *ids, size_t n, const uint32_t *key);

typedef enum {
    GGTOK_CHAT_IDS, GGTOK_CHAT_COUNT, GGTOK_CHAT_TEXT, GGTOK_CHAT_PROMPT,
    GGTOK_CHAT_VARIABLES, ...
} ggtok_chat_want;

typedef enum {
    GGTOK_CHAT_TRUSTED, GGTOK_CHAT_NO_PREFILL, GGTOK_CHAT_ALLOW_EMPTY, GGTOK_CHAT_BEFORE_MORE,
    GGTOK_CHAT_SERVER, GGTOK_CHAT_ANTHROPIC, GGTOK_CHAT_RESPONSES, GGTOK_CHAT_KEEP_ENDS,
    GGTOK_CHAT_SKIP_UNKNOWN, GGTOK_CHAT_SKIP_MEDIA,
    GGTOK_CHAT_UNTRACKED, ...
} ggtok_chat_bits;

typedef enum { CHAT_WRONG_VALUE, CHAT_WRONG_TYPE, CHAT_BAD_REQUEST, ... } chat_fault;

typedef enum { JINJA_LLAMA_CPP, JINJA_TRANSFORMERS, ... } jinja_dialect;

typedef enum {
    JINJA_NOTE_USED, JINJA_NOTE_ARRAY_ACCESS, JINJA_NOTE_OBJECT_ACCESS, JINJA_NOTE_IS_STRING,
    JINJA_NOTE_SELECTATTR, ...
} jinja_note;

bool ggtok_python_bind_tokenizer(ggtok_tokenizer *tok, uintptr_t functions, uintptr_t error);
bool ggtok_jinja_bind(uintptr_t list, uintptr_t error);
bool ggtok_chat_bind(uintptr_t list, uintptr_t to_plain);
bool ggtok_arrow_bind(uintptr_t list, uintptr_t error);
bool ggtok_train_bind(uintptr_t list);

size_t ggtok_json_size(const char *json, size_t n);

extern "Python" size_t ggtok_python_split(void *user, const char *text, size_t n, size_t *ends,
                                      size_t max);
"""

SOURCE = """
#include "ggtok_train.h"
#include "chat/chat.h"
#include "index/stl_order.h"
#include "jinja/core/jinja.h"
#include "python/arrow.h"
#include "python/chat.h"
#include "python/json_size.h"
#include "python/entry.h"
#include "python/jinja.h"
#include "python/train.h"
#include "unicode/unicode.h"
"""

if sys.platform == "win32":
    COMPILE_ARGS = ["/O2", "/std:c11", "/utf-8"]
else:
    CFLAGS = os.environ.get("CFLAGS", "")
    COMPILE_ARGS = ["-std=c11", "-fvisibility=hidden", "-fstack-protector-strong"]
    if not re.search(r"(^|\s)-O", CFLAGS):
        COMPILE_ARGS += ["-O3"]
    if not re.search(r"(^|\s)-g", CFLAGS):  # CPython's -g takes a sixth of the compile time
        COMPILE_ARGS += ["-g0"]
    if "-fsanitize" not in CFLAGS:  # FORTIFY_SOURCE would hide calls from sanitizers
        COMPILE_ARGS += ["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]
# Whether the target platform, which needn't be this one, is Linux.
LINUX = sysconfig.get_platform().startswith("linux")
LINK_ARGS = ["-Wl,-z,relro,-z,now"] if LINUX else []

# Free-threaded builds of CPython have no limited API.
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

ffibuilder = FFI()
ffibuilder.cdef(CDEF)
ffibuilder.set_source(
    "ggtok._ffi",
    SOURCE,
    include_dirs=["cext"],
    sources=sorted(glob("cext/**/*.c", recursive=True)),
    depends=sorted(glob("cext/**/*.h", recursive=True) + glob("cext/**/*.inc", recursive=True)),
    define_macros=[] if FREE_THREADED else [("Py_LIMITED_API", "0x030A0000")],
    extra_compile_args=COMPILE_ARGS,
    extra_link_args=LINK_ARGS,
)

if __name__ == "__main__":
    ffibuilder.emit_c_code(sys.argv[1])
