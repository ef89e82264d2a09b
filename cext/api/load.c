/* Loading: a file's bytes -> gguf (views) -> vocab -> model -> tokenizer. */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#define _DARWIN_C_SOURCE /* declares st_mtimespec */
#endif

#include "api/tokenizer.h"
#include "vocab/keys.h"
#include "vocab/special.h"

#include <errno.h>
#include <time.h>

static const model_ops *ops_of(const vocab *v) {
    switch (v->type) {
    case GGTOK_VOCAB_SPM: return &ggtok_model_spm;
    case GGTOK_VOCAB_BPE:
        return !strcmp(v->model, "hybriddna")    ? &ggtok_model_hybriddna
               : !strcmp(v->model, "whitespace") ? &ggtok_model_whitespace
                                                 : &ggtok_model_bpe;
    case GGTOK_VOCAB_WPM: return &ggtok_model_wpm;
    case GGTOK_VOCAB_UGM: return &ggtok_model_ugm;
    case GGTOK_VOCAB_RWKV: return &ggtok_model_rwkv;
    case GGTOK_VOCAB_PLAMO2:
    case GGTOK_VOCAB_PLAMO3: return &ggtok_model_plamo2;
    case GGTOK_VOCAB_TEST: return &ggtok_model_test;
    default: return NULL;
    }
}

/* Finds the newline's id: its byte token in SPM, the padding token in WPM, otherwise the first id
 * of "\n". As in llama.cpp, this happens before the file's special ids are read, so encoding "\n"
 * uses the default ids instead. */
static ggtok_status find_newline(ggtok_tokenizer *tok, ggtok_error *err) {
    vocab *v = &tok->v;
    int32_t id = v->special[GGTOK_PAD];
    if (v->type == GGTOK_VOCAB_SPM) {
        int32_t byte = ggtok_vocab_byte_token(v, '\n');
        if (byte >= 0) id = byte;
    } else if (v->type != GGTOK_VOCAB_WPM) {
        idbuf ids = {0};
        cache_counts counts = {0, 0};
        model_call call = {
            .v = v,
            .model = tok->model,
            .scratch = tok->ops->scratch_new(v, tok->model),
            .after_special = true,
            .out = &ids,
            .counts = &counts,
            .err = err,
        };
        ggtok_status s = call.scratch ? tok->ops->encode(&call, (const uint8_t *)"\n", 1)
                                      : ggtok_error_memory(err);
        if (!s && ids.n) id = ids.data[0];
        tok->ops->scratch_free(call.scratch);
        ggtok_mem_free(ids.data);
        if (s) return s;
    }
    /* llama.cpp refuses a vocabulary that is too small to contain the default id. */
    v->special[GGTOK_NL] = (uint32_t)id < v->n_tokens ? id : GGTOK_NO_TOKEN;
    return GGTOK_OK;
}

void ggtok_free(ggtok_tokenizer *tok) {
    if (!tok) return;
    if (tok->ops) tok->ops->free(tok->model);
    ggtok_special_set_free(&tok->always);
    ggtok_special_set_free(&tok->all);
    ggtok_piece_table_free(&tok->pieces);
    ggtok_metadata_free(&tok->meta);
    ggtok_vocab_free(&tok->v);
    ggtok_mem_free(tok);
}

static ggtok_status load(ggtok_tokenizer *tok, vocab_keys *k, const ggtok_load_options *options,
                         ggtok_error *err) {
    ggtok_status s;
    if (!ggtok_metadata_copy(&tok->meta, k->g)) return ggtok_error_memory(err);
    if ((s = ggtok_vocab_load_tokens(&tok->v, k, options, err))) return s;
    tok->ops = ops_of(&tok->v);
    if (!tok->ops) return GGTOK_OK;
    /* Checks come before the steps that take much memory, so that malformed files are refused
     * early. */
    if ((s = ggtok_vocab_check_special(&tok->v, k, err)) ||
        (s = ggtok_piece_check_bytes(&tok->v, err)) ||
        (s = tok->ops->build(&tok->v, k->g, options, &tok->model, err)) ||
        (s = find_newline(tok, err)) || (s = ggtok_vocab_load_special(&tok->v, k, err)) ||
        (s = ggtok_piece_table_build(&tok->pieces, &tok->v, err)) ||
        (s = ggtok_special_set_build(&tok->always, &tok->v, false, NULL, err))) {
        return s;
    }
    return ggtok_special_set_build(&tok->all, &tok->v, true, NULL, err);
}

