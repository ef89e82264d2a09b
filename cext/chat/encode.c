/* From prompts to ids. */
#include <stdio.h>

#include "api/tokenizer.h"
#include "base/error.h"
#include "chat/policy.h"

/* Converts a request's error to the public one. */
ggtok_status ggtok_chat_public_error(const jinja_error *from, ggtok_error *err) {
    ggtok_error_set(err, from->status, "%s", from->message);
    if (err) {
        err->line = from->line;
        snprintf(err->key, sizeof err->key, "%s", from->key);
        if (from->status == GGTOK_ERR_TEMPLATE)
            snprintf(err->name, sizeof err->name, "%.*s",
                     text_prefix(from->source, strlen(from->source), sizeof err->name - 1),
                     from->source);
    }
    return from->status;
}

/* ---- media ---- */

typedef struct media_job {
    chat_job *job;
    ggtok_range *ranges;
    size_t n;
} media_job;

static void find_media(jinja_arena *mem, void *user) {
    media_job *m = user;
    const chat_job *job = m->job;
    const chat_options *options = job->options;
    const chat_call call = {.mem = mem, .language = options->language};
    jinja_text *t = job->prompt;
    const jinja_text marker = {.data = (const uint8_t *)options->marker,
                               .n = (uint32_t)options->n_marker};
    bool are_parts = true;
    size_t cap = 0;
    for (size_t from = 0;; from = m->ranges[m->n++].end) {
        size_t at = ggtok_jinja_text_find(mem, t, &marker, from);
        if (at == SIZE_MAX) break;
        if (m->n == cap) {
            cap = 2 * cap + 8;
            ggtok_range *more = jinja_alloc_n(mem, cap, sizeof *more);
            if (m->n) memcpy(more, m->ranges, m->n * sizeof *more);
            m->ranges = more;
        }
        m->ranges[m->n] = (ggtok_range){at, at + marker.n};
    }
    /* Each marker must stand where a part of the request was. */
    size_t at = 0, i = 0;
    for (size_t k = 0; k < jinja_text_count(t); k++) {
        size_t end = jinja_text_end(t, k);
        while (i < m->n && m->ranges[i].end <= at) i++;
        bool is_media = jinja_text_part_label(t, k) & JINJA_MEDIA;
        if (i < m->n && m->ranges[i].begin < end && !is_media) are_parts = false;
        at = end;
    }
    if (m->n == job->n_media && are_parts) return;
    snprintf(mem->error->key, sizeof mem->error->key, "media_marker");
    int n_shown = text_prefix(options->marker, options->n_marker, 80);
    if (m->n == job->n_media) {
        ggtok_chat_refuse(&call, CHAT_WRONG_VALUE, NULL,
                          "a text contains the media marker (%.*s), and the template drops or "
                          "cuts an image, audio or video part (media_marker chooses another)",
                          n_shown, options->marker);
    }
    ggtok_chat_refuse(
        &call, CHAT_WRONG_VALUE, NULL,
        "the prompt has %zu media marker%s (%.*s) for %lu image, audio or video part%s, which "
        "llama-server refuses: the template drops or repeats some, or a text contains the marker "
        "(media_marker chooses another)",
        m->n, m->n == 1 ? "" : "s", n_shown, options->marker, (unsigned long)job->n_media,
        job->n_media == 1 ? "" : "s");
}

ggtok_status ggtok_chat_find_media(chat_job *job, ggtok_range **out, size_t *n) {
    media_job m = {job, NULL, 0};
    *out = NULL;
    *n = 0;
    if (!job->n_media || job->policy->like != GGTOK_LIKE_LLAMA_SERVER) return GGTOK_OK;
    ggtok_status status =
        ggtok_jinja_protect(ggtok_jinja_env_arena(job->env), find_media, &m, &job->error);
    *out = m.ranges;
    *n = m.n;
    return status;
}

/* ---- ids ---- */

typedef struct ranges_job {
    const jinja_text *t;
    size_t begin, end;
    jinja_text *cut;
    ggtok_range *ranges;
    size_t n;
} ranges_job;

