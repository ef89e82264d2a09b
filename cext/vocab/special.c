/* Second half of loading: special ids and flags from the file, special tokens recognised by their
 * text, and the resulting attributes and end-of-generation set. The steps are in llama.cpp's order,
 * since later ones depend on earlier ones. */
#include "vocab/special.h"
#include "index/stl_order.h"
#include "vocab/keys.h"
#include "vocab/vocab.h"

/* ---- ids by key ---- */

static const struct {
    const char *key;
    ggtok_special which;
} id_keys[] = {
    {"tokenizer.ggml.bos_token_id", GGTOK_BOS},
    {"tokenizer.ggml.eos_token_id", GGTOK_EOS},
    {"tokenizer.ggml.eot_token_id", GGTOK_EOT},
    {"tokenizer.ggml.eom_token_id", GGTOK_EOM},
    {"tokenizer.ggml.unknown_token_id", GGTOK_UNK},
    {"tokenizer.ggml.seperator_token_id", GGTOK_SEP}, /* the format's own misspelling */
    {"tokenizer.ggml.padding_token_id", GGTOK_PAD},
    {"tokenizer.ggml.mask_token_id", GGTOK_MASK},
    {"tokenizer.ggml.fim_pre_token_id", GGTOK_FIM_PRE},
    {"tokenizer.ggml.fim_suf_token_id", GGTOK_FIM_SUF},
    {"tokenizer.ggml.fim_mid_token_id", GGTOK_FIM_MID},
    {"tokenizer.ggml.fim_pad_token_id", GGTOK_FIM_PAD},
    {"tokenizer.ggml.fim_rep_token_id", GGTOK_FIM_REP},
    {"tokenizer.ggml.fim_sep_token_id", GGTOK_FIM_SEP},
    /* old names of these keys */
    {"tokenizer.ggml.prefix_token_id", GGTOK_FIM_PRE},
    {"tokenizer.ggml.suffix_token_id", GGTOK_FIM_SUF},
    {"tokenizer.ggml.middle_token_id", GGTOK_FIM_MID},
};

static ggtok_status load_ids(vocab *v, vocab_keys *k, ggtok_error *err) {
    bool named[GGTOK_N_SPECIAL] = {false};
    for (size_t i = 0; i < sizeof id_keys / sizeof *id_keys; i++) {
        int32_t *id = &v->special[id_keys[i].which];
        if (*id >= 0 && (uint32_t)*id >= v->n_tokens)
            *id = GGTOK_NO_TOKEN; /* the default id is out of range */
        uint32_t value;
        bool found;
        ggtok_status s = ggtok_vocab_key_u32(k, id_keys[i].key, &value, &found, err);
        if (s) return s;
        if (!found) continue;
        if (value < v->n_tokens) {
            *id = (int32_t)value;
            named[id_keys[i].which] = true;
        } else if (!ggtok_warnings_add(&v->warnings,
                                       "key '%s' is %lu, but the vocabulary has %lu tokens; the "
                                       "default, %ld, is used",
                                       id_keys[i].key, (unsigned long)value,
                                       (unsigned long)v->n_tokens, (long)*id)) {
            return ggtok_error_memory(err);
        }
    }
    v->default_eos = named[GGTOK_EOS] ? GGTOK_NO_TOKEN : v->special[GGTOK_EOS];
    for (int which = 0; which < GGTOK_N_SPECIAL; which++) {
        if (named[which] && v->special[which] == v->default_eos) v->default_eos = GGTOK_NO_TOKEN;
    }
    return GGTOK_OK;
}