static ggtok_status load_parsed(const gguf *g, const ggtok_load_options *options,
                                ggtok_tokenizer **out, ggtok_error *err) {
    ggtok_tokenizer *tok = ggtok_mem_zalloc(sizeof *tok);
    if (!tok) return ggtok_error_memory(err);
    vocab_keys k = {.g = g, .warnings = &tok->v.warnings};
    ggtok_status s = ggtok_vocab_keys_open(&k, options, err);
    if (!s) s = load(tok, &k, options, err);
    if (!s) s = ggtok_vocab_keys_close(&k, err);
    if (!s && tok->ops) s = ggtok_vocab_warn_of_keys(&k, err);
    ggtok_vocab_keys_free(&k);
    if (s) {
        ggtok_free(tok);
        tok = NULL;
    }
    *out = tok;
    return s;
}

ggtok_status ggtok_load_buffer(const void *data, size_t size, const ggtok_load_options *options,
                               ggtok_tokenizer **out, ggtok_error *err) {
    gguf g = {0};
    size_t need;
    *out = NULL;
    ggtok_status s = ggtok_gguf_parse(&g, data, size, size, &need, err);
    if (!s) s = load_parsed(&g, options, out, err);
    ggtok_gguf_close(&g);
    return s;
}

/* ---- prefixes ---- */

ggtok_status ggtok_metadata_size(const void *prefix, size_t n, uint64_t file_size, uint64_t *size,
                                 ggtok_error *err) {
    gguf g = {0};
    size_t need;
    ggtok_status s = ggtok_gguf_parse(&g, prefix, n, file_size, &need, err);
    *size = s ? 0 : need ? need : g.pos;
    ggtok_gguf_close(&g);
    return s;
}

ggtok_status ggtok_peek(const void *prefix, size_t n, uint64_t file_size, ggtok_summary *out,
                        ggtok_error *err) {
    gguf g = {0};
    size_t need;
    memset(out, 0, sizeof *out);
    ggtok_status s = ggtok_gguf_parse(&g, prefix, n, file_size, &need, err);
    if (!s) {
        out->size = need ? need : g.pos;
        s = ggtok_vocab_summarize(&g, !need, out, err);
    }
    ggtok_gguf_close(&g);
    return s;
}

/* ---- files: read in growing blocks, not mapped, since truncating a mapped file kills the
 * processes that use it ---- */

typedef struct file_state {
    int64_t size, seconds, nanoseconds; /* size in bytes, and time of the last change */
} file_state;

#if defined(_WIN32)
#include <stdio.h>
#include <sys/stat.h>
typedef FILE *file_handle;
#define NO_FILE NULL
#define file_close fclose

static file_handle file_open(const char *path) {
    return fopen(path, "rb");
}

/* Returns false, with errno set, if the file can't be read. */
static bool file_stat(file_handle f, file_state *state) {
    struct _stat64 st;
    if (_fstat64(_fileno(f), &st)) return false;
    *state = (file_state){st.st_size, st.st_mtime, 0};
    return true;
}

static int64_t file_read(file_handle f, uint8_t *p, size_t n, uint64_t offset) {
    if (_fseeki64(f, (int64_t)offset, SEEK_SET)) return -1;
    size_t got = fread(p, 1, n, f);
    return got || !ferror(f) ? (int64_t)got : -1;
}
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
typedef int file_handle;
enum { READ_MAX = 1 << 30 }; /* bytes per call; some systems refuse 2^31 bytes or more */
#define NO_FILE (-1)
#define file_close close

static file_handle file_open(const char *path) {
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe must not block */
}

static bool file_stat(file_handle f, file_state *state) {
    struct stat st;
    if (fstat(f, &st)) return false;
#if defined(__APPLE__)
    struct timespec changed = st.st_mtimespec;
#else
    struct timespec changed = st.st_mtim;
#endif
    *state = (file_state){st.st_size, changed.tv_sec, changed.tv_nsec};
    if (S_ISREG(st.st_mode)) return true;
    errno = S_ISDIR(st.st_mode) ? EISDIR : ESPIPE;
    return false;
}

