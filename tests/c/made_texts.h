/* Random hostile texts with rare combinations of characters, reproducible from a seed. */
#ifndef MADE_TEXTS_H
#define MADE_TEXTS_H

#include "random.h"

#include <string.h>

enum { MAX_TEXT = 5000, MAX_CHAR = 4 };

/* Sets of characters from which to build texts. */
static const char *const alphabets[] = {
    "abcST DM'relvd1 2\n\r\t.,/\"(",
    "aA'sStTmMdDreREllLLveVE ' ",
    "  \n\n\r\t x.",
    " \n",
    " \t\r\n\v\f",
    "0123456789 a.",
    "0123 \u0663\uff13\u2167\u00bd",
    "abcdefghijklmnopqrstuvwxyz      .,'\n",
    "the cat's don't I'LL we're\n  {}();/\n\n",
    "aB'./\n ",
    "ABCdef ghI",
    "/\n/\r.",
    "$+<=>^~|`!?-_ a",
    "\x01\x1f\x7f a1'\n.",
    "a\u00e9\u00df\u0130\u01c5 A'",
    "\u4f60\u597d\u6f22\u3042\u30a2\u3001\u3002 a1",
    "\uac00\u1100\u0e01\u0e31\u0915\u093e a",
    "\u00a0\u2003\u3000\u2028\x0b \n.a",
    "\u2019\u201c'\"\u2026 s",
    "\u0301a \u0301'\u0301.1\n",
    "\U0001f600\u200d\ufe0f \U0001f44d!a",
    "\u0378\ue000\U000e0001\U0010ffff a.", /* neither letters nor marks: unassigned, private */
    "\xed\xa0\x80 a1.\n",                  /* a lone surrogate */
    "<sentinel:0>IMGAZ ",
    "ab\u00e9\u0436'.\u00ab\u2014 \n", /* letters and punctuation, in ASCII and beyond */
    "\u4f60\u3042.a1 \n'\u30fb",
    "$+ a.\u4f60\u2603 \t1\n",
};

/* Words that random characters seldom form. */
static const char *const words[] = {
    "'s",
    "'T",
    "'re",
    "'Ve",
    "'LL",
    "'m",
    "'d",
    "'x",
    "'\u017f",
    "'",
    "a's",
    " the",
    "The",
    "camelCase",
    " x1",
    "\r\n",
    "\n\n ",
    " \n  a",
    "  \n",
    "...\n",
    "//\n",
    " 1234",
    "1,000",
    "  ",
    "\t\t",
    "\u00e9t\u00e9",
    "\u4f60\u597d",
    "\u3002\n",
    "<sentinel:12>",
};

static size_t put(uint8_t *text, size_t n, const char *bytes, size_t len) {
    if (n + len > MAX_TEXT) return n;
    memcpy(text + n, bytes, len);
    return n + len;
}

static size_t char_length(uint8_t lead) {
    return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/* Appends a random character from the alphabet `times` times. */
static size_t put_char(uint8_t *text, size_t n, const char *alphabet, size_t times) {
    const char *p = alphabet + below(strlen(alphabet));
    while (((uint8_t)*p & 0xC0) == 0x80) p--;
    while (times--) n = put(text, n, p, char_length((uint8_t)*p));
    return n;
}

/* Builds a text of about `size` bytes from segments of different kinds. */
static size_t make_text(uint8_t *text, size_t size) {
    const char *alphabet = PICK(alphabets), *edge;
    size_t n = 0;
    while (n < size && n < MAX_TEXT - MAX_CHAR) {
        size_t many = 1 + below(below(4) ? 12 : 80);
        switch (below(6)) {
        case 0: alphabet = PICK(alphabets); break;
        case 1: /* a run of one character */ n = put_char(text, n, alphabet, many); break;
        case 2: /* a word near the end of a 64-byte window */
            edge = alphabets[below(4) ? 7 : below(10)];
            n = put_char(text, n, edge, 58 + below(8));
            /* fall through */
        case 3: {
            const char *word = PICK(words);
            n = put(text, n, word, strlen(word));
            break;
        }
        default:
            while (many--) n = put_char(text, n, alphabet, 1);
        }
    }
    return n;
}

#endif
