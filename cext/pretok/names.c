/*
 * The values of tokenizer.ggml.pre, one row each. Columns: the name; the
 * LLAMA_VOCAB_PRE_TYPE_* to which llama.cpp (b11549, llama-vocab.cpp) maps it, which
 * is the row's source; flags that the name sets; the scanners, in order.
 *
 * To add a name, see docs/design/pretokenizers.md, "Adding a name".
 *
 * The scanners are the rows of gen/pretok_patterns.py, and two that count. A faster
 * scanner for a pattern is added here under a separate name and replaces the
 * automaton in the rows; the automaton stays as the reference for tests.
 */
#include "pretok/windows/windows.h"

#include "pretok/dfa.inc"

/* Scanners that find the same words as an automaton but use windows. Patterns that differ only in
 * characters beyond ASCII share one scanner's code. */
#define WINDOWS(name, code) \
    static const pretok_scanner win_##name = {.cut = ggtok_pretok_cut_##code, .plain = &name}
WINDOWS(gpt2, gpt2);
WINDOWS(llama3, llama3);
WINDOWS(k2_horizon, llama3);
WINDOWS(qwen2, qwen2);
WINDOWS(qwen35, qwen2);
WINDOWS(bailing, qwen2);
WINDOWS(seed_coder, seed_coder);
WINDOWS(ufakzeka, ufakzeka);
WINDOWS(kimi_k2, kimi_k2);
WINDOWS(gpt4o, gpt4o);
WINDOWS(granite_multi, gpt4o);
WINDOWS(tekken, tekken);
WINDOWS(fast_youtu, youtu);
WINDOWS(fast_starcoder, starcoder);
WINDOWS(fast_minicpm5, minicpm5);
WINDOWS(fast_deepseek_v3, deepseek_v3);
WINDOWS(fast_default, default);
WINDOWS(fast_falcon, falcon);
WINDOWS(fast_deepseek_coder, deepseek_coder);
WINDOWS(fast_deepseek_llm, deepseek_llm);
WINDOWS(fast_afmoe, afmoe);
WINDOWS(tiny_aya, tiny_aya);

enum {
    IGNORE = PRETOK_IGNORE_MERGES,
    BOS = PRETOK_ADD_BOS,
    SEP = PRETOK_ADD_SEP,
    SPACES = PRETOK_KEEP_SPACES,
    NO_BOS = PRETOK_NO_BOS,
    RAW = PRETOK_RAW_UTF8,
    ESCAPE = PRETOK_ESCAPE_WHITESPACES,
    LINES = PRETOK_LINES,
    /* All names with pre type GEMMA4 have these two quirks. */
    GEMMA4 = PRETOK_NEWLINE_WORDS | PRETOK_FORCE_BOS,
    MMBERT = PRETOK_NEWLINE_WORDS | PRETOK_MARK_LINES,
    CASED = PRETOK_CASED
};

/* Chains as in llama.cpp, and, where it is worthwhile, equivalent chains of fewer scanners. */
/* clang-format off */
#define CHAIN_DEFAULT {&default_punctuation, &gpt2, &numbers, &digits_3}, {&win_fast_default}
#define CHAIN_GPT2 {&gpt2}, {&win_gpt2}
#define CHAIN_LLAMA3 {&llama3}, {&win_llama3}
#define CHAIN_QWEN2 {&qwen2}, {&win_qwen2}
#define CHAIN_STARCODER {&number, &gpt2}, {&win_fast_starcoder}
#define CHAIN_GPT4O {&gpt4o}, {&win_gpt4o}
#define CHAIN_DEEPSEEK_V3 {&numbers_3, &cjk_kana, &deepseek_v3}, {&win_fast_deepseek_v3}
#define CHAIN_NEWLINES {&newlines}, {&ggtok_pretok_newlines}
#define CHAIN_MARKED_WORDS {&marked_words}, {NULL}
#define CHAIN_BLOOM {&bloom}, {NULL}
#define CHAIN_BAILING {&bailing}, {&win_bailing}
#define CHAIN_TINY_AYA {&ggtok_pretok_groups_right, &tiny_aya}, {&ggtok_pretok_groups_right, &win_tiny_aya}
#define CHAIN_MINICPM5 {&numbers_3, &minicpm5}, {&win_fast_minicpm5}
#define CHAIN_DEEPSEEK_LLM \
    {&line_end, &deepseek_letters, &deepseek_punctuation, \
     &trailing_spaces, &deepseek_cjk, &numbers}, \
    {&win_fast_deepseek_llm}
