// Tokenizes with ggtok, and calls functions with ggml's names, which are in another library.
//
//     linked FILE.gguf TEXT
#include <ggtok.h>

#include <cstdio>
#include <cstring>

extern "C" const char *gguf_type_name(int type);
extern "C" int gguf_find_key(const void *ctx, const char *key);

int main(int argc, char **argv) {
    ggtok_error err;
    ggtok_tokenizer *tok = nullptr;
    ggtok_context *ctx = nullptr;
    ggtok_ids ids;
    if (argc != 3 || std::strcmp(ggtok_version(), GGTOK_VERSION) != 0) return 2;
    if (ggtok_load_file(argv[1], nullptr, &tok, &err) != GGTOK_OK ||
        ggtok_context_new(tok, &ctx, &err) != GGTOK_OK ||
        ggtok_encode(ctx, argv[2], std::strlen(argv[2]), 0, &ids, &err) != GGTOK_OK) {
        std::puts(err.message);
        return 1;
    }
    for (std::size_t i = 0; i < ids.n; i++) std::printf("%d ", ids.data[i]);
    std::printf("%s %d\n", gguf_type_name(8), gguf_find_key(tok, ""));
    ggtok_context_free(ctx);
    ggtok_free(tok);
}
