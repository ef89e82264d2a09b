/*
 * ggtok_trace: the text is encoded as usual, which yields its fragments and ids. Then each raw
 * fragment is encoded again by the model's recording encoder, which reports its steps
 * (models/trace.h) and must produce the same ids.
 */
#include "models/trace.h"

#include "api/tokenizer.h"

#include "unicode/utf8.h"

#include <stdio.h>

typedef struct tracer {
    ggtok_context *ctx;
    ggtok_trace_fn fn;
    void *user;
    ggtok_error *err;
    size_t most;       /* number of events that may be reported */
    size_t n;          /* number of reported events */
    size_t text_left;  /* total bytes of texts that may still be reported */
    size_t normalized; /* total bytes of the current fragment's words, which are normalized */
} tracer;

static bool report(void *user, ggtok_trace_event *e) {
    tracer *t = user;
    const ggtok_tokenizer *tok = t->ctx->tok;
    if (e->kind == GGTOK_TRACE_TOKEN && e->id >= 0) {
        gguf_view piece = ggtok_piece_of(&tok->pieces, &tok->v, (uint32_t)e->id, 0, true);
        e->text = (ggtok_bytes){(const char *)piece.p, piece.n};
    }
    /* The texts of rules don't count: they are constants, and each word has only a few. */
    const size_t n = e->kind == GGTOK_TRACE_RULE ? 0 : e->text.n + e->right.n;
    ggtok_status *refused = &t->ctx->interrupt.refused;
    if (t->n == t->most) {
        *refused =
            ggtok_error_set(t->err, GGTOK_ERR_ARGUMENT, "there are more than %llu steps to report",
                            (unsigned long long)t->most);
    } else if (n > t->text_left) {
        *refused = ggtok_error_set(t->err, GGTOK_ERR_ARGUMENT,
                                   "the texts of the steps have more than %d bytes",
                                   GGTOK_TRACE_TEXT_BYTES);
    } else {
        t->n++;
        t->text_left -= n;
        if (e->kind == GGTOK_TRACE_WORD) t->normalized += e->text.n;
        if (!t->fn(t->user, e)) {
            *refused = ggtok_error_set(t->err, GGTOK_ERR_STOPPED, "the callback stopped the trace");
        }
    }
    return !*refused;
}

static tracer tracer_of(ggtok_context *ctx, size_t max_events, ggtok_trace_fn fn, void *user,
                        ggtok_error *err) {
    interrupt_begin(&ctx->interrupt);
    return (tracer){.ctx = ctx,
                    .fn = fn,
                    .user = user,
                    .err = err,
                    .most = max_events,
                    .text_left = GGTOK_TRACE_TEXT_BYTES};
}

static void free_trace(trace *inner) {
    ggtok_mem_free(inner->marked[0].data);
    ggtok_mem_free(inner->marked[1].data);
}

static bool note(tracer *t, const char *text) {
    ggtok_trace_event e = {.kind = GGTOK_TRACE_NOTE, .note = trace_note(text)};
    return report(t, &e);
}

const char *ggtok_how_name(ggtok_how how) {
    static const char *const names[] = {[GGTOK_HOW_BEFORE] = "added",
                                        [GGTOK_HOW_AFTER] = "added",
                                        [GGTOK_HOW_SPECIAL] = "special",
                                        [GGTOK_HOW_WHOLE_WORD] = "whole word",
                                        [GGTOK_HOW_MERGED] = "merged",
                                        [GGTOK_HOW_SYMBOL] = "symbol",
                                        [GGTOK_HOW_BYTE] = "byte",
                                        [GGTOK_HOW_LONGEST_MATCH] = "longest match",
                                        [GGTOK_HOW_BEST_PATH] = "best path",
                                        [GGTOK_HOW_UNKNOWN] = "unknown",
                                        [GGTOK_HOW_KMER] = "k-mer",
                                        [GGTOK_HOW_TAG] = "tag",
                                        [GGTOK_HOW_HASH] = "hash"};
    return (unsigned)how <= GGTOK_HOW_HASH ? names[how] : NULL;
}