#define CHAIN_DEEPSEEK_CODER \
    {&line_end, &space_letters, &space_punctuation, &deepseek_cjk, &number}, \
    {&win_fast_deepseek_coder}
#define CHAIN_SPARK2_5 {&numbers_3, &cjk_kana, &spark, &number}, {&fast_spark}
#define CHAIN_YOUTU {&youtu_scripts, &youtu}, {&win_fast_youtu}
#define CHAIN_FALCON {&falcon_punctuation, &gpt2, &digits_3}, {&win_fast_falcon}
#define CHAIN_JAIS2 {&jais2}, {NULL}
#define CHAIN_WORDS {&words}, {NULL}
#define CHAIN_QWEN35 {&qwen35}, {&win_qwen35}
#define CHAIN_VIKING {&bloom, &number}, {&fast_viking}
#define CHAIN_TEKKEN {&tekken}, {&win_tekken}
#define CHAIN_EXAONE_MOE {&exaone_moe}, {NULL}
#define CHAIN_CHAMELEON \
    {&chameleon_sentinel, &chameleon_image, &chameleon_spaces, \
     &number, &chameleon_punctuation, &gpt2}, \
    {&chameleon_sentinel, &chameleon_image, &chameleon_spaces, &fast_chameleon}
#define CHAIN_GRANITE_MULTI {&granite_multi}, {&win_granite_multi}
#define CHAIN_SUPERBPE {&numbers, &ggtok_pretok_groups_left}, {NULL}
#define CHAIN_SEED_CODER {&seed_coder}, {&win_seed_coder}
#define CHAIN_KIMI_K2 {&kimi_k2}, {&win_kimi_k2}
#define CHAIN_K2_HORIZON {&k2_horizon}, {&win_k2_horizon}
#define CHAIN_UFAKZEKA {&ufakzeka}, {&win_ufakzeka}
#define CHAIN_AFMOE \
    {&ggtok_pretok_groups_right, &afmoe_scripts, &deepseek_v3}, \
    {&ggtok_pretok_groups_right, &win_fast_afmoe}
#define CHAIN_LAGUNA {&newlines, &qwen2}, {&fast_laguna}
/* clang-format on */