static void find_ranges(jinja_arena *mem, void *user) {
    ranges_job *j = user;
    j->cut = ggtok_jinja_text_cut(mem, j->t, j->begin, j->end);
    j->ranges = ggtok_jinja_ranges(mem, j->cut, JINJA_FROM_TEMPLATE, &j->n);
}

/* Encodes bytes [begin, end) of the prompt. */
static ggtok_status encode_range(chat_job *job, ggtok_context *ctx, size_t begin, size_t end,
                                 unsigned flags, bool trusted, ggtok_ids *out, ggtok_error *err) {
    const jinja_text *t = job->prompt;
    const ggtok_range whole = {0, end - begin};
    ranges_job j = {.t = t, .begin = begin, .end = end};
    ggtok_parts parts;
    if (trusted) {
        j.ranges = (ggtok_range *)&whole;
        j.n = end > begin;
    } else {
        jinja_arena *mem = ggtok_jinja_env_arena(job->env);
        if (ggtok_jinja_protect(mem, find_ranges, &j, &job->error))
            return ggtok_chat_public_error(&job->error, err);
    }
    return ggtok_encode_trusted(ctx, (const char *)t->data + begin, end - begin, flags, j.ranges,
                                j.n, out, &parts, err);
}

static ggtok_status add_token(const ggtok_tokenizer *tok, ggtok_special which, idbuf *ids,
                              ggtok_error *err) {
    bool is_bos = which == GGTOK_BOS;
    if (!ggtok_flag(tok, is_bos ? GGTOK_FLAG_ADD_BOS : GGTOK_FLAG_ADD_EOS)) return GGTOK_OK;
    int32_t id = ggtok_special_id(tok, which);
    if (id == GGTOK_NO_TOKEN) {
        return ggtok_error_set(err, GGTOK_ERR_VOCAB,
                               "the vocabulary adds %s to texts, but has no such token",
                               is_bos ? "BOS" : "EOS");
    }
    return idbuf_push(ids, id) ? GGTOK_OK : ggtok_error_memory(err);
}

/* As in llama.cpp's mtmd_tokenize, each text between markers is encoded separately, without BOS and
 * EOS. These are then added once, before and after all ids. */
static ggtok_status encode_around(chat_job *job, ggtok_context *ctx, const ggtok_range *media,
                                  size_t n_media, unsigned flags, bool trusted, idbuf *all,
                                  ggtok_error *err) {
    ggtok_status status = add_token(ctx->tok, GGTOK_BOS, all, err);
    size_t begin = 0;
    for (size_t i = 0; i <= n_media && !status; i++) {
        size_t end = i < n_media ? media[i].begin : job->prompt->n;
        ggtok_ids ids = {NULL, 0};
        if (begin < end)
            status = encode_range(job, ctx, begin, end, flags & ~(unsigned)GGTOK_ADD_SPECIAL,
                                  trusted, &ids, err);
        if (!status && !idbuf_reserve(all, ids.n)) status = ggtok_error_memory(err);
        if (!status && ids.n) {
            memcpy(all->data + all->n, ids.data, ids.n * sizeof *ids.data);
            all->n += ids.n;
        }
        begin = i < n_media ? media[i].end : begin;
    }
    return status ? status : add_token(ctx->tok, GGTOK_EOS, all, err);
}

ggtok_status ggtok_chat_encode_job(chat_job *job, ggtok_context *ctx, unsigned flags, bool trusted,
                                   ggtok_ids *out, ggtok_error *err) {
    ggtok_range *media;
    size_t n_media;
    *out = (ggtok_ids){NULL, 0};
    if (ggtok_chat_find_media(job, &media, &n_media))
        return ggtok_chat_public_error(&job->error, err);
    if (!n_media) return encode_range(job, ctx, 0, job->prompt->n, flags, trusted, out, err);
    idbuf all = {0};
    ggtok_status status = encode_around(job, ctx, media, n_media, flags, trusted, &all, err);
    if (!status) {
        ggtok_mem_free(ctx->ids.data);
        ctx->ids = all;
        *out = (ggtok_ids){all.data, all.n};
    } else {
        ggtok_mem_free(all.data);
    }
    return status;
}