static ggtok_status load_flags(vocab *v, vocab_keys *k, ggtok_error *err) {
    ggtok_status s;
    if ((s = ggtok_vocab_key_bool(k, KEY_ADD_BOS, &v->flag[GGTOK_FLAG_ADD_BOS], err)) ||
        (s = ggtok_vocab_key_bool(k, KEY_ADD_EOS, &v->flag[GGTOK_FLAG_ADD_EOS], err)) ||
        (s = ggtok_vocab_key_bool(k, KEY_ADD_SEP, &v->flag[GGTOK_FLAG_ADD_SEP], err)) ||
        (s = ggtok_vocab_key_bool(k, KEY_NFC, &v->flag[GGTOK_FLAG_NFC], err))) {
        return s;
    }
    if (v->pre && (ggtok_pretok_flags(v->pre) & PRETOK_FORCE_BOS) && !v->flag[GGTOK_FLAG_ADD_BOS]) {
        v->flag[GGTOK_FLAG_ADD_BOS] = true;
        if (!ggtok_warnings_add(&v->warnings,
                                "add_bos is turned on, as in llama.cpp for this pre-tokenizer")) {
            return ggtok_error_memory(err);
        }
    }
    if ((s = ggtok_vocab_key_bool(k, KEY_LOWERCASE, &v->flag[GGTOK_FLAG_LOWERCASE], err))) return s;
    v->flag[GGTOK_FLAG_STRIP_ACCENTS] = v->flag[GGTOK_FLAG_LOWERCASE];
    return ggtok_vocab_key_bool(k, KEY_STRIP_ACCENTS, &v->flag[GGTOK_FLAG_STRIP_ACCENTS], err);
}

static ggtok_status load_suppress(vocab *v, const gguf *g, ggtok_error *err) {
    const gguf_kv *kv;
    ggtok_status s =
        ggtok_vocab_array_of(g, KEY_SUPPRESS, 1u << GGTOK_I32, "array of i32", &kv, err);
    if (s || !kv) return s;
    for (size_t i = 0; i < kv->count; i++) {
        int32_t id = ggtok_gguf_i32_at(g, kv, i);
        if (id >= 0 && (uint32_t)id < v->n_tokens && !idbuf_push(&v->suppress, id)) {
            return ggtok_error_memory(err);
        }
    }
    return GGTOK_OK;
}

/* ---- ids by text ---- */

/* Texts by which llama.cpp recognises a special token whose key is absent. */
static const struct {
    ggtok_special which;
    const char *text;
} id_texts[] = {
    {GGTOK_EOT, "<|eot_id|>"},
    {GGTOK_EOT, "<|im_end|>"},
    {GGTOK_EOT, "<|end|>"},
    {GGTOK_EOT, "<end_of_turn>"},
    {GGTOK_EOT, "<|endoftext|>"},
    {GGTOK_EOT, "<|end_of_text|>"},
    {GGTOK_EOT, "<EOT>"},
    {GGTOK_EOT, "_<EOT>"},
    {GGTOK_EOT, "[EOT]"},
    {GGTOK_EOT, "<｜end▁of▁sentence｜>"},
    {GGTOK_EOT, "<end_of_utterance>"},
    {GGTOK_EOM, "<|eom_id|>"},
    {GGTOK_FIM_PRE, "<|fim_prefix|>"},
    {GGTOK_FIM_PRE, "<fim-prefix>"},
    {GGTOK_FIM_PRE, "<fim_prefix>"},
    {GGTOK_FIM_PRE, "<｜fim▁begin｜>"},
    {GGTOK_FIM_PRE, "<PRE>"},
    {GGTOK_FIM_PRE, "▁<PRE>"},
    {GGTOK_FIM_PRE, "<|code_prefix|>"},
    {GGTOK_FIM_PRE, "<|prefix|>"},
    {GGTOK_FIM_PRE, "<|plamo:fim_prefix|>"},
    {GGTOK_FIM_SUF, "<|fim_suffix|>"},
    {GGTOK_FIM_SUF, "<fim-suffix>"},
    {GGTOK_FIM_SUF, "<fim_suffix>"},
    {GGTOK_FIM_SUF, "<｜fim▁hole｜>"},
    {GGTOK_FIM_SUF, "<SUF>"},
    {GGTOK_FIM_SUF, "▁<SUF>"},
    {GGTOK_FIM_SUF, "<|code_suffix|>"},
    {GGTOK_FIM_SUF, "<|suffix|>"},
    {GGTOK_FIM_SUF, "<|plamo:fim_suffix|>"},
    {GGTOK_FIM_MID, "<|fim_middle|>"},
    {GGTOK_FIM_MID, "<fim-middle>"},
    {GGTOK_FIM_MID, "<fim_middle>"},
    {GGTOK_FIM_MID, "<｜fim▁end｜>"},
    {GGTOK_FIM_MID, "<MID>"},
    {GGTOK_FIM_MID, "▁<MID>"},
    {GGTOK_FIM_MID, "<|code_middle|>"},
    {GGTOK_FIM_MID, "<|middle|>"},
    {GGTOK_FIM_MID, "<|plamo:fim_middle|>"},
    {GGTOK_FIM_PAD, "<|fim_pad|>"},
    {GGTOK_FIM_PAD, "<fim-pad>"},
    {GGTOK_FIM_PAD, "<fim_pad>"},
    {GGTOK_FIM_PAD, "<PAD>"},
    {GGTOK_FIM_PAD, "[PAD]"},
    {GGTOK_FIM_REP, "<|fim_repo|>"},
    {GGTOK_FIM_REP, "<|repo_name|>"},
    {GGTOK_FIM_REP, "<fim-repo>"},
    {GGTOK_FIM_REP, "<REPO>"},
    {GGTOK_FIM_REP, "<reponame>"},
    {GGTOK_FIM_SEP, "<|file_sep|>"},
    {GGTOK_FIM_SEP, "<|plamo:file_separator|>"},
};

