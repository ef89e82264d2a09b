/*
 * Renders any template in either dialect. Bits 0 to 2 of byte 0 select the dialect, whether the
 * variables precede the template (as JSON that ends with a NUL; otherwise, `values` has them), and
 * whether rendering records how values are used.
 */
#include "fuzz.h"
#include "jinja/core/env.h"

static const char values[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"H\xc3\xa4 <|x|>\"},{\"role\":\"assistant\","
    "\"content\":null,\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":[1,2.5]}}}"
    "]}],"
    "\"s\":\" a,b \",\"n\":7,\"f\":0.5,\"l\":[3,1,\"x\",null,true],\"d\":{\"k\":1,\"items\":2}}";

/* Computes a checksum of a compiled template, which rendering must not change. */
static uint64_t sum_of(const jinja_template *t) {
    uint64_t sum = 0;
    for (const jinja_chunk *c = t->arena.chunks; c; c = c->older) {
        const uint8_t *p = (const uint8_t *)c, *end = p + c->whole;
        if (t->arena.top > p && t->arena.top <= end) end = t->arena.top;
        for (; p < end; p++) sum = 31 * sum + *p;
    }
    return sum;
}

/* Checks that ranges are ascending, not adjacent, and inside the text. */
static void check_ranges(const ggtok_range *ranges, size_t n, size_t size) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        CHECK(ranges[i].begin >= at && (!i || ranges[i].begin > at));
        CHECK(ranges[i].end > ranges[i].begin && ranges[i].end <= size);
        at = ranges[i].end;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size) return 0;
    jinja_dialect dialect = data[0] & 1 ? JINJA_TRANSFORMERS : JINJA_LLAMA_CPP;
    const char *source = (const char *)data + 1, *json = values;
    size_t n = size - 1, n_json = sizeof values - 1;
    const char *end = data[0] & 2 ? memchr(source, 0, n) : NULL;
    if (end) {
        json = source;
        n_json = (size_t)(end - source);
        n -= n_json + 1;
        source = end + 1;
    }
    jinja_template *t;
    jinja_env *env;
    jinja_error err;
    jinja_result out;
    jinja_options options = {.now = {.year = 2026, .month = 3, .day = 7, .has_zone = true}};
    options.probe = data[0] & 4;
    if (ggtok_jinja_compile(source, n, dialect, &t, &err)) {
        CHECK(err.status == GGTOK_ERR_TEMPLATE && err.message[0]);
        return 0;
    }
    CHECK(!ggtok_jinja_env_new(&options, &env, &err));
    ggtok_jinja_env_arena(env)->steps_left = 300000; /* a small budget, as sanitizers are slow */
    uint64_t sum = sum_of(t);
    ggtok_status status = ggtok_jinja_env_json(env, json, n_json, dialect, &err);
    if (!status) status = ggtok_jinja_render(env, t, &out, &err);
    if (status) {
        CHECK(status == GGTOK_ERR_TEMPLATE && err.status == status && err.message[0] | err.line);
    } else {
        check_ranges(out.from_template, out.n_from_template, out.n);
        check_ranges(out.generated, out.n_generated, out.n);
    }
    CHECK(sum == sum_of(t));
    ggtok_jinja_env_free(env);
    ggtok_jinja_template_free(t);
    return 0;
}
