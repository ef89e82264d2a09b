/* Twins of some automata that look at 64 bytes at a time: the same cuts. */
#ifndef GGTOK_PRETOK_SIMD_H
#define GGTOK_PRETOK_SIMD_H

#include "pretok_scan.h"

pretok_cut pretok_cut_gpt2, pretok_cut_starcoder, pretok_cut_llama3, pretok_cut_minicpm5,
    pretok_cut_qwen2, pretok_cut_seed_coder, pretok_cut_ufakzeka, pretok_cut_kimi_k2,
    pretok_cut_gpt4o, pretok_cut_tekken, pretok_cut_youtu, pretok_cut_tiny_aya,
    pretok_cut_deepseek_v3, pretok_cut_afmoe, pretok_cut_default, pretok_cut_falcon,
    pretok_cut_deepseek_coder, pretok_cut_deepseek_llm;

#endif
