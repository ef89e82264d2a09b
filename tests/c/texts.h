/* Texts for all code paths: short, long, one long word, special tokens, malformed UTF-8. */
#ifndef TEXTS_H
#define TEXTS_H

#include <stddef.h>

#define A8 "aaaaaaaa"
#define A64 A8 A8 A8 A8 A8 A8 A8 A8
#define LINE "Hello world, it's 12345 t\u00eates, \u4f60\u597d\u6f22\u5b57 \U0001f600!\n"

static const char *const texts[] = {
    "Hello",
    "<s> the <|endoftext|>  <mask></s> \u4f60\u597d<|im_end|>\n\n<dna>ACGTACGTTTNAC</dna>",
    LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE,
    A64 A64 A64 "\u00e9\u00e9" A64 "\u4f60\u597d" A64,
    "\xff\xc3 broken \xf0\x90 \xed\xa0\x80 \xe2\x96",
    "antidisestablishmentarianism HyperTextTransferProtocol unbelievably 3.14159 \u0130\u0307x",
};
enum { N_TEXTS = sizeof texts / sizeof *texts };

#endif
