#include "vocab/keys.h"

/* The names of the types in llama_model_kv_override_type. */
static const char *const override_types[] = {"int", "float", "bool", "str"};

/* ---- overrides ---- */

static ggtok_status check_override(const ggtok_override *o, ggtok_error *err) {
    if (!o->key || !o->key[0]) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT, "an override has no key");
    }
    if (strlen(o->key) > GGTOK_OVERRIDE_MAX) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                               "an override's key is longer than 127 bytes: '%.40s...'", o->key);
    }
    if ((unsigned)o->type > GGTOK_OVERRIDE_STR || (o->type == GGTOK_OVERRIDE_STR && !o->str)) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                               "the override of '%s' has no type or no value", o->key);
    }
    if (o->type == GGTOK_OVERRIDE_STR && strlen(o->str) > GGTOK_OVERRIDE_MAX) {
        return ggtok_error_set(err, GGTOK_ERR_ARGUMENT,
                               "the override of '%s' is longer than 127 bytes, llama.cpp's limit",
                               o->key);
    }
    return GGTOK_OK;
}

ggtok_status ggtok_vocab_keys_open(vocab_keys *k, const ggtok_load_options *options,
                                   ggtok_error *err) {
    if (!options || !options->n_overrides) return GGTOK_OK;
    k->overrides = options->overrides;
    k->n_overrides = options->n_overrides;
    for (size_t i = 0; i < k->n_overrides; i++) {
        ggtok_status s = check_override(&k->overrides[i], err);
        if (s) return s;
    }
    k->met = ggtok_mem_zalloc(mem_mul(k->n_overrides, sizeof *k->met));
    return k->met ? GGTOK_OK : ggtok_error_memory(err);
}

/* Warns about unused overrides whose keys begin with "tokenizer.", which llama.cpp doesn't. Other
 * keys may be read by the rest of the model, but an override of a tokenizer key that the tokenizer
 * doesn't read is a mistake. */
ggtok_status ggtok_vocab_keys_close(vocab_keys *k, ggtok_error *err) {
    static const char prefix[] = "tokenizer.";
    for (size_t i = 0; i < k->n_overrides; i++) {
        const char *key = k->overrides[i].key;
        if (k->met[i] || strncmp(key, prefix, sizeof prefix - 1) != 0) continue;
        if (!ggtok_warnings_add(
                k->warnings,
                "the override of '%s' has no effect: this vocabulary reads no such scalar "
                "(or the key is overridden twice; the first override applies)",
                key)) {
            return ggtok_error_memory(err);
        }
    }
    return GGTOK_OK;
}

void ggtok_vocab_keys_free(vocab_keys *k) {
    ggtok_mem_free(k->met);
    k->met = NULL;
}

/* ---- unknown keys ---- */

/* The keys after KEY_PREFIX that this version knows. */
static const char *const known_keys[] = {
    "model",
    "pre",
    "tokens",
    "token_type",
    "scores",
    "merges",
    /* Flags and normalizers. Builds since b11739 (not b11549) read normalizer.nfc. */
    "add_bos_token",
    "add_eos_token",
    "add_sep_token",
    "add_space_prefix",
    "remove_extra_whitespaces",
    "precompiled_charsmap",
    "normalizer.lowercase",
    "normalizer.strip_accents",
    "normalizer.nfc",
    /* Special tokens; the last row has the old names of FIM tokens. */
    "bos_token_id",
    "eos_token_id",
    "eot_token_id",
    "eom_token_id",
    "unknown_token_id",
    "seperator_token_id",
    "padding_token_id",
    "mask_token_id",
    "suppress_tokens",
    "fim_pre_token_id",
    "fim_suf_token_id",
    "fim_mid_token_id",
    "fim_pad_token_id",
    "fim_rep_token_id",
    "fim_sep_token_id",
    "prefix_token_id",
    "suffix_token_id",
    "middle_token_id",
    /* No effect on ids: llama-vocab.cpp only stores the number of token types (for BERT's
     * embeddings); llama-arch.cpp names the id of CLS, but nothing reads it, since CLS is BOS. */
    "token_type_count",
    "cls_token_id",
};

bool ggtok_vocab_knows_key(const char *key, size_t n) {
    const size_t prefix = sizeof KEY_PREFIX - 1;
    if (n < prefix || memcmp(key, KEY_PREFIX, prefix) != 0) return false;
    for (size_t i = 0; i < sizeof known_keys / sizeof *known_keys; i++) {
        const size_t own = strlen(known_keys[i]);
        if (own == n - prefix && !memcmp(known_keys[i], key + prefix, own)) return true;
    }
    return false;
}

