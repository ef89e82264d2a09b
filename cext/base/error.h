/* Functions that fill a ggtok_error. Every function that fails does so through one of them. */
#ifndef GGTOK_ERROR_H
#define GGTOK_ERROR_H

#include "base/interrupt.h"
#include "base/mem.h"
#include "ggtok.h"

#if defined(__GNUC__)
#define GGTOK_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define GGTOK_PRINTF(fmt, args)
#endif

/* Fills *err (may be NULL) with a formatted message; returns `status`. */
ggtok_status ggtok_error_set(ggtok_error *err, ggtok_status status, const char *format, ...)
    GGTOK_PRINTF(3, 4);

/* Like ggtok_error_set, with a GGUF key (n bytes, any content) and a byte offset in the file. */
ggtok_status ggtok_error_set_at(ggtok_error *err, ggtok_status status, const void *key, size_t n,
                                uint64_t offset, const char *format, ...) GGTOK_PRINTF(6, 7);

/* Fills *err for GGTOK_ERR_PRETOKENIZER: no pre-tokenizer has this name (n bytes, any content).
 * `key` is the GGUF key that holds the name, or NULL. */
ggtok_status ggtok_error_pre(ggtok_error *err, const char *name, size_t n, const char *key);

ggtok_status ggtok_error_memory(ggtok_error *err);
ggtok_status ggtok_error_stopped(ggtok_error *err);

/* Fills *err for a function that returned false: it was stopped by `in` (may be NULL), or is out of
 * memory. If in->refused, *err is filled already. */
ggtok_status ggtok_error_failed(const interrupt *in, ggtok_error *err);

/* Appends one warning to `warnings`, which holds NUL-terminated sentences one after the other.
 * Returns false if out of memory. */
bool ggtok_warnings_add(bytebuf *warnings, const char *format, ...) GGTOK_PRINTF(2, 3);

#endif
