#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/prefix.h"

/* Copies a key, which comes from a file and may contain any bytes: keeps printable ASCII and replaces
 * all other bytes with '?'. */
static void copy_key(char *out, size_t cap, const char *key, size_t n) {
    size_t i = 0;
    for (; i < n && i + 1 < cap; i++) out[i] = key[i] >= 0x20 && key[i] < 0x7f ? key[i] : '?';
    out[i] = 0;
}

static ggtok_status set(ggtok_error *err, ggtok_status status, const void *key, size_t n,
                        uint64_t offset, const char *format, va_list args) {
    if (!err) return status;
    memset(err, 0, sizeof *err);
    err->status = status;
    err->offset = offset;
    if (key) copy_key(err->key, sizeof err->key, key, n);
    int length = vsnprintf(err->message, sizeof err->message, format, args);
    if (length >= (int)sizeof err->message)
        text_drop_partial(err->message, sizeof err->message - 1);
    for (char *c = err->message; *c; c++) { /* the message may quote the file */
        if ((uint8_t)*c < 0x20 || *c == 0x7F) *c = '?';
    }
    return status;
}

ggtok_status ggtok_error_set(ggtok_error *err, ggtok_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    set(err, status, NULL, 0, GGTOK_NO_OFFSET, format, args);
    va_end(args);
    return status;
}

ggtok_status ggtok_error_set_at(ggtok_error *err, ggtok_status status, const void *key, size_t n,
                                uint64_t offset, const char *format, ...) {
    va_list args;
    va_start(args, format);
    set(err, status, key, n, offset, format, args);
    va_end(args);
    return status;
}

ggtok_status ggtok_error_pre(ggtok_error *err, const char *name, size_t n, const char *key) {
    enum { SHOWN = 64 }; /* maximum bytes of the name in the message */
    const int shown = text_prefix(name, n, SHOWN);
    if (!key) {
        ggtok_error_set(err, GGTOK_ERR_PRETOKENIZER, "unknown pre-tokenizer '%.*s'", shown, name);
    } else {
        ggtok_error_set_at(err, GGTOK_ERR_PRETOKENIZER, key, strlen(key), GGTOK_NO_OFFSET,
                           "unknown pre-tokenizer '%.*s' (key '%s')", shown, name, key);
    }
    if (err) {
        size_t kept = (size_t)text_prefix(name, n, sizeof err->name - 1);
        if (kept) memcpy(err->name, name, kept);
        err->name[kept] = 0;
    }
    return GGTOK_ERR_PRETOKENIZER;
}

ggtok_status ggtok_error_memory(ggtok_error *err) {
    return ggtok_error_set(err, GGTOK_ERR_MEMORY, "out of memory");
}

ggtok_status ggtok_error_stopped(ggtok_error *err) {
    return ggtok_error_set(err, GGTOK_ERR_STOPPED, "the caller asked to stop");
}

ggtok_status ggtok_error_failed(const interrupt *in, ggtok_error *err) {
    if (in && in->refused) return in->refused;
    return in && in->stopped ? ggtok_error_stopped(err) : ggtok_error_memory(err);
}

bool ggtok_warnings_add(bytebuf *warnings, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return bytebuf_append(warnings, line, strlen(line) + 1);
}