/* Texts of tokens that end a generation. */
/* clang-format off */
static const char *const eog_texts[] = {
    "<|eot_id|>",   "<|im_end|>",       "<|end|>",
    "<|return|>",   "<|call|>",         "<|flush|>",
    "<|calls|>",    "<end_of_turn>",    "<|endoftext|>",
    "</s>",         "<|eom_id|>",       "<EOT>",
    "_<EOT>",       "[EOT]",            "[EOS]",
    "<|end_of_text|>", "<end_of_utterance>", "<eos>",
    "<turn|>",      "<|tool_response>", "<｜end▁of▁sentence｜>",
    "[e~[",         "<|ifm|im_end|>",
};
/* clang-format on */

static int32_t find_token(const vocab *v, const char *text) {
    return ggtok_vocab_find(v, text, strlen(text));
}

enum { MAX_CANDIDATES = 16 };

static size_t candidates_of(const vocab *v, ggtok_special which, int32_t ids[MAX_CANDIDATES]) {
    size_t n = 0;
    for (size_t i = 0; i < sizeof id_texts / sizeof *id_texts; i++) {
        if (id_texts[i].which != which) continue;
        int32_t id = find_token(v, id_texts[i].text);
        if (id >= 0) ids[n++] = id;
    }
    return n;
}

/* Sets *id to the candidate that comes first when llama.cpp iterates over its map of texts. Returns
 * false if out of memory. */
static bool first_candidate(const vocab *v, const int32_t *ids, size_t n, int32_t *id) {
    size_t first = 0;
    if (n > 1 && !ggtok_stl_map_first(v->text, v->text_off, v->n_tokens, ids, n, &first))
        return false;
    *id = n ? ids[first] : GGTOK_NO_TOKEN;
    return true;
}

bool ggtok_vocab_find_eot(const vocab *v, int32_t *id) {
    int32_t ids[MAX_CANDIDATES];
    return first_candidate(v, ids, candidates_of(v, GGTOK_EOT, ids), id);
}

static bool make_control(vocab *v, int32_t id) {
    if (v->attr[id] & GGTOK_ATTR_CONTROL) return true;
    v->attr[id] |= GGTOK_ATTR_CONTROL;
    gguf_view t = vocab_key(v, (uint32_t)id);
    return ggtok_warnings_add(
        &v->warnings,
        "token %ld '%.*s' looks like a control token but is not marked as one; its "
        "type is overridden, as in llama.cpp",
        (long)id, (int)t.n, (const char *)t.p);
}

static bool detect_ids(vocab *v) {
    for (int which = 0; which < GGTOK_N_SPECIAL; which++) {
        int32_t ids[MAX_CANDIDATES], *id = &v->special[which];
        size_t n;
        if (*id != GGTOK_NO_TOKEN || !(n = candidates_of(v, (ggtok_special)which, ids))) continue;
        if (which == GGTOK_EOT) {
            /* Every EOT text is in eog_texts, so all candidates become control and EOG tokens
             * anyway. Which one is EOT matters only to callers that ask for its id, and deciding
             * takes a pass over the whole vocabulary: see ggtok_vocab_find_eot. */
            *id = n == 1 ? ids[0] : VOCAB_EOT_OPEN;
            continue;
        }
        if (!first_candidate(v, ids, n, id) || !make_control(v, *id)) return false;
    }
    return true;
}

