/* First half of loading: model, pre-tokenizer and its flags, token texts, scores, types. See
 * vocab/special.c for the second half. */
#include "vocab/vocab.h"
#include "vocab/keys.h"

#include <stdarg.h>
#include <stdio.h>

/* llama.cpp's defaults for each model, applied before it reads the file's keys. */
typedef struct model_row {
    const char *name; /* value of tokenizer.ggml.model */
    ggtok_vocab_type type;
    int32_t bos, eos, unk, sep, pad, mask;
    bool add_space_prefix, add_bos, add_eos, add_sep;
} model_row;

/* clang-format off */
static const model_row model_rows[] = {
    /*                                  bos eos unk sep pad mask  space  bos    eos    sep */
    {"no_vocab",   GGTOK_VOCAB_NONE,    -1, -1, -1, -1, -1, -1,   false, false, false, false},
    {"none",       GGTOK_VOCAB_NONE,    -1, -1, -1, -1, -1, -1,   false, false, false, false},
    {"llama",      GGTOK_VOCAB_SPM,      1,  2,  0, -1, -1, -1,   true,  true,  false, false},
    {"bert",       GGTOK_VOCAB_WPM,    101, -1, 100, 102, 0, 103, false, true,  false, true},
    {"gpt2",       GGTOK_VOCAB_BPE,     11, 11, -1, -1, -1, -1,   false, false, false, false},
    {"hybriddna",  GGTOK_VOCAB_BPE,     11, 11, -1, -1, -1, -1,   false, false, false, false},
    {"whitespace", GGTOK_VOCAB_BPE,     11, 11, -1, -1, -1, -1,   false, false, false, false},
    {"gemma4",     GGTOK_VOCAB_BPE,     -1, -1, -1, -1, -1, -1,   false, false, false, false},
    {"t5",         GGTOK_VOCAB_UGM,     -1,  1,  2, -1,  0, -1,   false, false, true,  false},
    {"rwkv",       GGTOK_VOCAB_RWKV,    -1, -1, -1, -1, -1, -1,   false, false, false, false},
    {"plamo2",     GGTOK_VOCAB_PLAMO2,   1,  2,  0, -1,  3, -1,   false, false, false, false},
    {"plamo3",     GGTOK_VOCAB_PLAMO3,   1,  2,  0, -1,  3, -1,   false, false, false, false},
    {"test",       GGTOK_VOCAB_TEST,    -1, -1, -1, -1, -1, -1,   false, false, false, false},
};
/* clang-format on */

static ggtok_status missing(const char *key, const char *what, ggtok_error *err) {
    return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, key, strlen(key), GGTOK_NO_OFFSET,
                              "the file has no key '%s': %s", key, what);
}

/* ---- model and pre-tokenizer ---- */

static void apply_model(vocab *v, const model_row *row) {
    v->type = row->type;
    for (int i = 0; i < GGTOK_N_SPECIAL; i++) v->special[i] = GGTOK_NO_TOKEN;
    v->special[GGTOK_BOS] = row->bos;
    v->special[GGTOK_EOS] = row->eos;
    v->special[GGTOK_UNK] = row->unk;
    v->special[GGTOK_SEP] = row->sep;
    v->special[GGTOK_PAD] = row->pad;
    v->special[GGTOK_MASK] = row->mask;
    v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX] = row->add_space_prefix;
    v->flag[GGTOK_FLAG_ADD_BOS] = row->add_bos;
    v->flag[GGTOK_FLAG_ADD_EOS] = row->add_eos;
    v->flag[GGTOK_FLAG_ADD_SEP] = row->add_sep;
    v->flag[GGTOK_FLAG_CLEAN_SPACES] = row->type == GGTOK_VOCAB_WPM;
    v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES] = true;
    v->flag[GGTOK_FLAG_LOWERCASE] = true;
    v->flag[GGTOK_FLAG_STRIP_ACCENTS] = true;
}

/* Files that accompany a model, recognized by the value of a key. */
static const struct {
    const char *key, *value, *what;
} companions[] = {
    {KEY_ARCHITECTURE, "clip", "it is a multimodal projector (mmproj)"},
    {KEY_KIND, "mmproj", "it is a multimodal projector (mmproj)"},
    {KEY_KIND, "adapter", "it is an adapter (LoRA)"},
    {KEY_KIND, "imatrix", "it is an importance matrix (imatrix)"},
    {KEY_ARCHITECTURE, "controlvector", "it is a control vector"},
};

