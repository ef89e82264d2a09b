/* Scanners that read 64 bytes at a time and make the same cuts as the automata of their patterns. */
#ifndef GGTOK_PRETOK_WINDOWS_H
#define GGTOK_PRETOK_WINDOWS_H

#include "pretok/scan.h"

pretok_cut ggtok_pretok_cut_gpt2, ggtok_pretok_cut_starcoder, ggtok_pretok_cut_llama3,
    ggtok_pretok_cut_minicpm5, ggtok_pretok_cut_qwen2, ggtok_pretok_cut_seed_coder,
    ggtok_pretok_cut_ufakzeka, ggtok_pretok_cut_kimi_k2, ggtok_pretok_cut_gpt4o,
    ggtok_pretok_cut_tekken, ggtok_pretok_cut_youtu, ggtok_pretok_cut_tiny_aya,
    ggtok_pretok_cut_deepseek_v3, ggtok_pretok_cut_afmoe, ggtok_pretok_cut_default,
    ggtok_pretok_cut_falcon, ggtok_pretok_cut_deepseek_coder, ggtok_pretok_cut_deepseek_llm;

#endif