/* Gives control tokens whose text contains "unused" the attribute UNUSED. */
static void mark_unused(vocab *v) {
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (!(v->attr[id] & GGTOK_ATTR_CONTROL)) continue;
        gguf_view t = vocab_key(v, id);
        for (size_t i = 0; i + 6 <= t.n; i++) {
            if (t.p[i] == 'u' && !memcmp(t.p + i, "unused", 6)) {
                v->attr[id] |= GGTOK_ATTR_UNUSED;
                break;
            }
        }
    }
}

/* ---- end of generation ---- */

static size_t eog_at(const vocab *v, int32_t id) { /* index of the first EOG id >= id */
    size_t lo = 0, hi = v->eog.n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (v->eog.data[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool ggtok_vocab_is_eog(const vocab *v, int32_t id) {
    size_t i = eog_at(v, id);
    return i < v->eog.n && v->eog.data[i] == id;
}

static bool add_eog(vocab *v, int32_t id) {
    if (id < 0 || ggtok_vocab_is_eog(v, id)) return true;
    size_t i = eog_at(v, id);
    if (!idbuf_reserve(&v->eog, 1)) return false;
    memmove(v->eog.data + i + 1, v->eog.data + i, (v->eog.n - i) * sizeof *v->eog.data);
    v->eog.data[i] = id;
    v->eog.n++;
    return true;
}

static void remove_eog(vocab *v, int32_t id) {
    size_t i = eog_at(v, id);
    v->eog.n--;
    memmove(v->eog.data + i, v->eog.data + i + 1, (v->eog.n - i) * sizeof *v->eog.data);
}

static bool eog_has(const vocab *v, const char *text) {
    int32_t id = find_token(v, text);
    return id >= 0 && ggtok_vocab_is_eog(v, id);
}

/* Changes a token's attributes, but keeps VOCAB_RESERVED if the file made it a control token. */
static void retype(vocab *v, int32_t id, uint32_t attr) {
    v->attr[id] = attr | (v->attr[id] & VOCAB_RESERVED);
}

static bool warn_of_eog(vocab *v, int32_t id) {
    if (id != v->default_eos) {
        return ggtok_warnings_add(
            &v->warnings,
            "token %ld ends a generation according to the file's keys, but not "
            "according to its text: the tokenizer's configuration may be "
            "wrong",
            (long)id);
    }
    gguf_view t = vocab_key(v, (uint32_t)id);
    return ggtok_warnings_add(&v->warnings,
                              "the file names no EOS token (key 'tokenizer.ggml.eos_token_id'): "
                              "token %ld '%.*s' is used, "
                              "llama.cpp's default",
                              (long)id, (int)t.n, (const char *)t.p);
}

static bool collect_eog(vocab *v) {
    static const ggtok_special of_fim[] = {GGTOK_FIM_PAD, GGTOK_FIM_REP, GGTOK_FIM_SEP};
    static const ggtok_special of_end[] = {GGTOK_EOS, GGTOK_EOT, GGTOK_EOM};
    static const char *const harmony[] = {"<|channel|>", "<|message|>", "<|start|>",
                                          "<|constrain|>"};
    for (size_t i = 0; i < 3; i++) {
        if (!add_eog(v, v->special[of_fim[i]])) return false;
    }
    for (size_t i = 0; i < sizeof eog_texts / sizeof *eog_texts; i++) {
        int32_t id = find_token(v, eog_texts[i]);
        if (id >= 0 && (!add_eog(v, id) || !make_control(v, id))) return false;
    }
    /* gpt-oss's tokens become user-defined, so that their text is always shown. */
    for (size_t i = 0; i < sizeof harmony / sizeof *harmony; i++) {
        int32_t id = find_token(v, harmony[i]);
        if (id >= 0) retype(v, id, GGTOK_ATTR_USER_DEFINED);
    }
    for (size_t i = 0; i < 3; i++) { /* an undecided EOT is already in the set */
        int32_t id = v->special[of_end[i]];
        if (id < 0 || ggtok_vocab_is_eog(v, id)) continue;
        if (!add_eog(v, id) || !warn_of_eog(v, id)) return false;
    }
    /* In gpt-oss and solar-open, <|end|> only ends a message. */
    bool call = eog_has(v, "<|call|>") || eog_has(v, "<|calls|>");
    if (call && (eog_has(v, "<|return|>") || eog_has(v, "<|flush|>")) && eog_has(v, "<|end|>")) {
        int32_t id = find_token(v, "<|end|>");
        remove_eog(v, id);
        retype(v, id, GGTOK_ATTR_USER_DEFINED);
    }
    /* In gemma4 and plamo, </s> is a plain token. */
    if ((eog_has(v, "<|tool_response>") || eog_has(v, "<|plamo:eos|>")) && eog_has(v, "</s>")) {
        int32_t id = find_token(v, "</s>");
        remove_eog(v, id);
        retype(v, id, GGTOK_ATTR_NORMAL);
    }
    return true;
}

/* Whether the text looks like a tag: <...> or [...]. */
static bool is_tag(gguf_view t) {
    return t.n > 2 &&
           ((t.p[0] == '<' && t.p[t.n - 1] == '>') || (t.p[0] == '[' && t.p[t.n - 1] == ']'));
}

/* Whether the token is EOG only because the file names no EOS and llama.cpp has a default, such as
 * "," in GPT-2's vocabulary. No model was trained to end with such a token, and messages must be
 * able to contain it. */
static bool is_plain_default(const vocab *v, uint32_t id) {
    return (int32_t)id == v->default_eos && v->attr[id] == GGTOK_ATTR_NORMAL &&
           !is_tag(vocab_key(v, id));
}

/* Sets VOCAB_RESERVED for special tokens. (Tokens that were control tokens in the file already have
 * it.) */
static void reserve_special(vocab *v) {
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (v->attr[id] & (GGTOK_ATTR_CONTROL | GGTOK_ATTR_UNKNOWN)) v->attr[id] |= VOCAB_RESERVED;
    }
    for (size_t i = 0; i < v->eog.n; i++) { /* may contain a default that is out of range */
        uint32_t id = (uint32_t)v->eog.data[i];
        if (id < v->n_tokens && !is_plain_default(v, id)) v->attr[id] |= VOCAB_RESERVED;
    }
}

/* Sets v->marked: the ranges of ids before and after the widest gap between reserved or
 * user-defined ids. */
static void find_marked(vocab *v) {
    uint32_t first = 0, last = 0, widest = 0, n = 0;
    vocab_range before = {0, 0}, after = {0, 0};
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (!(v->attr[id] & (VOCAB_RESERVED | GGTOK_ATTR_USER_DEFINED))) continue;
        if (!n++) first = last = after.first = id;
        if (id - last > widest) {
            widest = id - last;
            before = (vocab_range){first, last - first + 1};
            after.first = id;
        }
        last = id;
    }
    if (n) after.n = last - after.first + 1;
    v->marked[0] = before;
    v->marked[1] = after;
}

/* ---- white space that a special token strips ---- */

static bool contains(gguf_view text, const char *word, bool any_case) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.n; i++) {
        size_t j = 0;
        for (; j < n; j++) {
            uint8_t c = text.p[i + j];
            if (any_case && c >= 'A' && c <= 'Z') c = (uint8_t)(c + 32);
            if (c != (uint8_t)word[j]) break;
        }
        if (j == n) return true;
    }
    return false;
}