/* ---- notes ---- */

/* Returns the number of bytes that aren't part of a character. `shortest`: overlong forms aren't
 * characters. */
static size_t malformed(const uint8_t *text, size_t n, bool shortest) {
    size_t count = 0;
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cpt;
        len = shortest ? ggtok_utf8_decode_shortest(text + i, text + n, &cpt)
                       : ggtok_utf8_decode(text + i, text + n, &cpt);
        count += cpt == UTF8_REPLACEMENT && len == 1;
    }
    return count;
}

/* Adds remarks about the normalization of raw text. `prefix`: whether the raw text is at the start
 * of the text or follows a special token. */
static bool note_raw(tracer *t, const uint8_t *text, size_t n, bool prefix) {
    const vocab *v = &t->ctx->tok->v;
    const bool wpm = v->type == GGTOK_VOCAB_WPM, ugm = v->type == GGTOK_VOCAB_UGM;
    const bool white = v->type == GGTOK_VOCAB_BPE && !strcmp(v->model, "whitespace");
    if (v->type == GGTOK_VOCAB_RWKV || v->type == GGTOK_VOCAB_TEST) return true;
    if (v->type == GGTOK_VOCAB_SPM) {
        bool space = prefix && v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX];
        return (!space || note(t, "add_space_prefix: a space is inserted before it")) &&
               ((!space && !memchr(text, ' ', n)) || note(t, "spaces become U+2581"));
    }
    const bool nfc = ugm && v->flag[GGTOK_FLAG_NFC];
    size_t bad = malformed(text, n, nfc);
    char count[96];
    snprintf(count, sizeof count, "bytes that aren't UTF-8: %llu; each %s", (unsigned long long)bad,
             wpm ? "is dropped" : "becomes U+FFFD");
    const struct {
        bool holds;
        const char *text;
    } notes[] = {
        {bad, count},
        {v->type == GGTOK_VOCAB_BPE && v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES],
         "escape_whitespaces: spaces become U+2581"},
        {white, "white space is dropped"},
        {white && v->flag[GGTOK_FLAG_LOWERCASE], "lowercase: letters are lower-cased"},
        {wpm, "white space and control characters are dropped; a U+2581 begins each word"},
        {wpm && v->flag[GGTOK_FLAG_STRIP_ACCENTS], "strip_accents: accents are dropped"},
        {wpm && v->flag[GGTOK_FLAG_LOWERCASE], "lowercase: letters are lower-cased"},
        {nfc, "normalizer.nfc: characters are composed (Unicode NFC)"},
        {ugm && t->normalized && v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX],
         "add_space_prefix: a space is inserted before it"},
        {ugm && t->normalized && v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES],
         "escape_whitespaces: spaces become U+2581"},
        {ugm && t->normalized && v->flag[GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES],
         "remove_extra_whitespaces: repeated spaces become one, and spaces at the end are removed"},
    };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        if (notes[i].holds && !note(t, notes[i].text)) return false;
    }
    return true;
}

static bool note_stripped(tracer *t, const char *flag, size_t n, const char *where) {
    char text[96];
    snprintf(text, sizeof text, "%s: it strips %llu byte%s of white space %s it", flag,
             (unsigned long long)n, n == 1 ? "" : "s", where);
    return !n || note(t, text);
}

static bool note_token(tracer *t, uint32_t id) {
    const vocab *v = &t->ctx->tok->v;
    const uint32_t attr = v->attr[id];
    gguf_view text = vocab_text(v, id);
    const struct {
        bool holds;
        const char *text;
    } notes[] = {
        {attr & GGTOK_ATTR_CONTROL,
         "a control token: parsed before any merge, if control tokens are parsed"},
        {attr & GGTOK_ATTR_USER_DEFINED, "a user-defined token: always parsed, before any merge"},
        {attr & GGTOK_ATTR_UNKNOWN, "the unknown token"},
        {attr & GGTOK_ATTR_BYTE,
         "a byte token: used for a byte of text that isn't part of another token"},
        {ggtok_vocab_find(v, text.p, text.n) != (int32_t)id,
         "it is a k-mer, which is only used between <dna> and </dna>"},
    };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        if (notes[i].holds && !note(t, notes[i].text)) return false;
    }
    return true;
}