static int64_t file_read(file_handle f, uint8_t *p, size_t n, uint64_t offset) {
    ssize_t got;
    do got = pread(f, p, n < READ_MAX ? n : READ_MAX, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got;
}
#endif

static ggtok_status io_error(ggtok_error *err, int os_error, const char *path, const char *what) {
    ggtok_status s =
        ggtok_error_set(err, GGTOK_ERR_IO, "cannot %s '%s': %s", what, path,
                        os_error == ESPIPE ? "not a regular file" : strerror(os_error));
    if (err) err->os_error = os_error;
    return s;
}

/* Reads until *data holds the first `want` bytes of the file. */
static ggtok_status read_up_to(file_handle f, const char *path, bytebuf *data, size_t want,
                               ggtok_error *err) {
    if (!bytebuf_reserve(data, want - data->n)) return ggtok_error_memory(err);
    while (data->n < want) {
        int64_t got = file_read(f, data->data + data->n, want - data->n, data->n);
        if (got < 0) return io_error(err, errno, path, "read");
        if (!got) {
            return ggtok_error_set_at(err, GGTOK_ERR_GGUF, NULL, 0, data->n,
                                      "'%s' became shorter while it was read: it ends at byte %llu",
                                      path, (unsigned long long)data->n);
        }
        data->n += (size_t)got;
    }
    return GGTOK_OK;
}

/* Checks that the bytes that were read belong to one version of the file. If the file was written
 * to during the reading or shortly before (the system records only when a write begins), reads the
 * first `n` bytes again and compares. A download that still grows after these bytes is fine. */
static ggtok_status check_unchanged(file_handle f, const char *path, const file_state *before,
                                    const uint8_t *data, size_t n, ggtok_error *err) {
    enum { MOMENT = 2 }; /* seconds; a write that began longer ago is assumed to have ended */
    file_state now;
    bytebuf second = {0};
    if (!file_stat(f, &now)) return io_error(err, errno, path, "read");
    bool same = !memcmp(&now, before, sizeof now);
    if (same && (int64_t)time(NULL) - now.seconds > MOMENT) return GGTOK_OK;
    ggtok_status s = read_up_to(f, path, &second, n, err);
    if (!s && memcmp(second.data, data, n)) {
        size_t at = 0;
        while (second.data[at] == data[at]) at++;
        s = ggtok_error_set_at(
            err, GGTOK_ERR_GGUF, NULL, 0, at,
            "'%s' was changed while it was read, at byte %llu or before; load it again", path,
            (unsigned long long)at);
    }
    ggtok_mem_free(second.data);
    return s;
}

static ggtok_status load_open_file(file_handle f, const char *path,
                                   const ggtok_load_options *options, ggtok_tokenizer **out,
                                   ggtok_error *err) {
    enum {
        FIRST_BLOCK = 1 << 20, /* bytes to read first */
        ROOM = 16 << 20        /* bytes to reserve; reserved memory that isn't used costs nothing */
    };
    bytebuf data = {0};
    gguf g = {0};
    ggtok_status s;
    file_state state;
    if (!file_stat(f, &state)) return io_error(err, errno, path, "read");
    uint64_t size = (uint64_t)state.size;
    size_t want = FIRST_BLOCK, need = 1;
    if (!bytebuf_reserve(&data, size < ROOM ? (size_t)size : ROOM)) return ggtok_error_memory(err);
    do {
        if (want < need) want = need;
        if (want > size) want = (size_t)size;
        if ((s = read_up_to(f, path, &data, want, err)) ||
            (s = ggtok_gguf_parse(&g, data.data, data.n, size, &need, err))) {
            goto done;
        }
        want = data.n < SIZE_MAX / 2 ? 2 * data.n : SIZE_MAX;
    } while (need);
    if ((s = check_unchanged(f, path, &state, data.data, g.pos, err))) goto done;
    s = load_parsed(&g, options, out, err);
done:
    ggtok_gguf_close(&g);
    ggtok_mem_free(data.data);
    return s;
}

ggtok_status ggtok_load_file(const char *path, const ggtok_load_options *options,
                             ggtok_tokenizer **out, ggtok_error *err) {
    *out = NULL;
    file_handle f = file_open(path);
    if (f == NO_FILE) return io_error(err, errno, path, "open");
    ggtok_status s = load_open_file(f, path, options, out, err);
    file_close(f);
    return s;
}