static bool lstrip(vocab *v, const char *text) {
    int32_t id = find_token(v, text);
    if (id >= 0) v->attr[id] |= GGTOK_ATTR_LSTRIP;
    return id >= 0 ||
           ggtok_warnings_add(&v->warnings,
                              "the vocabulary has no token '%s': convert the model again", text);
}

static const char *const phi3_needs[] = {"</s>", "<unk>", "<s>", "<|endoftext|>"};

static ggtok_status check_phi3(const vocab *v, ggtok_error *err) {
    for (size_t i = 0; i < 4; i++) {
        if (find_token(v, phi3_needs[i]) >= 0) continue;
        return ggtok_error_set_at(
            err, GGTOK_ERR_VOCAB, KEY_NAME, strlen(KEY_NAME), GGTOK_NO_OFFSET,
            "key '%s' names a phi-3 model, whose vocabulary must have a token "
            "'%s' (llama.cpp refuses the file, too)",
            KEY_NAME, phi3_needs[i]);
    }
    return GGTOK_OK;
}

static void rstrip_phi3(vocab *v) {
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        if (v->attr[id] & (GGTOK_ATTR_CONTROL | GGTOK_ATTR_USER_DEFINED | GGTOK_ATTR_UNKNOWN)) {
            v->attr[id] |= GGTOK_ATTR_RSTRIP;
        }
    }
    for (size_t i = 0; i < 4; i++) {
        int32_t id = find_token(v, phi3_needs[i]);
        if (i == 0)
            v->attr[id] |= GGTOK_ATTR_RSTRIP;
        else
            v->attr[id] &= ~(uint32_t)GGTOK_ATTR_RSTRIP;
    }
}