/* ---- a text ---- */

/* Reports the token that is added before or after the text. */
static bool report_added(tracer *t, int32_t id, bool before) {
    ggtok_context *ctx = t->ctx;
    const char *why = ctx->tok->v.type == GGTOK_VOCAB_WPM
                          ? "a WPM vocabulary puts CLS and SEP around every text"
                      : before ? "BOS, because the vocabulary's add_bos is on"
                               : "EOS, because the vocabulary's add_eos is on";
    ggtok_trace_event e = {.kind = GGTOK_TRACE_TOKEN,
                           .how = before ? GGTOK_HOW_BEFORE : GGTOK_HOW_AFTER,
                           .id = id,
                           .note = trace_note(why)};
    e.begin = e.end = before ? 0 : ctx->n;
    return report(t, &e);
}

static bool report_special(tracer *t, size_t i) {
    const ggtok_context *ctx = t->ctx;
    const ggtok_part *part = &ctx->parts[i];
    const int32_t id = ctx->ids.data[part->first];
    const size_t begin = ggtok_part_boundary(ctx, i), end = ggtok_part_boundary(ctx, i + 1);
    const bool user = ctx->tok->v.attr[id] & GGTOK_ATTR_USER_DEFINED;
    ggtok_trace_event e = {.kind = GGTOK_TRACE_SPECIAL, .begin = begin, .end = end};
    e.text = (ggtok_bytes){(const char *)ctx->text + part->pos, part->n};
    ggtok_trace_event token = {.kind = GGTOK_TRACE_TOKEN, .how = GGTOK_HOW_SPECIAL, .id = id};
    token.begin = begin, token.end = end;
    token.note = trace_note(user ? "a user-defined token, which is always parsed"
                                 : "a control token, parsed because parse_special is on");
    return report(t, &e) && report(t, &token) &&
           note_stripped(t, "LSTRIP", part->pos - begin, "before") &&
           note_stripped(t, "RSTRIP", end - (part->pos + part->n), "after");
}

/* Encodes a raw fragment again and reports its steps. */
static ggtok_status report_raw(tracer *t, trace *inner, model_call *call, const ggtok_part *part) {
    ggtok_context *ctx = t->ctx;
    recorder *rec = &ctx->recorder;
    const uint8_t *text = ctx->text + part->pos;
    ggtok_trace_event e = {.kind = GGTOK_TRACE_RAW, .begin = part->pos, .end = part->pos + part->n};
    e.text = (ggtok_bytes){(const char *)text, part->n};
    t->normalized = 0;
    if (!report(t, &e) || !ggtok_recorder_begin_spans(rec, call->v, text, part->n))
        return ggtok_call_failed(call);
    inner->base = part->pos;
    inner->marks = false;
    rec->trace = inner;
    call->recorder = rec;
    ctx->reencoded.n = 0;
    ggtok_status s = ctx->tok->ops->encode_recorded(call, text, part->n);
    rec->trace = NULL;
    if (s) return s;
    const size_t size = part->n_ids * sizeof *ctx->ids.data;
    if (ctx->reencoded.n != part->n_ids ||
        (size && memcmp(ctx->reencoded.data, ctx->ids.data + part->first, size))) {
        return ggtok_error_set(call->err, GGTOK_ERR_ARGUMENT,
                               "the text has different ids when it is encoded again");
    }
    return note_raw(t, text, part->n, call->after_special) ? GGTOK_OK : ggtok_call_failed(call);
}

