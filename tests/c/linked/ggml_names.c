/* What stands in for ggml: functions of its names, which must be the ones that are called. */
const char *gguf_type_name(int type);
int gguf_find_key(const void *ctx, const char *key);

const char *gguf_type_name(int type) {
    return type == 8 ? "ggml's" : "?";
}

int gguf_find_key(const void *ctx, const char *key) {
    return ctx && key ? 1 : -1;
}