/* Sets the attributes LSTRIP and RSTRIP. With `dry`, only checks the keys that decide them. */
static ggtok_status set_strips(vocab *v, vocab_keys *k, bool dry, ggtok_error *err) {
    gguf_view name, pre, arch;
    bool found;
    ggtok_status s;
    if ((s = ggtok_vocab_key_string(k, KEY_NAME, &name, &found, err)) ||
        (s = ggtok_vocab_key_string(k, KEY_PRE, &pre, &found, err)) ||
        (s = ggtok_vocab_key_string(k, KEY_ARCHITECTURE, &arch, &found, err))) {
        return s;
    }
    if (v->type == GGTOK_VOCAB_BPE &&
        strcmp(v->model, "gemma4") != 0) { /* the caller may have overridden the model */
        const char *used = ggtok_pretok_name(v->pre);
        pre = (gguf_view){(const uint8_t *)used, strlen(used)};
    }
    if (contains(pre, "jina-v2-de", false) || contains(pre, "jina-v2-es", false) ||
        contains(pre, "jina-v2-code", false) || contains(pre, "mmbert", false) ||
        contains(arch, "nomic-bert-moe", false) || contains(arch, "jina-bert-v3", false)) {
        return dry || lstrip(v, "<mask>") ? GGTOK_OK : ggtok_error_memory(err);
    }
    if (contains(name, "phi-3", true) || contains(name, "phi3", true)) {
        if (!(s = check_phi3(v, err)) && !dry) rstrip_phi3(v);
        return s;
    }
    if (!dry && contains(name, "modern-bert", true)) {
        return lstrip(v, "[MASK]") ? GGTOK_OK : ggtok_error_memory(err);
    }
    return GGTOK_OK;
}

ggtok_status ggtok_vocab_check_special(const vocab *v, const vocab_keys *k, ggtok_error *err) {
    /* The values are read into a copy, which shares v's tables. */
    vocab copy = *v;
    vocab_keys keys = *k;
    copy.warnings = (bytebuf){0};
    keys.warnings = &copy.warnings;
    copy.suppress = (idbuf){0};
    keys.met = ggtok_mem_zalloc(mem_mul(k->n_overrides, sizeof *keys.met));
    ggtok_status s = keys.met ? GGTOK_OK : ggtok_error_memory(err);
    if (!s) s = load_ids(&copy, &keys, err);
    if (!s) s = load_flags(&copy, &keys, err);
    if (!s) s = load_suppress(&copy, k->g, err);
    if (!s) s = set_strips(&copy, &keys, true, err);
    ggtok_mem_free(copy.warnings.data);
    ggtok_mem_free(copy.suppress.data);
    ggtok_vocab_keys_free(&keys);
    return s;
}

ggtok_status ggtok_vocab_load_special(vocab *v, vocab_keys *k, ggtok_error *err) {
    ggtok_status s;
    if ((s = load_ids(v, k, err)) || (s = load_flags(v, k, err)) ||
        (s = load_suppress(v, k->g, err))) {
        return s;
    }
    if (!detect_ids(v)) return ggtok_error_memory(err);
    mark_unused(v);
    if (!collect_eog(v)) return ggtok_error_memory(err);
    reserve_special(v);
    find_marked(v);
    return set_strips(v, k, false, err);
}
