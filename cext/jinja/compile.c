/* Compiles templates in either dialect. Only this file knows both. */
#include "jinja/llama/scope.h"
#include "jinja/python/dialect.h"

ggtok_status ggtok_jinja_compile(const char *source, size_t n, jinja_dialect dialect,
                                 jinja_template **out, jinja_error *err) {
    const jinja_rules *rules =
        dialect == JINJA_LLAMA_CPP ? &ggtok_jinja_llama_rules : &ggtok_jinja_python_rules;
    return ggtok_jinja_compile_by(rules, source, n, dialect, out, err);
}