ggtok_status ggtok_vocab_warn_of_keys(const vocab_keys *k, ggtok_error *err) {
    enum { MOST = 16 }; /* maximum number of keys to name */
    const size_t prefix = sizeof KEY_PREFIX - 1;
    size_t n = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < k->g->n_parsed; i++) {
        const gguf_view key = ggtok_gguf_key(k->g, &k->g->kv[i]);
        if (key.n < prefix || memcmp(key.p, KEY_PREFIX, prefix) != 0) continue;
        if (ggtok_vocab_knows_key((const char *)key.p, key.n) || n++ >= MOST) continue;
        ok = ggtok_warnings_add(k->warnings,
                                "this version doesn't know the key '%.*s': ids may differ from "
                                "those of newer builds of llama.cpp; use a newer ggtok",
                                (int)(key.n > 128 ? 128 : key.n), (const char *)key.p);
    }
    if (ok && n > MOST) {
        ok = ggtok_warnings_add(k->warnings, "this version doesn't know %llu more keys '%s*'",
                                (unsigned long long)(n - MOST), KEY_PREFIX);
    }
    return ok ? GGTOK_OK : ggtok_error_memory(err);
}

/* ---- overridden values ---- */

/* Sets *o to the override for `key` if there is one of this type, otherwise to NULL, so that the
 * file's value applies. An override of another type causes a warning, as in llama.cpp (which warns
 * at each read; this warns once). */
static ggtok_status override_of(vocab_keys *k, const char *key, ggtok_override_type type,
                                const ggtok_override **o, ggtok_error *err) {
    *o = NULL;
    for (size_t i = 0; i < k->n_overrides; i++) {
        const ggtok_override *candidate = &k->overrides[i];
        if (strcmp(candidate->key, key) != 0) continue;
        bool met = k->met[i];
        k->met[i] = true;
        if (candidate->type == type) {
            *o = candidate;
        } else if (!met && !ggtok_warnings_add(
                               k->warnings,
                               "the override of '%s' must be of type %s, not %s: it is "
                               "ignored, as in llama.cpp",
                               key, override_types[type], override_types[candidate->type])) {
            return ggtok_error_memory(err);
        }
        break;
    }
    return GGTOK_OK;
}

/* ---- reading: a missing key is allowed, a wrong type is an error, as in llama.cpp ---- */

static ggtok_status wrong_type(const gguf *g, const gguf_kv *kv, const char *want,
                               ggtok_error *err) {
    gguf_view key = ggtok_gguf_key(g, kv);
    return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, key.p, key.n, kv->value,
                              "key '%.*s' has type %s%s%s, but must be %s", (int)key.n,
                              (const char *)key.p, ggtok_gguf_type_name(kv->type),
                              kv->type == GGTOK_ARRAY ? " of " : "",
                              kv->type == GGTOK_ARRAY ? ggtok_gguf_type_name(kv->elem) : "", want);
}

static ggtok_status key_of(const gguf *g, const char *key, ggtok_value_type type,
                           const gguf_kv **kv, ggtok_error *err) {
    *kv = ggtok_gguf_find(g, key);
    if (*kv && (*kv)->type != type) return wrong_type(g, *kv, ggtok_gguf_type_name(type), err);
    return GGTOK_OK;
}

ggtok_status ggtok_vocab_array_of(const gguf *g, const char *key, unsigned elems, const char *want,
                                  const gguf_kv **kv, ggtok_error *err) {
    *kv = ggtok_gguf_find(g, key);
    if (*kv && ((*kv)->type != GGTOK_ARRAY || !(elems >> (*kv)->elem & 1))) {
        return wrong_type(g, *kv, want, err);
    }
    return GGTOK_OK;
}

ggtok_status ggtok_vocab_key_u32(vocab_keys *k, const char *key, uint32_t *value, bool *found,
                                 ggtok_error *err) {
    const ggtok_override *o;
    const gguf_kv *kv = NULL;
    ggtok_status s = override_of(k, key, GGTOK_OVERRIDE_INT, &o, err);
    if (!s && !o) s = key_of(k->g, key, GGTOK_U32, &kv, err);
    *found = !s && (o || kv);
    if (*found) *value = o ? (uint32_t)o->i64 : (uint32_t)ggtok_gguf_uint(k->g, kv);
    return s;
}

ggtok_status ggtok_vocab_key_bool(vocab_keys *k, const char *key, bool *value, ggtok_error *err) {
    const ggtok_override *o;
    const gguf_kv *kv = NULL;
    ggtok_status s = override_of(k, key, GGTOK_OVERRIDE_BOOL, &o, err);
    if (!s && !o) s = key_of(k->g, key, GGTOK_BOOL, &kv, err);
    if (!s && (o || kv)) *value = o ? o->boolean : ggtok_gguf_uint(k->g, kv) != 0;
    return s;
}

ggtok_status ggtok_vocab_key_string(vocab_keys *k, const char *key, gguf_view *value, bool *found,
                                    ggtok_error *err) {
    const ggtok_override *o;
    const gguf_kv *kv = NULL;
    ggtok_status s = override_of(k, key, GGTOK_OVERRIDE_STR, &o, err);
    if (!s && !o) s = key_of(k->g, key, GGTOK_STRING, &kv, err);
    *found = !s && (o || kv);
    *value = (gguf_view){(const uint8_t *)"", 0};
    if (*found && o) *value = (gguf_view){(const uint8_t *)o->str, strlen(o->str)};
    if (*found && kv) *value = ggtok_gguf_until_nul(ggtok_gguf_string(k->g, kv));
    return s;
}