/* The error for a file without a vocabulary, which says what the file is instead, if known. */
static ggtok_status no_vocabulary(vocab_keys *k, ggtok_error *err) {
    for (size_t i = 0; i < sizeof companions / sizeof *companions; i++) {
        const char *value = companions[i].value;
        gguf_view text;
        bool found;
        if (ggtok_vocab_key_string(k, companions[i].key, &text, &found, err)) continue;
        if (!found || text.n != strlen(value) || memcmp(text.p, value, text.n)) continue;
        char what[128];
        snprintf(what, sizeof what, "%s, which has no vocabulary: name its model's file",
                 companions[i].what);
        return missing(KEY_MODEL, what, err);
    }
    return missing(KEY_MODEL, "it holds no vocabulary", err);
}

static ggtok_status load_model(vocab *v, vocab_keys *k, ggtok_error *err) {
    gguf_view name;
    bool found;
    ggtok_status s = ggtok_vocab_key_string(k, KEY_MODEL, &name, &found, err);
    if (s) return s;
    if (!found) return no_vocabulary(k, err);
    for (size_t i = 0; i < sizeof model_rows / sizeof model_rows[0]; i++) {
        const char *known = model_rows[i].name;
        if (strlen(known) != name.n || memcmp(known, name.p, name.n)) continue;
        v->model = known;
        apply_model(v, &model_rows[i]);
        return GGTOK_OK;
    }
    return ggtok_error_set_at(
        err, GGTOK_ERR_VOCAB, KEY_MODEL, strlen(KEY_MODEL), GGTOK_NO_OFFSET,
        "key '%s' names the tokenizer model '%.*s', which llama.cpp does not know", KEY_MODEL,
        (int)(name.n > 64 ? 64 : name.n), (const char *)name.p);
}

static ggtok_status load_pre(vocab *v, vocab_keys *k, const ggtok_load_options *options,
                             ggtok_error *err) {
    gguf_view name;
    bool found;
    ggtok_status s = ggtok_vocab_key_string(k, KEY_PRE, &name, &found, err);
    if (s) return s;
    if (options && options->pre) {
        name = (gguf_view){(const uint8_t *)options->pre, strlen(options->pre)};
    } else if (!strcmp(v->model, "gemma4")) {
        name = (gguf_view){(const uint8_t *)"gemma4", 6};
    } else if (options && options->split && !ggtok_pretok_find((const char *)name.p, name.n)) {
        name = (gguf_view){(const uint8_t *)"default", 7}; /* the caller splits text into words */
    } else if (!name.n) {
        name = (gguf_view){(const uint8_t *)"default", 7};
        if (!ggtok_warnings_add(
                &v->warnings,
                "the file names no pre-tokenizer (key '%s'): 'default' is used, as in "
                "llama.cpp, and ids may differ from what the model was trained on",
                KEY_PRE)) {
            return ggtok_error_memory(err);
        }
    }
    v->pre = ggtok_pretok_find((const char *)name.p, name.n);
    if (!v->pre) {
        return ggtok_error_pre(err, (const char *)name.p, name.n, KEY_PRE);
    }
    unsigned f = ggtok_pretok_flags(v->pre);
    v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX] = false;
    v->flag[GGTOK_FLAG_ESCAPE_WHITESPACES] = (f & PRETOK_ESCAPE_WHITESPACES) != 0;
    v->flag[GGTOK_FLAG_CLEAN_SPACES] = !(f & PRETOK_KEEP_SPACES);
    v->flag[GGTOK_FLAG_IGNORE_MERGES] = (f & PRETOK_IGNORE_MERGES) != 0;
    if (f & PRETOK_ADD_BOS) v->flag[GGTOK_FLAG_ADD_BOS] = true;
    if (f & PRETOK_ADD_SEP) v->flag[GGTOK_FLAG_ADD_SEP] = true;
    if (f & PRETOK_NO_BOS) v->special[GGTOK_BOS] = GGTOK_NO_TOKEN;
    if (f & PRETOK_CASED) v->flag[GGTOK_FLAG_LOWERCASE] = false;
    return GGTOK_OK;
}

