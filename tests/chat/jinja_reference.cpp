// Runs llama.cpp's template engine: reads templates and their variables from standard input, and
// writes the results to standard output. tests/chat/jinja_references.py compiles this file with the
// pinned source distribution.
//
//     in:  "N M\n", N bytes of template, M bytes of JSON with the variables
//     out: "K N\n", N bytes. K is O (followed by the text), C (by the error of the compilation) or
//          E (by the error of the rendering)
#include <cstdio>
#include <cstdlib>
#include <string>

#include "jinja/lexer.h"
#include "jinja/parser.h"
#include "jinja/runtime.h"
#include "jinja/value.h"
#include "json.h"

extern "C" [[noreturn]] void ggml_abort(const char *, int, const char *, ...) { std::abort(); }

static std::string read_bytes(size_t n) {
    std::string bytes(n, 0);
    if (n && fread(&bytes[0], 1, n, stdin) != n) std::exit(1);
    return bytes;
}

int main() {
    size_t n, m;
    while (scanf("%zu %zu", &n, &m) == 2) {
        getchar();
        std::string source = read_bytes(n), values = read_bytes(m), out;
        char kind = 'C';
        try {
            jinja::lexer lexer;
            jinja::program program = jinja::parse_from_tokens(lexer.tokenize(source));
            kind = 'E';
            jinja::context context(source);
            context.current_time = 1772895845;  // 2026-03-07 15:04:05 UTC
            jinja::global_from_json(context, common_json::parse(values), true);
            jinja::runtime runtime(context);
            auto results = runtime.execute(program);
            out = jinja::runtime::gather_string_parts(results)->as_string().str();
            kind = 'O';
        } catch (const std::exception &e) {
            out = e.what();
        }
        printf("%c %zu\n", kind, out.size());
        fwrite(out.data(), 1, out.size(), stdout);
        fflush(stdout);
    }
}
