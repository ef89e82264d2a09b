/* A parser holds the GIL while it makes millions of lists and objects, so the server counts them
 * first. cffi calls this function without the GIL. */
#include "python/containers.h"

#include <stdbool.h>

size_t ggtok_json_containers(const char *json, size_t n) {
    size_t found = 0;
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        if (quoted && json[i] == '\\')
            i++;
        else if (json[i] == '"')
            quoted = !quoted;
        else if (!quoted)
            found += json[i] == '[' || json[i] == '{';
    }
    return found;
}