/* Loads a file without a vocabulary, which may still specify the number of ids of its model. */
static ggtok_status load_none(vocab *v, vocab_keys *k, ggtok_error *err) {
    gguf_view arch;
    bool found;
    ggtok_status s = ggtok_vocab_key_string(k, KEY_ARCHITECTURE, &arch, &found, err);
    if (s || arch.n > 64) return s;
    char key[96];
    snprintf(key, sizeof key, "%.*s.vocab_size", (int)arch.n, (const char *)arch.p);
    return ggtok_vocab_key_u32(k, key, &v->n_tokens, &found, err);
}

/* ---- tokens ---- */

/* Copies the token texts, each up to its first NUL, into one arena. */
static ggtok_status load_texts(vocab *v, const gguf *g, const gguf_kv *tokens, ggtok_error *err) {
    enum { EMPTY_NAME = 24 };
    uint32_t n = v->n_tokens, n_empty = 0;
    uint64_t total = tokens->end - tokens->value - 8 * (uint64_t)n;
    size_t pos = tokens->value;
    for (uint32_t i = 0; i < n; i++) {
        gguf_view t = ggtok_gguf_next_string(g, &pos);
        if (!t.n || !t.p[0]) n_empty++;
    }
    total += (uint64_t)n_empty * EMPTY_NAME;
    if (total > UINT32_MAX) {
        return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS),
                                  tokens->value, "the token texts (key '%s') hold more than 4 GiB",
                                  KEY_TOKENS);
    }
    v->text = ggtok_mem_alloc((size_t)total);
    v->text_off = ggtok_mem_alloc(mem_mul((size_t)n + 1, sizeof *v->text_off));
    if (!v->text || !v->text_off) return ggtok_error_memory(err);
    uint8_t *out = v->text;
    pos = tokens->value;
    for (uint32_t i = 0; i < n; i++) {
        gguf_view t = ggtok_gguf_until_nul(ggtok_gguf_next_string(g, &pos));
        v->text_off[i] = (uint32_t)(out - v->text);
        if (t.n) {
            memcpy(out, t.p, t.n);
        } else {
            char name[EMPTY_NAME];
            t.n = (size_t)snprintf(name, sizeof name, "[EMPTY_%lu]", (unsigned long)i);
            memcpy(out, name, t.n);
        }
        out += t.n;
    }
    v->text_off[n] = (uint32_t)(out - v->text);
    if (n_empty && !ggtok_warnings_add(&v->warnings,
                                       "%lu tokens have empty texts; they are named [EMPTY_<id>]",
                                       (unsigned long)n_empty)) {
        return ggtok_error_memory(err);
    }
    return GGTOK_OK;
}

static ggtok_status index_texts(vocab *v, const gguf_kv *tokens, ggtok_error *err) {
    uint32_t dup, first = 0;
    if (!ggtok_token_map_build(&v->by_text, v->text, v->text_off, v->n_tokens, &dup, &first)) {
        return ggtok_error_memory(err);
    }
    if (dup == v->n_tokens) return GGTOK_OK;
    return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS), tokens->value,
                              "tokens %lu and %lu have the same text (key '%s')",
                              (unsigned long)first, (unsigned long)dup, KEY_TOKENS);
}

static ggtok_status too_short(const gguf_kv *kv, const char *key, uint32_t n, ggtok_error *err) {
    return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, key, strlen(key), kv->value,
                              "key '%s' has %llu elements for %lu tokens", key,
                              (unsigned long long)kv->count, (unsigned long)n);
}

static ggtok_status load_scores(vocab *v, const gguf *g, ggtok_error *err) {
    const gguf_kv *kv;
    ggtok_status s = ggtok_vocab_array_of(g, KEY_SCORES, 1u << GGTOK_F32 | 1u << GGTOK_I32,
                                          "array of f32 or i32", &kv, err);
    if (s) return s;
    v->score = ggtok_mem_zalloc(mem_mul(v->n_tokens, sizeof *v->score));
    if (!v->score) return ggtok_error_memory(err);
    if (!kv) return GGTOK_OK;
    if (kv->count < v->n_tokens) return too_short(kv, KEY_SCORES, v->n_tokens, err);
    for (uint32_t i = 0; i < v->n_tokens; i++) {
        v->score[i] = kv->elem == GGTOK_F32 ? ggtok_gguf_f32_at(g, kv, i)
                                            : (float)ggtok_gguf_i32_at(g, kv, i);
    }
    return GGTOK_OK;
}

