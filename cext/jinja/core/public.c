/* Implements the template functions of ggtok.h. */
#include <time.h>

#include "base/error.h"
#include "base/mem.h"
#include "jinja/core/jinja.h"

struct ggtok_rendering {
    jinja_env *env; /* owns the data to which the result points */
    jinja_result result;
};

static ggtok_status fail(const jinja_error *from, ggtok_error *err) {
    ggtok_error_set(err, from->status, "%s", from->message);
    if (err) err->line = from->line;
    return from->status;
}

ggtok_status ggtok_template_compile(const char *source, size_t n, ggtok_dialect dialect,
                                    ggtok_template **out, ggtok_error *err) {
    jinja_error e;
    jinja_template *t;
    *out = NULL;
    if (ggtok_jinja_compile(
            source, n, dialect == GGTOK_DIALECT_TRANSFORMERS ? JINJA_TRANSFORMERS : JINJA_LLAMA_CPP,
            &t, &e))
        return fail(&e, err);
    *out = (ggtok_template *)t;
    return GGTOK_OK;
}

void ggtok_template_free(ggtok_template *t) {
    ggtok_jinja_template_free((jinja_template *)t);
}

/* Whether all fields are in the ranges of a calendar date and time; a leap second is allowed. */
static bool is_time(const struct tm *now) {
    return now->tm_year > -1900 && now->tm_year < 8100 && now->tm_mon >= 0 && now->tm_mon < 12 &&
           now->tm_mday > 0 && now->tm_mday < 32 && now->tm_hour >= 0 && now->tm_hour < 24 &&
           now->tm_min >= 0 && now->tm_min < 60 && now->tm_sec >= 0 && now->tm_sec < 61;
}

static jinja_time time_of(const struct tm *now) {
    if (!now) return (jinja_time){.year = 1970, .month = 1, .day = 1};
    return (jinja_time){.year = now->tm_year + 1900,
                        .month = now->tm_mon + 1,
                        .day = now->tm_mday,
                        .hour = now->tm_hour,
                        .minute = now->tm_min,
                        .second = now->tm_sec,
                        .is_dst = now->tm_isdst};
}

ggtok_status ggtok_template_render(const ggtok_template *template, const char *json, size_t n,
                                   const struct tm *now, ggtok_rendering **out, ggtok_error *err) {
    const jinja_template *t = (const jinja_template *)template;
    *out = NULL;
    if (now && !is_time(now)) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "`now` is not a valid date and time");
    }
    const jinja_options options = {.n_input = n, .now = time_of(now)};
    jinja_error e;
    ggtok_rendering *r = ggtok_mem_zalloc(sizeof *r);
    if (!r) return ggtok_error_memory(err);
    ggtok_status s = ggtok_jinja_env_new(&options, &r->env, &e);
    if (!s) s = ggtok_jinja_env_json(r->env, json, n, ggtok_jinja_template_dialect(t), &e);
    if (!s) s = ggtok_jinja_render(r->env, t, &r->result, &e);
    if (s) {
        ggtok_rendering_free(r);
        return fail(&e, err);
    }
    *out = r;
    return GGTOK_OK;
}

void ggtok_rendering_free(ggtok_rendering *r) {
    if (!r) return;
    ggtok_jinja_env_free(r->env);
    ggtok_mem_free(r);
}

ggtok_bytes ggtok_rendering_text(const ggtok_rendering *r) {
    return (ggtok_bytes){r->result.text, r->result.n};
}

const ggtok_range *ggtok_rendering_trusted(const ggtok_rendering *r, size_t *n) {
    *n = r->result.n_from_template;
    return r->result.from_template;
}
