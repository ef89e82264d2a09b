"""Compares the package in Node with the library, on llama.cpp's vocabularies and chat templates.

    python -m tests.web.real                        # all
    python -m tests.web.real --texts 1000 qwen2     # some vocabularies

For each vocabulary, it compares all facts about it and its tokens, its keys and merges, the ids and
spans (in three units) of generated texts under four settings, and decoded text. For each template
in llama.cpp's collection and in the tests, it compares random request bodies, and conversations
rendered as in transformers. It stops at the first difference.
"""

from __future__ import annotations

import argparse
import time
import warnings

import ggtok
from tests.chat import answers
from tests.chat.made import TEMPLATES
from tests.support.vocabularies import OTHERS, REAL, real
from tests.web import compare
from tests.web.hosts import Node, Tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.web.real", description=__doc__)
    parser.add_argument("vocabularies", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--texts", type=int, default=300, help="for each vocabulary")
    parser.add_argument("--bodies", type=int, default=30, help="for each template")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ggtok.VocabWarning)
    with Node() as node:
        for name in args.vocabularies or (*REAL, *OTHERS):
            start, path = time.monotonic(), real(name)
            tok, js = ggtok.load(path), Tokenizer(node, path)
            n_tokens = compare.compare_vocabulary(tok, js)
            compare.compare_file(tok, js, path)
            n = compare.compare_texts(tok, js, compare.texts(tok, args.texts))
            js.free()
            took = time.monotonic() - start
            print(f"{name}: {n_tokens:,} tokens, {n:,} results of texts equal ({took:.0f} s)")
        if args.vocabularies:
            return
        tok, js = ggtok.load(real("llama-bpe")), Tokenizer(node, real("llama-bpe"))
        for dialect in ("llama.cpp", "transformers"):
            rendered = refused = 0
            for i, template in enumerate([*TEMPLATES.values(), *answers.templates().values()]):
                if dialect == "llama.cpp":
                    found = compare.compare_bodies(tok, js, template, args.bodies, i)
                else:
                    found = compare.compare_transformers(tok, js, template)
                rendered, refused = rendered + found[0], refused + found[1]
            print(f"{dialect}: {rendered:,} chats equal, {refused:,} refused by both")


if __name__ == "__main__":
    main()