static ggtok_status report_text(tracer *t, trace *inner) {
    ggtok_context *ctx = t->ctx;
    const ggtok_ids ids = {ctx->ids.data, ctx->ids.n};
    size_t n = ctx->partition.now.n, k = 0;
    model_call call = ggtok_context_call(ctx, ctx->flags, t->err);
    call.out = &ctx->reencoded;
    if (ggtok_adds_before(ctx) && !report_added(t, ids.data[k++], true))
        return ggtok_call_failed(&call);
    for (size_t i = 0; i < n; i++) {
        const ggtok_part *part = &ctx->parts[i];
        ggtok_status s = !part->special         ? report_raw(t, inner, &call, part)
                         : report_special(t, i) ? GGTOK_OK
                                                : ggtok_call_failed(&call);
        if (s) return s;
        call.after_special = part->special;
        k = part->first + part->n_ids;
    }
    if (k < ids.n && !report_added(t, ids.data[k], false)) return ggtok_call_failed(&call);
    return GGTOK_OK;
}

ggtok_status ggtok_trace(ggtok_context *ctx, const char *text, size_t n, unsigned flags,
                         size_t max_events, ggtok_trace_fn fn, void *user, ggtok_ids *out,
                         ggtok_error *err) {
    if (out) *out = (ggtok_ids){NULL, 0};
    if (n > GGTOK_TRACE_BYTES) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                               "the text has %llu bytes, and at most %d can be traced",
                               (unsigned long long)n, GGTOK_TRACE_BYTES);
    }
    ggtok_status s =
        ggtok_encode_text(ctx, (const uint8_t *)text, n, flags | GGTOK_SPANS, NULL, err);
    if (s) return s;
    tracer t = tracer_of(ctx, max_events, fn, user, err);
    trace inner = {.fn = report, .user = &t};
    s = report_text(&t, &inner);
    free_trace(&inner);
    if (!s && out) *out = (ggtok_ids){ctx->ids.data, ctx->ids.n};
    return s;
}

/* ---- a token ---- */

static ggtok_status report_token(tracer *t, trace *inner, uint32_t id, ggtok_token_trace *out) {
    ggtok_context *ctx = t->ctx;
    const vocab *v = &ctx->tok->v;
    recorder *rec = &ctx->recorder;
    gguf_view text = vocab_text(v, id);
    model_call call = ggtok_context_call(ctx, 0, t->err);
    call.out = &ctx->ids;
    call.recorder = rec;
    ctx->ids.n = 0;
    if (!ggtok_recorder_begin_spans(rec, v, text.p, text.n) || !note_token(t, id))
        return ggtok_call_failed(&call);
    rec->trace = inner;
    ggtok_status s = ctx->tok->ops->trace_token(&call, id, out);
    rec->trace = NULL;
    out->reached &= ctx->ids.n == 1 && ctx->ids.data[0] == (int32_t)id;
    return s;
}

ggtok_status ggtok_trace_token(ggtok_context *ctx, int32_t id, size_t max_events, ggtok_trace_fn fn,
                               void *user, ggtok_token_trace *out, ggtok_error *err) {
    ggtok_bytes text;
    *out = (ggtok_token_trace){.reached = false};
    ggtok_status s = ggtok_token_text(ctx->tok, id, &text, err);
    if (s) return s;
    if (!ctx->tok->ops->trace_token) {
        return ggtok_error_set(err, GGTOK_ERR_UNSUPPORTED,
                               "the vocabulary has no merges; only BPE and SPM have");
    }
    if (text.n > GGTOK_TRACE_BYTES) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                               "token %ld has %llu bytes, and at most %d can be traced", (long)id,
                               (unsigned long long)text.n, GGTOK_TRACE_BYTES);
    }
    tracer t = tracer_of(ctx, max_events, fn, user, err);
    trace inner = {.fn = report, .user = &t};
    s = report_token(&t, &inner, (uint32_t)id, out);
    free_trace(&inner);
    return s;
}
