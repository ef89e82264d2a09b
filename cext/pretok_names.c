/*
 * The values of tokenizer.ggml.pre: one row each. Columns: the name; the
 * LLAMA_VOCAB_PRE_TYPE_* that llama.cpp (b11549, llama-vocab.cpp) maps it to, as
 * the row's source; what the name sets besides; the scanners, in order.
 *
 * The scanners are the rows of gen/pretok_patterns.py, and two that count. A
 * faster scanner for a pattern goes in here under its own name and takes the
 * automaton's place in the rows; the automaton stays to judge it by.
 */
#include "pretok_scan.h"

#include "pretok_dfa.inc"

enum {
    IGNORE = PRETOK_IGNORE_MERGES,
    BOS = PRETOK_ADD_BOS,
    SEP = PRETOK_ADD_SEP,
    SPACES = PRETOK_KEEP_SPACES,
    NO_BOS = PRETOK_NO_BOS,
    RAW = PRETOK_RAW_UTF8,
    ESCAPE = PRETOK_ESCAPE_WHITESPACES,
    /* Whatever has the pre type GEMMA4 has its two quirks. */
    GEMMA4 = PRETOK_NEWLINE_WORDS | PRETOK_FORCE_BOS,
    CASED = PRETOK_CASED
};

static const pretok_row rows[] = {
    {"default", "DEFAULT", 0, {&default_punctuation, &gpt2, &numbers, &digits_3}},
    {"mpt", "MPT", 0, {&gpt2}},
    {"gpt-2", "GPT2", 0, {&gpt2}},
    {"phi-2", "GPT2", 0, {&gpt2}},
    {"jina-es", "GPT2", 0, {&gpt2}},
    {"jina-de", "GPT2", 0, {&gpt2}},
    {"gigachat", "GPT2", 0, {&gpt2}},
    {"jina-v2-es", "GPT2", 0, {&gpt2}},
    {"jina-v2-de", "GPT2", 0, {&gpt2}},
    {"a.x-4.0", "GPT2", 0, {&gpt2}},
    {"mellum", "GPT2", 0, {&gpt2}},
    {"modern-bert", "GPT2", 0, {&gpt2}},
    {"jina-v1-en", "GPT2", SEP, {&gpt2}},
    {"jina-v2-code", "GPT2", SEP, {&gpt2}},
    {"roberta-bpe", "GPT2", SEP, {&gpt2}},
    {"olmo", "OLMO", 0, {&gpt2}},
    {"jais", "JAIS", 0, {&gpt2}},
    {"exaone4", "GPT2", 0, {&gpt2}},
    {"trillion", "TRILLION", SPACES, {&gpt2}},
    {"granite-docling", "GRANITE_DOCLING", SPACES, {&gpt2}},
    {"llama3", "LLAMA3", IGNORE | BOS, {&llama3}},
    {"llama-v3", "LLAMA3", IGNORE | BOS, {&llama3}},
    {"llama-bpe", "LLAMA3", IGNORE | BOS, {&llama3}},
    {"falcon3", "LLAMA3", IGNORE | BOS, {&llama3}},
    {"falcon-h1", "LLAMA3", IGNORE | BOS, {&llama3}},
    {"pixtral", "LLAMA3", IGNORE | BOS, {&llama3}},
    {"midm-2.0", "LLAMA3", IGNORE | BOS, {&llama3}},
    {"lfm2", "LLAMA3", IGNORE | BOS, {&llama3}},
    {"jina-v5-nano", "LLAMA3", IGNORE | BOS, {&llama3}},
    {"dbrx", "DBRX", 0, {&llama3}},
    {"smaug-bpe", "SMAUG", 0, {&llama3}},
    {"chatglm-bpe", "CHATGLM4", NO_BOS, {&llama3}},
    {"glm4", "CHATGLM4", IGNORE | NO_BOS, {&llama3}},
    {"glm5", "CHATGLM4", IGNORE | NO_BOS, {&llama3}},
    {"qwen2", "QWEN2", SPACES, {&qwen2}},
    {"deepseek-r1-qwen", "QWEN2", SPACES, {&qwen2}},
    {"kormo", "QWEN2", SPACES, {&qwen2}},
    {"f2llmv2", "QWEN2", SPACES, {&qwen2}},
    {"stablelm2", "STABLELM2", 0, {&qwen2}},
    {"megrez", "QWEN2", 0, {&qwen2}},
    {"hunyuan", "HUNYUAN", SPACES, {&qwen2}},
    {"grok-2", "GROK_2", SPACES, {&qwen2}},
    {"solar-open", "SOLAR_OPEN", SPACES, {&qwen2}},
    {"starcoder", "STARCODER", 0, {&number, &gpt2}},
    {"refact", "REFACT", 0, {&number, &gpt2}},
    {"command-r", "COMMAND_R", SPACES, {&number, &gpt2}},
    {"smollm", "SMOLLM", SPACES, {&number, &gpt2}},
    {"codeshell", "CODESHELL", 0, {&number, &gpt2}},
    {"exaone", "EXAONE", 0, {&number, &gpt2}},
    {"minerva-7b", "MINERVA", 0, {&number, &gpt2}},
    {"mellum2", "MELLUM2", 0, {&number, &gpt2}},
    {"gpt-4o", "GPT4O", SPACES, {&gpt4o}},
    {"llama4", "GPT4O", SPACES, {&gpt4o}},
    {"kanana2", "GPT4O", SPACES, {&gpt4o}},
    {"talkie", "GPT4O", SPACES, {&gpt4o}},
    {"minimax-m2", "MINIMAX_M2", SPACES, {&gpt4o}},
    {"deepseek-v3", "DEEPSEEK3_LLM", SPACES, {&numbers_3, &cjk_kana, &deepseek_v3}},
    {"hunyuan-dense", "HUNYUAN_DENSE", SPACES, {&numbers_3, &cjk_kana, &deepseek_v3}},
    {"hy_v4", "HY_V4", SPACES, {&numbers_3, &cjk_kana, &deepseek_v3}},
    {"joyai-llm", "JOYAI_LLM", SPACES, {&numbers_3, &cjk_kana, &deepseek_v3}},
    {"gemma4", "GEMMA4", RAW | ESCAPE | GEMMA4, {&newlines}},
    {"granite-embed-multi-311m", "GEMMA4", RAW | ESCAPE | GEMMA4, {&newlines}},
    {"sarvam-moe", "SARVAM_MOE", SPACES | RAW | ESCAPE, {&newlines}},
    {"poro-chat", "PORO", SPACES, {&bloom}},
    {"bloom", "BLOOM", 0, {&bloom}},
    {"gpt3-finnish", "GPT3_FINNISH", 0, {&bloom}},
    {"bailingmoe", "BAILINGMOE", SPACES, {&bailing}},
    {"bailingmoe2", "BAILINGMOE", SPACES, {&bailing}},
    {"llada-moe", "BAILINGMOE", SPACES, {&bailing}},
    {"tiny_aya", "TINY_AYA", SPACES, {&pretok_groups_right, &tiny_aya}},
    {"cohere2moe", "TINY_AYA", SPACES, {&pretok_groups_right, &tiny_aya}},
    {"minicpm5", "MINICPM5", IGNORE, {&numbers_3, &minicpm5}},
    {"deepseek-llm", "DEEPSEEK_LLM", SPACES,
     {&line_end, &deepseek_letters, &deepseek_punctuation,
      &trailing_spaces, &deepseek_cjk, &numbers}},
    {"deepseek-coder", "DEEPSEEK_CODER", SPACES,
     {&line_end, &space_letters, &space_punctuation, &deepseek_cjk, &number}},
    {"spark2_5", "SPARK2_5", SPACES, {&numbers_3, &cjk_kana, &spark, &number}},
    {"youtu", "YOUTU", IGNORE | SPACES, {&youtu_scripts, &youtu}},
    {"falcon", "FALCON", 0, {&falcon_punctuation, &gpt2, &digits_3}},
    {"jais-2", "JAIS2", 0, {&jais2}},
    {"whitespace", "WHITESPACE", RAW | CASED, {&words}},
    {"qwen35", "QWEN35", SPACES, {&qwen35}},
    {"viking", "VIKING", SPACES, {&bloom, &number}},
    {"tekken", "TEKKEN", IGNORE | BOS | SPACES, {&tekken}},
    {"exaone-moe", "EXAONE_MOE", 0, {&exaone_moe}},
    {"chameleon", "CHAMELEON", BOS | SPACES,
     {&chameleon_sentinel, &chameleon_image, &chameleon_spaces,
      &number, &chameleon_punctuation, &gpt2}},
    {"granite-embed-multi-97m", "GRANITE_EMB_MULTI", IGNORE | SPACES, {&granite_multi}},
    {"superbpe", "SUPERBPE", SPACES, {&numbers, &pretok_groups_left}},
    {"seed-coder", "SEED_CODER", SPACES, {&seed_coder}},
    {"kimi-k2", "KIMI_K2", SPACES, {&kimi_k2}},
    {"ufakzeka", "UFAKZEKA", SPACES, {&ufakzeka}},
    {"afmoe", "AFMOE", SPACES, {&pretok_groups_right, &afmoe_scripts, &deepseek_v3}},
    {"laguna", "LAGUNA", SPACES, {&newlines, &qwen2}},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

const pretok_row *pretok_at(size_t i) {
    return i < N_ROWS ? &rows[i] : NULL;
}

const pretok_row *pretok_find(const char *name, size_t n) {
    for (size_t i = 0; i < N_ROWS; i++)
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0) return &rows[i];
    return NULL;
}

const char *pretok_name(const pretok_row *row) {
    return row->name;
}

unsigned pretok_flags(const pretok_row *row) {
    return row->flags;
}