static const pretok_row rows[] = {
    {"default", "DEFAULT", 0, CHAIN_DEFAULT},
    {"mpt", "MPT", 0, CHAIN_GPT2},
    {"gpt-2", "GPT2", 0, CHAIN_GPT2},
    {"phi-2", "GPT2", 0, CHAIN_GPT2},
    {"jina-es", "GPT2", 0, CHAIN_GPT2},
    {"jina-de", "GPT2", 0, CHAIN_GPT2},
    {"gigachat", "GPT2", 0, CHAIN_GPT2},
    {"jina-v2-es", "GPT2", 0, CHAIN_GPT2},
    {"jina-v2-de", "GPT2", 0, CHAIN_GPT2},
    {"a.x-4.0", "GPT2", 0, CHAIN_GPT2},
    {"mellum", "GPT2", 0, CHAIN_GPT2},
    {"modern-bert", "GPT2", 0, CHAIN_GPT2},
    {"jina-v1-en", "GPT2", SEP, CHAIN_GPT2},
    {"jina-v2-code", "GPT2", SEP, CHAIN_GPT2},
    {"roberta-bpe", "GPT2", SEP, CHAIN_GPT2},
    {"olmo", "OLMO", 0, CHAIN_GPT2},
    {"jais", "JAIS", 0, CHAIN_GPT2},
    {"exaone4", "GPT2", 0, CHAIN_GPT2},
    {"trillion", "TRILLION", SPACES, CHAIN_GPT2},
    {"granite-docling", "GRANITE_DOCLING", SPACES, CHAIN_GPT2},
    {"llama3", "LLAMA3", IGNORE | BOS, CHAIN_LLAMA3},
    {"llama-v3", "LLAMA3", IGNORE | BOS, CHAIN_LLAMA3},
    {"llama-bpe", "LLAMA3", IGNORE | BOS, CHAIN_LLAMA3},
    {"falcon3", "LLAMA3", IGNORE | BOS, CHAIN_LLAMA3},
    {"falcon-h1", "LLAMA3", IGNORE | BOS, CHAIN_LLAMA3},
    {"pixtral", "LLAMA3", IGNORE | BOS, CHAIN_LLAMA3},
    {"midm-2.0", "LLAMA3", IGNORE | BOS, CHAIN_LLAMA3},
    {"lfm2", "LLAMA3", IGNORE | BOS, CHAIN_LLAMA3},
    {"jina-v5-nano", "LLAMA3", IGNORE | BOS, CHAIN_LLAMA3},
    {"dbrx", "DBRX", 0, CHAIN_LLAMA3},
    {"smaug-bpe", "SMAUG", 0, CHAIN_LLAMA3},
    {"chatglm-bpe", "CHATGLM4", NO_BOS, CHAIN_LLAMA3},
    {"glm4", "CHATGLM4", IGNORE | NO_BOS, CHAIN_LLAMA3},
    {"glm5", "CHATGLM4", IGNORE | NO_BOS, CHAIN_LLAMA3},
    {"qwen2", "QWEN2", SPACES, CHAIN_QWEN2},
    {"deepseek-r1-qwen", "QWEN2", SPACES, CHAIN_QWEN2},
    {"kormo", "QWEN2", SPACES, CHAIN_QWEN2},
    {"f2llmv2", "QWEN2", SPACES, CHAIN_QWEN2},
    {"stablelm2", "STABLELM2", 0, CHAIN_QWEN2},
    {"megrez", "QWEN2", 0, CHAIN_QWEN2},
    {"hunyuan", "HUNYUAN", SPACES, CHAIN_QWEN2},
    {"grok-2", "GROK_2", SPACES, CHAIN_QWEN2},
    {"solar-open", "SOLAR_OPEN", SPACES, CHAIN_QWEN2},
    {"starcoder", "STARCODER", 0, CHAIN_STARCODER},
    {"refact", "REFACT", 0, CHAIN_STARCODER},
    {"command-r", "COMMAND_R", SPACES, CHAIN_STARCODER},
    {"smollm", "SMOLLM", SPACES, CHAIN_STARCODER},
    {"codeshell", "CODESHELL", 0, CHAIN_STARCODER},
    {"exaone", "EXAONE", 0, CHAIN_STARCODER},
    {"minerva-7b", "MINERVA", 0, CHAIN_STARCODER},
    {"mellum2", "MELLUM2", 0, CHAIN_STARCODER},
    {"gpt-4o", "GPT4O", SPACES, CHAIN_GPT4O},
    {"llama4", "GPT4O", SPACES, CHAIN_GPT4O},
    {"kanana2", "GPT4O", SPACES, CHAIN_GPT4O},
    {"talkie", "GPT4O", SPACES, CHAIN_GPT4O},
    {"minimax-m2", "MINIMAX_M2", SPACES, CHAIN_GPT4O},
    {"deepseek-v3", "DEEPSEEK3_LLM", SPACES, CHAIN_DEEPSEEK_V3},
    {"hunyuan-dense", "HUNYUAN_DENSE", SPACES, CHAIN_DEEPSEEK_V3},
    {"hy_v4", "HY_V4", SPACES, CHAIN_DEEPSEEK_V3},
    {"joyai-llm", "JOYAI_LLM", SPACES, CHAIN_DEEPSEEK_V3},
    {"gemma4", "GEMMA4", RAW | ESCAPE | LINES | GEMMA4, CHAIN_NEWLINES},
    {"granite-embed-multi-311m", "GEMMA4", RAW | ESCAPE | LINES | GEMMA4, CHAIN_NEWLINES},
    {"mmbert", "MMBERT", RAW | ESCAPE | MMBERT, CHAIN_MARKED_WORDS},
    {"sarvam-moe", "SARVAM_MOE", SPACES | RAW | ESCAPE | LINES, CHAIN_NEWLINES},
    {"poro-chat", "PORO", SPACES, CHAIN_BLOOM},
    {"bloom", "BLOOM", 0, CHAIN_BLOOM},
    {"gpt3-finnish", "GPT3_FINNISH", 0, CHAIN_BLOOM},
    {"bailingmoe", "BAILINGMOE", SPACES, CHAIN_BAILING},
    {"bailingmoe2", "BAILINGMOE", SPACES, CHAIN_BAILING},
    {"llada-moe", "BAILINGMOE", SPACES, CHAIN_BAILING},
    {"tiny_aya", "TINY_AYA", SPACES, CHAIN_TINY_AYA},
    {"cohere2moe", "TINY_AYA", SPACES, CHAIN_TINY_AYA},
    {"minicpm5", "MINICPM5", IGNORE, CHAIN_MINICPM5},
    {"deepseek-llm", "DEEPSEEK_LLM", SPACES, CHAIN_DEEPSEEK_LLM},
    {"deepseek-coder", "DEEPSEEK_CODER", SPACES, CHAIN_DEEPSEEK_CODER},
    {"spark2_5", "SPARK2_5", SPACES, CHAIN_SPARK2_5},
    {"youtu", "YOUTU", IGNORE | SPACES, CHAIN_YOUTU},
    {"falcon", "FALCON", 0, CHAIN_FALCON},
    {"jais-2", "JAIS2", 0, CHAIN_JAIS2},
    {"whitespace", "WHITESPACE", RAW | CASED, CHAIN_WORDS},
    {"qwen35", "QWEN35", SPACES, CHAIN_QWEN35},
    {"viking", "VIKING", SPACES, CHAIN_VIKING},
    {"tekken", "TEKKEN", IGNORE | BOS | SPACES, CHAIN_TEKKEN},
    {"exaone-moe", "EXAONE_MOE", 0, CHAIN_EXAONE_MOE},
    {"chameleon", "CHAMELEON", BOS | SPACES, CHAIN_CHAMELEON},
    {"granite-embed-multi-97m", "GRANITE_EMB_MULTI", IGNORE | SPACES, CHAIN_GRANITE_MULTI},
    {"superbpe", "SUPERBPE", SPACES, CHAIN_SUPERBPE},
    {"seed-coder", "SEED_CODER", SPACES, CHAIN_SEED_CODER},
    {"kimi-k2", "KIMI_K2", SPACES, CHAIN_KIMI_K2},
    {"k2-horizon", "K2_HORIZON", SPACES, CHAIN_K2_HORIZON},
    {"ufakzeka", "UFAKZEKA", SPACES, CHAIN_UFAKZEKA},
    {"afmoe", "AFMOE", SPACES, CHAIN_AFMOE},
    {"laguna", "LAGUNA", SPACES, CHAIN_LAGUNA},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

const pretok_row *ggtok_pretok_at(size_t i) {
    return i < N_ROWS ? &rows[i] : NULL;
}

const pretok_row *ggtok_pretok_find(const char *name, size_t n) {
    for (size_t i = 0; i < N_ROWS; i++)
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0) return &rows[i];
    return NULL;
}

const char *ggtok_pretok_name(const pretok_row *row) {
    return row->name;
}

unsigned ggtok_pretok_flags(const pretok_row *row) {
    return row->flags;
}