static ggtok_status load_types(vocab *v, const gguf *g, ggtok_error *err) {
    /* llama_token_type -> attributes; other numbers are UNDEFINED */
    /* clang-format off */
    static const uint32_t attr_of_type[] = {
        GGTOK_ATTR_UNDEFINED, GGTOK_ATTR_NORMAL,       GGTOK_ATTR_UNKNOWN,
        GGTOK_ATTR_CONTROL | VOCAB_RESERVED,
        GGTOK_ATTR_USER_DEFINED, GGTOK_ATTR_UNUSED, GGTOK_ATTR_BYTE,
    };
    /* clang-format on */
    const gguf_kv *kv;
    ggtok_status s = ggtok_vocab_array_of(g, KEY_TYPES, 1u << GGTOK_I32, "array of i32", &kv, err);
    if (s) return s;
    v->attr = ggtok_mem_alloc(mem_mul(v->n_tokens, sizeof *v->attr));
    if (!v->attr) return ggtok_error_memory(err);
    if (kv && kv->count < v->n_tokens) return too_short(kv, KEY_TYPES, v->n_tokens, err);
    uint32_t unknown = 0, first = 0; /* number of tokens of unknown types, and the first */
    for (uint32_t i = 0; i < v->n_tokens; i++) {
        uint32_t type = kv ? (uint32_t)ggtok_gguf_i32_at(g, kv, i) : 1;
        const bool known = type < sizeof attr_of_type / sizeof *attr_of_type;
        v->attr[i] = known ? attr_of_type[type] : GGTOK_ATTR_UNDEFINED;
        if (!known && !unknown++) first = i;
    }
    if (unknown && !ggtok_warnings_add(
                       &v->warnings,
                       "key '%s': this version doesn't know the type %ld of token %lu (one of %lu "
                       "such tokens): ids may differ from those of newer builds of llama.cpp; use "
                       "a newer ggtok",
                       KEY_TYPES, (long)ggtok_gguf_i32_at(g, kv, first), (unsigned long)first,
                       (unsigned long)unknown)) {
        return ggtok_error_memory(err);
    }
    return GGTOK_OK;
}

ggtok_status ggtok_vocab_load_tokens(vocab *v, vocab_keys *k, const ggtok_load_options *options,
                                     ggtok_error *err) {
    const gguf *g = k->g;
    const gguf_kv *kv;
    uint32_t type_count;
    bool found;
    ggtok_status s;
    if ((s = load_model(v, k, err))) return s;
    if ((s = ggtok_vocab_key_u32(k, KEY_TYPE_COUNT, &type_count, &found, err))) return s;
    if (v->type == GGTOK_VOCAB_NONE) return load_none(v, k, err);
    if (v->type == GGTOK_VOCAB_BPE && (s = load_pre(v, k, options, err))) return s;
    if (v->type != GGTOK_VOCAB_BPE && options && (options->pre || options->split)) {
        return ggtok_error_set(
            err, GGTOK_ERR_ARGUMENT,
            "a pre-tokenizer was given, but only BPE vocabularies have one (this one "
            "is '%s')",
            v->model);
    }
    if ((s = ggtok_vocab_key_bool(k, KEY_ADD_SPACE_PREFIX, &v->flag[GGTOK_FLAG_ADD_SPACE_PREFIX],
                                  err)) ||
        (s = ggtok_vocab_key_bool(k, KEY_REMOVE_EXTRA_WS,
                                  &v->flag[GGTOK_FLAG_REMOVE_EXTRA_WHITESPACES], err)) ||
        (s = ggtok_vocab_array_of(g, KEY_TOKENS, 1u << GGTOK_STRING, "array of string", &kv,
                                  err))) {
        return s;
    }
    if (!kv) return missing(KEY_TOKENS, "it holds no tokens", err);
    if (kv->count > INT32_MAX) {
        return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, KEY_TOKENS, strlen(KEY_TOKENS), kv->value,
                                  "key '%s' has more tokens than there can be ids", KEY_TOKENS);
    }
    v->n_tokens = (uint32_t)kv->count;
    if ((s = load_scores(v, g, err)) || (s = load_types(v, g, err)) ||
        (s = load_texts(v, g, kv, err)) || (s = index_texts(v, kv, err))) {
        return s;
    }
    v->kmer_from = v->n_tokens;
    if (!strcmp(v->model, "hybriddna")) {
        int32_t oov = ggtok_vocab_find(v, "<oov>", 5); /* the k-mers are the tokens after <oov> */
        if (oov >= 0) v->kmer_from = (uint32_t)oov + 1;
    }
    return GGTOK_OK;
}

