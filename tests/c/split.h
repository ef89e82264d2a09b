/* A splitter as a caller could pass it: cuts after SPLIT_BYTES bytes, extended to the end of a
 * character. */
#ifndef SPLIT_H
#define SPLIT_H

#include <stddef.h>

static size_t split(void *user, const char *text, size_t n, size_t *ends, size_t max) {
    size_t count = 0;
    (void)user;
    for (size_t at = 0; at < n; count++) {
        at = n - at > SPLIT_BYTES ? at + SPLIT_BYTES : n;
        while (at < n && ((unsigned char)text[at] & 0xC0) == 0x80) at++;
        if (count < max) ends[count] = at;
    }
    return count;
}

#endif
