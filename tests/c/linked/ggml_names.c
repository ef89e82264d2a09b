/* A stand-in for ggml with some of its function names, which the program must call. */
const char *gguf_type_name(int type);
int gguf_find_key(const void *ctx, const char *key);

const char *gguf_type_name(int type) {
    return type == 8 ? "ggml's" : "?";
}

int gguf_find_key(const void *ctx, const char *key) {
    return ctx && key ? 1 : -1;
}