/* ---- summary ---- */

ggtok_status ggtok_vocab_summarize(const gguf *g, bool whole, ggtok_summary *out,
                                   ggtok_error *err) {
    vocab v = {0};
    vocab_keys k = {.g = g, .warnings = &v.warnings};
    const gguf_kv *tokens = ggtok_gguf_find(g, KEY_TOKENS);
    gguf_view pre;
    bool found;
    if (!tokens && g->open.key_n == strlen(KEY_TOKENS) &&
        !memcmp(ggtok_gguf_key(g, &g->open).p, KEY_TOKENS, g->open.key_n)) {
        tokens = &g->open;
    }
    out->known = false;
    if (!whole && (!tokens || !ggtok_gguf_find(g, KEY_MODEL))) return GGTOK_OK;
    ggtok_status s = load_model(&v, &k, err);
    if (!s) s = ggtok_vocab_key_string(&k, KEY_PRE, &pre, &found, err);
    if (s) return s;
    if (v.type == GGTOK_VOCAB_NONE) {
        if (!whole) return GGTOK_OK;
        if ((s = load_none(&v, &k, err))) return s;
        out->n_tokens = v.n_tokens;
    } else if (!tokens) {
        return missing(KEY_TOKENS, "it holds no tokens", err);
    } else {
        out->n_tokens = tokens->count;
    }
    out->pre[0] = 0;
    if (v.type == GGTOK_VOCAB_BPE) {
        bool forced = !strcmp(v.model, "gemma4");
        if (!found && !forced && !whole) return GGTOK_OK;
        const char *name = forced ? "gemma4" : pre.n ? (const char *)pre.p : "default";
        snprintf(out->pre, sizeof out->pre, "%.*s", forced || !pre.n ? 63 : (int)pre.n, name);
    }
    snprintf(out->model, sizeof out->model, "%s", v.model);
    out->type = v.type;
    out->known = true;
    return GGTOK_OK;
}

/* ---- look-up ---- */

int32_t ggtok_vocab_find(const vocab *v, const void *text, size_t n) {
    return v->n_tokens ? ggtok_token_map_find(&v->by_text, text, n) : GGTOK_NO_TOKEN;
}

int32_t ggtok_vocab_byte_token(const vocab *v, uint8_t byte) {
    static const char hex[] = "0123456789ABCDEF";
    char name[6] = {'<', '0', 'x', hex[byte >> 4], hex[byte & 15], '>'};
    int32_t id = ggtok_vocab_find(v, name, sizeof name);
    if (id >= 0 || v->type == GGTOK_VOCAB_PLAMO2 || v->type == GGTOK_VOCAB_PLAMO3) return id;
    return byte ? ggtok_vocab_find(v, &byte, 1) : GGTOK_NO_TOKEN; /* no text contains a NUL */
}

/* Returns strtol(p, NULL, 16) of at most two characters, as a byte. Like strtol, accepts leading
 * white space and a sign. */
static int hex_pair(const uint8_t *p, size_t n) {
    int value = 0, sign = 1;
    while (n && (*p == ' ' || (*p >= '\t' && *p <= '\r'))) p++, n--;
    if (n && (*p == '-' || *p == '+')) sign = *p == '-' ? -1 : 1, p++, n--;
    for (; n; p++, n--) {
        int digit = *p >= '0' && *p <= '9'   ? *p - '0'
                    : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10
                    : *p >= 'A' && *p <= 'F' ? *p - 'A' + 10
                                             : -1;
        if (digit < 0) break;
        value = value * 16 + digit;
    }
    return (value * sign) & 0xFF;
}

int ggtok_vocab_token_byte(const vocab *v, uint32_t id) {
    gguf_view t = vocab_text(v, id);
    if (t.n < 3) return -1;
    return hex_pair(t.p + 3, t.n - 3 < 2 ? t.n - 3 : 2);
}

void ggtok_vocab_free(vocab *v) {
    ggtok_mem_free(v->text);
    ggtok_mem_free(v->text_off);
    ggtok_mem_free(v->score);
    ggtok_mem_free(v->attr);
    ggtok_token_map_free(&v->by_text);
    ggtok_mem_free(v->eog.data);
    ggtok_mem_free(v->suppress.data);
    ggtok_mem_free(v->warnings.data);
    memset(v, 0, sizeof *v);
}
